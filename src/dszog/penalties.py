r"""The penalty of a violated constraint, and what the method minimises with it."""

from __future__ import annotations

import numpy as np

from dszog._arrays import FloatArray, frozen_floats
from dszog.kernels import batches


def squared_violation(values: FloatArray) -> FloatArray:
    r"""Return the paper's penalty :math:`\phi_j = \max(f_j, 0)^2` of each value.

    Examples
    --------
    >>> squared_violation(np.array([-1.0, 0.0, 3.0]))
    array([0., 0., 9.])
    """
    violation = np.maximum(values, 0.0)
    return violation * violation


def violations(values: FloatArray) -> tuple[float, int, float]:
    """Return the worst violation, how many there are, and their sum.

    Examples
    --------
    >>> violations(np.array([-1.0, 2.0, 0.5]))
    (2.0, 2, 2.5)
    """
    kernels = batches()
    if kernels is not None:
        worst, n_violated, total = kernels.violations(frozen_floats(values))
        return worst, n_violated, total
    over = values[values > 0.0]
    worst = float(np.maximum.reduce(over, initial=0.0))
    return worst, len(over), float(np.add.reduce(over))


def merit(objective: float, worst: float, penalty: float) -> float:
    r"""Return :math:`f_0 + \beta \max_j \phi_j`, by which points are compared.

    This is the paper's outer function :math:`g(w) = \max_p L(w, p)` in the limit of a
    vanishing ridge: all weight on the worst constraint.

    Examples
    --------
    >>> merit(1.0, worst=0.5, penalty=10.0)
    3.5
    """
    return objective + penalty * max(worst, 0.0) ** 2
