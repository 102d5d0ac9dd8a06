r"""All `m` weights in one array: the paper's update as it is printed.

This is the reference that :mod:`dszog.maths.distribution.sparse` is held to, and costs
:math:`O(m \log m)` an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.kernels.projection import project_onto_simplex
from dszog.kernels.tables import DualStep
from dszog.maths.distribution.base import inverse_draws


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class DenseDistribution:
    """Weights :math:`p`, averaged gradient :math:`z_p` and remembered penalties."""

    weights: FloatArray  # (m,)
    gradient: FloatArray  # (m,)
    memory: FloatArray  # (m,), read by the centred estimate only

    def __post_init__(self) -> None:
        for name in ("weights", "gradient", "memory"):
            object.__setattr__(self, name, frozen_floats(getattr(self, name)))

    @property
    def n_constraints(self) -> int:
        """The number of constraints, :math:`m`."""
        return len(self.weights)

    @classmethod
    def from_penalties(
        cls, n_constraints: int, indices: IntArray, penalties: FloatArray, scale: float
    ) -> Self:
        r"""Start at :math:`\Pi_\Delta(\beta \phi / \lambda)`."""
        values = np.zeros(n_constraints)
        values[indices] = scale * penalties
        return cls._at(project_onto_simplex(values))

    @classmethod
    def from_weights(
        cls, n_constraints: int, indices: IntArray, weights: FloatArray
    ) -> Self:
        """Start at given weights; what they leave of 1 is shared by all others."""
        n_others = n_constraints - len(indices)
        left = max(1.0 - float(weights.sum()), 0.0)
        full = np.full(n_constraints, left / max(n_others, 1))
        full[indices] = weights
        return cls._at(full / full.sum())

    @classmethod
    def _at(cls, weights: FloatArray) -> Self:
        zeros = np.zeros_like(weights)
        return cls(weights=weights, gradient=zeros, memory=zeros)

    def learn(
        self, indices: IntArray, penalties: FloatArray, step: DualStep, spread: float
    ) -> Self:
        """Estimate the gradient in the weights, then take one step along it."""
        b, factor = step.averaging, step.penalty * spread
        estimate = -step.ridge * self.weights  # Alg. 1, line 13
        memory = self.memory
        if step.centred:
            estimate += step.penalty * memory
            estimate[indices] += factor * (penalties - memory[indices])
            memory = memory.copy()
            memory[indices] = penalties
        else:
            estimate[indices] += factor * penalties
        gradient = (1 - b) * self.gradient + b * estimate  # line 15
        scale = step.scale(np.sqrt(np.square(gradient).sum()))
        target = project_onto_simplex(self.weights + scale * gradient)  # line 6
        weights = (1 - step.mixing) * self.weights + step.mixing * target  # line 7
        return type(self)(
            weights=weights / weights.sum(), gradient=gradient, memory=memory
        )

    def weights_of(self, indices: IntArray) -> FloatArray:
        """Return the weights of some constraints."""
        return self.weights[indices]

    def sample(self, rng: np.random.Generator, size: int) -> IntArray:
        """Draw constraints with probabilities :math:`p`, with repeats, ascending."""
        return inverse_draws(rng, self.weights, 0.0, size)

    def touched(self) -> tuple[IntArray, FloatArray]:
        """Return the constraints of positive weight, and the weights."""
        indices = np.flatnonzero(self.weights)
        return indices, self.weights[indices]

    def dense(self) -> FloatArray:
        """Return all `m` weights."""
        return self.weights
