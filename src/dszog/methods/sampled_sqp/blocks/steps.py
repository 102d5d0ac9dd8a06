"""What was found, case by case, and what to look at next."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.random_stream import stream
from dszog.methods.sampled_sqp.blocks import program
from dszog.methods.sampled_sqp.blocks.cases import Cases
from dszog.methods.sampled_sqp.blocks.state import BlockState, served, worst_of
from dszog.methods.sampled_sqp.looks import Found, Look, inward
from dszog.methods.sampled_sqp.options import KEPT, Options
from dszog.methods.sampled_sqp.scales import noise_level
from dszog.methods.sampled_sqp.screening import Seen, permuted
from dszog.status import Status

FIRST_LOOK, FIRST_MEMBERS = 20, 5  # cases
NEW_CASES = 5  # looked at in a trial beside the members
MOST_JOINING, MOST_MEMBERS = 5, 64
NOISE_POINTS = 7
LEAST_REACH, MOST_REACH = 1e-5, 0.1  # steps of differences, of the size of a variable
FIRST_DELTA, LARGEST_DELTA, LEAST_DELTA = 0.2, 0.5, 1e-5
RENEWED_DELTA = 0.02  # after something was learned
STRIKES = 2  # failed steps after which a case learns slopes of its own
STALLED = 3  # failed steps in a row after which one does in any case
ACCEPT, GOOD, POOR = 0.1, 0.7, 0.3  # shares of the promise that was kept
FIRST_PRICE, HIGHEST_PRICE = 10.0, 1e6  # of a violation, in units of the gradient
ENOUGH = 50.0  # times `tol`, of the objective: a promise that is worth nothing
FEASIBLE = 500.0  # times `tol`, of the usual size of limits: as good as kept
CHUNK = 24  # cases in one look before the end
QUIET = 1000  # unseen cases without a violation that end a run
MOST_VERIFIED = 20  # rounds of verification that may find something
MOST_LEARNED = 6  # times that all that binds is learned anew before the end
MOST_REFRESHED = 6  # cases
FINAL_DELTA = 0.05  # of the region in which nothing must be left to gain at the end
BENDS = (0.3, 0.03)  # weight of the square in the step, in units of the gradient
LEAST_BEND = 1e-6
NEAR, ALL_EVERY = 0.1, 5  # members that are looked at; trials after which all are
MOST_TRIES = 3  # at cases that give no value
MOST_UNKNOWN = 0.5  # of the cases of a trial may give no value
LOST = 30  # times the noise: a smaller violation means nothing


@dataclass(frozen=True)
class CaseValues:
    """What a look at values has found, case by case; cases without values left out."""

    cases: IntArray  # (k,)
    values: FloatArray  # (k, width)
    objective: float
    unknown: IntArray  # cases that gave no value

    @classmethod
    def of(cls, look: Look, found: Found, size: ProblemSize) -> CaseValues:
        """Return the values of a look by case."""
        width = size.block_width
        table = found.values.reshape(-1, width)
        cases = look.constraints[::width] // width
        known = ~np.isnan(table).any(axis=1)
        mean = float(found.loss_values.mean()) if len(look.losses) else math.nan
        return cls(cases[known], table[known], mean, cases[~known])


# ---------------------------------------------------------------------------- the pilot


def first_state(
    options: Options, x: FloatArray, size: ProblemSize, seed: int
) -> BlockState:
    """Return the state before the pilot."""
    dim = size.dim
    with np.errstate(invalid="ignore"):
        room = size.upper - size.lower
    by_start = np.where(x != 0, np.abs(x), 1.0)
    scale = np.where(np.isfinite(room) & (room > 0), room, by_start)
    losses = np.sort(
        permuted(np.arange(min(options.loss_batch, size.n_losses)), size.n_losses, seed)
    )
    cases, seen = drawn(Seen.nothing(dim), FIRST_LOOK, size, seed)
    none = np.empty(0, dtype=np.int64)
    return BlockState(
        iteration=0,
        seed=seed,
        size=size,
        x=x,
        phase="pilot",
        looks=(Look(at=x, losses=losses, constraints=served(size, cases)),),
        cases=Cases.none(size.block_width, dim),
        seen=seen,
        losses=losses,
        start=x,
        scale=scale,
        gradient=np.zeros(dim),
        bent=np.zeros(dim),
        reach=LEAST_REACH,
        loss_noise=0.0,
        constraint_noise=0.0,
        usual=1.0,
        step=np.zeros(dim),
        promise=0.0,
        delta=FIRST_DELTA,
        price=1.0,
        objective=0.0,
        first_objective=0.0,
        violation=0.0,
        anchor=x / scale,
        n_learned=0,
        n_trials=0,
        n_rejected=0,
        n_verified=0,
        n_clean=0,
        n_retries=0,
        unknown=none,
        tries=none,
        residual=-1.0,
        n_loss_queries=0,
        n_constraint_queries=0,
    )


def drawn(seen: Seen, n: int, size: ProblemSize, seed: int) -> tuple[IntArray, Seen]:
    """Return cases that were not seen yet, in random order, and note them as drawn."""
    found = NO_INDICES
    while len(found) < n and not seen.all_drawn(size):
        more, seen = seen.draw((n - len(found)) * size.block_width, size, seed)
        numbers = more[:: size.block_width] // size.block_width
        found = np.append(found, numbers[~np.isin(numbers, seen.indices)])
    return np.sort(found), seen


def after_values(options: Options, state: BlockState, found: Found) -> BlockState:
    """Take in the first values; again if there is none of the objective."""
    asked = CaseValues.of(state.looks[0], found, state.size)
    if not math.isfinite(asked.objective) or not len(asked.cases):
        if state.n_retries >= MOST_TRIES:
            return replace(state, phase="done")
        return replace(state, n_retries=state.n_retries + 1)
    usual = float(np.median(np.abs(asked.values))) or 1.0
    state = noted(replace(state, usual=usual), asked, state.x)
    worst = worst_of(asked.values)
    first = np.argsort(-worst, kind="stable")[:FIRST_MEMBERS]
    flat = np.zeros((len(first), state.size.block_width, state.size.dim))
    cases = Cases(
        numbers=asked.cases[first],
        values=asked.values[first],
        slopes=flat,
        bases=np.tile(state.z, (len(first), 1)),
        own=np.zeros(len(first), dtype=np.int64),
        strikes=np.zeros(len(first), dtype=np.int64),
        multipliers=np.zeros((len(first), state.size.block_width)),
    )
    return replace(
        state,
        phase="noise",
        cases=cases,
        objective=asked.objective,
        first_objective=asked.objective,
        violation=float(worst.max()),
    )


def noise_queries(state: BlockState) -> tuple[Query, ...]:
    """Ask for the objective and the worst case at points in a row."""
    size = state.size
    rng = stream(state.seed, state.iteration)
    spacing = 1e-6 * state.scale * rng.uniform(0.5, 1.0, size.dim)
    step = inward(state.x, (NOISE_POINTS - 1) * spacing, size) / (NOISE_POINTS - 1)
    query = Query(
        iteration=state.iteration,
        x=state.x,
        steps=np.arange(1.0, NOISE_POINTS)[:, np.newaxis] * step,
        losses=state.losses[:1],
        constraints=served(size, state.cases.numbers[:1]),
    )
    return (query,)


def after_noise(state: BlockState, replies: Sequence[Reply]) -> BlockState:
    """Note how noisy values are; learn slopes over steps that suit that."""
    (reply,) = replies
    levels = []
    for table in (reply.losses, reply.constraints):
        table = table[~np.isnan(table).any(axis=1)]
        levels.append(float(np.median(noise_level(table))) if len(table) > 4 else 0.0)
    sizes = max(abs(state.objective), 1e-300), state.usual
    relative = max(level / size for level, size in zip(levels, sizes, strict=True))
    reach = float(np.clip(2.0 * math.sqrt(relative), LEAST_REACH, MOST_REACH))
    state = replace(
        state, reach=reach, loss_noise=levels[0], constraint_noise=levels[1]
    )
    return learning(state, state.cases.numbers[:1], state.losses)


def learning(state: BlockState, numbers: IntArray, losses: IntArray) -> BlockState:
    """Learn slopes at the iterate: of cases, and of the objective."""
    steps = inward(state.x, state.reach * state.scale, state.size)
    looks = []
    if len(losses):
        looks.append(Look(at=state.x, losses=losses, reach=steps))
    for number in numbers.tolist():
        place = state.cases.places(np.array([number]))[0]
        known = (state.cases.bases[place] == state.z).all()
        looks.append(
            Look(
                at=state.x,
                constraints=served(state.size, np.array([number])),
                reach=steps,
                constraint_values=state.cases.values[place] if known else np.empty(0),
            )
        )
    return replace(state, phase="learn", looks=tuple(looks))


def after_learning(
    options: Options, state: BlockState, found: list[Found]
) -> BlockState:
    """Take in slopes; from values that failed nothing is learned."""
    cases, gradient, size = state.cases, state.gradient, state.size
    for look, one in zip(state.looks, found, strict=True):
        if len(look.losses):
            fresh = one.loss_slopes.mean(axis=0)
            gradient = np.where(np.isnan(fresh), gradient, fresh)
            continue
        number = int(look.constraints[0]) // size.block_width
        if np.isnan(one.values).any():
            continue
        place = int(cases.places(np.array([number]))[0])
        cases = cases.learned(place, one.values, one.slopes, state.z)
    state = replace(state, cases=cases, gradient=gradient)
    if not state.n_learned:  # the others borrow what the first has learned
        slopes = np.broadcast_to(cases.slopes[0], cases.slopes.shape)
        state = _priced(replace(state, cases=replace(cases, slopes=slopes)))
    return proposed(options, state)


def _priced(state: BlockState) -> BlockState:
    """Return the state with the price of violations, from the first slopes."""
    worst = state.cases.values.argmax(axis=1)
    rows = state.cases.slopes[np.arange(len(worst)), worst]
    lengths = np.linalg.norm(rows, axis=1)
    steep = float(np.median(lengths[lengths > 0])) if lengths.any() else 1.0
    price = FIRST_PRICE * (float(np.linalg.norm(state.gradient)) or 1.0) / steep
    seen = replace(state.seen, rate=0.5 * steep, first_rate=0.5 * steep)
    return replace(state, price=price, seen=seen, n_learned=1)


# ------------------------------------------------------------------------ the next step


def noted(state: BlockState, asked: CaseValues, at: FloatArray) -> BlockState:
    """Note what was seen of each case, and which gave no value."""
    seen = state.seen
    if len(asked.cases):
        seen = seen.with_values(asked.cases, worst_of(asked.values), at / state.scale)
    tried = dict(zip(state.unknown.tolist(), state.tries.tolist(), strict=True))
    for number in asked.cases.tolist():
        tried.pop(number, None)
    for number in asked.unknown.tolist():
        tried[number] = tried.get(number, 0) + 1
    numbers = np.array(sorted(tried), dtype=np.int64)
    tries = np.array([tried[n] for n in numbers.tolist()], dtype=np.int64)
    return replace(state, seen=seen, unknown=numbers, tries=tries)


def kept_to(options: Options, state: BlockState) -> float:
    """Return the violation that is as good as none."""
    least = FEASIBLE * options.tol * state.usual
    if options.constraint_tol is not None:
        least = min(least, KEPT * options.constraint_tol)
    return max(least, LOST * state.constraint_noise)


def worth(options: Options, state: BlockState) -> float:
    """Return the decrease that is as good as none."""
    gone = abs(state.first_objective - state.objective)
    least = ENOUGH * options.tol * max(abs(state.objective), gone)
    return max(least, LOST * state.loss_noise)


def proposed(options: Options, state: BlockState) -> BlockState:
    """Solve the program; go on to a trial point, or to verification."""
    size, cases, z = state.size, state.cases, state.z
    now = cases.at(z)
    worst = max(float(now.max(initial=0.0)), 0.0)
    low = (size.lower - state.x) / state.scale
    high = (size.upper - state.x) / state.scale
    steep = float(np.linalg.norm(state.gradient)) / math.sqrt(size.dim)
    bend = BENDS[min(max(state.n_learned - 1, 0), len(BENDS) - 1)]

    curved = np.outer(state.bent, state.bent)

    def solved(delta: float, price: float) -> program.Proposal | None:
        return program.solve(
            state.gradient,
            now,
            cases.slopes,
            np.maximum(low, -delta),
            np.minimum(high, delta),
            curved + max(bend * steep, LEAST_BEND * price) / delta * np.eye(size.dim),
            price,
            cases.multipliers,
        )

    delta, price = state.delta, state.price
    answer = solved(delta, price)
    while answer is None and delta > LEAST_DELTA:
        delta /= 2.0
        answer = solved(delta, price)
    if answer is None:
        return verifying(options, replace(state, promise=-1.0))
    highest = HIGHEST_PRICE * price
    while answer.excess > kept_to(options, state) and price < highest:
        more = solved(delta, 10.0 * price)
        if more is None or more.excess > 0.9 * answer.excess:
            break
        answer, price = more, 10.0 * price
    y = size.clip(state.x + state.scale * answer.step)
    step = y / state.scale - z
    excess = float(cases.at(y / state.scale).max(initial=0.0))
    gain = -float(state.gradient @ step + 0.5 * step @ curved @ step)
    promise = price * (worst - excess) + gain
    state = replace(
        state,
        cases=replace(cases, multipliers=answer.multipliers),
        step=step,
        promise=promise,
        delta=delta,
        price=price,
    )
    if promise <= worth(options, state) or delta < LEAST_DELTA:
        if is_fresh(state) or state.n_learned > MOST_LEARNED:
            return verifying(options, state)
        return _learned_at_end(options, state)
    return _trying(options, state, y)


def _trying(options: Options, state: BlockState, y: FloatArray) -> BlockState:
    """Go to the trial point: the objective, the members, and cases not seen yet."""
    then = worst_of(state.cases.at(y / state.scale))
    near = (then > -NEAR * state.usual) | state.cases.multipliers.any(axis=1)
    if state.n_trials % ALL_EVERY == 0:
        near[:] = True
    new, seen = drawn(state.seen, NEW_CASES, state.size, state.seed)
    others = NO_INDICES
    if len(new) < NEW_CASES:
        risks = seen.risks(y / state.scale)
        at_risk = (risks > 0) & ~np.isin(seen.indices, state.cases.numbers)
        order = np.argsort(-np.where(at_risk, risks, -np.inf), kind="stable")
        others = seen.indices[order[: min(NEW_CASES - len(new), int(at_risk.sum()))]]
    lost = state.unknown[np.argsort(state.tries, kind="stable")][:NEW_CASES]
    wanted = np.unique(np.concatenate([state.cases.numbers[near], new, others, lost]))
    look = Look(at=y, losses=state.losses, constraints=served(state.size, wanted))
    return replace(state, phase="trial", looks=(look,), seen=seen)


def after_trial(options: Options, state: BlockState, found: Found) -> BlockState:
    """Accept the trial point or not; learn from every value."""
    look, cases = state.looks[0], state.cases
    asked, y = CaseValues.of(look, found, state.size), look.at
    zy = y / state.scale
    state = noted(replace(state, n_trials=state.n_trials + 1), asked, y)
    n_lost, n_known = len(asked.unknown), len(asked.cases)
    if not math.isfinite(asked.objective) or n_lost > MOST_UNKNOWN * (n_lost + n_known):
        state = replace(state, delta=state.delta / 3.0, n_rejected=state.n_rejected + 1)
        return proposed(options, state)
    before = max(float(cases.at(state.z).max(initial=0.0)), 0.0)
    predicted = cases.at(zy)
    places = cases.places(asked.cases)
    rows = np.searchsorted(asked.cases, cases.numbers[places])
    predicted[places] = asked.values[rows]
    after = max(float(predicted.max(initial=0.0)), 0.0)
    kept = state.objective - asked.objective + state.price * (before - after)
    ratio = kept / max(state.promise, 1e-300)
    step, length = state.step, max(float(state.step @ state.step), 1e-300)
    miss = asked.objective - state.objective - float(state.gradient @ step)
    cases = cases.corrected(places, asked.values[rows], zy)
    cases, n_new = _with_new(options, state, cases, asked, after, zy)
    state = replace(
        state,
        cases=cases,
        bent=math.sqrt(max(2.0 * miss, 0.0)) / length * step,
        n_clean=0 if n_new else state.n_clean + n_known - len(places),
    )
    if ratio > ACCEPT:
        delta = state.delta
        if ratio > GOOD:
            delta = min(LARGEST_DELTA, 1.5 * delta)
        elif ratio < POOR:
            delta /= 1.5
        state = replace(
            state,
            x=y,
            gradient=state.gradient + 2.0 * miss / length * step,
            objective=asked.objective,
            violation=float(worst_of(asked.values).max(initial=-np.inf)),
            delta=delta,
            n_rejected=0,
            tries=np.zeros(len(state.tries), dtype=np.int64),
        )
        return proposed(options, state)
    return _rejected(options, state, predicted)


def _with_new(
    options: Options,
    state: BlockState,
    cases: Cases,
    asked: CaseValues,
    worst: float,
    z: FloatArray,
) -> tuple[Cases, int]:
    """Return the members with the cases that join: worse than what members show."""
    worsts = np.where(np.isin(asked.cases, cases.numbers), -np.inf, 0.0)
    worsts = worsts + worst_of(asked.values)
    order = np.argsort(-worsts, kind="stable")[:MOST_JOINING]
    bar = max(worst, 0.0) + kept_to(options, state)
    chosen = order[worsts[order] > bar]
    for place in chosen.tolist():
        cases = cases.joined(int(asked.cases[place]), asked.values[place], z)
    if len(cases) > MOST_MEMBERS:
        score = np.where(cases.multipliers.any(axis=1), np.inf, worst_of(cases.at(z)))
        score[-len(chosen) :] = np.inf
        cases = cases.kept(np.sort(np.argsort(-score, kind="stable")[:MOST_MEMBERS]))
    return cases, len(chosen)


def _rejected(options: Options, state: BlockState, predicted: FloatArray) -> BlockState:
    """Try a shorter step; a case that failed more than once learns its own slopes."""
    n_rejected, cases = state.n_rejected + 1, state.cases
    delta = state.delta / 2.5
    guilty = int(worst_of(predicted).argmax()) if len(predicted) else 0
    cases = cases.struck(guilty) if len(cases) else cases
    state = replace(state, cases=cases, delta=delta, n_rejected=n_rejected)
    who = None
    if len(cases) and cases.strikes[guilty] >= STRIKES and not cases.own[guilty]:
        who = guilty
    losses = NO_INDICES
    if n_rejected >= STALLED and len(cases):
        state = replace(state, n_rejected=0)
        who = int(np.argmax(cases.strikes)) if who is None else who
    if who is None:
        return proposed(options, state)
    state = replace(state, delta=max(delta, RENEWED_DELTA))
    return learning(state, cases.numbers[[who]], losses)


# --------------------------------------------------------------------------- the ending


def verifying(options: Options, state: BlockState) -> BlockState:
    """Look at cases that were not seen here, the likeliest offenders first."""
    seen, size = state.seen, state.size
    if state.n_verified < MOST_VERIFIED:
        far = seen.distances(state.z) > 1e-12
        risks = seen.risks(state.z)
        lost = state.unknown[state.tries < MOST_TRIES]
        unsure = far & (risks > kept_to(options, state))
        order = np.argsort(-np.where(unsure, risks, -np.inf), kind="stable")
        wanted = seen.indices[order[: min(CHUNK, int(unsure.sum()))]]
        wanted = wanted[~np.isin(wanted, state.unknown)]
        if len(wanted) < CHUNK:
            wanted = np.union1d(wanted, lost[: CHUNK - len(wanted)])
        if len(wanted) < CHUNK and state.n_clean < QUIET:
            new, seen = drawn(seen, CHUNK - len(wanted), size, state.seed)
            wanted = np.union1d(wanted, new)
        if len(wanted):
            look = Look(at=state.x, constraints=served(size, wanted))
            return replace(state, phase="verify", looks=(look,), seen=seen)
    return _ended(options, state)


def after_verifying(options: Options, state: BlockState, found: Found) -> BlockState:
    """Go on with what was found violated, or come closer to the end."""
    asked = CaseValues.of(state.looks[0], found, state.size)
    cases = state.cases
    n_new_seen = int((~np.isin(asked.cases, state.seen.indices)).sum())
    state = noted(state, asked, state.x)
    places = cases.places(asked.cases)
    rows = np.searchsorted(asked.cases, cases.numbers[places])
    cases = cases.corrected(places, asked.values[rows], state.z)
    worst = max(float(cases.at(state.z).max(initial=0.0)), 0.0)
    state = replace(state, cases=cases)
    cases, n_new = _with_new(options, state, cases, asked, 0.0, state.z)
    found_worst = float(worst_of(asked.values).max(initial=-np.inf))
    state = replace(
        state,
        cases=cases,
        violation=max(state.violation, found_worst),
        n_clean=0 if n_new else state.n_clean + n_new_seen,
        n_verified=state.n_verified + (n_new > 0),
    )
    if not n_new and worst <= kept_to(options, state):
        return verifying(options, state)
    if not n_new:
        return proposed(options, state)
    return proposed(options, replace(state, delta=max(state.delta, RENEWED_DELTA)))


def _ended(options: Options, state: BlockState) -> BlockState:
    """End; what the models still promise is known if they are fresh."""
    least = max(abs(state.objective), 1e-300)
    is_shown = (
        is_fresh(state)
        and state.delta >= FINAL_DELTA
        and 0.0 <= state.promise <= worth(options, state)
    )
    residual = state.promise / least if is_shown else -1.0
    look = Look(at=state.x, losses=state.losses)
    return replace(state, phase="done", looks=(look,), residual=residual)


def is_fresh(state: BlockState) -> bool:
    """Whether what binds was learned near here, within the region looked at."""
    gone = float(np.abs(state.z - state.anchor).max())
    binding = state.cases.multipliers.any(axis=1)
    is_own = bool(state.cases.own[binding].all())
    return state.n_learned > 1 and gone <= FINAL_DELTA and is_own


def _learned_at_end(options: Options, state: BlockState) -> BlockState:
    """Learn all that binds once more where the run wants to end."""
    pulls = state.cases.multipliers.sum(axis=1)
    binding = np.argsort(-pulls, kind="stable")[: np.count_nonzero(pulls)]
    binding = binding[state.cases.own[binding] == 0][:MOST_REFRESHED]
    state = replace(
        state,
        anchor=state.z,
        n_learned=state.n_learned + 1,
        delta=max(state.delta, FINAL_DELTA),
    )
    return learning(state, state.cases.numbers[binding], state.losses)


def how(options: Options, state: BlockState) -> Status | None:
    """Return how a run has ended, None if it has not.

    None has converged: that nothing is left to gain in a region that is as large as
    the sizes of the variables were taken to be shows no optimum.
    """
    if state.phase != "done":
        return None
    if not state.n_learned:
        return Status.TOO_MANY_FAILURES
    if state.violation > kept_to(options, state):
        return Status.LEAST_VIOLATION
    return Status.STALLED
