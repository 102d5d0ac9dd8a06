"""Constraints that are limits on the entries of one vector-valued function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dszog._arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.calls import Grain, call_vector
from dszog.constraints.base import Constraints
from dszog.errors import InputError
from dszog.query import Calls


class VectorConstraints(Constraints):
    r"""``lower <= function(x) <= upper``, entry by entry, with one call a point.

    A finite upper limit is the constraint :math:`f_i(x) - u_i \le 0`, a finite lower
    one :math:`l_i - f_i(x) \le 0`; an equality has both.

    Parameters
    ----------
    function : callable
        ``function(x) -> (width,)``.
    lower, upper : ndarray of shape (width,)
    jacobian : callable, optional
        ``jacobian(x) -> (width, dim)``.
    """

    def __init__(
        self,
        function: Callable[[FloatArray], Any],
        lower: FloatArray,
        upper: FloatArray,
        jacobian: Callable[[FloatArray], Any] | None = None,
    ) -> None:
        self._function = function
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
        self._grain = Grain(each=True)

    @property
    def calls(self) -> Calls:
        """One call serves them all."""
        return Calls.of_width(len(self), len(self))

    def _each(self, points: FloatArray, indices: IntArray) -> FloatArray:
        rows, signs = self._rows[indices], self._signs[indices]
        limits = self._limits[indices]
        table = np.empty((len(points), len(indices)))
        for values, x in zip(table, points, strict=True):
            vector = call_vector(self, self._function, x, width=self._width)
            values[:] = signs * (vector[rows] - limits)
        return table

    def _gradients(self, point: FloatArray, indices: IntArray) -> FloatArray:
        full: Any = self._full_jacobian(point)
        full = full.toarray() if hasattr(full, "toarray") else np.asarray(full)
        full = np.asarray(full, dtype=float).reshape(self._width, len(point))
        gradients: FloatArray = (
            self._signs[indices, np.newaxis] * full[self._rows[indices]]
        )
        return gradients


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
