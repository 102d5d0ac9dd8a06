r"""Slopes that are remembered, and the step that follows: formulas of ``slopes.py``.

*Slopes.* Differences :math:`\delta` along unit steps, the rows of :math:`U`, change
what is known of a slope :math:`a` as little as they ask for (Broyden's update; for
random directions [1]_), and by the part :math:`\theta` that is signal and not noise:

.. math:: a \leftarrow a + \theta \, U^T (U U^T + \epsilon I)^{-1} (\delta - U a)

*Noise* of values at four points on a line has the variance :math:`(f_0 - 3 f_1 + 3 f_2
- f_3)^2 / 20`. Of sampled losses, differences also vary with the draw.

*A step* from the iterate, where the objective has the slope :math:`g` and the curvature
:math:`1/t` along the last steps, and constraints the values :math:`c`, slopes :math:`A`
and, as distances, the price :math:`u`, is :math:`s = -t \, (g + A^T \lambda)` with

.. math:: \min_{\lambda \ge 0, \; \|\lambda\| \le u}
          \tfrac{t}{2} \|g + A^T \lambda\|^2 - c^T \lambda

cut to the trust radius. That is the dual of

.. math:: \min_s \; g^T s + \tfrac{1}{2t} \|s\|^2 + u \, \|\max(c + A s, 0)\|

References
----------
.. [1] F. Hanzely, K. Mishchenko and P. Richtarik, "SEGA: variance reduction via
   gradient sketching", NeurIPS 2018.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from dszog.contract import Query, Reply
from dszog.contract.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    freeze,
    frozen_floats,
    frozen_ints,
)
from dszog.maths.gradients import row_means
from dszog.methods.dszog import DSZOGState

HELD, FEWEST, MOST = 2**22, 4, 1024  # numbers of all slopes; least, most of them
ANCHORS = (8, 32, 128)  # iterations whose points are kept
OFTEN = 8  # iterations, after which no value is guessed
SEEN = 10.0  # times the noise that differences are
FAR = 10.0  # times the slope of the objective, that it is thought to be
PULL, MOST_PULL = 2.0, 20.0  # times the slope of the objective, that constraints hold
MERIT = 300.0  # times that, where points compete
RETREAT = 0.2  # of the way to the start, at least
STAY = 0.15  # of the last part of a run: without steps
NEAREST, ROUNDS = 384, 100  # constraints of a step, and rounds of its dual
BROKEN = 8  # violations of a look that count
FULL, CROWD = 4.0, 0.1  # times those that can be kept; part of all: no longer few
CLEAR, SURE = 0.03, 0.1  # of what came of a step, that noise and draws explain; of a
# slope that is not known: steps may grow fast
TINY = 1e-300


@dataclass(frozen=True, eq=False, kw_only=True)
class SlopesState(DSZOGState):
    """Where a run stands; `velocity` is the slope of the objective as far as known."""

    before: FloatArray  # (dim,), the iterate that the step to x began at
    rows: IntArray  # (k,), constraints that matter
    values: FloatArray  # (k,), theirs at `before`
    guessed: IntArray  # those whose value is what slopes say
    slopes: FloatArray  # (k, dim)
    pulls: FloatArray  # (k,), multipliers
    doubts: FloatArray  # (k,), by what part slopes were wrong of late
    found: IntArray  # constraints seen violated at `before` that are to join
    anchors: FloatArray  # (a, dim), the start and some iterates
    trust: float  # no step is longer
    reach: float  # the longest of late
    force: float = 0.0  # the largest slope of the objective of late
    bend: float = 0.0  # curvature of the objective along steps
    noise: float = 0.0  # variance of a value of the objective
    rough: float = 0.0  # that of a constraint, as a distance
    error: float = 0.0  # variance of what is not known of its slope, along a direction
    gain: float = 0.0  # what came of the last steps, each weighing less than the next
    hoped: float = 0.0  # what should have come of them
    ending: float = 0.0  # the radius when the end began; 0 before
    level: float = 0.0  # the mean violation of the look at `before`
    margin: float = 0.0  # by which constraints are kept more than asked for, at the end
    retreat: float = 0.0  # the part of the way to the start that would keep them
    n_looked: int = 0

    @property
    def fallback(self) -> FloatArray:
        """The iterate before one not judged; at the end one nearer to the start."""
        if not self.ending:
            return self.before
        part = min(max(RETREAT, 1.1 * self.retreat), 1.0)
        return frozen_floats(self.before + part * (self.anchors[0] - self.before))

    @property
    def lengths(self) -> FloatArray:
        """How steep constraints are, (k,); at least a part of what half of them are."""
        lengths = _norms(self.slopes)
        if not lengths.any():
            return np.ones(len(lengths))
        return np.maximum(lengths, 0.3 * np.median(lengths[lengths > 0.0]))

    @property
    def price(self) -> float:
        """What a unit of distance to constraints costs: all multipliers at most."""
        held = 2.0 * float(np.linalg.norm(self.pulls * self.lengths))
        force = self.force / math.sqrt(max(int((self.values > 0.0).sum()), 1))
        return min(max(PULL * force, held), MOST_PULL * force)

    @property
    def penalty(self) -> float:
        """What weighs violations, in the units of the functions."""
        typical = self.force / float(np.median(self.lengths)) if len(self.rows) else 1.0
        return MERIT * PULL * typical

    @property
    def is_asked(self) -> BoolArray:
        """Of which constraints the values at x are asked for, and not guessed."""
        moved = self.x - self.before
        far = _norms(self.slopes) * np.linalg.norm(moved)
        near: BoolArray = self.values + self.slopes @ moved + far > 0.0
        return near | (self.pulls > 0.0) | (self.iteration % OFTEN == 0)

    def with_arrays(self, **new: Any) -> Self:
        """Return the state with arrays that nobody else holds."""
        return replace(self, **{name: freeze(array) for name, array in new.items()})


class Around(NamedTuple):
    """Values of the objective around x, less that at x, and how uncertain they are."""

    steps: FloatArray  # (n, dim), along directions
    told: FloatArray  # (n,)
    varied: FloatArray  # (n,), variances over draws of losses
    noise: float  # variance of a value
    back: tuple[float, float, float, float] | None
    # At `before` and its variance over draws; the second difference on the way, and
    # that of it; None where that is not known.

    @classmethod
    def of(cls, state: SlopesState, query: Query, reply: Reply) -> Around:
        """Read the answer: the way back, a line, and other directions."""
        steps = taken(state, query)
        table = reply.losses[1:] - reply.losses[0]
        n = table.shape[1]
        share = (1.0 - n / state.size.n_losses) / n  # a draw without repeats

        def mean(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
            varies = share > 0.0 and n > 1
            spread = rows.var(axis=1, ddof=1) if varies else np.zeros(len(rows))
            return row_means(rows), share * spread

        back, moved = None, state.x - state.before
        if moved.any() and len(steps) > 2 and _alike(steps[1], -moved):
            means, spread = mean(np.stack([table[1], table[1] - 2.0 * table[0]]))
            back = float(means[0]), float(spread[0]), float(means[1]), float(spread[1])
            steps, table = steps[2:], table[2:]
        (told, varied), noise = mean(table), state.noise
        if is_line(steps):
            now = float(told[0] - 3.0 * (told[1] - told[2])) ** 2 / 20.0
            noise += (now - noise) * (0.2 if state.iteration else 1.0)
            steps, told, varied = steps[2:], told[2:], varied[2:]
        return cls(steps, told, varied, noise, back)


# -------------------------------------------------------------------- values and slopes


def joined(
    state: SlopesState, seen: dict[int, float], query: Query, reply: Reply
) -> SlopesState:
    """Take in constraints that were found, and leave out those without a value."""
    kept = np.isin(state.rows, list(seen)) | ~state.is_asked
    known = np.isin(query.constraints, list(seen))
    new, at = query.constraints[known], reply.constraints[:, known]
    now = np.array([seen[j] for j in new.tolist()])
    slopes, trust = np.zeros((len(new), len(state.x))), state.trust
    if len(new):
        steps = query.points(state.size) - state.x
        lengths = _norms(steps)
        clear = lengths > SEEN * math.sqrt(state.rough)
        if clear.any():
            slopes = correction(slopes, steps[clear], (at - now)[clear].T, 1e-2)
        back = float((now / np.maximum(_norms(slopes), TINY)).max())
        trust = max(trust, min(1.5 * back, float(lengths.max())))
        kept_there = at[1] < np.minimum(now, 0.0)  # the first of the earlier iterates
        parts = now[kept_there] / (now - at[1])[kept_there]
        state = replace(
            state, retreat=max(state.retreat, float(parts.max(initial=0.0)))
        )
    rows, values = (
        np.append(state.rows[kept], new),
        np.append(state.values[kept], at[:1]),
    )
    pulls = np.append(state.pulls[kept], np.zeros(len(new)))
    doubts = np.append(state.doubts[kept], np.ones(len(new)))
    # Those that hold most, and the nearest others.
    held = pulls * np.append(_norms(state.slopes)[kept], np.zeros(len(new)))
    best = np.sort(np.lexsort((-values, -held))[: n_held(state.size.dim)])
    old = np.flatnonzero(kept)
    first, last = old[best[best < len(old)]], best[best >= len(old)] - len(old)
    return replace(state, rows=frozen_ints(rows[best]), trust=trust).with_arrays(
        values=values[best],
        slopes=np.vstack([state.slopes[first], slopes[last]]),
        pulls=pulls[best],
        doubts=doubts[best],
    )


def n_held(dim: int) -> int:
    """Return how many constraints may have slopes that are kept."""
    return min(max(HELD // dim, FEWEST), MOST)


def valued(
    state: SlopesState, seen: dict[int, float]
) -> tuple[SlopesState, FloatArray, BoolArray]:
    """Return the values of constraints at x, and which of them slopes have guessed.

    What was a guess at `before` was off by what it is now, at the same slope.
    """
    along = state.slopes @ (state.x - state.before)
    here = np.array([seen.get(j, np.nan) for j in state.rows.tolist()])
    is_guess = np.isnan(here)
    was = np.isin(state.rows, state.guessed) & ~is_guess
    before = np.where(was, here - along, state.values)
    off = np.abs(before - state.values)
    doubts = np.where(off > 0.0, _doubts(state, off, state.reach), state.doubts)
    values = np.where(is_guess, state.values + along, here)
    return state.with_arrays(values=before, doubts=doubts), values, is_guess


def judged(
    state: SlopesState, around: Around, values: FloatArray, is_guess: BoolArray
) -> tuple[SlopesState, bool]:
    """Judge the last step, and learn from it; also return whether it made things worse.

    What came of it is the fall of the objective and of the violations at their price.
    """
    state = replace(state, noise=around.noise)
    if around.back is None:
        return state, False
    fall, varied, second, unsure = around.back
    moved = state.x - state.before
    length = float(np.linalg.norm(moved))
    bent, bend = 4.0 * second / length**2, state.bend
    if abs(second) > 5.0 * math.sqrt(unsure + 6.0 * state.noise):
        bend = bent if bend <= 0.0 else 0.7 * bend + 0.3 * max(bent, 0.1 * bend)
    else:  # noise may have made it
        bend *= 0.9
    rounded = 0.5 * max(bend, 0.0) * length**2
    promised = -float(state.velocity @ moved) - rounded
    along = state.slopes @ moved
    was, hoped, came = (
        float(np.linalg.norm(np.maximum((c + state.margin) / state.lengths, 0.0)))
        for c in (state.values, state.values + along, values)
    )
    hope = promised + state.price * (was - hoped)
    result = fall + state.price * (was - came)
    scatter = math.sqrt(varied + 2.0 * state.noise)
    keep = 0.9 * scatter / (scatter + abs(result) + TINY)
    gain, hoped = keep * state.gain + result, keep * state.hoped + hope
    trust, error = state.trust, state.error
    is_worse = result < -3.0 * scatter - 0.5 * abs(hope)
    if is_worse:
        trust = 0.5 * length
    elif min(abs(promised), abs(result)) ** 2 < 2.0 * state.noise:  # not to be seen
        trust = max(trust, 1.5 * length)
    elif gain > 0.5 * hoped and length > 0.5 * trust:
        known = float(state.velocity @ state.velocity)
        is_clear = keep < CLEAR and result > 0.9 * hope
        is_clear &= error * len(moved) < SURE**2 * known
        trust *= 4.0 if is_clear else 2.0 if keep < 0.3 else 1.3
    elif gain < 0.2 * hoped:
        trust *= 0.7
    if varied > 0.0:  # does the slope promise too much?
        error *= 1.1 if fall > 0.7 * promised else 0.9
    part = _share(error * length**2, varied + 2.0 * state.noise)
    missing = rounded - fall - float(state.velocity @ moved)
    is_known = ~is_guess & ~np.isin(state.rows, state.guessed)
    wrong = np.where(is_known, values - state.values - along, 0.0)
    signal = np.square(wrong / state.lengths)
    wrong *= signal / np.maximum(signal + 2.0 * state.rough, TINY)
    state = state.with_arrays(
        velocity=state.velocity + part * missing / length**2 * moved,
        slopes=state.slopes + np.outer(wrong / length**2, moved),
        doubts=_doubts(state, np.abs(wrong), length),
    )
    trust = max(trust, 1e-6 * state.reach)
    return (
        replace(state, trust=trust, bend=bend, error=error, gain=gain, hoped=hoped),
        is_worse,
    )


def looked(state: SlopesState, over: FloatArray) -> tuple[SlopesState, float, bool]:
    """Return the level of violations in a look, and whether the step raised it.

    Where few constraints were violated, and now far more than slopes can be kept of,
    no level is allowed above the lowest so far: there is no way on through them.
    """
    level, n_broken = float(over.mean()), int((over > 0.0).sum())
    unsure = float(over.std()) / math.sqrt(len(over))  # of a draw
    moved = float(np.linalg.norm(state.x - state.before))
    held = n_held(state.size.dim) / max(state.size.n_constraints, 1)
    is_full = n_broken > FULL * held * len(over)
    is_full = is_full and state.level < CROWD * level * len(over) / n_broken
    limit = state.level + 2.0 * unsure
    if not is_full:
        limit = 1.1 * state.level + 4.0 * unsure if n_broken >= BROKEN else math.inf
    if level > limit and moved:
        return replace(state, trust=min(state.trust, 0.5 * moved)), level, True
    if is_full and moved:
        level = min(state.level, 0.7 * state.level + 0.3 * level)
    return state, level, False


def learned(state: SlopesState, around: Around) -> SlopesState:
    """Learn the slope of the objective along directions."""
    slope, error, steps = state.velocity, state.error, around.steps
    squares = np.square(_norms(steps))
    told = around.told - 0.5 * max(state.bend, 0.0) * squares
    left = float(np.square(told - steps @ slope).mean())
    noisy = float(around.varied.mean()) + 2.0 * state.noise
    length2 = float(squares.mean())
    if length2 > 0.0 and (noisy < 0.5 * left or not error > 0.0):
        error = max(left - noisy, 0.1 * left) / length2
    change = correction(slope[np.newaxis], steps, told[np.newaxis])[0]
    slope = slope + _share(error * length2, noisy) * change
    return replace(state, velocity=frozen_floats(slope), error=error)


def learned_rows(state: SlopesState, query: Query, reply: Reply) -> SlopesState:
    """Learn the slopes of constraints that bind along the directions."""
    is_here = np.isin(query.constraints, state.rows)
    if not (is_here.any() and len(query.steps)):
        return state
    order = np.argsort(state.rows)
    places = order[np.searchsorted(state.rows[order], query.constraints[is_here])]
    steps = taken(state, query)
    told = (reply.constraints[1:] - reply.constraints[0])[:, is_here]
    lengths, rough = state.lengths[places], state.rough
    if is_line(steps):
        third = (told[0] - 3.0 * (told[1] - told[2])) / lengths
        now = float(np.square(third).mean()) / 20.0
        rough += (now - rough) * (0.2 if rough > 0.0 else 1.0)
        steps, told = steps[2:], told[2:]
    state = replace(state, rough=rough)
    if len(steps) < min(FEWEST, state.size.dim):
        return state
    slopes, wrong = np.array(state.slopes), np.zeros(len(state.rows))
    old, told = slopes[places], told.T
    wrong[places] = np.sqrt(np.square(told - old @ steps.T).mean(axis=1))
    unsure = np.square(np.maximum(wrong[places] / lengths, TINY))
    part = np.maximum(unsure - 2.0 * rough, 0.1 * unsure) / np.maximum(unsure, TINY)
    change = correction(old, steps, told)
    change *= part[:, np.newaxis]
    slopes[places] += change
    doubts = np.array(state.doubts)
    length = math.sqrt(float(np.square(_norms(steps)).mean()))
    doubts[places] = _doubts(state, wrong, length)[places]
    return state.with_arrays(slopes=slopes, doubts=doubts)


def correction(
    slopes: FloatArray, steps: FloatArray, told: FloatArray, ridge: float = 1e-6
) -> FloatArray:
    """Return the least change of slopes, (k, dim), that differences ask for, (k, n)."""
    lengths = _norms(steps)
    used = lengths > 1e-6 * lengths.max()
    if not used.all():
        steps, told, lengths = steps[used], told[:, used], lengths[used]
    gram = steps @ steps.T / np.outer(lengths, lengths) + ridge * np.eye(len(steps))
    missing = (told - slopes @ steps.T) / lengths
    change: FloatArray = (np.linalg.solve(gram, missing.T).T / lengths) @ steps
    return change


def taken(state: SlopesState, query: Query) -> FloatArray:
    """Return the steps of a query, as far as bounds let them go."""
    steps: FloatArray = query.steps
    return query.points(state.size)[1:] - query.x if state.size.has_bounds else steps


def is_line(steps: FloatArray) -> bool:
    """Whether the first three steps go thrice, twice and once along one direction."""
    return len(steps) > 2 and _alike(steps[0], 3.0 * steps[2])


# ----------------------------------------------------------------------------- the step


def stepped(state: SlopesState, left: float) -> SlopesState:
    """Return the state with a step from `before` to the minimum of the models.

    So much is `left` of the last part of the run; more than 1 before it.
    """
    slope, limit, ending = state.velocity, state.trust, state.ending
    length = float(np.linalg.norm(slope))
    force = max((0.98 if state.force < FAR * length else 0.8) * state.force, length)
    state = replace(state, force=force)
    scale = state.lengths
    away = (state.values + state.margin) / scale
    back = 1.5 * max(float(away.max(initial=0.0)), 0.0)
    if left < 1.0:
        ending = ending or limit
        limit = min(limit, max(ending * left**2, back, 1e-9 * ending))
    near = np.flatnonzero((away > -2.0 * limit) & state.slopes.any(axis=1))
    if len(near) > NEAREST:  # those that bind, and the nearest others
        near = near[np.lexsort((-away[near], -state.pulls[near]))[:NEAREST]]
    pulls, step = np.array(state.pulls), np.zeros(len(slope))
    if force > 0.0 and (left > STAY or back > 0.0):
        unit = state.slopes[near] / scale[near, np.newaxis]
        stride = 3.0 * limit / force
        if state.bend > 0.0:
            stride = min(stride, 1.0 / state.bend)
        gram, against = unit @ unit.T, unit @ slope
        held, went = state.pulls[near] * scale[near], math.inf
        for _ in range(4):
            held = dual(gram, against, away[near], stride, state.price, held)
            step = -stride * (slope + held @ unit)
            went = float(np.linalg.norm(step))
            if went <= 1.05 * limit:
                break
            stride *= limit / went
        pulls[:] = 0.0
        pulls[near] = held / scale[near]
        step *= min(1.0, limit / max(went, TINY))
    anchors = state.anchors
    if state.iteration in ANCHORS and 16 * anchors.size <= HELD:
        anchors = frozen_floats(np.vstack([anchors, state.before]))
    return replace(
        state,
        x=frozen_floats(state.size.clip(state.before + step)),
        pulls=frozen_floats(pulls),
        anchors=anchors,
        reach=max(limit, 0.9 * state.reach),
        ending=ending,
    )


def dual(
    gram: FloatArray,
    against: FloatArray,
    values: FloatArray,
    stride: float,
    price: float,
    held: FloatArray,
) -> FloatArray:
    """Return the multipliers of the step, by accelerated projected gradients."""
    if not len(values):
        return held
    ahead, bound = np.ones(len(values)), 1.0
    for _ in range(10):  # the largest eigenvalue, about
        ahead = gram @ ahead
        bound = float(np.linalg.norm(ahead)) or 1.0
        ahead /= bound
    last = ahead = held
    t = 1.0
    for _ in range(ROUNDS):
        uphill = stride * (against + gram @ ahead) - values
        new = np.maximum(ahead - uphill / (1.2 * bound * stride), 0.0)
        new *= min(1.0, price / max(float(np.linalg.norm(new)), TINY))
        after = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0
        if (ahead - new) @ (new - last) > 0.0:
            after, ahead = 1.0, new
        else:
            ahead = new + (t - 1.0) / after * (new - last)
        change, last, t = np.abs(new - last).max(), new, after
        if change <= 1e-9 * price:
            break
    return last


def _doubts(state: SlopesState, wrong: FloatArray, length: float) -> FloatArray:
    """Return by what part each slope is off, as a difference over a step shows."""
    changes = np.maximum(_norms(state.slopes) * length, TINY)
    now = wrong * math.sqrt(state.size.dim) / changes
    found: FloatArray = np.minimum((state.doubts + now) / 2.0, 10.0)
    return found


def _norms(rows: FloatArray) -> FloatArray:
    norms: FloatArray = np.sqrt(np.einsum("kd,kd->k", rows, rows))
    return norms


def _share(signal: float, noise: float) -> float:
    """Return the part of a difference that is to be believed."""
    return signal / (signal + noise) if noise > 0.0 else 1.0


def _alike(one: FloatArray, other: FloatArray) -> bool:
    return np.allclose(one, other, rtol=1e-3, atol=0.0)
