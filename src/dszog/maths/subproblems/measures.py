r"""How far a point is from being stationary in a set, given the gradient there."""

from __future__ import annotations

import numpy as np

from dszog.contract.arrays import FloatArray
from dszog.maths.subproblems.base import Domain


def frank_wolfe_gap(domain: Domain, x: FloatArray, gradient: FloatArray) -> float:
    r"""Return :math:`\max_{s \in C} \langle \nabla f(x), x - s \rangle`.

    Examples
    --------
    >>> from dszog.maths.subproblems import L2Ball
    >>> frank_wolfe_gap(L2Ball(dim=2, radius=1.0), np.zeros(2), np.array([3.0, 4.0]))
    5.0
    """
    return float((gradient * (x - domain.lmo(gradient).point)).sum())


def gradient_mapping(
    domain: Domain, x: FloatArray, gradient: FloatArray, step_size: float
) -> float:
    r"""Return :math:`\|x - \Pi_C(x - \gamma \nabla f(x))\| / \gamma`.

    Examples
    --------
    >>> from dszog.maths.subproblems import L2Ball
    >>> ball = L2Ball(dim=2, radius=1.0)
    >>> gradient_mapping(ball, np.zeros(2), np.array([0.3, 0.4]), step_size=0.1)
    0.5
    """
    moved = domain.project(x - step_size * gradient).point
    return float(np.sqrt(np.square(x - moved).sum()) / step_size)
