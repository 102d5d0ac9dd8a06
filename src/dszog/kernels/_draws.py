"""What is drawn in an iteration, compiled: losses, constraints, directions.

What calls each other is in one file: kernels kept on disk are made anew when their own
file changes, and only then.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray
from dszog.kernels._compile import compiled

AnyArray: TypeAlias = FloatArray | IntArray


@compiled
def draw(
    uniforms: FloatArray,
    n_losses: int,
    loss_batch: int,
    for_losses: int,
    n_constraints: int,
    dual_batch: int,
    for_duals: int,
    touched: IntArray,
    weights: FloatArray,
    rest: float,
    drawn: IntArray,
) -> int:
    """Draw all that an iteration of DSZOG looks at (Alg. 1, lines 9 to 11)."""
    # Of losses and of constraints for the weights to learn from: how many there are,
    # how many are drawn, and of how many numbers. To `drawn` go the two draws, then
    # constraints drawn from the weights; then, of equal length, those of the last that
    # differ, and where in this list each of them is. Returned is how many differ; -1
    # where numbers do not suffice.
    first, last = for_losses, for_losses + for_duals
    n_drawn = (len(drawn) - loss_batch - dual_batch) // 3
    losses = drawn[:loss_batch]
    duals = drawn[loss_batch : loss_batch + dual_batch]
    others = drawn[loss_batch + dual_batch :]
    constraints, kept = others[:n_drawn], others[n_drawn : 2 * n_drawn]
    repeats = others[2 * n_drawn :]
    if not distinct_indices(uniforms[:first], n_losses, losses):
        return -1
    if not distinct_indices(uniforms[first:last], n_constraints, duals):
        return -1
    numbers, ranks = uniforms[last : last + n_drawn], uniforms[last + n_drawn :]
    if not _weighted(
        numbers, ranks, n_constraints, touched, weights, rest, constraints
    ):
        return -1
    n_kept = 0
    for i in range(n_drawn):
        if i == 0 or constraints[i] > constraints[i - 1]:
            kept[n_kept] = constraints[i]
            n_kept += 1
        repeats[i] = n_kept - 1
    return n_kept


@compiled
def _weighted(
    numbers: FloatArray,
    ranks: FloatArray,
    n_constraints: int,
    touched: IntArray,
    weights: FloatArray,
    rest: float,
    drawn: IntArray,
) -> bool:
    """Draw constraints with repeats from the weights, ascending."""
    # A number says which touched one, or the background, and then a rank which of that.
    # False where weights are no weights, or a rank stands for none.
    size, exact, n_background = len(drawn), 2**53, n_constraints - len(touched)
    ordered = np.empty(size)
    _sort(numbers, size, float(size), ordered)
    if not places(weights, rest, ordered, drawn):
        return False
    n_touched = 0
    while n_touched < size and drawn[n_touched] < len(touched):
        drawn[n_touched] = touched[drawn[n_touched]]
        n_touched += 1
    if n_touched == size:
        return True
    for i in range(n_touched, size):
        bits = np.int64(ranks[i] * exact)
        if bits >= exact - exact % n_background:
            return False
        rank, low, high = bits % n_background, 0, len(touched)
        while low < high:  # touched[t] - t background constraints lie below touched[t]
            middle = (low + high) // 2
            if touched[middle] - middle <= rank:
                low = middle + 1
            else:
                high = middle
        drawn[i] = rank + low
    in_order = np.empty(size, dtype=np.int64)
    _sort(drawn, size, size / n_constraints, in_order)
    drawn[:] = in_order
    return True


@compiled
def distinct_indices(uniforms: FloatArray, n: int, drawn: IntArray) -> bool:
    """Find the first different indices below `n` that uniform numbers stand for."""
    # As many as there is room for, ascending; False if the numbers do not suffice.
    size, exact = len(drawn), 2**53
    if size == n:
        for i in range(n):
            drawn[i] = i
        return True
    beyond, ordered = exact - exact % n, np.empty(size, dtype=np.int64)
    n_kept, n_read = 0, 0
    while n_kept < size and n_read < len(uniforms):
        # No more than are missing, so that none of them is one too many.
        last, n_drawn = min(n_read + size - n_kept, len(uniforms)), n_kept
        for i in range(n_read, last):
            bits = np.int64(uniforms[i] * exact)
            if bits < beyond:
                drawn[n_drawn] = bits % n
                n_drawn += 1
        n_read = last
        _sort(drawn, n_drawn, n_drawn / n, ordered)
        n_kept = 0
        for i in range(n_drawn):
            if i == 0 or ordered[i] > ordered[i - 1]:
                drawn[n_kept] = ordered[i]
                n_kept += 1
    return n_kept == size


@compiled
def _sort(values: AnyArray, size: int, per_value: float, ordered: AnyArray) -> None:
    """Sort the first `size` values, spread evenly from 0 to ``size / per_value``."""
    # Each goes into its bucket, and the insertion sort finds next to nothing to do.
    ends = np.zeros(size + 1, dtype=np.int64)
    for i in range(size):
        ends[np.int64(values[i] * per_value)] += 1
    n_before = 0
    for bucket in range(size + 1):
        n_in_it = ends[bucket]
        ends[bucket] = n_before
        n_before += n_in_it
    for i in range(size):
        own = np.int64(values[i] * per_value)
        ordered[ends[own]] = values[i]
        ends[own] += 1
    for i in range(1, size):
        value, place = ordered[i], i
        while place > 0 and ordered[place - 1] > value:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = value


@compiled
def places(
    weights: FloatArray, rest: float, uniforms: FloatArray, drawn: IntArray
) -> bool:
    """Find where each uniform number falls among the weights, then the rest."""
    # Uniform numbers ascend, and so do the places. False if the weights are no weights.
    k = len(weights)
    heights = np.empty(k + 1)
    height = 0.0
    for i in range(k):
        height += weights[i]
        heights[i] = height
    heights[k] = height + rest
    top = heights[k]
    if not (np.isfinite(top) and top > 0.0):
        return False
    last = 0
    while heights[last] < top:  # the first to reach it: those after have no weight
        last += 1
    place = 0
    for i in range(len(uniforms)):
        height = uniforms[i] * top
        while place < last and heights[place] <= height:
            place += 1
        drawn[i] = place
    return True


@compiled
def orthogonal(normals: FloatArray, directions: FloatArray) -> None:
    """Turn normal numbers into orthogonal rows of length root dim, `dim` in a set."""
    # Gram and Schmidt's way, a column of a set's numbers at a time and each of them
    # twice, which leaves no more than rounding of what is not orthogonal.
    n, dim = directions.shape
    for first in range(0, n, dim):
        size = min(dim, n - first)
        columns = normals[first * dim : (first + size) * dim].reshape(dim, size)
        for k in range(size):
            own = directions[first + k]
            for d in range(dim):
                own[d] = columns[d, k]
            for _ in range(2):
                for other in range(first, first + k):
                    along = 0.0
                    for d in range(dim):
                        along += directions[other, d] * own[d]
                    for d in range(dim):
                        own[d] -= along / dim * directions[other, d]
            square = 0.0
            for d in range(dim):
                square += own[d] * own[d]
            # Without a length there is no direction: zeros, as in the plain form.
            scale = math.sqrt(dim / square) if square > 0.0 else 0.0
            for d in range(dim):
                own[d] *= scale


@compiled
def around(
    x: FloatArray,
    directions: FloatArray,
    radius: float,
    points: FloatArray,
) -> None:
    """Scale directions to steps; fill in a point with those at their ends."""
    for d in range(len(x)):
        points[0, d] = x[d]
    for k in range(len(directions)):
        for d in range(len(x)):
            directions[k, d] *= radius
            points[k + 1, d] = x[d] + directions[k, d]
