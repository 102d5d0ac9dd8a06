"""`minimize`: the front door that looks like SciPy's."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from scipy.optimize import OptimizeResult

from dszog._arrays import FloatArray
from dszog._random import fresh_seed
from dszog._validation import (
    check_callable,
    check_choice,
    check_count,
    check_number,
    check_vector,
    did_you_mean,
    shown,
)
from dszog.errors import InputError, InputTypeError
from dszog.evaluators import EVALUATORS
from dszog.methods import METHODS, Method
from dszog.problem import Losses, Problem
from dszog.progress import show_progress
from dszog.run import Callback, Limits
from dszog.solver import Solver

DEFAULT_ITERATIONS = 2000


def minimize(
    fun: Problem | Losses | Callable[[FloatArray], float],
    x0: Any = None,
    constraints: Any = (),
    *,
    bounds: Any = None,
    method: str | Method = "dszog",
    options: dict[str, Any] | None = None,
    max_iterations: int | None = None,
    max_queries: int | None = None,
    max_time: float | None = None,
    constraint_tol: float = 1e-2,
    seed: int | None = None,
    evaluator: str = "serial",
    callback: Callback | None = None,
    progress: bool = False,
) -> OptimizeResult:
    r"""Minimise a function under very many constraints, by evaluations alone.

    Parameters
    ----------
    fun : callable, Losses or Problem
        ``fun(x) -> float``; or :class:`dszog.Losses`, whose mean is minimised; or a
        whole :class:`dszog.Problem`, which brings its own constraints and bounds.
    x0 : array_like of shape (dim,)
        Where to start. May be left out for a `Problem`.
    constraints : Constraints
        Each holds where its value is at most 0.
    bounds : sequence of (low, high) or scipy.optimize.Bounds, optional
        Kept at every point that is evaluated.
    method : str or Method
        A name from :data:`dszog.METHODS`, or an instance such as
        ``dszog.DSZOG(penalty=10.0)``.
    options : dict, optional
        Fields of the method by name, for a method given by name.
    max_iterations, max_queries, max_time : optional
        Budgets: iterations, values of losses and constraints in all, seconds. None is
        exceeded; the check of the result is inside. Without any, 2000 iterations.
    constraint_tol : float
        How large a violation may remain for the result to count as a success.
    seed : int, optional
        Same seed, same run, bit for bit. Drawn and reported if not given.
    evaluator : str
        A name from :data:`dszog.EVALUATORS`.
    callback : callable, optional
        Called with a :class:`dszog.Progress` after each iteration; ``StopIteration``
        ends the run.
    progress : bool
        Show a progress bar, or lines where there is no terminal.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``x``, the best of the checked candidates (last iterate, average of the
        iterates, start) by ``fun + penalty * maxcv**2``; ``fun`` and ``maxcv``, its
        freshly evaluated objective and largest violation; ``success``, ``status`` and
        ``message``; ``nit``, ``nfev`` (losses), ``ncev`` (constraints); ``seed``,
        ``history``, ``weights`` (the touched constraints and their weights),
        ``certificate`` (from what `fun` and `maxcv` are known), ``method``.

    Examples
    --------
    The point nearest to (2, 2) that satisfies a million half-planes, which together
    are the unit disc:

    >>> import numpy as np
    >>> import dszog
    >>> angles = np.linspace(0, 2 * np.pi, 1_000_000)
    >>> discs = dszog.Constraints(
    ...     lambda points, j: points @ [np.cos(angles[j]), np.sin(angles[j])] - 1.0,
    ...     m=1_000_000,
    ... )
    >>> result = dszog.minimize(
    ...     lambda x: np.sum((x - 2.0) ** 2), np.zeros(2), discs, seed=0
    ... )
    >>> result.success
    True
    >>> bool(np.abs(result.x - np.sqrt(0.5)).max() < 0.02)
    True
    """
    problem = _as_problem(fun, x0, constraints, bounds)
    chosen, fixed = _as_method(method, options)
    limits = _check_limits(max_iterations, max_queries, max_time)
    tolerance = _check_tolerance(constraint_tol)
    seed = fresh_seed() if seed is None else _check_seed(seed)
    check_choice("minimize", "evaluator", evaluator, EVALUATORS)
    if callback is not None:
        check_callable("minimize", "callback", callback, "callback(progress)")
    callbacks = [] if callback is None else [callback]

    answer = EVALUATORS[evaluator](problem)
    try:
        with show_progress(progress, limits) as shown_to:
            return Solver(
                problem,
                chosen,
                fixed,
                limits,
                tolerance,
                seed,
                answer,
                [*shown_to, *callbacks],
            ).solve()
    finally:
        answer.close()


# ------------------------------------------------------------------- reading arguments


def _as_problem(fun: Any, x0: Any, constraints: Any, bounds: Any) -> Problem:
    if isinstance(fun, Problem):
        if not _is_empty(constraints) or bounds is not None:
            raise InputError(
                "minimize: a Problem brings its own constraints and bounds, got "
                "others beside it. Put them into the Problem."
            )
        if x0 is None:
            return fun
        return Problem(
            fun.losses,
            fun.constraints,
            fun.dim,
            bounds=list(zip(fun.lower, fun.upper, strict=True)),
            x0=check_vector("minimize", "x0", x0),
        )
    if x0 is None:
        raise InputTypeError(
            "minimize: `x0` is missing, got a function of unknown dimension. Pass a "
            "start, for example numpy.zeros(dim)."
        )
    start = check_vector("minimize", "x0", x0)
    return Problem(fun, constraints, len(start), bounds=bounds, x0=start)


def _is_empty(constraints: Any) -> bool:
    return constraints is None or (
        isinstance(constraints, (tuple, list)) and not constraints
    )


def _as_method(method: Any, options: Any) -> tuple[Method, frozenset[str]]:
    """Return the method, and the names of the fields the caller set."""
    options = {} if options is None else options
    if not isinstance(options, dict):
        raise InputTypeError(
            f"minimize: `options` must be a dict, got {shown(options)}. For example "
            "options={'penalty': 10.0}."
        )
    if not isinstance(method, str):
        if not all(hasattr(method, name) for name in ("init", "ask", "tell")):
            raise InputTypeError(
                f"minimize: `method` must be a name or a method, got {shown(method)}. "
                f"Names: {', '.join(METHODS)}; or an instance such as dszog.DSZOG()."
            )
        if options:
            raise InputError(
                f"minimize: `options` go with a method given by name, got "
                f"{shown(options)} beside {type(method).__name__}. Set them there."
            )
        return method, frozenset(field.name for field in fields(method))
    check_choice("minimize", "method", method, METHODS)
    kind: Any = METHODS[method]
    names = [field.name for field in fields(kind)]
    for name in options:
        if name not in names:
            raise InputError(
                f"minimize: method {method!r} has no option {name!r}."
                f"{did_you_mean(name, names) or ' Options: ' + ', '.join(names) + '.'}"
            )
    return kind(**options), frozenset(options)


def _check_limits(iterations: Any, queries: Any, time: Any) -> Limits:
    if iterations is None and queries is None and time is None:
        iterations = DEFAULT_ITERATIONS
    if iterations is not None:
        iterations = check_count("minimize", "max_iterations", iterations)
    if queries is not None:
        queries = check_count("minimize", "max_queries", queries)
    if time is not None:
        time = check_number("minimize", "max_time", time)
        if not time > 0:
            raise InputError(
                f"minimize: `max_time` must be positive, got {time}. Give seconds."
            )
    return Limits(iterations=iterations, queries=queries, time=time)


def _check_tolerance(tolerance: Any) -> float:
    value = check_number("minimize", "constraint_tol", tolerance)
    if not (math.isfinite(value) and value >= 0):
        raise InputError(
            f"minimize: `constraint_tol` must be at least 0, got {value}. Try 1e-2."
        )
    return value


def _check_seed(seed: Any) -> int:
    value = check_count(
        "minimize", "seed", seed, least=0, advice="Pass an int such as 0, or None."
    )
    if value >= 2**64:
        raise InputError(
            f"minimize: `seed` must be below 2**64, got {value}. Pass a smaller int."
        )
    return value
