r"""Conditional gradient sliding: a proximal step by Frank-Wolfe steps alone."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.subproblems.base import Domain


class Slide(NamedTuple):
    """Where an inner loop ended."""

    point: FloatArray
    active: IntArray  # a hint for the next linear minimisation
    n_inner: int  # linear minimisations
    is_exact: bool  # whether the gap fell to the tolerance within the cap


def slide(
    domain: Domain,
    gradient: FloatArray,
    x: FloatArray,
    *,
    step_size: float,
    gap: float,
    max_inner: int,
    hint: IntArray,
) -> Slide:
    r"""Minimise :math:`\langle g, u \rangle + \|u - x\|^2 / 2\gamma` over the domain.

    By Frank-Wolfe with exact line search from :math:`x`, until the Wolfe gap of this
    very problem is at most `gap`, or after `max_inner` linear minimisations ([1]_,
    Algorithm 3: CndG). As the gap tends to 0 the answer tends to the projection of
    :math:`x - \gamma g`. The domain is bounded; :math:`\gamma` is `step_size`.

    References
    ----------
    .. [1] H. Gao and H. Huang, "Can stochastic zeroth-order Frank-Wolfe method converge
       faster for non-convex problems?", ICML 2020, PMLR 119.
    """
    u = x
    for n_inner in range(1, max_inner + 1):
        slope = gradient + (u - x) / step_size
        corner = domain.lmo(slope, hint)
        hint = corner.active
        towards = corner.point - u
        wolfe_gap = -float((slope * towards).sum())
        if wolfe_gap <= gap:
            return Slide(u, hint, n_inner, is_exact=True)
        length = float(np.square(towards).sum())
        u = u + min(1.0, step_size * wolfe_gap / length) * towards
    return Slide(u, hint, max_inner, is_exact=False)
