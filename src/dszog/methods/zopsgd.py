r"""ZOPSGD: projected steps along estimates from directions on the sphere.

References
----------
.. [1] S. Liu, X. Li, P.-Y. Chen, J. Haupt and L. Amini, "Zeroth-order stochastic
   projected gradient descent for nonconvex optimization", GlobalSIP 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self, TypeAlias, get_args

from dszog.contract.arrays import FloatArray
from dszog.contract.validation import check_choice, check_count, check_positive_number
from dszog.methods.estimates import Estimator
from dszog.methods.feasible import FeasibleMethod, FeasibleState, Move

Decay: TypeAlias = Literal["constant", "sqrt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOPSGD(FeasibleMethod):
    r"""Step down the estimated gradient and project back on the set.

    Parameters
    ----------
    step_size : float
        :math:`\eta`.
    step_decay : {"constant", "sqrt"}
        ``"sqrt"`` divides the step by :math:`\sqrt{t+1}`.

    The other fields are those of :class:`~dszog.methods.feasible.FeasibleMethod`.
    """

    needs_bounded: ClassVar[bool] = False

    step_size: float = 1e-2
    estimator: Estimator | Literal["auto"] = "sphere"
    step_decay: Decay = "constant"

    def __post_init__(self) -> None:
        FeasibleMethod.__post_init__(self)
        check_positive_number(self, "step_size", self.step_size)
        check_choice(self, "step_decay", self.step_decay, get_args(Decay))

    @classmethod
    def from_theory(cls, dim: int, horizon: int, **changes: Any) -> Self:
        r"""Return the orders of the convergence theorem with constants of 1.

        A step of :math:`1/\sqrt T` and a radius of :math:`1/(d \sqrt T)`; the constants
        of the paper could not be checked.
        """
        dim = check_count("ZOPSGD", "dim", dim)
        horizon = check_count("ZOPSGD", "horizon", horizon)
        settings: dict[str, Any] = {
            "step_size": 1 / math.sqrt(horizon),
            "radius": 1 / (dim * math.sqrt(horizon)),
            "horizon": horizon,
        }
        return cls(**(settings | changes))

    def _move(self, state: FeasibleState, gradient: FloatArray) -> Move:
        """Make one projected step."""
        target = state.x - self._step(state.iteration) * gradient
        nearest = self._set(state.size).project(target, state.active)
        return Move(nearest.point, nearest.active)

    def _step(self, iteration: int) -> float:
        slower = math.sqrt(iteration + 1) if self.step_decay == "sqrt" else 1.0
        return self.step_size / slower
