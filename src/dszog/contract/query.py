"""What a method asks: values at a point and around it."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from dszog.contract.arrays import (
    FloatArray,
    IntArray,
    freeze,
    frozen_floats,
    frozen_ints,
)
from dszog.contract.signs import Signs
from dszog.contract.size import ProblemSize
from dszog.errors import DszogError

Want: TypeAlias = Literal["values", "gradients"]
Purpose: TypeAlias = Literal["step", "look around", "final check"]

# Indices without repeats, ascending, and the place of each in that list; None for the
# places if the indices are such already.
Distinct: TypeAlias = tuple[IntArray, IntArray | None]

NO_INDICES = frozen_ints([])
NO_ITERATION = -1  # of queries that no iteration asks


class _Fields(NamedTuple):
    iteration: int
    x: FloatArray
    steps: Any  # FloatArray, or Signs
    losses: IntArray
    constraints: IntArray
    want: Want
    paired: bool
    purpose: Purpose
    # What follows from them, or is known beside them:
    distinct_losses: Distinct
    distinct_constraints: Distinct
    known_points: FloatArray | None


ASKED = _Fields._fields[:8]


class Query(_Fields):
    """A request for values at a point and around it.

    Parameters
    ----------
    iteration : int
        The iteration that asks; with the position in its tuple it names the query.
    x : ndarray of shape (dim,)
        The base point.
    steps : ndarray of shape (k, dim), or Signs
        The other points are ``x + steps``, moved into the bounds where they leave them.
        Of many variables the steps may be named instead of held.
    losses, constraints : ndarray of int64
        Indices wanted at each of the ``k + 1`` points. An index that is repeated is
        evaluated once and its value returned at each place.
    want : {"values", "gradients"}
        ``"gradients"`` asks for values and gradients at `x` alone.
    paired : bool
        Whether the second half of the steps are the first half's opposites.
    purpose : {"step", "look around", "final check"}
        Whether a method asks for its next step, or whether there is a better point, or
        the check of the result. Failures in a look around are none of the run.
    """

    __slots__ = ()
    __eq__ = object.__eq__  # two queries are the same if they are one object
    __ne__ = object.__ne__
    __hash__ = object.__hash__

    def __new__(
        cls,
        *,
        iteration: int,
        x: FloatArray,
        steps: Any,
        losses: IntArray = NO_INDICES,
        constraints: IntArray = NO_INDICES,
        want: Want = "values",
        paired: bool = False,
        purpose: Purpose = "step",
    ) -> Self:
        """Make the arrays read-only, and find repeated indices."""
        steps = steps if isinstance(steps, Signs) else frozen_floats(steps)
        losses, constraints = frozen_ints(losses), frozen_ints(constraints)
        if want == "gradients" and len(steps):
            raise DszogError("A query for gradients looks at one point: give no steps.")
        x, known = frozen_floats(x), (_distinct(losses), _distinct(constraints), None)
        asked = iteration, x, steps, losses, constraints, want, paired, purpose
        return cls._make((*asked, *known))

    @classmethod
    def drawn(
        cls,
        *,
        iteration: int,
        x: FloatArray,
        steps: Any,
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
        asked = iteration, x, steps, losses, constraints, "values", paired, "step"
        distinct = distinct_constraints or _distinct(constraints)
        return tuple.__new__(cls, (*asked, (losses, None), distinct, points))

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

    @classmethod
    def to_check(
        cls, x: FloatArray, steps: FloatArray | None = None, **wanted: Any
    ) -> Query:
        """Ask about a result, at `x` alone if no steps are given."""
        return cls(
            iteration=NO_ITERATION,
            x=x,
            steps=no_steps(len(x)) if steps is None else steps,
            purpose="final check",
            **wanted,
        )

    @classmethod
    def at_points(cls, points: FloatArray, **asked: Any) -> Query:
        """Ask at points that are given, and lie within the bounds.

        A point and a step would not give the other point back to the bit.
        """
        steps = points[1:]  # as many as there are; `known_points` says where
        return _knowing(points, {"x": points[0], "steps": steps} | asked)

    def part(
        self, points: FloatArray, losses: IntArray, constraints: IntArray
    ) -> Query:
        """Ask for some of the indices at some of the points."""
        return Query.at_points(
            points,
            iteration=self.iteration,
            losses=losses,
            constraints=constraints,
            want=self.want,
            purpose=self.purpose,
        )

    def _replace(self, **changes: Any) -> Self:
        """Return the query with some fields changed, and what follows from them."""
        return type(self)(**(self._asked() | changes))

    __replace__ = _replace  # copy.replace

    def _asked(self) -> dict[str, Any]:
        return dict(zip(ASKED, self, strict=False))

    def __reduce__(self) -> tuple[Any, ...]:  # what is pickled comes back writable
        return _knowing, (self.known_points, self._asked())

    def points(self, size: ProblemSize) -> FloatArray:
        """Return the ``(k + 1, dim)`` points to evaluate, all within the bounds."""
        if self.known_points is not None:
            return self.known_points
        if not len(self.steps):
            return frozen_floats(size.clip(self.x[np.newaxis]))
        points = np.empty((len(self.steps) + 1, len(self.x)))
        points[0] = self.x
        if isinstance(self.steps, Signs):
            for row, point in enumerate(self.steps.points(self.x), 1):
                points[row] = point
        else:
            np.add(self.x, self.steps, out=points[1:])
        return freeze(size.clip(points))

    def point(self, row: int, size: ProblemSize) -> FloatArray:
        """Return one of the points, alone, of a query whose steps are named."""
        x = self.x
        if row and isinstance(self.steps, Signs):
            x = self.steps[row - 1].along(x, (self.steps.radius,))
        return frozen_floats(size.clip(x)[np.newaxis])

    @property
    def names_steps(self) -> bool:
        """Whether the steps are named: then a point at a time is made."""
        return isinstance(self.steps, Signs)

    @property
    def when(self) -> str:
        """When it is asked, for messages."""
        if self.purpose == "final check":
            return "in the check of the result"
        return f"at iteration {self.iteration}"

    @property
    def n_evaluations(self) -> int:
        """How often each index is evaluated; a gradient counts beside its value."""
        return len(self.steps) + 1 + (self.want == "gradients")


def _knowing(points: FloatArray | None, asked: dict[str, Any]) -> Query:
    query = Query(**asked)
    known = None if points is None else frozen_floats(points)
    return Query._make((*query[:-1], known))


@cache
def no_steps(dim: int) -> FloatArray:
    """Return the steps of a query that looks at one point."""
    return frozen_floats(np.empty((0, dim)))


def _distinct(indices: IntArray) -> Distinct:
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
