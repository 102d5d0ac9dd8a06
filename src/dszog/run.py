"""The one loop: ask, evaluate, tell, record, until a budget or a person says stop."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dszog._arrays import FloatArray, frozen_floats
from dszog.errors import (
    DszogError,
    EmptySetError,
    EvaluationError,
    OutOfTimeError,
    SubproblemError,
)
from dszog.failures import FailureHandler, RejectedPointError
from dszog.methods import Info, Method, State
from dszog.query import Cost, ProblemSize, Query, Reply, cost
from dszog.status import Status

Answer: TypeAlias = Callable[[Sequence[Query]], Sequence[Reply]]

RUNAWAY = 1e4  # sampled values this many times the scale of the start have run away
MAX_REJECTED = 5  # steps taken back one after the other
RECENT_POWER = 50  # likewise for what is wanted of the last iterates alone
AVERAGE_POWER = 8  # the average gives iterate t a weight that grows as t^8


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a callback sees after each iteration.

    The sampled values are those of the batch just drawn: noisy, and no statement about
    all constraints.
    """

    iteration: int
    n_queries: int
    elapsed: float  # seconds
    x: FloatArray  # (dim,), read-only
    sampled_objective: float
    sampled_violation: float
    sampled_share: float
    n_touched: int


Callback: TypeAlias = Callable[[Progress], Any]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How far a run may go; None is no limit. Also: how far it has gone."""

    iterations: int | None = None
    queries: int | None = None
    time: float | None = None  # seconds

    def part_way(self, start: Limits, share: float) -> Limits:
        """Return the limits that lie this share of the way from `start` to here."""

        def between(first: float | None, last: float | None) -> float | None:
            if last is None:
                return None
            first = first or 0.0
            return last if share == 1.0 else first + share * (last - first)

        iterations = between(start.iterations, self.iterations)
        queries = between(start.queries, self.queries)
        return Limits(
            iterations=None if iterations is None else round(iterations),
            queries=None if queries is None else round(queries),
            time=between(start.time, self.time),
        )


class Meter:
    """Counts what is handed to the user's functions, and never exceeds the budget.

    Parameters
    ----------
    answer : callable
        The evaluator.
    size : ProblemSize
    max_queries : int, optional
    failures : FailureHandler, optional
        What to do about values that are not known; raise, if not given.
    """

    def __init__(
        self,
        answer: Answer,
        size: ProblemSize,
        max_queries: int | None = None,
        failures: FailureHandler | None = None,
    ) -> None:
        self._answer = answer
        self._size = size
        self._max_queries = max_queries
        self.failures = FailureHandler("raise") if failures is None else failures
        self._started = time.perf_counter()
        self.n_iterations = 0
        self.n_loss_queries = 0
        self.n_constraint_queries = 0
        self.n_retried = 0  # queries made again because a worker was lost
        self.kept = 0  # for the check of the result: must not go into that
        self.evaluation_time = 0.0
        self._paces: dict[str, tuple[float, int]] = {}  # seconds and queries of a kind
        self.n_inner = 0
        self.events: Counter[str] = Counter()
        if hasattr(answer, "charge"):  # an evaluator that may have to do things twice
            answer.charge = self.charge_retry

    def __call__(self, queries: Sequence[Query]) -> Sequence[Reply]:
        """Charge for the queries, then have them answered."""
        charged = cost(queries, self._size)
        if not self.affords(charged.total):
            raise DszogError(
                f"{charged.total} queries more would exceed the {self._max_queries} "
                f"allowed, {self.n_queries} are used. This is a bug in dszog: please "
                "report it."
            )
        if any(query.iteration < 0 for query in queries):  # of the check of the result
            self.kept = max(self.kept - charged.total, 0)
        self.n_loss_queries += charged.losses
        self.n_constraint_queries += charged.constraints
        before = time.perf_counter()
        try:
            replies = self._answer(queries)
        finally:
            spent = time.perf_counter() - before
            self.evaluation_time += spent
            seconds, n = self._paces.get(_kind(charged), (0.0, 0))
            self._paces[_kind(charged)] = (seconds + spent, n + charged.total)
        self.failures.count(replies)
        return replies

    def charge_retry(self, again: Cost) -> bool:
        """Charge for queries made again; False, and no charge, if that is too much."""
        if not self.affords(again.total + self.kept):
            return False
        self.n_retried += again.total
        return True

    def note(self, info: Info) -> None:
        """Count an iteration and what went on in it."""
        self.n_iterations += info.is_step
        self.n_inner += info.n_inner
        self.events.update(info.events)

    def cost(self, queries: Sequence[Query]) -> int:
        """Return what these queries would be charged."""
        return cost(queries, self._size).total

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
        """Seconds since the run began."""
        return time.perf_counter() - self._started

    @property
    def used(self) -> Limits:
        """How far the run has gone."""
        return Limits(
            iterations=self.n_iterations, queries=self.n_charged, time=self.elapsed
        )

    def affords(self, n_queries: int) -> bool:
        """Whether that many more queries are within the budget."""
        return (
            self._max_queries is None or self.n_charged + n_queries <= self._max_queries
        )

    def time_for(self, n_queries: int) -> float:
        """Return the seconds that many queries will take, at the pace so far."""
        return n_queries * self.evaluation_time / max(self.n_queries, 1)

    def time_of(self, queries: Sequence[Query]) -> float:
        """Return the seconds that these will take, at the pace of such ones so far.

        Nothing is said of losses where only constraints were asked for so far.
        """
        charged = cost(queries, self._size)
        kind = _kind(charged)
        if kind in self._paces:
            seconds, n = self._paces[kind]
            return charged.total * seconds / max(n, 1)
        return 0.0 if kind == "losses" else self.time_for(charged.total)


def _kind(charged: Cost) -> str:
    if not charged.constraints:
        return "losses"
    return "both" if charged.losses else "constraints"


class History:
    """Rows of progress, thinned so that their number stays bounded.

    When `capacity` rows are full every second one is dropped, and from then on every
    second iteration is recorded, and so on.
    """

    COLUMNS = (
        "iteration",
        "n_queries",
        "elapsed",
        "sampled_objective",
        "sampled_violation",
        "sampled_share",
        "n_touched",
    )

    def __init__(self, capacity: int = 2000) -> None:
        self._capacity = capacity
        self._stride = 1
        self._rows: list[tuple[float, ...]] = []

    def record(self, progress: Progress) -> None:
        """Keep this row if its turn has come; looks before the first step have none."""
        if not progress.iteration or progress.iteration % self._stride:
            return
        self._rows.append(tuple(getattr(progress, name) for name in self.COLUMNS))
        if len(self._rows) >= self._capacity:
            self._stride *= 2
            self._rows = [row for row in self._rows if not row[0] % self._stride]

    def columns(self) -> dict[str, FloatArray]:
        """Return the recorded rows as one array per column."""
        table = np.array(self._rows, dtype=float).reshape(-1, len(self.COLUMNS))
        return {name: table[:, i] for i, name in enumerate(self.COLUMNS)}


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Where a run ended."""

    state: State
    status: Status
    average: FloatArray  # (dim,), of the iterates, the later ones weighing more
    last_good: State | None  # the one before, which could be evaluated
    weighted_violation: float  # sum_j p_j max(f_j, 0), averaged over the last iterates
    problem: str = ""  # what a solver of subproblems had to say


def run(
    method: Method,
    state: State,
    meter: Meter,
    *,
    end: Limits,
    last_good: State | None = None,
    history: History | None = None,
    callbacks: Sequence[Callback] = (),
) -> Outcome:
    """Advance `state` until a limit is reached, a callback stops, or the run fails.

    Parameters
    ----------
    method : Method
    state : State
        Of the method's ``init``, or where an earlier run ended.
    meter : Meter
        Answers the queries and counts.
    end : Limits
        Where to stop, on the meter's counts.
    last_good : State, optional
        Where to step back to if the very first point cannot be evaluated.
    history : History, optional
    callbacks : sequence of callable
        Each called with a :class:`Progress`; one that raises ``StopIteration`` ends the
        run.

    Returns
    -------
    Outcome
        After Ctrl-C too; any other exception of user code is passed on.
    """
    average, weighted_violation, n_done = state.x, 0.0, 0
    n_rejected = 0
    watch = _Watch()

    def ended(status: Status, problem: str = "") -> Outcome:
        return Outcome(
            state=state,
            status=status,
            average=average,
            last_good=last_good,
            weighted_violation=weighted_violation,
            problem=problem,
        )

    try:  # around the loop, not in it: Ctrl-C may come between two iterations
        while True:
            queries = method.ask(state)
            reached = _reached(end, meter, queries)
            if reached is not None:
                return ended(reached)
            replies = meter(queries)
            try:
                known = meter.failures.repair(queries, replies)
            except RejectedPointError as error:
                if meter.failures.is_enough or n_rejected == MAX_REJECTED:
                    state = state if last_good is None else last_good
                    return ended(Status.TOO_MANY_FAILURES)
                state, n_rejected = _step_back(last_good, state, error), n_rejected + 1
                meter.failures.n_rejected += 1
                continue
            moved, info = method.tell(state, *known)
            if watch.runs_away(moved.x, info):
                return ended(Status.DIVERGED)
            last_good, n_rejected = state, 0
            state, n_done = moved, n_done + 1
            meter.note(info)
            # Polynomial-decay averaging: no horizon needed, early iterates forgotten.
            share = (AVERAGE_POWER + 1) / (n_done + AVERAGE_POWER)
            average = frozen_floats(average + share * (state.x - average))
            share = (RECENT_POWER + 1) / (n_done + RECENT_POWER)
            weighted_violation += share * (info.weighted_violation - weighted_violation)
            progress = _progress(state, info, meter)
            if history is not None and info.is_step:
                history.record(progress)
            for callback in callbacks:
                callback(progress)
            if meter.failures.is_enough:
                return ended(Status.TOO_MANY_FAILURES)
    except OutOfTimeError:  # in a subproblem: the iteration is given up
        return ended(Status.MAX_TIME)
    except (SubproblemError, EmptySetError) as error:
        return ended(Status.SUBPROBLEM_FAILED, str(error))
    except StopIteration:
        return ended(Status.STOPPED_BY_CALLBACK)
    except KeyboardInterrupt:
        return ended(Status.INTERRUPTED)


def _step_back(last_good: State | None, state: State, error: Exception) -> State:
    """Return the state with half of its last step taken back."""
    if last_good is None or np.array_equal(last_good.x, state.target):
        raise EvaluationError(
            f"The start cannot be evaluated: {error} Start from another x0."
        ) from error
    return state.back_to(last_good)


def _reached(end: Limits, meter: Meter, queries: Sequence[Query]) -> Status | None:
    """Return the limit that forbids these queries, if there is one."""
    charge = meter.cost(queries)
    if end.iterations is not None and meter.n_iterations >= end.iterations:
        return Status.MAX_ITERATIONS
    if end.queries is not None and meter.n_charged + charge > end.queries:
        return Status.MAX_QUERIES
    if end.time is not None and meter.elapsed + meter.time_of(queries) >= end.time:
        return Status.MAX_TIME
    return None


class _Watch:
    """Notices iterates that run away, by values that leave the scale of the start.

    Values, not the size of ``x``: how large ``x`` may become is the problem's affair.
    """

    def __init__(self) -> None:
        self._first: dict[str, float] = {}

    def runs_away(self, x: FloatArray, info: Info) -> bool:
        """Take note of one more iteration; True if this is no longer a search."""
        if not np.isfinite(x).all():
            return True
        seen = {
            "objective": info.sampled_objective,
            "violation": info.sampled_violation,
        }
        for name, value in seen.items():
            if not math.isfinite(value):
                continue
            first = self._first.setdefault(name, value)
            if abs(value - first) > RUNAWAY * max(abs(first), 1.0):
                return True
        return False


def _progress(state: State, info: Info, meter: Meter) -> Progress:
    return Progress(
        iteration=meter.n_iterations,
        n_queries=meter.n_queries,
        elapsed=meter.elapsed,
        x=state.x,
        sampled_objective=info.sampled_objective,
        sampled_violation=info.sampled_violation,
        sampled_share=info.sampled_share,
        n_touched=info.n_touched,
    )
