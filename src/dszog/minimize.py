"""`minimize`: the front door that looks like SciPy's."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import fields
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from scipy.optimize import OptimizeResult

from dszog._arrays import FloatArray, IntArray
from dszog._random import fresh_seed
from dszog._validation import (
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_nonnegative,
    check_positive_number,
    check_seed,
    check_vector,
    check_weights,
    did_you_mean,
    shown,
)
from dszog._version import VERSION
from dszog.checkpoint import Store
from dszog.constraints import Simulator
from dszog.errors import InputError, InputTypeError
from dszog.evaluators import check_evaluator, open_evaluator
from dszog.failures import POLICIES, Policy
from dszog.feasible_set import check_policy, with_feasible_set
from dszog.fingerprint import fingerprint, surroundings
from dszog.methods import METHODS, Method
from dszog.problem import Losses, Problem
from dszog.progress import show_progress
from dszog.run import Callback, Limits
from dszog.snapshot import Contract, saved_seed
from dszog.solver import OnInterrupt, Solver

INTERRUPTS: tuple[str, ...] = get_args(OnInterrupt)
OnSaveFailure: TypeAlias = Literal["raise", "warn"]
SAVE_FAILURES: tuple[str, ...] = get_args(OnSaveFailure)
DEFAULT_ITERATIONS = 2000
ELSEWHERE = {  # what some arguments are called in SciPy
    "maxiter": "max_iterations",
    "max_iter": "max_iterations",
    "maxfev": "max_queries",
    "maxfun": "max_queries",
    "disp": "progress",
    "tol": "constraint_tol",
}


def minimize(
    fun: Problem | Losses | Simulator | Callable[[FloatArray], float],
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
    x_scale: Any = 1.0,
    weights: tuple[IntArray, FloatArray] | None = None,
    seed: int | None = None,
    evaluator: Any = "serial",
    timeout: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    resume: bool = False,
    on_failure: Policy = "raise",
    on_interrupt: OnInterrupt = "return",
    on_save_failure: OnSaveFailure = "raise",
    **unknown: Any,
) -> OptimizeResult:
    r"""Minimise a function under very many constraints, by evaluations alone.

    Parameters
    ----------
    fun : callable, Losses, Simulator or Problem
        ``fun(x) -> float``; or :class:`dszog.Losses`, whose mean is minimised; or a
        :class:`dszog.Simulator`, which brings its limits; or a whole
        :class:`dszog.Problem`, which brings its own constraints and bounds.
    x0 : array_like of shape (dim,)
        Where to start. May be left out for a `Problem`.
    constraints : Constraints, SciPy constraint, or a sequence of these
        A :class:`dszog.Constraints` holds where its value is at most 0. SciPy's
        ``LinearConstraint``, ``NonlinearConstraint`` and dictionaries mean what they
        mean there; an equality becomes two inequalities, kept to `constraint_tol`.
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
    x_scale : float or array_like of shape (dim,)
        The typical size of the variables; methods work with ``x / x_scale``.
    weights : (indices, weights), optional
        Weights over the constraints to start from: ``result.weights`` of an earlier
        run, with ``x0=result.x``.
    seed : int, optional
        Same seed, same run, bit for bit. Drawn and reported if not given.
    evaluator : str, workers or concurrent.futures.Executor
        Who calls the functions: ``"serial"``, ``"threads"``, ``"processes"``,
        ``"dask"`` or ``"ray"``; or an instance such as
        ``dszog.evaluators.Processes(4)`` or ``dszog.evaluators.Dask(client)``; or any
        executor. The result is the same to the bit. See ``docs/scaling_out.md``.
    timeout : float, optional
        Seconds after which a piece of work is given up and its values count as failed.
        For processes, Dask and Ray, whose workers can be ended.
    callback : callable, optional
        Called with a :class:`dszog.Progress` after each iteration; ``StopIteration``
        ends the run.
    progress : bool
        Show a progress bar, or lines where there is no terminal.
    checkpoint : path, optional
        A folder to save the run to, every ten seconds and at its end; replies are
        written down as they come, so that at most the batch in flight is ever lost. It
        has to be empty, or there is `resume`. See ``docs/faults.md``.
    resume : bool
        Go on with the run in `checkpoint`, bit for bit as if it had not been
        interrupted; begin one if the folder is empty. All other arguments have to be
        the same, but the budgets may be: with others the run goes on to the new ones.
    on_failure : {"raise", "resample", "penalise"}
        What to do when a function raises or returns something that is not a finite
        number. ``"raise"`` stops with an error that says where. ``"resample"`` leaves
        the direction or the index out: the estimate is then conditional on success.
        ``"penalise"`` gives a perturbed point a bad value instead. Either way a failure
        is never taken for a satisfied constraint, and ``result.failures`` counts.
    on_interrupt : {"return", "raise"}
        On Ctrl-C, return the best point so far, or raise ``KeyboardInterrupt``; a
        second one raises in any case. With a `checkpoint` the run can be resumed.
    on_save_failure : {"raise", "warn"}
        When `checkpoint` cannot be written to, a full disk perhaps: stop with an error,
        or warn, count it in ``costs.n_failed_saves`` and try again later.

    Returns
    -------
    scipy.optimize.OptimizeResult
        ``success`` means: the run went as planned and no checked constraint is
        violated by more than `constraint_tol`. It does not mean that `x` is optimal:
        ``certificate`` says how stationary it is.

        ``x``, the best of the checked candidates (last iterate, average of the
        iterates, start) by ``fun + penalty * maxcv**2``; ``fun`` and ``maxcv``, its
        freshly evaluated objective and largest violation; ``success``, ``status`` and
        ``message``; ``nit``, ``nfev`` (losses), ``ncev`` (constraints); ``seed``,
        ``history``, ``weights`` (the touched constraints and their weights),
        ``certificate`` (the evidence: print it), ``multipliers`` (indices and values),
        ``failures``, ``method``, ``costs`` (queries, subproblems, where the time went),
        ``digest`` (the same only if every iterate was the same, bit for bit).

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
    _refuse_unknown(unknown)
    chosen, fixed = _as_method(method, options)
    has_set = getattr(chosen, "domain", None) is not None
    problem = _as_problem(fun, x0, constraints, bounds, x_scale, has_set)
    chosen, notes = with_feasible_set(problem, chosen)
    limits = _check_limits(max_iterations, max_queries, max_time)
    tolerance = check_nonnegative("minimize", "constraint_tol", constraint_tol)
    seed = None if seed is None else check_seed("minimize", seed)
    check_choice("minimize", "on_failure", on_failure, POLICIES)
    check_policy(chosen, on_failure)
    if weights is not None:
        weights = check_weights("minimize", weights, problem.size.n_constraints)
        _check_takes_weights(chosen)
    check_evaluator("minimize", evaluator, timeout)
    check_flag("minimize", "progress", progress)
    check_choice("minimize", "on_interrupt", on_interrupt, INTERRUPTS)
    check_flag("minimize", "resume", resume)
    check_choice("minimize", "on_save_failure", on_save_failure, SAVE_FAILURES)
    folder = _check_folder(checkpoint, resume, on_save_failure)
    if callback is not None:
        check_callable("minimize", "callback", callback, "callback(progress)", 1)
    callbacks = [] if callback is None else [callback]

    contract = None
    if folder is not None:
        contract = Contract(
            method=chosen,
            seed=seed,
            fingerprint=fingerprint(
                problem,
                chosen,
                constraint_tol=tolerance,
                on_failure=on_failure,
                weights=weights,
            ),
            surroundings=surroundings(VERSION),
        )
    with ExitStack() as opened:
        store = None
        if folder is not None:
            warns = on_save_failure == "warn"
            store = Store(folder, resume=resume, library=VERSION, warns=warns)
            opened.callback(store.close)
            seed = saved_seed(store) if seed is None else seed
        answer = opened.enter_context(
            open_evaluator("minimize", evaluator, problem, timeout)
        )
        shown_to = opened.enter_context(show_progress(progress, limits))
        return Solver(
            problem,
            chosen,
            fixed,
            limits,
            tolerance,
            fresh_seed() if seed is None else seed,
            answer,
            [*shown_to, *callbacks],
            on_failure,
            weights,
            notes,
            store,
            contract,
            on_interrupt,
        ).solve()


# ------------------------------------------------------------------- reading arguments


def _refuse_unknown(unknown: dict[str, Any]) -> None:
    known = [
        name for name in inspect.signature(minimize).parameters if name != "unknown"
    ]
    for name in unknown:
        hint = did_you_mean(ELSEWHERE.get(name, name), known)
        if any(name in _field_names(kind) for kind in METHODS.values()):
            hint = f" It is a field of the method: options={{{name!r}: ...}}."
        raise InputTypeError(
            f"minimize: there is no argument {name!r}.{hint or ' See help(minimize).'}"
        )


def _field_names(method: Any) -> list[str]:
    return [field.name for field in fields(method)]


def _as_problem(
    fun: Any, x0: Any, constraints: Any, bounds: Any, x_scale: Any, has_set: bool
) -> Problem:
    if isinstance(fun, Problem):
        scale_given = not (np.isscalar(x_scale) and x_scale == 1.0)
        if not _is_empty(constraints) or bounds is not None or scale_given:
            raise InputError(
                "minimize: a Problem brings its own constraints, bounds and x_scale, "
                "got others beside it. Put them into the Problem."
            )
        return fun if x0 is None else fun.starting_at(x0)
    if x0 is None:
        raise InputTypeError(
            "minimize: `x0` is missing, got a function of unknown dimension. Pass a "
            "start, for example numpy.zeros(dim)."
        )
    start = check_vector("minimize", "x0", x0)
    return Problem(
        fun,
        constraints,
        len(start),
        bounds=bounds,
        x0=start,
        x_scale=x_scale,
        unconstrained=has_set,
    )


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
        if isinstance(method, type) or not all(
            hasattr(method, name) for name in ("init", "ask", "tell")
        ):
            raise InputTypeError(
                f"minimize: `method` must be a name or a method, got {shown(method)}. "
                f"Names: {', '.join(METHODS)}; or an instance such as dszog.DSZOG()."
            )
        if options:
            raise InputError(
                f"minimize: `options` go with a method given by name, got "
                f"{shown(options)} beside {type(method).__name__}. Set them there."
            )
        return method, frozenset(_field_names(method))
    method = method.lower()
    check_choice("minimize", "method", method, METHODS)
    kind: Any = METHODS[method]
    names = _field_names(kind)
    for name in options:
        if name not in names:
            raise InputError(
                f"minimize: method {method!r} has no option {name!r}."
                f"{did_you_mean(name, names) or ' Options: ' + ', '.join(names) + '.'}"
            )
    return kind(**options), frozenset(options)


def _check_takes_weights(method: Method) -> None:
    if "weights" not in inspect.signature(method.init).parameters:
        raise InputError(
            f"minimize: `weights` are for methods that weigh constraints, got "
            f"{type(method).__name__}. Leave them out."
        )


def _check_folder(checkpoint: Any, resume: bool, on_failure: str) -> Path | None:
    if checkpoint is None:
        if on_failure != "raise":
            raise InputError(
                "minimize: `on_save_failure` needs the folder of the checkpoints, got "
                "none. Give it: checkpoint='folder'; or leave the other out."
            )
        if resume:
            raise InputError(
                "minimize: `resume` needs the folder of the checkpoints, got none. "
                "Give it: checkpoint='folder'."
            )
        return None
    if not isinstance(checkpoint, (str, PathLike)) or not str(checkpoint):
        raise InputTypeError(
            f"minimize: `checkpoint` must be the path of a folder, got "
            f"{shown(checkpoint)}. For example checkpoint='run-1'."
        )
    if "\0" in str(checkpoint):
        raise InputError(
            f"minimize: `checkpoint` must be the path of a folder, got "
            f"{shown(checkpoint)}. Take the zero byte out of it."
        )
    return Path(checkpoint)


def _check_limits(iterations: Any, queries: Any, time: Any) -> Limits:
    if iterations is None and queries is None and time is None:
        iterations = DEFAULT_ITERATIONS
    if iterations is not None:
        iterations = check_count("minimize", "max_iterations", iterations)
    if queries is not None:
        queries = check_count("minimize", "max_queries", queries)
    if time is not None:
        time = check_positive_number("minimize", "max_time", time)
    return Limits(iterations=iterations, queries=queries, time=time)
