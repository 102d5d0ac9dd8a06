"""Constraints given as a function of one point and one index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from dszog._arrays import FloatArray, IntArray
from dszog._validation import check_callable
from dszog.constraints.base import Constraints


class FunctionConstraints(Constraints):
    """``function(x, j) -> float`` for ``j = 0 .. m - 1``; holds where it is <= 0."""

    def __init__(self, function: Callable[[FloatArray, int], float], m: int) -> None:
        check_callable(
            "Constraints.from_function", "function", function, "function(x, j) -> float"
        )
        self._function = function
        super().__init__(self._each, m)

    def _each(self, points: FloatArray, indices: IntArray) -> FloatArray:
        js = indices.tolist()  # plain ints: what a user's function expects
        return np.array([[self._function(x, j) for j in js] for x in points])
