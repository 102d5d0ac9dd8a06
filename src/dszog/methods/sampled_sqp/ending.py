"""When a run is at its end, and what stands in the way of saying that it converged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dszog.contract.arrays import BoolArray, FloatArray, is_among
from dszog.methods.sampled_sqp.looks import Look
from dszog.methods.sampled_sqp.noise import ROUNDING
from dszog.methods.sampled_sqp.options import (
    KEPT,
    QUIET_CASES,
    Options,
    affordable_rows,
    queries_left,
)
from dszog.methods.sampled_sqp.scales import NO_SLOPE, variable_scales
from dszog.methods.sampled_sqp.state import (
    KINKED_OBJECTIVE,
    KINKED_ROWS,
    SampledSQPState,
)
from dszog.status import Status

FEASIBLE = 1e-3  # of the tolerance: violations, in usual lengths
LOOSE = 1e-4  # with a larger `tol` steps go on as with this one
NEAR_ZERO = 1e-6  # of what the objective falls over a usual length: as good as 0
DROWNED = 1e-2  # of the objective: what noise may hide if a run is to have converged
NOISY_REACH = 3e-3  # steps of differences, in usual lengths, that are worth a word
FLAT = (
    "the objective did not change in any difference at the start: it may be piecewise "
    "constant, or have no part in the problem"
)
FAR, MOST_BEGUN = 1e3, 3  # objectives lost on the way that call for a new beginning
OTHER = 5.0  # times more along one variable than along another, and not at first
SHRUNK = 10.0  # times larger than now a variable was, if it began far away
FARTHEST = 1e10  # in usual lengths: an objective that falls until there has no minimum
FEW_LOSSES = "the losses looked at say no more: for more, give a larger max_queries"
WITHIN = (
    "no point near this one keeps all constraints exactly; what they are violated by "
    "is within constraint_tol"
)
UNSEEN = (
    "a point near by where less is violated may be left: looks for one did not come "
    "to an end"
)
JUMP = 1e4  # times the slope at first: no slope, but a jump
FLAT_ROWS = (
    "a violated constraint is level, or jumps: it may be piecewise constant or a "
    "count, of which values do not tell how to keep it"
)
KINKED = (
    "slopes differ on the two sides of the point: functions that have kinks, such as a "
    "maximum or an absolute value, may have lower values near by"
)
OPEN = (
    "the objective still falls, if slowly, as far as was looked: it may have no "
    "minimum, so that bounds are needed"
)
CUT_SHORT = (
    "the point seems optimal, but the budget leaves too few looks at unseen "
    "constraints to say that fewer than one in a thousand is violated"
)
FEWEST_KEPT = 3000  # unseen constraints without a violation: then that is 95 % sure
UNCONFIRMED = "looks around for a better point did not come to an end"
MOST_IDLE, MOST_SLOW, MOST_NULL = 4, 20, 40  # times in a row without a gain
MOST_STALE = 3  # steps with corrected models before they are learned for the end
# Times `tol`: a promise of cases that is not worth another look, which costs as many
# calls as there are variables; for each of these, and at least; and at most, in all.
ENOUGH, LEAST_ENOUGH, MOST_ENOUGH = 10.0, 50.0, 7.5e-4
BALANCED = 100.0  # times that share: the residual with such a promise
ASTRAY = 10.0  # times what the objective loses over a usual length: it rose by that
CAUTION, MOST_CAUTION = 30.0, 1000.0  # for each return, and at most
MOST_ELSEWHERE = 2  # new beginnings elsewhere
MOST_TRIES = 4  # at a start where nothing can be looked at
TINY_STEPS = 1e6  # times the proximal weight at first
SHORT = 1e-4  # of a variable's size: a step that is not worth a word
NOISY = "values are noisy: differences were taken over long steps and tell less"
JUMPS = (
    "values change in jumps, as if rounded or piecewise constant: differences were "
    "taken over long steps and tell less"
)


def how(
    options: Options, state: SampledSQPState
) -> tuple[Status | None, tuple[str, ...]]:
    """Return how a run has ended, None if it has not, and what to say of it."""
    far = FARTHEST * max(state.length, state.first_distance)
    if state.n_trials and (state.away / state.scale).max() > far:
        return Status.UNBOUNDED, ()
    if not state.n_pilot and state.n_rejected >= MOST_TRIES:
        return Status.TOO_MANY_FAILURES, ()
    if state.phase != "done":
        return None, ()
    said = []
    drowned = is_drowned(state)
    if drowned and not remarks(state):  # else it was said before
        said.append(NOISY)
    if not is_feasible(options, state):
        stop, more = _infeasible(options, state)
        return stop, (*said, *more)
    stop = Status.STALLED
    if state.is_open:
        said.append(OPEN)
    elif state.confirmed == 1 and not drowned and is_cut_short(state):
        stop = Status.MAX_QUERIES
        said.append(CUT_SHORT)
    elif state.confirmed == 1 and not drowned:
        stop = Status.CONVERGED
    elif state.is_kinked:
        said.append(KINKED)
    elif (state.n_lower or is_optimal(options, state)) and not drowned:
        said.append(UNCONFIRMED)
    elif is_settled(options, state):
        said.append(FEW_LOSSES)
    return stop, tuple(said)


def is_cut_short(state: SampledSQPState) -> bool:
    """Whether too few unseen constraints were looked at since one was not kept.

    Where all of 3,000 are, it is 95 % sure that fewer than one in a thousand is not.
    Only a budget ends a run earlier.
    """
    is_whole = state.size.by_case or state.seen.all_drawn(state.size)
    return not is_whole and state.n_kept < FEWEST_KEPT


def with_home(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Return the state that remembers the iterate, if it holds and is the best so."""
    is_best = not state.has_home or state.objective < state.home_objective
    if not is_best or not is_feasible(options, state):
        is_first = not state.n_trials and not state.n_begun
        return replace(state, home_objective=state.objective) if is_first else state
    return replace(state, has_home=1, home=state.x, home_objective=state.objective)


def with_best(options: Options, state: SampledSQPState, look: Look) -> SampledSQPState:
    """Return the state that remembers the iterate, if its cases hold and it is best.

    By the losses that were known at both points: the table grows. Where models of
    cases that were not looked at there say that an earlier one near by does not hold,
    it gives way.
    """
    if not np.array_equal(look.at, state.x):  # a step that was not taken
        return state
    looked_at = state.size.cases_of(look.constraints)
    is_here = state.has_best and np.array_equal(state.best, state.x)
    allowed = KEPT * (options.constraint_tol or 0.0)
    if state.violation > allowed:
        return replace(state, has_best=0) if is_here else state
    table = state.table
    both, now, then = np.intersect1d(
        table.indices, state.best_losses, return_indices=True
    )
    there = state.best / state.scale
    raw = state.members.at(there) * state.members.sizes
    own = state.members.indices // state.size.block_width
    raw = raw[~is_among(own, state.best_cases)]
    is_doubted = bool(raw.max(initial=0.0) > (options.constraint_tol or 0.0))
    is_doubted &= bool(np.linalg.norm(there - state.z) <= state.length)
    if state.has_best and not is_here and is_doubted:
        state = replace(state, has_doubted=1, doubted=state.best)
    elif state.has_best and not is_here:
        change = table.values[now] - state.best_values[then]
        if not len(both) or not change.mean() < 0.0:
            return state
    return replace(
        state,
        has_best=1,
        best=state.x,
        best_losses=table.indices,
        best_values=table.values,
        best_cases=np.union1d(state.best_cases, looked_at) if is_here else looked_at,
    )


def is_astray(options: Options, state: SampledSQPState) -> bool:
    """Whether a run that cannot keep all constraints is to go back.

    To where it could; or to the start, if the objective has become far worse.
    """
    rise = state.objective - state.home_objective
    is_far = rise > ASTRAY * state.first_sigma * state.length**2
    if state.size.by_case or state.kept or not (state.has_home or is_far):
        return False
    return leaves_violation(options, state) and state.caution < MOST_CAUTION


def returning(state: SampledSQPState) -> SampledSQPState:
    """Begin again where all held, with shorter steps and dearer violations."""
    return replace(state, phase="again", x=state.home, caution=CAUTION * state.caution)


def leaves_violation(options: Options, state: SampledSQPState) -> bool:
    """Whether a run that is at its end leaves a violation that the caller forbids."""
    left = state.members.at(state.z) * state.members.sizes
    is_large = bool(left.max(initial=0.0) > (options.constraint_tol or 0.0))
    return is_large and not is_feasible(options, state)


def may_fall(state: SampledSQPState) -> BoolArray:
    """Return the members that may fall elsewhere though slopes here do not say so.

    Those that curve. Nor do slopes of 0 tell: a product is level where both are 0.
    """
    found: BoolArray = state.members.is_bent | ~state.members.slopes.any(axis=1)
    return found


def may_hold_elsewhere(options: Options, state: SampledSQPState) -> bool:
    """Whether to begin elsewhere: such rows may leave a violation only here."""
    members, n_ends = state.members, state.n_elsewhere + 1
    if state.size.by_case or n_ends > MOST_ELSEWHERE:
        return False
    has_budget = n_ends * queries_left(options, state) >= state.n_queries
    return has_budget and bool(may_fall(state)[members.multipliers > 0].any())


def _infeasible(options: Options, state: SampledSQPState) -> tuple[Status, list[str]]:
    """Return how a run has ended that could not keep all constraints."""
    members, allowed = state.members, options.constraint_tol or 0.0
    left = members.at(state.z) * members.sizes
    if left.max() <= allowed:
        return Status.STALLED, [WITHIN]
    if is_unsure(state) and not state.is_least:
        return Status.STALLED, [UNSEEN]
    steepness = np.linalg.norm(members.slopes, axis=1)  # 1 when each joined
    is_flat = (steepness == 0) | (steepness > JUMP)
    return Status.LEAST_VIOLATION, [FLAT_ROWS] if (
        left[is_flat] > allowed
    ).any() else []


def is_unsure(state: SampledSQPState) -> bool:
    """Whether models of cases that are violated, or hold the point, may be wrong.

    Those that never missed a value are linear.
    """
    members = state.members
    matters = (members.multipliers > 0) | (members.at(state.z) > 0)
    return state.size.by_case and bool(members.is_bent[matters].any())


def is_feasible(options: Options, state: SampledSQPState) -> bool:
    """Whether the models see no violation worth a word."""
    limits = np.maximum(violation_limits(options, state), 16 * state.unit_noise)
    return bool((state.members.at(state.z) <= limits).all())


def violation_limits(options: Options, state: SampledSQPState) -> FloatArray:
    """Return what each member may be violated by at the end, in unit size."""
    size = state.farthest
    limits = np.full(len(state.members), FEASIBLE * options.tol * size)
    if options.constraint_tol is not None:
        allowed = KEPT * options.constraint_tol / state.members.sizes
        if state.size.by_case:
            return np.asarray(np.maximum(KEPT * allowed, limits))
        limits = np.minimum(limits, np.maximum(allowed, 4.0 * state.unit_noise))
    found: FloatArray = np.maximum(
        limits, 2.0**-52 * max(size, float(np.abs(state.z).max()))
    )
    return found


def is_optimal(options: Options, state: SampledSQPState) -> bool:
    """Whether the optimality conditions hold, or steps promise less than rounding."""
    if state.keeps_planes:
        return is_enclosed(options, state)
    if state.confirmed:
        return state.confirmed == 1
    if state.size.by_case:
        limits = violation_limits(options, state)
        is_flat = state.residual <= BALANCED * enough(options, state)
        is_flat = is_flat and state.sigma <= state.first_sigma  # in a usual region
        is_flat |= bool((state.members.at(state.z) > limits).any())
        is_flat = is_flat and promises_little(options, state)
        return is_flat or state.n_tiny >= 3
    options = replace(options, tol=min(options.tol, LOOSE))  # then looks around decide
    is_flat = state.residual <= options.tol and promises_little(options, state)
    return is_flat or state.n_tiny >= 3


def promises_little(options: Options, state: SampledSQPState) -> bool:
    """Whether the step promises next to nothing.

    Where models are kept for long that is more, beside violations that are allowed.
    """
    usual = NEAR_ZERO * state.first_sigma * state.length**2
    usual = max(abs(state.objective), state.change, usual)
    if not state.size.by_case:
        return state.promise <= options.tol * usual
    violations = state.members.at(state.z)
    if (violations > violation_limits(options, state)).any():
        share = enough(options, state) * paid_for(state)
        return 0.0 <= state.promise <= share
    left = state.promise - paid_for(state)
    share = enough(options, state) * before_looks(state)
    return left <= max(max(share, options.tol) * usual, 16.0 * state.loss_noise)


def before_looks(state: SampledSQPState) -> float:
    """Return by what a stop is tighter where looks at cases cost more than slopes.

    They come once more after each step that is taken later.
    """
    n_looks = min(state.size.n_cases, QUIET_CASES)
    return min(2.0 * state.size.dim / n_looks, 1.0)


def paid_for(state: SampledSQPState) -> float:
    """Return what violations weigh in the merit: of cases, some are allowed."""
    violations = np.maximum(state.members.at(state.z), 0.0)
    return state.weight * float(violations.sum()) if state.size.by_case else 0.0


def enough(options: Options, state: SampledSQPState) -> float:
    """Return the share of the objective that is not worth more calls of cases."""
    factor = max(ENOUGH * state.size.dim, LEAST_ENOUGH)
    return min(factor * options.tol, max(MOST_ENOUGH, options.tol))


def is_elsewhere(options: Options, state: SampledSQPState, far: float = FAR) -> bool:
    """Whether the start was so far away that what counts there says little here."""
    if state.size.by_case or state.is_kinked or state.is_open:
        return False
    gone, here = state.change, abs(state.objective)
    if not state.n_begun:  # what has fallen to 0 from near by is at its end
        moves = np.abs(state.x - state.start)
        was_far = bool((moves > SHRUNK * state.away).any())
        return gone > far * here and (was_far or here > 64 * ROUNDING * gone)
    is_worth = state.promise > _slight_share(options, state) * here
    is_far = far * here < gone < here / options.tol  # else it falls to 0
    return is_worth and is_far and state.n_begun < MOST_BEGUN


def is_misled(options: Options, state: SampledSQPState) -> bool:
    """Whether a run that cannot keep all constraints has other slopes than it began."""
    members, may_begin = state.members, state.n_begun < MOST_BEGUN
    if state.size.by_case or not may_begin or is_feasible(options, state):
        return False
    sizes = variable_scales([members.raw_slopes, state.table.slopes])
    has_moved = bool((state.x != state.start).any())
    return has_moved and bool(sizes.max() > OTHER * sizes.min())


def next_to_nothing(options: Options, state: SampledSQPState) -> float:
    """Return a gain that is not worth a step, of which many are needed for a word."""
    return options.tol * max(abs(state.objective), options.tol * state.change)


def is_slight(options: Options, state: SampledSQPState) -> bool:
    """Whether the step that a look around suggests is not worth a word.

    It is short for each variable, or gains next to nothing.
    """
    worth = _slight_share(options, state) * abs(state.objective)
    worth = max(worth, 64 * ROUNDING * state.change)
    is_short = bool((np.abs(state.step) * state.scale <= SHORT * state.own_sizes).all())
    left = state.promise - paid_for(state)
    return is_short or left <= max(worth, 16.0 * state.loss_noise)


def little_to_gain(options: Options, state: SampledSQPState) -> float:
    """Return what is not worth a word at a kink."""
    share = _slight_share(options, state)
    return max(share * abs(state.objective), options.tol * state.change)


def _slight_share(options: Options, state: SampledSQPState) -> float:
    """Return the share of the objective that is not worth a word: some times `tol`."""
    tol = options.tol
    return (
        enough(options, state)
        if state.size.by_case
        else max(tol, min(10.0 * tol, 1e-3))
    )


def is_enclosed(options: Options, state: SampledSQPState) -> bool:
    """Whether planes below a convex objective leave next to nothing to gain."""
    z, step = state.z, state.step
    little = little_to_gain(options, state)
    planes = state.objective_planes
    is_convex = bool((planes.heights(z, state.objective) <= little).all())
    rows, _, heights = state.row_planes()
    is_convex &= bool((state.weight * (rows.heights(z) - heights) <= little).all())
    is_known = len(planes) > 0 or not state.is_kinked & KINKED_OBJECTIVE
    if not (is_known and is_convex):
        return False
    if state.is_kinked & KINKED_ROWS and not is_feasible(options, state):
        return False
    own = (np.maximum(state.away, np.abs(state.x - state.start)) / state.scale).max()
    own = max(own, state.length)
    force = state.bends @ step + state.sigma * step
    error = max(state.promise + 0.5 * state.curved - float(step @ force), 0.0)
    left = error + float(np.abs(force).sum() * own)
    return left <= little


def is_settled(options: Options, state: SampledSQPState) -> bool:
    """Whether the losses in the table say no more, and more are not affordable."""
    noise = state.table.noise_along(state.step, state.size.n_losses)
    return 0.0 < noise >= state.promise and not affordable_rows(options, state)


def is_at_end(options: Options, state: SampledSQPState) -> bool:
    """Whether no step is worth trying any more."""
    if state.n_stale and not state.size.by_case:
        return False
    is_stuck = state.n_idle >= MOST_IDLE or state.n_slow >= MOST_SLOW
    is_tiny = state.sigma >= TINY_STEPS * state.first_sigma
    is_stuck |= state.n_null >= (MOST_NULL // 2 if is_tiny else MOST_NULL)
    if state.n_stale >= MOST_STALE:
        is_stuck |= promises_little(options, state)
    return is_stuck or is_optimal(options, state) or is_settled(options, state)


def remarks(state: SampledSQPState) -> tuple[str, ...]:
    """Return what the pilot has found that may mislead differences."""
    found = []
    # At a minimum there may be no differences either, but there were at the start.
    had_none = abs(state.first_sigma * state.length - NO_SLOPE) < 1e-9
    if had_none and not (state.size.has_gradient or state.table.slopes.any()):
        found.append(FLAT)
    if state.is_rounded:
        found.append(JUMPS)
    elif max(state.loss_reach, state.row_reach) > NOISY_REACH * state.length:
        found.append(NOISY)
    return tuple(found)


def is_drowned(state: SampledSQPState) -> bool:
    """Whether noise hides what the objective could still lose."""
    if FLAT in remarks(state):  # a constant, if it is the same far away
        return not (state.n_trials and state.objective == state.first_objective)
    if state.size.has_gradient:
        return False
    if state.origin.any():  # what rounding moves points by changes values, too
        rounding = np.spacing(np.abs(state.x)) / state.scale
        moved = state.first_sigma * state.length * float(rounding.max())
        if state.loss_noise <= 64.0 * moved:
            return False
    unknown = 2.0 * state.loss_noise / state.loss_reach * state.length
    usual = NEAR_ZERO * state.first_sigma * state.length**2
    return unknown > DROWNED * max(abs(state.objective), state.change, usual)
