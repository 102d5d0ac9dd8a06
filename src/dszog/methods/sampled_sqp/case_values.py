"""All values of the cases that were seen last, where cases are a table.

What was seen elsewhere is moved to where it is asked about, by the slopes that limits
have in the cases learned last; cases that are seen again tell how far off that is. All
that was seen at one point is mostly off by the same.

So a limit is taken for a sum of effects, one of the row and one of the column, as of a
load and an outage, and one of the point where it was seen, which is taken off. What
this leaves unexplained says how sure one can be of a case that was not looked at, and
so how likely it is that the case exceeds one of its limits.
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
from dszog.contract.arrays import (
    FloatArray,
    IntArray,
    frozen_floats,
    frozen_ints,
    is_among,
)
from dszog.methods.sampled_sqp.looks import are_indices, places_of

MOST_NUMBERS = 2**22  # values that are kept
MOST_WATCHED = 64  # limits that are fitted: those that come closest
N_FITS = 3  # of effects, each with the spread that the one before has left
N_SWEEPS = 6  # through points, rows and columns, of a fit of their effects
PRIOR = 2.0  # values that a spread of all counts for beside those of a row or column
LEAST_FREE = 0.2  # of a value that the fit of its own row and column leaves free
SAME = 1e-9  # of usual values: limits that differ by no more tell nothing
LIKELY = 4.0  # spreads: a case that is so far below its limits is not looked at
MOST_COMPARED = 2**16  # cases
MEDIAN = 0.455  # of the square of a standard normal number
FAR_OFF = 1e100
HALF = 64  # cases seen again, after which those before count half
MOST_LEARNED = 8  # cases whose slopes a mean is of: a new one counts for one in so many


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CaseValues:
    """The values of cases of a table, those seen last in the last rows."""

    cases: IntArray  # (k,)
    values: FloatArray  # (k, width)
    places: IntArray  # (k,), where each was seen: rows of `points`
    points: FloatArray  # (p, dim), in scaled variables
    # Of cases that were seen again: sums of squares, of what values moved to there had
    # missed, and of distances.
    misses: FloatArray  # (width,)
    lengths: float
    # The same of what is left without what those from one point have in common.
    own_misses: FloatArray  # (width,)
    own_lengths: float
    slopes: FloatArray  # (width, dim), means over the cases learned last; 0: not known
    n_learned: int  # of these

    def __post_init__(self) -> None:
        for name in ("cases", "places"):
            object.__setattr__(self, name, frozen_ints(getattr(self, name)))
        for name in ("values", "points", "misses", "own_misses", "slopes"):
            object.__setattr__(self, name, frozen_floats(getattr(self, name)))

    @classmethod
    def nothing(cls, dim: int) -> CaseValues:
        """Return the memory of a run that has seen nothing."""
        return cls(
            cases=NO_INDICES,
            values=np.empty((0, 0)),
            places=NO_INDICES,
            points=np.empty((0, dim)),
            misses=np.empty(0),
            lengths=0.0,
            own_misses=np.empty(0),
            own_lengths=0.0,
            slopes=np.empty((0, dim)),
            n_learned=0,
        )

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes and indices are those of what such a problem shows."""
        k, p, width = len(self.cases), len(self.points), size.block_width
        return bool(
            are_indices(self.cases, size.n_cases)
            and self.values.shape in ((k, width), (0, 0))
            and self.places.shape == (k,)
            and self.points.shape == (p, size.dim)
            and (self.places >= 0).all()
            and (self.places < max(p, 1)).all()
            and self.misses.shape == self.values.shape[1:]
            and self.own_misses.shape == self.misses.shape
            and self.slopes.shape in ((width, size.dim), (0, size.dim))
            and self.n_learned >= 0
        )

    def with_slopes(
        self, constraints: IntArray, slopes: FloatArray, size: ProblemSize
    ) -> CaseValues:
        """Take in slopes of limits of some cases; those of old ones fade."""
        known = ~np.isnan(slopes).any(axis=1)
        if len(size.case_shape) == 1 or not known.any():
            return self
        limits = constraints[known] % size.block_width
        counts = np.bincount(limits, minlength=size.block_width)[:, np.newaxis]
        fresh = np.zeros((size.block_width, size.dim))
        np.add.at(fresh, limits, slopes[known])
        old = self.slopes if len(self.slopes) else np.zeros_like(fresh)
        mean = (fresh + self.n_learned * old) / np.maximum(counts + self.n_learned, 1)
        return replace(
            self,
            slopes=np.where(counts > 0, mean, old),
            n_learned=min(self.n_learned + int(counts.max()), MOST_LEARNED),
        )

    def with_values(
        self,
        constraints: IntArray,
        values: FloatArray,
        size: ProblemSize,
        z: FloatArray,
    ) -> CaseValues:
        """Take in all limits of some cases, seen at a point; forget the oldest."""
        if len(size.case_shape) == 1:
            return self
        values = values.reshape(-1, size.block_width)
        cases = constraints[:: size.block_width] // size.block_width
        known = ~np.isnan(values).any(axis=1)
        cases, values = cases[known], values[known]
        if not len(cases):
            return self
        old = self
        if not len(self.cases):
            none = np.zeros(size.block_width)
            old = replace(self, values=values[:0], misses=none, own_misses=none)
        old = old._judged(cases, values, z)
        most = max(MOST_NUMBERS // size.block_width, 1)
        cases, values = cases[-most:], values[-most:]
        kept = np.flatnonzero(~np.isin(old.cases, cases))
        kept = kept[max(len(kept) + len(cases) - most, 0) :]
        used, places = np.unique(old.places[kept], return_inverse=True)
        return replace(
            old,
            cases=np.concatenate([old.cases[kept], cases]),
            values=np.concatenate([old.values[kept], values]),
            places=np.concatenate([places, np.full(len(cases), len(used))]),
            points=np.vstack([old.points[used], z]),
        )

    def _judged(self, cases: IntArray, values: FloatArray, z: FloatArray) -> CaseValues:
        """Note how far off what was known of cases is, now that they are seen again."""
        again = is_among(cases, self.cases)
        if not again.any():
            return self
        which = places_of(cases[again], self.cases)
        far = self._distances(z)[which]
        missed = values[again] - self._moved(z)[which]
        at_point = _indicator(self.places[which], len(self.points))
        counts = np.maximum(at_point.sum(axis=1), 1.0)
        common = (at_point @ missed) / counts[:, np.newaxis]
        n_beside = counts[self.places[which]]
        has_more = n_beside > 1
        own = (missed - common[self.places[which]])[has_more]
        free = 1.0 - 1.0 / n_beside[has_more]  # of the square, beside their own mean
        fade = 0.5 ** (len(which) / HALF)
        return replace(
            self,
            misses=fade * self.misses + (missed**2).sum(axis=0),
            lengths=fade * self.lengths + float(far @ far),
            own_misses=fade * self.own_misses + (1.0 / free) @ own**2,
            own_lengths=fade * self.own_lengths + float((far[has_more] ** 2).sum()),
        )

    def _distances(self, z: FloatArray) -> FloatArray:
        far: FloatArray = np.linalg.norm(self.points - z, axis=1)[self.places]
        return far

    def _drifts(self) -> tuple[FloatArray, FloatArray]:
        """Return by how much moved values are off, per distance: far if not known.

        All those from one point, and each of them beside that.
        """
        if not self.lengths:
            unknown = np.full_like(self.misses, FAR_OFF)
            return unknown, unknown
        common = np.sqrt(self.misses / self.lengths)
        if not self.own_lengths:
            return common, common
        return common, np.sqrt(self.own_misses / self.own_lengths)

    def _moved(self, z: FloatArray) -> FloatArray:
        """Return what the values may be at a point, by the slopes of the limits."""
        if not len(self.slopes):
            return self.values
        shifts = (z - self.points) @ self.slopes.T
        moved: FloatArray = self.values + shifts[self.places]
        return moved

    def likely(
        self,
        n: int,
        shape: tuple[int, ...],
        others: IntArray,
        allowed: float,
        z: FloatArray,
    ) -> tuple[IntArray, FloatArray]:
        """Return cases that may exceed what is allowed at a point, likely ones first.

        With each by how many spreads it stays below; without the given others.
        """
        if not len(self.cases):
            return NO_INDICES, np.empty(0)
        values = self._moved(z)
        spread, usual = np.ptp(values, axis=0), np.abs(values).max(axis=0)
        watched = np.flatnonzero(spread > SAME * usual)
        if not len(watched):
            return NO_INDICES, np.empty(0)
        closest = (allowed - values[:, watched].max(axis=0)) / spread[watched]
        watched = watched[np.argsort(closest, kind="stable")[:MOST_WATCHED]]
        values = values[:, watched]
        apart = np.linalg.norm(self.points - z, axis=1)[:, np.newaxis]
        common, own = self._drifts()
        shared, far = apart * common[watched], apart[self.places] * own[watched]
        judged = 1.0 if self.lengths else 0.0  # else all are taken as they are
        axes, centre, values, left = _fitted(
            self.cases, values, shape, self.places, judged * shared**2, judged * far**2
        )
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
        new = ~np.isin(cases, others) & ~np.isin(cases, self.cases)
        known = ~np.isin(self.cases, others)
        # What was seen is judged by its own values as moved, or by the fit if surer.
        own, unsure = np.zeros_like(far), np.zeros_like(far)
        for axis, part in zip(axes, np.unravel_index(self.cases, shape), strict=True):
            at = np.searchsorted(axis.places, part)
            own, unsure = np.maximum(own, axis.own[at]), unsure + axis.unsure[at]
        spreads = np.sqrt(own + unsure)
        is_own = far < spreads
        rooms = allowed - np.where(is_own, values, values - left)
        mine = (rooms / np.where(is_own, far + 1e-300, spreads)).min(axis=1)
        cases = np.concatenate([self.cases[known], cases[new]])
        distances = np.concatenate([mine[known], below.ravel()[new]])
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


def _indicator(which: IntArray, n: int) -> csr_array:
    """Return the matrix that sums over those of each place, shape (n, k)."""
    where = (np.ones(len(which)), (which, np.arange(len(which))))
    return csr_array(where, shape=(n, len(which)))


def _fitted(
    cases: IntArray,
    values: FloatArray,
    shape: tuple[int, ...],
    points: IntArray,
    shared: FloatArray,
    far: FloatArray,
) -> tuple[list[_Axis], FloatArray, FloatArray, FloatArray]:
    r"""Return the effects that explain the values of these cases best, and the rest.

    Of a case in row :math:`i` and column :math:`j`, seen at point :math:`p`,

    .. math:: v = c + a_i + b_j + s_p + \varepsilon,

    where :math:`s_p` has the mean square `shared`, 0 at the point that is asked about,
    and :math:`\varepsilon` one that all have and `far` beside it. Returned are the
    axes, :math:`c`, the values without :math:`s_p`, and :math:`\varepsilon`.

    Parameters
    ----------
    points : ndarray of shape (k,)
        Where each was seen.
    shared : ndarray of shape (p, limits)
        What values moved from there are off by in common, squared.
    far : ndarray of shape (k, limits)
        What each is off by beside that, squared.
    """
    parts = np.unravel_index(cases, shape)
    found = [np.unique(part, return_inverse=True) for part in parts]
    if math.prod(shape) <= MOST_COMPARED:  # also of those that were not met
        found = [(np.arange(n), part) for n, part in zip(shape, parts, strict=True)]
    sums = [_indicator(which, len(places)) for places, which in found]
    of_point = _indicator(points, len(shared))
    # The mean at each point counts by how far off it may be for the point that is asked
    # about: nearly that there alone, once enough was seen there.
    usual = values.var(axis=0) + 1e-300
    n_there = np.bincount(points, minlength=len(shared))[:, np.newaxis]
    trust = (1.0 / (usual + n_there * shared))[points]
    centre = (trust * values).sum(axis=0) / trust.sum(axis=0)
    left = values - centre
    shifts = np.zeros(shared.shape)
    effects = [np.zeros((len(places), left.shape[1])) for places, _ in found]
    weights, counts, share = np.ones_like(far), effects, shared
    for _ in range(N_FITS):
        weights = usual / (usual + far)  # values that were moved far count less
        counts = [matrix @ weights for matrix in sums]
        share = shared / (shared * (of_point @ weights) + usual)
        for _ in range(N_SWEEPS):
            left = left + shifts[points]
            shifts = share * (of_point @ (weights * left))
            left = left - shifts[points]
            for k, (_, which) in enumerate(found):
                left = left + effects[k][which]
                effects[k] = sums[k] @ (weights * left) / (counts[k] + 1.0)
                left = left - effects[k][which]
        usual = np.median(left**2, axis=0) / MEDIAN + 1e-300
    taken = share[points] + sum(
        1.0 / (n[which] + 1.0) for n, (_, which) in zip(counts, found, strict=True)
    )
    free = np.maximum(1.0 - weights * taken, LEAST_FREE)
    squares = weights * (left / free) ** 2
    usual = squares.sum(axis=0) / weights.sum(axis=0) + 1e-300
    axes = []
    for k, (places, _) in enumerate(found):
        own = (sums[k] @ squares + PRIOR * usual) / (counts[k] + PRIOR)
        n_met = np.count_nonzero(counts[k].any(axis=1))
        usual_effect = (effects[k] ** 2).sum(axis=0) / n_met
        unsure = usual_effect * usual / (usual + counts[k] * usual_effect)
        axes.append(_Axis(places, effects[k], own, unsure))
    return axes, centre, values - shifts[points], left
