"""The working set: constraints that matter, each with a linear model that is kept.

A model is learned by differences when its constraint joins. Every later value corrects
it along the step that was made (Broyden's rank-one update), so that linear constraints
are learned once and for all.

All models are of *unit size*: values and slopes are divided by the length of the slope
when the constraint joined. A multiplier or a violation then means the same for each,
whatever the units of the user's functions are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import BoolArray, FloatArray, FrozenArrays, IntArray
from dszog.methods.sampled_sqp.elastic_qp import LinearModels
from dszog.methods.sampled_sqp.looks import are_indices

WITHIN = 10.0  # usual lengths: limits of a case that are farther off are left out
BENT = 1e-5  # a model that misses by this share of its change is not linear
NOBODY = -1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WorkingSet(FrozenArrays):
    """Constraints with linear models in scaled variables."""

    indices: IntArray  # (k,), of the constraints, in the order in which they joined
    sizes: FloatArray  # (k,), raw values are divided by these
    values: FloatArray  # (k,), of unit size, at the bases
    slopes: FloatArray  # (k, dim)
    bases: FloatArray  # (k, dim), where each was last looked at, in scaled variables
    multipliers: FloatArray  # (k,)
    bent: IntArray  # (k,), 1: was found not to be linear
    opposites: IntArray  # (k,), the constraint that is the negative of this one, or -1
    stale: IntArray  # (k,), 1: was corrected, or borrowed, since it was learned

    @classmethod
    def empty(cls, dim: int) -> WorkingSet:
        """Return a set without members."""
        none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
        return cls(
            indices=none,
            sizes=nothing,
            values=nothing,
            slopes=np.empty((0, dim)),
            bases=np.empty((0, dim)),
            multipliers=nothing,
            bent=none,
            opposites=none,
            stale=none,
        )

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes and indices are those of members of such a problem."""
        k = len(self.indices)
        vectors = (self.sizes, self.values, self.multipliers)
        marks = (self.bent, self.opposites, self.stale)
        tables = (self.slopes, self.bases)
        return (
            are_indices(self.indices, size.n_constraints)
            and all(vector.shape == (k,) for vector in (*vectors, *marks))
            and all(table.shape == (k, size.dim) for table in tables)
        )

    def __len__(self) -> int:
        return len(self.indices)

    def at(self, z: FloatArray) -> FloatArray:
        """Return what the models say at a point."""
        found: FloatArray = self.values + np.einsum(
            "ij,ij->i", self.slopes, z - self.bases
        )
        return found

    @property
    def usual_size(self) -> float:
        """The median of the sizes; 1 of no members."""
        return float(np.median(self.sizes)) if len(self) else 1.0

    @property
    def raw_values(self) -> FloatArray:
        """The values at the bases, in units of the constraints."""
        return self.values * self.sizes

    @property
    def raw_slopes(self) -> FloatArray:
        """The slopes, in units of the constraints."""
        return self.slopes * self.sizes[:, np.newaxis]

    @property
    def is_bent(self) -> BoolArray:
        """Which members were found not to be linear."""
        return np.asarray(self.bent == 1)

    def kept(self, which: IntArray) -> WorkingSet:
        """Return the members at these places."""
        parts = {part.name: getattr(self, part.name)[which] for part in fields(self)}
        return WorkingSet(**parts)

    def changed(self, which: IntArray | BoolArray, **entries: Any) -> WorkingSet:
        """Return the set with other entries of some parts at these places."""
        parts = {name: np.array(getattr(self, name)) for name in entries}
        for name, values in entries.items():
            parts[name][which] = values
        return replace(self, **parts)

    # ------------------------------------------------------------------------- learning

    def joined(
        self, indices: IntArray, raw: FloatArray, slopes: FloatArray, z: FloatArray
    ) -> WorkingSet:
        """Return the set with new members, learned at a point."""
        lengths = np.linalg.norm(slopes, axis=1)
        least = np.maximum(np.abs(raw), 1e-3 * self.usual_size)
        sizes = np.where(lengths > 0, lengths, least)
        likely_bent = len(self) > 0 and 2 * int(self.bent.sum()) > len(self)
        more = WorkingSet(
            indices=np.concatenate([self.indices, indices]),
            sizes=np.concatenate([self.sizes, sizes]),
            values=np.concatenate([self.values, raw / sizes]),
            slopes=np.vstack([self.slopes, slopes / sizes[:, np.newaxis]]),
            bases=np.vstack([self.bases, np.tile(z, (len(indices), 1))]),
            multipliers=np.concatenate([self.multipliers, np.zeros(len(indices))]),
            bent=np.concatenate([self.bent, np.full(len(indices), int(likely_bent))]),
            opposites=np.concatenate([self.opposites, np.full(len(indices), NOBODY)]),
            stale=np.concatenate([self.stale, np.zeros(len(indices), dtype=np.int64)]),
        )
        return more._paired(len(self))

    def borrowed(
        self, which: IntArray, indices: IntArray, raw: FloatArray, z: FloatArray
    ) -> WorkingSet:
        """Return the set with new members, with slopes of those at these places."""
        slopes = self.slopes[which] * self.sizes[which, np.newaxis]
        more = self.joined(indices, raw, slopes, z)
        return more.marked(np.arange(len(self), len(more)))

    def marked(self, which: IntArray | BoolArray) -> WorkingSet:
        """Return the set with those marked whose slopes are not known for sure."""
        return self.changed(which, bent=1, stale=1)

    def _paired(self, first: int) -> WorkingSet:
        """Find members whose value and slope are the negatives of another's.

        An equality arrives as two such inequalities, exact negatives to the last bit.
        """
        opposites = np.array(self.opposites)
        by_bits: dict[bytes, int] = {}
        for i in range(first, len(self)):
            model = np.append(self.slopes[i], self.values[i]) + 0.0
            other = by_bits.pop((-model + 0.0).tobytes(), None)
            if other is None or not model.any():
                by_bits[model.tobytes()] = i
                continue
            opposites[i], opposites[other] = self.indices[other], self.indices[i]
        return replace(self, opposites=opposites)

    def learned_anew(
        self, which: IntArray, raw: FloatArray, slopes: FloatArray, z: FloatArray
    ) -> WorkingSet:
        """Return the set with fresh models for the members at these places."""
        sizes = self.sizes[which]
        fresh = slopes / sizes[:, np.newaxis]
        fresh = np.where(np.isnan(fresh), self.slopes[which], fresh)
        return self.changed(which, values=raw / sizes, slopes=fresh, bases=z, stale=0)

    def corrected(
        self,
        which: IntArray,
        values: FloatArray,
        z: FloatArray,
        iterate: FloatArray | None = None,
    ) -> WorkingSet:
        """Return the set with models that agree with unit-size values at a point.

        Those that agree with values at the iterate, if one is given, go on to do so.
        """
        slopes, bases = self.slopes[which], self.bases[which]
        moves = z - bases
        lengths = np.einsum("ij,ij->i", moves, moves)
        misses = values - self.values[which] - np.einsum("ij,ij->i", slopes, moves)
        moved = lengths > 0
        factors = np.where(moved, misses / np.where(moved, lengths, 1.0), 0.0)
        stays = np.zeros(len(which), dtype=bool)
        if iterate is not None:
            stays = (bases == iterate).all(axis=1)
        return self.changed(
            which,
            slopes=slopes + factors[:, np.newaxis] * moves,
            values=np.where(stays, self.values[which], values),
            bases=np.where(stays[:, np.newaxis], bases, z),
            stale=self.stale[which] | moved,
        )

    def with_bends(
        self, which: IntArray, values: FloatArray, z: FloatArray
    ) -> WorkingSet:
        """Return the set with those marked that a value shows not to be linear."""
        moves = z - self.bases[which]
        changes = np.einsum("ij,ij->i", self.slopes[which], moves)
        misses = np.abs(values - self.values[which] - changes)
        lengths = np.linalg.norm(moves, axis=1)
        rounding = 1e-13 * (np.abs(values) + np.abs(self.values[which]))
        is_bent = misses > BENT * lengths + rounding
        return self.changed(which, bent=self.bent[which] | is_bent)

    # ----------------------------------------------------------------------- subproblem

    def _partners(self) -> IntArray:
        """Return the place of each member's opposite; -1 if that is no member."""
        place = {int(index): i for i, index in enumerate(self.indices)}
        found = [place.get(int(index), NOBODY) for index in self.opposites]
        return np.array(found, dtype=np.int64)

    def rows(self, offsets: FloatArray) -> tuple[LinearModels, IntArray]:
        """Return the rows of the subproblem, and the member that each stands for.

        Of a constraint and its opposite one row is left, which is two-sided.
        """
        partners = self._partners()
        two_sided = partners != NOBODY
        members = np.flatnonzero(~two_sided | (partners > np.arange(len(self))))
        rows = LinearModels(
            slopes=self.slopes[members],
            offsets=offsets[members],
            two_sided=two_sided[members],
        )
        return rows, members

    def signed_multipliers(self, members: IntArray) -> FloatArray:
        """Return the multipliers of the rows; of an equality either sign."""
        partners = self._partners()[members]
        others = np.where(partners == NOBODY, 0.0, self.multipliers[partners])
        return self.multipliers[members] - others

    def with_multipliers(self, members: IntArray, found: FloatArray) -> WorkingSet:
        """Return the set with multipliers of rows; a negative one is the opposite's."""
        multipliers = np.zeros(len(self))
        multipliers[members] = np.maximum(found, 0.0)
        multipliers[self._partners()[members[found < 0]]] = -found[found < 0]
        return replace(self, multipliers=multipliers)

    def within(self, far: float, z: FloatArray) -> WorkingSet:
        """Return the members that may be violated so far from a point."""
        has_slope = self.slopes.any(axis=1)
        return self.kept(np.flatnonzero(self.at(z) > np.where(has_slope, -far, 0.0)))

    def trimmed(self, most: int, z: FloatArray) -> WorkingSet:
        """Return the set without the safest members where there are too many."""
        if len(self) <= most:
            return self
        needed = (self.multipliers > 0) | (self.opposites != NOBODY)
        scores = np.where(needed, np.inf, self.at(z))
        return self.kept(np.sort(np.argsort(-scores, kind="stable")[:most]))
