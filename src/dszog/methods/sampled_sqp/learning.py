"""What slopes have told: of constraints that join, and of what a step made stale."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray, is_among
from dszog.methods.sampled_sqp.bundle import OBJECTIVE
from dszog.methods.sampled_sqp.looks import Found, Look, places_of
from dszog.methods.sampled_sqp.models import WITHIN
from dszog.methods.sampled_sqp.options import Options
from dszog.methods.sampled_sqp.plans import learn, proposed, rows_to_refresh
from dszog.methods.sampled_sqp.state import KINKED_ROWS, SampledSQPState

FEW_LOST = 0.25  # of the differences of a member: it is known without them
MOST_LIMITS = 4096  # of cases, that are members


def after_learning(
    options: Options, state: SampledSQPState, found: list[Found]
) -> SampledSQPState:
    """Take in what was learned; learn more of the losses while they are noisy."""
    change = np.zeros(state.size.dim)
    learned_losses, has_moved = False, state.has_moved == 1
    for look, one in zip(state.looks, found, strict=True):
        if state.is_kinked & KINKED_ROWS and state.keeps_planes:
            state, one = _with_row_planes(state, look, one, has_moved)
        state, row_change = _with_rows(state, look, one)
        change = change + row_change
        if len(look.losses) == 1 and not np.array_equal(look.at, state.x):
            state = _with_plane(state, look, one)
        elif len(look.losses):
            state, more = _with_losses(options, state, look, one)
            learned_losses = True
            if len(more):
                return learn(options, state, look.at, NO_INDICES, rows=more)
    if learned_losses:
        state = _with_pair(state, change)
    most = MOST_LIMITS if state.size.by_case else max(6 * state.size.dim, 200)
    members = state.members.trimmed(most, state.z)
    return proposed(options, replace(state, members=members))


def _with_rows(
    state: SampledSQPState, look: Look, found: Found
) -> tuple[SampledSQPState, FloatArray]:
    """Return the working set with models learned; and the change they cause."""
    members, z = state.members, look.at / state.scale
    known = ~np.isnan(found.values)
    indices, values = look.constraints[known], found.values[known]
    slopes = found.slopes[known]
    old = np.isin(indices, members.indices)
    which = places_of(indices[old], members.indices)
    before = members.slopes[which]
    pull = members.multipliers[which]
    members = members.learned_anew(which, values[old], slopes[old], z)
    change: FloatArray = pull @ (members.slopes[which] - before)
    # What was known before goes on to stand in for a few differences that failed.
    unsure = indices[np.isnan(slopes).mean(axis=1) > np.where(old, FEW_LOST, 0.0)]
    new, slopes = ~old, np.nan_to_num(slopes)
    if state.size.by_case:  # of its limits those that are near join
        lengths = np.linalg.norm(slopes, axis=1)
        new &= values > -WITHIN * state.length * lengths
    members = members.joined(indices[new], values[new], slopes[new], z)
    if state.size.by_case and len(unsure):
        members = members.marked(np.isin(members.indices, unsure))
    # Where calls keep failing there is an end to learning.
    n_failed = int(state.size.by_case and bool(len(unsure) or not known.all()))
    state = replace(
        state,
        members=members,
        case_values=state.case_values.with_slopes(
            look.constraints, found.slopes, state.size
        ),
        n_idle=state.n_idle + n_failed,
    )
    return state, change


def _with_losses(
    options: Options, state: SampledSQPState, look: Look, found: Found
) -> tuple[SampledSQPState, IntArray]:
    """Return the table with slopes learned, and rows to learn before going on."""
    table = state.table
    is_old = np.isin(look.losses, table.indices)
    if not is_old.all():  # the table grows
        known = ~np.isnan(found.loss_values)
        if not known.any():  # such cases may never give a value
            return replace(state, n_idle=state.n_idle + 1), NO_INDICES
        table = table.grown(
            look.losses[known],
            found.loss_values[known],
            np.nan_to_num(found.loss_slopes[known]),
        )
        objective = float(table.values.mean())
        return replace(state, table=table, objective=objective), NO_INDICES
    rows = places_of(look.losses, table.indices)
    slopes = found.loss_slopes
    if len(state.measured) and not state.size.has_gradient:
        bends = np.diagonal(state.measured)  # what differences over a step add
        slopes = slopes - 0.5 * bends * look.reach / state.scale
    state = replace(state, table=table.refreshed(rows, slopes))
    return state, rows_to_refresh(options, state)


def _with_plane(state: SampledSQPState, look: Look, found: Found) -> SampledSQPState:
    """Return the state with a plane more; after a step it gives the gradient, too."""
    value, slope = float(found.loss_values[0]), found.loss_slopes[0]
    at, owner = look.at[np.newaxis] / state.scale, np.array([OBJECTIVE])
    bundle = state.bundle.with_planes(owner, np.array([value]), slope[np.newaxis], at)
    table = state.table
    if state.has_moved and np.isfinite(slope).all():
        table = replace(table, slopes=slope[np.newaxis], gradient=slope)
    return replace(state, bundle=bundle, table=table, has_moved=0, n_stale=0)


def _with_row_planes(
    state: SampledSQPState, look: Look, found: Found, has_moved: bool
) -> tuple[SampledSQPState, Found]:
    """Return the state with planes of members, and what else was found.

    After a step they give the members their slopes.
    """
    members, is_old = state.members, is_among(look.constraints, state.members.indices)
    which = places_of(look.constraints[is_old], members.indices)
    sizes = members.sizes[which]
    values = found.values[is_old] / sizes
    slopes = found.slopes[is_old] / sizes[:, np.newaxis]
    if has_moved:
        slopes = np.where(np.isnan(slopes), members.slopes[which], slopes)
        state = replace(state, members=members.changed(which, slopes=slopes))
    else:
        bases = np.tile(look.at / state.scale, (len(which), 1))
        bundle = state.bundle.with_planes(
            look.constraints[is_old], values, slopes, bases
        )
        state = replace(state, bundle=bundle)
    values = np.where(is_old, np.nan, found.values)
    return state, replace(found, values=values)


def _with_pair(state: SampledSQPState, change: FloatArray) -> SampledSQPState:
    """Return the state with what the step says about curvature."""
    pairs, gradient = state.pairs, state.table.gradient
    if state.has_moved:
        step = state.z - state.anchor
        pairs = pairs.with_pair(step, gradient - state.anchor_gradient + change)
    return replace(
        state,
        pairs=pairs,
        anchor=state.z,
        anchor_gradient=gradient,
        n_stale=0,
        has_moved=0,
    )
