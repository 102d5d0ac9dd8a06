r"""The same weights as in :mod:`~dszog.maths.distribution.dense`, whatever `m` is.

Every constraint that was never drawn with a positive penalty has followed the same
recursion from the same start, so all of them hold the same pair of weight and averaged
gradient. Only the others, the *touched* ones, need storing; the rest is the
*background*: one weight and one gradient for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray, freeze
from dszog.errors import InputError
from dszog.kernels import chosen
from dszog.kernels.plain import background, merged, weights_of
from dszog.kernels.projection import project_with_background
from dszog.kernels.tables import DualStep, SparseWeights
from dszog.maths.distribution.base import inverse_draws
from dszog.maths.random_stream import random_indices


@dataclass(frozen=True, eq=False)
class SparseDistribution(SparseWeights):
    """Touched constraints in ascending order, and one background for all others."""

    @property
    def n_background(self) -> int:
        """How many constraints share the background."""
        return self.n_constraints - len(self.indices)

    @classmethod
    def from_penalties(
        cls, n_constraints: int, indices: IntArray, penalties: FloatArray, scale: float
    ) -> Self:
        r"""Start at :math:`\Pi_\Delta(\beta \phi / \lambda)`."""
        weights, background = project_with_background(
            scale * penalties, 0.0, n_constraints - len(indices)
        )
        return cls._at(n_constraints, indices, weights, background)

    @classmethod
    def from_weights(
        cls, n_constraints: int, indices: IntArray, weights: FloatArray
    ) -> Self:
        """Start at given weights; what they leave of 1 is shared by all others."""
        n_others = n_constraints - len(indices)
        left = max(1.0 - float(weights.sum()), 0.0) / max(n_others, 1)
        total = float(weights.sum()) + n_others * left
        return cls._at(n_constraints, indices, weights / total, left / total)

    @classmethod
    def _at(
        cls, n_constraints: int, indices: IntArray, weights: FloatArray, rest: float
    ) -> Self:
        zeros = np.zeros(len(indices))
        # Copies: what is given stays the caller's.
        columns = np.array(indices), np.array(weights), zeros, zeros.copy()
        start = merged(*columns, rest, 0.0, n_constraints - len(indices))
        return cls(n_constraints, *start)

    def learn(
        self, indices: IntArray, penalties: FloatArray, step: DualStep, spread: float
    ) -> Self:
        """Estimate the gradient in the weights, then take one step along it."""
        learned: Self | None = chosen().learn(self, indices, penalties, step, spread)
        if learned is None:
            raise InputError(
                "SparseDistribution: penalties and steps must be finite, also squared, "
                "got larger ones. Scale the constraints, or lower the penalty."
            )
        return learned

    def weights_of(self, indices: IntArray) -> FloatArray:
        """Return the weights of some constraints."""
        return weights_of(self, indices)

    def sample(self, rng: np.random.Generator, size: int) -> IntArray:
        """Draw constraints with probabilities :math:`p`, with repeats, ascending."""
        rest = self.n_background * self.background_weight
        places = inverse_draws(rng, self.weights, rest, size)
        if rest == 0.0:  # places ascend, and so do the indices
            return freeze(self.indices.take(places))
        ranks = random_indices(rng, self.n_background, size)
        n_touched = int(np.searchsorted(places, len(self.indices)))
        others = background(self.indices, ranks[n_touched:])
        drawn = np.concatenate([self.indices[places[:n_touched]], others])
        drawn.sort()
        return freeze(drawn)

    def touched(self) -> tuple[IntArray, FloatArray]:
        """Return the constraints that have a weight of their own, and the weights."""
        return self.indices, self.weights

    def dense(self) -> FloatArray:
        """Return all `m` weights; for tests and pictures at moderate `m`."""
        full = np.full(self.n_constraints, self.background_weight)
        full[self.indices] = self.weights
        return full
