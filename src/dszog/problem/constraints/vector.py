"""Constraints that are limits on the entries of one vector-valued function."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dszog.contract import Calls
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.errors import EvaluationError, InputError
from dszog.problem.constraints.base import Constraints
from dszog.problem.family import Grain, call_vector, real_array


class VectorConstraints(Constraints):
    r"""``lower <= function(x) <= upper``, entry by entry, with one call a point.

    A finite upper limit is the constraint :math:`f_i(x) - u_i \le 0`, a finite lower
    one :math:`l_i - f_i(x) \le 0`; an equality has both. `learned` says that the width
    is what a first call told, and not the number of the limits.
    """

    def __init__(
        self,
        function: Callable[[FloatArray], Any],
        lower: FloatArray,
        upper: FloatArray,
        jacobian: Callable[[FloatArray], Any] | None = None,
        *,
        learned: bool = False,
    ) -> None:
        self._function = function
        self._learned = learned
        self._full_jacobian: Any = jacobian
        self._width = len(lower)
        signs, rows, limits = one_sided(lower, upper)
        self._signs, self._limits = frozen_floats(signs), frozen_floats(limits)
        self._rows = frozen_ints(rows)
        super().__init__(
            self._each,
            len(rows),
            jacobian=None if jacobian is None else self._gradients,
        )
        self.grain = Grain(each=True)

    @property
    def calls(self) -> Calls:
        """One call serves them all."""
        return Calls.of_width(len(self), len(self))

    def _each(self, points: FloatArray, indices: IntArray) -> FloatArray:
        rows, signs = self._rows[indices], self._signs[indices]
        limits = self._limits[indices]
        table = np.empty((len(points), len(indices)))
        for values, x in zip(table, points, strict=True):
            vector = call_vector(self, self._called, x, width=self._width)
            values[:] = signs * (vector[rows] - limits)
        return table

    def _called(self, x: FloatArray) -> Any:
        """Return what the function returns; refuse more or fewer numbers."""
        returned = self._function(x)
        array = real_array(returned)  # what is none, the caller refuses
        if array is None or array.size == self._width:
            return returned
        found = f"{_name(self._function)} returned {array.size} values"
        if not self._learned:
            raise EvaluationError(
                f"{found} for {self._width} limits. Return one for each limit."
            )
        raise EvaluationError(
            f"{found}, but {self._width} when it was called at x0 to learn how many "
            "there are. Return as many at every point. If the run is resumed and the "
            "function was changed since it began: put it back, or give an empty folder."
        )

    def _gradients(self, point: FloatArray, indices: IntArray) -> FloatArray:
        full: Any = self._full_jacobian(point)
        full = full.toarray() if hasattr(full, "toarray") else full
        full = np.asarray(full, dtype=float).reshape(self._width, len(point))
        gradients: FloatArray = (
            self._signs[indices, np.newaxis] * full[self._rows[indices]]
        )
        return gradients


def _name(function: Any) -> str:
    """Return what a function is called where it was written."""
    while isinstance(function, partial):  # of the user, or of a dictionary's arguments
        is_ours = function.func is call_with
        function = function.args[0] if is_ours else function.func
    return str(getattr(function, "__qualname__", type(function).__name__))


def call_with(function: Callable[..., Any], arguments: tuple[Any, ...], x: Any) -> Any:
    """Call a function with the arguments that a dictionary of SciPy's brings for it."""
    return function(x, *arguments)


def one_sided(
    lower: FloatArray, upper: FloatArray
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return the one-sided limits as signs, entries and limits, upper ones first."""
    above = np.flatnonzero(np.isfinite(upper))
    below = np.flatnonzero(np.isfinite(lower))
    if not len(above) and not len(below):
        raise InputError(
            "constraints: a constraint must have a finite limit, got lb = -inf and "
            "ub = inf throughout. Leave it out."
        )
    signs = np.concatenate([np.ones(len(above)), -np.ones(len(below))])
    return (
        signs,
        np.concatenate([above, below]),
        np.concatenate([upper[above], lower[below]]),
    )
