r"""ZOSCGD: Frank-Wolfe steps along Gaussian two-point estimates.

References
----------
.. [1] K. Balasubramanian and S. Ghadimi, "Zeroth-order (non)-convex stochastic
   optimization via conditional gradient and gradient updates", NeurIPS 2018. The method
   is called ZSCG there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeAlias, get_args

from dszog.contract.arrays import FloatArray
from dszog.contract.validation import (
    check_choice,
    check_count,
    check_flag,
    check_positive_number,
)
from dszog.methods.estimates import Estimator
from dszog.methods.feasible import FeasibleMethod, FeasibleState, Move, check_shares

StepRule: TypeAlias = Literal["constant", "open_loop"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ZOSCGD(FeasibleMethod):
    r"""Walk towards the corner that lies down the estimated gradient.

    Nothing reduces the noise of the estimate: with a constant step the iterate jitters
    with an amplitude of the step times the diameter of the set.

    Parameters
    ----------
    step_size : float
        :math:`\alpha`, the share of the way that is gone, constant.
    step_rule : {"constant", "open_loop"}
        ``"open_loop"`` goes :math:`6/(k+5)` of the way at step :math:`k` instead, as
        the theory for convex functions does.

    The other fields are those of :class:`~dszog.methods.feasible.FeasibleMethod`.
    """

    step_size: float | None = 1e-2
    estimator: Estimator | Literal["auto"] = "gaussian"
    step_rule: StepRule = "constant"

    def __post_init__(self) -> None:
        FeasibleMethod.__post_init__(self)
        check_choice(self, "step_rule", self.step_rule, get_args(StepRule))
        check_shares(self, step_size=self._step(0))

    @classmethod
    def from_theory(
        cls,
        dim: int,
        horizon: int,
        *,
        scale: float = 1.0,
        convex: bool = False,
        **changes: Any,
    ) -> Self:
        r"""Return the parameters of the convergence theorem.

        Its batch of :math:`2 c_0 (d + 5) N` pairs a step is seldom affordable.

        Parameters
        ----------
        dim, horizon : int
            :math:`d` and :math:`N`.
        scale : float
            :math:`c_0 \ge \max(\sqrt{B_0^2 + \sigma^2} / L, 1)`.
        convex : bool
            Whether the losses are convex.
        """
        dim = check_count("ZOSCGD", "dim", dim)
        horizon = check_count("ZOSCGD", "horizon", horizon)
        scale = check_positive_number("ZOSCGD", "scale", scale)
        check_flag("ZOSCGD", "convex", convex)
        power = 2 if convex else 1
        settings: dict[str, Any] = {
            "radius": math.sqrt(2 * scale / (horizon**power * (dim + 3) ** 3)),
            "step_size": 1 / math.sqrt(horizon),
            "step_rule": "open_loop" if convex else "constant",
            "loss_batch": math.ceil(2 * scale * (dim + 5) * horizon**power),
            "per_sample": True,
            "horizon": horizon,
        }
        return cls(**(settings | changes))

    def _move(self, state: FeasibleState, gradient: FloatArray) -> Move:
        """Make one Frank-Wolfe step."""
        return self._towards_corner(state, gradient, self._step(state.iteration))

    def _step(self, iteration: int) -> float:
        if self.step_rule == "open_loop":
            return 6.0 / (iteration + 6.0)
        return self.step_size or 1.0 / math.sqrt(self._n_steps)
