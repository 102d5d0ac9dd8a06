"""SciPy's ways to write constraints, turned into ours, in this one place.

SciPy says ``lb <= f(x) <= ub``, or ``f(x) >= 0`` in a dictionary of type ``"ineq"``;
here a constraint holds where its value is at most 0, and an equality is two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import LinearConstraint, NonlinearConstraint

from dszog._arrays import FloatArray, frozen_floats
from dszog._validation import as_numbers, check_callable, check_choice, shown
from dszog.constraints.base import Constraints
from dszog.constraints.linear import LinearConstraints
from dszog.constraints.vector import VectorConstraints, one_sided
from dszog.errors import EvaluationError, InputError, InputTypeError

DICT_KEYS = ("type", "fun", "jac", "args")
DIFFERENCES = ("2-point", "3-point", "cs")  # SciPy's words for "there is no jac"


def is_scipy_form(constraint: Any) -> bool:
    """Whether this is a constraint as SciPy's `minimize` takes it."""
    return isinstance(constraint, (LinearConstraint, NonlinearConstraint, Mapping))


def n_calls_to_learn(constraint: Any) -> int:
    """Return how many calls it takes to learn how many constraints this stands for."""
    if isinstance(constraint, NonlinearConstraint):
        return int(not np.ndim(constraint.lb) and not np.ndim(constraint.ub))
    return int(isinstance(constraint, Mapping))


def from_scipy(constraint: Any, x0: FloatArray) -> tuple[Constraints, int]:
    """Return the constraints, and how many calls it took to learn their number.

    A function whose limits are single numbers must be called once, at `x0`, to know how
    many values it returns.
    """
    if isinstance(constraint, LinearConstraint):
        return _linear(constraint, x0), 0
    if isinstance(constraint, NonlinearConstraint):
        return _nonlinear(constraint, x0)
    return _dictionary(constraint, x0)


def _linear(constraint: LinearConstraint, x0: FloatArray) -> Constraints:
    _refuse_keep_feasible(constraint)
    matrix = constraint.A
    matrix = (
        sparse.csr_array(matrix) if sparse.issparse(matrix) else np.atleast_2d(matrix)
    )
    lower, upper = _limits(constraint, matrix.shape[0])
    signs, rows, limits = one_sided(lower, upper)
    scaled = matrix[rows]
    if sparse.issparse(scaled):
        return LinearConstraints(sparse.diags_array(signs) @ scaled, signs * limits)
    return LinearConstraints(signs[:, np.newaxis] * scaled, signs * limits)


def _nonlinear(
    constraint: NonlinearConstraint, x0: FloatArray
) -> tuple[Constraints, int]:
    _refuse_keep_feasible(constraint)
    name = "NonlinearConstraint"
    check_callable(name, "fun", constraint.fun, "fun(x) -> array", n_arguments=1)
    jacobian = None
    if constraint.jac not in DIFFERENCES:
        jacobian = constraint.jac
        check_callable(name, "jac", jacobian, "jac(x) -> array", n_arguments=1)
    width = max(np.size(constraint.lb), np.size(constraint.ub))
    n_calls = 0
    if not np.ndim(constraint.lb) and not np.ndim(constraint.ub):
        width, n_calls = _width(constraint.fun, x0), 1
    lower, upper = _limits(constraint, width)
    return VectorConstraints(constraint.fun, lower, upper, jacobian), n_calls


def _dictionary(constraint: Any, x0: FloatArray) -> tuple[Constraints, int]:
    name = "constraint dictionary"
    unknown = [key for key in constraint if key not in DICT_KEYS]
    if unknown or "fun" not in constraint or "type" not in constraint:
        raise InputError(
            f"{name}: the keys must be 'type' and 'fun', perhaps 'jac' and 'args', got "
            f"{shown(list(constraint))}. For example "
            "{'type': 'ineq', 'fun': f}, which holds where f(x) >= 0."
        )
    check_choice(name, "type", constraint["type"], ("ineq", "eq"))
    arguments = constraint.get("args", ())
    if not isinstance(arguments, (tuple, list)):
        raise InputTypeError(
            f"{name}: `args` must be a tuple, got {shown(arguments)}. For one more "
            "argument pass (value,)."
        )
    n_arguments = 1 + len(arguments)
    function, jacobian = constraint["fun"], constraint.get("jac")
    taken = "x, *args" if arguments else "x"
    signature = f"fun({taken}) -> float or array"
    check_callable(name, "fun", function, signature, n_arguments)
    function = _with_arguments(function, arguments)
    if jacobian is not None:
        check_callable(name, "jac", jacobian, f"jac({taken}) -> array", n_arguments)
        jacobian = _with_arguments(jacobian, arguments)
    width = _width(function, x0)
    above = 0.0 if constraint["type"] == "eq" else np.inf
    lower, upper = np.zeros(width), np.full(width, above)
    return VectorConstraints(function, lower, upper, jacobian), 1


def _with_arguments(function: Any, arguments: Any) -> Any:
    return partial(_call_with, function, tuple(arguments)) if arguments else function


def _call_with(function: Callable[..., Any], arguments: tuple[Any, ...], x: Any) -> Any:
    return function(x, *arguments)


def _width(function: Callable[[FloatArray], Any], x0: FloatArray) -> int:
    try:
        returned = function(frozen_floats(x0))
    except Exception as error:
        raise EvaluationError(
            f"A constraint function raised {type(error).__name__}: {error} at x0, "
            "where it is called once to learn how many values it returns. Start where "
            "it can be evaluated."
        ) from error
    try:
        array = np.asarray(returned)
    except ValueError:  # ragged
        array = np.asarray(None)
    if np.ma.isMaskedArray(returned):
        array = np.asarray(None)
    if array.dtype.kind not in "fiub" or not array.size:
        raise InputTypeError(
            f"constraints: a constraint function must return numbers, got "
            f"{shown(returned)} at x0. Return a float or an array."
        )
    return int(array.size)


def _limits(constraint: Any, width: int) -> tuple[FloatArray, FloatArray]:
    name = type(constraint).__name__
    lower = as_numbers(name, "lb", constraint.lb)
    upper = as_numbers(name, "ub", constraint.ub)
    try:
        lower, upper = np.broadcast_to(lower, width), np.broadcast_to(upper, width)
    except ValueError:
        raise InputError(
            f"{name}: `lb` and `ub` must fit {width} values, got shapes {lower.shape} "
            f"and {upper.shape}. Give one limit, or one for each value."
        ) from None
    impossible = ~(lower <= upper) | (lower == np.inf) | (upper == -np.inf)
    if impossible.any():
        raise InputError(
            f"{name}: the limits must satisfy lb <= ub and leave room, got lb = "
            f"{shown(lower)}, ub = {shown(upper)}. Correct them; use inf for no limit."
        )
    return lower, upper


def _refuse_keep_feasible(constraint: Any) -> None:
    if np.any(constraint.keep_feasible):
        raise InputError(
            f"{type(constraint).__name__}: keep_feasible=True cannot be promised, got "
            "it set. Leave it out; bounds on the variables are always kept."
        )
