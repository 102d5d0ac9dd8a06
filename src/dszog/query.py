"""The contract between methods, which ask, and evaluators, which answer.

A method describes what it wants to know as a :class:`Query` of plain arrays; an
evaluator, which alone holds the user's functions, returns a :class:`Reply`. Neither
half of the library knows anything else about the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

import numpy as np

from dszog._arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.errors import DszogError

Want: TypeAlias = Literal["values", "gradients"]

NO_INDICES = frozen_ints([])
NO_GRADIENTS = frozen_floats(np.empty((0, 0)))


@dataclass(frozen=True, eq=False, kw_only=True)
class ProblemSize:
    """What a method may know about a problem: its sizes, never its functions.

    Parameters
    ----------
    dim : int
        Number of variables, the paper's :math:`d`.
    n_losses : int
        Number of terms of the objective, :math:`n`.
    n_constraints : int
        Number of constraints, :math:`m`; may be :math:`10^{12}`.
    lower, upper : ndarray of shape (dim,)
        Bounds on the variables, infinite where there is none.
    has_gradient, has_jacobian : bool
        Whether gradients of the losses and of the constraints may be asked for.
    """

    dim: int
    n_losses: int
    n_constraints: int
    lower: FloatArray
    upper: FloatArray
    has_gradient: bool = False
    has_jacobian: bool = False

    def clip(self, points: FloatArray) -> FloatArray:
        """Return the points, each moved to the nearest point within the bounds."""
        if not self.has_bounds:
            return points
        clipped: FloatArray = np.clip(points, self.lower, self.upper)
        return clipped

    @cached_property
    def has_bounds(self) -> bool:
        """Whether any variable is bounded."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())


@dataclass(frozen=True, eq=False, kw_only=True)
class Query:
    """A request for values at a point and around it.

    Parameters
    ----------
    iteration : int
        The iteration that asks; with the position in its tuple it names the query.
    x : ndarray of shape (dim,)
        The base point.
    steps : ndarray of shape (k, dim)
        The other points are ``x + steps``, moved into the bounds where they leave them.
    losses, constraints : ndarray of int64
        Indices wanted at each of the ``k + 1`` points. An index that is repeated is
        evaluated once and its value returned at each place.
    want : {"values", "gradients"}
        ``"gradients"`` asks for values and gradients at `x` alone.
    """

    iteration: int
    x: FloatArray
    steps: FloatArray
    losses: IntArray = field(default_factory=lambda: NO_INDICES)
    constraints: IntArray = field(default_factory=lambda: NO_INDICES)
    want: Want = "values"

    def __post_init__(self) -> None:
        object.__setattr__(self, "x", frozen_floats(self.x))
        object.__setattr__(self, "steps", frozen_floats(self.steps))
        object.__setattr__(self, "losses", frozen_ints(self.losses))
        object.__setattr__(self, "constraints", frozen_ints(self.constraints))
        if self.want == "gradients" and len(self.steps):
            raise DszogError("A query for gradients looks at one point: give no steps.")

    @classmethod
    def at(
        cls,
        x: FloatArray,
        *,
        iteration: int,
        losses: IntArray = NO_INDICES,
        constraints: IntArray = NO_INDICES,
        want: Want = "values",
    ) -> Query:
        """Ask at `x` alone."""
        return cls(
            iteration=iteration,
            x=x,
            steps=np.empty((0, len(x))),
            losses=losses,
            constraints=constraints,
            want=want,
        )

    def points(self, size: ProblemSize) -> FloatArray:
        """Return the ``(k + 1, dim)`` points to evaluate, all within the bounds."""
        points = np.concatenate([self.x[np.newaxis], self.x + self.steps])
        return frozen_floats(size.clip(points))

    @cached_property
    def distinct_losses(self) -> tuple[IntArray, IntArray]:
        """The loss indices without repeats, and the place of each in that list."""
        return _distinct(self.losses)

    @cached_property
    def distinct_constraints(self) -> tuple[IntArray, IntArray]:
        """The constraint indices without repeats, and each one's place in that list."""
        return _distinct(self.constraints)

    @property
    def n_loss_queries(self) -> int:
        """How many loss values (and gradients) an answer costs."""
        return self._evaluations * len(self.distinct_losses[0])

    @property
    def n_constraint_queries(self) -> int:
        """How many constraint values (and gradients) an answer costs."""
        return self._evaluations * len(self.distinct_constraints[0])

    @property
    def n_queries(self) -> int:
        """What an answer costs in all."""
        return self.n_loss_queries + self.n_constraint_queries

    @property
    def _evaluations(self) -> int:
        # A gradient comes with its value, and is charged as one query more.
        return len(self.steps) + 1 + (self.want == "gradients")


@dataclass(frozen=True, eq=False, kw_only=True)
class Reply:
    """The answer to one query: a row per point, a column per index.

    Parameters
    ----------
    losses : ndarray of shape (k + 1, n_indices)
    constraints : ndarray of shape (k + 1, n_indices)
    loss_gradients, jacobian : ndarray of shape (n_indices, dim)
        Gradients at ``x`` for a query that wants them; empty otherwise.
    """

    losses: FloatArray
    constraints: FloatArray
    loss_gradients: FloatArray = field(default_factory=lambda: NO_GRADIENTS)
    jacobian: FloatArray = field(default_factory=lambda: NO_GRADIENTS)


def check_replies(
    iteration: int, queries: Sequence[Query], replies: Sequence[Reply]
) -> None:
    """Refuse replies that do not fit the queries of this iteration.

    Methods call this first in ``tell``: a state must never take in an answer to another
    question, a wrong shape, or a value that is not a finite number.
    """
    if len(queries) != len(replies):
        raise DszogError(
            f"tell: {len(queries)} queries need {len(queries)} replies, "
            f"got {len(replies)}. Pass the replies in the order of the queries."
        )
    for query, reply in zip(queries, replies, strict=True):
        if query.iteration != iteration:
            raise DszogError(
                f"tell: the state is at iteration {iteration}, the query was asked at "
                f"{query.iteration}. Tell the answers to ask(state) of this very state."
            )
        n_points = len(query.steps) + 1
        wanted = {
            "losses": (n_points, len(query.losses)),
            "constraints": (n_points, len(query.constraints)),
        }
        if query.want == "gradients":
            wanted["loss_gradients"] = (len(query.losses), len(query.x))
            wanted["jacobian"] = (len(query.constraints), len(query.x))
        for name, shape in wanted.items():
            _check_array(name, getattr(reply, name), shape)


def _check_array(name: str, array: FloatArray, shape: tuple[int, ...]) -> None:
    if 0 in shape and not array.size:
        return
    if array.shape != shape:
        raise DszogError(
            f"tell: reply.{name} must have shape {shape}, got {array.shape}. "
            "One row per point, one column per index of the query."
        )
    if not np.isfinite(array).all():
        raise DszogError(
            f"tell: reply.{name} holds a value that is not finite. "
            "Tell finite values only; leave a failed query untold and ask again."
        )


def _distinct(indices: IntArray) -> tuple[IntArray, IntArray]:
    distinct, place = np.unique(indices, return_inverse=True)
    return distinct, place
