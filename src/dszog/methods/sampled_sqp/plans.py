"""What to look at next: a trial point, slopes, or what was not seen at the end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray, is_among
from dszog.maths.random_stream import stream
from dszog.methods.sampled_sqp import pilot
from dszog.methods.sampled_sqp.bundle import Bundle
from dszog.methods.sampled_sqp.case_values import LIKELY
from dszog.methods.sampled_sqp.confirming import (
    CONFIRMED,
    MEASURED,
    REFUTED,
    UNKNOWN,
    can_confirm,
    looking_around,
    reserved,
)
from dszog.methods.sampled_sqp.curvature import Pairs
from dszog.methods.sampled_sqp.ending import (
    MOST_IDLE,
    before_looks,
    is_astray,
    is_at_end,
    is_elsewhere,
    is_enclosed,
    is_feasible,
    is_misled,
    is_optimal,
    is_slight,
    returning,
    with_home,
)
from dszog.methods.sampled_sqp.looks import NO_VALUES, Look, inward, slope_looks
from dszog.methods.sampled_sqp.options import (
    AGAIN,
    LEFT,
    QUIET_CASES,
    Options,
    affordable_rows,
    first_batch,
    least_violation,
    queries_left,
)
from dszog.methods.sampled_sqp.screening import Seen, beside, permuted
from dszog.methods.sampled_sqp.searching import (
    after_searching,
    can_search,
    ended,
    searching,
)
from dszog.methods.sampled_sqp.state import (
    KINKED_OBJECTIVE,
    KINKED_ROWS,
    SampledSQPState,
)
from dszog.methods.sampled_sqp.subproblem import (
    last_price,
    solved,
    with_step,
)

HERE = 1e-3  # of the usual length: what was seen so close by was seen here
NEAR = 0.5  # of the usual length: members that are looked at
SURELY = 2.0  # steps: members that are farther off, by models of unit slope, are not
ALL_EVERY = 5  # trials after which all members are looked at
SAFE_SHARE = 20  # of all constraints, one in so many is looked at though it seems safe
NEIGHBOURED = 2  # times as many members as may join: their neighbours are drawn
FEWEST = 8  # of these, or cases
MOST_HELD_OUT = 128  # losses outside of the table that a trial looks at
MOST_VERIFIED = 4096  # constraints in one look before the end
ENCLOSED = 2  # bundles in a row, of which each one leaves nothing to gain
FAR = 1e9  # objectives lost on the way to what seems a kink
BESIDE, NARROW = 100.0, 0.1  # steps of differences, beside a kink
REFRESHED = 0.3  # of the noise that a table may have: what stale rows may add
RENEWED = 1e-3  # of the first proximal weight, after all was learned anew
SLIGHT = 0.05  # of all multipliers: cases with less need no models learned anew
PINNED = 0.99  # of the price of violations, that a row pays
MOST_CASES = 2  # that join at once: each costs as much as the gradient
CHUNK = 24  # cases in one look before the end, at first
QUIET = 10**5  # unseen constraints without a violation that end a run


def proposed(
    options: Options, state: SampledSQPState, correction: FloatArray | None = None
) -> SampledSQPState:
    """Solve the subproblem; go on to a trial point, a larger table, or the end."""
    curvature = state.bends
    state, answer = solved(options, state, curvature, correction)
    members = state.members
    wrong = (members.stale == 1) & members.is_bent
    wrong &= members.multipliers >= PINNED * state.price
    may_learn = state.size.by_case and state.n_idle < MOST_IDLE
    if may_learn and wrong.any():  # learn what cannot be kept
        order = np.argsort(-np.where(wrong, members.at(state.z + answer.step), -np.inf))
        n = max(1, len(state.seen.indices) // (2 * state.size.dim))
        worst = members.indices[order[: min(n, int(wrong.sum()))]]
        return learn(options, state, state.x, worst, factor=_other_reach(state))
    state = with_step(options, state, answer, curvature, correction is not None)
    if state.confirmed == MEASURED:
        if is_slight(options, state):
            return replace(state, confirmed=CONFIRMED)
        state = replace(state, confirmed=REFUTED)
    is_estimate = state.size.n_losses > 1 and not state.n_stale
    rows = rows_to_refresh(options, state) if is_estimate else NO_INDICES
    if len(rows):
        state = replace(state, has_moved=0)
        return learn(options, state, state.x, NO_INDICES, rows=rows)
    if _wants_growth(options, state):
        return _growing(options, state)
    if correction is None and is_at_end(options, state):
        return verifying(options, state)
    return _trying(options, state)


def is_stale(state: SampledSQPState) -> bool:
    """Whether models that matter were corrected since they were learned."""
    return state.n_stale > 0 or len(stale_cases(state)) > 0


def learns_first(state: SampledSQPState) -> bool:
    """Whether cases are to be learned where we are before a run ends here."""
    return state.size.by_case and is_stale(state) and state.n_idle < MOST_IDLE


def stale_cases(state: SampledSQPState) -> IntArray:
    """Return the cases that hold the point by models that were not learned here."""
    members = state.members
    if not state.size.by_case:
        return NO_INDICES
    pulls = members.multipliers * (members.stale == 1) * members.is_bent
    cases, which = np.unique(
        members.indices // state.size.block_width, return_inverse=True
    )
    by_case = np.bincount(which, weights=pulls, minlength=len(cases))
    found: IntArray = cases[by_case > SLIGHT * members.multipliers.sum()]
    return found


def _other_reach(state: SampledSQPState) -> float:
    """Return by what to lengthen differences that have not helped before."""
    return (8.0 if state.n_idle % 2 else 0.125) if state.n_idle else 1.0


def learn(
    options: Options,
    state: SampledSQPState,
    at: FloatArray,
    constraints: IntArray,
    values: FloatArray = NO_VALUES,
    rows: IntArray = NO_INDICES,
    factor: float = 1.0,
) -> SampledSQPState:
    """Learn slopes at a point, of constraints and of rows of the table of losses.

    Go on at once if there is nothing to learn.
    """
    if not len(constraints) and not len(rows):
        return proposed(options, state)
    losses, loss_values = state.table.indices[rows], state.table.values[rows]
    looks = looks_at_slopes(state, at, losses, constraints, loss_values, values, factor)
    return replace(state, phase="learn", looks=looks)


def learn_all(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Learn the gradient and the members that matter anew where we are."""
    if state.keeps_planes and state.is_kinked & KINKED_ROWS:
        n_idle, sigma = state.n_idle + 1, state.sigma
        return replace(_with_new_planes(options, state), n_idle=n_idle, sigma=sigma)
    members = state.members
    elsewhere = (members.bases != state.z).any(axis=1) | (members.stale == 1)
    wanted = members.is_bent & state.matters & (elsewhere | (state.n_idle > 0))
    wanted |= is_among(members.indices, members.opposites[wanted])
    is_fresh = not is_stale(state)
    if state.size.by_case and not is_fresh:
        cases = members.indices // state.size.block_width
        wanted = is_among(cases, stale_cases(state))
    sigma = state.sigma
    if state.size.by_case and not is_fresh and is_feasible(options, state):
        sigma = min(sigma, RENEWED * before_looks(state) * state.first_sigma)
    rows = NO_INDICES
    factor, has_gradient = _other_reach(state), not (is_fresh or state.n_stale)
    n_idle = state.n_idle + is_fresh
    state = replace(refreshing(state), sigma=sigma, n_idle=n_idle, has_moved=0)
    if not has_gradient:
        table = state.table
        rows = table.queue if is_fresh else table.next_rows(options.loss_batch)
    looks = looks_at_slopes(
        state,
        state.x,
        state.table.indices[rows],
        members.indices[wanted],
        factor=factor,
    )
    return replace(state, phase="learn", looks=looks)


def refreshing(state: SampledSQPState) -> SampledSQPState:
    """Return the state that begins to learn the losses of the table anew."""
    order = stream(state.seed, state.iteration).permutation(len(state.table))
    return replace(state, table=state.table.begun(order))


def reconsidered(
    options: Options, before: SampledSQPState, state: SampledSQPState
) -> SampledSQPState:
    """Go on after a look around: with another, the step it suggests, or the end."""
    if state.confirmed == UNKNOWN and can_confirm(state):
        return looking_around(options, state)
    is_far = not state.n_begun and is_elsewhere(options, before, FAR)
    if state.is_kinked and is_far:
        return replace(before, phase="again")  # what seems a kink may only be far away
    if state.keeps_planes:
        if state.is_kinked == KINKED_ROWS:  # what was learned of curvature was theirs
            none = Pairs.none(state.size.dim)
            state = replace(state, pairs=none, measured=np.empty((0, 0)))
        return _with_new_planes(options, state)
    tried = proposed(options, state)
    found = replace(
        before, measured=tried.measured, pairs=tried.pairs, promise=tried.promise
    )
    if tried.confirmed == CONFIRMED:
        return _convinced(options, found)
    if tried.confirmed == REFUTED and is_elsewhere(options, found):
        return replace(found, phase="again")
    return tried


def _convinced(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Look farther out, the last time; or go to the end without."""
    state = replace(state, confirmed=CONFIRMED)
    if can_search(options, state):
        return searching(options, state)
    return _satisfied(options, state)


def _satisfied(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Begin again if the start was far away; else go to the end."""
    if is_elsewhere(options, state):
        return replace(state, phase="again")
    if state.n_lower:
        state = replace(state, confirmed=REFUTED)
    return verifying(options, state)


def searched(
    options: Options, state: SampledSQPState, query: Query, reply: Reply
) -> SampledSQPState:
    """Go on after a look farther out: to a lower point, or to the end."""
    found = after_searching(options, state, query, reply)
    if found.step is not state.step:
        return _trying(options, found)
    return _satisfied(options, found)


def _with_new_planes(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Begin with the planes here: what planes say is believed when others agree."""
    members, kinked = state.members, state.is_kinked
    rows = state.matters & members.is_bent & (kinked & KINKED_ROWS > 0)
    losses = state.table.indices if kinked & KINKED_OBJECTIVE else NO_INDICES
    state = replace(
        state,
        phase="learn",
        looks=looks_at_planes(state, state.x, losses, members.indices[rows]),
        bundle=Bundle.empty(state.size.dim),
        sigma=state.first_sigma,
        has_moved=1,
        n_rejected=0,
        n_idle=0,
        n_slow=0,
    )
    return state if state.looks else proposed(options, replace(state, has_moved=0))


def _trying(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Go to the trial point with everything to be looked at there."""
    size, members = state.size, state.members
    y = size.clip(state.x + state.scale * state.step)
    zy = y / state.scale
    then = members.at(zy)
    far = min(NEAR * state.length, SURELY * float(np.linalg.norm(state.step)))
    near = (then > -far) | (members.multipliers > 0)
    if state.n_trials % ALL_EVERY == 0 or len(members) <= pilot.ALL_MEMBERS:
        near[:] = True
    near |= is_among(members.indices, members.opposites[near])
    if size.by_case:  # of limits that are linear all is known
        near &= members.is_bent | (state.n_trials < ALL_EVERY)
    asked = size.cases_of(members.indices[near])
    at_risk = _at_risk(options, state, zy, asked)
    n_new = state.batch if state.n_found < most_joining(size) else 0
    drawn, seen = NO_INDICES, state.seen
    if not state.seen.all_drawn(size):
        n_new = max(n_new, min(state.batch, first_batch(options, size)))
        drawn, seen = _unseen(options, state, zy, then, asked, n_new)
    wanted = np.concatenate([asked, at_risk, drawn])
    wanted = size.limits_of(np.unique(wanted))
    losses = np.concatenate([state.table.indices, _held_out(state)])
    look = Look(at=y, losses=losses, constraints=wanted)
    return replace(state, phase="trial", looks=(look,), seen=seen)


def _is_large_table(size: ProblemSize) -> bool:
    """Whether cases are a table; of few all are looked at, and none has to be told."""
    return len(size.case_shape) > 1 and size.n_cases > AGAIN


def _likely(
    options: Options, state: SampledSQPState, z: FloatArray, others: IntArray, n: int
) -> tuple[IntArray, FloatArray]:
    """Return cases of a table that may exceed a limit at a point, likely ones first.

    As :meth:`CaseValues.likely`. What is seen near by to hold by far holds here.
    """
    seen, size = state.seen, state.size
    here = seen.indices[seen.distances(z) <= HERE * state.length]
    others, allowed = np.union1d(here, others), LEFT * (options.constraint_tol or 0.0)
    return state.case_values.likely(n, size.case_shape, others, allowed, z)


def _unseen(
    options: Options,
    state: SampledSQPState,
    z: FloatArray,
    values: FloatArray,
    asked: IntArray,
    n: int,
) -> tuple[IntArray, Seen]:
    """Return constraints, or cases, not seen, and what is noted of the draw.

    Three in four are likely to be the worst of a large table at a point; else half
    are beside the members of largest value, unless one would cost a whole call.
    """
    size, members, seen = state.size, state.members, state.seen
    width = size.block_width if size.by_case else 1
    found = NO_INDICES
    if _is_large_table(size):
        found, _ = _likely(options, state, z, asked, n - n // 4)
    elif size.calls is None or size.by_case:
        n_around = max(NEIGHBOURED * most_joining(size), FEWEST)
        by_value = members.indices[np.argsort(-values, kind="stable")] // width
        around = by_value[np.sort(np.unique(by_value, return_index=True)[1])[:n_around]]
        rng = stream(state.seed, state.iteration)
        found = beside(around, n // 2, size.n_cases, rng)
        known = np.concatenate([size.cases_of(members.indices), seen.indices])
        found = rng.permutation(found[~is_among(found, known)])[: n // 2]
    n_drawn = (n - len(found)) * width
    while n_drawn and not seen.all_drawn(size):
        drawn, seen = seen.draw(n_drawn, size, state.seed)
        drawn = size.cases_of(drawn[~is_among(drawn, members.indices)])
        found = np.union1d(found, drawn[~is_among(drawn, seen.indices)])
        if len(found):
            break
    return found, seen


def _held_out(state: SampledSQPState) -> IntArray:
    """Return losses outside of the table, which tell whether it stands for them."""
    table = state.table
    n_more = min(max(len(table), 2 * state.size.dim), MOST_HELD_OUT)
    first = loss_order(len(table) + n_more, state.size, state.seed)
    return first[~is_among(first, table.indices)]


def _at_risk(
    options: Options, state: SampledSQPState, z: FloatArray, asked: IntArray
) -> IntArray:
    """Return the seen constraints that may be violated at a point, the worst.

    Once all were seen, some that seem safe are looked at too, the riskiest: the
    rate by which risks are judged is itself only learned.
    """
    seen, size = state.seen, state.size
    risks = seen.risks(z)
    most = max(state.batch, 4 * most_joining(size))
    n_more = 0
    others = np.flatnonzero(~is_among(seen.indices, state.members.indices))
    if size.by_case:
        others = np.flatnonzero(~is_among(seen.indices, asked))
        most = max(0, first_batch(options, size) if seen.all_drawn(size) else 0)
    elif seen.all_drawn(size):
        behind = (state.n_loss_queries - state.n_constraint_queries) // 8
        few = max(2 * most_joining(size), size.n_constraints // SAFE_SHARE)
        n_more = min(state.batch, max(options.constraint_batch, behind), few)
    n_wanted = min(int((risks[others] > 0).sum()) + n_more, most, len(others))
    if n_wanted < len(others):
        order = np.argpartition(-risks[others], n_wanted)[:n_wanted]
        others = others[np.sort(order)]
    return seen.indices[others]


def most_joining(size: ProblemSize) -> int:
    """Return how many constraints, or cases, may join at once."""
    if size.by_case:
        return MOST_CASES
    return max(8, min(size.dim // 6, 64))


def rows_to_refresh(options: Options, state: SampledSQPState) -> IntArray:
    """Return rows to learn anew: while the others are stale, the step is not sure."""
    table, step = state.table, state.step
    sampling = table.noise_along(step, state.size.n_losses)
    aim = REFRESHED * max(options.noise_share * state.promise, sampling)
    return (
        table.next_rows(options.loss_batch)
        if table.noise_left(step) > aim
        else NO_INDICES
    )


def _wants_growth(options: Options, state: SampledSQPState) -> bool:
    """Whether the table has too few losses for the step that is proposed."""
    table, n_losses = state.table, state.size.n_losses
    if len(table) >= n_losses or state.n_stale or state.n_idle >= MOST_IDLE:
        return False
    noise = table.noise_along(state.step, n_losses)
    n_more = affordable_rows(options, state)
    if not n_more:
        return False
    upcoming = n_more * (state.size.dim + 1)
    has_share = state.n_loss_queries + upcoming < state.n_constraint_queries
    too_noisy = noise > options.noise_share * max(state.promise, 0.0)
    is_wanted = bool(state.wants_rows) or is_optimal(options, state)
    return is_wanted or too_noisy or has_share


def _growing(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Take more losses into the table."""
    table, n_more = state.table, affordable_rows(options, state)
    first = loss_order(len(table) + n_more, state.size, state.seed)
    # Those that failed when they were asked come last.
    more = np.sort(first[~is_among(first, table.indices)][-n_more:])
    looks = looks_at_slopes(state, state.x, more, NO_INDICES)
    return replace(state, phase="learn", looks=looks, wants_rows=0, has_moved=0)


def loss_order(n: int, size: ProblemSize, seed: int) -> IntArray:
    """Return the first losses in their random order."""
    positions = np.arange(min(n, size.n_losses))
    return permuted(positions, size.n_losses, 2 * seed)


def verifying(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Look at constraints that were not seen here; end if none is left, or no query."""
    size, seen, members = state.size, state.seen, state.members
    risks = seen.risks(state.z)
    distances = seen.distances(state.z)
    unsure = distances > HERE * state.length
    if not size.by_case:  # near is not near enough where little is left
        unsure |= (risks > 0) & (distances > 0)
    n_here = len(unsure) - int(unsure.sum())
    if n_here >= _first_looks(state) and learns_first(state):
        return learn_all(options, state)
    chunk = max(first_batch(options, size), min(state.n_clean, MOST_VERIFIED))
    most, quiet = max(state.batch, chunk), QUIET
    n_more = 0
    if size.by_case:
        if _is_large_table(size):  # those seen elsewhere are among the likely ones
            unsure[:] = False
        elif size.n_cases > AGAIN:  # of fewer all are looked at again
            unsure &= risks > least_violation(options, state)
        most, quiet = max(CHUNK, state.n_clean), QUIET_CASES
    else:
        unsure &= ~is_among(seen.indices, members.indices)
    who = np.flatnonzero(unsure)
    if size.by_case:  # the riskiest first: after enough of them others are no risk
        order = np.argsort(-risks[who], kind="stable")
        who = who[order[: max(0, AGAIN - n_here)]]
    room = max(int(queries_left(options, state)) - reserved(state), 0)
    most = min(most, (room + 1) // 2)
    n_likely = int((risks[who] > least_violation(options, state)).sum())
    if _is_large_table(size):  # until none is likely to be violated
        _, below = _likely(options, state, state.z, NO_INDICES, AGAIN)
        n_more = int((below < LIKELY).sum())
        most, quiet = min(most, AGAIN), max(state.n_clean + n_more, AGAIN)
        if learns_first(state):  # what is found after that does not cost that again
            most = min(most, _first_looks(state) - n_here)
        n_likely += n_more
    if size.by_case and not room:  # without these there is no success
        most = n_likely
    draws = not seen.all_drawn(size) or n_more > 0
    # Of those seen before some were looked at again: that says nothing of the others.
    n_quiet = state.n_clean if size.by_case else min(state.n_clean, state.n_kept)
    draws = draws and n_quiet < quiet
    n_again = most - most // 2 if draws and size.by_case else most
    if len(who) > n_again:
        who = who[np.argpartition(-risks[who], n_again)[:n_again]]
    wanted, n_left = seen.indices[np.sort(who)], most - len(who)
    if size.by_case:
        n_left = min(n_left, max(quiet - state.n_clean, 1))
    if n_left > 0 and draws:
        z, here = state.z, NO_INDICES
        drawn, seen = _unseen(options, state, z, members.at(z), here, n_left)
        wanted = np.union1d(wanted, drawn)
    if len(wanted):
        look = Look(at=state.x, constraints=size.limits_of(wanted))
        return replace(state, phase="verify", looks=(look,), seen=seen)
    if learns_first(state):
        return learn_all(options, state)
    is_open = state.confirmed == UNKNOWN and is_feasible(options, state)
    if state.keeps_planes:
        is_open = False
        gives_up = state.n_lower and not can_search(options, state)
        has_end = is_enclosed(options, state) and not gives_up
        n = state.n_confirms + (1 if has_end else 2)
        if state.confirmed != CONFIRMED and state.n_confirms < ENCLOSED:
            return _with_new_planes(options, replace(state, n_confirms=n))
        if state.confirmed != CONFIRMED and has_end:
            return _convinced(options, state)
    if is_open and can_confirm(state):
        state = with_home(options, state)
        return looking_around(options, replace(state, n_idle=0, n_slow=0))
    is_stuck = state.is_kinked and state.confirmed != CONFIRMED
    if is_stuck and can_search(options, state):
        return searching(options, state)
    if _pays_too_little(options, state):
        state = replace(state, price=last_price(state), sigma=state.first_sigma)
        return proposed(options, replace(state, n_idle=0, n_null=0, n_tiny=0, n_slow=0))
    if is_misled(options, state):
        return replace(state, phase="again")
    if is_astray(options, state):
        return returning(state)
    look = Look(at=state.x, losses=state.table.indices, constraints=members.indices)
    return ended(options, replace(state, phase="done", looks=(look,)))


def _first_looks(state: SampledSQPState) -> int:
    """Return the cases that are looked at before models are learned for the end.

    Few, if all are to be looked at; else as many as that costs: what is found among
    them moves the point, and then it is learned in vain.
    """
    if state.size.n_cases <= AGAIN:
        return CHUNK
    return max(CHUNK, state.size.dim * (len(stale_cases(state)) + 1))


def _pays_too_little(options: Options, state: SampledSQPState) -> bool:
    """Whether constraints may only be violated because that is cheap.

    Those that a variable hardly moves are worth less than the objective loses by it.
    """
    is_cheap = state.price < 0.1 * last_price(state)
    return is_cheap and not (state.size.by_case or is_feasible(options, state))


def looks_at_planes(
    state: SampledSQPState, at: FloatArray, losses: IntArray, rows: IntArray
) -> tuple[Look, ...]:
    """Return looks at the slopes of functions with kinks, close to a point.

    On a kink itself differences along variables belong to no plane.
    """
    rng = stream(state.seed, state.iteration)
    reach = max(state.loss_reach, state.row_reach) if len(rows) else state.loss_reach
    aside = BESIDE * reach * state.scale * rng.uniform(-1.0, 1.0, len(at))
    there = state.size.clip(at + aside)
    return looks_at_slopes(state, there, losses, rows, factor=NARROW)


def looks_at_slopes(
    state: SampledSQPState,
    at: FloatArray,
    losses: IntArray,
    constraints: IntArray,
    loss_values: FloatArray = NO_VALUES,
    values: FloatArray = NO_VALUES,
    factor: float = 1.0,
) -> tuple[Look, ...]:
    """Return looks at slopes, by differences over steps as long as noise asks for.

    Of a case all limits are looked at.
    """
    if state.size.by_case and len(constraints):
        constraints = state.size.limits_of(state.size.cases_of(constraints))
        values = NO_VALUES

    def steps(reach: float) -> FloatArray:
        size = np.maximum(factor * reach * state.scale, state.finest)
        return inward(at, size, state.size)

    for_losses = Look(
        at=at, losses=losses, loss_values=loss_values, reach=steps(state.loss_reach)
    )
    for_rows = Look(
        at=at,
        constraints=constraints,
        constraint_values=values,
        reach=steps(state.row_reach),
    )
    return slope_looks(for_losses, for_rows)
