"""The two halves of an iteration of DSZOG, each in one compiled call.

The plain forms, which say what is done and do it wherever this cannot, are
``DSZOG._ask_plainly`` and ``DSZOG._step_plainly``. Where functions are cheap, an
iteration notices every call of Python or NumPy: those have too many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dszog import kernels
from dszog._arrays import FloatArray, freeze, frozen_floats
from dszog._random import EXACT, SPARE, lent_stream
from dszog.distribution import Distribution, SparseDistribution
from dszog.distribution.sparse import MERGE_GRADIENT, MERGE_WEIGHT
from dszog.gradients import draw_directions
from dszog.query import NO_INDICES, Query, Reply, no_steps

if TYPE_CHECKING:
    from dszog.methods.dszog import DSZOG, DSZOGState


class Step(NamedTuple):
    """Both steps of an iteration, and what the values they rest on say."""

    x: FloatArray  # (dim,)
    velocity: FloatArray  # (dim,)
    distribution: Distribution | None
    n_touched: int  # constraints that stand out in it
    objective: float  # the mean of the losses drawn
    worst: float  # violation of all constraints drawn; nan if none
    weighted_share: float  # of those drawn from the weights that are violated; nan
    uniform_share: float  # of those drawn uniformly, likewise
    mean_violation: float  # of those drawn from the weights; 0 if none


def ask(method: DSZOG, state: DSZOGState) -> tuple[Query, ...] | None:
    """Return the queries of an iteration; None where the plain form has to do it."""
    size, distribution = state.size, state.distribution
    compiled = kernels.draws()
    if (
        compiled is None
        or not size.is_plain
        or method.antithetic
        or type(distribution) is not SparseDistribution
    ):
        return None
    n_losses, n_drawn, n_duals = method.batches(size)
    if not (
        n_losses**2 <= size.n_losses <= EXACT
        and n_duals**2 <= size.n_constraints <= EXACT
    ):  # repeats would be many
        return None
    rng = lent_stream(state.seed, state.iteration)
    steps = draw_directions(
        rng, method.directions, method.directions_of(size), size.dim
    )
    uniforms = rng.random(n_losses + n_duals + n_drawn + 2 * SPARE)
    points = np.empty((len(steps) + 1, size.dim))
    losses = np.empty(n_losses, np.int64)
    duals = np.empty(n_duals, np.int64)
    constraints = np.empty((3, n_drawn), np.int64)  # with what is known of repeats
    rest = distribution.n_background * distribution.background_weight
    n_touched, n_kept = compiled.draws(
        uniforms,
        size.n_losses,
        size.n_constraints,
        SPARE,
        distribution.indices,
        distribution.weights,
        rest,
        state.x,
        method.radius,
        steps,
        points,
        losses,
        duals,
        constraints[0],
        constraints[1],
        constraints[2],
    )
    if n_touched < 0:
        return None
    if n_touched < n_drawn:
        drawn = distribution.with_background(rng, constraints[0], n_touched)
        distinct = None
    else:
        freeze(constraints)
        drawn = constraints[0]
        distinct = drawn, None
        if n_kept < n_drawn:
            distinct = constraints[1, :n_kept], constraints[2]
    around = Query.drawn(
        iteration=state.iteration,
        x=state.x,
        steps=freeze(steps),
        losses=freeze(losses),
        constraints=drawn,
        distinct_constraints=distinct,
        points=freeze(points),
    )
    freeze(duals)
    dual = Query.drawn(
        iteration=state.iteration,
        x=state.x,
        steps=no_steps(size.dim),
        losses=NO_INDICES,
        constraints=duals,
        distinct_constraints=(duals, None),
    )
    return around, dual


def step(
    method: DSZOG,
    state: DSZOGState,
    queries: Sequence[Query],
    replies: Sequence[Reply],
    per_draw: float,
) -> Step | None:
    """Return both steps of an iteration; None where the plain form has to do it.

    Also where a value is not finite: the plain form says which.
    """
    distribution, compiled = state.distribution, kernels.steps()
    if (
        compiled is None
        or not state.size.is_black_box
        or method.antithetic
        or type(distribution) is not SparseDistribution
    ):
        return None
    around, duals = queries[0], queries[1].constraints
    moved = np.empty((2, state.size.dim))
    room = len(distribution.indices) + len(duals)
    touched, table = np.empty(room, np.int64), np.empty((3, room))
    (
        is_good,
        objective,
        worst,
        n_violated,
        mean,
        worst_seen,
        n_seen,
        n_touched,
        background_weight,
        background_gradient,
    ) = compiled.step(
        frozen_floats(replies[0].losses),
        frozen_floats(replies[0].constraints),
        around.steps,
        state.x,
        state.velocity,
        method.penalty,
        method.radius,
        method.averaging_at(state),
        method.step_size_at(state),
        method.step_eps,
        method.adaptive,
        moved,
        duals,
        frozen_floats(replies[1].constraints)[0],
        distribution.indices,
        distribution.weights,
        distribution.gradient,
        distribution.memory,
        distribution.background_weight,
        distribution.background_gradient,
        distribution.n_constraints,
        method.dual_averaging,
        method.dual_step_size,
        method.dual_ridge,
        method.penalty * per_draw,
        MERGE_WEIGHT,
        MERGE_GRADIENT,
        method.dual_estimate == "centred",
        touched,
        table,
    )
    if not is_good:
        return None
    freeze(moved)
    n_drawn = len(around.constraints)
    return Step(
        x=state.size.clip(moved[0]) if state.size.has_bounds else moved[0],
        velocity=moved[1],
        distribution=distribution.with_touched(
            touched, table, n_touched, background_weight, background_gradient
        ),
        n_touched=n_touched,
        objective=objective,
        worst=max(worst, worst_seen),
        weighted_share=n_violated / n_drawn if n_drawn else math.nan,
        uniform_share=n_seen / len(duals),
        mean_violation=mean,
    )
