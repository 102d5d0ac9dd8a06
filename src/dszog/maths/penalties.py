r"""The penalty of a violated constraint, and what the method minimises with it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dszog.contract.arrays import FloatArray, freeze
from dszog.kernels import chosen

LARGEST_PENALTY = 1e120  # what is made of it has to stay a number, squared as well


def cut(penalties: FloatArray) -> FloatArray:
    """Return penalties that weights can be made of: none above the largest."""
    return np.minimum(penalties, LARGEST_PENALTY)


def squared_violation(values: FloatArray) -> FloatArray:
    r"""Return the paper's penalty :math:`\phi_j = \max(f_j, 0)^2` of each value."""
    violation = np.maximum(values, 0.0)
    return violation * violation


class Violations(NamedTuple):
    """What a batch of constraints says about a point."""

    worst: float  # the largest max(f_j, 0); nan if there is none
    share: float  # of those with f_j > 0, likewise
    mean: float  # of max(f_j, 0); 0 if there is none
    penalties: FloatArray  # of each, squared


def violations(values: FloatArray) -> Violations:
    """Return the penalties of a batch, and how bad they are in all."""
    n = len(values)
    worst, n_violated, total, penalties = chosen().violations(values)
    if not n:
        return Violations(math.nan, math.nan, 0.0, freeze(penalties))
    return Violations(worst, n_violated / n, total / n, freeze(penalties))


def merit(objective: float, worst: float, penalty: float) -> float:
    r"""Return :math:`f_0 + \beta \max_j \phi_j`, by which points are compared.

    This is the paper's outer function :math:`g(w) = \max_p L(w, p)` in the limit of a
    vanishing ridge: all weight on the worst constraint.
    """
    violation = max(worst, 0.0)
    return objective + penalty * (violation * violation)  # ** 2 would raise, not be inf
