"""The pilot: sizes of variables and functions, and the noise of values, at the start.

First values, then values at a few points in a row, from which noise is estimated, then
differences along each variable; again over longer steps where values changed too little
to be told from noise. Where values in a row curve as much as they slope, variables are
far smaller than the start is: then steps are shortened, and slopes over short ones and
somewhat longer ones tell how large each variable is. The objective and the constraints
are judged apart: one may be noisy or rounded where the other is not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply
from dszog.contract.arrays import BoolArray, FloatArray, IntArray
from dszog.maths.random_stream import stream
from dszog.methods.sampled_sqp.looks import (
    Found,
    Look,
    inward,
    peaks,
    places_of,
    slope_looks,
    worst_of,
)
from dszog.methods.sampled_sqp.losses_table import LossTable
from dszog.methods.sampled_sqp.models import WITHIN, WorkingSet
from dszog.methods.sampled_sqp.scales import (
    ROUNDING,
    granularity,
    in_units,
    noise_level,
    reach,
    variable_scales,
)
from dszog.methods.sampled_sqp.state import SampledSQPState

ALL_MEMBERS = 24  # up to so many constraints all are members from the start
FIRST_MEMBERS = 16
FIRST_LOOK = 20  # cases
FIRST_CASES = 2  # whose limits are, where a call returns many
PILOT_REACH = 1e-6  # of the size of a variable
MOST_PILOTS, LONGEST_PILOT = 5, 0.1  # rounds of differences, and their longest steps
WEAK = 1e-3  # of the highest rate: of a variable that may only be stationary here
SHRUNK = 1e-3  # of the size of a variable: the least one where a run begins again
FAR = 1e3  # times the usual: what may only be stationary here
STATIONARY = 10.0  # times a slope over short steps: of one that is none
BENT = 0.05  # second differences in units of first ones, where the start is stationary
PLAUSIBLE = 30.0  # times more or less a variable may move by slopes than by bounds
LOST = 30.0  # times the noise: values that change by less say nothing
CLEAR = 3.0  # times the noise: smaller changes count as none
ROUNDED = 0.3  # of the step between values that are rounded is their noise
NOISE_POINTS = 7
NOISE_FUNCTIONS = 8  # of each kind, from which noise is estimated
ALIKE = 10.0  # differences of both kinds use one step, if theirs differ by less
OFFSET = 1e-3  # of the start: a variable that is smaller is counted from there
SURE = 64.0  # times the noise: a slope at the first of points in a row
MOST_SHORTER = 3  # times that steps are shortened to learn sizes
STEPS_APART = 32.0  # between the steps whose slopes tell sizes
NO_SLOPE = 1.0  # the steepness where no difference of the objective shows any
LOW_PRICE, FIRST_PRICE = 1e1, 1e2  # of violations, in units of the gradient


# --------------------------------------------------------------------------- the values


def after_values(state: SampledSQPState, found: Found) -> SampledSQPState:
    """Take in the first values; learn slopes of the losses and largest values next."""
    look, size = state.looks[0], state.size
    known = ~np.isnan(found.values)
    drawn, values = look.constraints[known], found.values[known]
    rows = ~np.isnan(found.loss_values)
    if state.takes_unknown and not (rows.any() and known.any()):
        return replace(state, n_rejected=state.n_rejected + 1)
    order = np.argsort(-values, kind="stable")
    first = np.arange(len(drawn))
    if size.n_constraints > ALL_MEMBERS:
        chosen = order[peaks(drawn, values)[order]]
        first = with_opposites(chosen[:FIRST_MEMBERS], values)
    if size.by_case:
        _, places = np.unique(drawn[order] // size.block_width, return_index=True)
        worst = order[np.sort(places)[:FIRST_CASES]]
        first = places_of(size.limits_of(size.cases_of(drawn[worst])), drawn)
    objective = float(found.loss_values[rows].mean()) if rows.any() else 0.0
    slopes = Look(
        at=state.x,
        losses=look.losses[rows],
        constraints=drawn[first],
        reach=_first_steps(state),
        loss_values=found.loss_values[rows],
        constraint_values=values[first],
    )
    knows_losses = size.has_gradient or not rows.any()
    knows_rows = size.has_jacobian or not len(first)
    return replace(
        state,
        phase="slopes" if knows_losses and knows_rows else "noise",
        looks=(slopes,),
        table=LossTable.empty(size.dim).grown(
            slopes.losses, slopes.loss_values, np.zeros((len(slopes.losses), size.dim))
        ),
        members=WorkingSet.empty(size.dim).joined(
            slopes.constraints,
            slopes.constraint_values,
            np.zeros((len(slopes.constraints), size.dim)),
            state.x,
        ),
        seen=state.seen.with_values(
            *worst_of(size, look.constraints, found.values), state.x
        ),
        case_values=state.case_values.with_values(
            look.constraints, found.values, size, state.x
        ),
        loss_noise=_rounding(found.loss_values[rows]),
        constraint_noise=_rounding(values[first]),
        pilot_steps=np.zeros((2, size.dim)),
        objective=objective,
        first_objective=objective,
        violation=float(values.max(initial=0.0)),
    )


def with_opposites(chosen: IntArray, values: FloatArray) -> IntArray:
    """Return places with those whose value is exactly the negative of a chosen one's.

    The two sides of an equality join together.
    """
    if not len(chosen):
        return chosen
    negatives = np.isin(values, -values[chosen]) & (values != 0)
    return np.union1d(chosen, np.flatnonzero(negatives))


def _rounding(values: FloatArray) -> float:
    """Return the least noise that values can have."""
    return 2.0**-52 * float(np.median(np.abs(values))) if len(values) else 0.0


def _first_steps(state: SampledSQPState) -> FloatArray:
    """Return steps for differences while nothing else is known of the variables."""
    return inward(state.x, PILOT_REACH * state.sizes, state.size)


def usual_sizes(x: FloatArray, size: ProblemSize) -> FloatArray:
    """Return how large variables are, as far as the start and the bounds say."""
    with np.errstate(invalid="ignore"):
        room = size.upper - size.lower
    by_start = np.where(x != 0, np.abs(x), 1.0)
    usual = np.where(np.isfinite(room), np.clip(room, 1e-300, None), by_start)
    usual = np.where(usual > 1.0, np.maximum(1.0, 1e-2 * usual), usual)
    is_narrow = (room > 0) & (room < OFFSET * np.abs(x))
    sizes: FloatArray = np.where(is_narrow, room, np.maximum(np.abs(x), usual))
    return sizes


def origin(x: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return from where variables are counted: the start, if that is large for them."""
    found: FloatArray = np.where(sizes < OFFSET * np.abs(x), x, 0.0)
    return found


# ---------------------------------------------------------------------------- the noise


def noise_queries(state: SampledSQPState) -> tuple[Query, ...]:
    """Ask at points in a row, close to each other."""
    size, look = state.size, state.looks[0]
    losses, rows = look.losses[:NOISE_FUNCTIONS], look.constraints
    if size.by_case:
        rows = rows[np.argsort(-look.constraint_values, kind="stable")]
    rows = rows[:NOISE_FUNCTIONS]
    query = Query(
        iteration=state.iteration,
        x=state.x,
        steps=steps_in_a_row(state),
        losses=NO_INDICES if size.has_gradient else losses,
        constraints=NO_INDICES if size.has_jacobian else rows,
    )
    return (query,)


def steps_in_a_row(state: SampledSQPState) -> FloatArray:
    """Return steps along a line, the multiples of one.

    Its parts are of unequal length: along a diagonal the curves of a saddle may cancel.
    """
    size = state.size
    rng = stream(state.seed, state.iteration)
    signs, parts = rng.choice([-1.0, 1.0], size.dim), rng.uniform(0.5, 1.0, size.dim)
    spacing = parts * np.abs(_first_steps(state)) / math.sqrt(size.dim)
    spacing = state.shorter * spacing
    spacing = np.maximum(spacing, 64 * np.spacing(np.abs(state.x)))
    most = (NOISE_POINTS - 1) * spacing
    up, down = size.upper - state.x, state.x - size.lower
    signs = np.where(up < most, -1.0, np.where(down < most, 1.0, signs))
    fits = np.where(signs > 0, up, down) >= most
    step = np.where(fits, signs * spacing, 0.0)
    steps: FloatArray = np.arange(1.0, NOISE_POINTS)[:, np.newaxis] * step
    return steps


def after_noise(state: SampledSQPState, replies: Sequence[Reply]) -> SampledSQPState:
    """Note how noisy values are; then learn slopes."""
    reply = _known(replies[0])
    if not state.size.by_case and len(reply.losses) >= 5:
        factor = _too_long(reply)
        # Where a run begins again it may be close to its end: that is no size.
        if factor < 1.0 and state.n_shorter <= MOST_SHORTER and not state.n_begun:
            # Values that still curve jump at the start: no step is short enough.
            is_jump = state.n_shorter == MOST_SHORTER
            factor = 1.0 if is_jump else factor * state.shorter
            return replace(state, shorter=factor, n_shorter=state.n_shorter + 1)
        if 0 < state.n_shorter <= MOST_SHORTER:
            return _measuring(state, reply)
    loss_noise, constraint_noise = state.loss_noise, state.constraint_noise
    looks = state.looks
    if len(reply.losses) >= 5:  # else too many have failed
        if reply.losses.shape[1]:
            loss_noise = float(np.median(noise_level(reply.losses)))
            if _is_stationary(reply.losses.mean(axis=1), loss_noise):
                longest = _longest_steps(state)
                far = inward(state.x, longest, state.size)
                looks = (replace(looks[0], reach=far),)
            elif state.size.by_case:
                looks = _over_noise(state, looks, reply.losses, loss_noise)
        if reply.constraints.shape[1]:
            constraint_noise = float(np.median(noise_level(reply.constraints)))
            if state.size.by_case:
                looks = _over_noise(state, looks, reply.constraints, constraint_noise)
    return replace(
        state,
        phase="slopes",
        looks=looks,
        loss_noise=loss_noise,
        constraint_noise=constraint_noise,
    )


def _over_noise(
    state: SampledSQPState,
    looks: tuple[Look, ...],
    values: FloatArray,
    noise: float,
) -> tuple[Look, ...]:
    """Return looks over steps so long that values along them are told from noise."""
    change = float(np.median(np.abs(np.diff(values, axis=0))))
    usual, first = np.abs(looks[0].reach), np.abs(_first_steps(state))
    lost = LOST * math.sqrt(state.size.dim) * noise
    longer = first * min(3.0 * lost / max(change, noise, 1e-300), 1e3)
    longest = _longest_steps(state)
    longer = np.minimum(np.maximum(usual, longer), longest)
    return (replace(looks[0], reach=inward(state.x, longer, state.size)),)


def _too_long(reply: Reply) -> float:
    """Return by what to shorten steps over which values curve as much as they slope.

    Not if the slope at the first point, as all of them say, is lost in noise: then the
    point is stationary, for what is known. Else it is so many steps away from where
    the slope would vanish.
    """
    losses = [reply.losses.mean(axis=1)] if reply.losses.shape[1] else []
    found = 1.0
    for values in (*losses, *reply.constraints.T):
        first, bends = np.diff(values), np.diff(values, 2)
        bend = float(np.abs(bends).mean())
        noise = ROUNDING * float(np.abs(values).max())
        if bends.min() < 0 < bends.max():  # no plain curve
            noise = float(noise_level(values[:, np.newaxis])[0])
        if bend <= max(OFFSET * float(np.abs(first).mean()), SURE * noise):
            continue
        signs = (-1.0) ** np.arange(len(first))
        orders = np.arange(1.0, len(values))
        parts = [np.diff(values, k)[0] for k in range(1, len(values))]
        slope = abs(float((signs / orders) @ parts))
        if slope > SURE * noise:
            found = min(found, OFFSET * min(slope / bend, 1.0))
    return max(found, 1e-15)


def _measuring(state: SampledSQPState, reply: Reply) -> SampledSQPState:
    """Ask for slopes over two short steps along each variable, to learn its size."""
    loss_noise, row_noise = state.loss_noise, state.constraint_noise
    if reply.losses.shape[1]:
        loss_noise = float(np.median(noise_level(reply.losses)))
    if reply.constraints.shape[1]:
        row_noise = float(np.median(noise_level(reply.constraints)))
    (look,), size = state.looks, state.size
    steps = np.maximum(state.shorter * np.abs(_first_steps(state)), state.finest)
    n = NOISE_FUNCTIONS
    short = replace(
        look,
        losses=look.losses[:n],
        constraints=look.constraints[:n],
        loss_values=look.loss_values[:n],
        constraint_values=look.constraint_values[:n],
        reach=inward(state.x, steps, size),
    )
    longer = replace(short, reach=inward(state.x, STEPS_APART * steps, size))
    return replace(
        state,
        phase="sizes",
        looks=(short, longer),
        loss_noise=loss_noise,
        constraint_noise=row_noise,
    )


def after_sizes(state: SampledSQPState, found: Sequence[Found]) -> SampledSQPState:
    """Take in how large variables are, as far as slopes over two steps tell.

    By curvature: along each variable a function changes by as much over its size as the
    steepest one promises.
    """
    (short, longer), (near, far) = state.looks, found
    table, members, sizes = state.table, state.members, state.sizes
    pairs = zip(near.slopes, far.slopes, strict=True)
    rows = [(*pair, state.constraint_noise) for pair in pairs]
    if len(near.loss_slopes):
        means = near.loss_slopes.mean(axis=0), far.loss_slopes.mean(axis=0)
        rows.append((*means, state.loss_noise))
    step = np.abs(short.reach)
    apart = np.maximum(np.abs(longer.reach - short.reach), 1e-300)
    for slopes, others, noise in rows:
        change = np.nan_to_num(np.abs(others - slopes))
        is_bent = change * step > LOST * noise
        is_known = is_bent & (np.abs(np.nan_to_num(slopes)) * step > LOST * noise)
        if is_known.any():
            root = np.sqrt(2.0 * np.where(is_bent, change, 1.0) / apart)
            most = float((np.abs(slopes) / root)[is_known].max())
            own = np.where(is_bent, most / root, np.inf)
            sizes = np.where(own < OFFSET * sizes, own, sizes)
    state = replace(state, sizes=sizes, origin=origin(state.x, sizes), shorter=1.0)
    steps = np.maximum(np.abs(_first_steps(state)), state.finest)
    slopes_here = Look(
        at=state.x,
        losses=table.indices,
        constraints=members.indices,
        reach=inward(state.x, steps, state.size),
        loss_values=table.values,
        constraint_values=members.values * members.sizes,
    )
    return replace(state, phase="slopes", looks=(slopes_here,))


def _known(reply: Reply) -> Reply:
    """Return a reply without the points where something has failed."""
    lost = np.isnan(reply.losses).any(axis=1) | np.isnan(reply.constraints).any(axis=1)
    return reply._replace(
        losses=reply.losses[~lost], constraints=reply.constraints[~lost]
    )


def _is_stationary(values: FloatArray, noise: float) -> bool:
    """Whether values at points in a row show a curve and next to no slope.

    At a maximum or a saddle, differences over short steps would lead nowhere.
    """
    first, second = np.diff(values), np.diff(values, 2)
    bend = float(np.abs(second).mean())
    return bend > max(BENT * float(np.abs(first).mean()), 4.0 * noise)


# --------------------------------------------------------------------------- the slopes


def with_slopes(state: SampledSQPState, found: Sequence[Found]) -> SampledSQPState:
    """Take in slopes where the looks have moved; values that jump are rounded."""
    dim, table, members = state.size.dim, state.table, state.members
    values, loss_slopes = table.values, np.array(table.slopes)
    raw, slopes = members.values * members.sizes, _raw_slopes(members)
    steps, unsure = np.array(state.pilot_steps), members.stale == 1
    loss_noise, row_noise = state.loss_noise, state.constraint_noise
    for look, one in zip(state.looks, found, strict=True):
        moved = look.reach != 0
        if len(look.losses):
            if state.n_pilot and not loss_slopes.any():
                loss_noise = _if_rounded(loss_noise, one.loss_slopes, look.reach)
            new = moved | state.size.has_gradient
            new = new & ~_agree(loss_slopes, one.loss_slopes, steps[0], loss_noise)
            found_slopes = np.nan_to_num(one.loss_slopes)
            if not state.n_pilot:
                found_slopes = _without_rises(state, look.reach, found_slopes)
            loss_slopes = np.where(new, found_slopes, loss_slopes)
            values, steps[0] = one.loss_values, np.where(moved, look.reach, steps[0])
        if len(look.constraints):
            if state.n_pilot and not slopes.any():
                row_noise = _if_rounded(row_noise, one.slopes, look.reach)
            new = moved | state.size.has_jacobian
            new = new & ~_agree(slopes, one.slopes, steps[1], row_noise)
            slopes = np.where(new, np.nan_to_num(one.slopes), slopes)
            unsure = unsure | np.isnan(one.slopes).any(axis=1)
            raw, steps[1] = one.values, np.where(moved, look.reach, steps[1])
    return replace(
        state,
        table=LossTable.empty(dim).grown(table.indices, values, loss_slopes),
        members=WorkingSet.empty(dim)
        .joined(members.indices, raw, slopes, state.x)
        .marked(unsure & state.size.by_case),
        loss_noise=loss_noise,
        constraint_noise=row_noise,
        is_rounded=int(
            state.is_rounded
            or loss_noise > state.loss_noise
            or row_noise > state.constraint_noise
        ),
        pilot_steps=steps,
        n_pilot=state.n_pilot + 1,
    )


def _without_rises(
    state: SampledSQPState, steps: FloatArray, slopes: FloatArray
) -> FloatArray:
    """Return slopes over the long steps from a stationary start, to leave a saddle.

    Where the objective falls along some variables, a rise along others is no slope: it
    rises on their other side, too.
    """
    is_far = np.abs(steps).max() > 10.0 * np.abs(_first_steps(state)).max()
    changes = slopes.mean(axis=0) * steps
    if not is_far or not (changes < 0).any():
        return slopes
    falls: FloatArray = np.where(changes < 0, slopes, 0.0)
    return falls


def _raw_slopes(members: WorkingSet) -> FloatArray:
    raw: FloatArray = members.slopes * members.sizes[:, np.newaxis]
    return raw


def _agree(
    before: FloatArray, slopes: FloatArray, steps: FloatArray, noise: float
) -> BoolArray:
    """Return which slopes over short steps were right already.

    Those that longer steps multiply show a stationary point, not a slope.
    """
    is_clear = np.abs(before * steps) > LOST * noise
    right: BoolArray = is_clear & (np.abs(slopes) < STATIONARY * np.abs(before))
    return right


def _if_rounded(noise: float, slopes: FloatArray, steps: FloatArray) -> float:
    """Return the noise of values that did not change at all over shorter steps."""
    return max(noise, ROUNDED * granularity(np.nan_to_num(slopes * steps)))


def longer_looks(state: SampledSQPState) -> tuple[Look, ...]:
    """Return looks over longer steps where values hardly changed, for each kind."""
    if state.n_pilot >= MOST_PILOTS:
        return ()
    size, table, members = state.size, state.table, state.members
    for_losses, for_rows = np.zeros((2, size.dim))
    raw = _raw_slopes(members)
    weak = _weak(state, raw)
    if not size.has_gradient:
        for_losses = _longer(state, table.slopes, 0, state.loss_noise, weak)
    if not size.has_jacobian:
        weak = weak | _is_any_far(state, raw)
        for_rows = _longer(state, raw, 1, state.constraint_noise, weak)
    losses = table.indices if for_losses.any() else NO_INDICES
    rows = members.indices if for_rows.any() else NO_INDICES
    values = members.values * members.sizes
    return slope_looks(
        Look(at=state.x, losses=losses, loss_values=table.values, reach=for_losses),
        Look(at=state.x, constraints=rows, constraint_values=values, reach=for_rows),
    )


def _weak(state: SampledSQPState, raw: FloatArray) -> BoolArray:
    """Return the variables that seem to matter far less than others.

    Either they do, or functions are stationary along them here: longer steps tell.
    """
    rates = 1.0 / variable_scales([raw, state.table.slopes])
    weak: BoolArray = rates < WEAK * rates.max()
    return weak


def _is_any_far(state: SampledSQPState, raw: FloatArray) -> bool:
    """Whether a constraint seems so far away that it may be stationary here."""
    usual = _longest_steps(state) / LONGEST_PILOT
    values = state.members.values * state.members.sizes
    if state.size.by_case:  # most limits of a case are
        lead = np.argsort(-values, kind="stable")[:FIRST_MEMBERS]
        values, raw = values[lead], raw[lead]
    values, changes = np.abs(values), np.abs(raw) @ usual
    return bool(((values > FAR * changes) & (changes > 0)).any())


def _longer(
    state: SampledSQPState,
    slopes: FloatArray,
    kind: int,
    noise: float,
    weak: BoolArray,
) -> FloatArray:
    """Return longer steps for the variables that one kind of function hardly felt.

    A kind that changed with other variables and not in the least with this one does not
    depend on it.
    """
    steps = np.abs(state.pilot_steps[kind])
    changes = np.abs(slopes * steps).max(axis=0, initial=0.0)
    clear = changes / max(LOST * noise, 1e-300)
    lost = (clear < 1.0) & (steps > 0)
    if not len(slopes) or (clear >= 1.0).any():
        lost &= changes > 0
    factors = np.clip(3.0 / np.maximum(clear, 1e-300), 10.0, 1e3)
    longest = _longest_steps(state)
    longer = np.minimum(steps * factors, longest)
    lost |= weak & (changes > 0)
    longer = np.where(weak, longest, longer)
    lost &= longer > 1.5 * steps
    return np.where(lost, inward(state.x, longer, state.size), 0.0)


def _longest_steps(state: SampledSQPState) -> FloatArray:
    longest: FloatArray = LONGEST_PILOT / PILOT_REACH * np.abs(_first_steps(state))
    return longest


# ---------------------------------------------------------------------------- the sizes


def scaled(state: SampledSQPState) -> SampledSQPState:
    """Change to scaled variables."""
    size, members, table = state.size, state.members, state.table
    raw = _raw_slopes(members)
    loss_slopes = table.slopes
    if not size.has_gradient:
        loss_slopes = _clear(loss_slopes, state.pilot_steps[0], state.loss_noise)
    if not size.has_jacobian:
        raw = _clear(raw, state.pilot_steps[1], state.constraint_noise)
    values = members.values * members.sizes
    lead = np.arange(len(members))
    if size.by_case:  # of the many limits of a case most are far away
        lead = np.argsort(-values, kind="stable")[:FIRST_MEMBERS]
    scale = _by_curvature(
        variable_scales([raw[lead], loss_slopes]), np.diagonal(state.measured)
    )
    usual = float(np.sort(scale / state.sizes)[(size.dim - 1) // 2])
    farthest = FAR * usual * state.sizes  # a start at 0 says nothing of sizes
    scale = np.where(state.x != 0, np.minimum(scale, farthest), scale)
    rows = WorkingSet.empty(size.dim).joined(
        members.indices[lead], values[lead], raw[lead] * scale, state.x / scale
    )
    point = np.where(state.origin, state.sizes, state.x)
    point = state.sizes if state.n_begun else point
    with np.errstate(invalid="ignore", over="ignore"):
        room = (size.upper - size.lower) / _usual_length(rows, point, scale, size)
    scale = np.where(room > 0, np.minimum(scale, room), scale)
    if size.by_case:
        scale = _within_box(scale, size)
    z, loss_slopes = state.x / scale, loss_slopes * scale
    unsure = members.stale == 1
    members = WorkingSet.empty(size.dim).joined(members.indices, values, raw * scale, z)
    members = members.marked(unsure)
    case_values = replace(state.case_values, points=state.case_values.points / scale)
    case_values = case_values.with_slopes(members.indices, raw * scale, size)
    table = replace(table, slopes=loss_slopes, gradient=loss_slopes.mean(axis=0))
    length = _usual_length(members.kept(lead), point, scale, size)
    measured = in_units(state.measured, scale)
    bent = float(np.median(np.diagonal(measured))) if len(measured) else 0.0
    steepness = max(float(np.linalg.norm(table.gradient)), bent * length) or NO_SLOPE
    usual = float(np.median(members.sizes[lead])) if len(members) else 1.0
    if size.by_case:
        members = members.within(WITHIN * length, z)
    rate = 3.0 * usual / math.sqrt(size.dim)
    unit_noise = state.constraint_noise / usual
    reaches = _reaches(state, table, unit_noise, length, bent * length)
    return replace(
        state,
        members=members,
        table=table,
        scale=scale,
        length=length,
        first_distance=float(np.abs(point / scale).max()),
        measured=measured,
        sigma=(1e-9 if bent else 1.0) * state.caution * steepness / length,
        first_sigma=steepness / length,
        price=(LOW_PRICE if size.by_case else FIRST_PRICE) * steepness,
        seen=replace(
            state.seen, points=state.seen.points / scale, rate=rate, first_rate=rate
        ),
        case_values=case_values,
        anchor=z,
        anchor_gradient=table.gradient,
        loss_reach=reaches[0],
        row_reach=reaches[1],
        unit_noise=unit_noise,
    )


def _by_curvature(scale: FloatArray, bends: FloatArray) -> FloatArray:
    """Return sizes by which curvature is the same, where it was measured.

    Slopes, which give the others, say little where all balances.
    """
    if not len(bends):
        return scale
    known = bends > 1e-16 * bends.max()
    by_bends = 1.0 / np.sqrt(np.where(known, bends, 1.0))
    by_bends *= np.median(scale[known] / by_bends[known]) if known.any() else 1.0
    return np.where(known, by_bends, scale)


def _within_box(scale: FloatArray, size: ProblemSize) -> FloatArray:
    """Return sizes as the bounds say where slopes at the start do not say others.

    Where models are kept for long, what matters is how far variables may go.
    """
    with np.errstate(invalid="ignore"):
        room = size.upper - size.lower
    bounded = np.isfinite(room) & (room > 0)
    if not bounded.any():
        return scale
    shares = scale[bounded] / room[bounded]
    usual = np.median(shares)
    scale = np.array(scale)
    scale[bounded] /= np.clip(shares / usual, 1.0 / PLAUSIBLE, PLAUSIBLE)
    return scale


def _clear(slopes: FloatArray, steps: FloatArray, noise: float) -> FloatArray:
    """Return slopes with 0 for those that noise may have made."""
    clear: FloatArray = np.where(np.abs(slopes * steps) > CLEAR * noise, slopes, 0.0)
    return clear


def _reaches(
    state: SampledSQPState,
    table: LossTable,
    unit_noise: float,
    length: float,
    least: float,
) -> tuple[float, float]:
    """Return the steps of differences that noise asks for: of losses, of constraints.

    One step for both if there is no reason against it: then both share their points.
    """
    steep = np.maximum(np.linalg.norm(table.slopes, axis=1), least)
    steep = steep[steep > 0]
    has_noise = len(steep) > 0 and not state.size.has_gradient
    for_losses = state.loss_noise / float(np.median(steep)) if has_noise else 0.0
    for_rows = 0.0 if state.size.has_jacobian else unit_noise
    found = reach(for_losses, 1.0, length), reach(for_rows, 1.0, length)
    if max(found) <= ALIKE * min(found):
        return max(found), max(found)
    return found


def _usual_length(
    members: WorkingSet, x: FloatArray, scale: FloatArray, size: ProblemSize
) -> float:
    """Return how far steps may go at first, in scaled variables."""
    far = np.abs(members.values)
    far = far[far > 0]
    by_rows = float(np.median(far)) if len(far) else 0.0
    by_point = float(np.linalg.norm(x / scale))
    with np.errstate(invalid="ignore"):
        room = (size.upper - size.lower) / scale
    room = room[np.isfinite(room) & (room > 0)]
    by_bounds = 0.25 * float(np.median(room)) if len(room) else 0.0
    length = max(by_rows, 1e-3 * by_point)
    if not by_rows:
        length = max(0.5 * by_point, 0.0) or by_bounds or float(np.median(1.0 / scale))
    return length
