r"""The same weights as in :mod:`~dszog.maths.distribution.dense`, whatever `m` is.

Every constraint that was never drawn with a positive penalty has followed the same
recursion from the same start, so all of them hold the same pair of weight and averaged
gradient. Only the others, the *touched* ones, need storing; the rest is the
*background*: one weight and one gradient for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dszog.contract.arrays import (
    FloatArray,
    IntArray,
    freeze,
    frozen_floats,
    frozen_ints,
)
from dszog.kernels import steps
from dszog.maths.distribution.base import DualStep, inverse_draws
from dszog.maths.distribution.projection import project_with_background
from dszog.maths.random_stream import random_indices

# A touched constraint rejoins the background when its difference from it is below the
# rounding of the totals: nothing that could be seen in the dense form is lost.
MERGE_WEIGHT = 1e-18  # of the sum of the weights, which is 1
MERGE_GRADIENT = 1e-18  # of the norm of the averaged gradient


@dataclass(frozen=True, eq=False, kw_only=True)
class SparseDistribution:
    """Touched constraints in ascending order, and one background for all others."""

    n_constraints: int
    indices: IntArray  # (k,), ascending
    weights: FloatArray  # (k,)
    gradient: FloatArray  # (k,)
    memory: FloatArray  # (k,), remembered penalties; 0 in the background
    background_weight: float
    background_gradient: float

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
        zeros = freeze(np.zeros(len(indices)))
        start = cls(
            n_constraints=n_constraints,
            indices=freeze(np.array(indices)),  # copies: the caller keeps theirs
            weights=freeze(np.array(weights)),
            gradient=zeros,
            memory=zeros,
            background_weight=rest,
            background_gradient=0.0,
        )
        return start._merge()

    def learn(
        self,
        indices: IntArray,
        penalties: FloatArray,
        step: DualStep,
        first: bool,
        spread: float | None = None,
    ) -> Self:
        """Estimate the gradient in the weights, then take one step along it."""
        kernels = steps()
        if kernels is None:
            return self._learn_plainly(indices, penalties, step, first, spread)
        room = len(self.indices) + len(indices)
        touched, table = np.empty(room, dtype=np.int64), np.empty((3, room))
        n_touched, background_weight, background_gradient = kernels.learn(
            self.indices,
            self.weights,
            self.gradient,
            self.memory,
            self.background_weight,
            self.background_gradient,
            self.n_constraints,
            frozen_ints(indices),
            frozen_floats(penalties),
            1.0 if first else step.averaging,
            step.mixing,
            step.step_size,
            step.step_eps,
            step.penalty,
            step.ridge,
            step.penalty * (spread or self.n_constraints / len(indices)),
            MERGE_WEIGHT,
            MERGE_GRADIENT,
            step.adaptive,
            step.centred,
            touched,
            table,
        )
        if n_touched < 0:  # the plain form says what is wrong
            return self._learn_plainly(indices, penalties, step, first, spread)
        return self.with_touched(
            touched, table, n_touched, background_weight, background_gradient
        )

    def with_touched(
        self,
        indices: IntArray,
        table: FloatArray,
        n_touched: int,
        background_weight: float,
        background_gradient: float,
    ) -> Self:
        """Return what a kernel has left behind in arrays that nobody else holds.

        The first `n_touched` columns of the table: weights, gradients, memories.
        """
        freeze(indices)
        freeze(table)  # and with it its rows
        if n_touched < len(indices):
            indices, table = indices[:n_touched], table[:, :n_touched]
        weights, gradient, memory = table
        return type(self)(
            n_constraints=self.n_constraints,
            indices=indices,
            weights=weights,
            gradient=gradient,
            memory=memory,
            background_weight=background_weight,
            background_gradient=background_gradient,
        )

    def _learn_plainly(
        self,
        indices: IntArray,
        penalties: FloatArray,
        step: DualStep,
        first: bool,
        spread: float | None,
    ) -> Self:
        """Do the same in plain NumPy; what the kernel is held against."""
        grown = self._touch(indices[penalties > 0.0])
        gradient, background_gradient, memory = grown._estimate(
            indices, penalties, step, first, spread
        )
        weights, background_weight = grown._ascend(gradient, background_gradient, step)
        moved = replace(
            grown,
            weights=freeze(weights),
            gradient=freeze(gradient),
            memory=freeze(memory),
            background_weight=background_weight,
            background_gradient=background_gradient,
        )
        return moved._merge()

    def _touch(self, violated: IntArray) -> Self:
        """Give each of these constraints a place of its own, with background values."""
        new = violated[~np.isin(violated, self.indices, assume_unique=True)]
        if not len(new):
            return self
        places = np.searchsorted(self.indices, new)
        return replace(
            self,
            indices=freeze(np.insert(self.indices, places, new)),
            weights=np.insert(self.weights, places, self.background_weight),
            gradient=np.insert(self.gradient, places, self.background_gradient),
            memory=np.insert(self.memory, places, 0.0),
        )

    def _estimate(
        self,
        indices: IntArray,
        penalties: FloatArray,
        step: DualStep,
        first: bool,
        spread: float | None,
    ) -> tuple[FloatArray, float, FloatArray]:
        b = 1.0 if first else step.averaging
        factor = step.penalty * (spread or self.n_constraints / len(indices))
        estimate = -step.ridge * self.weights  # Alg. 1, line 13
        background_estimate = -step.ridge * self.background_weight
        places = np.searchsorted(self.indices, indices)
        known = places < len(self.indices)
        known[known] = self.indices[places[known]] == indices[known]
        places, penalties = places[known], penalties[known]
        memory = self.memory
        if step.centred:
            estimate += step.penalty * memory
            estimate[places] += factor * (penalties - memory[places])
            memory = memory.copy()
            memory[places] = penalties
        else:
            estimate[places] += factor * penalties
        gradient = (1 - b) * self.gradient + b * estimate  # Alg. 1, line 15
        background = (1 - b) * self.background_gradient + b * background_estimate
        return gradient, background, memory

    def _ascend(
        self, gradient: FloatArray, background_gradient: float, step: DualStep
    ) -> tuple[FloatArray, float]:
        scale = step.scale(self._norm(gradient, background_gradient))
        target, background_target = project_with_background(  # Alg. 1, line 6
            self.weights + scale * gradient,
            self.background_weight + scale * background_gradient,
            self.n_background,
        )
        a = step.mixing
        weights = (1 - a) * self.weights + a * target  # Alg. 1, line 7
        background = (1 - a) * self.background_weight + a * background_target
        total = weights.sum() + self.n_background * background
        return weights / total, float(background / total)

    def _merge(self) -> Self:
        """Let the constraints that no longer differ from the background rejoin it."""
        keep = (
            (np.abs(self.weights - self.background_weight) > MERGE_WEIGHT)
            | (
                np.abs(self.gradient - self.background_gradient)
                > MERGE_GRADIENT * self._norm(self.gradient, self.background_gradient)
            )
            | (self.memory != 0.0)
        )
        if keep.all():
            return self
        return replace(
            self,
            indices=freeze(self.indices[keep]),
            weights=freeze(self.weights[keep]),
            gradient=freeze(self.gradient[keep]),
            memory=freeze(self.memory[keep]),
        )

    def _norm(self, gradient: FloatArray, background: float) -> float:
        square = np.square(gradient).sum() + self.n_background * background**2
        return float(np.sqrt(square))

    def weights_of(self, indices: IntArray) -> FloatArray:
        """Return the weights of some constraints."""
        places = np.searchsorted(self.indices, indices)
        touched = places < len(self.indices)
        touched[touched] = self.indices[places[touched]] == indices[touched]
        weights = np.full(len(indices), self.background_weight)
        weights[touched] = self.weights[places[touched]]
        return weights

    def sample(self, rng: np.random.Generator, size: int) -> IntArray:
        """Draw constraints with probabilities :math:`p`, with repeats, ascending."""
        rest = self.n_background * self.background_weight
        places = inverse_draws(rng, self.weights, rest, size)
        if rest == 0.0:  # places ascend, and so do the indices
            return freeze(self.indices.take(places))
        ranks = random_indices(rng, self.n_background, size)
        n_touched = int(np.searchsorted(places, len(self.indices)))
        drawn = np.concatenate(
            [self.indices[places[:n_touched]], self._background(ranks[n_touched:])]
        )
        drawn.sort()
        return freeze(drawn)

    def _background(self, ranks: IntArray) -> IntArray:
        """Return the constraints of these ranks among those of the background."""
        # indices[i] - i background constraints lie below the i-th touched one.
        below = self.indices - np.arange(len(self.indices))
        found: IntArray = ranks + np.searchsorted(below, ranks, side="right")
        return found

    def touched(self) -> tuple[IntArray, FloatArray]:
        """Return the constraints that have a weight of their own, and the weights."""
        return self.indices, self.weights

    def dense(self) -> FloatArray:
        """Return all `m` weights; for tests and pictures at moderate `m`."""
        full = np.full(self.n_constraints, self.background_weight)
        full[self.indices] = self.weights
        return full
