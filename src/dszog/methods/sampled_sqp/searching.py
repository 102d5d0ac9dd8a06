"""The last look before a run is said to have converged, for a lower point.

Slopes and curvatures say nothing of an inflection, of a slope that never ends, or of a
kink whose sides were not met. So values are asked for along each variable, to both
sides and farther than before; at a kink along random ways, too, at many lengths. These
points are not needed: where one has no value, that is no failure of the run.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dszog.contract import Query, Reply
from dszog.contract.arrays import FloatArray
from dszog.maths.random_stream import stream
from dszog.methods.sampled_sqp import nearby
from dszog.methods.sampled_sqp.bundle import Bundle
from dszog.methods.sampled_sqp.confirming import soft_ways
from dszog.methods.sampled_sqp.curvature import Pairs
from dszog.methods.sampled_sqp.ending import (
    leaves_violation,
    little_to_gain,
    may_hold_elsewhere,
)
from dszog.methods.sampled_sqp.looks import Look
from dszog.methods.sampled_sqp.noise import ROUNDING
from dszog.methods.sampled_sqp.options import Options, queries_left
from dszog.methods.sampled_sqp.screening import Seen
from dszog.methods.sampled_sqp.state import SampledSQPState
from dszog.methods.sampled_sqp.subproblem import excess

# Steps, in sizes of variables: away from the start, and back.
MANY = np.array(2 * [[0.5, 2.0**-5, 2.0**-9, 2.0**-13, 2.0**-17]])
FEW = np.array([[0.5, 2.0**-5, 0.0, 0.0, 0.0], [2.0**-3, 0.0, 0.0, 0.0, 0.0]])
MOST = 3  # such looks, in a run
SHARE = 0.1  # of the queries so far that one may cost
CASE_SHARE = 0.5  # likewise, where cases are looked at
CLEAR = 16.0  # times the noise: what a value has to change by
# Points looked at to begin elsewhere; so many times as far off as the run has gone.
FEWEST_ELSEWHERE, MOST_ELSEWHERE = 16, 64
NEARER, FARTHER = 1.0, 4.0
WORTH = 1e-2  # of the tolerance: a gain for which a run goes on


def can_search(options: Options, state: SampledSQPState) -> bool:
    """Whether there are queries, and patience, for such a look."""
    left = queries_left(options, state)
    if state.size.by_case:  # where many cases would have to be looked at, there is none
        left = min(left, CASE_SHARE * state.n_queries / state.size.dim)
    if not (state.size.upper > state.size.lower).any():
        return False
    n_functions = state.n_functions(state.members.is_bent)
    return state.n_searches < MOST and n_functions * 8 <= left


def searching(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Ask farther out."""
    members, left = state.members, queries_left(options, state)
    n_functions = state.n_functions(members.is_bent)
    if not (state.size.by_case or state.seen.all_drawn(state.size)):
        left /= 2.0  # the rest is for constraints that were not seen
    n_points = max(int(SHARE * state.n_queries) // n_functions, 8 * state.size.dim)
    look = Look(
        at=state.x,
        losses=state.table.indices,
        constraints=members.indices[members.is_bent],
    )
    return replace(
        state,
        phase="search",
        looks=(look,),
        n_probes=min(n_points, int(left) // n_functions - 1),
        n_searches=state.n_searches + 1,
    )


def _steps(state: SampledSQPState) -> FloatArray:
    """Return steps: by ways, two sides and lengths, shape (k, 2, n, dim).

    Along variables, away from the start first; then along ways without curvature, or
    random ones at a kink.
    """
    size, rng = state.size, stream(state.seed, state.iteration)
    lengths = MANY if state.is_kinked else FEW
    movable = np.flatnonzero(size.upper > size.lower)
    n = max(state.n_probes // int(np.count_nonzero(lengths)), 1)
    more = soft_ways(state)[: max(state.n_probes // 20, 1)]
    chosen = np.sort(rng.permutation(movable)[:n])
    ways = np.diag(np.where(state.x < state.start, -1.0, 1.0))[chosen]
    if state.is_kinked:
        more = rng.normal(size=(min(2 * size.dim, n), size.dim))
        more /= np.abs(more).max(axis=1, keepdims=True)
    factors = np.stack([lengths] * len(ways) + [MANY] * len(more))
    factors = factors * np.array([[1.0], [-1.0]])
    ways = np.vstack([ways, more])[:, np.newaxis, np.newaxis]
    sides = ways * factors[..., np.newaxis]
    own = state.own_sizes
    steps = size.clip(state.x + sides * own) - state.x
    # What rounding leaves between a point and its bounds is no step.
    return np.where(np.abs(steps) > 2.0**-40 * own, steps, 0.0)


def steps(state: SampledSQPState) -> FloatArray:
    """Return the steps to the points farther out that are asked for."""
    found = _steps(state)
    return found[found.any(axis=3)]


def after_searching(
    options: Options, state: SampledSQPState, query: Query, reply: Reply
) -> SampledSQPState:
    """Return the state with a step to a lower point, or with what none shows."""
    steps = _steps(state)
    rises = np.full(steps.shape[:3], np.inf)
    rises[steps.any(axis=3)] = np.nan_to_num(_rises(state, query, reply), nan=np.inf)
    noise = CLEAR * _noise(state)
    worth = WORTH * options.tol * abs(state.objective)
    if state.is_kinked or state.size.by_case:
        worth = little_to_gain(options, state)
    clear = max(noise, worth) if state.size.by_case else noise
    state = replace(state, is_open=int(_is_open(state, rises[:, 0, :2], clear)))
    best = np.unravel_index(np.argmin(rises), rises.shape)
    if not rises[best] < -max(worth, noise):
        return replace(state, n_lower=0)
    is_much = -rises[best] > little_to_gain(options, state)
    return replace(
        state,
        step=steps[best] / state.scale,
        promise=-float(rises[best]),
        curved=0.0,
        n_corrected=0,
        sigma=state.first_sigma,
        measured=np.empty((0, 0)),
        pairs=Pairs.none(state.size.dim),
        bundle=Bundle.empty(state.size.dim),
        confirmed=0,
        n_confirms=0,
        n_lower=state.n_lower + 1 if is_much else 0,
        n_rejected=0,
        n_idle=0,
        n_slow=0,
        n_tiny=0,
    )


def _is_open(state: SampledSQPState, rises: FloatArray, noise: float) -> bool:
    """Whether the objective falls on, away from the start, as far as was looked.

    Or did so the last time, and now has become level.
    """
    falls = (rises < -noise).all(axis=1) & (rises[:, 0] < rises[:, 1])
    is_level = (np.abs(rises) <= noise).all(axis=1)
    return bool(falls.any() or (state.is_open and is_level.any()))


def _noise(state: SampledSQPState) -> float:
    """Return the noise of the merit."""
    rows = state.weight * state.unit_noise * float(np.sqrt(len(state.members)))
    losses = max(state.loss_noise, ROUNDING * abs(state.objective))  # larger by now
    return losses / float(np.sqrt(max(len(state.table), 1))) + rows


def _rises(state: SampledSQPState, query: Query, reply: Reply) -> FloatArray:
    """Return by how much the merit rose at each point."""
    rises = _violations(state, query, reply) - excess(state.members.at(state.z))
    rises *= state.weight
    if reply.losses.shape[1]:
        rises = rises + (reply.losses - state.table.values).mean(axis=1)
    return rises


def _violations(state: SampledSQPState, query: Query, reply: Reply) -> FloatArray:
    """Return the sum of violations at each point: by models of what was not asked."""
    members, bent = state.members, state.members.is_bent
    moves = query.points(state.size) / state.scale - state.z
    values = members.at(state.z) + moves @ members.slopes.T
    values[:, bent] = reply.constraints / members.sizes[bent]
    return np.asarray(np.maximum(values, 0.0).sum(axis=1))


# ----------------------------------------------------- where a violation could not go


def ended(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Return the best end, or look elsewhere first if a violation is left."""
    if not leaves_violation(options, state):
        return replace(state, kept=None)
    best = replace(state, kept=None, seen=Seen.nothing(state.size.dim))
    if state.kept is not None and not _is_better(options, state, state.kept):
        best = state.kept
    state = replace(state, kept=best)
    is_best = best.iteration == state.iteration
    if is_best and nearby.can_look(options, state):
        return nearby.looking(options, state)
    return looking_elsewhere(options, state)


def looking_elsewhere(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Look elsewhere where no point near by is better, or return the best end."""
    if not may_hold_elsewhere(options, state):
        return as_kept(state)
    asked = state.members.indices[state.members.is_bent]
    look = Look(at=state.x, losses=state.table.indices[:1], constraints=asked)
    n_points = min(state.n_queries // (2 * len(asked) + 2), MOST_ELSEWHERE)
    return replace(
        state,
        phase="elsewhere",
        looks=(look,),
        n_probes=max(n_points, FEWEST_ELSEWHERE),
        n_elsewhere=state.n_elsewhere + 1,
    )


def as_kept(state: SampledSQPState) -> SampledSQPState:
    """Return the best end of a run that began elsewhere."""
    if state.kept is None:
        return state
    return replace(
        state.kept,
        iteration=state.iteration,
        is_least=state.is_least,
        **state.remembered,
    )


def _is_better(
    options: Options, state: SampledSQPState, other: SampledSQPState
) -> bool:
    """Whether less is violated; where that is as much, whether it costs less."""
    slight = options.tol * other.violation
    if abs(state.violation - other.violation) <= slight:
        return state.objective < other.objective
    return state.violation < other.violation


def steps_elsewhere(state: SampledSQPState) -> FloatArray:
    """Return steps in random ways, about as far as the run has gone."""
    rng, n = stream(state.seed, state.iteration), state.n_probes
    ways = rng.normal(size=(n, state.size.dim))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    gone = float(np.linalg.norm(state.z - state.start / state.scale))
    lengths = NEARER * (FARTHER / NEARER) ** rng.uniform(size=(n, 1))
    moves = max(gone, state.length) * lengths * ways * state.scale
    return state.size.clip(state.x + moves) - state.x


def after_looking_elsewhere(
    state: SampledSQPState, query: Query, reply: Reply
) -> SampledSQPState:
    """Begin again where constraints are kept best; end if nothing has values."""
    left = _violations(state, query, reply) + 0.0 * reply.losses.sum(axis=1)
    left = np.nan_to_num(left, nan=np.inf)
    best = int(np.argmin(left))
    if not np.isfinite(left[best]):
        return as_kept(state)
    x, none = query.points(state.size)[best], np.empty((0, 0))
    return replace(state, phase="again", x=x, measured=none, caution=1.0)
