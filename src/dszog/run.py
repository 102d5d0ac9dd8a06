"""The one loop: ask, evaluate, tell, record, until a budget or a person says stop."""

from __future__ import annotations

import hashlib
import math
import struct
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

import numpy as np

from dszog._arrays import FloatArray, all_finite, freeze
from dszog.errors import (
    DszogError,
    EmptySetError,
    EvaluationError,
    OutOfTimeError,
    SubproblemError,
)
from dszog.failures import FailureHandler, RejectedPointError
from dszog.kernels import batches
from dszog.methods import Info, Method, State
from dszog.query import Cost, ProblemSize, Query, Reply, cost
from dszog.status import Status

Answer: TypeAlias = Callable[[Sequence[Query]], Sequence[Reply]]

WEIGHTS_EVERY = 64  # iterations after which the weights go into the digest

RUNAWAY = 1e4  # sampled values this many times the scale of the start have run away
MAX_REJECTED = 5  # steps taken back one after the other
RECENT_POWER = 50  # likewise for what is wanted of the last iterates alone
AVERAGE_POWER = 8  # the average gives iterate t a weight that grows as t^8


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a callback sees after each iteration.

    The sampled values are those of the batch just drawn: noisy, and no statement about
    all constraints; `nan` where none was drawn. ``sampled_objective`` is the mean loss
    of the batch, ``sampled_violation`` its worst violation, ``sampled_share`` the part
    of a uniform draw that is violated. Queries are counted so far, in all and of each
    kind; ``n_touched`` constraints have a weight of their own.
    """

    iteration: int
    n_queries: int
    elapsed: float  # seconds
    x: FloatArray  # (dim,), read-only
    sampled_objective: float
    sampled_violation: float
    sampled_share: float
    n_touched: int
    n_loss_queries: int = 0
    n_constraint_queries: int = 0
    penalty: float = math.nan  # of the method, where it has one
    n_failed: int = 0  # points at which a value was not known, so far
    evaluation_time: float = 0.0  # seconds of `elapsed` that the functions took


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


class Played(Protocol):
    """Replies that were given in an earlier process."""

    @property
    def replies(self) -> Sequence[Reply]: ...
    @property
    def n_retried(self) -> int: ...
    @property
    def spent(self) -> float: ...
    @property
    def elapsed(self) -> float: ...


class Tape(Protocol):
    """Keeps replies, so that a run that died can hear them again."""

    n_lost: int

    @property
    def is_replaying(self) -> bool:
        """Whether there are kept replies that were not heard yet."""
        ...

    def played(self, queries: Sequence[Query], charged: Cost) -> Played | None:
        """Return the kept replies to these queries, if there are any left."""
        ...

    def asked(self, queries: Sequence[Query], charged: Cost, elapsed: float) -> None:
        """Take note of queries before they are answered."""
        ...

    def retried(self, n_queries: int) -> None:
        """Take note of queries that are about to be made again."""
        ...

    def answered(self, replies: Sequence[Reply], spent: float, elapsed: float) -> None:
        """Keep the replies, before anybody uses them."""
        ...


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
        # By kind: seconds and queries so far, and the seconds of one in the last batch.
        self._paces: dict[str, tuple[float, int, float]] = {}
        self._last_pace = 0.0
        self.n_inner = 0
        self.events: Counter[str] = Counter()
        self._n_lost = 0  # used up by earlier processes, for nothing
        self._tape: Tape | None = None
        self._stopped_at: float | None = None  # the clock stands while a tape plays
        if hasattr(answer, "charge"):  # an evaluator that may have to do things twice
            answer.charge = self.charge_retry

    def __call__(
        self, queries: Sequence[Query], charged: Cost | None = None
    ) -> Sequence[Reply]:
        """Charge for the queries, then have them answered."""
        charged = self.cost(queries) if charged is None else charged
        if queries and queries[0].iteration < 0:  # of the check of the result
            self.kept = max(self.kept - charged.total, 0)
        if self._tape is not None:
            played = self._tape.played(queries, charged)
            if played is not None:
                return self._play(charged, played)
            self._start_clock()
        if not self.affords(charged.total):
            raise DszogError(
                f"{charged.total} queries more would exceed the {self._max_queries} "
                f"allowed, {self.n_queries} are used. This is a bug in dszog: please "
                "report it."
            )
        self.n_loss_queries += charged.losses
        self.n_constraint_queries += charged.constraints
        if self._tape is not None:
            self._tape.asked(queries, charged, self.elapsed)
        before = time.perf_counter()
        try:
            replies = self._answer(queries)
        finally:
            spent = time.perf_counter() - before
            self._note_pace(charged, spent)
        # A failure that ends the run is not kept: it may be mended before it goes on.
        if self._tape is not None and not self.failures.would_raise(replies):
            self._tape.answered(replies, spent, self.elapsed)
        self.failures.count(replies)
        return replies

    def _note_pace(self, charged: Cost, spent: float) -> None:
        self.evaluation_time += spent
        kind, n_now = _kind(charged), max(charged.total, 1)
        seconds, n, _ = self._paces.get(kind, (0.0, 0, 0.0))
        self._last_pace = spent / n_now
        self._paces[kind] = (seconds + spent, n + n_now, self._last_pace)

    def _play(self, charged: Cost, played: Played) -> Sequence[Reply]:
        """Count replies of an earlier process as if they were given now."""
        self.n_loss_queries += charged.losses
        self.n_constraint_queries += charged.constraints
        self.n_retried += played.n_retried
        self._note_pace(charged, played.spent)
        self._stopped_at = max(self._stopped_at or 0.0, played.elapsed)
        self.failures.count(played.replies)
        return played.replies

    def _start_clock(self) -> None:
        if self._stopped_at is not None:
            self._started = time.perf_counter() - self._stopped_at
            self._stopped_at = None

    def keep_on(self, tape: Tape) -> None:
        """Keep replies on a tape, after those that it holds were heard."""
        self._tape = tape
        self._stopped_at = self.elapsed
        if not tape.is_replaying:
            self._start_clock()

    @property
    def n_lost(self) -> int:
        """Queries that were used up by earlier processes and are not counted else."""
        return self._n_lost + (0 if self._tape is None else self._tape.n_lost)

    def lose(self, n_queries: int) -> None:
        """Count queries that earlier processes made for nothing."""
        self._n_lost += n_queries

    def saved(self) -> dict[str, Any]:
        """Return all counts, for a checkpoint."""
        return {
            "n_iterations": self.n_iterations,
            "n_loss_queries": self.n_loss_queries,
            "n_constraint_queries": self.n_constraint_queries,
            "n_lost": self.n_lost,
            "n_retried": self.n_retried,
            "n_inner": self.n_inner,
            "elapsed": self.elapsed,
            "evaluation_time": self.evaluation_time,
            "last_pace": self._last_pace,
            "paces": {name: list(pace) for name, pace in self._paces.items()},
            "events": dict(self.events),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from counts that were saved."""
        self.n_iterations = int(saved["n_iterations"])
        self.n_loss_queries = int(saved["n_loss_queries"])
        self.n_constraint_queries = int(saved["n_constraint_queries"])
        self._n_lost = int(saved["n_lost"])
        self.n_retried = int(saved["n_retried"])
        self.n_inner = int(saved["n_inner"])
        self.evaluation_time = float(saved["evaluation_time"])
        self._paces = {
            str(name): (float(seconds), int(n), float(last))
            for name, (seconds, n, last) in saved["paces"].items()
        }
        self._last_pace = float(saved["last_pace"])
        self.events = Counter({str(k): int(n) for k, n in saved["events"].items()})
        self._started = time.perf_counter() - float(saved["elapsed"])

    def charge_retry(self, again: Cost) -> bool:
        """Charge for queries made again; False, and no charge, if that is too much."""
        if not self.affords(again.total + self.kept):
            return False
        if self._tape is not None:
            self._tape.retried(again.total)
        self.n_retried += again.total
        return True

    def note(self, info: Info) -> None:
        """Count an iteration and what went on in it."""
        self.n_iterations += info.is_step
        self.n_inner += info.n_inner
        if info.events:
            self.events.update(info.events)

    def cost(self, queries: Sequence[Query]) -> Cost:
        """Return what these queries would be charged."""
        return cost(queries, self._size)

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
            self._max_queries is None
            or self.n_charged + self.n_lost + n_queries <= self._max_queries
        )

    def time_for(self, n_queries: int) -> float:
        """Return the seconds that many queries will take, at the pace so far.

        Or at the last one if that was slower: functions may become slower.
        """
        pace = self.evaluation_time / max(self.n_queries, 1)
        return n_queries * max(pace, self._last_pace)

    def time_of(self, charged: Cost) -> float:
        """Return the seconds that these will take, at the pace of such ones so far.

        Nothing is said of losses where only constraints were asked for so far.
        """
        kind = _kind(charged)
        if kind in self._paces:
            seconds, n, last = self._paces[kind]
            return charged.total * max(seconds / n, last)
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
        "n_constraint_queries",
        "penalty",
        "n_failed",
    )

    def __init__(self, capacity: int = 2000) -> None:
        self._capacity = capacity
        self._stride = 1
        self._rows: list[tuple[float, ...]] = []

    def wants(self, iteration: int) -> bool:
        """Whether a row of this iteration is kept; looks before the first are not."""
        return iteration > 0 and iteration % self._stride == 0

    def record(self, row: tuple[float, ...]) -> None:
        """Keep a row, an entry per column, whose turn has come."""
        self._rows.append(row)
        if len(self._rows) >= self._capacity:
            self._stride *= 2
            self._rows = [row for row in self._rows if not row[0] % self._stride]

    def columns(self) -> dict[str, FloatArray]:
        """Return the recorded rows as one array per column."""
        table = self._table()
        return {name: table[:, i] for i, name in enumerate(self.COLUMNS)}

    def _table(self) -> FloatArray:
        return np.array(self._rows, dtype=float).reshape(-1, len(self.COLUMNS))

    def saved(self) -> dict[str, Any]:
        """Return all rows, for a checkpoint."""
        return {"stride": self._stride, "rows": self._table()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from rows that were saved."""
        self._stride = max(int(saved["stride"]), 1)
        rows = saved["rows"]
        if rows.ndim != 2 or rows.shape[1] != len(self.COLUMNS):
            raise ValueError("the history has other columns than it should")
        self._rows = [tuple(row) for row in rows.tolist()]


@dataclass(kw_only=True)
class Position:
    """Where a run stands between two iterations: all that the loop changes."""

    state: State
    average: FloatArray  # (dim,), of the iterates, the later ones weighing more
    last_good: State | None = None  # the one before, which could be evaluated
    weighted_violation: float = 0.0  # sum_j p_j max(f_j, 0), averaged over the last
    n_done: int = 0
    n_rejected: int = 0  # steps taken back one after the other
    first: dict[str, float] = field(default_factory=dict)  # values at the start
    digest: bytes = b""  # of all iterations so far

    @classmethod
    def at(
        cls, state: State, last_good: State | None = None, digest: bytes = b""
    ) -> Position:
        """Return the position before the first iteration from a state."""
        return cls(state=state, average=state.x, last_good=last_good, digest=digest)

    def note(self, method: Method, meter: Meter) -> None:
        """Take one more iteration into the digest.

        The iterate and the counts each time. The weights, which may be many, only now
        and then: an error in them shows in the constraints drawn, hence in the iterate.
        """
        counts = _COUNTS.pack(
            meter.n_iterations, meter.n_loss_queries, meter.n_constraint_queries
        )
        content = self.digest + counts + self.state.x.tobytes()
        self.digest = hashlib.sha256(content).digest()
        if not self.n_done % WEIGHTS_EVERY:
            self.digest = self.digest_with_weights(method)

    def digest_with_weights(self, method: Method) -> bytes:
        """Return the digest with the weights taken in."""
        indices, weights = method.weights(self.state)
        content = self.digest + indices.tobytes() + weights.tobytes()
        return hashlib.sha256(content).digest()


_COUNTS = struct.Struct("<qqq")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Where a run ended."""

    state: State
    status: Status
    average: FloatArray  # (dim,), of the iterates, the later ones weighing more
    last_good: State | None  # the one before, which could be evaluated
    weighted_violation: float  # sum_j p_j max(f_j, 0), averaged over the last iterates
    problem: str = ""  # what a solver of subproblems had to say

    @classmethod
    def of(cls, position: Position, status: Status, problem: str = "") -> Outcome:
        """Return the end of a run that got this far."""
        return cls(
            state=position.state,
            status=status,
            average=position.average,
            last_good=position.last_good,
            weighted_violation=position.weighted_violation,
            problem=problem,
        )


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
    position = Position.at(state, last_good)
    return advance(
        method, position, meter, end=end, history=history, callbacks=callbacks
    )


def advance(
    method: Method,
    position: Position,
    meter: Meter,
    *,
    end: Limits,
    history: History | None = None,
    callbacks: Sequence[Callback] = (),
    between: Callable[[], None] | None = None,
) -> Outcome:
    """Do what :func:`run` does from a position, which is moved along.

    `between` is called after each iteration, when the position is all there is to know.
    """
    try:  # around the loop, not in it: Ctrl-C may come between two iterations
        while True:
            state = position.state
            queries = method.ask(state)
            charged = meter.cost(queries)
            reached = _reached(end, meter, charged)
            if reached is not None:
                return Outcome.of(position, reached)
            replies = meter(queries, charged)
            try:
                known = meter.failures.repair(queries, replies)
            except RejectedPointError as error:
                good = position.last_good
                if meter.failures.is_enough or position.n_rejected == MAX_REJECTED:
                    position.state = state if good is None else good
                    return Outcome.of(position, Status.TOO_MANY_FAILURES)
                position.state = _step_back(good, state, error)
                position.n_rejected += 1
                meter.failures.n_rejected += 1
                continue
            moved, info = method.tell(state, *known)
            if _runs_away(position.first, info) or not _accept(position, moved, info):
                return Outcome.of(position, Status.DIVERGED)
            meter.note(info)
            position.note(method, meter)
            elapsed = meter.elapsed
            if history and info.is_step and history.wants(meter.n_iterations):
                history.record(_row(method, info, meter, elapsed))
            if callbacks:
                progress = _progress(method, moved, info, meter, elapsed)
                for callback in callbacks:
                    callback(progress)
            if meter.failures.is_enough:
                return Outcome.of(position, Status.TOO_MANY_FAILURES)
            if between is not None:
                between()
    except OutOfTimeError:  # in a subproblem: the iteration is given up
        return Outcome.of(position, Status.MAX_TIME)
    except (SubproblemError, EmptySetError) as error:
        return Outcome.of(position, Status.SUBPROBLEM_FAILED, str(error))
    except StopIteration:
        return Outcome.of(position, Status.STOPPED_BY_CALLBACK)
    except KeyboardInterrupt:
        return Outcome.of(position, Status.INTERRUPTED)


def _accept(position: Position, moved: State, info: Info) -> bool:
    """Move on by one iteration; False, and stay, if that leads to no finite point."""
    # Polynomial-decay averaging: no horizon needed, early iterates forgotten.
    n_done = position.n_done + 1
    share = (AVERAGE_POWER + 1) / (n_done + AVERAGE_POWER)
    average, is_finite = _averaged(position.average, moved.x, share)
    if not is_finite:
        return False
    position.last_good, position.n_rejected = position.state, 0
    position.state, position.n_done, position.average = moved, n_done, average
    share = (RECENT_POWER + 1) / (n_done + RECENT_POWER)
    position.weighted_violation += share * (
        info.weighted_violation - position.weighted_violation
    )
    return True


def _averaged(
    before: FloatArray, x: FloatArray, share: float
) -> tuple[FloatArray, bool]:
    """Return an average moved by this share towards a point, and if that is finite."""
    kernels = batches()
    if kernels is None:
        return freeze(before + share * (x - before)), all_finite(x)
    after = np.empty(len(x))
    is_finite = kernels.average(before, x, share, after)
    return freeze(after), is_finite


def _step_back(last_good: State | None, state: State, error: Exception) -> State:
    """Return the state with half of its last step taken back."""
    if last_good is None or np.array_equal(last_good.x, state.target):
        raise EvaluationError(
            f"The start cannot be evaluated: {error} Start from another x0."
        ) from error
    return state.back_to(last_good)


def _reached(end: Limits, meter: Meter, charged: Cost) -> Status | None:
    """Return the limit that forbids queries of this cost, if there is one."""
    if end.iterations is not None and meter.n_iterations >= end.iterations:
        return Status.MAX_ITERATIONS
    if end.queries is not None and meter.n_charged + charged.total > end.queries:
        return Status.MAX_QUERIES
    if meter.n_lost and not meter.affords(charged.total + meter.kept):
        return Status.MAX_QUERIES
    if end.time is not None and meter.elapsed + meter.time_of(charged) >= end.time:
        return Status.MAX_TIME
    return None


def _runs_away(first: dict[str, float], info: Info) -> bool:
    """Whether iterates run away: whether values leave the scale of the first ones.

    Values, not the size of ``x``: how large ``x`` may become is the problem's affair.
    """
    for name, value in (
        ("objective", info.sampled_objective),
        ("violation", info.sampled_violation),
    ):
        at_first = first.get(name)
        if at_first is None:
            if math.isfinite(value):
                first[name] = value
        elif math.isfinite(value):
            limit = RUNAWAY * max(abs(at_first), 1.0)
            if abs(value - at_first) > limit:
                return True
    return False


def _row(method: Any, info: Info, meter: Meter, elapsed: float) -> tuple[float, ...]:
    """Return what the history keeps of an iteration, in the order of its columns."""
    return (
        meter.n_iterations,
        meter.n_queries,
        elapsed,
        info.sampled_objective,
        info.sampled_violation,
        info.sampled_share,
        info.n_touched,
        meter.n_constraint_queries,
        getattr(method, "penalty", math.nan),
        meter.failures.n_failed,
    )


def _progress(
    method: Any, state: State, info: Info, meter: Meter, elapsed: float
) -> Progress:
    """Return the same and more, as callbacks see it."""
    return Progress(
        iteration=meter.n_iterations,
        n_queries=meter.n_queries,
        elapsed=elapsed,
        x=state.x,
        sampled_objective=info.sampled_objective,
        sampled_violation=info.sampled_violation,
        sampled_share=info.sampled_share,
        n_touched=info.n_touched,
        n_loss_queries=meter.n_loss_queries,
        n_constraint_queries=meter.n_constraint_queries,
        penalty=getattr(method, "penalty", math.nan),
        n_failed=meter.failures.n_failed,
        evaluation_time=meter.evaluation_time,
    )
