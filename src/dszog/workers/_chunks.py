"""The one rule that cuts queries into pieces of work.

It sees the queries and the problem, never who does the work or how many they are: one
worker and a thousand evaluate the same pieces, and the replies have the same bits.

* A function that is called for one point and index at a time may be cut anywhere. A
  query becomes some dozens of pieces at most, so that their number does not become
  the cost, unless ``in_pieces`` says otherwise.
* A function of many points and indices is called as it would be without workers: a
  matrix product of another shape rounds differently. It is cut only where a table is
  very large, or where ``in_pieces`` says so; then every evaluator cuts it so, the
  serial one too.
* Steps that are named are made one point at a time, and each point is asked about
  alone: many variables are held a few times, not once for each direction.
* A call that serves several values, of a loss and of limits perhaps, is never cut: all
  that is asked of it in an iteration is in one piece.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dszog.contract import NO_GRADIENTS, NO_INDICES, Calls, Failure, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray
from dszog.problem import Problem
from dszog.problem.family import Grain
from dszog.workers.base import spread

MANY = 64  # pieces of one query, about, if nobody says how large they shall be
LARGE = 2**18  # values that a vectorised function is asked for in one call

Columns: TypeAlias = "slice | IntArray"
Wanted: TypeAlias = dict[tuple[int, int], tuple[list[int], list[int]]]
"""Columns of losses and of constraints, by query and row."""


class Place(NamedTuple):
    """Where the values of a part belong: columns count distinct indices."""

    query: int
    rows: slice
    losses: Columns
    constraints: Columns


class Piece(NamedTuple):
    """What one worker does at a time."""

    parts: tuple[Query, ...]
    places: tuple[Place, ...]


NOTHING = slice(0, 0)


def whole_limits(problem: Problem) -> tuple[float, float]:
    """Return how many values of losses and of constraints may be asked for at once."""
    grains = () if problem.constraints is None else problem.constraints.grains
    limit = min((_whole(grain) for _, grain in grains), default=math.inf)
    return _whole(problem.losses.grain), limit


def needs_cut(limits: tuple[float, float], queries: Sequence[Query]) -> bool:
    """Whether a vectorised function may not be asked for all of this at once."""
    most_losses, most_constraints = limits
    for query in queries:
        n_points = len(query.steps) + 1
        if (
            n_points * len(query.losses) > most_losses
            or n_points * len(query.constraints) > most_constraints
            or query.names_steps
        ):
            return True
    return False


def _whole(grain: Grain) -> float:
    """Return how many values may be asked for at once without a change of bits."""
    if grain.each:
        return math.inf
    return LARGE if grain.size is None else grain.size


def cut(problem: Problem, queries: Sequence[Query]) -> list[Piece]:
    """Return the pieces of work that together answer these queries."""
    return list(each_piece(problem, queries))


def each_piece(problem: Problem, queries: Sequence[Query]) -> Iterator[Piece]:
    """Yield the pieces when it is their turn."""
    calls, size = problem.size.calls, problem.size
    points: list[FloatArray] = []
    for number, query in enumerate(queries):
        if calls is None and query.names_steps:
            for row in range(len(query.steps) + 1):
                table = query.point(row, size)
                yield from _plain_pieces(problem, number, query, table, row)
            continue
        points.append(query.points(size))
        yield from _plain_pieces(problem, number, query, points[-1])
    if calls is not None:
        yield from _shared_pieces(problem, calls, queries, points)


# ----------------------------------------------------------------- calls of one value


def _plain_pieces(
    problem: Problem, number: int, query: Query, points: FloatArray, row: int = 0
) -> Iterator[Piece]:
    """Yield the pieces of a query whose calls serve nothing else.

    `points` are those from a row on: all of them, or one whose steps are named.
    """
    losses, constraints = query.distinct_losses[0], query.distinct_constraints[0]
    for is_loss, first, last, grain in _families(problem, losses, constraints):
        for rows, columns in _rectangles(query, len(points), first, last, grain):
            held = points if query.names_steps else points[rows].copy()
            there = slice(row + rows.start, row + rows.stop)
            if is_loss:
                part = query.part(held, losses[columns], NO_INDICES)
                place = Place(number, there, columns, NOTHING)
            else:
                part = query.part(held, NO_INDICES, constraints[columns])
                place = Place(number, there, NOTHING, columns)
            yield Piece((part,), (place,))


def _families(
    problem: Problem, losses: IntArray, constraints: IntArray
) -> Iterator[tuple[bool, int, int, Grain]]:
    """Yield what is cut alike: if losses, first and last column, and how it may be."""
    calls = problem.size.calls
    start = 0 if calls is None else int(np.searchsorted(losses, calls.n_shared))
    yield True, start, len(losses), problem.losses.grain
    if problem.constraints is None:
        return
    grains = problem.constraints.grains
    starts = np.searchsorted(constraints, [one for one, _ in grains]).tolist()
    ends = [*starts[1:], len(constraints)]
    for first, last, (_, grain) in zip(starts, ends, grains, strict=True):
        if first == last:
            continue
        if calls is None or not calls.are_remembered(constraints[first:last])[0]:
            yield False, first, last, grain


def _rectangles(
    query: Query, n_rows: int, first: int, last: int, grain: Grain
) -> Iterator[tuple[slice, slice]]:
    """Yield rows and columns of each piece of a table."""
    n_columns = last - first
    if not n_columns:
        return
    if query.want == "gradients":  # one point, a white box: there is little to share
        yield slice(0, n_rows), slice(first, last)
        return
    size = _piece_size(grain, n_rows * n_columns)
    if size >= n_columns:
        step = size // n_columns
        for row in range(0, n_rows, step):
            yield slice(row, min(row + step, n_rows)), slice(first, last)
        return
    for row in range(n_rows):
        for column in range(first, last, size):
            yield slice(row, row + 1), slice(column, min(column + size, last))


def _piece_size(grain: Grain, n_calls: int) -> int:
    if grain.size is not None:
        return grain.size
    return -(-n_calls // MANY) if grain.each else LARGE


# ---------------------------------------------------------------- calls that are shared


def _shared_pieces(
    problem: Problem,
    calls: Calls,
    queries: Sequence[Query],
    points: Sequence[FloatArray],
) -> Iterator[Piece]:
    """Yield pieces of whole calls, each with all that the queries ask of it."""
    whole = {  # a gradient there may come of the call for the values
        table[0].tobytes()
        for query, table in zip(queries, points, strict=True)
        if query.want == "gradients"
    }
    asked: dict[Any, Wanted] = {}
    for number, (query, table) in enumerate(zip(queries, points, strict=True)):
        wanted = list(_shared_columns(calls, query))
        for row, point in enumerate(table):
            name = point.tobytes()
            for call, is_loss, columns in wanted:
                key = name if name in whole else (name, call)
                lists = asked.setdefault(key, {}).setdefault((number, row), ([], []))
                lists[0 if is_loss else 1].extend(columns)
    size = max(_piece_size(_shared_grain(problem), len(asked)), 1)
    keys = list(asked)
    for start in range(0, len(keys), size):
        together: Wanted = {}
        for key in keys[start : start + size]:
            for where, (losses, constraints) in asked[key].items():
                lists = together.setdefault(where, ([], []))
                lists[0].extend(losses)
                lists[1].extend(constraints)
        yield _joined(queries, points, together)


def _shared_grain(problem: Problem) -> Grain:
    sizes = [] if problem.constraints is None else problem.constraints.grains
    given = [grain.size for _, grain in sizes if grain.each and grain.size is not None]
    return Grain(each=True, size=min(given, default=None))


def _shared_columns(
    calls: Calls, query: Query
) -> Iterator[tuple[int, bool, list[int]]]:
    """Yield each call that a query needs, and the columns that it fills."""
    losses, constraints = query.distinct_losses[0], query.distinct_constraints[0]
    for column, loss in enumerate(losses[losses < calls.n_shared].tolist()):
        yield loss, True, [column]
    remembered = np.flatnonzero(calls.are_remembered(constraints))
    numbers = calls.of(constraints[remembered])
    for number in np.unique(numbers).tolist():
        yield number, False, remembered[numbers == number].tolist()


def _joined(
    queries: Sequence[Query], points: Sequence[FloatArray], together: Wanted
) -> Piece:
    parts, places = [], []
    for (number, row), lists in together.items():
        query, rows = queries[number], slice(row, row + 1)
        losses, constraints = (np.array(sorted(one), dtype=np.int64) for one in lists)
        part = query.part(
            points[number][rows].copy(),
            query.distinct_losses[0][losses],
            query.distinct_constraints[0][constraints],
        )
        parts.append(part)
        places.append(Place(number, rows, losses, constraints))
    return Piece(tuple(parts), tuple(places))


# ----------------------------------------------------------------------- and back again


class Assembly:
    """Puts the answers to pieces together to replies; what is missing is `nan`."""

    def __init__(self, queries: Sequence[Query]) -> None:
        self._queries = queries
        self._tables = [_unknown(query) for query in queries]
        self._failures: list[dict[str, tuple[tuple[int, int], Failure]]] = [
            {} for _ in queries
        ]

    def put(self, piece: Piece, replies: Sequence[Reply]) -> None:
        """Take in the answer to a piece."""
        for place, reply in zip(piece.places, replies, strict=True):
            losses, constraints = place.losses, place.constraints
            cells = (place.rows, losses), (place.rows, constraints)
            tables = self._tables[place.query]
            for table, where, values in zip(
                tables, (*cells, losses, constraints), reply[:4], strict=True
            ):
                if values.size:
                    table[where] = values
            for failure in reply.failures:
                self.note(place, failure)

    def note(self, place: Place, failure: Failure) -> None:
        """Keep the failure if it is the first of its kind of function in the query."""
        columns = place.constraints if "constraint" in failure.what else place.losses
        column = columns.start if isinstance(columns, slice) else int(columns[0])
        order = place.rows.start, column
        known = self._failures[place.query].get(failure.what)
        if known is None or order < known[0]:
            self._failures[place.query][failure.what] = order, failure

    def replies(self) -> tuple[Reply, ...]:
        """Return one reply per query, with a column at each place of each index."""
        replies = []
        for query, tables, failures in zip(
            self._queries, self._tables, self._failures, strict=True
        ):
            columns = query.distinct_losses[1], query.distinct_constraints[1]
            made = map(spread, tables, columns * 2, (1, 1, 0, 0))
            found = tuple(failures[what][1] for what in sorted(failures, key=_turn))
            replies.append(Reply._make((*made, found)))
        return tuple(replies)


def _turn(what: str) -> tuple[bool, bool]:
    """Return when a function is called: losses first, gradients after values."""
    return what.endswith("constraint"), what.startswith("gradient")


def _unknown(query: Query) -> list[FloatArray]:
    """Return the tables of a reply, in its order, in which nothing is known yet."""
    n_points, dim = len(query.steps) + 1, len(query.x)
    counts = len(query.distinct_losses[0]), len(query.distinct_constraints[0])
    values = [np.full((n_points, n), np.nan) for n in counts]
    gradients = [
        np.full((n, dim), np.nan) if query.want == "gradients" and n else NO_GRADIENTS
        for n in counts
    ]
    return values + gradients
