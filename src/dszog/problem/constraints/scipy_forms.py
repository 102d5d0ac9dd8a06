"""SciPy's ways to write constraints, turned into ours, in this one place.

SciPy says ``lb <= f(x) <= ub``, or ``f(x) >= 0`` in a dictionary of type ``"ineq"``;
here a constraint holds where its value is at most 0, and an equality is two of them. So
they have names that tell where they stand in the caller's list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import LinearConstraint, NonlinearConstraint

from dszog.contract.arrays import FloatArray, IntArray, handed_out
from dszog.contract.validation import as_numbers, check_callable, check_choice, shown
from dszog.errors import EvaluationError, InputError, InputTypeError
from dszog.problem.constraints.base import Constraints
from dszog.problem.constraints.linear import LinearConstraints
from dszog.problem.constraints.vector import VectorConstraints, call_with, one_sided
from dszog.problem.family import real_array

_Function: TypeAlias = Callable[[FloatArray], Any]

DICT_KEYS = ("type", "fun", "jac", "args")
DIFFERENCES = ("2-point", "3-point", "cs")  # SciPy's words for "there is no jac"


def is_scipy_form(constraint: Any) -> bool:
    """Whether this is a constraint as SciPy's `minimize` takes it."""
    return isinstance(constraint, (LinearConstraint, NonlinearConstraint, Mapping))


def function_to_learn(constraint: Any) -> _Function | None:
    """Return the function that has to be called to know how many values it returns."""
    # None if there are as many limits as values, or no function.
    if isinstance(constraint, NonlinearConstraint):
        _check_nonlinear(constraint)
        is_open = not np.ndim(constraint.lb) and not np.ndim(constraint.ub)
        return constraint.fun if is_open else None
    if isinstance(constraint, Mapping):
        return _read_dictionary(constraint)[0]
    return None


def learn_widths(functions: Sequence[_Function], x0: FloatArray) -> list[int]:
    """Return how many values each function returns; each is called once, at `x0`."""
    return [_width(function, x0) for function in functions]


def from_scipy(constraint: Any, place: int, width: int | None = None) -> Constraints:
    """Return the constraints at a place of the caller's list.

    `width` is that of their :func:`function_to_learn`.
    """
    if isinstance(constraint, LinearConstraint):
        made, lower, upper = _linear(constraint)
    elif isinstance(constraint, NonlinearConstraint):
        made, lower, upper = _nonlinear(constraint, width)
    else:
        made, lower, upper = _dictionary(constraint, width or 0)
    return made.named(partial(_limit, place, lower, upper, one_sided(lower, upper)[1]))


def _limit(
    place: int, lower: FloatArray, upper: FloatArray, rows: IntArray, index: int
) -> str:
    """Return the name of one limit: whose it is, and on which side if there are two."""
    row = rows[index]
    name = f"constraints[{place}]" + (f"[{row}]" if len(lower) > 1 else "")
    if not np.isfinite(lower[row]) or not np.isfinite(upper[row]):
        return name
    side = "upper" if index < np.isfinite(upper).sum() else "lower"
    return f"{side} limit of {name}"


_Limited: TypeAlias = tuple[Constraints, FloatArray, FloatArray]  # and both limits


def _linear(constraint: LinearConstraint) -> _Limited:
    _refuse_keep_feasible(constraint)
    matrix = constraint.A
    matrix = (
        sparse.csr_array(matrix) if sparse.issparse(matrix) else np.atleast_2d(matrix)
    )
    lower, upper = _limits(constraint, matrix.shape[0])
    signs, rows, limits = one_sided(lower, upper)
    scaled = matrix[rows]
    if sparse.issparse(scaled):
        scaled = sparse.diags_array(signs) @ scaled
    else:
        scaled = signs[:, np.newaxis] * scaled
    return LinearConstraints(scaled, signs * limits), lower, upper


def _check_nonlinear(constraint: NonlinearConstraint) -> None:
    _refuse_keep_feasible(constraint)
    name = "NonlinearConstraint"
    check_callable(name, "fun", constraint.fun, "fun(x) -> array", n_arguments=1)
    if constraint.jac not in DIFFERENCES:
        check_callable(name, "jac", constraint.jac, "jac(x) -> array", n_arguments=1)


def _nonlinear(constraint: NonlinearConstraint, width: int | None) -> _Limited:
    learned = width is not None
    if width is None:
        width = max(np.size(constraint.lb), np.size(constraint.ub))
    lower, upper = _limits(constraint, width)
    jacobian = None if constraint.jac in DIFFERENCES else constraint.jac
    made = VectorConstraints(constraint.fun, lower, upper, jacobian, learned=learned)
    return made, lower, upper


def _dictionary(constraint: Any, width: int) -> _Limited:
    function, jacobian = _read_dictionary(constraint)
    above = 0.0 if constraint["type"] == "eq" else np.inf
    lower, upper = np.zeros(width), np.full(width, above)
    made = VectorConstraints(function, lower, upper, jacobian, learned=True)
    return made, lower, upper


def _read_dictionary(constraint: Any) -> tuple[_Function, _Function | None]:
    """Return the function of a dictionary and its jacobian, if it has one."""
    name = "constraint dictionary"
    if not {"fun", "type"} <= set(constraint) <= set(DICT_KEYS):
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
    taken = "x, *args" if arguments else "x"

    def checked(key: str, returned: str) -> _Function:
        function, expected = constraint[key], f"{key}({taken}) -> {returned}"
        check_callable(name, key, function, expected, 1 + len(arguments))
        if not arguments:
            return function  # type: ignore[no-any-return]
        return partial(call_with, function, tuple(arguments))

    function = checked("fun", "float or array")
    is_white = constraint.get("jac") is not None
    return function, checked("jac", "array") if is_white else None


def _width(function: _Function, x0: FloatArray) -> int:
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
