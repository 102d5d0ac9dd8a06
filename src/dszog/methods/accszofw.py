r"""Acc-SZOFW: accelerated Frank-Wolfe steps along estimates corrected by SPIDER.

Three sequences: :math:`x` makes long steps, :math:`y` short ones from the point
:math:`z` where the function is looked at, and the next :math:`z` lies between them.

References
----------
.. [1] F. Huang, L. Tao and S. Chen, "Accelerated stochastic gradient-free and
   projection-free methods", ICML 2020, PMLR 119.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, frozen_floats
from dszog.methods.feasible import FeasibleMethod, FeasibleState, Move
from dszog.methods.spider import SpiderMethod

MOST_LOSSES = 10_000  # that a refresh looks at, as in the experiments of the authors


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AcceleratedState(FeasibleState):
    """The iterate :math:`z`, and the sequence of long steps beside it."""

    long_point: FloatArray  # (dim,), x in the paper

    def __post_init__(self) -> None:
        FeasibleState.__post_init__(self)
        object.__setattr__(self, "long_point", frozen_floats(self.long_point))


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratedMethod(FeasibleMethod):
    """What both accelerated methods do, whatever their estimate."""

    step_is_share: ClassVar[bool] = True
    horizon_power: ClassVar[float]  # of the number of steps, in the step and the radius

    def _begun(self, **first: Any) -> AcceleratedState:
        return AcceleratedState(**first, long_point=first["x"])

    def _move(self, state: AcceleratedState, gradient: FloatArray) -> Move:
        r"""Move all three sequences towards the corner :math:`s` down the estimate.

        With :math:`\theta_t = 1/((t+1)(t+2))`, :math:`\gamma_t = (1 + \theta_t) \eta`,
        at most 1, and :math:`\alpha_{t+1} = 1/(t+2)`:

        .. math:: x &\leftarrow x + \gamma_t (s - x) \\
                  y &\leftarrow z + \eta (s - z) \\
                  z &\leftarrow (1 - \alpha_{t+1}) y + \alpha_{t+1} x
        """
        corner = self._set(state.size).lmo(gradient, state.active)
        t, step = state.iteration, self._step
        theta, share = 1.0 / ((t + 1) * (t + 2)), 1.0 / (t + 2)
        long_step = min(1.0, self._long_factor * (1.0 + theta) * step)
        x = (1.0 - long_step) * state.long_point + long_step * corner.point
        y = (1.0 - step) * state.x + step * corner.point
        z = (1.0 - share) * y + share * x
        return Move(z, corner.active, also={"long_point": x})

    def _theory_radius(self, size: ProblemSize) -> float:
        power = -0.5 if self._estimator(size) == "coordinate" else -1.0
        return float(size.dim**power * self._n_steps**self.horizon_power)

    @property
    def _step(self) -> float:
        return self.step_size or float(self._n_steps**self.horizon_power)

    @property
    def _long_factor(self) -> float:
        return 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AccSZOFW(AcceleratedMethod, SpiderMethod):
    r"""Accelerated Frank-Wolfe, with an estimate corrected by SPIDER.

    Parameters
    ----------
    step_size : float, optional
        :math:`\eta`; :math:`T^{-1/2}` for :math:`T` iterations if not given.
    estimator : {"auto", "coordinate", "sphere", "gaussian"}
        ``"auto"``: along the coordinates up to 500 variables, else on the sphere. With
        random directions the noise adds up between refreshes: keep `period` at 10 or
        less, or the step small.
    refresh_batch : int, optional
        All losses if not given, but at most 10,000.
    radius : float, optional
        :math:`\mu`; :math:`(d T)^{-1/2}` along coordinates, else
        :math:`d^{-1} T^{-1/2}`.

    The other fields are those of :class:`~dszog.methods.spider.SpiderMethod`.
    """

    horizon_power: ClassVar[float] = -1 / 2

    def _root(self, size: ProblemSize) -> int:
        return math.isqrt(size.n_losses - 1) + 1  # rounded up

    def _refresh_batch(self, size: ProblemSize) -> int:
        return self.refresh_batch or min(size.n_losses, MOST_LOSSES)
