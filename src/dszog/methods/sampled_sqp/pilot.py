"""The pilot: values and slopes at the start, and the noise of values.

First values, then values at a few points in a row, from which noise is estimated, then
differences along each variable; again over longer steps where values changed too little
to be told from noise. The objective and the constraints are judged apart: one may be
noisy or rounded where the other is not. :mod:`scales` says how large variables are.
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
from dszog.methods.sampled_sqp.models import WorkingSet
from dszog.methods.sampled_sqp.noise import granularity, noise_level
from dszog.methods.sampled_sqp.scales import (
    FAR,
    LOST,
    NOISE_FUNCTIONS,
    PILOT_REACH,
    first_steps,
    leading,
    measuring,
    too_long,
    variable_scales,
)
from dszog.methods.sampled_sqp.state import SampledSQPState

ALL_MEMBERS = 24  # up to so many constraints all are members from the start
FIRST_MEMBERS = 16
FIRST_LOOK = 20  # cases
FIRST_CASES = 2  # whose limits are, where a call returns many
NOISE_POINTS = 7
ENOUGH = 5  # of these with values, for an estimate of noise
MOST_SHORTER = 5  # times that steps are shortened to learn sizes
MOST_PILOTS, LONGEST_PILOT = 5, 0.1  # rounds of differences, and their longest steps
WEAK = 1e-3  # of the highest rate: of a variable that may only be stationary here
STATIONARY = 10.0  # times a slope over short steps: of one that is none
BENT = 0.05  # second differences in units of first ones, where the start is stationary
ROUNDED = 0.3  # of the step between values that are rounded is their noise


# --------------------------------------------------------------------------- the values


def after_values(state: SampledSQPState, found: Found) -> SampledSQPState:
    """Take in the first values; learn slopes of the losses and largest values next."""
    look, size, dim = state.looks[0], state.size, state.size.dim
    known, has_loss = ~np.isnan(found.values), ~np.isnan(found.loss_values)
    if state.takes_unknown and not (has_loss.any() and known.any()):
        return replace(state, n_rejected=state.n_rejected + 1)
    drawn, values = look.constraints[known], found.values[known]
    first = _first_members(drawn, values, size)
    losses, loss_values = look.losses[has_loss], found.loss_values[has_loss]
    rows, row_values = drawn[first], values[first]
    objective = float(loss_values.mean()) if len(losses) else 0.0
    slopes = Look(
        at=state.x,
        losses=losses,
        constraints=rows,
        reach=first_steps(state),
        loss_values=loss_values,
        constraint_values=row_values,
    )
    knows_losses = size.has_gradient or not len(losses)
    knows_rows = size.has_jacobian or not len(rows)
    return replace(
        state,
        phase="slopes" if knows_losses and knows_rows else "noise",
        looks=(slopes,),
        table=LossTable.empty(dim).grown(
            losses, loss_values, np.zeros((len(losses), dim))
        ),
        members=WorkingSet.empty(dim).joined(
            rows, row_values, np.zeros((len(rows), dim)), state.x
        ),
        seen=state.seen.with_values(
            *worst_of(size, look.constraints, found.values), state.x
        ),
        case_values=state.case_values.with_values(
            look.constraints, found.values, size, state.x
        ),
        loss_noise=_rounding(loss_values),
        constraint_noise=_rounding(row_values),
        objective=objective,
        first_objective=objective,
        violation=float(values.max(initial=0.0)),
    )


def _first_members(drawn: IntArray, values: FloatArray, size: ProblemSize) -> IntArray:
    """Return the places of constraints that are members from the start: the worst."""
    order = np.argsort(-values, kind="stable")
    if size.by_case:
        _, places = np.unique(drawn[order] // size.block_width, return_index=True)
        worst = order[np.sort(places)[:FIRST_CASES]]
        return places_of(size.limits_of(size.cases_of(drawn[worst])), drawn)
    if size.n_constraints <= ALL_MEMBERS:
        return np.arange(len(drawn))
    chosen = order[peaks(drawn, values)[order]]
    return with_opposites(chosen[:FIRST_MEMBERS], values)


def with_opposites(chosen: IntArray, values: FloatArray) -> IntArray:
    """Return places with those whose value is exactly the negative of a chosen one's.

    The two sides of an equality join together.
    """
    negatives = np.isin(values, -values[chosen]) & (values != 0)
    return np.union1d(chosen, np.flatnonzero(negatives))


def _rounding(values: FloatArray) -> float:
    """Return the least noise that values can have."""
    return 2.0**-52 * float(np.median(np.abs(values))) if len(values) else 0.0


# ---------------------------------------------------------------------------- the noise


def noise_query(state: SampledSQPState) -> Query:
    """Ask at points in a row, close to each other."""
    size, look = state.size, state.looks[0]
    losses, rows = look.losses[:NOISE_FUNCTIONS], look.constraints
    if size.by_case:
        rows = rows[np.argsort(-look.constraint_values, kind="stable")]
    rows = rows[:NOISE_FUNCTIONS]
    return Query(
        iteration=state.iteration,
        x=state.x,
        steps=steps_in_a_row(state),
        losses=NO_INDICES if size.has_gradient else losses,
        constraints=NO_INDICES if size.has_jacobian else rows,
    )


def steps_in_a_row(state: SampledSQPState) -> FloatArray:
    """Return steps along a line, the multiples of one.

    Its parts are of unequal length: along a diagonal the curves of a saddle may cancel.
    """
    size = state.size
    rng = stream(state.seed, state.iteration)
    signs, parts = rng.choice([-1.0, 1.0], size.dim), rng.uniform(0.5, 1.0, size.dim)
    spacing = parts * np.abs(first_steps(state)) / math.sqrt(size.dim)
    spacing = state.shorter * spacing
    spacing = np.maximum(spacing, 64 * np.spacing(np.abs(state.x)))
    most = (NOISE_POINTS - 1) * spacing
    up, down = size.upper - state.x, state.x - size.lower
    signs = np.where(up < most, -1.0, np.where(down < most, 1.0, signs))
    fits = np.where(signs > 0, up, down) >= most
    step = np.where(fits, signs * spacing, 0.0)
    return np.arange(1.0, NOISE_POINTS)[:, np.newaxis] * step


def after_noise(state: SampledSQPState, reply: Reply) -> SampledSQPState:
    """Note how noisy values are; then learn slopes, over steps that fit, or sizes."""
    failed = np.isnan(np.hstack([reply.losses, reply.constraints])).any(axis=1)
    losses, rows = reply.losses[~failed], reply.constraints[~failed]
    (look,), by_case = state.looks, state.size.by_case
    if len(losses) < ENOUGH:  # too many have failed
        return replace(state, phase="slopes")
    factor = 1.0 if by_case else too_long(losses, rows)
    # Where a run begins again it may be close to its end: that is no size.
    if factor < 1.0 and state.n_shorter <= MOST_SHORTER and not state.n_begun:
        # Values that still curve jump at the start: no step is short enough.
        is_jump = state.n_shorter == MOST_SHORTER
        factor = 1.0 if is_jump else factor * state.shorter
        return replace(state, shorter=factor, n_shorter=state.n_shorter + 1)
    loss_noise, row_noise = state.loss_noise, state.constraint_noise
    if losses.shape[1]:
        loss_noise = float(np.median(noise_level(losses)))
    if rows.shape[1]:
        row_noise = float(np.median(noise_level(rows)))
    state = replace(state, loss_noise=loss_noise, constraint_noise=row_noise)
    if 0 < state.n_shorter <= MOST_SHORTER:
        return measuring(state)
    if losses.shape[1] and _is_stationary(losses.mean(axis=1), loss_noise):
        far = inward(state.x, _longest_steps(state), state.size)
        look = replace(look, reach=far)
    elif losses.shape[1] and by_case:
        look = _over_noise(state, look, losses, loss_noise)
    if rows.shape[1] and by_case:
        look = _over_noise(state, look, rows, row_noise)
    return replace(state, phase="slopes", looks=(look,))


def _over_noise(
    state: SampledSQPState, look: Look, values: FloatArray, noise: float
) -> Look:
    """Return a look over steps so long that values along them are told from noise."""
    change = float(np.median(np.abs(np.diff(values, axis=0))))
    lost = LOST * math.sqrt(state.size.dim) * noise
    factor = min(3.0 * lost / max(change, noise, 1e-300), 1e3)
    longer = np.maximum(np.abs(look.reach), np.abs(first_steps(state)) * factor)
    longer = np.minimum(longer, _longest_steps(state))
    return replace(look, reach=inward(state.x, longer, state.size))


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
    size, table, members = state.size, state.table, state.members
    values, raw, unsure = table.values, members.raw_values, members.stale == 1
    loss_slopes, slopes = table.slopes, members.raw_slopes
    loss_noise, row_noise = state.loss_noise, state.constraint_noise
    loss_steps, row_steps = state.pilot_steps
    for look, one in zip(state.looks, found, strict=True):
        reach = look.reach
        if len(look.losses):
            told, values = one.loss_slopes, one.loss_values
            if not state.n_pilot:
                told = _without_rises(state, reach, np.nan_to_num(told))
            elif not loss_slopes.any():
                loss_noise = _if_rounded(loss_noise, told, reach)
            new = ~_agree(loss_slopes, told, loss_steps, loss_noise)
            new &= (reach != 0) | size.has_gradient
            loss_slopes = np.where(new, np.nan_to_num(told), loss_slopes)
            loss_steps = np.where(reach != 0, reach, loss_steps)
        if len(look.constraints):
            told, raw = one.slopes, one.values
            if state.n_pilot and not slopes.any():
                row_noise = _if_rounded(row_noise, told, reach)
            new = ~_agree(slopes, told, row_steps, row_noise)
            new &= (reach != 0) | size.has_jacobian
            slopes = np.where(new, np.nan_to_num(told), slopes)
            row_steps = np.where(reach != 0, reach, row_steps)
            unsure = unsure | np.isnan(told).any(axis=1)
    is_rounded = loss_noise > state.loss_noise or row_noise > state.constraint_noise
    return replace(
        state,
        table=LossTable.empty(size.dim).grown(table.indices, values, loss_slopes),
        members=WorkingSet.empty(size.dim)
        .joined(members.indices, raw, slopes, state.x)
        .marked(unsure & size.by_case),
        loss_noise=loss_noise,
        constraint_noise=row_noise,
        is_rounded=int(state.is_rounded or is_rounded),
        pilot_steps=np.array([loss_steps, row_steps]),
        n_pilot=state.n_pilot + 1,
    )


def _without_rises(
    state: SampledSQPState, steps: FloatArray, slopes: FloatArray
) -> FloatArray:
    """Return slopes over the long steps from a stationary start, to leave a saddle.

    Where the objective falls along some variables, a rise along others is no slope: it
    rises on their other side, too.
    """
    is_far = np.abs(steps).max() > 10.0 * np.abs(first_steps(state)).max()
    changes = slopes.mean(axis=0) * steps
    if not is_far or not (changes < 0).any():
        return slopes
    return np.where(changes < 0, slopes, 0.0)


def _agree(
    before: FloatArray, slopes: FloatArray, steps: FloatArray, noise: float
) -> BoolArray:
    """Return which slopes over short steps were right already.

    Those that longer steps multiply show a stationary point, not a slope.
    """
    is_clear = np.abs(before * steps) > LOST * noise
    return is_clear & (np.abs(slopes) < STATIONARY * np.abs(before))


def _if_rounded(noise: float, slopes: FloatArray, steps: FloatArray) -> float:
    """Return the noise of values that did not change at all over shorter steps."""
    return max(noise, ROUNDED * granularity(np.nan_to_num(slopes * steps)))


def longer_looks(state: SampledSQPState) -> tuple[Look, ...]:
    """Return looks over longer steps where values hardly changed, for each kind."""
    if state.n_pilot >= MOST_PILOTS:
        return ()
    size, table, members = state.size, state.table, state.members
    for_losses, for_rows = np.zeros((2, size.dim))
    raw = members.raw_slopes
    weak = _weak(state, raw)
    if not size.has_gradient:
        for_losses = _longer(state, table.slopes, 0, state.loss_noise, weak)
    if not size.has_jacobian:
        weak = weak | _is_any_far(state, raw)
        for_rows = _longer(state, raw, 1, state.constraint_noise, weak)
    losses = table.indices if for_losses.any() else NO_INDICES
    rows = members.indices if for_rows.any() else NO_INDICES
    values = members.raw_values
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
    lead, usual = leading(state), _longest_steps(state) / LONGEST_PILOT
    values = np.abs(state.members.raw_values[lead])
    changes = np.abs(raw[lead]) @ usual
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
    return LONGEST_PILOT / PILOT_REACH * np.abs(first_steps(state))
