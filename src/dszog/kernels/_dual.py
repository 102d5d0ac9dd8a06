r"""One dual step and one draw from the weights, each in a single compiled pass.

The plain forms are :meth:`SparseDistribution.learn` and :func:`inverse_draws`. Results
go into arrays that the caller hands in: to return one, Numba runs Python code that
Ctrl-C must not hit.
"""

from __future__ import annotations

import numpy as np

from dszog._arrays import FloatArray, IntArray
from dszog.kernels._compile import compiled


@compiled
def learn(
    indices: IntArray,
    weights: FloatArray,
    gradient: FloatArray,
    memory: FloatArray,
    background_weight: float,
    background_gradient: float,
    n_constraints: int,
    drawn: IntArray,
    penalties: FloatArray,
    b: float,
    a: float,
    step_size: float,
    step_eps: float,
    penalty: float,
    ridge: float,
    factor: float,
    merge_weight: float,
    merge_gradient: float,
    adaptive: bool,
    centred: bool,
    all_indices: IntArray,
    table: FloatArray,
) -> tuple[int, float, float]:  # pragma: no cover  (compiled)
    """Estimate, ascend, project, average, merge.

    The touched ones go to `all_indices` and `table`, whose rows are their weights,
    gradients and memories and which have room for the old ones and all drawn. Returned
    are how many there are, -1 if a number is not finite, and the background's two.
    """
    # Touch: both lists ascend, so one walk joins them. `news` are the penalties drawn,
    # -1 where none was.
    k, room = len(indices), len(all_indices)
    p, z, seen = table[0], table[1], table[2]
    news = np.full(room, -1.0)
    n, i = 0, 0
    for j in range(len(drawn)):
        at, value = drawn[j], penalties[j]
        while i < k and indices[i] < at:
            all_indices[n] = indices[i]
            p[n], z[n], seen[n] = weights[i], gradient[i], memory[i]
            n, i = n + 1, i + 1
        if i < k and indices[i] == at:
            p[n], z[n], seen[n] = weights[i], gradient[i], memory[i]
            i += 1
        elif value > 0.0:
            p[n], z[n], seen[n] = background_weight, background_gradient, 0.0
        else:
            continue
        all_indices[n], news[n] = at, value
        n += 1
    for rest in range(i, k):
        all_indices[n] = indices[rest]
        p[n], z[n], seen[n] = weights[rest], gradient[rest], memory[rest]
        n += 1
    n_background = n_constraints - n

    background_z = (1 - b) * background_gradient + b * (-ridge * background_weight)
    square = n_background * background_z * background_z
    for i in range(n):
        estimate = -ridge * p[i]  # Alg. 1, line 13
        if centred:
            estimate += penalty * seen[i]
            if news[i] >= 0.0:
                estimate += factor * (news[i] - seen[i])
                seen[i] = news[i]
        else:
            estimate += factor * max(news[i], 0.0)
        z[i] = (1 - b) * z[i] + b * estimate  # line 15
        square += z[i] * z[i]

    norm = np.sqrt(square)
    scale = step_size / (np.sqrt(norm) + step_eps) if adaptive else step_size
    background_target = background_weight + scale * background_z
    target, nothing = np.empty(n), 0.0 * square + 0.0 * background_target
    for i in range(n):
        target[i] = p[i] + scale * z[i]
        nothing += 0.0 * target[i]
    if nothing != 0.0:  # a number is not finite
        return -1, 0.0, 0.0
    background_target = _project(target, background_target, n_background)  # line 6

    total = 0.0
    for i in range(n):
        p[i] = (1 - a) * p[i] + a * target[i]  # line 7
        total += p[i]
    background_p = (1 - a) * background_weight + a * background_target
    total += n_background * background_p
    background_p /= total

    n_same, least_z = 0, merge_gradient * norm
    for i in range(n):
        p[i] /= total
        near = abs(p[i] - background_p) <= merge_weight
        near &= abs(z[i] - background_z) <= least_z
        n_same += near & (seen[i] == 0.0)
    if n_same == 0:  # nearly always
        return n, background_p, background_z
    n_kept = 0
    for i in range(n):
        near = abs(p[i] - background_p) <= merge_weight
        near &= abs(z[i] - background_z) <= least_z
        if not (near & (seen[i] == 0.0)):
            all_indices[n_kept], seen[n_kept] = all_indices[i], seen[i]
            p[n_kept], z[n_kept] = p[i], z[i]
            n_kept += 1
    return n_kept, background_p, background_z


@compiled
def _project(
    values: FloatArray, background: float, n_background: int
) -> float:  # pragma: no cover  (compiled)
    """Project in place onto the simplex; return the projected background.

    Newton's method on the threshold: each pass leaves out the entries that the last
    threshold sends to 0, and ends when none is left out or let in.
    """
    above, n_above, n = 0.0, 0, len(values)
    for i in range(n):
        above += max(values[i] - background, 0.0)
        n_above += values[i] >= background
    if n_background > 0 and above < 1.0:
        lift, n_in = (1.0 - above) / (n_background + n_above), n + 1
        while True:
            below, n_below = 0.0, 0
            for i in range(n):
                excess = min(values[i] - background, 0.0)
                counts = (excess < 0.0) & (excess + lift > 0.0)
                below += excess if counts else 0.0
                n_below += counts
            if n_below >= n_in:  # each pass has fewer, but for rounding
                break
            n_in = n_below
            lift = (1.0 - above - below) / (n_background + n_above + n_below)
        for i in range(n):
            values[i] = max(values[i] - background + lift, 0.0)
        return lift
    largest = values.max()
    # From below: every entry that may stay positive counts at first.
    threshold, n_in = -1.0, n + 1
    while True:
        total, n_positive = 0.0, 0
        for i in range(n):
            shifted = (values[i] / 2 - largest / 2) * 2
            if shifted > threshold:
                total += shifted
                n_positive += 1
        if n_positive >= n_in:
            break
        threshold, n_in = (total - 1.0) / n_positive, n_positive
    # A small threshold has more digits: go back to the values as given if theirs is.
    offset = largest
    if abs(threshold + largest) < abs(threshold):
        threshold, offset = threshold + largest, 0.0
    for _ in range(2):
        total, n_positive = 0.0, 0
        for i in range(n):
            over = values[i] - offset - threshold
            if over > 0.0:
                total += over
                n_positive += 1
        threshold += (total - 1.0) / n_positive
    for i in range(n):
        values[i] = max(values[i] - offset - threshold, 0.0)
    return 0.0


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


FIRST = learn
