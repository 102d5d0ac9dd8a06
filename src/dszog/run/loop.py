"""The one loop: ask, evaluate, tell, record, until a budget or a person says stop."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from dszog.contract import Cost, Query, Reply, cost
from dszog.contract.arrays import FloatArray, IntArray, all_finite, handed_out
from dszog.errors import (
    EmptySetError,
    EvaluationError,
    OutOfTimeError,
    SubproblemError,
)
from dszog.methods import Info, Method, State
from dszog.methods.policy import Policy, decayed, penalty_of, policy_of
from dszog.run.failures import RejectedPointError
from dszog.run.history import Callback, History, Progress
from dszog.run.meter import Limits, Meter
from dszog.status import Status

DIGEST_EVERY = 64  # iterations after which all goes into the digest

MAX_REJECTED = 5  # steps taken back one after the other
RECENT_POWER = 50  # of a mean over the last iterates alone
N_SEEN = 1000  # constraints that were the worst of a batch are remembered
TIME_LEFT = 0.1  # of the time that is worth another look at how long a step takes
UNKNOWN = float(np.finfo(float).max)  # the value of one that gave none


class Position(NamedTuple):
    """Where a run stands between two iterations."""

    state: State
    average: FloatArray  # (dim,), of the iterates, the later ones weighing more
    last_good: State | None  # the one before, which could be evaluated
    weighted_violation: float  # sum_j p_j max(f_j, 0), averaged over the last iterates
    n_done: int
    n_rejected: int  # steps taken back one after the other
    digest: bytes  # of all iterations so far
    # These two are added to, in place: values at the start, and constraints that were
    # the worst of a batch, the latest last.
    first: dict[str, float]
    seen: dict[int, float]

    @classmethod
    def at(
        cls,
        state: State,
        last_good: State | None = None,
        digest: bytes = b"",
        seen: dict[int, float] | None = None,
    ) -> Position:
        """Return the position before the first iteration from a state."""
        seen = {} if seen is None else seen
        return cls(state, state.x, last_good, 0.0, 0, 0, digest, {}, seen)

    @property
    def worst_seen(self) -> tuple[IntArray, FloatArray]:
        """The constraints that are remembered, and their values."""
        n, old = len(self.seen), max(len(self.seen) - N_SEEN, 0)
        return (
            np.fromiter(self.seen, dtype=np.int64, count=n)[old:],
            np.fromiter(self.seen.values(), dtype=np.float64, count=n)[old:],
        )

    def digest_now(self, method: Method) -> bytes:
        """Return the digest with the iterate and the weights taken in."""
        indices, weights = method.weights(self.state)
        now = hashlib.sha256(self.digest)
        for array in (self.state.x, indices, weights):
            now.update(array.tobytes())
        return now.digest()


_COUNTS = struct.Struct("<qqq")


class Outcome(NamedTuple):
    """Where a run ended, and why."""

    position: Position
    status: Status
    problem: str = ""  # what a solver of subproblems had to say
    fell: bool = False  # whether it ran away because the objective fell so far
    sentence: str = ""  # why, where that of the status does not tell


def advance(
    method: Method,
    position: Position,
    meter: Meter,
    *,
    end: Limits,
    policy: Policy | None = None,
    history: History | None = None,
    callbacks: Sequence[Callback] = (),
    between: Callable[[Position], None] | None = None,
) -> Outcome:
    """Go on until a limit is reached, a callback stops, or the run fails.

    A callback stops it by ``StopIteration``, and so does Ctrl-C; any other exception of
    user code is passed on. If the very first point cannot be evaluated, the run steps
    back towards the last good one. `between` is called after each iteration with the
    new position.
    """
    policy = policy_of(method) if policy is None else policy
    try:  # around the loop, not in it: Ctrl-C may come between two iterations
        while True:
            state = position.state
            queries = method.ask(state)
            charged = cost(queries, meter.size)
            reached = _reached(end, meter, charged)
            while reached == Status.MAX_TIME and _is_early(end, meter):
                if not meter.measures_pace(queries, charged):
                    sentence = _too_long(end, meter, charged)
                    return Outcome(position, reached, sentence=sentence)
                reached = _reached(end, meter, charged)
            if reached is not None:
                return Outcome(position, reached)
            n_failed = meter.failures.n_failed
            replies = meter(queries, charged)
            try:
                if meter.failures.n_failed > n_failed:
                    _remember_unknown(position.seen, queries, replies)
                    if not _takes_unknown(state):
                        queries, replies = meter.failures.repair(queries, replies)
            except RejectedPointError as error:
                good = position.last_good
                is_stuck = position.n_done and _is_at(good, state)
                is_enough = meter.failures.is_enough or is_stuck
                if meter.failures.policy == "raise" and (
                    is_enough or position.n_rejected == MAX_REJECTED
                ):
                    raise EvaluationError(str(error)) from error
                if is_enough or position.n_rejected == MAX_REJECTED:
                    position = position._replace(state=state if good is None else good)
                    return Outcome(position, Status.TOO_MANY_FAILURES)
                position = position._replace(
                    state=_step_back(good, state, error),
                    n_rejected=position.n_rejected + 1,
                )
                meter.failures.n_rejected += 1
                if between is not None:
                    between(position)
                continue
            moved, info = method.tell(state, queries, replies)
            how = policy.runaway(position.first, info)
            if how or not all_finite(moved.x):
                return Outcome(position, Status.DIVERGED, fell=how == "fell")
            meter.note(info)
            position = step(policy, position, moved, info)
            if not position.n_done % DIGEST_EVERY:
                position = _with_digest(position, method, meter)
            if info.sampled_violation > 0.0:
                _remember_worst(position.seen, queries, replies)
            wanted = history and info.is_step and history.wants(meter.n_iterations)
            row: tuple[Any, ...] = ()
            if wanted or callbacks:
                row = _row(penalty_of(method, moved), info, meter)
            if history and wanted:
                history.record(row)
            for callback in callbacks:
                callback(_progress(row, moved.x, meter, info.n_held))
            if meter.failures.is_enough and not _takes_unknown(state):
                return Outcome(position, Status.TOO_MANY_FAILURES)
            if info.stop is not None:
                return Outcome(position, info.stop)
            if between is not None:
                between(position)
    except OutOfTimeError:  # in a subproblem: the iteration is given up
        return Outcome(position, Status.MAX_TIME)
    except (SubproblemError, EmptySetError) as error:
        return Outcome(position, Status.SUBPROBLEM_FAILED, str(error))
    except StopIteration:
        return Outcome(position, Status.STOPPED_BY_CALLBACK)
    except KeyboardInterrupt:
        return Outcome(position, Status.INTERRUPTED)


def _takes_unknown(state: State) -> bool:
    """Whether a method knows what to do about values that are not known."""
    return bool(getattr(state, "takes_unknown", False))


def step(policy: Policy, position: Position, moved: State, info: Info) -> Position:
    last_good, average, _, violation, n_done, _, digest, first, seen = position
    n_done += 1
    average = policy.averaged(average, moved, n_done)
    violation = decayed(violation, info.weighted_violation, n_done, RECENT_POWER)
    return Position(
        moved, average, last_good, violation, n_done, 0, digest, first, seen
    )


def _with_digest(position: Position, method: Method, meter: Meter) -> Position:
    """Return the position with all that was done taken into the digest.

    Now and then is enough: an error in an iterate stays in all that follow, and one in
    the weights shows in the constraints drawn, hence in the iterates.
    """
    counts = _COUNTS.pack(
        meter.n_iterations, meter.n_loss_queries, meter.n_constraint_queries
    )
    digest = hashlib.sha256(position.digest_now(method) + counts).digest()
    return position._replace(digest=digest)


def _remember_worst(
    seen: dict[int, float], queries: Sequence[Query], replies: Sequence[Reply]
) -> None:
    """Remember the worst constraint of each batch, with its value, if violated.

    What the run saw violated last is looked at again before it says success.
    """
    for query, reply in zip(queries, replies, strict=True):
        indices = query.constraints
        if len(indices):
            values = reply.constraints[0]
            if reply.failures:  # some may be left in: nan
                values = np.nan_to_num(values, nan=-np.inf)
            place = values.argmax()
            value = values.item(place)
            if value > 0.0:
                _remember(seen, indices.item(place), value)


def _remember_unknown(
    seen: dict[int, float], queries: Sequence[Query], replies: Sequence[Reply]
) -> None:
    """Remember constraints without a value at the base point: they may not be kept."""
    for query, reply in zip(queries, replies, strict=True):
        for index in query.constraints[np.isnan(reply.constraints[0])].tolist():
            _remember(seen, index, UNKNOWN)


def _remember(seen: dict[int, float], index: int, value: float) -> None:
    seen.pop(index, None)
    seen[index] = value
    if len(seen) >= 2 * N_SEEN:  # the first of a dict takes long to find: now and then
        for old in tuple(islice(seen, N_SEEN)):
            del seen[old]


def _step_back(last_good: State | None, state: State, error: Exception) -> State:
    """Return the state with half of its last step taken back."""
    if last_good is None or _is_at(last_good, state):
        raise EvaluationError(
            f"The start cannot be evaluated: {error} Start from another x0."
        ) from error
    return state.back_to(last_good)


def _is_at(last_good: State | None, state: State) -> bool:
    """Whether the next point is the last good one: there is no step to halve."""
    return last_good is not None and np.array_equal(last_good.x, state.target)


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


def _is_early(end: Limits, meter: Meter) -> bool:
    return end.time is not None and meter.elapsed < (1.0 - TIME_LEFT) * end.time


def _too_long(end: Limits, meter: Meter, charged: Cost) -> str:
    left = (end.time or 0.0) - meter.elapsed
    return (
        f"Another step was expected to take {meter.time_of(charged):.2g} s, and "
        f"{left:.2g} s are left before the check of the result."
    )


def _row(penalty: float, info: Info, meter: Meter) -> tuple[Any, ...]:
    """Return what the history keeps of an iteration, in the order of its columns."""
    return (
        meter.n_iterations,
        meter.n_queries,
        meter.elapsed,
        info.sampled_objective,
        info.sampled_violation,
        info.sampled_share,
        info.n_touched,
        meter.n_constraint_queries,
        penalty,
        meter.failures.n_failed,
    )


def _progress(
    row: tuple[Any, ...], x: FloatArray, meter: Meter, n_held: int
) -> Progress:
    """Return the same and more, as callbacks see it."""
    return Progress(
        x=handed_out(x),
        n_loss_queries=meter.n_loss_queries,
        evaluation_time=meter.evaluation_time,
        n_held=n_held,
        n_losses=meter.size.n_losses,
        **dict(zip(History.COLUMNS, row, strict=True)),
    )
