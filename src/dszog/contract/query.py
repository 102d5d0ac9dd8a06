"""What a method asks, what an evaluator answers, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, Self, TypeAlias

import numpy as np

from dszog.contract.arrays import (
    FloatArray,
    IntArray,
    all_finite,
    freeze,
    frozen_floats,
    frozen_ints,
)
from dszog.contract.signs import Signs
from dszog.contract.size import Calls, ProblemSize
from dszog.errors import DszogError

Want: TypeAlias = Literal["values", "gradients"]
Purpose: TypeAlias = Literal["step", "trial", "look around", "final check"]

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
    steps : ndarray of shape (k, dim), or Signs, optional
        The other points are ``x + steps``, moved into the bounds where they leave them.
        Of many variables the steps may be named instead of held.
    losses, constraints : ndarray of int64
        Indices wanted at each of the ``k + 1`` points. An index that is repeated is
        evaluated once and its value returned at each place.
    want : {"values", "gradients"}
        ``"gradients"`` asks for values and gradients at `x` alone.
    paired : bool
        Whether the second half of the steps are the first half's opposites.
    purpose : {"step", "trial", "look around", "final check"}
        Whether a method asks for its next step, or whether a step is any good, or
        whether there is a better point, or the check of the result. In a trial an
        infinite value is a step too far; failures in a look around are none of the run.
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
        steps: Any = None,
        losses: IntArray = NO_INDICES,
        constraints: IntArray = NO_INDICES,
        want: Want = "values",
        paired: bool = False,
        purpose: Purpose = "step",
    ) -> Self:
        """Make the arrays read-only, and find repeated indices."""
        steps = no_steps(len(x)) if steps is None else steps
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
    def at(cls, x: FloatArray, **asked: Any) -> Query:
        """Ask at `x` alone."""
        return cls(x=x, **asked)

    @classmethod
    def to_check(cls, x: FloatArray, steps: Any = None, **wanted: Any) -> Query:
        """Ask about a result, at `x` alone if no steps are given."""
        asked = {"iteration": NO_ITERATION, "purpose": "final check", **wanted}
        return cls(x=x, steps=steps, **asked)

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


_FLOAT = np.dtype(np.float64)
NO_GRADIENTS = frozen_floats(np.empty((0, 0)))


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A value that a user's function did not give."""

    # "exception", "not finite", "wrong shape", "wrong count", "worker lost", "timeout"
    kind: str
    what: str  # "loss", "constraint", or the gradient of one
    index: int  # of the first such loss or constraint
    iteration: int  # NO_ITERATION in the check of a result
    x: FloatArray  # the point
    message: str
    error: BaseException | None = None  # what the function raised

    @property
    def is_overflow(self) -> bool:
        """Whether the function returned a value too large for a number."""
        return self.kind == "not finite" and " returned inf " in self.message


class Reply(NamedTuple):
    """The answer to one query: a row per point, a column per index.

    Parameters
    ----------
    losses : ndarray of shape (k + 1, n_indices)
    constraints : ndarray of shape (k + 1, n_indices)
    loss_gradients, jacobian : ndarray of shape (n_indices, dim)
        Gradients at ``x`` for a query that wants them; empty otherwise.
    failures : tuple of Failure
        What went wrong. Values that are not known are `nan`, and only then.
    """

    losses: FloatArray
    constraints: FloatArray
    loss_gradients: FloatArray = NO_GRADIENTS
    jacobian: FloatArray = NO_GRADIENTS
    failures: tuple[Failure, ...] = ()


def check_replies(
    iteration: int,
    queries: Sequence[Query],
    replies: Sequence[Reply],
    n_expected: int,
    *,
    check_values: bool = True,
) -> None:
    """Refuse replies that do not fit the queries of this iteration.

    Methods call this first in ``tell``: a state must never take in an answer to another
    question, a wrong shape, or a value that is not a finite number. Without
    `check_values` the last is left to the caller.
    """
    if len(queries) != n_expected:
        raise DszogError(
            f"tell: this state asks {n_expected} queries, got {len(queries)}. Tell the "
            "answers to all of ask(state), in their order."
        )
    if len(queries) != len(replies):
        raise DszogError(
            f"tell: {len(queries)} queries need {len(queries)} replies, "
            f"got {len(replies)}. Pass the replies in the order of the queries."
        )
    for query, reply in zip(queries, replies, strict=True):
        n_points = len(query.steps) + 1
        n_losses, n_constraints = len(query.losses), len(query.constraints)
        if (
            not check_values
            and query.iteration == iteration
            and query.want == "values"
            and type(reply) is Reply
        ):
            losses, constraints = reply.losses, reply.constraints
            if (
                type(losses) is type(constraints) is np.ndarray
                and losses.dtype is constraints.dtype is _FLOAT
                and losses.shape == (n_points, n_losses)
                and constraints.shape == (n_points, n_constraints)
            ):
                continue
        if query.iteration != iteration:
            raise DszogError(
                f"tell: the state is at iteration {iteration}, the query was asked at "
                f"{query.iteration}. Tell the answers to ask(state) of this very state."
            )
        if not isinstance(reply, Reply):
            raise DszogError(
                f"tell: a reply must be a dszog.Reply, got {type(reply).__name__}. "
                "Make one for each query: Reply(losses=..., constraints=...)."
            )
        _check_array("losses", reply.losses, (n_points, n_losses))
        _check_array("constraints", reply.constraints, (n_points, n_constraints))
        if query.want == "gradients":
            dim = len(query.x)
            _check_array("loss_gradients", reply.loss_gradients, (n_losses, dim))
            _check_array("jacobian", reply.jacobian, (n_constraints, dim))


def _check_array(name: str, array: FloatArray, shape: tuple[int, ...]) -> None:
    if type(array) is not np.ndarray or array.dtype.kind not in "fiub":
        kind = f" of {array.dtype}" if isinstance(array, np.ndarray) else ""
        raise DszogError(
            f"tell: reply.{name} must be a NumPy array of real numbers, got "
            f"{type(array).__name__}{kind}. Convert it: np.asarray(values, "
            "dtype=float); of a masked array, fill in what is missing first."
        )
    if 0 in shape and not array.size:
        return
    if array.shape != shape:
        raise DszogError(
            f"tell: reply.{name} must have shape {shape}, got {array.shape}. "
            "One row per point, one column per index of the query."
        )
    if not all_finite(array):
        raise DszogError(
            f"tell: reply.{name} holds a value that is not finite. "
            "Tell finite values only; leave a failed query untold and ask again."
        )


Evaluate: TypeAlias = Callable[[Sequence[Query]], Sequence[Reply]]


class Cost(NamedTuple):
    """Queries: calls of the user's functions for one point and one index."""

    losses: int
    constraints: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.losses + self.constraints


def cost(queries: Sequence[Query], size: ProblemSize) -> Cost:
    """Return what it costs to answer these queries, before any is answered.

    An index that is repeated in a query is charged once. Where a call serves several
    constraints, or a loss as well, the call is charged once for each distinct point.
    """
    if size.calls is None:
        losses = constraints = 0
        for query in queries:
            n = len(query.steps) + 1 + (query.want == "gradients")
            losses += n * len(query.distinct_losses[0])
            constraints += n * len(query.distinct_constraints[0])
        return Cost(losses, constraints)
    parts = [_calls_needed(query, size, size.calls) for query in queries]
    for_losses = set().union(*(part.for_losses for part in parts))
    for_constraints = set().union(*(part.for_constraints for part in parts))
    return Cost(
        losses=sum(part.plain_losses for part in parts) + len(for_losses),
        constraints=sum(part.plain_constraints for part in parts)
        + len(for_constraints - for_losses),
    )


_Call: TypeAlias = tuple[bytes, bool, int]  # a point, whether a gradient, its number


class _CallsNeeded(NamedTuple):
    """The calls that a query needs: how many plain ones, and which remembered ones."""

    plain_losses: int
    plain_constraints: int
    for_losses: set[_Call]
    for_constraints: set[_Call]


@lru_cache(maxsize=8)  # what a query costs is asked before, at and after its answer
def _calls_needed(query: Query, size: ProblemSize, calls: Calls) -> _CallsNeeded:
    losses, constraints = query.distinct_losses[0], query.distinct_constraints[0]
    shared = losses[losses < calls.n_shared].tolist()
    remembered = constraints[calls.are_remembered(constraints)]
    numbers = np.unique(calls.of(remembered)).tolist()
    points = [(point.tobytes(), False) for point in query.points(size)]
    if query.want == "gradients":
        points.append((points[0][0], True))
    return _CallsNeeded(
        query.n_evaluations * (len(losses) - len(shared)),
        query.n_evaluations * (len(constraints) - len(remembered)),
        {(*point, i) for point in points for i in shared},
        {(*point, number) for point in points for number in numbers},
    )


class Part(NamedTuple):
    """What gave no value at one point, as a query, and where it belongs."""

    place: int  # of the reply
    row: int  # of the point in it
    query: Query


def unknown_parts(
    queries: Sequence[Query], replies: Sequence[Reply], size: ProblemSize
) -> list[Part]:
    """Return all values that are not known, point by point."""
    parts = []
    for place, (query, reply) in enumerate(zip(queries, replies, strict=True)):
        if not reply.failures or query.want != "values":
            continue
        points = query.points(size)
        losses, rows = np.isnan(reply.losses), np.isnan(reply.constraints)
        for row in np.flatnonzero(losses.any(axis=1) | rows.any(axis=1)).tolist():
            wanted = query._replace(
                x=points[row],
                steps=no_steps(size.dim),
                losses=query.losses[losses[row]],
                constraints=query.constraints[rows[row]],
                paired=False,
            )
            parts.append(Part(place, row, wanted))
    return parts


def filled(
    replies: Sequence[Reply], parts: Sequence[Part], answers: Sequence[Reply]
) -> list[Reply]:
    """Return the replies with what was found in the place of what was not known."""
    made = list(replies)
    for place in {part.place for part in parts}:
        losses, constraints = map(np.array, made[place][:2])
        made[place] = Reply(losses, constraints)
    for (place, row, _), answer in zip(parts, answers, strict=True):
        reply = made[place]
        for table, values in zip(reply[:2], answer[:2], strict=True):
            table[row, np.isnan(table[row])] = values[0]
        made[place] = reply._replace(failures=(*reply.failures, *answer.failures))
    return made
