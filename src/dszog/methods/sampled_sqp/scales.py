"""How large variables are: what the start, the bounds, curves and slopes say of it.

Where values in a row curve as much as they slope, variables are far smaller than the
start is: then steps are shortened, and slopes over short ones and somewhat longer ones
tell how large each variable is (phase "sizes"). In the end all is counted in scaled
variables, along which functions change by the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray
from dszog.methods.sampled_sqp.looks import Found, inward
from dszog.methods.sampled_sqp.losses_table import LossTable
from dszog.methods.sampled_sqp.models import WITHIN, WorkingSet
from dszog.methods.sampled_sqp.noise import ROUNDING, noise_level, reach
from dszog.methods.sampled_sqp.state import SampledSQPState

PILOT_REACH = 1e-6  # of the size of a variable: first steps of differences
OFFSET = 1e-3  # of the start: a variable that is smaller is counted from there
SURE = 64.0  # times the noise: a slope at the first of points in a row
LOST = 30.0  # times the noise: values that change by less say nothing
CLEAR = 3.0  # times the noise: smaller changes count as none
STEPS_APART = 32.0  # between the steps whose slopes tell sizes
NOISE_FUNCTIONS = 8  # of each kind, from which noise, or sizes, are estimated
LEADING = 16  # members whose slopes tell sizes, of cases
FAR = 1e3  # times the usual size: what may only be stationary at the start
PLAUSIBLE = 30.0  # times more or less a variable may move by slopes than by bounds
ALIKE = 10.0  # differences of both kinds use one step, if theirs differ by less
NO_SLOPE = 1.0  # the steepness where no difference of the objective shows any
LOW_PRICE, FIRST_PRICE = 1e1, 1e2  # of violations, in units of the gradient


# ------------------------------------------------------------------ before any value


def usual_sizes(x: FloatArray, size: ProblemSize) -> FloatArray:
    """Return how large variables are, as far as the start and the bounds say."""
    room = size.upper - size.lower
    by_start = np.where(x != 0, np.abs(x), 1.0)
    usual = np.where(np.isfinite(room), np.clip(room, 1e-300, None), by_start)
    usual = np.where(usual > 1.0, np.maximum(1.0, 1e-2 * usual), usual)
    is_narrow = (room > 0) & (room < OFFSET * np.abs(x))
    return np.where(is_narrow, room, np.maximum(np.abs(x), usual))


def origin(x: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return from where variables are counted: the start, if that is large for them."""
    return np.where(sizes < OFFSET * np.abs(x), x, 0.0)


def first_steps(state: SampledSQPState) -> FloatArray:
    """Return steps for differences while nothing else is known of the variables."""
    return inward(state.x, PILOT_REACH * state.sizes, state.size)


# ------------------------------------------------------------- slopes over two steps


def too_long(losses: FloatArray, rows: FloatArray) -> float:
    """Return by what to shorten steps over which values curve as much as they slope.

    Not if the slope at the first point, as all of them say, is lost in noise: then the
    point is stationary, for what is known. Else it is so many steps away from where
    the slope would vanish.
    """
    means = [losses.mean(axis=1)] if losses.shape[1] else []
    found = 1.0
    for values in (*means, *rows.T):
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


def measuring(state: SampledSQPState) -> SampledSQPState:
    """Ask for slopes over two short steps along each variable, to learn its size."""
    (look,), n = state.looks, NOISE_FUNCTIONS
    steps = np.maximum(state.shorter * np.abs(first_steps(state)), state.finest)
    short = replace(
        look,
        losses=look.losses[:n],
        constraints=look.constraints[:n],
        loss_values=look.loss_values[:n],
        constraint_values=look.constraint_values[:n],
        reach=inward(state.x, steps, state.size),
    )
    longer = replace(short, reach=inward(state.x, STEPS_APART * steps, state.size))
    return replace(state, phase="sizes", looks=(short, longer))


def after_sizes(state: SampledSQPState, found: Sequence[Found]) -> SampledSQPState:
    """Take in how large variables are, as far as slopes over two steps tell.

    By curvature: along each variable a function changes by as much over its size as the
    steepest one promises.
    """
    (short, longer), (near, far) = state.looks, found
    sizes = state.sizes
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
    steps = np.maximum(np.abs(first_steps(state)), state.finest)
    look = state.look_at_slopes(inward(state.x, steps, state.size))
    return replace(state, phase="slopes", looks=(look,))


# --------------------------------------------------------------- by the first slopes


def scaled(state: SampledSQPState) -> SampledSQPState:
    """Change to scaled variables."""
    size, members, table = state.size, state.members, state.table
    raw, loss_slopes = members.raw_slopes, table.slopes
    if not size.has_gradient:
        loss_slopes = _clear(loss_slopes, state.pilot_steps[0], state.loss_noise)
    if not size.has_jacobian:
        raw = _clear(raw, state.pilot_steps[1], state.constraint_noise)
    lead = leading(state)
    point = np.where(state.origin, state.sizes, state.x)
    point = state.sizes if state.n_begun else point
    scale = _scale(state, raw, loss_slopes, lead, point)
    z, slopes, loss_slopes = state.x / scale, raw * scale, loss_slopes * scale
    unsure = members.stale == 1
    members = WorkingSet.empty(size.dim).joined(
        members.indices, members.raw_values, slopes, z
    )
    members = members.marked(unsure)
    leaders = members.kept(lead)
    case_values = replace(state.case_values, points=state.case_values.points / scale)
    case_values = case_values.with_slopes(members.indices, slopes, size)
    table = replace(table, slopes=loss_slopes, gradient=loss_slopes.mean(axis=0))
    length = _usual_length(leaders, point, scale, size)
    measured = in_units(state.measured, scale)
    bent = float(np.median(np.diagonal(measured))) if len(measured) else 0.0
    steepness = max(float(np.linalg.norm(table.gradient)), bent * length) or NO_SLOPE
    if size.by_case:
        members = members.within(WITHIN * length, z)
    rate = 3.0 * leaders.usual_size / math.sqrt(size.dim)
    unit_noise = state.constraint_noise / leaders.usual_size
    loss_reach, row_reach = _reaches(state, table, unit_noise, length, bent * length)
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
        loss_reach=loss_reach,
        row_reach=row_reach,
        unit_noise=unit_noise,
    )


def leading(state: SampledSQPState) -> IntArray:
    """Return places of members: of the many limits of a case most are far away."""
    if not state.size.by_case:
        return np.arange(len(state.members))
    return np.argsort(-state.members.raw_values, kind="stable")[:LEADING]


def _scale(
    state: SampledSQPState,
    raw: FloatArray,
    loss_slopes: FloatArray,
    lead: IntArray,
    point: FloatArray,
) -> FloatArray:
    """Return the unit of each variable: no larger than what it may move by."""
    size, members = state.size, state.members
    scale = _by_curvature(
        variable_scales([raw[lead], loss_slopes]), np.diagonal(state.measured)
    )
    usual = float(np.sort(scale / state.sizes)[(size.dim - 1) // 2])
    farthest = FAR * usual * state.sizes  # a start at 0 says nothing of sizes
    scale = np.where(state.x != 0, np.minimum(scale, farthest), scale)
    rows = WorkingSet.empty(size.dim).joined(
        members.indices[lead],
        members.raw_values[lead],
        raw[lead] * scale,
        state.x / scale,
    )
    with np.errstate(invalid="ignore", over="ignore"):
        room = (size.upper - size.lower) / _usual_length(rows, point, scale, size)
    scale = np.where(room > 0, np.minimum(scale, room), scale)
    return _within_box(scale, size) if size.by_case else scale


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
    return np.where(np.abs(slopes * steps) > CLEAR * noise, slopes, 0.0)


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
    if by_rows:
        return max(by_rows, 1e-3 * by_point)
    with np.errstate(invalid="ignore"):
        room = (size.upper - size.lower) / scale
    room = room[np.isfinite(room) & (room > 0)]
    by_bounds = 0.25 * float(np.median(room)) if len(room) else 0.0
    return 0.5 * by_point or by_bounds or float(np.median(1.0 / scale))


def variable_scales(groups: list[FloatArray]) -> FloatArray:
    """Return the length along each variable that changes functions by the same.

    Parameters
    ----------
    groups : list of ndarray of shape (k, dim)
        Slopes of functions of one kind; a kind counts as a whole, whatever its units.
    """
    dim = groups[0].shape[1]
    squares = np.zeros(dim)
    for slopes in groups:
        if not len(slopes):
            continue
        mean = (np.nan_to_num(slopes) ** 2).mean(axis=0)
        squares += mean / max(float(mean.mean()), 1e-300)
    rates = np.sqrt(squares)
    usual = float(np.median(rates[rates > 0])) if (rates > 0).any() else 1.0
    rates = np.where(rates > 1e-15 * rates.max(initial=0.0), rates, usual)
    return 1.0 / np.where(rates > 0, rates, 1.0)


def in_units(matrix: FloatArray, scale: FloatArray) -> FloatArray:
    """Return a matrix of curvature for the variables divided by `scale`, if any."""
    units = np.multiply.outer(scale, scale)
    return matrix * units if len(matrix) else matrix
