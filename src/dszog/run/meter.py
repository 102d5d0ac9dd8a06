"""What a run may use, and the count of what it has used.

Functions that answer the same question differently are noticed here, at no cost.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from dszog.contract import Cost, Evaluate, ProblemSize, Query, Reply, cost, no_steps
from dszog.contract.arrays import BoolArray, FloatArray, IntArray
from dszog.contract.query import filled, unknown_parts
from dszog.errors import DszogError, PurityWarning
from dszog.methods import Info
from dszog.problem import Problem
from dszog.run.failures import FailureHandler
from dszog.run.history import Counts, count_on, counts_of

MOST_RETRIES = 3  # of a call of a simulator, while they help
MOST_IN_VAIN = 100  # retries, none of which has helped
KEPT = 2**14  # values of each kind that are remembered of a point
ENOUGH_TIMED = 3  # batches of a kind, to know how long another one takes
FIRST_STEPS = 2  # in which a method may ask again at the start
N_POINTS = 8  # that are remembered: the start, and what the check of the result is of

_Values = tuple[IntArray, FloatArray]


class Repeats:
    """Compares values that a run asks for more than once.

    No question is added for it. The first look at the constraints and the first steps
    are at the start, the check of the result looks there again, and its gradients
    begin with values that it has just asked for. Only functions that are called for one
    point and index at a time are compared: others round differently in another shape.
    """

    def __init__(self, problem: Problem) -> None:
        self._size, self._name = problem.size, problem.name
        grains = () if problem.constraints is None else problem.constraints.grains
        self._first = np.array([first for first, _ in grains], dtype=np.int64)
        self._each = np.array([grain.each for _, grain in grains], dtype=bool)
        self._each_loss = problem.losses.grain.each
        self._known: dict[tuple[bytes, str], _Values] = {}
        self._has_warned = False

    def compare(self, queries: Sequence[Query], replies: Sequence[Reply]) -> int:
        """Return how many values differ from an earlier answer to the same question."""
        n_different = 0
        for query, reply in zip(queries, replies, strict=True):
            if query.want != "values" or reply.failures:
                continue
            point = query.points(self._size)[0].tobytes()
            for kind, indices, table in (
                ("Loss", query.losses, reply.losses),
                ("Constraint", query.constraints, reply.constraints),
            ):
                single = self._are_single(kind, indices)
                if single.any():
                    values = indices[single], table[0][single]
                    n_different += self._differences(kind, point, values)
        return n_different

    def _are_single(self, kind: str, indices: IntArray) -> BoolArray:
        """Return which of these are evaluated by a call of their own."""
        if kind == "Loss":
            return np.full(len(indices), self._each_loss)
        part = np.searchsorted(self._first, indices, "right") - 1
        single: BoolArray = self._each[part]
        return single

    def _differences(self, kind: str, point: bytes, new: _Values) -> int:
        """Compare values with those known at a point, and remember them."""
        known = self._known.get((point, kind))
        if known is None:
            if len(self._known) < 2 * N_POINTS:
                self._known[point, kind] = new[0][:KEPT], new[1][:KEPT]
            return 0
        common, before, now = np.intersect1d(known[0], new[0], return_indices=True)
        apart = np.abs(known[1][before] - new[1][now])
        if apart.any():
            worst = int(apart.argmax())
            which = f"{kind} {common[worst]}"
            if name := self._name(kind.lower(), int(common[worst])):
                which = f"{which} ({name})"
            if kind == "Loss" and self._size.n_losses == 1:
                which = "The objective"
            self._warn(which, float(apart[worst]))
        if len(known[0]) < KEPT:
            indices = np.concatenate([known[0], new[0]])[:KEPT]
            values = np.concatenate([known[1], new[1]])[:KEPT]
            self._known[point, kind] = indices, values
        return int(np.count_nonzero(apart))

    def _warn(self, which: str, apart: float) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        warnings.warn(
            f"{which} gave values {apart:.2g} apart for the same point. The run goes "
            "on, but a repeated or resumed run will not have the same bits. See "
            "whether the function keeps something from one call to the next (a warm "
            "start, a cache, random numbers). Noise that you know of may stay: the "
            "sampled SQP measures it; for DSZOG take a `radius` well above it.",
            PurityWarning,
            stacklevel=2,
        )


OTHER_VALUE = "a function gave another value when it was asked the same again"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a run may go; None is no limit. Also: how far it has gone."""

    iterations: int | None = None
    queries: int | None = None
    time: float | None = None  # seconds

    def part_way(self, start: Limits, share: float) -> Limits:
        """Return the limits that lie this share of the way from `start` to here."""
        if share == 1.0:
            return self
        ends: dict[str, Any] = {}
        for name, last in asdict(self).items():
            if last is not None:
                first = getattr(start, name) or 0.0
                end = first + share * (last - first)
                ends[name] = end if name == "time" else round(end)
        return Limits(**ends)


class Replayed(NamedTuple):
    """Replies that were given in an earlier process, with the time of the run then."""

    replies: Sequence[Reply]
    n_retried: int  # queries that were made again before they came
    spent: float
    elapsed: float


class ReplayOverError(Exception):
    """All kept replies were replayed, and no more was asked for."""


class ReplyLog(Protocol):
    """Keeps replies, so that a run that died can hear them again."""

    n_lost: int
    stops_after_replay: bool  # whether to raise ReplayOverError then
    has_asked: bool  # whether any question was not in the log

    @property
    def is_replaying(self) -> bool: ...
    def replayed(self, queries: Sequence[Query], charged: Cost) -> Replayed | None:
        """Return the kept replies to these queries, if there are any left."""
        ...

    def drop(self) -> None:
        """Count all replies that were not replayed as lost."""
        ...

    # Called before queries are answered, or made again, and before replies are used:
    def asked(
        self, queries: Sequence[Query], charged: Cost, elapsed: float
    ) -> None: ...
    def retried(self, n_queries: int) -> None: ...
    def answered(
        self, replies: Sequence[Reply], spent: float, elapsed: float
    ) -> None: ...


class Meter(Counts):
    """Counts what is handed to the user's functions, and never exceeds the budget.

    `compare` returns how many replies differ from earlier ones to the same questions.
    """

    def __init__(
        self,
        answer: Evaluate,
        size: ProblemSize,
        max_queries: int | None = None,
        failures: FailureHandler | None = None,
        compare: Callable[[Sequence[Query], Sequence[Reply]], int] | None = None,
        retries: int | None = 0,
        clock: Callable[[], float] = lambda: time.perf_counter(),
    ) -> None:
        super().__init__()
        self._clock = clock
        self._answer = answer
        self.size = size
        self._max_queries = max_queries
        self.failures = FailureHandler("raise") if failures is None else failures
        self._compare = compare
        self._retries = retries  # of what gave no value; None: while that helps
        self._started = clock()
        self.kept = 0  # for the check of the result: must not go into that
        self.asks_twice_at = -1  # queries made before one that is asked twice
        self.on_first: Callable[[Query, Reply], str] | None = None  # what to say of it
        self._log: ReplyLog | None = None
        self._stopped_at: float | None = None  # the clock stands while a log replays
        if hasattr(answer, "charge"):  # an evaluator that may have to do things twice
            answer.charge = self.charge_retry

    def __call__(
        self, queries: Sequence[Query], charged: Cost | None = None
    ) -> Sequence[Reply]:
        """Charge for the queries, then have them answered."""
        is_first = self.n_queries == self.asks_twice_at
        if self.size.has_gradient:
            self.n_gradients += sum(
                len(query.losses) for query in queries if query.want == "gradients"
            )
        replies = self._answered(queries, charged)
        if is_first:
            k = next((k for k, q in enumerate(queries) if len(q.constraints)), 0)
            if self.on_first and (said := self.on_first(queries[k], replies[k])):
                self.events[said] += 1
            self._ask_twice(queries[k])
        return replies

    def _answered(
        self, queries: Sequence[Query], charged: Cost | None
    ) -> Sequence[Reply]:
        charged = cost(queries, self.size) if charged is None else charged
        purpose = queries[0].purpose if queries else "step"
        is_check = purpose == "final check"
        counts = purpose != "look around"
        if is_check:
            self.kept = max(self.kept - charged.total, 0)
        if self._log is not None:
            found = self._log.replayed(queries, charged)
            if found is not None:
                if is_check or self.n_iterations < FIRST_STEPS:
                    self._look_for_repeats(queries, found.replies)
                if counts:
                    self.failures.count(found.replies, queries)
                return self._replay(charged, found)
            self._start_clock()
        if not self.affords(charged.total):
            raise DszogError(
                f"{charged.total} queries more would exceed the {self._max_queries} "
                f"allowed, {self.n_queries} are used. This is a bug in dszog: please "
                "report it."
            )
        self.n_loss_queries += charged.losses
        self.n_constraint_queries += charged.constraints
        if self._log is not None:
            self._log.asked(queries, charged, self.elapsed)
        before = self._clock()
        try:
            replies = self._answer(queries)
            has_failed = [reply for reply in replies if reply.failures]
            if has_failed and counts:
                replies = self._again(queries, replies)
                has_failed = [reply for reply in replies if reply.failures]
        finally:
            spent = self._clock() - before
            self._note_pace(charged, spent)
        # A failure that ends the run is not kept: it may be fixed before it goes on.
        raises = counts and self.failures.policy == "raise"
        if self._log is not None and not (raises and has_failed):
            self._log.answered(replies, spent, self.elapsed)
        if counts:
            self.failures.count(replies, queries)
        if is_check or self.n_iterations < FIRST_STEPS:
            self._look_for_repeats(queries, replies)
        return replies

    def _again(
        self, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> Sequence[Reply]:
        """Ask again for what failed, as often as is allowed and affordable."""
        n_times = self._retries
        if n_times is None:
            n_times = MOST_RETRIES if self._retries_help else 0
        for _ in range(n_times):
            parts = unknown_parts(queries, replies, self.size)
            wanted = [part.query for part in parts]
            if not wanted or not self.charge_retry(cost(wanted, self.size)):
                break
            replies = filled(replies, parts, self._answer(wanted))
        return replies

    @property
    def _retries_help(self) -> bool:
        """Whether it makes sense to ask again: not if so far all that was in vain."""
        in_vain = MOST_RETRIES * self.failures.lost_calls.total()
        if in_vain >= self.n_retried >= MOST_IN_VAIN:
            return False
        return self.failures.retries_help

    def _ask_twice(self, query: Query) -> None:
        """Ask a simulator again for one case: one that answers otherwise is noticed.

        In between it is asked near by: it may keep its last solution for each case.
        """
        calls = self.size.calls
        if calls is None or not len(query.constraints):
            return
        call = calls.of(query.constraints[:1])
        again = query._replace(
            steps=no_steps(self.size.dim),
            losses=query.losses[np.isin(query.losses, call[call < calls.n_shared])],
            constraints=query.constraints[calls.of(query.constraints) == call],
            paired=False,
        )
        near = self.size.clip(query.x + 1e-4 * np.maximum(np.abs(query.x), 1.0))
        between = again._replace(x=near, purpose="look around")
        if self.affords(2 * cost([again], self.size).total + self.kept):
            self([between])
            self([again])

    def _look_for_repeats(
        self, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> None:
        """Compare replies at the start and the end; in between no points are alike."""
        n_different = 0 if self._compare is None else self._compare(queries, replies)
        if n_different:
            self.events[OTHER_VALUE] += n_different

    def _note_pace(self, charged: Cost, spent: float) -> None:
        self.evaluation_time += spent
        kind, n_now = _kind(charged), max(charged.total, 1)
        _, n, before = self.paces.get(kind, (0.0, 0, 0.0))
        self.last_pace = spent / n_now
        self.paces[kind] = (before, n + 1, self.last_pace)

    def _replay(self, charged: Cost, found: Replayed) -> Sequence[Reply]:
        """Count replies of an earlier process as if they were given now."""
        self.n_loss_queries += charged.losses
        self.n_constraint_queries += charged.constraints
        self.n_retried += found.n_retried
        self._note_pace(charged, found.spent)
        self._stopped_at = max(self._stopped_at or 0.0, found.elapsed)
        return found.replies

    def _start_clock(self) -> None:
        if self._stopped_at is not None:
            self._started = self._clock() - self._stopped_at
            self._stopped_at = None

    def keep_on(self, log: ReplyLog) -> None:
        """Keep replies in a log, after those that it holds were heard."""
        self._log = log
        self._stopped_at = self.elapsed
        if not log.is_replaying:
            self._start_clock()

    @property
    def n_lost(self) -> int:
        """Queries that were used up by earlier processes and are not counted else."""
        return self.lost_before + (0 if self._log is None else self._log.n_lost)

    def counts(self) -> Counts:
        return counts_of(Counts, self, lost_before=self.n_lost, seconds=self.elapsed)

    def go_on_from(self, counts: Counts) -> None:
        """Count on from those of an earlier process."""
        count_on(self, counts)
        self._started = self._clock() - counts.seconds

    def charge_retry(self, again: Cost) -> bool:
        """Charge for queries made again; False, and no charge, if that is too much."""
        if not self.affords(again.total + self.kept):
            return False
        if self._log is not None:
            self._log.retried(again.total)
        self.n_retried += again.total
        return True

    def note(self, info: Info) -> None:
        self.n_iterations += info.is_step
        self.n_inner += info.n_inner
        if info.events:
            self.events.update(info.events)

    @property
    def n_queries(self) -> int:
        """What was asked so far."""
        return self.n_loss_queries + self.n_constraint_queries

    @property
    def n_charged(self) -> int:
        """What was asked so far, and what was made again."""
        return self.n_queries + self.n_retried

    @property
    def elapsed(self) -> float:
        """Seconds since the run began, in all processes that worked on it."""
        if self._stopped_at is not None:
            return self._stopped_at
        return self._clock() - self._started

    def affords(self, n_queries: int) -> bool:
        """Whether that many more queries are within the budget."""
        return (
            self._max_queries is None
            or self.n_charged + self.n_lost + n_queries <= self._max_queries
        )

    def time_for(self, n_queries: int) -> float:
        """Return the seconds that many queries will take, at the pace so far.

        Or at the last one if that was slower: functions may become slower.
        """
        pace = self.evaluation_time / max(self.n_queries, 1)
        return n_queries * max(pace, self.last_pace)

    def time_of(self, charged: Cost) -> float:
        """Return the seconds that these will take, at the pace of such ones so far.

        Of the last two, so that one slow moment says nothing about what is to come.
        Nothing is said of losses where only constraints were asked for so far.
        """
        kind = _kind(charged)
        if kind in self.paces:
            before, n, last = self.paces[kind]
            return charged.total * (last if n == 1 else min(before, last))
        return 0.0 if kind == "losses" else self.time_for(charged.total)

    def measures_pace(self, queries: Sequence[Query], charged: Cost) -> bool:
        """Ask for a small part of what is expected to take too long, to time it again.

        The first calls may have been slow: they compile, or fill a cache. False if
        enough of this kind was timed, or nothing was asked.
        """
        _, n, _ = self.paces.get(_kind(charged), (0.0, 0, 0.0))
        if n >= ENOUGH_TIMED or not self.n_queries:
            return False
        parts = [
            query._replace(
                want="values",
                steps=no_steps(self.size.dim),
                losses=query.losses[: 1 + len(query.losses) // 8],
                constraints=query.constraints[: 1 + len(query.constraints) // 8],
                paired=False,
                purpose="look around",
            )
            for query in queries
        ]
        asked = cost(parts, self.size)
        is_small = 2 * asked.total <= charged.total
        if not is_small or not self.affords(asked.total + self.kept):
            return False
        self(parts)
        return True


def _kind(charged: Cost) -> str:
    if not charged.constraints:
        return "losses"
    return "both" if charged.losses else "constraints"
