"""What is done to every batch: repeats found, values turned into a gradient.

The plain forms are in :mod:`dszog.query` and :mod:`dszog.gradients`.
"""

from __future__ import annotations

import numpy as np

from dszog._arrays import FloatArray, IntArray
from dszog.kernels._compile import compiled


@compiled
def distinct(
    indices: IntArray,
) -> tuple[int, IntArray, IntArray]:  # pragma: no cover  (compiled)
    """Return how many indices differ, these, and each one's place among them.

    For ascending indices; -1 where they are not.
    """
    n = len(indices)
    kept, places = np.empty(n, np.int64), np.empty(n, np.int64)
    n_kept = 0
    for i in range(n):
        if i == 0 or indices[i] > indices[i - 1]:
            kept[n_kept] = indices[i]
            n_kept += 1
        elif indices[i] < indices[i - 1]:
            return -1, kept, places
        places[i] = n_kept - 1
    return n_kept, kept, places


@compiled
def penalised_difference(
    losses: FloatArray,
    constraints: FloatArray,
    penalty: float,
    steps: FloatArray,
    radius: float,
) -> FloatArray:  # pragma: no cover  (compiled)
    """Return the forward difference of mean loss plus penalty times mean violation."""
    n_points, dim = len(losses), steps.shape[1]
    gradient = np.zeros(dim)
    base = 0.0
    for k in range(n_points):
        loss, violation = 0.0, 0.0
        for i in range(losses.shape[1]):
            loss += losses[k, i]
        for j in range(constraints.shape[1]):
            over = max(constraints[k, j], 0.0)
            violation += over * over
        value = loss / max(losses.shape[1], 1)
        value += penalty * violation / max(constraints.shape[1], 1)
        if k == 0:
            base = value
            continue
        slope = (value - base) / radius
        for d in range(dim):
            gradient[d] += slope * (steps[k - 1, d] / radius)
    for d in range(dim):
        gradient[d] /= n_points - 1
    return gradient


@compiled
def violations(
    values: FloatArray,
) -> tuple[float, int, float]:  # pragma: no cover  (compiled)
    """Return the worst violation, how many there are, and their sum."""
    worst, n_violated, total = 0.0, 0, 0.0
    for value in values:
        if value > 0.0:
            worst = max(worst, value)
            n_violated += 1
            total += value
    return worst, n_violated, total


FIRST = penalised_difference
