r"""FZFW: Frank-Wolfe steps along coordinate-wise estimates, corrected by SPIDER.

References
----------
.. [1] H. Gao and H. Huang, "Can stochastic zeroth-order Frank-Wolfe method converge
   faster for non-convex problems?", ICML 2020, PMLR 119, Algorithm 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray
from dszog.methods.estimates import Estimator
from dszog.methods.feasible import FeasibleState, Move
from dszog.methods.spider import SpiderMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class FZFW(SpiderMethod):
    r"""Walk towards the corner that lies down the estimated gradient.

    Parameters
    ----------
    step_size : float, optional
        :math:`\gamma`; :math:`1/(D \sqrt K)` for a set of diameter :math:`D` and
        :math:`K` iterations if not given, as in the theory.
    radius : float, optional
        :math:`\mu`; :math:`1/\sqrt{d K}` if not given.

    The other fields are those of :class:`~dszog.methods.spider.SpiderMethod`.
    """

    step_is_share: ClassVar[bool] = True

    estimator: Estimator | Literal["auto"] = "coordinate"

    def _move(self, state: FeasibleState, gradient: FloatArray) -> Move:
        """Make one Frank-Wolfe step (Alg. 1)."""
        return self._towards_corner(state, gradient, self._step(state.size))

    def _step(self, size: ProblemSize) -> float:
        if self.step_size is not None:
            return self.step_size
        longest = self._set(size).diameter() * math.sqrt(self._n_steps)
        return 1.0 / max(longest, 1.0)
