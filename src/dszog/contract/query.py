"""What a method asks: values at a point and around it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np

from dszog.contract.arrays import (
    FloatArray,
    IntArray,
    freeze,
    frozen_floats,
    frozen_ints,
)
from dszog.contract.size import ProblemSize
from dszog.errors import DszogError

Want: TypeAlias = Literal["values", "gradients"]

Distinct: TypeAlias = tuple[IntArray, IntArray | None]

NO_INDICES = frozen_ints([])


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
    paired : bool
        Whether the second half of the steps are the first half's opposites.
    """

    iteration: int
    x: FloatArray
    steps: FloatArray
    losses: IntArray = field(default_factory=lambda: NO_INDICES)
    constraints: IntArray = field(default_factory=lambda: NO_INDICES)
    want: Want = "values"
    paired: bool = False

    def __post_init__(self) -> None:
        own = self.__dict__  # frozen means frozen for others
        own["x"] = frozen_floats(self.x)
        own["steps"] = frozen_floats(self.steps)
        own["losses"] = frozen_ints(self.losses)
        own["constraints"] = frozen_ints(self.constraints)
        if self.want == "gradients" and len(self.steps):
            raise DszogError("A query for gradients looks at one point: give no steps.")

    @classmethod
    def drawn(
        cls,
        *,
        iteration: int,
        x: FloatArray,
        steps: FloatArray,
        losses: IntArray,
        constraints: IntArray,
        paired: bool = False,
        distinct_constraints: Distinct | None = None,
        points: FloatArray | None = None,
    ) -> Query:
        """Ask for values with read-only arrays, which are taken as they are.

        `losses` are known to ascend without repeats; of the constraints it may be known
        which are distinct, and of the points where they lie, if nothing is bounded. A
        query an iteration is worth leaving out what is known.
        """
        query: Query = object.__new__(cls)
        own = query.__dict__
        own["iteration"] = iteration
        own["x"] = x
        own["steps"] = steps
        own["losses"] = losses
        own["constraints"] = constraints
        own["want"] = "values"
        own["paired"] = paired
        own["_losses"] = losses, None
        if distinct_constraints is not None:
            own["_constraints"] = distinct_constraints
            n_points, n_distinct = len(steps) + 1, len(distinct_constraints[0])
            own["_cost"] = n_points * len(losses), n_points * n_distinct
        if points is not None:
            own["_points"] = points
        return query

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
            steps=no_steps(len(x)),
            losses=losses,
            constraints=constraints,
            want=want,
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what was asked; what is known beside it would come back writable."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def points(self, size: ProblemSize) -> FloatArray:
        """Return the ``(k + 1, dim)`` points to evaluate, all within the bounds."""
        known: FloatArray | None = self.__dict__.get("_points")
        if known is not None:
            return known
        if not len(self.steps):
            return frozen_floats(size.clip(self.x[np.newaxis]))
        points = np.empty((len(self.steps) + 1, len(self.x)))
        points[0] = self.x
        np.add(self.x, self.steps, out=points[1:])
        return freeze(size.clip(points))

    @property
    def distinct_losses(self) -> Distinct:
        """The loss indices without repeats, and the place of each in that list.

        Ascending; None for the places if the indices are such already.
        """
        known: Distinct | None = self.__dict__.get("_losses")
        if known is None:  # a cached_property takes a lock for this
            known = self.__dict__["_losses"] = _distinct(self.losses)
        return known

    @property
    def distinct_constraints(self) -> Distinct:
        """The constraint indices without repeats, and each one's place, likewise."""
        known: Distinct | None = self.__dict__.get("_constraints")
        if known is None:
            known = self.__dict__["_constraints"] = _distinct(self.constraints)
        return known

    @property
    def n_evaluations(self) -> int:
        """How often each index is evaluated; a gradient counts beside its value."""
        return len(self.steps) + 1 + (self.want == "gradients")

    def count(self) -> tuple[int, int]:
        """Return how many losses and constraints are evaluated, each point counted.

        Kept with the query: it is asked before and after its answer.
        """
        found = (
            self.n_evaluations * len(self.distinct_losses[0]),
            self.n_evaluations * len(self.distinct_constraints[0]),
        )
        self.__dict__["_cost"] = found
        return found


@cache
def no_steps(dim: int) -> FloatArray:
    """Return the steps of a query that looks at one point."""
    return frozen_floats(np.empty((0, dim)))


def _distinct(indices: IntArray) -> tuple[IntArray, IntArray | None]:
    """Return the distinct indices, ascending, and the place of each; None if as is."""
    if len(indices) < 2:
        return indices, None
    rises = indices[1:] > indices[:-1]
    if np.logical_and.reduce(rises):
        return indices, None
    if np.logical_or.reduce(indices[1:] < indices[:-1]):
        distinct, place = np.unique(indices, return_inverse=True)
        return frozen_ints(distinct), place
    place = np.zeros(len(indices), dtype=np.int64)
    np.cumsum(rises, out=place[1:])
    return frozen_ints(np.concatenate([indices[:1], indices[1:][rises]])), place
