"""What was found at a point: accept it, stay there with more constraints, or reject."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray, is_among
from dszog.methods.sampled_sqp.confirming import CONFIRMED
from dszog.methods.sampled_sqp.confirming import UNKNOWN as UNCONFIRMED
from dszog.methods.sampled_sqp.ending import little_to_gain, next_to_nothing
from dszog.methods.sampled_sqp.looks import (
    NO_VALUES,
    UNKNOWN,
    Found,
    peaks,
    places_of,
    worst_of,
)
from dszog.methods.sampled_sqp.models import NOBODY
from dszog.methods.sampled_sqp.options import (
    Options,
    first_batch,
    least_violation,
    queries_left,
)
from dszog.methods.sampled_sqp.pilot import with_opposites
from dszog.methods.sampled_sqp.plans import (
    HERE,
    SURELY,
    learn,
    learn_all,
    looks_at_planes,
    looks_at_slopes,
    most_joining,
    proposed,
    refreshing,
    stale_cases,
    verifying,
)
from dszog.methods.sampled_sqp.state import (
    KINKED_OBJECTIVE,
    KINKED_ROWS,
    SampledSQPState,
)
from dszog.methods.sampled_sqp.subproblem import excess

GROWTH = 4.0  # of sigma after a rejected step
MOST_GROWTH = 16.0  # where models are corrected, not learned, after it
ACCEPT, GOOD, POOR = 0.1, 0.5, 0.25  # shares of the promise that was kept
GUILTY = 0.1  # of the largest miss of a row: of those that get a plane
MOST_PLANES = 40  # trials in a row that add one
CLOSE = 0.01  # of the first proximal weight, at the end of a run
MOST_SHORTER = 3  # of these that shorten the step
FITTED = 3.0  # standard errors between losses of the table and others
# The same where the table has fewer rows than twice the variables: then all of them can
# be made small at once, and losses with long tails hide for long that others are not.
FITTED_FEW = 1.0
ALIKE_LIMITS = 40  # the largest, by which cases are compared
MOST_CORRECTED = 3  # times in a row that a step is bent back to rows that curve
MOST_STALE = 5  # steps in a row with a gradient that was not learned anew


class Tried(NamedTuple):
    """What a trial point has shown."""

    asked: IntArray  # members that were looked at
    values: FloatArray  # theirs, in unit size
    losses: FloatArray  # of the table
    fall: float  # of the objective
    kept: float  # decrease of the merit
    fuzz: float  # what noise may change that by
    ratio: float  # of the decrease to what was promised
    joining: IntArray = NO_INDICES  # constraints that are to be members
    joining_values: FloatArray = NO_VALUES


def after_trial(
    options: Options, state: SampledSQPState, found: Found
) -> SampledSQPState:
    """Accept the trial point, keep the point and take in constraints, or reject.

    The second is a null step: the trial kept what models had promised, but constraints
    that are no members are violated there so much more than any was before that the
    gain is lost.
    """
    own, others = np.split(found.loss_values, [len(state.table)])
    if _is_fitted(own, others, 2 * state.size.dim):
        state = replace(state, wants_rows=1)
    found = replace(found, loss_values=own)
    y = state.looks[0].at
    zy, then = y / state.scale, state.modelled(y / state.scale)
    tried = _judged(state, found, then)
    asked, values = tried.asked, tried.values
    pull = float(state.members.multipliers.sum())
    worst_now = float(state.members.at(state.z).max(initial=0.0))
    state, joining, joining_values, worst_new = _discovered(options, state, found)
    # Others may have been violated as much before the step: that undoes no gain.
    rise = max(worst_new - worst_now, 0.0)
    spoiled = tried.kept - pull * rise
    is_null = tried.ratio > ACCEPT and rise > 0 and spoiled < 0.1 * state.promise
    if state.size.by_case:  # whose models would not reach back from there
        is_null = False
    has_moved = tried.ratio > ACCEPT and not is_null
    if has_moved:
        state, joining = _with_borrowed(state, found, joining)
    members = state.members.with_bends(asked, values, zy)
    misses = np.zeros(len(members))  # of those that have joined there are none
    misses[asked] = values - then[asked]
    state = replace(
        state,
        members=members,
        n_trials=state.n_trials + 1,
        has_moved=int(has_moved),
    )
    if has_moved:
        tried = tried._replace(joining=joining, joining_values=joining_values)
        if pull * rise >= 0.5 * max(state.promise, 0.0):  # many new ones
            tried = tried._replace(ratio=min(tried.ratio, GOOD))
        return _accepted(options, state, tried, found)
    # The point stays: models of curved members that were learned here stay too.
    elsewhere = (members.bases[asked] != state.z).any(axis=1)
    use = elsewhere | ~members.is_bent[asked]
    use |= state.size.by_case & (members.stale[asked] == 1)
    iterate = state.z if state.size.by_case else None
    members = members.corrected(asked[use], values[use], zy, iterate)
    state = replace(state, members=members)
    if state.size.by_case and not np.isnan(found.loss_values).all():
        state = _with_miss(state, -tried.fall)
    if is_null:
        grown = 2.0 if spoiled < -state.promise else 1.0
        sigma = _held(state, grown * state.sigma)
        state = replace(state, sigma=sigma, n_null=state.n_null + 1)
        return learn(options, state, y, joining, joining_values)
    if state.keeps_planes and state.n_rejected < MOST_PLANES:
        bundled = _bundled(state, tried.kept, misses)
        if bundled.looks:
            return bundled
    return _rejected(options, state, misses, tried.kept)


def _judged(state: SampledSQPState, found: Found, then: FloatArray) -> Tried:
    """Return how a trial has kept what was promised, beside what models say there."""
    members = state.members
    asked, values = _told(state, found)
    there = np.array(then)
    there[asked] = values
    rows = ~np.isnan(found.loss_values)
    before, after = state.table.values[rows], found.loss_values[rows]
    fall = float((before - after).mean()) if rows.any() else 0.0
    kept = fall + state.weight * (excess(members.at(state.z)) - excess(there))
    fuzz = 4.0 * state.loss_noise / math.sqrt(max(int(rows.sum()), 1))
    fuzz += 4.0 * state.weight * state.unit_noise * math.sqrt(len(members))
    promised = max(state.promise, 0.0) + fuzz
    ratio = (kept + fuzz) / promised if promised > 0 else kept
    if not math.isfinite(ratio):
        ratio = -1.0
    if _is_lost(state, found):
        ratio, kept = -1.0, min(kept, 0.0)
    return Tried(asked, values, found.loss_values, fall, kept, fuzz, ratio)


def _told(state: SampledSQPState, found: Found) -> tuple[IntArray, FloatArray]:
    """Return the members that were looked at, and their values in unit size."""
    look, members = state.looks[0], state.members
    asked = np.flatnonzero(is_among(members.indices, look.constraints))
    raw = found.values[places_of(members.indices[asked], look.constraints)]
    known = ~np.isnan(raw)
    return asked[known], raw[known] / members.sizes[asked[known]]


def _is_lost(state: SampledSQPState, found: Found) -> bool:
    """Whether a point cannot be judged: too much of what was asked there failed.

    Cases that failed when they were last seen, perhaps always, tell nothing.
    """
    lost, seen = np.isnan(found.values), state.seen
    if state.size.by_case and lost.any():
        failing = seen.indices[seen.values >= UNKNOWN]
        cases = state.looks[0].constraints // state.size.block_width
        lost = lost[~is_among(cases, failing)]
    both = np.isnan(found.loss_values), lost
    return any(2 * table.sum() > len(table) for table in both)


def _with_miss(state: SampledSQPState, rise: float) -> SampledSQPState:
    """Return the state with a model that agrees with the objective's rise over a step.

    What a gradient that was learned here misses is curvature.
    """
    table, step = state.table, state.step
    miss = rise - float(table.gradient @ step)
    length = max(float(step @ step), 1e-300)
    if not state.n_stale:
        bent = 2.0 * miss / length * step
        return replace(state, pairs=state.pairs.with_pair(step, bent))
    table = replace(table, gradient=table.gradient + miss / length * step)
    return replace(state, table=table)


def _is_fitted(values: FloatArray, others: FloatArray, few: int) -> bool:
    """Whether losses outside of the table are larger, as if it was learned by heart."""
    limit = FITTED_FEW if len(values) <= few else FITTED
    values, others = values[~np.isnan(values)], others[~np.isnan(others)]
    if min(len(values), len(others)) < 2:
        return False
    error = math.hypot(
        values.std() / math.sqrt(len(values)), others.std() / math.sqrt(len(others))
    )
    return bool(others.mean() - values.mean() > limit * error)


def _bundled(
    state: SampledSQPState, kept: float, misses: FloatArray
) -> SampledSQPState:
    """Learn the planes at the trial point: of what was to blame that it disappoints."""
    members, y = state.members, state.looks[0].at
    missed = np.where(members.is_bent & (members.opposites == NOBODY), misses, 0.0)
    losses = rows = NO_INDICES
    if state.weight * excess(misses) <= 0.5 * (state.promise - kept):
        losses = state.table.indices[: state.is_kinked & KINKED_OBJECTIVE]
    elif state.is_kinked & KINKED_ROWS and missed.max(initial=0.0) > 0:
        rows = members.indices[missed > GUILTY * missed.max()]
    looks = looks_at_planes(state, y, losses, rows)
    # With ever shorter steps planes would never enclose the point.
    is_far = kept < -state.promise and state.n_rejected < MOST_SHORTER
    sigma = 2.0 * state.sigma if is_far else state.sigma
    state = replace(state, sigma=_held(state, sigma), n_rejected=state.n_rejected + 1)
    return replace(state, phase="learn", looks=looks)


def _discovered(
    options: Options, state: SampledSQPState, found: Found
) -> tuple[SampledSQPState, IntArray, FloatArray, float]:
    """Return who joins the working set, with values; note what was seen."""
    look, size = state.looks[0], state.size
    new = ~is_among(look.constraints, state.members.indices) & ~np.isnan(found.values)
    indices, values = look.constraints[new], found.values[new]
    zy, n_new = look.at / state.scale, len(indices)
    case_values = state.case_values.with_values(
        look.constraints, found.values, size, zy
    )
    n_unseen = int((~is_among(indices, state.seen.indices)).sum())
    is_kept = bool((values <= (options.constraint_tol or 0.0)).all())
    if size.by_case:
        cases, worsts = worst_of(size, look.constraints, found.values)
        here = state.seen.indices[state.seen.distances(zy) <= HERE * state.length]
        others = ~is_among(cases, size.cases_of(state.members.indices))
        n_new = int((others & ~is_among(cases, here)).sum())
        seen = state.seen.with_values(cases, worsts, zy)
    else:
        seen = state.seen.with_values(indices, values, zy) if n_new else state.seen
    usual = float(np.median(state.members.sizes)) if len(state.members) else 1.0
    least, most = least_violation(options, state), most_joining(size)
    if size.by_case:  # worse than what members show
        asked, told = _told(state, found)
        least += float((told * state.members.sizes[asked]).max(initial=0.0))
    worth = values > least
    order = np.argsort(-np.where(worth, values, -np.inf), kind="stable")
    order = order[: int(worth.sum())]
    if size.by_case:  # the worst of each case
        _, first = np.unique(indices[order] // size.block_width, return_index=True)
        order = order[np.sort(first)]
    n_found = len(order)
    if not size.by_case:  # of neighbours the worst
        known = ~np.isnan(found.values)
        are_peaks = peaks(look.constraints[known], found.values[known])
        order = order[are_peaks[new[known]][order]]
    chosen = order[:most] if size.by_case else with_opposites(order[:most], values)
    batch, wants_rows = state.batch, state.wants_rows
    table_cost = len(state.table) * (size.dim + 1)
    if n_found < max(2, most // 4):
        if len(state.table) < size.n_losses and batch >= table_cost:
            wants_rows = 1
        elif not size.by_case:
            batch = _larger(options, state, batch)
    elif n_found > 2 * most:
        batch = max(batch // 2, first_batch(options, size))
    state = replace(
        state,
        seen=seen,
        case_values=case_values,
        batch=batch,
        wants_rows=wants_rows,
        n_found=n_found,
        n_clean=0 if n_found else state.n_clean + n_new,
        n_kept=state.n_kept + n_unseen if is_kept else 0,
    )
    worst = float(values[chosen].max(initial=0.0)) / usual if n_found else 0.0
    return state, indices[chosen], values[chosen], worst


def _with_borrowed(
    state: SampledSQPState, found: Found, joining: IntArray
) -> tuple[SampledSQPState, IntArray]:
    """Return the state with cases that borrow their slopes, and who has to learn.

    A case borrows from the member that is most like it at its largest limits, if to
    learn would cost more than a trial.
    """
    look, size, width = state.looks[0], state.size, state.size.block_width
    members, learning = state.members, []
    asked = size.cases_of(look.constraints)
    if not size.by_case or size.dim <= len(asked):
        return state, joining
    zy, own = look.at / state.scale, members.indices // width
    predicted = members.at(zy) * members.sizes
    for index in joining.tolist():
        first = width * (index // width)
        place = int(np.searchsorted(look.constraints, first))
        values = found.values[place : place + width]
        limits = members.indices % width
        largest = values[limits] >= np.sort(values)[-min(ALIKE_LIMITS, width)]
        apart = np.where(largest, np.abs(predicted - values[limits]), 0.0)
        lenders = np.unique(own[limits == index % width])
        worst = [apart[own == lender].max() for lender in lenders]
        if not len(lenders) or np.isnan(values).any():
            learning.append(index)
            continue
        which = np.flatnonzero(own == lenders[int(np.argmin(worst))])
        which = which[~is_among(first + limits[which], members.indices)]
        members = members.borrowed(
            which, first + limits[which], values[limits[which]], zy
        )
        predicted = members.at(zy) * members.sizes
        own = members.indices // width
    return replace(state, members=members), np.array(learning, dtype=np.int64)


def _larger(options: Options, state: SampledSQPState, batch: int) -> int:
    """Return twice as many constraints to look at, as far as the budget goes."""
    least = first_batch(options, state.size)
    most = max(int(queries_left(options, state)) // 10, least)
    return min(2 * batch, most, max(state.size.n_constraints // 8, least))


def _accepted(
    options: Options, state: SampledSQPState, tried: Tried, found: Found
) -> SampledSQPState:
    """Move; learn anew what the step has made stale."""
    table, asked, y = state.table, tried.asked, state.looks[0].at
    # Short steps that gain little: then the gradient is to blame, an estimate.
    is_blurred = tried.ratio < POOR and state.sigma > state.first_sigma
    is_blurred = is_blurred and table.noise_left(state.step) > 0
    sigma = state.sigma
    if tried.ratio > GOOD:
        sigma /= 2.0 if state.size.n_losses > 1 else 4.0
    elif tried.ratio < POOR and not is_blurred:
        sigma *= GROWTH
    losses = np.where(np.isnan(tried.losses), table.values, tried.losses)
    objective = float(losses.mean()) if len(losses) else 0.0
    gain = -(float(table.gradient @ state.step) + 0.5 * state.curved)
    surprise = objective - (state.objective - gain)
    raw = found.values[~np.isnan(found.values)]
    bent = asked[:0] if state.size.by_case else _stale_members(state, tried)
    rest = ~np.isin(asked, bent)
    zy = y / state.scale
    members = state.members.corrected(asked[rest], tried.values[rest], zy)
    is_slow = tried.kept <= next_to_nothing(options, state)
    trusts = abs(surprise) <= 0.1 * max(abs(gain), state.promise)
    trusts = trusts and _may_trust(state, tried)
    state = replace(
        state,
        x=y,
        members=members,
        table=table.followed(losses, state.step),
        sigma=_held(state, sigma),
        objective=objective,
        violation=float(raw.max(initial=0.0)),
        n_rejected=0,
        n_null=0,
        n_idle=0,
        n_tiny=state.n_tiny + 1 if state.promise <= tried.fuzz else 0,
        n_slow=state.n_slow + 1 if is_slow else 0,
        confirmed=0,
    )
    if state.size.by_case:
        return _followed(options, state, surprise, tried.joining)
    if trusts:
        return _trusting(options, state, surprise, tried)
    state = refreshing(state)
    table = state.table
    rows = table.queue if is_blurred else table.next_rows(options.loss_batch)
    again = members.indices[bent]
    again_values = tried.values[np.searchsorted(asked, bent)] * members.sizes[bent]
    who = np.concatenate([again, tried.joining])
    who_values = np.concatenate([again_values, tried.joining_values])
    if not state.keeps_planes:
        return learn(options, state, y, who, who_values, rows)
    if tried.kept > little_to_gain(options, state):
        state = replace(state, n_confirms=0)
    kinked_losses = table.indices[: state.is_kinked & KINKED_OBJECTIVE]
    rows, kinked = rows[len(kinked_losses) :], NO_INDICES
    if state.is_kinked & KINKED_ROWS:  # the planes so far stay
        kinked, who, who_values = again, tried.joining, tried.joining_values
        old = members.kept(bent[members.opposites[bent] == NOBODY])
        bundle = state.bundle.with_planes(
            old.indices, old.values, old.slopes, old.bases
        )
        members = members.changed(
            bent, values=again_values / members.sizes[bent], bases=zy
        )
        state = replace(state, bundle=bundle, members=members)
    looks = looks_at_slopes(
        state, y, table.indices[rows], who, table.values[rows], who_values
    )
    planes = looks_at_planes(state, y, kinked_losses, kinked)
    return replace(state, phase="learn", looks=(*looks, *planes))


def _may_trust(state: SampledSQPState, tried: Tried) -> bool:
    """Whether a gradient that was not learned anew would do for the next step."""
    members = state.members
    return bool(
        state.size.n_losses > 1
        and state.n_stale < MOST_STALE
        and not state.wants_rows
        and len(tried.joining) >= max(2, most_joining(state.size) // 4)
        and not (members.multipliers[members.is_bent] > 0).any()
    )


def _stale_members(state: SampledSQPState, tried: Tried) -> IntArray:
    """Return the members to learn anew after a step: curved, and near enough."""
    members, asked = state.members, tried.asked
    far = min(0.1 * state.length, SURELY * float(np.linalg.norm(state.step)))
    matters = (members.multipliers[asked] > 0) | (tried.values > -far)
    found = asked[members.is_bent[asked] & matters]
    most = 4 * (state.size.dim + 1)
    if len(found) > most:
        weights = members.multipliers[found]
        found = np.sort(found[np.argsort(-weights, kind="stable")[:most]])
    with_opposites = is_among(members.indices, members.opposites[found])
    return np.union1d(found, np.intersect1d(np.flatnonzero(with_opposites), asked))


def _trusting(
    options: Options, state: SampledSQPState, surprise: float, tried: Tried
) -> SampledSQPState:
    """Go on with the gradient that the model predicts: its value was right."""
    said = state.curvature @ state.step
    if state.curved > 0:
        bent = max(state.curved + 2.0 * surprise, 0.2 * state.curved)
        said = said * (bent / state.curved)
    table = replace(state.table, gradient=state.table.gradient + said)
    state = replace(state, table=table, n_stale=state.n_stale + 1)
    return learn(options, state, state.x, tried.joining, tried.joining_values)


def _followed(
    options: Options, state: SampledSQPState, surprise: float, joining: IntArray
) -> SampledSQPState:
    """Go on with models that agree with the values, while learning would cost more."""
    size, step, table = state.size, state.step, state.table
    cases = stale_cases(state)
    n_asked = len(size.cases_of(state.looks[0].constraints)) + len(table)
    if n_asked * (state.n_stale + 1) < size.dim * (len(cases) + len(table)):
        # What the slope along the step changed by, as values say.
        length = max(float(step @ step), 1e-300)
        said = (state.curved + 2.0 * surprise) / length * step
        table = replace(table, gradient=table.gradient + said)
        pairs = state.pairs.with_pair(step, said)  # of the objective alone
        state = replace(state, pairs=pairs, table=table, n_stale=state.n_stale + 1)
        return learn(options, state, state.x, joining)
    state = refreshing(state)
    rows = state.table.next_rows(options.loss_batch)
    wanted = np.union1d(size.limits_of(cases), joining)
    return learn(options, state, state.x, wanted, rows=rows)


def _rejected(
    options: Options,
    state: SampledSQPState,
    misses: FloatArray,
    kept: float,
) -> SampledSQPState:
    """Try a shorter step; or first one that is bent back to where rows curve to.

    A second-order correction solves the subproblem once more with what each row has
    missed. Repeated, it goes on while it moves the step by less and less.
    """
    wrong = max(state.promise - kept, 0.0)
    by_rows = state.weight * np.maximum(misses, 0.0).sum()
    n = state.n_corrected
    if n == state.n_rejected < MOST_CORRECTED and by_rows > 0.5 * wrong:
        corrected = proposed(options, state, np.array(misses))
        shift = np.linalg.norm(corrected.step - state.step)
        if corrected.phase == "trial" and shift <= 0.1**n * np.linalg.norm(state.step):
            return replace(corrected, n_rejected=n + 1)
    length = float(state.step @ state.step)
    steeper = state.sigma + 2.0 * wrong / max(length, 1e-300)
    most = MOST_GROWTH if state.size.by_case else 1e3
    sigma = min(max(GROWTH * state.sigma, steeper), most * state.sigma)
    n_rejected = state.n_rejected + 1
    state = replace(state, sigma=_held(state, sigma), n_rejected=n_rejected)
    if state.size.by_case:
        return _blamed(options, state, misses, by_rows < 0.5 * wrong)
    if state.n_stale or n_rejected % 4 == 0:
        return learn_all(options, state)
    rows = state.table.next_rows(options.loss_batch)
    if len(rows) and by_rows <= 0.5 * wrong:  # the gradient is an estimate
        return learn(options, state, state.x, NO_INDICES, rows=rows)
    return proposed(options, state)


def _blamed(
    options: Options, state: SampledSQPState, misses: FloatArray, is_objective: bool
) -> SampledSQPState:
    """Try again; after the second time learn what was to blame, after more all."""
    if state.n_rejected % 4 == 0:
        return learn_all(options, state)
    if state.n_rejected % 2:
        return proposed(options, state)
    if is_objective and state.n_stale:
        state = replace(refreshing(state), has_moved=0)
        rows = state.table.next_rows(options.loss_batch)
        return learn(options, state, state.x, NO_INDICES, rows=rows)
    missed = np.where(state.members.stale == 1, misses, 0.0)
    if missed.max(initial=0.0) > 0:
        guilty = state.members.indices[missed.argmax()]
        return learn(options, state, state.x, np.array([guilty]))
    return proposed(options, state)


def _held(state: SampledSQPState, sigma: float) -> float:
    """Return sigma within its bounds."""
    least = 1e-3 if state.size.n_losses > 1 else 1e-9
    return min(max(sigma, least * state.first_sigma), 1e12 * state.first_sigma)


def after_verifying(
    options: Options, state: SampledSQPState, found: Found
) -> SampledSQPState:
    """Go on with what was found violated, or come closer to the end."""
    if state.phase == "done":
        return verifying(options, state)
    asked, told = _told(state, found)
    state, joining, values, _ = _discovered(options, state, found)
    if not len(joining):
        missed = told > np.maximum(state.members.at(state.z)[asked], 0.0)
        missed &= told * state.members.sizes[asked] > least_violation(options, state)
        members = state.members.corrected(asked, told, state.z)
        state = replace(state, members=members)
        if missed.any():
            return proposed(options, _unsettled(state))
        return verifying(options, state)
    violation = max(state.violation, float(values.max()))
    state, joining = _with_borrowed(state, found, joining)
    sigma = state.sigma
    if state.size.by_case:  # keep these, and stay close for the sake of others
        sigma = max(sigma, CLOSE * state.first_sigma)
    state = replace(_unsettled(state), violation=violation, sigma=sigma, has_moved=0)
    return learn(options, state, state.x, joining, values)


def _unsettled(state: SampledSQPState) -> SampledSQPState:
    """Return the state in which the point may not be optimal: a violation was found."""
    known = UNCONFIRMED if state.confirmed == CONFIRMED else state.confirmed
    return replace(state, n_idle=0, n_tiny=0, n_slow=0, confirmed=known)
