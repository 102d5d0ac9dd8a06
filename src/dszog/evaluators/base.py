"""What every evaluator promises, and how one query is answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from dszog._arrays import FloatArray, IntArray, frozen_floats
from dszog._validation import shown
from dszog.errors import DszogError, EvaluationError
from dszog.problem import Problem
from dszog.query import NO_GRADIENTS, Query, Reply


class Evaluator(Protocol):
    """Answers queries about one problem, in their order."""

    def __init__(self, problem: Problem) -> None: ...

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        """Return one reply per query."""
        ...

    def close(self) -> None:
        """Let go of what the evaluator holds; it answers no more."""
        ...


def answer(problem: Problem, query: Query) -> Reply:
    """Evaluate one query: each distinct index once, all points in one call."""
    n_points = len(query.steps) + 1
    losses, loss_places = query.distinct_losses
    constraints, constraint_places = query.distinct_constraints
    if not len(losses) and not len(constraints):
        empty = np.empty((n_points, 0))
        return Reply(losses=empty, constraints=empty)
    points = query.points(problem.size)
    loss_values = constraint_values = np.empty((n_points, 0))
    loss_gradients = jacobian = NO_GRADIENTS
    if len(losses):
        loss_values = _call("Loss", problem.losses.values, points, losses, query)
        if query.want == "gradients":
            loss_gradients = _call(
                "The gradient of loss",
                problem.losses.gradient,
                points[0],
                losses,
                query,
            )
    if len(constraints) and problem.constraints is not None:
        constraint_values = _call(
            "Constraint", problem.constraints.values, points, constraints, query
        )
        if query.want == "gradients":
            jacobian = _call(
                "The gradient of constraint",
                problem.constraints.jacobian,
                points[0],
                constraints,
                query,
            )
    return Reply(
        losses=_spread(loss_values, loss_places, axis=1),
        constraints=_spread(constraint_values, constraint_places, axis=1),
        loss_gradients=_spread(loss_gradients, loss_places, axis=0),
        jacobian=_spread(jacobian, constraint_places, axis=0),
    )


def _call(
    what: str, function: Any, where: FloatArray, indices: IntArray, query: Query
) -> FloatArray:
    """Call a user's function and insist on finite numbers of the right shape."""
    indices.flags.writeable = False
    is_values = where.ndim == 2
    shape = (len(where), len(indices)) if is_values else (len(indices), len(where))
    try:
        returned = function(where, indices)
    except (DszogError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise EvaluationError(
            f"{what}s {_some(indices)} raised {type(error).__name__}: {error} at "
            f"iteration {query.iteration}, x = {shown(query.x)}. Call your function at "
            "this x to see why."
        ) from error
    try:
        array = np.asarray(returned)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "fiub":
        raise EvaluationError(
            f"{what}s {_some(indices)} returned {shown(returned)} at iteration "
            f"{query.iteration}. Return an array of real numbers of shape {shape}."
        )
    if array.shape != shape and array.size == 1 and shape == (1, 1):
        array = array.reshape(shape)
    if array.shape != shape:
        raise EvaluationError(
            f"{what}s {_some(indices)} returned shape {array.shape} at iteration "
            f"{query.iteration}, expected {shape}. "
            + (
                "Return one row per point and one column per index."
                if is_values
                else "Return one gradient per row."
            )
        )
    values = frozen_floats(array)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0]
        index = indices[column if is_values else row]
        raise EvaluationError(
            f"{what} {index} returned {values[row, column]} at iteration "
            f"{query.iteration}. Values must be finite: clip the function, or lower "
            "`step_size` if the iterates run away."
        )
    return values


def _spread(values: FloatArray, places: IntArray, axis: int) -> FloatArray:
    """Give each repeated index the value of its one evaluation."""
    if not values.size:
        return values
    return frozen_floats(np.take(values, places, axis=axis))


def _some(indices: IntArray) -> str:
    listed = ", ".join(map(str, indices[:3].tolist()))
    return f"[{listed}]" if len(indices) <= 3 else f"[{listed}, ...]"
