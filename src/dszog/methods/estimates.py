r"""The gradient estimates of the methods that stay in a feasible set.

Each is a function of the point, the losses and the steps around it alone, so that a
method with variance reduction can ask for the same estimate at two points: common
random numbers are what makes the difference of the two small.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np

from dszog.contract import ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.gradients import draw_directions, forward_difference

Estimator: TypeAlias = Literal["gaussian", "sphere", "coordinate"]
ESTIMATORS: tuple[str, ...] = get_args(Estimator)

LEAST_RADIUS = 1e-6  # differences over less are rounding, for losses of order one


def draw_steps(
    rng: np.random.Generator,
    estimator: Estimator,
    radius: float,
    n_directions: int,
    dim: int,
) -> FloatArray:
    r"""Draw the steps :math:`\mu u_k` from the point to those around it.

    ``"gaussian"``: :math:`u_k \sim \mathcal{N}(0, I)`; ``"sphere"``: uniform with
    :math:`\|u_k\| = 1`, as a normal vector divided by its length; ``"coordinate"``:
    :math:`\pm e_1, \dots, \pm e_d`, whatever the number of directions.
    """
    if estimator == "coordinate":
        steps = radius * np.eye(dim)
        return np.concatenate([steps, -steps])
    directions = draw_directions(rng, estimator, n_directions, dim)
    if estimator == "sphere":
        directions = directions / np.sqrt(dim)
    return radius * directions


def ask_around(
    x: FloatArray,
    steps: FloatArray,
    losses: IntArray,
    *,
    iteration: int,
    size: ProblemSize,
    estimator: Estimator,
    per_sample: bool = False,
) -> tuple[Query, ...]:
    """Ask for losses at a point and around it."""
    # All losses at all points in one query; or, with `per_sample`, loss ``i`` at the
    # point and at the end of its own step ``i``, in a query of its own.
    # Seen from a little inside the bounds, no step has to be cut short.
    x = size.inside(x, np.abs(steps).max(axis=0, initial=0.0))
    if not per_sample:
        query = Query(
            iteration=iteration,
            x=x,
            steps=steps,
            losses=losses,
            paired=estimator == "coordinate",
        )
        return (query,)
    return tuple(
        Query(
            iteration=iteration, x=x, steps=steps[i : i + 1], losses=losses[i : i + 1]
        )
        for i in range(len(losses))
    )


def estimate(
    queries: Sequence[Query],
    replies: Sequence[Reply],
    estimator: Estimator,
    radius: float,
) -> FloatArray:
    """Turn the answers to :func:`ask_around` into a gradient."""
    # The directions are read off the queries, from which a failed one may be missing.
    gradients = [
        _difference(query, reply, estimator, radius)
        for query, reply in zip(queries, replies, strict=True)
    ]
    mean: FloatArray = np.mean(gradients, axis=0)
    return mean


def _difference(
    query: Query, reply: Reply, estimator: Estimator, radius: float
) -> FloatArray:
    values = reply.losses.mean(axis=1)
    directions = query.steps / radius
    if estimator == "coordinate":
        n = len(directions) // 2
        slopes = (values[1 : 1 + n] - values[1 + n :]) / (2 * radius)
        gradient: FloatArray = np.einsum("k,kd->d", slopes, directions[:n])
        return gradient
    gradient = forward_difference(values, directions, radius)
    return gradient * len(query.x) if estimator == "sphere" else gradient


class TwoPoints(NamedTuple):
    """The same losses and steps at the iterate and at the one before it."""

    queries: list[Query]
    replies: list[Reply]
    queries_before: list[Query]
    replies_before: list[Reply]


def in_common(queries: Sequence[Query], replies: Sequence[Reply]) -> TwoPoints | None:
    """Return what is known at both of two points; None if nothing is."""
    # The first half of the queries is about the one point, the second about the other.
    # Where nothing failed that is all of it. A difference of estimates from different
    # directions would be dominated by their noise.
    half = len(queries) // 2
    both = TwoPoints([], [], [], [])
    for i in range(half):
        here, there = queries[i], queries[half + i]
        query, reply = _restricted(here, replies[i], there)
        before, reply_before = _restricted(there, replies[half + i], here)
        if not len(query.losses) or (len(here.steps) and not len(query.steps)):
            continue
        both.queries.append(query)
        both.replies.append(reply)
        both.queries_before.append(before)
        both.replies_before.append(reply_before)
    return both if both.queries else None


def _restricted(query: Query, reply: Reply, other: Query) -> tuple[Query, Reply]:
    """Leave out the losses and steps that the other query does not have."""
    same_losses = np.array_equal(query.losses, other.losses)
    if same_losses and np.array_equal(query.steps, other.steps):
        return query, reply
    known = {step.tobytes() for step in other.steps}
    rows = np.array([step.tobytes() in known for step in query.steps], dtype=bool)
    columns = np.isin(query.losses, other.losses)
    kept = reply.losses[np.concatenate([[True], rows])][:, columns]
    gradients = reply.loss_gradients
    if query.want == "gradients":
        gradients = gradients[columns]
    query = query._replace(steps=query.steps[rows], losses=query.losses[columns])
    return query, reply._replace(
        losses=kept,
        constraints=np.empty((len(kept), 0)),
        loss_gradients=gradients,
    )
