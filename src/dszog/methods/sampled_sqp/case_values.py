"""All values of the cases that were seen last, where cases are a table.

A limit is taken for a sum of effects, one of the row and one of the column, as of a
load and an outage. What this leaves unexplained says how sure one can be of a case that
was not looked at, and so how likely it is that the case exceeds one of its limits.
Each limit is fitted for itself: the worst limit of a case is mostly one that all cases
have in common, and hides those that single rows or columns have for themselves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
from scipy.sparse import csr_array

from dszog.contract import NO_INDICES, ProblemSize
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.methods.sampled_sqp.looks import are_indices

MOST_NUMBERS = 2**22  # values that are kept
MOST_WATCHED = 64  # limits that are fitted: those that come closest
N_SWEEPS = 3  # through rows and columns, of a fit of their effects
PRIOR = 2.0  # values that a spread of all counts for beside those of a row or column
LEAST_FREE = 0.2  # of a value that the fit of its own row and column leaves free
SAME = 1e-9  # of usual values: limits that differ by no more tell nothing
LIKELY = 3.0  # spreads: a case that is so far below its limits is not looked at
MOST_COMPARED = 2**16  # cases


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CaseValues:
    """The values of cases of a table, those seen last in the last rows."""

    cases: IntArray  # (k,)
    values: FloatArray  # (k, width)

    def __post_init__(self) -> None:
        object.__setattr__(self, "cases", frozen_ints(self.cases))
        object.__setattr__(self, "values", frozen_floats(self.values))

    @classmethod
    def nothing(cls) -> CaseValues:
        """Return the memory of a run that has seen nothing."""
        return cls(cases=NO_INDICES, values=np.empty((0, 0)))

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes and indices are those of what such a problem shows."""
        return bool(
            (self.values.shape == (len(self.cases), size.block_width))
            | (len(self.cases) + self.values.size == 0)
        ) and are_indices(self.cases, size.n_cases)

    def with_values(
        self, constraints: IntArray, values: FloatArray, size: ProblemSize
    ) -> CaseValues:
        """Take in all limits of some cases; forget the oldest."""
        if len(size.case_shape) == 1:
            return self
        values = values.reshape(-1, size.block_width)
        cases = constraints[:: size.block_width] // size.block_width
        known = ~np.isnan(values).any(axis=1)
        cases, values = cases[known], values[known]
        most = MOST_NUMBERS // size.block_width
        if len(self.cases):
            kept = ~np.isin(self.cases, cases)
            cases = np.concatenate([self.cases[kept], cases])
            values = np.concatenate([self.values[kept], values])
        return replace(self, cases=cases[-most:], values=values[-most:])

    def among(self, cases: IntArray) -> CaseValues:
        """Return what is known of these cases alone."""
        kept = np.isin(self.cases, cases)
        return replace(self, cases=self.cases[kept], values=self.values[kept])

    def likely(
        self, n: int, shape: tuple[int, ...], others: IntArray, allowed: float
    ) -> tuple[IntArray, FloatArray]:
        """Return cases that may exceed what is allowed, the most likely ones first.

        With each by how many spreads it stays below; without the given others.
        """
        values = self.values
        if not len(values):
            return NO_INDICES, np.empty(0)
        spread, usual = np.ptp(values, axis=0), np.abs(values).max(axis=0)
        watched = np.flatnonzero(spread > SAME * usual)
        if not len(watched):
            return NO_INDICES, np.empty(0)
        closest = (allowed - values[:, watched].max(axis=0)) / spread[watched]
        watched = watched[np.argsort(closest, kind="stable")[:MOST_WATCHED]]
        values = values[:, watched]
        centre = values.mean(axis=0)
        axes = _fitted(self.cases, values - centre, shape)
        most = int(MOST_COMPARED ** (1.0 / len(shape)))
        tops = [axis.highest(most) for axis in axes]
        below = np.full([len(top) for top in tops], np.inf)
        least = allowed - centre - sum(axis.effects.max(axis=0) for axis in axes)
        sure = reduce(np.maximum, (axis.own.max(axis=0) for axis in axes))
        sure = np.sqrt(sure + sum(axis.unsure.max(axis=0) for axis in axes))
        least = np.where(least < 0, -np.inf, least / sure)  # below a limit, of any case
        last = min(n + len(others), below.size) - 1
        for k in np.argsort(least, kind="stable").tolist():
            if least[k] > np.partition(below, last, axis=None)[last]:
                break  # this limit tells no more, nor do those after it
            rise, own, unsure = np.array(centre[k]), np.array(0.0), np.array(0.0)
            for top, axis in zip(tops, axes, strict=True):
                rise = np.add.outer(rise, axis.effects[top, k])
                own = np.maximum.outer(own, axis.own[top, k])
                unsure = np.add.outer(unsure, axis.unsure[top, k])
            np.minimum(below, (allowed - rise) / np.sqrt(own + unsure), out=below)
        places = np.ix_(*(a.places[top] for a, top in zip(axes, tops, strict=True)))
        cases = np.ravel_multi_index(np.broadcast_arrays(*places), shape).ravel()
        new = ~np.isin(cases, others)
        cases, distances = cases[new], below.ravel()[new]
        order = np.argsort(distances, kind="stable")[:n]
        return cases[order], distances[order]


@dataclass(frozen=True)
class _Axis:
    """The rows of a table, or its columns, with what each adds to every limit."""

    places: IntArray  # (n,), all of them; those that were met if they are too many
    effects: FloatArray  # (n, limits)
    own: FloatArray  # (n, limits), mean square of what effects leave unexplained
    unsure: FloatArray  # (n, limits), mean square of what effects may be wrong by

    def highest(self, n: int) -> IntArray:
        """Return the places in which values may be the highest."""
        score = self.effects + LIKELY * np.sqrt(self.own + self.unsure)
        score = (score / np.sqrt(self.own.mean(axis=0))).max(axis=1)
        return np.sort(np.argsort(-score, kind="stable")[:n])


def _fitted(cases: IntArray, left: FloatArray, shape: tuple[int, ...]) -> list[_Axis]:
    """Return the effects that together explain the values of these cases best."""
    parts = np.unravel_index(cases, shape)
    found = [np.unique(part, return_inverse=True) for part in parts]
    if math.prod(shape) <= MOST_COMPARED:  # also of those that were not met
        found = [(np.arange(n), part) for n, part in zip(shape, parts, strict=True)]
    sums, counts = [], []
    for places, which in found:
        where = (np.ones(len(which)), (which, np.arange(len(which))))
        sums.append(csr_array(where, shape=(len(places), len(which))))
        counts.append(np.bincount(which, minlength=len(places))[:, np.newaxis])
    effects = [np.zeros((len(places), left.shape[1])) for places, _ in found]
    for _ in range(N_SWEEPS):
        for k, (_, which) in enumerate(found):
            left = left + effects[k][which]
            effects[k] = sums[k] @ left / (counts[k] + 1.0)
            left = left - effects[k][which]
    taken = sum(
        1.0 / (n[which] + 1.0) for n, (_, which) in zip(counts, found, strict=True)
    )
    squares = (left / np.maximum(1.0 - taken, LEAST_FREE)) ** 2
    usual = squares.mean(axis=0) + 1e-300
    axes = []
    for k, (places, _) in enumerate(found):
        own = (sums[k] @ squares + PRIOR * usual) / (counts[k] + PRIOR)
        usual_effect = (effects[k][counts[k][:, 0] > 0] ** 2).mean(axis=0)
        unsure = usual_effect * usual / (usual + counts[k] * usual_effect)
        axes.append(_Axis(places, effects[k], own, unsure))
    return axes
