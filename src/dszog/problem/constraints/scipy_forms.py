"""SciPy's ways to write constraints, turned into ours, in this one place.

SciPy says ``lb <= f(x) <= ub``, or ``f(x) >= 0`` in a dictionary of type ``"ineq"``;
here a constraint holds where its value is at most 0, and an equality is two of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.optimize import LinearConstraint, NonlinearConstraint

from dszog.contract.arrays import FloatArray, handed_out
from dszog.contract.validation import as_numbers, check_callable, check_choice, shown
from dszog.errors import EvaluationError, InputError, InputTypeError
from dszog.problem.calls import real_array
from dszog.problem.constraints.base import Constraints
from dszog.problem.constraints.linear import LinearConstraints
from dszog.problem.constraints.vector import VectorConstraints, call_with, one_sided

DICT_KEYS = ("type", "fun", "jac", "args")
DIFFERENCES = ("2-point", "3-point", "cs")  # SciPy's words for "there is no jac"


def is_scipy_form(constraint: Any) -> bool:
    """Whether this is a constraint as SciPy's `minimize` takes it."""
    return isinstance(constraint, (LinearConstraint, NonlinearConstraint, Mapping))


def function_to_learn(constraint: Any) -> Callable[[FloatArray], Any] | None:
    """Return the function that has to be called to know how many values it returns.

    None if there are as many limits as values, or no function.
    """
    if isinstance(constraint, NonlinearConstraint):
        _check_nonlinear(constraint)
        is_open = not np.ndim(constraint.lb) and not np.ndim(constraint.ub)
        return constraint.fun if is_open else None
    if isinstance(constraint, Mapping):
        return _read_dictionary(constraint).function
    return None


def learn_widths(
    functions: Sequence[Callable[[FloatArray], Any]], x0: FloatArray
) -> list[int]:
    """Return how many values each function returns; each is called once, at `x0`."""
    return [_width(function, x0) for function in functions]


def from_scipy(constraint: Any, width: int | None = None) -> Constraints:
    """Return the constraints.

    Parameters
    ----------
    constraint : LinearConstraint, NonlinearConstraint or mapping
    width : int, optional
        The number of values of its :func:`function_to_learn`, if it has one.
    """
    if isinstance(constraint, LinearConstraint):
        return _linear(constraint)
    if isinstance(constraint, NonlinearConstraint):
        return _nonlinear(constraint, width)
    return _dictionary(constraint, width or 0)


def _linear(constraint: LinearConstraint) -> Constraints:
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


def _check_nonlinear(constraint: NonlinearConstraint) -> None:
    _refuse_keep_feasible(constraint)
    name = "NonlinearConstraint"
    check_callable(name, "fun", constraint.fun, "fun(x) -> array", n_arguments=1)
    if constraint.jac not in DIFFERENCES:
        check_callable(name, "jac", constraint.jac, "jac(x) -> array", n_arguments=1)


def _nonlinear(constraint: NonlinearConstraint, width: int | None) -> Constraints:
    learned = width is not None
    if width is None:
        width = max(np.size(constraint.lb), np.size(constraint.ub))
    lower, upper = _limits(constraint, width)
    jacobian = None if constraint.jac in DIFFERENCES else constraint.jac
    return VectorConstraints(constraint.fun, lower, upper, jacobian, learned=learned)


class _Dictionary(NamedTuple):
    """What a constraint dictionary says."""

    kind: str
    function: Callable[[FloatArray], Any]
    jacobian: Callable[[FloatArray], Any] | None


def _dictionary(constraint: Any, width: int) -> Constraints:
    kind, function, jacobian = _read_dictionary(constraint)
    above = 0.0 if kind == "eq" else np.inf
    lower, upper = np.zeros(width), np.full(width, above)
    return VectorConstraints(function, lower, upper, jacobian, learned=True)


def _read_dictionary(constraint: Any) -> _Dictionary:
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
    return _Dictionary(constraint["type"], function, jacobian)


def _with_arguments(function: Any, arguments: Any) -> Any:
    return partial(call_with, function, tuple(arguments)) if arguments else function


def _width(function: Callable[[FloatArray], Any], x0: FloatArray) -> int:
    try:
        returned = function(handed_out(x0))
    except Exception as error:
        raise EvaluationError(
            f"A constraint function raised {type(error).__name__}: {error} at x0, "
            "where it is called once to learn how many values it returns. Start where "
            "it can be evaluated."
        ) from error
    array = real_array(returned)
    if array is None or not array.size:
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
