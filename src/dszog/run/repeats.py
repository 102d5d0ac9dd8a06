"""Functions that answer the same question differently, noticed at no cost."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from dszog.contract import Query, Reply
from dszog.contract.arrays import BoolArray, FloatArray, IntArray
from dszog.errors import PurityWarning
from dszog.problem import Problem

KEPT = 2**14  # values of each kind that are remembered of a point
N_POINTS = 8  # that are remembered: the start, and what the check of the result is of

_Values = tuple[IntArray, FloatArray]


class Repeats:
    """Compares values that a run asks for more than once.

    No question is added for it. The first look at the constraints and the first step
    are both at the start, the check of the result looks there again, and its gradients
    begin with values that it has just asked for. Only functions that are called for one
    point and index at a time are compared: others round differently in another shape.
    """

    def __init__(self, problem: Problem) -> None:
        self._size, self._name = problem.size, problem.name
        grains = () if problem.constraints is None else problem.constraints.grains
        self._first = np.array([first for first, _ in grains], dtype=np.int64)
        self._each = np.array([grain.each for _, grain in grains], dtype=bool)
        self._each_loss = problem.losses.grain.each
        self._known: dict[tuple[bytes, str], _Values] = {}
        self._has_warned = False

    def compare(self, queries: Sequence[Query], replies: Sequence[Reply]) -> int:
        """Return how many values differ from an earlier answer to the same question."""
        n_different = 0
        for query, reply in zip(queries, replies, strict=True):
            if query.want != "values" or reply.failures:
                continue
            point = query.points(self._size)[0].tobytes()
            for kind, indices, table in (
                ("Loss", query.losses, reply.losses),
                ("Constraint", query.constraints, reply.constraints),
            ):
                single = self._are_single(kind, indices)
                if single.any():
                    values = indices[single], table[0][single]
                    n_different += self._differences(kind, point, values)
        return n_different

    def _are_single(self, kind: str, indices: IntArray) -> BoolArray:
        """Return which of these are evaluated by a call of their own."""
        if kind == "Loss":
            return np.full(len(indices), self._each_loss)
        part = np.searchsorted(self._first, indices, "right") - 1
        single: BoolArray = self._each[part]
        return single

    def _differences(self, kind: str, point: bytes, new: _Values) -> int:
        """Compare values with those known at a point, and remember them."""
        known = self._known.get((point, kind))
        if known is None:
            if len(self._known) < 2 * N_POINTS:
                self._known[point, kind] = new[0][:KEPT], new[1][:KEPT]
            return 0
        common, before, now = np.intersect1d(known[0], new[0], return_indices=True)
        apart = np.abs(known[1][before] - new[1][now])
        if apart.any():
            worst = int(apart.argmax())
            which = f"{kind} {common[worst]}"
            if name := self._name(kind.lower(), int(common[worst])):
                which = f"{which} ({name})"
            if kind == "Loss" and self._size.n_losses == 1:
                which = "The objective"
            self._warn(which, float(apart[worst]))
        if len(known[0]) < KEPT:
            indices = np.concatenate([known[0], new[0]])[:KEPT]
            values = np.concatenate([known[1], new[1]])[:KEPT]
            self._known[point, kind] = indices, values
        return int(np.count_nonzero(apart))

    def _warn(self, which: str, apart: float) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        warnings.warn(
            f"{which} gave values {apart:.2g} apart for the same point. The run goes "
            "on, but a repeated or resumed run will not have the same bits. See "
            "whether the function keeps something from one call to the next (a warm "
            "start, a cache, random numbers). Noise that you know of may stay: the "
            "sampled SQP measures it; for DSZOG take a `radius` well above it.",
            PurityWarning,
            stacklevel=2,
        )
