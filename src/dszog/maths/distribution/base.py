r"""What every distribution over the constraints can do."""

from __future__ import annotations

from typing import Protocol, Self

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import DszogError
from dszog.kernels import chosen
from dszog.kernels.tables import DualStep


class Distribution(Protocol):
    r"""The weights :math:`p` over `m` constraints, with their averaged gradient.

    Immutable: every change returns a new distribution.
    """

    @property
    def n_constraints(self) -> int: ...

    @classmethod
    def from_penalties(
        cls, n_constraints: int, indices: IntArray, penalties: FloatArray, scale: float
    ) -> Self:
        r"""Start at the maximiser :math:`p^* = \Pi_\Delta(\beta \phi / \lambda)`.

        `indices` ascend; the penalty of every other constraint counts as 0. `scale` is
        :math:`\beta / \lambda`.
        """
        ...

    @classmethod
    def from_weights(
        cls, n_constraints: int, indices: IntArray, weights: FloatArray
    ) -> Self:
        """Start at given weights; what they leave of 1 is shared by all others."""
        ...

    def learn(
        self, indices: IntArray, penalties: FloatArray, step: DualStep, spread: float
    ) -> Self:
        r"""Take one step towards the constraints that were found violated.

        `indices` are a uniform draw without repeats, the paper's :math:`M_3`,
        ascending, each of which stands for `spread` constraints.
        """
        ...

    def weights_of(self, indices: IntArray) -> FloatArray:
        """Return the weights of some constraints."""
        ...

    def sample(self, rng: np.random.Generator, size: int) -> IntArray:
        """Draw constraints with probabilities :math:`p`, with repeats, ascending."""
        ...

    def touched(self) -> tuple[IntArray, FloatArray]:
        """Return the constraints that have a weight of their own, and the weights."""
        ...

    def dense(self) -> FloatArray:
        """Return all `m` weights; for tests and pictures at moderate `m`."""
        ...


def inverse_draws(
    rng: np.random.Generator, weights: FloatArray, rest: float, size: int
) -> IntArray:
    """Draw positions with probabilities proportional to `weights`, with repeats."""
    # Ascending. A position of weight 0 is never drawn; one past the last stands for the
    # `rest`, which none of the positions holds.
    uniforms = rng.random(size)
    uniforms.sort()
    found: IntArray | None = chosen().places(weights, rest, uniforms)
    if found is None:
        total = np.sum(weights) + rest
        raise DszogError(
            f"Weights to draw from must be finite and not all 0, got a sum of {total}. "
            "This is a bug in dszog: please report it."
        )
    return found
