r"""What every distribution over the constraints can do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import DszogError
from dszog.kernels import draws


@dataclass(frozen=True, slots=True, kw_only=True)
class DualStep:
    r"""The parameters of one step of the weights, in the paper's letters.

    Parameters
    ----------
    step_size : float
        :math:`\eta_p`.
    averaging : float
        :math:`b`, the share of the new estimate in the averaged gradient.
    mixing : float
        :math:`a`, the share of the projected point in the new weights.
    penalty : float
        :math:`\beta`.
    ridge : float
        :math:`\lambda`.
    step_eps : float
        :math:`c`, which keeps the adaptive step finite.
    adaptive : bool
        Divide the step by :math:`\sqrt{\|z\|} + c`; False is the plain method.
    centred : bool
        Estimate from changes of remembered penalties instead of penalties.
    """

    step_size: float
    averaging: float
    mixing: float
    penalty: float
    ridge: float
    step_eps: float
    adaptive: bool = True
    centred: bool = False

    def scale(self, norm: float) -> float:
        """Return the factor of the averaged gradient of the given norm in a step."""
        if not self.adaptive:
            return self.step_size
        return self.step_size / (math.sqrt(norm) + self.step_eps)


class Distribution(Protocol):
    r"""The weights :math:`p` over `m` constraints, with their averaged gradient.

    Immutable: every change returns a new distribution.
    """

    @property
    def n_constraints(self) -> int:
        """The number of constraints, :math:`m`."""
        ...

    @classmethod
    def from_penalties(
        cls, n_constraints: int, indices: IntArray, penalties: FloatArray, scale: float
    ) -> Self:
        r"""Start at the maximiser :math:`p^* = \Pi_\Delta(\beta \phi / \lambda)`.

        Parameters
        ----------
        n_constraints : int
        indices : ndarray of int64
            The constraints with a positive penalty that matter for the maximum, in
            ascending order; the penalty of every other one counts as 0.
        penalties : ndarray
            Their :math:`\phi_j`.
        scale : float
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
        self,
        indices: IntArray,
        penalties: FloatArray,
        step: DualStep,
        first: bool,
        spread: float | None = None,
    ) -> Self:
        r"""Take one step towards the constraints that were found violated.

        Parameters
        ----------
        indices : ndarray of int64
            A uniform draw without repeats, the paper's :math:`M_3`, ascending.
        penalties : ndarray
            :math:`\phi_j(w)` of each.
        step : DualStep
        first : bool
            Whether this is the first estimate, which then is the average.
        spread : float, optional
            How many constraints each drawn one stands for; :math:`m / |M_3|` if not
            given, as in the paper.
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
    """Draw positions with probabilities proportional to `weights`, with repeats.

    Ascending. A position of weight 0 is never drawn; one past the last stands for the
    `rest`, which none of the positions holds.
    """
    uniforms = rng.random(size)
    uniforms.sort()
    kernels = draws()
    if kernels is not None:
        drawn = np.empty(size, dtype=np.int64)
        if kernels.places(weights, rest, uniforms, drawn):
            return drawn
    return _places(weights, rest, uniforms)


def _places(weights: FloatArray, rest: float, uniforms: FloatArray) -> IntArray:
    """Return where each uniform number falls among the weights, then the rest."""
    heights = np.cumsum(np.append(weights, rest))
    if not (np.isfinite(heights[-1]) and heights[-1] > 0.0):
        raise DszogError(
            f"Weights to draw from must be finite and not all 0, got a sum of "
            f"{heights[-1]}. This is a bug in dszog: please report it."
        )
    drawn = np.searchsorted(heights, uniforms * heights[-1], side="right")
    # Rounding may lift a draw to the very top: the last positive weight is meant.
    last = np.searchsorted(heights, heights[-1], side="left")
    positions: IntArray = np.minimum(drawn, last)
    return positions
