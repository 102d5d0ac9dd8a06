"""A look near by, before a run is said to have the least violation.

Slopes at a kink, or of a case that is close to failing, say little of how limits could
be kept. So the cases that matter are asked for along the way that keeps them better,
and along each variable to both sides, at lengths from a tenth of its range on down. If
less is violated at one of these points, the run begins again there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dszog.contract import Reply
from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.random_stream import stream
from dszog.methods.sampled_sqp.ending import is_unsure
from dszog.methods.sampled_sqp.looks import UNKNOWN, Look
from dszog.methods.sampled_sqp.options import Options, queries_left
from dszog.methods.sampled_sqp.state import SampledSQPState

LENGTHS = 10.0 ** np.arange(-5.0, 0.0)  # of the range of a variable, or its size
MOST = 4  # such looks, in a run
MOST_CASES = 24  # that are asked for: the worst
SHARE = 0.5  # of the queries so far that a look may cost
LEAST = 500  # queries that it may cost in any case
WORTH = 1e-2  # of the sum of violations: a smaller one by that is worth going on
CLEAR = 16.0  # times the noise


def can_look(options: Options, state: SampledSQPState) -> bool:
    """Whether there are queries, and patience, for such a look."""
    if not is_unsure(state) or state.n_near >= MOST:
        return False
    return _n_points(options, state) > len(LENGTHS)


def looking(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Ask for the cases that matter, near by."""
    rows = state.size.limits_of(_cases(state))
    return replace(
        state,
        phase="near",
        looks=(Look(at=state.x, constraints=rows),),
        n_probes=_n_points(options, state),
        n_near=state.n_near + 1,
        is_least=0,
    )


def _cases(state: SampledSQPState) -> IntArray:
    """Return the cases that were worst when they were last seen, with a value."""
    seen, members = state.seen, state.members
    known = seen.values < UNKNOWN
    order = np.argsort(-np.where(known, seen.values, -np.inf), kind="stable")
    worst = seen.indices[order[: min(MOST_CASES, int(known.sum()))]]
    holding = members.kept(np.flatnonzero(state.matters))
    order = np.argsort(-holding.multipliers, kind="stable")
    own = state.size.cases_of(holding.indices[order[:MOST_CASES]])
    return np.union1d(own, worst)


def _n_points(options: Options, state: SampledSQPState) -> int:
    """Return at how many points, beside this one, all of these can be asked for."""
    most = min(max(SHARE * state.n_queries, LEAST), queries_left(options, state))
    wanted = len(LENGTHS) * len(_ways(state))
    return min(wanted, int(most) // max(len(_cases(state)), 1) - 1)


def _ways(state: SampledSQPState) -> FloatArray:
    """Return ways, the longest entry of each 1 of the range: first where slopes say."""
    size, members = state.size, state.members
    own = _sizes(state)
    bad = members.at(state.z) > 0
    slopes = members.slopes[bad] / state.scale * own
    both = np.array([members.sizes[bad] @ slopes, np.sum(slopes, axis=0)])
    largest = np.abs(both).max(axis=1, keepdims=True)
    down = -both[largest[:, 0] > 0] / largest[largest[:, 0] > 0]
    movable = np.flatnonzero(size.upper > size.lower)
    order = stream(state.seed, state.iteration).permutation(movable)
    along = np.eye(size.dim)[order]
    return np.vstack([down, np.stack([along, -along], 1).reshape(-1, size.dim)])


def _sizes(state: SampledSQPState) -> FloatArray:
    """Return the range of each variable, its size where there is none."""
    span = state.size.upper - state.size.lower
    return np.where(np.isfinite(span), span, state.own_sizes)


def steps(state: SampledSQPState) -> FloatArray:
    """Return the steps, shape (n, dim), by ways; the first is none."""
    moves = LENGTHS[:, np.newaxis] * (_ways(state) * _sizes(state))[:, np.newaxis]
    there = state.size.clip(state.x + moves.reshape(-1, state.size.dim))
    moved = there[: state.n_probes] - state.x
    return np.vstack([np.zeros(state.size.dim), moved])


def after_looking(state: SampledSQPState, reply: Reply) -> SampledSQPState:
    """Begin again where less is violated; else it is known that there is none."""
    values = reply.constraints
    asked = ~np.isnan(values[0])  # those that fail here say nothing
    sums = np.maximum(values[:, asked], 0.0).sum(axis=1)
    sums = np.nan_to_num(sums, nan=np.inf)
    noise = CLEAR * state.constraint_noise * float(np.sqrt(max(asked.sum(), 1)))
    best = int(np.argmin(sums))
    if asked.any() and sums[best] < (1.0 - WORTH) * sums[0] - noise:
        x = state.size.clip(state.x + steps(state)[best])
        none = np.empty((0, 0))
        return replace(state, phase="again", x=x, measured=none, caution=1.0)
    return replace(state, phase="done", is_least=int(asked.any()))
