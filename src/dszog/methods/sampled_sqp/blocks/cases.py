"""The working set of cases: each with a linear model of all its limits.

A case is one call of the user's function, which returns all its limits at a point. So
`dim` calls give the slopes of all of them; they are kept, and corrected by every later
value of the case (Broyden's rank-one update). A case that joins borrows the slopes of
the member that is most like it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.methods.sampled_sqp.looks import are_indices

ALIKE_LIMITS = 40  # the largest limits, by which cases are compared
FOREIGN = 0.02  # usual sizes: by so much slopes that are a case's own are preferred


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Cases:
    """Cases with linear models of their limits in scaled variables."""

    numbers: IntArray  # (k,), of the cases, in the order in which they joined
    values: FloatArray  # (k, width), at the bases
    slopes: FloatArray  # (k, width, dim)
    bases: FloatArray  # (k, dim), where each was last looked at
    own: IntArray  # (k,), 1: its slopes were learned, not borrowed
    strikes: IntArray  # (k,), steps that failed because of it since they were learned
    multipliers: FloatArray  # (k, width)

    def __post_init__(self) -> None:
        for name in ("values", "slopes", "bases", "multipliers"):
            object.__setattr__(self, name, frozen_floats(getattr(self, name)))
        for name in ("numbers", "own", "strikes"):
            object.__setattr__(self, name, frozen_ints(getattr(self, name)))

    @classmethod
    def none(cls, width: int, dim: int) -> Cases:
        """Return a set without members."""
        nothing = np.empty(0, dtype=np.int64)
        return cls(
            numbers=nothing,
            values=np.empty((0, width)),
            slopes=np.empty((0, width, dim)),
            bases=np.empty((0, dim)),
            own=nothing,
            strikes=nothing,
            multipliers=np.empty((0, width)),
        )

    def __len__(self) -> int:
        return len(self.numbers)

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes and numbers are those of cases of such a problem."""
        k, width, dim = self.slopes.shape
        return (
            size.calls is not None
            and size.block_width == width
            and dim == size.dim
            and are_indices(self.numbers, size.n_constraint_calls)
            and self.values.shape == self.multipliers.shape == (k, width)
            and self.bases.shape == (k, dim)
            and self.numbers.shape == self.own.shape == self.strikes.shape == (k,)
        )

    def at(self, z: FloatArray) -> FloatArray:
        """Return what the models say at a point, a row for each case."""
        moves = z - self.bases
        return np.array(self.values + np.einsum("kwd,kd->kw", self.slopes, moves))

    def places(self, numbers: IntArray) -> IntArray:
        """Return the places of those of these cases that are members."""
        return np.flatnonzero(np.isin(self.numbers, numbers))

    # ------------------------------------------------------------------------- learning

    def most_like(self, values: FloatArray) -> int:
        """Return the member whose limits are nearest to these, at the largest ones."""
        largest = np.argsort(-values, kind="stable")[:ALIKE_LIMITS]
        apart = np.abs(self.values[:, largest] - values[largest]).max(axis=1)
        usual = float(np.median(np.abs(values))) or 1.0
        return int(np.argmin(apart + FOREIGN * usual * (self.own == 0)))

    def joined(
        self,
        number: int,
        values: FloatArray,
        z: FloatArray,
        slopes: FloatArray | None = None,
    ) -> Cases:
        """Return the set with another case; with borrowed slopes if none are given."""
        own = slopes is not None
        if slopes is None:
            slopes = self.slopes[self.most_like(values)]
        return Cases(
            numbers=np.append(self.numbers, number),
            values=np.vstack([self.values, values]),
            slopes=np.concatenate([self.slopes, slopes[np.newaxis]]),
            bases=np.vstack([self.bases, z]),
            own=np.append(self.own, int(own)),
            strikes=np.append(self.strikes, 0),
            multipliers=np.vstack([self.multipliers, np.zeros(len(values))]),
        )

    def learned(
        self, place: int, values: FloatArray, slopes: FloatArray, z: FloatArray
    ) -> Cases:
        """Return the set with slopes of its own for the member at this place.

        What differences did not tell stays as it was.
        """
        all_values, all_slopes = np.array(self.values), np.array(self.slopes)
        bases, own = np.array(self.bases), np.array(self.own)
        strikes = np.array(self.strikes)
        known = np.where(np.isnan(slopes), all_slopes[place], slopes)
        all_values[place], all_slopes[place], bases[place] = values, known, z
        own[place], strikes[place] = 1, 0
        return replace(
            self,
            values=all_values,
            slopes=all_slopes,
            bases=bases,
            own=own,
            strikes=strikes,
        )

    def corrected(self, places: IntArray, values: FloatArray, z: FloatArray) -> Cases:
        """Return the set with models that agree with values at a point."""
        moves = z - self.bases[places]
        lengths = np.einsum("kd,kd->k", moves, moves)
        misses = values - self.values[places]
        misses = misses - np.einsum("kwd,kd->kw", self.slopes[places], moves)
        factors = np.where(lengths > 0, 1.0 / np.where(lengths > 0, lengths, 1.0), 0.0)
        all_slopes, all_values = np.array(self.slopes), np.array(self.values)
        bases = np.array(self.bases)
        along = factors[:, np.newaxis] * moves
        all_slopes[places] += misses[:, :, np.newaxis] * along[:, np.newaxis, :]
        all_values[places], bases[places] = values, z
        return replace(self, slopes=all_slopes, values=all_values, bases=bases)

    def struck(self, place: int) -> Cases:
        """Return the set with another failed step held against a member."""
        strikes = np.array(self.strikes)
        strikes[place] += 1
        return replace(self, strikes=strikes)

    def kept(self, places: IntArray) -> Cases:
        """Return the members at these places."""
        return Cases(
            numbers=self.numbers[places],
            values=self.values[places],
            slopes=self.slopes[places],
            bases=self.bases[places],
            own=self.own[places],
            strikes=self.strikes[places],
            multipliers=self.multipliers[places],
        )
