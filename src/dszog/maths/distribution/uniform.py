r"""Equal weights that never change: the mean penalty, without a dual step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray
from dszog.kernels.tables import DualStep


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class UniformDistribution:
    r"""The weight :math:`1/m` on every constraint."""

    n_constraints: int

    @classmethod
    def from_penalties(
        cls, n_constraints: int, indices: IntArray, penalties: FloatArray, scale: float
    ) -> Self:
        """Start, and stay, at equal weights."""
        return cls(n_constraints=n_constraints)

    @classmethod
    def from_weights(
        cls, n_constraints: int, indices: IntArray, weights: FloatArray
    ) -> Self:
        """Start, and stay, at equal weights."""
        return cls(n_constraints=n_constraints)

    def learn(
        self,
        indices: IntArray,
        penalties: FloatArray,
        step: DualStep,
        first: bool,
        spread: float | None = None,
    ) -> Self:
        """Learn nothing."""
        return self

    def weights_of(self, indices: IntArray) -> FloatArray:
        """Return the weights of some constraints, which are equal."""
        return np.full(len(indices), 1.0 / self.n_constraints)

    def sample(self, rng: np.random.Generator, size: int) -> IntArray:
        """Draw constraints uniformly, with repeats, ascending."""
        drawn = rng.integers(self.n_constraints, size=size)
        drawn.sort()
        return drawn

    def touched(self) -> tuple[IntArray, FloatArray]:
        """Return nothing: no constraint has a weight of its own."""
        return NO_INDICES, np.empty(0)

    def dense(self) -> FloatArray:
        """Return all `m` weights."""
        return np.full(self.n_constraints, 1.0 / self.n_constraints)
