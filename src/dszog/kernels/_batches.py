"""What is done to every batch: repeats found, values turned into a gradient.

The plain forms are in :mod:`dszog.query`, :mod:`dszog.gradients` and
:mod:`dszog.penalties`.
"""

from __future__ import annotations

from dszog._arrays import FloatArray, IntArray
from dszog.kernels._compile import compiled


@compiled
def distinct(
    indices: IntArray, kept: IntArray, places: IntArray
) -> int:  # pragma: no cover  (compiled)
    """Find the indices that differ, and each one's place; return how many differ.

    For ascending indices; -1 where they are not.
    """
    n_kept = 0
    for i in range(len(indices)):
        if i == 0 or indices[i] > indices[i - 1]:
            kept[n_kept] = indices[i]
            n_kept += 1
        elif indices[i] < indices[i - 1]:
            return -1
        places[i] = n_kept - 1
    return n_kept


@compiled
def penalised_difference(
    losses: FloatArray,
    constraints: FloatArray,
    penalty: float,
    steps: FloatArray,
    radius: float,
    gradient: FloatArray,
) -> None:  # pragma: no cover  (compiled)
    """Add the forward difference of mean loss plus penalty times mean violation."""
    n_points, dim = len(losses), steps.shape[1]
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
        slope = (value - base) / radius / (n_points - 1)
        for d in range(dim):
            gradient[d] += slope * (steps[k - 1, d] / radius)


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
