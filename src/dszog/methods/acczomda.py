r"""Acc-ZOM: damped projected steps along estimates corrected by STORM.

The comparison that this library reproduces calls it AccZOMDA, which is the name of its
sibling for minimax problems; what is described there, a STORM estimate of the gradient
of the objective and a projection on the feasible set, is Acc-ZOM.

References
----------
.. [1] F. Huang, S. Gao, J. Pei and H. Huang, "Accelerated zeroth-order and first-order
   momentum methods from mini to minimax optimization", JMLR 23(36), 2022.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray
from dszog.contract.validation import check_count, check_positive, check_positive_number
from dszog.methods.estimates import Estimator
from dszog.methods.feasible import FeasibleState, Move
from dszog.methods.storm import StormMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class AccZOM(StormMethod):
    r"""Project a step down the estimate, and go a shrinking part of the way there.

    Parameters
    ----------
    step_size : float
        :math:`\gamma`, the step that is projected.
    damping_scale, damping_offset : float
        :math:`k` and :math:`m`: the part of the way is :math:`\eta_t = k/(m+t)^{1/3}`,
        at most 1.
    momentum_scale : float
        :math:`c`: the share of the newest estimate is :math:`c \eta_t^2`, at most 1;
        with the published values it would exceed 1 in the first steps.
    radius : float, optional
        :math:`\mu`; :math:`1/(d (m+T)^{2/3})` for :math:`T` iterations if not given.

    The other fields are those of :class:`~dszog.methods.feasible.FeasibleMethod`.
    """

    needs_bounded: ClassVar[bool] = False

    step_size: float = 0.1
    estimator: Estimator | Literal["auto"] = "sphere"
    damping_scale: float = 1.0
    damping_offset: float = 3.0
    momentum_scale: float = 3.0

    def __post_init__(self) -> None:
        StormMethod.__post_init__(self)
        check_positive_number(self, "step_size", self.step_size)
        check_positive(
            self,
            damping_scale="The paper uses 1.",
            damping_offset="The paper uses 3.",
            momentum_scale="The paper uses 3.",
        )

    @classmethod
    def from_theory(
        cls, dim: int, horizon: int, smoothness: float, **changes: Any
    ) -> Self:
        r"""Return the parameters of the convergence theorem.

        Parameters
        ----------
        dim, horizon : int
            :math:`d` and :math:`T`.
        smoothness : float
            :math:`L`, the Lipschitz constant of the gradient of every loss.
        """
        dim = check_count("AccZOM", "dim", dim)
        smooth = check_positive_number("AccZOM", "smoothness", smoothness)
        momentum = 2 / 3 + 5 / 4
        offset = max(2.0, momentum**3)
        longest = min(
            offset ** (1 / 3) / (2 * smooth), 1 / (2 * math.sqrt(6 * dim) * smooth)
        )
        settings: dict[str, Any] = {
            "step_size": longest,
            "damping_offset": offset,
            "momentum_scale": momentum,
            "horizon": horizon,
        }
        return cls(**(settings | changes))

    def _move(self, state: FeasibleState, gradient: FloatArray) -> Move:
        """Make one damped projected step."""
        target = state.x - self.step_size * gradient
        nearest = self._set(state.size).project(target, state.active)
        part = self._damping(state.iteration + 1)
        x = (1.0 - part) * state.x + part * nearest.point
        return Move(x, nearest.active)

    def _damping(self, t: int) -> float:
        r"""Return :math:`\eta_t`; the first step is :math:`t = 1`."""
        return min(1.0, self.damping_scale / math.cbrt(self.damping_offset + t))

    def _share(self, t: int) -> float:
        r"""Return the share of the estimate that follows step `t`, at most 1."""
        return min(1.0, self.momentum_scale * self._damping(t) ** 2)

    def _theory_radius(self, size: ProblemSize) -> float:
        steps = (self.damping_offset + self._n_steps) ** (2 / 3)
        return float(1.0 / (size.dim * steps))
