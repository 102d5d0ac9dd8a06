"""Constraints of which one call of the user's function returns many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dszog.contract import Calls
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import check_callable, check_count
from dszog.problem.calls import Grain, call_vector
from dszog.problem.constraints.base import Constraints
from dszog.problem.family import check_family_size


class BlockConstraints(Constraints):
    """``values(x, block) -> (width,)`` for each block; see `Constraints.blocks`."""

    def __init__(
        self,
        values: Callable[[FloatArray, int], Any],
        n_blocks: int | float,
        width: int,
    ) -> None:
        name = "Constraints.blocks"
        expected = "values(x, block) -> (width,) array"
        check_callable(name, "values", values, expected, 2)
        self._block = values
        n_blocks = check_count(name, "n_blocks", n_blocks)
        self._width = check_count(name, "width", width)
        m = check_family_size(name, "m", n_blocks * self._width)
        super().__init__(self._each, m)
        self.grain = Grain(each=True)

    @property
    def calls(self) -> Calls:
        """One call serves the constraints of one block."""
        return Calls.of_width(self._width, len(self))

    def _each(self, points: FloatArray, indices: IntArray) -> FloatArray:
        return values_by_block(self._call, points, indices, self._width)

    def _call(self, x: FloatArray, block: int) -> FloatArray:
        return call_vector(self, self._block, x, block, width=self._width)


def values_by_block(
    call: Callable[[FloatArray, int], FloatArray],
    points: FloatArray,
    indices: IntArray,
    width: int,
) -> FloatArray:
    """Return values of which one ``call(x, block)`` gives `width`, called once each."""
    blocks, places = np.divmod(indices, width)
    table = np.empty((len(points), len(indices)))
    for row, x in zip(table, points, strict=True):
        for block in np.unique(blocks).tolist():
            here = blocks == block
            row[here] = call(x, block)[places[here]]
    return table
