r"""Acc-SZOFW*: accelerated Frank-Wolfe steps along estimates corrected by STORM.

References
----------
.. [1] F. Huang, L. Tao and S. Chen, "Accelerated stochastic gradient-free and
   projection-free methods", ICML 2020, PMLR 119.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dszog.contract.validation import check_positive
from dszog.methods.accszofw import AcceleratedMethod
from dszog.methods.storm import StormMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class AccSZOFWStorm(AcceleratedMethod, StormMethod):
    r"""Accelerated Frank-Wolfe, with an estimate corrected by STORM.

    No large batch is ever needed: the share of the newest estimate is
    :math:`\rho_t = (t+1)^{-2/3}`.

    Parameters
    ----------
    step_size : float, optional
        :math:`\eta`; :math:`T^{-2/3}` for :math:`T` iterations if not given.
    long_factor : float
        What the step of the long sequence is multiplied by; 6 in the experiments of the
        authors.
    estimator : {"auto", "coordinate", "sphere", "gaussian"}
        ``"auto"``: along the coordinates up to 500 variables, else on the sphere.
    radius : float, optional
        :math:`\mu`; :math:`d^{-1/2} T^{-2/3}` along coordinates, else
        :math:`d^{-1} T^{-2/3}`.

    The other fields are those of :class:`~dszog.methods.feasible.FeasibleMethod`.
    """

    horizon_power: ClassVar[float] = -2 / 3

    long_factor: float = 1.0

    def __post_init__(self) -> None:
        StormMethod.__post_init__(self)
        check_positive(self, long_factor="The theory has 1.")

    @property
    def _long_factor(self) -> float:
        return self.long_factor

    def _share(self, t: int) -> float:
        return float((t + 1.0) ** (-2.0 / 3.0))
