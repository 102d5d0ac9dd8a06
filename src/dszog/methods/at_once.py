"""An iteration of DSZOG in two calls of compiled kernels, where it is a common one.

What is drawn and done is what ``methods/dszog.py`` says line by line; these return None
where they cannot do it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dszog import kernels
from dszog.contract import NO_INDICES, Query, Reply
from dszog.contract.arrays import FloatArray, frozen_floats
from dszog.kernels.tables import EXACT, Draw, Drawn, Stepped
from dszog.maths.distribution import Distribution, SparseDistribution
from dszog.maths.gradients import draw_directions, from_normals
from dszog.maths.random_stream import (
    constraints_per_draw,
    lent_stream,
    normals_and_uniforms,
)
from dszog.methods.base import Info

if TYPE_CHECKING:
    from dszog.methods.dszog import DSZOG, DSZOGState

Step: TypeAlias = tuple[FloatArray, FloatArray, Distribution | None, Info]
"""The next iterate, averaged gradient and weights, and what was seen."""


def draw_at_once(method: DSZOG, state: DSZOGState) -> tuple[FloatArray, Drawn] | None:
    """Draw the same by one kernel, of sparse weights; None where it cannot."""
    size, weights, kernel = state.size, state.distribution, kernels.chosen()
    if (
        not kernel.AT_ONCE
        or type(weights) is not SparseDistribution
        or size.calls is not None
        or size.n_constraints > EXACT
    ):
        return None
    n_losses, n_drawn, n_duals = method.batches(size)
    losses = Draw.of(size.n_losses, n_losses)
    duals = Draw.of(size.n_constraints, n_duals)
    if losses.n_numbers < 0 or duals.n_numbers < 0:
        return None
    n_ranks = n_drawn if weights.n_background * weights.background_weight else 0
    n_uniforms = losses.n_numbers + duals.n_numbers + n_drawn + n_ranks
    shape = method.directions_of(size), size.dim
    if method.directions in ("coordinate", "rademacher"):
        rng = lent_stream(state.seed, state.iteration)
        directions = np.empty((0, size.dim))
        if not method.names_directions(size):
            directions = draw_directions(rng, method.directions, *shape)
        uniforms = rng.random(n_uniforms)
    else:
        normals, uniforms = normals_and_uniforms(
            state.seed, state.iteration, shape, n_uniforms
        )
        directions = from_normals(normals, method.directions)
    drawn = kernel.draw(uniforms, losses, duals, n_drawn, weights)
    return None if drawn is None else (directions, drawn)


def step_at_once(
    method: DSZOG,
    state: DSZOGState,
    queries: Sequence[Query],
    replies: Sequence[Reply],
) -> Step | None:
    """Take both steps of values alone, with sparse weights, by one kernel."""
    # None where it cannot, also where a value is not finite or a number overflows.
    size, distribution, kernel = state.size, state.distribution, kernels.chosen()
    duals = queries[-1].constraints
    if (
        not kernel.AT_ONCE
        or not size.is_black_box
        or method.antithetic
        or not len(duals)
        or type(distribution) is not SparseDistribution
    ):
        return None
    around, is_combined = queries[0], method.dual_estimate == "combined"
    found: Stepped | None = kernel.step(
        frozen_floats(replies[0].losses),
        frozen_floats(replies[0].constraints),
        frozen_floats(replies[1].constraints)[0],
        around.steps,
        state.x,
        state.velocity,
        (duals, around.constraints if is_combined else NO_INDICES),
        distribution,
        method.dual_step_at(state),
        constraints_per_draw(duals, size),
        method.radius,
        method.step_size_at(state),
    )
    if found is None:
        return None
    info = Info(
        sampled_objective=found.objective,
        sampled_violation=found.worst,
        sampled_share=found.n_violated / len(duals),
        weighted_violation=found.mean_violation,
        n_touched=len(found.weights.indices),
    )
    x = frozen_floats(size.clip(found.x)) if size.has_bounds else found.x
    return x, found.velocity, found.weights, info
