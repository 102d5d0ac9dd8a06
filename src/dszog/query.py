"""The contract between methods, which ask, and evaluators, which answer.

A method describes what it wants to know as a :class:`Query` of plain arrays; an
evaluator, which alone holds the user's functions, returns a :class:`Reply`. Neither
half of the library knows anything else about the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cache, cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dszog._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    all_finite,
    freeze,
    frozen_floats,
    frozen_ints,
)
from dszog.errors import DszogError
from dszog.kernels import batches, loaded_batches

Want: TypeAlias = Literal["values", "gradients"]

Distinct: TypeAlias = tuple[IntArray, IntArray | None]

_FLOAT = np.dtype(np.float64)
NO_INDICES = frozen_ints([])
NO_GRADIENTS = frozen_floats(np.empty((0, 0)))


@dataclass(frozen=True, eq=False, kw_only=True)
class Calls:
    """Which constraints one call of the user's function serves.

    The constraints are cut into segments; within a segment each call serves `width`
    consecutive ones. Calls are numbered through.

    Parameters
    ----------
    starts : ndarray of int64
        The first constraint of each segment.
    widths : ndarray of int64
        How many constraints a call serves there.
    first_calls : ndarray of int64
        The number of the first call of each segment.
    remembered : ndarray of bool
        Whether a call is made only once at a point, whatever asks for it.
    n_calls : int
        How many calls serve all constraints.
    n_shared : int
        Call ``i < n_shared`` serves loss ``i`` as well.
    """

    starts: IntArray
    widths: IntArray
    first_calls: IntArray
    remembered: BoolArray
    n_calls: int
    n_shared: int = 0

    @classmethod
    def of_width(cls, width: int, n_constraints: int) -> Calls:
        """Return remembered calls that serve `width` consecutive constraints each."""
        return cls(
            starts=np.zeros(1, np.int64),
            widths=np.array([width]),
            first_calls=np.zeros(1, np.int64),
            remembered=np.array([True]),
            n_calls=n_constraints // width,
        )

    @classmethod
    def of_each(cls, n_constraints: int) -> Calls:
        """Return a call for each constraint, made whenever it is asked for."""
        return cls(
            starts=np.zeros(1, np.int64),
            widths=np.ones(1, np.int64),
            first_calls=np.zeros(1, np.int64),
            remembered=np.array([False]),
            n_calls=n_constraints,
        )

    @classmethod
    def concat(cls, parts: Sequence[tuple[Calls | None, int]]) -> Calls:
        """Return the calls of several families of constraints, one after the other.

        Parameters
        ----------
        parts : sequence of (calls, number of constraints)
            `None` where each constraint has a call of its own.
        """
        all_calls = [cls.of_each(n) if calls is None else calls for calls, n in parts]
        sizes = [n for _, n in parts]
        n_before = np.cumsum([0, *sizes])[:-1]
        calls_before = np.cumsum([0, *(calls.n_calls for calls in all_calls)])
        return cls(
            starts=np.concatenate(
                [n + c.starts for n, c in zip(n_before, all_calls, strict=True)]
            ),
            widths=np.concatenate([calls.widths for calls in all_calls]),
            first_calls=np.concatenate(
                [
                    n + calls.first_calls
                    for n, calls in zip(calls_before[:-1], all_calls, strict=True)
                ]
            ),
            remembered=np.concatenate([calls.remembered for calls in all_calls]),
            n_calls=int(calls_before[-1]),
        )

    def are_remembered(self, constraints: IntArray) -> BoolArray:
        """Return which constraints are served by a call that is not made twice."""
        segment = np.searchsorted(self.starts, constraints, side="right") - 1
        found: BoolArray = self.remembered[segment]
        return found

    def of(self, constraints: IntArray) -> IntArray:
        """Return the number of the call that serves each constraint."""
        segment = np.searchsorted(self.starts, constraints, side="right") - 1
        within = (constraints - self.starts[segment]) // self.widths[segment]
        numbers: IntArray = self.first_calls[segment] + within
        return numbers

    def served_by(self, calls: IntArray) -> IntArray:
        """Return all constraints that these calls serve, in ascending order."""
        segment = np.searchsorted(self.first_calls, calls, side="right") - 1
        widths = self.widths[segment]
        firsts = self.starts[segment] + (calls - self.first_calls[segment]) * widths
        served = np.repeat(firsts - np.cumsum(widths) + widths, widths)
        served += np.arange(len(served))
        return np.sort(served)


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A value that a user's function did not give."""

    kind: str  # "exception", "not finite", "wrong shape", "worker lost", "timeout"
    what: str  # "loss", "constraint", or the gradient of one
    index: int  # of the first such loss or constraint
    iteration: int
    x: FloatArray  # the point
    message: str
    error: BaseException | None = None  # what the function raised


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
    calls : Calls, optional
        Which constraints share a call of the user's function; None if each has its own.
    """

    dim: int
    n_losses: int
    n_constraints: int
    lower: FloatArray
    upper: FloatArray
    has_gradient: bool = False
    has_jacobian: bool = False
    calls: Calls | None = None

    @property
    def n_constraint_calls(self) -> int:
        """How many calls of user functions a look at all constraints takes."""
        return self.n_constraints if self.calls is None else self.calls.n_calls

    def clip(self, points: FloatArray) -> FloatArray:
        """Return the points, each moved to the nearest point within the bounds."""
        if not self.has_bounds:
            return points
        clipped: FloatArray = np.clip(points, self.lower, self.upper)
        return clipped

    def inside(self, x: FloatArray, reach: FloatArray) -> FloatArray:
        """Return the point moved so that `reach` on either side is within the bounds.

        To the middle, where the bounds leave less room than that.
        """
        if not self.has_bounds:
            return x
        lower, upper = self.lower + reach, self.upper - reach
        with np.errstate(invalid="ignore"):
            middle = (self.lower + self.upper) / 2
        moved: FloatArray = np.clip(x, lower, np.maximum(lower, upper))
        return np.where(lower <= upper, moved, middle)

    @cached_property
    def is_black_box(self) -> bool:
        """Whether there are values only, and no gradients."""
        return not (self.has_gradient or self.has_jacobian)

    @cached_property
    def is_plain(self) -> bool:
        """Whether there are values only, a call for each, and no bounds."""
        return self.is_black_box and self.calls is None and not self.has_bounds

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
        kernels = loaded_batches()
        if kernels is not None:
            kernels.place(self.x, self.steps, points)
        else:
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
            n_losses, n_constraints = query.__dict__.get("_cost") or query.count()
            losses += n_losses
            constraints += n_constraints
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


def _calls_needed(query: Query, size: ProblemSize, calls: Calls) -> _CallsNeeded:
    """Return the calls that a query needs.

    Kept with the query: what it costs is asked before, at and after its answer.
    """
    known: _CallsNeeded | None = query.__dict__.get("_calls")
    if known is not None:
        return known
    losses, constraints = query.distinct_losses[0], query.distinct_constraints[0]
    shared = losses[losses < calls.n_shared].tolist()
    remembered = constraints[calls.are_remembered(constraints)]
    numbers = np.unique(calls.of(remembered)).tolist()
    points = [(point.tobytes(), False) for point in query.points(size)]
    if query.want == "gradients":
        points.append((points[0][0], True))
    needed = _CallsNeeded(
        query.n_evaluations * (len(losses) - len(shared)),
        query.n_evaluations * (len(constraints) - len(remembered)),
        {(*point, i) for point in points for i in shared},
        {(*point, number) for point in points for number in numbers},
    )
    query.__dict__["_calls"] = needed
    return needed


@dataclass(frozen=True, eq=False, kw_only=True)
class Reply:
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
    loss_gradients: FloatArray = field(default_factory=lambda: NO_GRADIENTS)
    jacobian: FloatArray = field(default_factory=lambda: NO_GRADIENTS)
    failures: tuple[Failure, ...] = ()

    @classmethod
    def of_values(cls, losses: FloatArray, constraints: FloatArray) -> Reply:
        """Return the answer to a query for values, all of which are known."""
        reply: Reply = object.__new__(cls)
        own = reply.__dict__
        own["losses"] = losses
        own["constraints"] = constraints
        own["loss_gradients"] = own["jacobian"] = NO_GRADIENTS
        own["failures"] = ()
        return reply


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
            and type(reply.losses) is type(reply.constraints) is np.ndarray
            and reply.losses.dtype is reply.constraints.dtype is _FLOAT
            and reply.losses.shape == (n_points, n_losses)
            and reply.constraints.shape == (n_points, n_constraints)
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
        raise DszogError(
            f"tell: reply.{name} must be a NumPy array of real numbers, got "
            f"{type(array).__name__}{_kind_of(array)}. Convert it: np.asarray(values, "
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


def _kind_of(array: object) -> str:
    return f" of {array.dtype}" if isinstance(array, np.ndarray) else ""


def _distinct(indices: IntArray) -> tuple[IntArray, IntArray | None]:
    """Return the distinct indices, ascending, and the place of each; None if as is."""
    if len(indices) < 2:
        return indices, None
    kernels = batches()
    if kernels is not None:
        kept = np.empty(len(indices), dtype=np.int64)
        places = np.empty(len(indices), dtype=np.int64)
        n_distinct = kernels.distinct(indices, kept, places)
        if n_distinct == len(indices):
            return indices, None
        if n_distinct > 0:
            return freeze(kept[:n_distinct]), freeze(places)
    return _distinct_plainly(indices)


def _distinct_plainly(indices: IntArray) -> tuple[IntArray, IntArray | None]:
    """Do the same in plain NumPy; also where indices do not ascend."""
    rises = indices[1:] > indices[:-1]
    if np.logical_and.reduce(rises):
        return indices, None
    if np.logical_or.reduce(indices[1:] < indices[:-1]):
        distinct, place = np.unique(indices, return_inverse=True)
        return frozen_ints(distinct), place
    place = np.zeros(len(indices), dtype=np.int64)
    np.cumsum(rises, out=place[1:])
    return frozen_ints(np.concatenate([indices[:1], indices[1:][rises]])), place
