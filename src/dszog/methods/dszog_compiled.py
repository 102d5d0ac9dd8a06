"""The two halves of an iteration of DSZOG, each in one compiled call.

The plain forms, which say what is done and do it wherever this cannot, are
``DSZOG._ask_plainly`` and ``DSZOG._step_plainly``. Where functions are cheap, an
iteration notices every call of Python or NumPy: those have too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dszog import kernels
from dszog.contract import NO_INDICES, Distinct, Query, Reply
from dszog.contract.arrays import FloatArray, freeze, frozen_floats
from dszog.maths.distribution import Distribution, SparseDistribution
from dszog.maths.distribution.sparse import MERGE_GRADIENT, MERGE_WEIGHT
from dszog.maths.gradients import draw_directions, from_normals
from dszog.maths.random_stream import (
    EXACT,
    lent_stream,
    normals_and_uniforms,
    numbers_needed,
)
from dszog.maths.sampling import constraints_per_draw
from dszog.methods.base import Info

if TYPE_CHECKING:
    from dszog.methods.dszog import DSZOG, DSZOGState


class Step(NamedTuple):
    """Both steps of an iteration, and what the values they rest on say."""

    x: FloatArray  # (dim,)
    velocity: FloatArray  # (dim,)
    distribution: Distribution | None
    info: Info


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
    for_losses = numbers_needed(size.n_losses, n_losses)
    for_duals = numbers_needed(size.n_constraints, n_duals)
    if for_losses < 0 or for_duals < 0 or size.n_constraints > EXACT:
        return None
    rest = distribution.n_background * distribution.background_weight
    for_ranks = n_drawn if rest else 0  # of those drawn from the background
    n_uniforms = for_losses + for_duals + n_drawn + for_ranks
    shape = method.directions_of(size), size.dim
    if method.directions == "coordinate":
        rng = lent_stream(state.seed, state.iteration)
        steps = draw_directions(rng, method.directions, *shape)
        uniforms = rng.random(n_uniforms)
    else:
        normals, uniforms = normals_and_uniforms(
            state.seed, state.iteration, shape, n_uniforms
        )
        steps = from_normals(normals, method.directions)
    points = np.empty((len(steps) + 1, size.dim))
    # Losses, duals, and constraints with what is known of repeats among them.
    drawn = np.empty(n_losses + n_duals + 3 * n_drawn, np.int64)
    n_kept = compiled.draws(
        uniforms,
        for_losses,
        for_duals,
        n_losses,
        n_duals,
        size.n_losses,
        size.n_constraints,
        distribution.indices,
        distribution.weights,
        rest,
        state.x,
        method.radius,
        steps,
        points,
        drawn,
    )
    if n_kept < 0:
        return None
    freeze(drawn)
    first = n_losses + n_duals
    duals, constraints = drawn[n_losses:first], drawn[first : first + n_drawn]
    distinct: Distinct = constraints, None
    if n_kept < n_drawn:
        kept, repeats = first + n_drawn, first + 2 * n_drawn
        distinct = drawn[kept : kept + n_kept], drawn[repeats:]
    around = Query.drawn(
        iteration=state.iteration,
        x=state.x,
        steps=freeze(steps),
        losses=drawn[:n_losses],
        constraints=constraints,
        distinct_constraints=distinct,
        points=freeze(points),
    )
    return around, state.query_of_duals(duals)


def step(
    method: DSZOG,
    state: DSZOGState,
    queries: Sequence[Query],
    replies: Sequence[Reply],
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
    if not len(duals):
        return None
    moved = np.empty((2, state.size.dim))
    is_combined = method.dual_estimate == "combined"
    others = around.constraints if is_combined else NO_INDICES
    room = len(distribution.indices) + len(duals) + len(others)
    spread = constraints_per_draw(duals, state.size)
    touched, table = np.empty(room, np.int64), np.empty((3, room))
    (
        is_good,
        objective,
        worst,
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
        others,
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
        spread,
        MERGE_WEIGHT,
        MERGE_GRADIENT,
        method.dual_estimate == "centred",
        touched,
        table,
    )
    if not is_good:
        return None
    freeze(moved)
    x = moved[0]
    if state.size.has_bounds:
        x = frozen_floats(state.size.clip(x))
    info = Info(
        sampled_objective=objective,
        sampled_violation=max(worst, worst_seen),
        sampled_share=n_seen / len(duals),
        weighted_violation=mean,
        n_touched=n_touched,
    )
    learned = distribution.with_touched(
        touched, table, n_touched, background_weight, background_gradient
    )
    return Step(x, moved[1], learned, info)
