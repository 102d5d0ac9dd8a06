"""Constraints given as functions of one point, of one value or many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dszog.contract import Calls
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import check_callable, check_count, shown
from dszog.errors import InputError, InputTypeError
from dszog.problem.constraints.base import Constraints
from dszog.problem.family import Grain, call_number, call_vector, check_family_size


class FunctionConstraints(Constraints):
    """``function(x, j) -> float`` for ``j = 0 .. m - 1``; holds where it is <= 0."""

    def __init__(
        self, function: Callable[[FloatArray, int], float], m: int | float
    ) -> None:
        name = "Constraints.from_function"
        check_callable(name, "function", function, "function(x, j) -> float", 2)
        self._function = function
        super().__init__(self._each, m)
        self.grain = Grain(each=True)

    def _each(self, points: FloatArray, indices: IntArray) -> FloatArray:
        js = indices.tolist()  # plain ints: what a user's function expects
        function = self._function
        table = [[call_number(function, x, j) for j in js] for x in points]
        return np.array(table).reshape(len(points), len(js))


class CallableConstraints(Constraints):
    """One ``function(x) -> float`` for each constraint; holds where it is <= 0."""

    def __init__(self, functions: Sequence[Callable[[FloatArray], float]]) -> None:
        name = "Constraints.from_callables"
        if callable(functions) or not isinstance(functions, Sequence):
            raise InputTypeError(
                f"{name}: `functions` must be a list of functions, got "
                f"{shown(functions)}. Pass [f1, f2, ...], each f(x) -> float."
            )
        if not functions:
            raise InputError(
                f"{name}: `functions` must hold at least one function, got an empty "
                "list. Leave the constraints out if there are none."
            )
        for i, function in enumerate(functions):
            check_callable(name, f"functions[{i}]", function, "f(x) -> float", 1)
        self._functions = tuple(functions)
        super().__init__(self._each, len(self._functions))
        self.grain = Grain(each=True)

    def _each(self, points: FloatArray, indices: IntArray) -> FloatArray:
        chosen = [self._functions[j] for j in indices]
        table = [[call_number(f, x) for f in chosen] for x in points]
        return np.array(table).reshape(len(points), len(chosen))


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
