"""Which constraints to look at: new ones in random order, seen ones by their risk.

Where a call returns many constraints, a case, its worst one stands for all of them; one
that could not be looked at counts as `UNKNOWN`.

Nothing here has the length of the problem. A keyed permutation gives the constraints in
random order without a list of them. Of those seen, the last value is kept with the
point where it was seen: a constraint whose value rises by at most `rate` per unit of
distance can have become violated only if ``value + rate * distance > 0``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, FrozenArrays, IntArray, freeze, is_among
from dszog.methods.sampled_sqp.looks import UNKNOWN

MOST_SEEN = 2**20  # constraints whose last value is kept
MOST_POINTS = 256  # points where these were seen
MOST_RATES = 2000  # observed rates of change that are kept
RATE_QUANTILE, RATE_MARGIN = 0.995, 1.2
ENOUGH_RATES = 200

# ------------------------------------------------------------------ a keyed permutation

ROUNDS = 6


def permuted(positions: IntArray, n: int, key: int) -> IntArray:
    """Return the entries of a random permutation of ``range(n)`` at these positions.

    A Feistel network on the smallest even number of bits that holds ``n``; what falls
    outside of the range is sent through again until it does not (cycle-walking).
    """
    half = max((max(n - 1, 1).bit_length() + 1) // 2, 1)
    found = np.asarray(positions, dtype=np.uint64)
    outside = np.ones(len(found), dtype=bool)
    while outside.any():
        found[outside] = _network(found[outside], half, key)
        outside = found >= n
    return freeze(found.astype(np.int64))


def _network(numbers: NDArray[np.uint64], half: int, key: int) -> NDArray[np.uint64]:
    width, mask = np.uint64(half), np.uint64(2**half - 1)
    left, right = numbers >> width, numbers & mask
    for i in range(ROUNDS):
        word = (key * 0x9E3779B97F4A7C15 + i * 0xD1B54A32D192ED03) % 2**64
        left, right = right, left ^ (_mixed(right + np.uint64(word)) & mask)
    return (left << width) | right


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return words in which every bit depends on all bits of the given ones."""
    with np.errstate(over="ignore"):
        words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def beside(around: IntArray, n: int, n_all: int, rng: np.random.Generator) -> IntArray:
    """Return some `n`, or fewer, that are on all scales close to given ones.

    Neighbours are often alike, as moments in a row are; where they are not, these are
    as good as any.
    """
    if not len(around):
        return around
    far = np.rint(n_all ** rng.uniform(0.0, 0.5, n)) * rng.choice([-1.0, 1.0], n)
    return np.unique((rng.choice(around, n) + far.astype(np.int64)) % n_all)


# ------------------------------------------------------------------------ what was seen


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Seen(FrozenArrays):
    """The last value of each constraint that was seen, and how fast values change."""

    indices: IntArray  # (k,), of constraints or of cases, ascending
    values: FloatArray  # (k,)
    places: IntArray  # (k,), where each was seen: rows of `points`
    points: FloatArray  # (p, dim), in scaled variables; the last is the latest
    n_drawn: int  # calls drawn in this pass through all of them
    n_passes: int  # passes that are over
    rates: FloatArray  # observed changes per distance, the latest ones
    first_rate: float  # from the slopes of the first members
    rate: float  # of change per distance that is believed
    least_rate: float  # learned from violations that were overlooked

    @classmethod
    def nothing(cls, dim: int) -> Seen:
        """Return the memory of a run that has seen nothing."""
        none = np.empty(0, dtype=np.int64)
        return cls(
            indices=none,
            values=np.empty(0),
            places=none,
            points=np.empty((0, dim)),
            n_drawn=0,
            n_passes=0,
            rates=np.empty(0),
            first_rate=0.0,
            rate=0.0,
            least_rate=0.0,
        )

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes and indices are those of what such a problem shows."""
        k, p = len(self.indices), len(self.points)
        return bool(
            self.indices.shape == self.values.shape == self.places.shape == (k,)
            and self.points.shape == (p, size.dim)
            and (np.diff(self.indices) > 0).all()
            and (self.indices >= 0).all()
            and (self.indices < size.n_cases).all()
            and (self.places >= 0).all()
            and (self.places < max(p, 1)).all()
            and self.rates.ndim == 1
            and 0 <= self.n_drawn <= size.n_constraint_calls
            and self.n_passes >= 0
        )

    def all_drawn(self, size: ProblemSize) -> bool:
        """Whether every constraint was seen at least once."""
        return self.n_passes > 0 or self.n_drawn >= size.n_constraint_calls

    def draw(
        self, n_wanted: int, size: ProblemSize, seed: int
    ) -> tuple[IntArray, Seen]:
        """Return constraints not seen in this pass, whole calls, in random order."""
        n_calls = size.n_constraint_calls
        if n_wanted <= 0 or not n_calls:
            return np.empty(0, dtype=np.int64), self
        start = 0 if self.n_drawn >= n_calls else self.n_drawn
        n_passes = self.n_passes + (self.n_drawn >= n_calls)
        per_call = size.n_constraints / n_calls
        n = min(max(round(n_wanted / per_call), 1), n_calls - start)
        key = 2 * (seed + n_passes) + 1
        drawn = permuted(np.arange(start, start + n), n_calls, key)
        if size.calls is not None:
            drawn = size.calls.served_by(np.sort(drawn))
        return np.sort(drawn), replace(self, n_drawn=start + n, n_passes=n_passes)

    def distances(self, z: FloatArray) -> FloatArray:
        """Return how far each seen constraint's point is from a point."""
        far: FloatArray = np.linalg.norm(self.points - z, axis=1)[self.places]
        return far

    def risks(self, z: FloatArray) -> FloatArray:
        """Return what each may have risen to at a point; positive: perhaps violated."""
        found: FloatArray = self.values + self.rate * self.distances(z)
        return found

    def with_values(self, indices: IntArray, values: FloatArray, z: FloatArray) -> Seen:
        """Take in what was seen at a point; learn how fast values change."""
        order = np.argsort(indices, kind="stable")
        indices, values = indices[order], values[order]
        known = self._learned(indices, values, z)
        points = np.vstack([known.points, z])
        kept = ~is_among(known.indices, indices)
        all_indices = np.concatenate([known.indices[kept], indices])
        all_values = np.concatenate([known.values[kept], values])
        all_places = np.concatenate(
            [known.places[kept], np.full(len(indices), len(points) - 1)]
        )
        order = np.argsort(all_indices, kind="stable")
        merged = replace(
            known,
            indices=all_indices[order],
            values=all_values[order],
            places=all_places[order],
            points=points,
        )
        return merged._with_fewer_points()._with_fewer_values(z)

    def _learned(self, indices: IntArray, values: FloatArray, z: FloatArray) -> Seen:
        """Return the same with the rate that these values teach."""
        if not len(self.indices):
            return self
        at = np.minimum(np.searchsorted(self.indices, indices), len(self.indices) - 1)
        again = self.indices[at] == indices
        at = at[again]
        far = self.distances(z)[at]
        moved = far > 1e-9 * (1e-300 + np.abs(z).max(initial=0.0))
        moved &= (values[again] < UNKNOWN) & (self.values[at] < UNKNOWN)
        at, now, far = at[moved], values[again][moved], far[moved]
        if not len(at):
            return self
        rates = (now - self.values[at]) / far
        kept = np.concatenate([self.rates, rates])[-MOST_RATES:]
        rate, least = self.rate, self.least_rate
        if len(kept) > ENOUGH_RATES:
            quantile = float(np.quantile(kept, RATE_QUANTILE))
            rate = max(self.first_rate / 3.0, RATE_MARGIN * quantile, least)
        missed = (now > 0) & (self.values[at] + rate * far <= 0)
        if missed.any():
            least = rate = max(rate, RATE_MARGIN * float(rates[missed].max()))
        return replace(self, rates=kept, rate=rate, least_rate=least)

    def _with_fewer_points(self) -> Seen:
        """Move what was seen longest ago to the point after it, at a higher value."""
        if len(self.points) <= MOST_POINTS:
            return self
        used = np.unique(np.append(self.places, len(self.points) - 1))
        places = np.searchsorted(used, self.places)
        points, values = self.points[used], np.array(self.values)
        n_over = max(len(points) - MOST_POINTS // 2, 0)
        if n_over:
            far = np.linalg.norm(points[:n_over] - points[n_over], axis=1)
            old = places < n_over
            values[old] += self.rate * far[places[old]]
            places = np.maximum(places - n_over, 0)
            points = points[n_over:]
        return replace(self, places=places, points=points, values=values)

    def _with_fewer_values(self, z: FloatArray) -> Seen:
        """Forget the safest where there are too many."""
        n_over = len(self.indices) - MOST_SEEN
        if n_over <= 0:
            return self
        drop = np.argpartition(self.risks(z), n_over + MOST_SEEN // 16)
        kept = np.sort(drop[n_over + MOST_SEEN // 16 :])
        return replace(
            self,
            indices=self.indices[kept],
            values=self.values[kept],
            places=self.places[kept],
        )
