"""Constraints of which one call of the user's function returns many."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dszog.contract import Calls
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import check_callable, check_count
from dszog.problem.calls import Grain, call_vector
from dszog.problem.constraints.base import Constraints, check_constraint_count


class BlockConstraints(Constraints):
    """``values(x, block) -> (width,)`` for each of `n_blocks` blocks.

    Constraint ``j`` is entry ``j % width`` of block ``j // width``. Whatever indices of
    a block are asked for at a point, the block is evaluated once.
    """

    def __init__(
        self,
        values: Callable[[FloatArray, int], Any],
        n_blocks: int | float,
        width: int,
    ) -> None:
        name = "Constraints.blocks"
        check_callable(
            name, "values", values, "values(x, block) -> (width,) array", n_arguments=2
        )
        self._block = values
        n_blocks = check_count(name, "n_blocks", n_blocks)
        self._width = check_count(name, "width", width)
        m = check_constraint_count(name, n_blocks * self._width)
        super().__init__(self._each, m)
        self._grain = Grain(each=True)

    @property
    def calls(self) -> Calls:
        """One call serves the constraints of one block."""
        return Calls.of_width(self._width, len(self))

    def _each(self, points: FloatArray, indices: IntArray) -> FloatArray:
        blocks, places = np.divmod(indices, self._width)
        table = np.empty((len(points), len(indices)))
        for row, x in zip(table, points, strict=True):
            for block in np.unique(blocks).tolist():
                limits = call_vector(self, self._block, x, block, width=self._width)
                here = blocks == block
                row[here] = limits[places[here]]
        return table
