"""`certify`: the evidence for any point of any problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import (
    check_count,
    check_nonnegative,
    check_positive_number,
    check_seed,
    check_vector,
    check_weights,
    refused,
)
from dszog.errors import DszogError, InputError, InputTypeError
from dszog.evidence.certificate import Certificate
from dszog.evidence.look import CERTIFICATION
from dszog.maths.random_stream import CHECK, stream
from dszog.problem import Problem
from dszog.problem.constraints import Simulator
from dszog.run.checker import Checker, heaviest_first
from dszog.run.failures import FailureHandler
from dszog.run.meter import Meter
from dszog.workers import check_evaluator, open_evaluator

ALL_UP_TO = 10**7  # constraints that are all looked at if no number of queries is given
SAMPLE = 10**6


def certify(
    problem: Problem | Simulator,
    x: Any,
    weights: tuple[IntArray, FloatArray] | None = None,
    *,
    penalty: float = 30.0,
    ridge: float = 1e-6,
    active_tol: float = 1e-2,
    max_queries: int | float | None = None,
    seed: int = 0,
    bounds: Any = None,
    evaluator: Any = "serial",
    timeout: float | None = None,
) -> Certificate:
    r"""Return the evidence for a point: how good, how feasible, how stationary.

    Parameters
    ----------
    problem : Problem or Simulator
    x : array_like of shape (dim,)
    weights : (indices, weights), optional
        Weights :math:`p` over the constraints, such as ``result.weights``; without them
        the maximising ones.
    penalty, ridge : float
        The :math:`\beta` and :math:`\lambda` of the definitions.
    active_tol : float
        Constraints with values above ``-active_tol`` may have multipliers.
    max_queries : int, optional
        Without it all losses and up to ten million constraints are evaluated.
    seed : int
        Of the draw, if not all constraints are looked at.
    bounds : optional
        Of the variables of a simulator, as for :func:`dszog.minimize`.
    evaluator : str or workers
    timeout : float, optional
        As for :func:`dszog.minimize`.

    Returns
    -------
    Certificate
        Its ``print`` is a readable report.

    Examples
    --------
    >>> import numpy as np
    >>> import dszog
    >>> disc = dszog.Constraints.from_function(lambda x, j: x @ x - 1.0, 1)
    >>> problem = dszog.Problem(lambda x: x.sum(), disc, dim=2)
    >>> evidence = dszog.certify(problem, [-np.sqrt(0.5), -np.sqrt(0.5)])
    >>> round(evidence.objective, 4), evidence.feasibility.is_exact
    (-1.4142, True)
    >>> bool(evidence.stationarity.best_lagrangian < 1e-6)
    True
    """
    if not isinstance(problem, Problem | Simulator):
        raise InputTypeError(
            f"certify: `problem` must be a dszog.Problem, got "
            f"{type(problem).__name__}. Make one with dszog.Problem(fun, constraints, "
            "dim)."
        )
    point = check_vector("certify", "x", x)
    if isinstance(problem, Simulator):
        problem = Problem(problem, None, len(point), bounds=bounds)
    elif bounds is not None:
        raise InputError(
            "certify: `bounds` are for a simulator, got them beside a problem, which "
            "has its own. Leave them out."
        )
    if len(point) != problem.dim:
        raise InputError(
            f"certify: `x` has {len(point)} entries for {problem.dim} variables. Give "
            "one entry per variable."
        )
    if not ((problem.lower <= point) & (point <= problem.upper)).all():
        cure = "Move it there: numpy.clip(x, problem.lower, problem.upper)."
        raise refused("certify", "x", "lie within the bounds", x, cure)
    size = problem.size
    if weights is None:
        weights = NO_INDICES, np.empty(0)
    else:
        weights = check_weights("certify", weights, size.n_constraints)
    penalty = check_positive_number("certify", "penalty", penalty)
    ridge = check_positive_number("certify", "ridge", ridge)
    active_tol = check_nonnegative("certify", "active_tol", active_tol)
    seed = check_seed("certify", seed)
    check_evaluator("certify", evaluator, timeout)
    limit = None
    if max_queries is not None:
        limit = check_count("certify", "max_queries", max_queries, least=2)

    with open_evaluator("certify", evaluator, problem, timeout) as answer:
        meter = Meter(answer, size, limit, FailureHandler("resample"))
        meter.kept = limit or 0
        # A draw of its own: that of a run with this seed may have chosen the point.
        own = int(stream(seed, CERTIFICATION, CHECK).integers(2**63))
        n_calls = size.n_constraint_calls
        if n_calls > ALL_UP_TO:
            n_calls = size.n_losses + SAMPLE
        checker = Checker(problem, meter, own, limit or size.n_losses + n_calls)
        certificate = checker.check(problem.scaled(point), heaviest_first(weights))
        if certificate is None:
            raise DszogError("certify: the point could not be checked.")
        if not certificate.is_known:
            what = "a constraint" if certificate.feasibility.n_unknown else "a loss"
            return replace(certificate, note=f"not known: {what} gave no value")
        if not meter.affords(checker.stationarity_cost()):
            return certificate
        return checker.with_stationarity(
            certificate, weights, penalty=penalty, ridge=ridge, active_tol=active_tol
        )
