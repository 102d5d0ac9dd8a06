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
        return cls(n_constraints=n_constraints)

    @classmethod
    def from_weights(
        cls, n_constraints: int, indices: IntArray, weights: FloatArray
    ) -> Self:
        return cls(n_constraints=n_constraints)

    def learn(
        self, indices: IntArray, penalties: FloatArray, step: DualStep, spread: float
    ) -> Self:
        return self

    def weights_of(self, indices: IntArray) -> FloatArray:
        return np.full(len(indices), 1.0 / self.n_constraints)

    def sample(self, rng: np.random.Generator, size: int) -> IntArray:
        drawn = rng.integers(self.n_constraints, size=size)
        drawn.sort()
        return drawn

    def touched(self) -> tuple[IntArray, FloatArray]:
        return NO_INDICES, np.empty(0)

    def dense(self) -> FloatArray:
        return np.full(self.n_constraints, 1.0 / self.n_constraints)
