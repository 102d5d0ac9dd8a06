r"""The parameters of the paper's convergence theorem, for stated constants.

The conditions are those printed in the paper. They are worst cases: the steps come out
as :math:`\eta_w = O(\varepsilon^2 / \kappa^6)` and the number of iterations as
:math:`T = O(\kappa^6 / \varepsilon^4)` with :math:`\kappa = L / \tau`: they are of use
for studying the theory, with a :math:`\tau` of order one, and for nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dszog.contract.validation import check_count_fields, check_positive, check_share


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoremConstants:
    r"""What the theorem assumes to be known about a problem.

    Parameters
    ----------
    accuracy : float
        :math:`\varepsilon`.
    dim : int
        :math:`d`.
    smoothness : float
        :math:`L`, the Lipschitz constant of the gradient of :math:`L(w, p)`.
    concavity : float
        :math:`\tau`; it becomes the `dual_ridge` of the method.
    gap : float
        :math:`g(w_1) - \min g`.
    variance, dual_variance : float
        :math:`\sigma_1^2, \sigma_2^2`, of the estimates in :math:`w` and :math:`p`.
    least_scale, largest_scale : float
        Bounds on :math:`1/(\sqrt{\|z_w\|} + c)`.
    least_dual_scale : float
        The lower bound on :math:`1/(\sqrt{\|z_p\|} + c)`.
    maximiser_smoothness : float, optional
        :math:`L_g`, which the proof uses as the Lipschitz constant of
        :math:`p^*(w)`; :math:`L / \tau` if not given.
    dual_averaging : float
        :math:`a`.
    """

    accuracy: float
    dim: int
    smoothness: float
    concavity: float
    gap: float
    variance: float
    dual_variance: float
    least_scale: float = 1.0
    largest_scale: float = 1.0
    least_dual_scale: float = 1.0
    maximiser_smoothness: float | None = None
    dual_averaging: float = 1.0

    def __post_init__(self) -> None:
        advice = "The theorem needs a positive constant."
        names = [
            name
            for name in self.__dataclass_fields__
            if name != "dim" and getattr(self, name) is not None
        ]
        check_positive(self, **dict.fromkeys(names, advice))
        check_count_fields(self, "dim")
        check_share(self, dual_averaging="The theorem allows up to 1.")


def theorem_parameters(constants: TheoremConstants) -> dict[str, Any]:
    """Return fields of the method: each the largest that the theorem allows."""
    eps, smooth, tau = constants.accuracy, constants.smoothness, constants.concavity
    low, up, dual_low = (
        constants.least_scale,
        constants.largest_scale,
        constants.least_dual_scale,
    )
    a = constants.dual_averaging
    lipschitz = constants.maximiser_smoothness or smooth / tau
    b = min(
        eps**2 / (2 * constants.variance),
        tau**2 * eps**2 / (64 * constants.dual_variance * smooth**2),
        1.0,
    )
    dual_step = min(
        1 / (3 * dual_low * smooth),
        b**2 / (tau * a**2 * dual_low),
        tau * b**2 / (32 * smooth**2 * a**2 * dual_low),
        1.0,
    )
    squared_step = min(
        low**2 / (4 * smooth * up**4),
        b**2 / (4 * up**2 * smooth**2),
        (tau * a * dual_step * dual_low) ** 2 / (128 * lipschitz**2 * smooth**2 * up),
        tau**2 * b**2 / (128 * smooth**4 * up**2),
        1.0,
    )
    step = math.sqrt(squared_step)
    horizon = max(
        2 * constants.gap / (eps**2 * step * low),
        2 * constants.variance / (eps**2 * b),
        64 * constants.dual_variance * smooth**2 / (eps**2 * tau**2 * b),
    )
    return {
        "step_size": step,
        "dual_step_size": dual_step,
        "dual_ridge": tau,
        "averaging": b,
        "dual_averaging": a,
        "radius": eps / (smooth * (constants.dim + 3) ** 1.5),
        "horizon": math.ceil(horizon),
    }
