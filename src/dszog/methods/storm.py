r"""STORM: a gradient estimate with momentum that corrects itself at every step.

.. math:: v_t = \hat g(x_t; I_t, U_t)
          + (1 - \rho_t) \bigl(v_{t-1} - \hat g(x_{t-1}; I_t, U_t)\bigr)

with the same losses :math:`I_t` and the same directions :math:`U_t` at both points.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray
from dszog.methods.feasible import FeasibleMethod, FeasibleState


@dataclass(frozen=True, slots=True, kw_only=True)
class StormMethod(FeasibleMethod):
    """The estimate of the methods that estimate by STORM."""

    compares_points: ClassVar[bool] = True

    def _share(self, t: int) -> float:
        r"""Return :math:`\rho_t`, the share of the newest estimate in step `t`."""
        raise NotImplementedError

    def _looks_back(self, state: FeasibleState) -> bool:
        return state.iteration > 0

    def _corrected(
        self, state: FeasibleState, new: FloatArray, old: FloatArray
    ) -> FloatArray:
        return new + (1.0 - self._share(state.iteration)) * (state.gradient - old)

    def _queries_per_step(self, size: ProblemSize) -> int:
        return 2 * self.least_queries(size)
