"""Several families of constraints as one."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Self

import numpy as np

from dszog.contract import Calls
from dszog.contract.arrays import FloatArray, IntArray, handed_out
from dszog.contract.validation import shown
from dszog.errors import InputError, InputTypeError
from dszog.problem.constraints.base import Constraints, Summary
from dszog.problem.family import Grain


class ConcatConstraints(Constraints):
    """The constraints of all parts, in their order.

    Gradients can be asked for where every part has them, a summary likewise.
    """

    def __init__(self, parts: Sequence[Constraints]) -> None:
        name = "Constraints.concat"
        for part in parts:
            if not isinstance(part, Constraints):
                raise InputTypeError(
                    f"{name}: every part must be a dszog.Constraints, got "
                    f"{shown(part)}. Make one with Constraints(values, m)."
                )
        if not parts:
            raise InputError(f"{name}: got no parts. Pass at least one.")
        dims = {part.dim for part in parts} - {None}
        if len(dims) > 1:
            raise InputError(
                f"{name}: all parts must have the same variables, got dimensions "
                f"{sorted(d for d in dims if d is not None)}. Check the matrices."
            )
        self._parts = tuple(parts)
        self._dim = dims.pop() if dims else None
        self._starts = np.cumsum([0, *(len(part) for part in parts)], dtype=object)
        white = all(part.has_jacobian for part in parts)
        super().__init__(
            self._each,
            int(self._starts[-1]),
            jacobian=self._gradients if white else None,
        )
        self._starts = self._starts.astype(np.int64)

    @property
    def dim(self) -> int | None:
        return self._dim

    @property
    def parts(self) -> tuple[Constraints, ...]:
        return self._parts

    @property
    def calls(self) -> Calls | None:
        each = [(part.calls, len(part)) for part in self._parts]
        if all(calls is None for calls, _ in each):
            return None
        return Calls.concat(each)

    @property
    def grains(self) -> tuple[tuple[int, Grain], ...]:
        return tuple(
            (int(start) + first, grain)
            for start, part in zip(self._starts[:-1], self._parts, strict=True)
            for first, grain in part.grains
        )

    def in_pieces(self, size: int) -> Self:
        return self._of([part.in_pieces(size) for part in self._parts])

    def black_box(self) -> Self:
        return self._of([part.black_box() for part in self._parts])

    def _of(self, parts: Sequence[Constraints]) -> Self:
        other = type(self)(parts)
        other._names = self._names
        return other

    def name(self, index: int) -> str:
        """Return the name that was given here, or to the part."""
        place = int(np.searchsorted(self._starts, index, side="right")) - 1
        own = index - int(self._starts[place])
        return super().name(index) or self._parts[place].name(own)

    def _split(self, indices: IntArray) -> list[tuple[Constraints, IntArray, IntArray]]:
        """Return each part that is asked for, where, and for which of its own."""
        split = []
        limits = pairwise(self._starts)
        for part, (first, last) in zip(self._parts, limits, strict=True):
            here = np.flatnonzero((indices >= first) & (indices < last))
            if len(here):
                split.append((part, here, indices[here] - first))
        return split

    def _each(self, points: FloatArray, indices: IntArray) -> FloatArray:
        table = np.empty((len(points), len(indices)))
        for part, here, own in self._split(indices):
            table[:, here] = part.values_at(handed_out(points), own)
        return table

    def _gradients(self, point: FloatArray, indices: IntArray) -> FloatArray:
        table = np.empty((len(indices), len(point)))
        for part, here, own in self._split(indices):
            table[here] = part.jacobian(handed_out(point), own)
        return table

    def summary(self, x: FloatArray) -> Summary | None:
        """Return what all parts say about `x`, where each of them knows."""
        summaries = [part.summary(handed_out(x)) for part in self._parts]
        known = [summary for summary in summaries if summary is not None]
        if len(known) < len(summaries):
            return None
        worst = int(np.argmax([summary.worst_value for summary in known]))
        return Summary(
            n_constraints=len(self),
            n_violated=sum(summary.n_violated for summary in known),
            worst_value=known[worst].worst_value,
            worst_index=int(self._starts[worst]) + known[worst].worst_index,
            sum_squares=sum(summary.sum_squares for summary in known),
        )
