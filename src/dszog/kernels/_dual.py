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
    numbers: FloatArray,  # (9,): b, a, step, eps, penalty, ridge, factor, two merges
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
    b, a, step_size, step_eps = numbers[0], numbers[1], numbers[2], numbers[3]
    penalty, ridge, factor = numbers[4], numbers[5], numbers[6]
    merge_weight, merge_gradient = numbers[7], numbers[8]

    # Touch: both lists ascend, so one walk joins them.
    k, n_drawn = len(indices), len(drawn)
    p, z, seen = table[0], table[1], table[2]
    n_new, j = 0, 0
    for i in range(k):
        while j < n_drawn and drawn[j] < indices[i]:
            n_new += penalties[j] > 0.0
            j += 1
        if j < n_drawn and drawn[j] == indices[i]:
            j += 1
    while j < n_drawn:
        n_new += penalties[j] > 0.0
        j += 1
    n_background = n_constraints - k - n_new

    background_z = (1 - b) * background_gradient + b * (-ridge * background_weight)
    square = n_background * background_z * background_z
    n, i, j = 0, 0, 0
    while i < k or j < n_drawn:
        at, value, remembered = np.int64(0), -1.0, 0.0
        if i < k and (j == n_drawn or indices[i] <= drawn[j]):
            at = indices[i]
            p[n], z[n], remembered = weights[i], gradient[i], memory[i]
            i += 1
            if j < n_drawn and drawn[j] == at:
                value = penalties[j]
                j += 1
        else:
            at, value = drawn[j], penalties[j]
            j += 1
            if value <= 0.0:
                continue
            p[n], z[n] = background_weight, background_gradient
        estimate = -ridge * p[n]  # Alg. 1, line 13
        if centred:
            estimate += penalty * remembered
            if value >= 0.0:
                estimate += factor * (value - remembered)
                remembered = value
        elif value > 0.0:
            estimate += factor * value
        z[n] = (1 - b) * z[n] + b * estimate  # line 15
        square += z[n] * z[n]
        all_indices[n], seen[n] = at, remembered
        n += 1

    norm = np.sqrt(square)
    scale = step_size / (np.sqrt(norm) + step_eps) if adaptive else step_size
    target = p[:n] + scale * z[:n]
    background_target = background_weight + scale * background_z
    finite = np.isfinite(square) and np.isfinite(background_target)
    for i in range(n):
        finite = finite and np.isfinite(target[i])
    if not finite:
        return -1, 0.0, 0.0
    background_target = _project(target, background_target, n_background)  # line 6

    total = 0.0
    for i in range(n):
        p[i] = (1 - a) * p[i] + a * target[i]  # line 7
        total += p[i]
    background_p = (1 - a) * background_weight + a * background_target
    total += n_background * background_p
    background_p /= total

    n_kept = 0
    for i in range(n):
        p[i] /= total
        differs = (
            abs(p[i] - background_p) > merge_weight
            or abs(z[i] - background_z) > merge_gradient * norm
            or seen[i] != 0.0
        )
        if differs:
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
        if values[i] >= background:
            above += values[i] - background
            n_above += 1
    if n_background > 0 and above < 1.0:
        lift, n_in = (1.0 - above) / (n_background + n_above), n + 1
        while True:
            below, n_below = 0.0, 0
            for i in range(n):
                excess = values[i] - background
                if excess < 0.0 and excess + lift > 0.0:
                    below += excess
                    n_below += 1
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
