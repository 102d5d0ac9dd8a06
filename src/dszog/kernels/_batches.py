"""What is done to every batch: drawn, repeats found, values turned into a step.

The plain forms are in :mod:`dszog._random`, :mod:`dszog.query`,
:mod:`dszog.evaluators.base`, :mod:`dszog.penalties` and :mod:`dszog.methods.dszog`.
"""

from __future__ import annotations

import numpy as np

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
def draw(
    uniforms: FloatArray, n: int, drawn: IntArray, n_there: int
) -> int:  # pragma: no cover  (compiled)
    """Add the indices below `n` that uniform numbers stand for to those there, once.

    They ascend, before and after; returned is how many there are then, -1 where a
    number stands for none. The numbers are spread evenly: where nothing is there yet,
    each goes into its bucket, and the insertion sort finds next to nothing to do.
    """
    size, exact = len(uniforms), 2**53
    beyond, per_index = exact - exact % n, size / n
    indices = np.empty(size, dtype=np.int64)
    ends = np.zeros(size + 1, dtype=np.int64)
    for i in range(size):
        bits = np.int64(uniforms[i] * exact)
        if bits >= beyond:
            return -1
        indices[i] = bits % n
        ends[np.int64(indices[i] * per_index)] += 1
    n_before = n_there
    for bucket in range(size + 1):
        n_in_it = ends[bucket]
        ends[bucket] = n_before
        n_before += n_in_it
    for i in range(size):
        own = np.int64(indices[i] * per_index)
        drawn[ends[own]] = indices[i]
        ends[own] += 1
    n_kept = n_there
    for i in range(n_there, n_there + size):
        index, place = drawn[i], n_kept
        while place > 0 and drawn[place - 1] > index:
            place -= 1
        if place > 0 and drawn[place - 1] == index:
            continue
        for later in range(n_kept, place, -1):
            drawn[later] = drawn[later - 1]
        drawn[place] = index
        n_kept += 1
    return n_kept


@compiled
def place(
    x: FloatArray, steps: FloatArray, points: FloatArray
) -> None:  # pragma: no cover  (compiled)
    """Put a point, and the points that steps lead to from it, into the rows."""
    for d in range(len(x)):
        points[0, d] = x[d]
        for k in range(len(steps)):
            points[k + 1, d] = x[d] + steps[k, d]


@compiled
def average(
    before: FloatArray, x: FloatArray, share: float, after: FloatArray
) -> None:  # pragma: no cover  (compiled)
    """Move an average by this share towards a point."""
    for d in range(len(x)):
        after[d] = before[d] + share * (x[d] - before[d])


@compiled
def spread(
    values: FloatArray, places: IntArray, table: FloatArray
) -> bool:  # pragma: no cover  (compiled)
    """Copy values, each to all of its places, and say whether all are finite.

    No places at all: as they stand.
    """
    finite = True
    for k in range(len(values)):
        for j in range(values.shape[1]):
            finite &= np.isfinite(values[k, j])
        if len(places) == 0:
            for j in range(values.shape[1]):
                table[k, j] = values[k, j]
        for j in range(len(places)):
            table[k, j] = values[k, places[j]]
    return finite


@compiled
def descend(
    losses: FloatArray,
    constraints: FloatArray,
    steps: FloatArray,
    x: FloatArray,
    velocity: FloatArray,
    penalty: float,
    radius: float,
    averaging: float,
    step_size: float,
    step_eps: float,
    adaptive: bool,
    moved: FloatArray,
) -> tuple[bool, float, float, int, float]:  # pragma: no cover  (compiled)
    """Take a step down the forward difference of mean loss plus mean penalty.

    The new point and the new averaged gradient become the rows of `moved`. Returned:
    whether all values are finite, the mean loss at the point, the worst violation
    there, how many there are, and their mean over all constraints seen.
    """
    n_points, dim = len(losses), len(x)
    n_losses, n_constraints = max(losses.shape[1], 1), max(constraints.shape[1], 1)
    there, gradient = moved[0], moved[1]
    gradient[:] = 0.0
    finite, base, objective = True, 0.0, 0.0
    worst, n_violated, mean_violation = 0.0, 0, 0.0
    for k in range(n_points):
        loss, violation, square = 0.0, 0.0, 0.0
        for i in range(losses.shape[1]):
            finite &= np.isfinite(losses[k, i])
            loss += losses[k, i]
        for j in range(constraints.shape[1]):
            finite &= np.isfinite(constraints[k, j])
            over = max(constraints[k, j], 0.0)
            violation += over
            square += over * over
        value = loss / n_losses + penalty * (square / n_constraints)
        if k == 0:
            base, objective = value, loss / n_losses
            mean_violation = violation / n_constraints
            for j in range(constraints.shape[1]):
                worst = max(worst, constraints[0, j])
                n_violated += constraints[0, j] > 0.0
            continue
        slope = (value - base) / radius / (n_points - 1)  # Alg. 1, line 12
        for d in range(dim):
            gradient[d] += slope * (steps[k - 1, d] / radius)
    square = 0.0
    for d in range(dim):
        gradient[d] = (1 - averaging) * velocity[d] + averaging * gradient[d]  # line 14
        square += gradient[d] * gradient[d]
    scale = step_size
    if adaptive:
        scale = scale / (np.sqrt(np.sqrt(square)) + step_eps)
    for d in range(dim):
        there[d] = x[d] - scale * gradient[d]  # line 5
    return finite, objective, worst, n_violated, mean_violation


@compiled
def violations(
    values: FloatArray, penalties: FloatArray
) -> tuple[bool, float, int, float]:  # pragma: no cover  (compiled)
    """Square violations; return if all is finite, the worst, how many, and the sum."""
    finite, worst, n_violated, total = True, 0.0, 0, 0.0
    for j in range(len(values)):
        value = values[j]
        finite &= np.isfinite(value)
        over = max(value, 0.0)
        penalties[j] = over * over
        worst = max(worst, over)
        n_violated += value > 0.0
        total += over
    return finite, worst, n_violated, total


FIRST = descend
