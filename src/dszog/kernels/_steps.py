r"""What values are turned into, compiled: a step in the variables, one in the weights.

Results go into arrays that the caller hands in: to return one, Numba runs Python code
that Ctrl-C must not hit. What calls each other is in one file: kernels kept on disk are
made anew when their own file changes, and only then. The numbers of a step come in one
array, in the order of `NUMBERS`.
"""

from __future__ import annotations

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray
from dszog.kernels._compile import compiled

NUMBERS = (
    *("background_weight", "background_gradient", "n_constraints"),
    *("averaging", "mixing", "dual_step_size", "step_eps", "penalty", "ridge"),
    *("spread", "merge_weight", "merge_gradient", "adaptive", "centred"),
    *("radius", "step_size"),  # the last two are of the step in the variables
)


@compiled
def descend(
    losses: FloatArray,
    constraints: FloatArray,
    steps: FloatArray,
    x: FloatArray,
    velocity: FloatArray,
    numbers: FloatArray,
    moved: FloatArray,
) -> tuple[bool, float, float, float]:
    """Take a step down the forward difference of mean loss plus mean penalty."""
    # The new point and the new averaged gradient become the rows of `moved`. Returned:
    # whether all values are finite, the mean loss at the point, the worst violation
    # there, and the mean of all violations over the constraints seen.
    averaging, step_eps, penalty = numbers[3], numbers[6], numbers[7]
    adaptive, radius, step_size = numbers[12] != 0.0, numbers[14], numbers[15]
    n_points, dim = len(losses), len(x)
    n_losses, n_constraints = max(losses.shape[1], 1), max(constraints.shape[1], 1)
    there, gradient = moved[0], moved[1]
    gradient[:] = 0.0
    # The sums of all points side by side: none waits for the one before it.
    sums = np.zeros((3, n_points))
    loss, total, square = sums[0], sums[1], sums[2]
    for i in range(losses.shape[1]):
        for k in range(n_points):
            loss[k] += losses[k, i]
    worst, mean_violation = 0.0, 0.0
    for j in range(constraints.shape[1]):
        for k in range(n_points):
            over = max(constraints[k, j], 0.0)
            total[k] += constraints[k, j]
            square[k] += over * over
        worst = max(worst, constraints[0, j])
        mean_violation += max(constraints[0, j], 0.0) / n_constraints
    checked, base, objective = 0.0, 0.0, loss[0] / n_losses
    for k in range(n_points):
        checked += loss[k] + total[k]  # finite only if every value is
        value = loss[k] / n_losses + penalty * (square[k] / n_constraints)
        if k == 0:
            base = value
            continue
        slope = (value - base) / radius / (n_points - 1)  # Alg. 1, line 12
        along = slope / radius  # a direction is a step over the radius
        for d in range(dim):
            gradient[d] += along * steps[k - 1, d]
    norm = 0.0
    for d in range(dim):
        gradient[d] = (1 - averaging) * velocity[d] + averaging * gradient[d]  # line 14
        norm += gradient[d] * gradient[d]
    scale = step_size
    if adaptive:
        scale = scale / (np.sqrt(np.sqrt(norm)) + step_eps)
    for d in range(dim):
        there[d] = x[d] - scale * gradient[d]  # line 5
    return bool(np.isfinite(checked)), objective, worst, mean_violation


@compiled
def violations(
    values: FloatArray, penalties: FloatArray
) -> tuple[bool, float, int, float]:
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


@compiled
def combine(
    others: IntArray,
    values: FloatArray,
    drawn: IntArray,
    penalties: FloatArray,
    indices: IntArray,
    weights: FloatArray,
    background_weight: float,
    uniform: float,
    both: IntArray,
    scaled: FloatArray,
) -> int:
    """Join two draws; scale each penalty by the chances that it comes to light."""
    # `others` with the values in the first row are drawn from the weights, `drawn` with
    # `penalties` uniformly, each with the chance `uniform`. Without any of the former
    # the latter stay as they are. Returned is how many differ.
    missed = np.log1p(-uniform)
    n, i, j, place = 0, 0, 0, 0
    while i < len(others) or j < len(drawn):
        if j == len(drawn) or (i < len(others) and others[i] < drawn[j]):
            at, over = others[i], max(values[0, i], 0.0)
            penalty = over * over
        else:
            at, penalty = drawn[j], penalties[j]
            j += 1
        while i < len(others) and others[i] == at:
            i += 1
        if penalty > 0.0 and len(others):
            while place < len(indices) and indices[place] < at:
                place += 1
            weight = background_weight
            if place < len(indices) and indices[place] == at:
                weight = weights[place]
            neither = len(others) * np.log1p(-min(weight, 1.0)) + missed
            penalty *= uniform / -np.expm1(neither)
        both[n], scaled[n] = at, penalty
        n += 1
    return n


@compiled
def learn(
    indices: IntArray,
    weights: FloatArray,
    gradient: FloatArray,
    memory: FloatArray,
    drawn: IntArray,
    penalties: FloatArray,
    numbers: FloatArray,
    all_indices: IntArray,
    table: FloatArray,
) -> tuple[int, float, float]:
    """Estimate, ascend, project, average, merge."""
    # The touched ones go to `all_indices` and `table`, whose rows are their weights,
    # gradients and memories and which have room for the old ones and all drawn.
    # Returned are how many there are, -1 if a number is not finite, and the
    # background's two.
    background_weight, background_gradient = numbers[0], numbers[1]
    n_constraints, b, a = int(numbers[2]), numbers[3], numbers[4]
    step_size, step_eps, penalty, ridge = numbers[5], numbers[6], numbers[7], numbers[8]
    factor, adaptive, centred = penalty * numbers[9], numbers[12] != 0, numbers[13] != 0
    merge_weight, merge_gradient = numbers[10], numbers[11]
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
    target, finite = np.empty(n), np.isfinite(square) & np.isfinite(background_target)
    for i in range(n):
        target[i] = p[i] + scale * z[i]
        finite &= np.isfinite(target[i])
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

    n_kept, least_z = 0, merge_gradient * norm
    for i in range(n):  # those that differ from the background move up
        p[i] /= total
        near = abs(p[i] - background_p) <= merge_weight
        near &= abs(z[i] - background_z) <= least_z
        if not (near & (seen[i] == 0.0)):
            all_indices[n_kept], seen[n_kept] = all_indices[i], seen[i]
            p[n_kept], z[n_kept] = p[i], z[i]
            n_kept += 1
    return n_kept, background_p, background_z


@compiled
def _project(values: FloatArray, background: float, n_background: int) -> float:
    """Project in place onto the simplex; return the projected background."""
    # Newton's method on the threshold: each pass leaves out the entries that the last
    # threshold sends to 0, and ends when none is left out. One that is left out never
    # comes back, so each pass looks only at those that the last one kept.
    n = len(values)
    left = np.empty(n)
    above, n_left = 0.0, 0
    for i in range(n):
        excess = values[i] - background
        above += max(excess, 0.0)
        left[n_left] = excess
        n_left += excess < 0.0
    if n_background > 0 and above < 1.0:
        n_above, n_before = n - n_left, -1
        lift = (1.0 - above) / (n_background + n_above)
        while True:
            below, n_below = 0.0, 0
            for i in range(n_left):
                excess = left[i]
                left[n_below] = excess
                below += excess if excess + lift > 0.0 else 0.0
                n_below += excess + lift > 0.0
            if n_below == n_before:
                break
            lift = (1.0 - above - below) / (n_background + n_above + n_below)
            n_left = n_before = n_below
        for i in range(n):
            values[i] = max(values[i] - background + lift, 0.0)
        return lift
    largest = values.max()
    for i in range(n):
        left[i] = (values[i] / 2 - largest / 2) * 2
    # From below: every entry that may stay positive counts at first.
    threshold, n_left, n_before = -1.0, n, -1
    while True:
        total, n_positive = 0.0, 0
        for i in range(n_left):
            value = left[i]
            left[n_positive] = value
            total += value if value > threshold else 0.0
            n_positive += value > threshold
        if n_positive == n_before:
            break
        threshold = (total - 1.0) / n_positive
        n_left = n_before = n_positive
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
def step(
    losses: FloatArray,
    constraints: FloatArray,
    values: FloatArray,
    steps: FloatArray,
    x: FloatArray,
    velocity: FloatArray,
    drawn: IntArray,
    others: IntArray,
    indices: IntArray,
    weights: FloatArray,
    gradient: FloatArray,
    memory: FloatArray,
    numbers: FloatArray,
    all_indices: IntArray,
    found: FloatArray,
) -> tuple[bool, float, float, float, int, int, float, float]:
    """Take both steps of an iteration: what :func:`descend` and :func:`learn` do."""
    # `found` is room for the new point, the new averaged gradient and the table of
    # `learn`. Returned: whether all values are finite and no number overflows; the mean
    # loss, the worst violation of all, and the mean one of those drawn from the
    # weights; how many of the others are violated; and what `learn` returns.
    dim, room = len(x), len(all_indices)
    moved = found[: 2 * dim].reshape(2, dim)
    table = found[2 * dim :].reshape(3, room)
    finite, objective, worst, mean_violation = descend(
        losses, constraints, steps, x, velocity, numbers, moved
    )
    penalties = np.empty(len(values))
    all_known, worst_seen, n_seen, _ = violations(values, penalties)
    n_touched, background_p, background_z = 0, 0.0, 0.0
    if finite and all_known:
        both = np.empty(len(others) + len(drawn), dtype=np.int64)
        scaled = np.empty(len(both))
        n_both = combine(
            others,
            constraints,
            drawn,
            penalties,
            indices,
            weights,
            numbers[0],
            1.0 / numbers[9],
            both,
            scaled,
        )
        known = indices, weights, gradient, memory
        n_touched, background_p, background_z = learn(
            *known, both[:n_both], scaled[:n_both], numbers, all_indices, table
        )
    return (
        finite and all_known and n_touched >= 0,
        objective,
        max(worst, worst_seen),
        mean_violation,
        n_seen,
        n_touched,
        background_p,
        background_z,
    )
