"""`minimize`: the front door that looks like SciPy's."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import fields, is_dataclass, replace
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeAlias, get_args

import numpy as np

from dszog._log import LOGGER
from dszog.contract.arrays import FloatArray, IntArray, handed_out
from dszog.contract.hints import (
    OF_SCIPY,
    RENAMED,
    about_argument,
    about_method,
    about_option,
)
from dszog.contract.interrupts import Interrupts
from dszog.contract.validation import (
    check_callable,
    check_choice,
    check_count,
    check_flag,
    check_nonnegative,
    check_positive_number,
    check_seed,
    check_tag,
    check_vector,
    check_weights,
    did_you_mean,
    refused,
    shown,
)
from dszog.errors import (
    CheckpointWriteError,
    EvaluationError,
    InputError,
    InputTypeError,
)
from dszog.maths.random_stream import fresh_seed
from dszog.methods import METHODS, Method
from dszog.methods.auto import AUTO, Choice, first_choice, suited
from dszog.problem import Asking, Losses, Problem
from dszog.problem.constraints import Simulator
from dszog.run.failures import POLICIES, OnFailure
from dszog.run.feasible_set import check_policy, with_feasible_set
from dszog.run.history import Callback, Progress
from dszog.run.meter import Limits
from dszog.run.result import Result
from dszog.run.run import Job, OnInterrupt
from dszog.run.scipy_call import (
    BY_NAME,
    WITH_STATE,
    as_called,
    in_our_words,
    is_scipys,
    objective,
    parameters,
)
from dszog.run.solver import Solver
from dszog.save.checkpoints import Checkpoints, saved_method, saved_seed
from dszog.save.fingerprint import fingerprint
from dszog.save.sizing import Sizing
from dszog.save.store import Store
from dszog.show.progress import line, show_progress
from dszog.status import Status
from dszog.workers import check_evaluator, open_evaluator

INTERRUPTS: tuple[str, ...] = get_args(OnInterrupt)
OnSaveFailure: TypeAlias = Literal["raise", "warn"]
SAVE_FAILURES: tuple[str, ...] = get_args(OnSaveFailure)
DEFAULT_ITERATIONS = 2000
NEEDED = ("init", "ask", "tell", "planned", "least_queries", "new_round", "weights")
KINDS: list[Any] = list(METHODS.values())
OPTIONS = {field.name for kind in KINDS for field in fields(kind)}  # of any method
P = ParamSpec("P")


def _with_hints(function: Callable[P, Result]) -> Callable[P, Result]:
    """Take SciPy's way of calling; answer what is unknown with what may be meant."""

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> Result:
        ours, words = in_our_words(given, named)
        known = _argument_names()
        if wrong := [name for name in words if name not in known]:
            said = [f"there is no argument {name!r}.{_hint(name)}" for name in wrong]
            said += _about_options(words.get("options"))
            method = words.get("method")
            if isinstance(method, str) and not is_scipys(method):
                hint = about_method(method)
                said += [f"there is no method {method!r}.{hint}"] if hint else []
            raise InputTypeError(f"minimize: {' And '.join(said)}")
        return function(*ours, **words)

    return call


def _about_options(options: Any) -> list[str]:
    """Return a sentence on each option that no method has."""
    wrong = [name for name in options or () if name not in OPTIONS]
    hints = [about_option(name, OPTIONS, _argument_names()) for name in wrong]
    return [f"there is no option {n!r}.{h}" for n, h in zip(wrong, hints, strict=True)]


def _hint(name: str) -> str:
    if name in OPTIONS and name not in RENAMED:
        return f" It is a field of the method: options={{{name!r}: ...}}."
    return about_argument(name, _argument_names()) or " See help(minimize)."


def _argument_names() -> list[str]:
    return list(inspect.signature(minimize).parameters)


@_with_hints
def minimize(
    fun: Problem | Losses | Simulator | Callable[..., Any],
    x0: Any = None,
    constraints: Any = (),
    *,
    args: Any = (),
    jac: Any = None,
    bounds: Any = None,
    method: str | Method = "auto",
    options: dict[str, Any] | None = None,
    max_iterations: int | float | None = None,
    max_queries: int | float | None = None,
    max_time: float | None = None,
    constraint_tol: float = 1e-2,
    tol: float | None = None,
    x_scale: Any = 1.0,
    names: Sequence[str] | None = None,
    weights: tuple[IntArray, FloatArray] | None = None,
    seed: int | None = None,
    evaluator: Any = "serial",
    timeout: float | None = None,
    callback: Callback | Sequence[Callback] | None = None,
    progress: bool = False,
    checkpoint: str | PathLike[str] | None = None,
    resume: bool = False,
    tag: str = "",
    on_failure: OnFailure = "raise",
    on_interrupt: OnInterrupt = "return",
    on_save_failure: OnSaveFailure = "raise",
) -> Result:
    r"""Minimise a function under very many constraints, by evaluations alone.

    Parameters
    ----------
    fun : callable, Losses, Simulator or Problem
        ``fun(x, *args) -> float``; or :class:`dszog.Losses`, whose mean is minimised;
        or a :class:`dszog.Simulator`, which brings its limits; or a whole
        :class:`dszog.Problem`, which brings its own constraints and bounds.
    x0 : array_like of shape (dim,)
        Where to start. May be left out for a `Problem`.
    constraints : Constraints, SciPy constraint, or a sequence of these
        A :class:`dszog.Constraints` holds where its value is at most 0. SciPy's
        ``LinearConstraint``, ``NonlinearConstraint`` and dictionaries mean what they
        mean there; an equality becomes two inequalities, kept to `constraint_tol`.
    args : tuple
        More arguments of `fun`, and of `jac`: ``fun(x, *args)``.
    jac : callable or True, optional
        The gradient of `fun`, ``jac(x, *args)``; True if `fun` returns both, value and
        gradient. Without it, or with SciPy's ``"2-point"``, values are enough.
    bounds : sequence of (low, high) or scipy.optimize.Bounds, optional
        Kept at every point that is evaluated.
    method : str or Method
        ``"auto"``: ``"sampled_sqp"`` where variables and budget allow it, else
        ``"dszog"``; the message says which and why. Or a name from
        :data:`dszog.METHODS`, whose fields without `options` may be changed during the
        run; or an instance such as ``dszog.DSZOG(penalty=10.0)``, which stays as it is.
        ``"sampled_sqp"`` stands in for SciPy's ``"SLSQP"``, ``"COBYQA"``, ``"COBYLA"``
        and ``"trust-constr"``.
    options : dict, optional
        Fields of the method by name, for a method given by name. SciPy's ``maxiter``,
        ``disp``, ``ftol``, ``gtol`` and ``catol`` are `max_iterations`, `progress`,
        `tol`, `tol` and `constraint_tol`.
    max_iterations, max_queries, max_time : optional
        Budgets: iterations, values of losses and constraints in all, seconds. Counts
        are whole numbers, and 1e6 is one. None is exceeded; the check of the result is
        inside. Without any, 2000 iterations.
    constraint_tol : float
        How large a violation may remain for the result to count as a success.
    tol : float, optional
        The relative size of optimality conditions at which a run has converged and
        stops: 1e-6 if not given. An option of ``"sampled_sqp"``, the only method that
        stops by itself.
    x_scale : float or array_like of shape (dim,)
        The typical size of the variables; methods work with ``x / x_scale``.
    names : sequence of str, optional
        The names of the variables, used wherever they are shown. Constraints get
        theirs by ``constraints.named(...)``.
    weights : (indices, weights), optional
        Weights over the constraints to start from: ``result.weights`` of an earlier
        run, with ``x0=result.x``.
    seed : int, optional
        Same seed, same run, bit for bit. Drawn and reported if not given.
    evaluator : str or workers
        Who calls the functions: ``"serial"``, ``"threads"``, ``"processes"``,
        ``"dask"`` or ``"ray"``; or an instance such as
        ``dszog.evaluators.Processes(4)`` or ``dszog.evaluators.Dask(client)``. The
        result is the same to the bit. See ``docs/scaling_out.md``.
    timeout : float, optional
        Seconds after which a piece of work is given up and its values count as failed.
        For processes, Dask and Ray, whose workers can be ended.
    callback : callable or sequence of callables, optional
        Called with a :class:`dszog.Progress` at least once an iteration;
        ``StopIteration``, or True returned, ends the run. ``callback(xk)``,
        ``callback(xk, state)`` and ``callback(intermediate_result)`` are given what
        SciPy gives them.
    progress : bool
        Show how far the run is: on a terminal, in a notebook, or as lines in a log. See
        ``docs/watching.md``, also for the logger ``"dszog"``.
    checkpoint : path, optional
        A folder to save the run to, every ten seconds and at its end; replies are
        written down as they come, so that at most the batch in flight is ever lost. It
        has to be empty, or there is `resume`. See ``docs/faults.md``.
    resume : bool
        Go on with the run in `checkpoint`, bit for bit as if it had not been
        interrupted; begin one if the folder is empty. All other arguments have to be
        the same, but the budgets may be: with others the run goes on to the new ones.
    tag : str
        A name for the functions, such as a version of the data, which `resume` cannot
        compare: a run with another tag is refused. A `Problem` may bring its own.
    on_failure : {"raise", "resample", "penalise"}
        What to do when a function raises or returns something that is not a finite
        number. ``"raise"`` stops with an error that says where; only a step of the
        default method to ``inf`` is shortened first. ``"resample"`` leaves
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
    Result
        A :class:`scipy.optimize.OptimizeResult` that prints its verdict first, with
        ``plot()`` and ``to_frame()``.

        ``success`` means: the run went as planned, no checked constraint is violated by
        more than `constraint_tol`, and `x` is shown to be near a minimum: by
        ``"sampled_sqp"``, which knows when it has converged, and for other methods by
        the gradients at `x`. ``maxcv <= 0.01`` asks for feasibility alone.

        ``x``, the best of the checked candidates (last iterate, average of the
        iterates, start) by ``fun + penalty * maxcv**2``; ``fun`` and ``maxcv``, its
        freshly evaluated objective and largest violation; ``success``, ``status`` and
        ``message``; ``nit``, ``nfev`` (losses), ``ncev`` (constraints), ``njev``
        (gradients of losses); ``jac`` (the objective's gradient at `x`, or an estimate
        of it, where the method knows it; else None); ``seed``,
        ``history``, ``weights`` (the touched constraints and their weights),
        ``certificate`` (the evidence: print it), ``multipliers`` (indices and values),
        ``noise`` (standard deviations of single ``losses`` and ``constraints``, where
        the method estimates them; else None),
        ``failures``, ``method``, ``costs`` (queries, subproblems, where the time went),
        ``digest`` (the same only if every iterate was the same, bit for bit),
        ``names`` (of constraints, by index) and ``variables`` (names), where given,
        ``constraint_tol`` (as given), ``is_start`` (whether `x` is the start, which was
        not improved on).

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
    if tol is not None:
        options = _with_tol(tol, method, options)
    choice = _first_choice(method, options, weights)
    chosen, fixed = _as_method(method, options, choice)
    limits = _check_limits(max_iterations, max_queries, max_time)
    tolerance = check_nonnegative("minimize", "constraint_tol", constraint_tol)
    seed = None if seed is None else check_seed("minimize", seed)
    check_choice("minimize", "on_failure", on_failure, POLICIES)
    check_policy(chosen, on_failure)
    takes_weights = "weights" in inspect.signature(chosen.init).parameters
    if weights is not None and not takes_weights:
        raise InputError(
            f"minimize: `weights` are for methods that weigh constraints, got "
            f"{type(chosen).__name__}. Leave them out."
        )
    check_evaluator("minimize", evaluator, timeout)
    check_flag("minimize", "progress", progress)
    check_choice("minimize", "on_interrupt", on_interrupt, INTERRUPTS)
    check_flag("minimize", "resume", resume)
    check_choice("minimize", "on_save_failure", on_save_failure, SAVE_FAILURES)
    check_tag("minimize", tag)
    folder = _check_folder(checkpoint, resume, on_save_failure, tag)
    callbacks = _as_callbacks(callback, method)
    fun = objective(fun, args, jac)

    interrupts = Interrupts()
    with interrupts, ExitStack() as opened:
        store = None
        if folder is not None:  # before any call, so that none is forgotten
            warns = on_save_failure == "warn"
            with interrupts.held():
                store = Store(folder, resume=resume, warns=warns)
                opened.callback(store.close)
        sizing = Sizing(store, limits.queries)
        problem = _as_problem(fun, x0, constraints, bounds, x_scale, tag, sizing)
        if names is not None:
            problem = problem.with_names(names)
        if choice is not None:
            choice = _for_problem(choice, problem, limits, store)
            chosen, fixed = _as_method(method, options, choice)
        said = ""
        if isinstance(method, str):
            length = float(np.linalg.norm(problem.scaled(problem.x0)))
            chosen, said = suited(
                chosen, fixed, problem.size, length, limits.iterations, limits.queries
            )
        notes = []
        if not problem.has_start:
            moved = ", moved into the bounds" if problem.x0.any() else ""
            notes.append(f"No x0 was given: the run began at the origin{moved}.")
        chosen, of_set = with_feasible_set(problem, chosen)
        notes += [*of_set, said, "" if choice is None else choice.sentence]
        if weights is not None:
            weights = check_weights("minimize", weights, problem.size.n_constraints)
        saver = None
        if store is not None:
            saver = Checkpoints(
                store=store,
                method=chosen,
                seed=seed,
                fingerprint=fingerprint(
                    problem,
                    chosen,
                    constraint_tol=tolerance,
                    on_failure=on_failure,
                    weights=weights,
                ),
                names_of=problem.names_of,
                n_noted=sizing.n_noted,
            )
            seed = saved_seed(store) if seed is None else seed
        answer = opened.enter_context(
            open_evaluator("minimize", evaluator, problem, timeout)
        )
        if saver is not None:
            saver.pool = getattr(answer, "pool", None)
        displays = [opened.enter_context(show_progress(limits))] if progress else []
        job = Job(
            problem=problem,
            method=chosen,
            fixed=fixed,
            limits=limits,
            constraint_tol=tolerance,
            seed=fresh_seed() if seed is None else seed,
            answer=answer,
            callbacks=[*displays, *_in_user_variables(callbacks, problem)],
            on_failure=on_failure,
            weights=weights,
            notes=tuple(filter(None, notes)),
            saver=saver,
            on_interrupt=on_interrupt,
            interrupts=interrupts,
        )
        try:
            result = Solver(job).solve()
        except (EvaluationError, CheckpointWriteError) as error:
            if interrupts.interrupted() and on_interrupt == "raise":
                raise KeyboardInterrupt from error
            if error.result is not None:
                if saver is not None:
                    saver.end(error.result, str(error))
                for display in displays:
                    display.finish(error.result)
            raise
        if saver is not None:
            with interrupts.held():
                saver.end(result)
        _tell_interrupt(interrupts, result, on_interrupt)
        for display in displays:
            display.finish(result)
    _tell_interrupt(interrupts, result, on_interrupt)  # one while all was closed
    return result


# ------------------------------------------------------------------- reading arguments


def _as_problem(
    fun: Any,
    x0: Any,
    constraints: Any,
    bounds: Any,
    x_scale: Any,
    tag: str,
    sizing: Sizing,
) -> Problem:
    if isinstance(fun, Problem):
        scale_given = not (np.isscalar(x_scale) and x_scale == 1.0)
        are_empty = isinstance(constraints, tuple | list) and not constraints
        are_given = constraints is not None and not are_empty
        if are_given or bounds is not None or scale_given:
            raise InputError(
                "minimize: a Problem brings its own constraints, bounds and x_scale, "
                "got others beside it. Put them into the Problem."
            )
        if tag and fun.tag and tag != fun.tag:
            raise InputError(
                f"minimize: the Problem has the tag {shown(fun.tag)}, got "
                f"{shown(tag)} beside it. Give the tag in one place."
            )
        problem = fun if x0 is None else fun.starting_at(x0)
        problem = problem.tagged(tag) if tag else problem
        sizing.count(problem.n_calls_made)
        return problem
    if x0 is None:
        raise InputTypeError(
            "minimize: `x0` is missing, got a function of unknown dimension. Pass a "
            "start, for example numpy.zeros(dim)."
        )
    if callable(x0):
        cure = "The order is fun, x0, constraints: were they swapped?"
        raise refused("minimize", "x0", "hold numbers", x0, cure, InputTypeError)
    start = check_vector("minimize", "x0", [x0] if np.isscalar(x0) else x0)
    return Problem(
        fun,
        Asking(constraints, sizing),
        len(start),
        bounds=bounds,
        x0=start,
        x_scale=x_scale,
        unconstrained=True,
        tag=tag,
    )


def _as_callbacks(callback: Any, method: Any) -> list[Callback]:
    if callback is None:
        return []
    is_list = isinstance(callback, (list, tuple)) and all(map(callable, callback))
    callbacks = list(callback) if is_list else [callback]
    for one in callbacks:
        names = parameters(one)
        has_state = names == WITH_STATE or (is_scipys(method) and len(names) == 2)
        n_arguments = None if names == BY_NAME else 1 + has_state
        check_callable("minimize", "callback", one, "callback(progress)", n_arguments)
    return [as_called(one, method) for one in callbacks]


def _in_user_variables(callbacks: list[Callback], problem: Problem) -> list[Callback]:
    if LOGGER.isEnabledFor(logging.DEBUG):
        callbacks = [*callbacks, lambda progress: LOGGER.debug("%s", line(progress))]
    if not callbacks or (problem.x_scale == 1.0).all():
        return callbacks

    def call(progress: Progress) -> None:
        x = problem.unscaled(progress.x)
        for callback in callbacks:
            callback(replace(progress, x=handed_out(x)))

    return [call]


def _tell_interrupt(
    interrupts: Interrupts, result: Result, on_interrupt: OnInterrupt
) -> None:
    """Say of a result if Ctrl-C came when it was all but returned."""
    if not interrupts.interrupted():
        return
    if on_interrupt == "raise":
        raise KeyboardInterrupt
    status = Status.INTERRUPTED
    result.status, result.success = status, False
    result.message = f"{status.sentence} {result.message}"


def _first_choice(method: Any, options: Any, weights: Any) -> Choice | None:
    """Return what is chosen before the problem is known; None if the caller chose."""
    if is_scipys(method):
        return Choice("sampled_sqp", f"it stands in for SciPy's {method}")
    if not isinstance(method, str) or method.lower() != AUTO:
        return None
    named = options if isinstance(options, dict) else {}
    return first_choice(named, has_weights=weights is not None)


def _for_problem(
    choice: Choice, problem: Problem, limits: Limits, store: Store | None
) -> Choice:
    """Return the method that a saved run has, or that fits the problem."""
    saved = None if store is None else saved_method(store)
    fits = choice.for_problem(problem.size, limits.iterations, limits.queries)
    return fits if saved not in METHODS else fits.but_begun_with(saved)


def _with_tol(tol: Any, method: Any, options: Any) -> Any:
    """Return the options with the tolerance of convergence among them."""
    tol = check_positive_number("minimize", "tol", tol)
    name = method.lower() if isinstance(method, str) else type(method).__name__
    if not isinstance(method, str) or (name in METHODS and name != "sampled_sqp"):
        raise InputError(
            f"minimize: `tol` is for methods that stop by themselves, got {name!r}. "
            "Leave it out, or use method='sampled_sqp'."
        )
    if isinstance(options, dict) and "tol" in options:
        raise InputError(
            f"minimize: `tol` and options['tol'] are the same, got {tol:g} and "
            f"{shown(options['tol'])}. Give one of them."
        )
    if options is None or isinstance(options, dict):  # else it is refused later
        options = {**(options or {}), "tol": tol}
    return options


def _as_method(
    method: Any, options: Any, choice: Choice | None
) -> tuple[Method, frozenset[str]]:
    options = {} if options is None else options
    if not isinstance(options, dict):
        cure = "For example options={'penalty': 10.0}."
        raise refused("minimize", "options", "be a dict", options, cure, InputTypeError)
    if not isinstance(method, str):
        missing = [name for name in NEEDED if not hasattr(method, name)]
        has_fields = is_dataclass(method)
        if isinstance(method, type) or {"init", "ask", "tell"} & set(missing):
            must = "be a name or a method"
            cure = f"Names: {', '.join(METHODS)}; or an instance such as dszog.DSZOG()."
            raise refused("minimize", "method", must, method, cure, InputTypeError)
        if missing or not has_fields:
            lacks = " and ".join(missing) or "its settings as fields"
            raise InputTypeError(
                f"minimize: a method is a dataclass with {', '.join(NEEDED)}, got "
                f"{type(method).__name__} without {lacks}. See docs/extending.md."
            )
        if options:
            raise InputError(
                f"minimize: `options` go with a method given by name, got "
                f"{shown(options)} beside {type(method).__name__}. Set them there."
            )
        return method, frozenset(field.name for field in fields(method))
    named = method  # in the words of the caller
    method = method.lower() if choice is None else choice.name
    # One of ours, or nearly.
    is_ours = method not in OF_SCIPY and did_you_mean(method, (AUTO, *METHODS))
    if not is_ours and (hint := about_method(method)):
        raise InputError(f"minimize: there is no method {method!r}.{hint}")
    check_choice("minimize", "method", method, (AUTO, *METHODS))
    kind: Any = METHODS[method]
    names = [field.name for field in fields(kind)]
    known = names if choice is None else choice.known_options
    wrong = [name for name in options if name not in names]
    others = [name for name in wrong if name in known]
    if choice is not None and others:
        raise InputError(
            f"minimize: {others[0]!r} is no option of {method}, which was chosen as "
            f"{choice.why}. Name the method, or leave one out."
        )
    if wrong:
        who = f"method {named!r} has no option"
        listed = f" Options: {', '.join(known)}."
        hints = [about_option(name, known, _argument_names()) for name in wrong]
        said = [f"{n!r}.{hint or listed}" for n, hint in zip(wrong, hints, strict=True)]
        raise InputError(f"minimize: {who} {' And no option '.join(said)}")
    return kind(**options), frozenset(options)


def _check_folder(
    checkpoint: Any, resume: bool, on_failure: str, tag: str
) -> Path | None:
    if checkpoint is None:
        if tag:
            raise InputError(
                "minimize: `tag` guards a run that is saved, got no folder. Give it: "
                "checkpoint='folder'; or leave the tag out."
            )
        if resume or on_failure != "raise":
            name = "resume" if resume else "on_save_failure"
            raise InputError(
                f"minimize: `{name}` needs the folder of the checkpoints, got none. "
                "Give it: checkpoint='folder'; or leave the other out."
            )
        return None
    must, cure = "be the path of a folder", "For example checkpoint='run-1'."
    if not isinstance(checkpoint, (str, PathLike)) or not str(checkpoint):
        raise refused("minimize", "checkpoint", must, checkpoint, cure, InputTypeError)
    if "\0" in str(checkpoint):
        cure = "Take the zero byte out of it."
        raise refused("minimize", "checkpoint", must, checkpoint, cure)
    return Path(checkpoint).absolute()  # user code may change the working directory


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
