"""SciPy's way of calling `minimize`, turned into ours, in this one place.

Constraints as SciPy writes them are read in ``problem/constraints/scipy_forms.py``.
"""

from __future__ import annotations

import inspect
import warnings
from functools import partial
from numbers import Number
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, OptimizeWarning

from dszog.contract.validation import check_callable, shown
from dszog.errors import InputError
from dszog.problem import Losses
from dszog.problem.constraints import Constraints
from dszog.problem.constraints.scipy_forms import DIFFERENCES
from dszog.problem.constraints.vector import call_with
from dszog.run.history import Callback, Progress

ORDER = (  # of its arguments behind `fun` and `x0`
    *("args", "method", "jac", "hess", "hessp", "bounds", "constraints", "tol"),
    *("callback", "options"),
)
STAND_INS = ("slsqp", "cobyqa", "cobyla", "trust-constr")  # "sampled_sqp" for these
BY_NAME = ["intermediate_result"]  # what a callback takes that is called by name
WITH_STATE = ["xk", "state"]  # and one of trust-constr
OPTIONS = {  # of those methods, and the arguments that they are here
    "maxiter": "max_iterations",
    "maxfev": "max_queries",  # each function so often
    "disp": "progress",
    "verbose": "progress",
    "ftol": "tol",  # as SciPy's own `tol` sets it, and the next two
    "gtol": "tol",
    "xtol": "tol",
    "final_tr_radius": "tol",
    "catol": "constraint_tol",
    "feasibility_tol": "constraint_tol",
}
UNUSED = {  # what sets SciPy's own steps, and changes no answer
    *("hess", "hessp", "eps", "finite_diff_rel_step", "sparse_jacobian", "iprint"),
    *("rhobeg", "initial_tr_radius", "initial_constr_penalty", "scale", "barrier_tol"),
    *("initial_barrier_parameter", "initial_barrier_tolerance", "history_size"),
    *("factorization_method", "store_history", "debug", "filter_size", "f_target"),
}


def is_scipys(method: Any) -> bool:
    """Whether this is the name of one of SciPy's methods that has a stand-in."""
    return isinstance(method, str) and method.lower() in STAND_INS


def in_our_words(given: Any, named: Any) -> tuple[Any, dict[str, Any]]:
    """Return a call with SciPy's order and options as ours; the rest as it is."""
    more = dict(zip(ORDER, given[2:], strict=False))
    is_theirs = len(given) > 3
    if len(given) == 3:  # SciPy's `args`, or our `constraints`
        some = given[2] if isinstance(given[2], tuple) else (given[2],)
        no_constraints = all(isinstance(x, (Number, str, np.ndarray)) for x in some)
        is_theirs = "constraints" in named or (bool(some) and no_constraints)
    if is_theirs and len(given) <= 2 + len(ORDER) and not more.keys() & named.keys():
        given, named = given[:2], {**more, **named}
    unset = ("method", "hess", "hessp", "jac")  # None, there, is the default
    words = {k: v for k, v in named.items() if not (k in unset and v is None)}
    if is_scipys(words.get("method")):
        words = _without_unused(words)
    options = words.get("options")
    if not isinstance(options, dict):
        return given, words
    tols = [name for name in options if OPTIONS.get(name) == "tol"]
    if len(tols) > 1 and all(isinstance(options[name], float) for name in tols):
        strictest = {tols[0]: min(options[name] for name in tols)}
        options = {k: v for k, v in options.items() if k not in tols} | strictest
    for name in OPTIONS.keys() & options.keys():
        ours, value = OPTIONS[name], options[name]
        if name == "maxfev" and isinstance(value, (int, float)):
            value *= 1 + _n_functions(words.get("constraints", ()))
        if words.get(ours) is not None:
            raise InputError(
                f"minimize: options[{name!r}] is `{ours}`, got {shown(value)} beside "
                f"{shown(words[ours])}. Give one of them."
            )
        words[ours] = bool(value) if ours == "progress" else value
    words["options"] = {k: v for k, v in options.items() if k not in OPTIONS}
    return given, words


def _without_unused(words: dict[str, Any]) -> dict[str, Any]:
    """Return a call without what only SciPy's own method has a use for; say so."""
    options = words.get("options")
    named = [name for name in ("hess", "hessp") if name in words]
    left, set_so = {k: v for k, v in words.items() if k not in named}, []
    if isinstance(options, dict):
        set_so = [name for name in options if name in UNUSED]
        left["options"] = {k: v for k, v in options.items() if k not in UNUSED}
    if named or set_so:
        warnings.warn(
            f"minimize: not used: {', '.join([*named, *set_so])}. 'sampled_sqp', which "
            f"stands in for {words['method']!r}, finds steps, curvature and its end by "
            "itself.",
            OptimizeWarning,
            stacklevel=4,
        )
    return left


def _n_functions(constraints: Any) -> int:
    """Return how many values of constraints one evaluation of all of them takes."""
    listed = constraints if isinstance(constraints, (list, tuple)) else [constraints]
    return sum(len(one) if isinstance(one, Constraints) else 1 for one in listed)


def objective(fun: Any, args: Any, jac: Any) -> Any:
    """Return the objective with its arguments bound, and its gradient if there is one.

    `jac` is a function, True if `fun` returns value and gradient, or says that there is
    none.
    """
    args = args if isinstance(args, tuple) else (args,)
    has_slope = not (jac is None or jac is False or jac in DIFFERENCES)
    if not args and not has_slope:
        return fun
    if isinstance(fun, Losses) or not callable(fun):
        raise InputError(
            f"minimize: `args` and `jac` go with a function fun(x, *args), got "
            f"{shown(fun)}. Put them into it: Losses(values, n, gradient=...)."
        )

    def bound(name: str, function: Any, returned: str) -> Any:
        expected = f"{name}(x{', *args' if args else ''}) -> {returned}"
        check_callable("minimize", name, function, expected, 1 + len(args))
        return partial(call_with, function, args) if args else function

    if jac is True:
        return Losses.from_function(bound("fun", fun, "float, array"), gradient=True)
    slope = bound("jac", jac, "array") if has_slope else None
    return Losses.from_function(bound("fun", fun, "float"), gradient=slope)


def parameters(function: Any) -> list[str]:
    """Return the names of what a function needs; none if it does not tell."""
    try:
        taken = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of some built-in functions
        return []
    needed = [one.name for one in taken if one.default is one.empty]
    return needed or [one.name for one in taken][:1]


def as_called(callback: Any, method: Any) -> Callback:
    """Return a callback that takes our `Progress`; True, returned, ends the run.

    One whose parameter is called ``intermediate_result``, ``xk`` or ``x``, one with
    ``(xk, state)``, and any but ``progress`` beside a method of SciPy's, is given what
    SciPy gives it, once an iteration.
    """
    names, last = parameters(callback), 0

    def scipys(progress: Progress) -> Any:
        nonlocal last
        if progress.iteration <= last:
            return False
        last, x = progress.iteration, np.array(progress.x)
        fun, nfev = progress.sampled_objective, progress.n_loss_queries
        so_far = OptimizeResult(x=x, fun=fun, nit=last, nfev=nfev)
        if names == BY_NAME:
            return callback(intermediate_result=so_far)
        return callback(x, so_far) if len(names) == 2 else callback(x)

    is_theirs = names in (BY_NAME, ["xk"], ["x"], WITH_STATE) or (
        is_scipys(method) and names != ["progress"]
    )
    called = scipys if is_theirs else callback

    def call(progress: Progress) -> None:
        returned = called(progress)
        if returned is True or returned is np.True_:
            raise StopIteration

    return call
