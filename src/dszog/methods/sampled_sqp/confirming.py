"""Before a run is said to have converged: a look around, farther than differences go.

Differences over tiny steps do not see a kink, a stiff direction that hides a soft one,
or a saddle. So the Lagrangian is asked for at a few more points: on both sides along
each variable, at two lengths, and along pairs of variables as far as queries allow.
Slopes that differ on the two sides show a kink. Else slopes and curvatures over the
longer steps take the place of what was known, and the subproblem is solved once more:
if its step is worth a word, the run has not converged and goes on with it.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
from scipy.linalg import null_space

from dszog.contract import Query, Reply
from dszog.contract.arrays import BoolArray, FloatArray, IntArray
from dszog.maths.random_stream import stream
from dszog.methods.sampled_sqp.curvature import Pairs
from dszog.methods.sampled_sqp.looks import Look, inward
from dszog.methods.sampled_sqp.noise import ROUNDING, noise_level
from dszog.methods.sampled_sqp.options import Options, queries_left
from dszog.methods.sampled_sqp.pilot import steps_in_a_row
from dszog.methods.sampled_sqp.state import (
    HARDLY,
    KINKED_OBJECTIVE,
    KINKED_ROWS,
    MOST_CONFIRMS,
    SHORTEST_PROBE,
    SampledSQPState,
)

UNKNOWN, CONFIRMED, REFUTED, MEASURED = 0, 1, 2, 3  # what is known of a point
IN_A_ROW = 4  # after the four sides
ENOUGH = 5  # points in a row, for an estimate of noise
LENGTH = 1e-3  # of the size of a variable: steps to look around
SHORTER = 1.0 / 32.0  # steps for another look where the first showed no parabola
SHARE, CASE_SHARE = 0.2, 0.1  # of the queries so far that a look may cost
MOST_WHOLE = 200  # variables, of which all pairs are looked at where a run began
# Points of a look at cases that are asked for at any cost: along all variables, or few
MOST_LEAST, FEWEST = 96, 24
KINK = 0.1  # of the change of the slope over the longer steps, if over short ones too
MOST_KINKS = 4  # looks that have shown one, where it is not followed
BENT = 0.25  # of that change: slopes that are off by more belong to no parabola
SADDLE = 1e-3  # of the largest curvature: a negative one that counts
SOFT = 1e-2  # of the largest curvature, in sizes of variables: next to nothing
SLIGHT = 1e-3  # of the forces along a variable: a jump of the slope that does not count


def can_confirm(state: SampledSQPState) -> bool:
    """Whether there is patience for a look around."""
    return state.n_confirms < MOST_CONFIRMS


def looking_around(options: Options, state: SampledSQPState) -> SampledSQPState:
    """Ask for the Lagrangian at points around."""
    look = Look(
        at=state.x,
        losses=state.table.indices,
        constraints=state.members.indices[_curved(state)],
        reach=_sides(state)[0],
    )
    return replace(
        state,
        phase="confirm",
        looks=(look,),
        n_probes=_n_points(options, state),
        n_confirms=state.n_confirms + 1,
    )


def _curved(state: SampledSQPState) -> BoolArray:
    """Return the members that pull and are not linear.

    Where a run began nothing tells: values farther off do.
    """
    found: BoolArray = state.members.multipliers > 0
    if state.size.by_case or _has_moved(state):
        found &= state.members.is_bent
    return found


def _has_moved(state: SampledSQPState) -> bool:
    """Whether the point is apart from the start, in sizes of variables."""
    return bool((np.abs(state.x - state.start) > HARDLY * state.sizes).any())


def reserved(state: SampledSQPState) -> int:
    """Return the queries to be left for a look around that is still to come."""
    if state.confirmed or state.n_confirms >= MOST_CONFIRMS:
        return 0
    n_functions = state.n_functions(_curved(state))
    return min(2 * n_functions * _least_points(state), state.n_queries // 4)


def _least_points(state: SampledSQPState) -> int:
    most = 12 * (state.size.dim + 1)
    if not state.size.by_case:
        return most if state.size.n_losses == 1 else FEWEST
    whole = 4 * (state.size.dim + 2)
    least = whole if FEWEST <= whole <= MOST_LEAST else FEWEST
    by_budget = state.n_queries // (10 * state.n_functions(_curved(state)))
    return min(most, max(least, by_budget))


def _n_points(options: Options, state: SampledSQPState) -> int:
    n_functions, dim = state.n_functions(_curved(state)), state.size.dim
    least = _least_points(state)
    share = CASE_SHARE if state.size.by_case else SHARE
    most = max(int(share * state.n_queries) // n_functions, least)
    may_be_saddle = not (_has_moved(state) or state.size.by_case)
    if may_be_saddle and dim <= MOST_WHOLE:
        most = max(most, 4 * dim + dim * (dim - 1) // 2)
    n = min(most, int(queries_left(options, state)) // (2 * n_functions))
    return n if n >= 4 else least  # which ends a run that has no such budget


# --------------------------------------------------------------------------- the points


def _sides(state: SampledSQPState) -> FloatArray:
    """Return steps along each variable: two long ones and two short ones.

    To both sides; the long ones twice to the same where only there is room, and one of
    the short ones is 0. A long step does not change the sign of a variable: values may
    not be defined there.
    """
    x, size = state.x, state.size
    # The short ones are those of differences as they were, with their signs.
    reach = max(state.loss_reach, state.row_reach)
    forward = inward(x, np.maximum(reach * state.scale, state.finest), size)
    long = LENGTH * state.own_sizes
    long = np.where(x != 0, np.minimum(long, 0.1 * np.abs(x)), long)
    long = state.probe_size * np.maximum(long, 32.0 * np.abs(forward))
    long = np.maximum(long, 8.0 * np.abs(forward))
    long = np.minimum(long, (size.upper - size.lower) / 4)
    up, down = size.upper - x >= long, x - size.lower >= long
    first = np.where(up, long, -long / 2)
    second = np.where(up & down, -long, np.where(up, long / 2, -long))
    back = np.where(
        (x - forward >= size.lower) & (x - forward <= size.upper), -forward, 0
    )
    moved = x + np.array([first, second, forward, back])
    return state.size.clip(moved) - x


def _chosen(state: SampledSQPState) -> tuple[list[int], bool]:
    """Return the variables to look along, and whether along their pairs too."""
    movable = np.flatnonzero(state.size.upper > state.size.lower)
    order = stream(state.seed, state.iteration).permutation(movable)
    n = min(len(order), state.n_probes // 4)
    has_pairs = n == len(order) and 4 * n + n * (n - 1) // 2 <= state.n_probes
    return sorted(order[:n].tolist()), has_pairs


def _plan(state: SampledSQPState) -> tuple[list[tuple[int, ...]], FloatArray]:
    """Return the steps to the points that are asked for, each with a name.

    A name is a side and the variables along which the step goes, or `IN_A_ROW` and a
    number; that of the point itself is empty. It is not the first: where that one
    fails, another is asked for.
    """
    sides, (chosen, has_pairs) = _sides(state), _chosen(state)
    names: list[tuple[int, ...]] = []
    names += [(side, i) for i in chosen for side in range(4) if sides[side, i]]
    names[1:1] = [()]
    if has_pairs:
        names += [(0, i, j) for i, j in combinations(chosen, 2)]
    steps = np.zeros((len(names), state.size.dim))
    for step, name in zip(steps, names, strict=True):
        for i in name[1:]:
            step[i] = sides[name[0], i]
    in_a_row = steps_in_a_row(state)
    names += [(IN_A_ROW, k) for k in range(len(in_a_row))]
    return names, np.vstack([steps, in_a_row])


def steps(state: SampledSQPState) -> FloatArray:
    """Return the steps to the points around, and to the point itself."""
    return _plan(state)[1]


# --------------------------------------------------------------- what they have said


def after_looking(
    state: SampledSQPState, query: Query, reply: Reply
) -> SampledSQPState:
    """Return the state with slopes and curvatures as found, or with a kink noted."""
    refuted = replace(state, confirmed=REFUTED)
    places, (look,) = _places(state, query), state.looks
    n_asked = len(look.losses), len(look.constraints)
    has_lost = n_asked != (len(query.losses), len(query.constraints))
    if () not in places or has_lost:  # the point itself has failed
        return refuted
    rises = _rises(state, query, reply, places[()])
    if not np.isfinite(rises[places[()]]):
        return refuted
    losses = np.zeros(len(rises))
    if reply.losses.shape[1]:
        losses = reply.losses.mean(axis=1)
        losses = losses - losses[places[()]]
    chosen, has_pairs = _chosen(state)
    lengths = _sides(state) / state.scale

    def at(values: FloatArray, *name: int) -> float:
        return values[places[name]] if name in places else np.nan

    def along(values: FloatArray, who: list[int]) -> FloatArray:
        told = [[at(values, side, i) for i in who] for side in range(4)]
        return _along(lengths[:, who], np.array(told))

    found = along(rises, chosen)
    is_known = np.isfinite(found).all(axis=0)
    if 2 * is_known.sum() < len(chosen):  # too many have failed
        return refuted
    known = np.array(chosen)[is_known].tolist()
    pull = state.members.slopes.T @ state.members.multipliers

    def shows(values: FloatArray) -> tuple[BoolArray, BoolArray]:
        """Return along which slopes jump, and where they belong to no parabola."""
        slopes, bends, jumps, off = along(values, known)
        pulls, (_, back, fore, _) = pull[known], np.abs(lengths[:, known])
        changes = np.abs(bends) * back
        forces = np.maximum(np.abs(slopes - pulls), np.abs(pulls))
        slight = np.maximum(SLIGHT * forces, 8.0 * _noise(state) / fore)
        return (
            jumps > np.maximum(KINK * changes, slight),
            off > np.maximum(BENT * changes, slight),
        )

    # Where cases hold a point limits with kinks do as well as others.
    jumps, off = shows(losses if state.size.by_case else rises)
    is_kinked, is_rough = bool(jumps.any()), bool(off.any())
    owners = 0  # of kinks
    if state.size.by_case:
        is_rough = False  # another look would cost too much
    else:
        for owner, own in (KINKED_OBJECTIVE, losses), (KINKED_ROWS, rises - losses):
            is_odd = np.logical_or(*shows(own)) & (jumps | off)
            owners |= owner * int(is_odd.any())
    if is_rough and not is_kinked and state.probe_size > SHORTEST_PROBE:
        return replace(state, probe_size=SHORTER * state.probe_size)
    state = replace(state, probe_size=1.0, is_kinked=0)
    if is_kinked or is_rough:
        state = replace(state, is_kinked=owners or KINKED_OBJECTIVE)
        n = 1 if state.keeps_planes else state.n_confirms + MOST_CONFIRMS // MOST_KINKS
        return replace(state, confirmed=REFUTED, n_confirms=n)
    state = _with_noise(state, places, reply)
    slopes = state.table.gradient + pull
    slopes[known] = found[0, is_known]
    matrix = _stretched(state, np.array(known, dtype=int), found[1, is_known])
    if has_pairs and is_known.all():
        matrix[chosen, chosen] = found[1]
        for i, j in combinations(chosen, 2):
            both = at(rises, 0, i, j) - at(rises, 0, i) - at(rises, 0, j)
            matrix[i, j] = matrix[j, i] = both / (lengths[0, i] * lengths[0, j])
    return _with_matrix(state, matrix, slopes - pull, has_pairs)


def _along(lengths: FloatArray, rises: FloatArray) -> FloatArray:
    """Return slopes and curvatures along variables, and how far they are from sure.

    By how much slopes differ on the two sides, and over short and long steps.
    """
    a, b, fore, back = lengths
    one, two, ahead = rises[:3] / lengths[:3]
    bend = 2.0 * (one - two) / (a - b)
    behind = np.where(back != 0, rises[3] / back, ahead - bend * fore)
    slope = 0.5 * (ahead + behind)
    over = one - 0.5 * bend * a  # the slope over the longer steps
    return np.array([slope, bend, np.abs(ahead - behind), np.abs(over - slope)])


def _places(state: SampledSQPState, query: Query) -> dict[tuple[int, ...], int]:
    """Return where in a reply the points are, by name; some may have failed."""
    names, steps = _plan(state)
    asked = state.looks[0].around(steps, state.iteration).points(state.size)
    told = {point.tobytes(): i for i, point in enumerate(query.points(state.size))}
    numbers = [told.get(point.tobytes()) for point in asked]
    both = zip(names, numbers, strict=True)
    return {name: number for name, number in both if number is not None}


def _with_noise(
    state: SampledSQPState, places: dict[tuple[int, ...], int], reply: Reply
) -> SampledSQPState:
    """Return the state with the noise that losses have here, if that is rounding."""
    rows = [i for name, i in places.items() if not name or name[0] == IN_A_ROW]
    rows = [i for i in rows if not np.isnan(reply.losses[i]).any()]
    if state.size.has_gradient or not reply.losses.shape[1] or len(rows) < ENOUGH:
        return state
    if state.loss_noise > 64 * ROUNDING * abs(state.first_objective):
        return state
    noise = min(float(np.median(noise_level(reply.losses[rows]))), state.loss_noise)
    return replace(state, loss_noise=noise)


def _stretched(
    state: SampledSQPState, known: IntArray, bends: FloatArray
) -> FloatArray:
    """Return the curvature as it was known, with this one along some variables."""
    matrix, factors = np.array(state.curvature), np.ones(state.size.dim)
    before = np.diagonal(matrix)[known]
    ratios = np.abs(bends) / np.where(before > 0, before, 1.0)
    factors[known] = np.sqrt(np.where(before > 0, ratios, 1.0))
    matrix = matrix * factors * factors[:, np.newaxis]
    matrix[known, known] = np.abs(bends)
    return matrix


def _rises(state: SampledSQPState, query: Query, reply: Reply, here: int) -> FloatArray:
    """Return by how much the Lagrangian rose at each point."""
    members, curved = state.members, _curved(state)
    moves = (query.points(state.size) - state.x) / state.scale
    rises: FloatArray = moves @ (
        members.slopes[~curved].T @ members.multipliers[~curved]
    )
    if reply.losses.shape[1]:
        losses = reply.losses.mean(axis=1)
        rises = rises + (losses - losses[here])
    if reply.constraints.shape[1]:
        told, lines = reply.constraints, moves @ members.slopes[curved].T
        if np.isnan(told).any():  # what has failed is as its model says
            lines = (lines + members.at(state.z)[curved]) * members.sizes[curved]
            told = np.where(np.isnan(told), lines, told)
        pulls = told @ (members.multipliers / members.sizes)[curved]
        rises = rises + (pulls - pulls[here])
    return rises


def _noise(state: SampledSQPState) -> float:
    """Return the noise of the Lagrangian."""
    members = state.members
    rows = float(members.multipliers[_curved(state)].sum()) * state.unit_noise
    return state.loss_noise / math.sqrt(max(len(state.table), 1)) + rows


def _with_matrix(
    state: SampledSQPState, matrix: FloatArray, gradient: FloatArray, is_whole: bool
) -> SampledSQPState:
    """Return the state with what was measured, turned so that it curves upwards."""
    if not np.isfinite(matrix).all():  # values are missing
        return replace(state, confirmed=REFUTED)
    values, vectors = np.linalg.eigh(matrix)
    sigma = 1e-9 * state.first_sigma
    if state.size.by_case and not is_whole:
        sigma = state.sigma
    gradient = gradient - _push(state, matrix, gradient)
    return replace(
        state,
        measured=(vectors * np.abs(values)) @ vectors.T,
        pairs=Pairs.none(state.size.dim),
        table=replace(state.table, gradient=gradient),
        sigma=sigma,
        confirmed=MEASURED,
    )


def _free(
    state: SampledSQPState, gradient: FloatArray, units: FloatArray
) -> FloatArray:
    """Return a basis of the steps, in such units, that what holds leaves room for."""
    members, dim = state.members, state.size.dim
    left = gradient + members.slopes.T @ members.multipliers
    held = (state.x <= state.size.lower) & (left > 0)
    held |= (state.x >= state.size.upper) & (left < 0)
    walls = np.vstack([members.slopes[members.multipliers > 0], np.eye(dim)[held]])
    return null_space(walls * units) if len(walls) else np.eye(dim)


def soft_ways(state: SampledSQPState) -> FloatArray:
    """Return the ways along which curvature is next to nothing, the least first.

    One in a row, in sizes of variables, away from the start. What decides along them is
    not the curvature that was measured, but what it is farther out.
    """
    own = state.own_sizes
    units = own / state.scale
    free = _free(state, state.table.gradient, units)
    if not (len(state.measured) and free.shape[1]):
        return np.empty((0, state.size.dim))
    matrix = free.T @ (state.measured * units * units[:, np.newaxis]) @ free
    values, vectors = np.linalg.eigh(matrix)
    ways = (free @ vectors[:, values < SOFT * np.abs(values).max()]).T
    ways *= np.where(ways @ ((state.x - state.start) / own) < 0, -1.0, 1.0)[:, None]
    found: FloatArray = ways / np.abs(ways).max(axis=1, keepdims=True)
    return found


def _push(
    state: SampledSQPState, matrix: FloatArray, gradient: FloatArray
) -> FloatArray:
    """Return a slope that leads off a saddle, to where what holds leaves room.

    Downwards along all directions that curve so, a tenth of the variables' size.
    """
    dim = state.size.dim
    free = _free(state, gradient, np.ones(dim))
    values, vectors = np.linalg.eigh(free.T @ matrix @ free)
    falls = values < -SADDLE * max(np.abs(matrix).max(), 1e-300)
    ways = free @ vectors[:, falls]
    ways = np.where(gradient @ ways <= 0, ways, -ways)
    sizes = np.maximum(state.own_sizes, state.sizes) / state.scale
    parts = sizes[:, np.newaxis] / np.maximum(np.abs(ways), 1e-3)
    push: FloatArray = ways @ (-values[falls] * 0.1 * parts.min(axis=0))
    return push
