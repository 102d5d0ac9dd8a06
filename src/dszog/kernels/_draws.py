"""What is drawn in an iteration: losses, constraints, and points to look at.

The plain forms are ``DSZOG._ask_plainly``, :func:`dszog._random.distinct_indices` and
:func:`dszog.distribution.base.inverse_draws`. What calls each other is in one file:
kernels kept on disk are made anew when their own file changes, and only then.
"""

from __future__ import annotations

import numpy as np

from dszog._arrays import FloatArray, IntArray
from dszog.kernels._compile import compiled


@compiled
def draws(
    uniforms: FloatArray,
    numbers_for_losses: int,
    numbers_for_duals: int,
    loss_batch: int,
    dual_batch: int,
    n_losses: int,
    n_constraints: int,
    touched: IntArray,
    weights: FloatArray,
    rest: float,
    x: FloatArray,
    radius: float,
    steps: FloatArray,
    points: FloatArray,
    drawn: IntArray,
) -> tuple[int, int]:  # pragma: no cover  (compiled)
    """Draw all that an iteration of DSZOG looks at (Alg. 1, lines 9 to 11).

    `steps` come in as directions. To `drawn` go losses, constraints for the weights to
    learn from, and constraints drawn from the weights; then, of equal length, those of
    the last that differ, and where in this list each of them is. Returned are how many
    were drawn from the touched ones, which are the first, and how many differ; -1 where
    the plain form has to do it.
    """
    n_drawn = (len(drawn) - loss_batch - dual_batch) // 3
    losses = drawn[:loss_batch]
    duals = drawn[loss_batch : loss_batch + dual_batch]
    others = drawn[loss_batch + dual_batch :]
    constraints, kept = others[:n_drawn], others[n_drawn : 2 * n_drawn]
    repeats = others[2 * n_drawn :]
    for d in range(len(x)):
        points[0, d] = x[d]
    for k in range(len(steps)):
        for d in range(len(x)):
            steps[k, d] = radius * steps[k, d]
            points[k + 1, d] = x[d] + steps[k, d]
    first = numbers_for_losses
    last = first + numbers_for_duals
    if not distinct_indices(uniforms[:first], n_losses, losses):
        return -1, 0
    if not distinct_indices(uniforms[first:last], n_constraints, duals):
        return -1, 0
    ordered = np.empty(len(constraints))
    _sort(uniforms[last:], ordered)
    if not places(weights, rest, ordered, constraints):
        return -1, 0
    n_touched, n_kept = 0, 0
    for i in range(len(constraints)):
        if constraints[i] == len(touched):  # and so are all that follow
            break
        index = touched[constraints[i]]
        if i == 0 or index > constraints[i - 1]:
            kept[n_kept] = index
            n_kept += 1
        constraints[i], repeats[i] = index, n_kept - 1
        n_touched += 1
    return n_touched, n_kept


@compiled
def distinct_indices(
    uniforms: FloatArray, n: int, drawn: IntArray
) -> bool:  # pragma: no cover  (compiled)
    """Find the first different indices below `n` that uniform numbers stand for.

    As many as there is room for, ascending; False if the numbers do not suffice. They
    are spread evenly: each goes into its bucket, and the insertion sort finds next to
    nothing to do.
    """
    size, exact = len(drawn), 2**53
    if size == n:
        for i in range(n):
            drawn[i] = i
        return True
    beyond, per_index = exact - exact % n, size / n
    indices = np.empty(size, dtype=np.int64)
    ends = np.zeros(size + 1, dtype=np.int64)
    n_drawn = 0
    for i in range(size):
        bits = np.int64(uniforms[i] * exact)
        if bits < beyond:
            indices[n_drawn] = bits % n
            ends[np.int64(indices[n_drawn] * per_index)] += 1
            n_drawn += 1
    n_before = 0
    for bucket in range(size + 1):
        n_in_it = ends[bucket]
        ends[bucket] = n_before
        n_before += n_in_it
    for i in range(n_drawn):
        own = np.int64(indices[i] * per_index)
        drawn[ends[own]] = indices[i]
        ends[own] += 1
    n_kept = 0
    for i in range(n_drawn):
        n_kept += _insert(drawn, n_kept, drawn[i])
    for i in range(size, len(uniforms)):
        if n_kept == size:
            break
        bits = np.int64(uniforms[i] * exact)
        if bits < beyond:
            n_kept += _insert(drawn, n_kept, np.int64(bits % n))
    return n_kept == size


@compiled
def _insert(
    ascending: IntArray, n_there: int, index: np.int64
) -> int:  # pragma: no cover  (compiled)
    """Put an index where it belongs; return 1, or 0 if it is there already."""
    place = n_there
    while place > 0 and ascending[place - 1] > index:
        place -= 1
    if place > 0 and ascending[place - 1] == index:
        return 0
    for later in range(n_there, place, -1):
        ascending[later] = ascending[later - 1]
    ascending[place] = index
    return 1


@compiled
def _sort(
    uniforms: FloatArray, ordered: FloatArray
) -> None:  # pragma: no cover  (compiled)
    """Sort uniform numbers, likewise by buckets."""
    size = len(uniforms)
    ends = np.zeros(size, dtype=np.int64)
    for i in range(size):
        ends[np.int64(uniforms[i] * size)] += 1
    n_before = 0
    for bucket in range(size):
        n_in_it = ends[bucket]
        ends[bucket] = n_before
        n_before += n_in_it
    for i in range(size):
        own = np.int64(uniforms[i] * size)
        ordered[ends[own]] = uniforms[i]
        ends[own] += 1
    for i in range(size):
        number, place = ordered[i], i
        while place > 0 and ordered[place - 1] > number:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = number


@compiled
def places(
    weights: FloatArray, rest: float, uniforms: FloatArray, drawn: IntArray
) -> bool:  # pragma: no cover  (compiled)
    """Find where each uniform number falls among the weights, then the rest.

    Uniform numbers ascend, and so do the places. False if the weights are no weights.
    """
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


FIRST = distinct_indices
