"""Other libraries on the same cases, each in the form that suits it best.

All start at the same point, see values only, and are stopped by the same `Budget`.
Where a solver cannot take all constraints it is given their worst violation: as a
penalty whose minimum is that of the problem, or as its one constraint.
"""

from __future__ import annotations

import contextlib
import io
import logging
import signal
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import NonlinearConstraint, minimize

import dszog
from dszog.contract.arrays import FloatArray
from dszog_bench.budget import Budget, OverError

Solve: TypeAlias = Callable[[Budget, int], Any]

PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)  # on the sum of squared violations
REACH = 2.0  # half the width of the box around the start, for solvers that need one
WATCHED_EVERY = 20  # iterations of DSZOG
MANY_VARIABLES = (  # NOMAD's models take minutes there between two values
    "QUAD_MODEL_SEARCH no",
    "EVAL_QUEUE_SORT DIR_LAST_SUCCESS",
    "DIRECTION_TYPE ORTHO 2N",
)


@dataclass(frozen=True)
class Peer:
    """A solver: ``solve(budget, seed)`` runs until the budget stops it or it gives up.

    Seeds make a difference where it is random.
    """

    solve: Solve
    package: str = "scipy"
    is_random: bool = False

    @property
    def install(self) -> str:
        own = self.package == "PyNomad"  # its licence is the LGPL
        return "pip install PyNomadBBO" if own else 'pip install "dszog[bench]"'


# --------------------------------------------------------------------------- our own


def _dszog(budget: Budget, seed: int, is_told: bool = False, **options: Any) -> None:
    """Run the library with its defaults; every twentieth iterate is watched."""
    # It may be told how large a violation may remain, as a user could.

    def charge(n_losses: int, n_constraints: int) -> None:
        budget.n_losses, budget.n_constraints = n_losses, n_constraints

    def watch(progress: dszog.Progress) -> None:
        charge(progress.n_loss_queries, progress.n_constraint_queries)
        if budget.is_over:
            budget.stop()
        if progress.iteration % WATCHED_EVERY == 0:
            budget.watch(progress.x)

    result = dszog.minimize(
        budget.case.problem,
        method="dszog",
        options=options,
        max_queries=budget.case.planned_queries,
        constraint_tol=budget.case.target_violation if is_told else 1e-2,
        seed=seed,
        callback=watch,
    )
    charge(result.nfev, result.ncev)
    budget.watch(result.x)


def _more_losses(budget: Budget, seed: int) -> None:
    """Look at more losses a step, as for constraints that are more expensive."""
    _dszog(budget, seed, loss_batch=min(128, budget.case.n_losses))


# ----------------------------------------------------------------------------- SciPy


def _scipy(method: str, form: Any, **options: Any) -> Solve:
    """Return a method of SciPy with all constraints, in a form that it takes."""
    return lambda budget, seed: minimize(
        budget.objective,
        budget.case.start,
        method=method,
        constraints=form(budget.constraints),
        options=options,
    )


def _as_dictionary(constraints: Any) -> dict[str, Any]:
    return {"type": "ineq", "fun": lambda x: -constraints(x)}


def _as_object(constraints: Any) -> NonlinearConstraint:
    return NonlinearConstraint(constraints, -np.inf, 0.0)


def _lbfgsb(budget: Budget, seed: int) -> None:
    """Minimise a quadratic penalty by finite differences, stiffer and stiffer."""
    x = budget.case.start
    for penalty in PENALTIES:

        def total(w: FloatArray, penalty: float = penalty) -> float:
            violations = np.maximum(budget.constraints(w), 0.0)
            return budget.objective(w) + penalty * float(np.square(violations).sum())

        x = minimize(total, x, method="L-BFGS-B", options={"maxfun": 10**9}).x


def _exact(budget: Budget) -> Callable[[Any], float]:
    """Return the objective with a penalty on the worst violation."""
    # Its weight is more than the sum of the multipliers at the optimum: the minimum is
    # that of the problem.
    weight = 2.0 * budget.case.known.multiplier_sum

    def total(x: Any) -> float:
        point = np.asarray(x, dtype=float)
        return budget.objective(point) + weight * budget.worst(point)

    return total


# ------------------------------------------------------------------------------ others


def _cma_penalty(budget: Budget, seed: int) -> None:
    function = _exact(budget)
    while True:  # until the budget stops it
        _cma(budget, seed, function)
        seed += 1000


def _cma_lagrangian(budget: Budget, seed: int) -> None:
    import cma

    function = cma.ConstrainedFitnessAL(
        budget.objective, lambda x: list(budget.constraints(np.asarray(x)))
    )
    _cma(budget, seed, function, function.update)


def _cma(budget: Budget, seed: int, function: Any, update: Any = None) -> None:
    import cma

    options = {"seed": seed + 1, "verbose": -9}
    es = cma.CMAEvolutionStrategy(budget.case.start, 0.1, options)
    while not es.stop():
        points = es.ask()
        es.tell(points, [function(x) for x in points])
        if update is not None:
            update(es)


def _nevergrad(budget: Budget, seed: int) -> None:
    import nevergrad as ng

    space = ng.p.Array(init=budget.case.start)
    space.random_state = np.random.RandomState(seed)
    n_asks = max(budget.queries // budget.case.n_constraints, 100)
    optimizer = ng.optimizers.NGOpt(parametrization=space, budget=n_asks)
    function = _exact(budget)
    for _ in range(n_asks):
        candidate = optimizer.ask()
        optimizer.tell(candidate, function(candidate.value))


def _nomad(budget: Budget, seed: int) -> None:
    import PyNomad

    def black_box(point: Any) -> int:  # an exception would be lost in there
        x = np.array([point.get_coord(i) for i in range(point.size())])
        try:
            text = f"{budget.objective(x)} {float(budget.constraints(x).max())}"
        except OverError:
            if budget.leave is not None:
                budget.leave()
            return 0  # a failed evaluation, as all that follow
        point.setBBO(text.encode("UTF-8"))
        return 1

    start = budget.case.start
    n_evaluations = max(budget.queries // budget.case.n_constraints, 1)
    pressed = signal.getsignal(signal.SIGINT)
    try:
        PyNomad.optimize(
            black_box,
            start.tolist(),
            (start - REACH).tolist(),
            (start + REACH).tolist(),
            [
                "BB_OUTPUT_TYPE OBJ PB",
                f"MAX_BB_EVAL {n_evaluations}",
                f"MAX_TIME {int(budget.seconds) + 1}",
                f"DIMENSION {len(start)}",
                f"SEED {seed}",
                "DISPLAY_DEGREE 0",
                *(MANY_VARIABLES if len(start) > 20 else ()),
            ],
        )
    finally:  # it takes Ctrl-C for itself and keeps it
        signal.signal(signal.SIGINT, pressed)


def _optuna(budget: Budget, seed: int) -> None:
    import optuna

    optuna.logging.set_verbosity(logging.CRITICAL)
    start = budget.case.start
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.enqueue_trial({str(i): float(x) for i, x in enumerate(start)})
    function = _exact(budget)

    def objective(trial: Any) -> float:
        point = [
            trial.suggest_float(str(i), x - REACH, x + REACH)
            for i, x in enumerate(start.tolist())
        ]
        return function(point)

    study.optimize(objective, n_trials=None)


PEERS: dict[str, Peer] = {
    "dszog": Peer(_dszog, "dszog", True),
    "dszog, told the tolerance": Peer(partial(_dszog, is_told=True), "dszog", True),
    "dszog, loss_batch=128": Peer(_more_losses, "dszog", True),
    "dszog, uniform weights": Peer(
        partial(_dszog, distribution="uniform"), "dszog", True
    ),
    "scipy COBYLA": Peer(_scipy("COBYLA", _as_dictionary, maxiter=10**6)),
    "scipy COBYQA": Peer(_scipy("COBYQA", _as_object)),
    "scipy SLSQP": Peer(_scipy("SLSQP", _as_dictionary, maxiter=10**6)),
    "scipy trust-constr": Peer(_scipy("trust-constr", _as_object, maxiter=10**6)),
    "scipy L-BFGS-B, penalty": Peer(_lbfgsb),
    "scipy COBYQA, penalty": Peer(  # by models of an exact penalty, as BOBYQA would
        lambda budget, _: minimize(_exact(budget), budget.case.start, method="COBYQA")
    ),
    "cma, penalty": Peer(_cma_penalty, "cma", True),
    "cma, augmented Lagrangian": Peer(_cma_lagrangian, "cma", True),
    "nevergrad NGOpt, penalty": Peer(_nevergrad, "nevergrad", True),
    "NOMAD, worst constraint": Peer(_nomad, "PyNomad", True),
    "optuna TPE, penalty": Peer(_optuna, "optuna", True),
}


@contextlib.contextmanager
def quietly() -> Any:
    """Keep what solvers print and warn to themselves."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        yield
