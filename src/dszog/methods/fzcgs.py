r"""FZCGS: conditional gradient sliding along coordinate-wise estimates.

References
----------
.. [1] H. Gao and H. Huang, "Can stochastic zeroth-order Frank-Wolfe method converge
   faster for non-convex problems?", ICML 2020, PMLR 119, Algorithms 2 and 3.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

from dszog.contract.arrays import FloatArray
from dszog.contract.validation import (
    check_count_fields,
    check_flag,
    check_positive_number,
)
from dszog.maths.subproblems import slide
from dszog.methods.estimates import Estimator
from dszog.methods.feasible import FeasibleState, Move
from dszog.methods.spider import SpiderMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class FZCGS(SpiderMethod):
    r"""Make a proximal step, solved by an inner loop of Frank-Wolfe steps.

    Parameters
    ----------
    step_size : float
        :math:`\gamma`, the length of the proximal step; :math:`1/3L` in the theory for
        losses with :math:`L`-Lipschitz gradients.
    inner_gap : float, optional
        :math:`\eta`, the Wolfe gap at which the inner loop ends; :math:`1/K` for
        :math:`K` iterations if not given.
    max_inner : int
        Linear minimisations after which it ends in any case, which is counted.
    exact_prox : bool
        Replace the inner loop by one projection, its limit as the gap tends to 0.
    radius : float, optional
        :math:`\mu`; :math:`1/\sqrt{d K}` if not given.

    The other fields are those of :class:`~dszog.methods.spider.SpiderMethod`.
    """

    step_size: float = 1e-2
    estimator: Estimator | Literal["auto"] = "coordinate"
    inner_gap: float | None = None
    max_inner: int = 1000
    exact_prox: bool = False

    def __post_init__(self) -> None:
        SpiderMethod.__post_init__(self)
        check_positive_number(self, "step_size", self.step_size)
        if self.inner_gap is not None:
            check_positive_number(self, "inner_gap", self.inner_gap)
        check_count_fields(self, "max_inner")
        check_flag(self, "exact_prox", self.exact_prox)

    @classmethod
    def from_theory(cls, horizon: int, smoothness: float, **changes: Any) -> Self:
        r"""Return the parameters of the convergence theorem.

        Parameters
        ----------
        horizon : int
            :math:`K`.
        smoothness : float
            :math:`L`, the Lipschitz constant of the gradient of every loss.
        """
        smooth = check_positive_number(cls.__name__, "smoothness", smoothness)
        settings: dict[str, Any] = {"horizon": horizon, "step_size": 1 / (3 * smooth)}
        return cls(**(settings | changes))

    def _move(self, state: FeasibleState, gradient: FloatArray) -> Move:
        """Make one proximal step (Alg. 2)."""
        domain, step = self._set(state.size), self.step_size
        if self.exact_prox:
            nearest = domain.project(state.x - step * gradient, state.active)
            return Move(nearest.point, nearest.active)
        end = slide(  # Alg. 3
            domain,
            gradient,
            state.x,
            step_size=step,
            gap=self.inner_gap or 1.0 / self._n_steps,
            max_inner=self.max_inner,
            hint=state.active,
        )
        events = () if end.is_exact else ("inner loop ended by max_inner",)
        return Move(end.point, end.active, end.n_inner, events)
