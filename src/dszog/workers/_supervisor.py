"""Workers answer queries: hand out pieces, take each answer once, replace the lost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dszog._log import LOGGER
from dszog.contract import Cost, Failure, Query, Reply, cost
from dszog.contract.validation import printable, shown
from dszog.problem import Problem
from dszog.run.accounting import Traffic
from dszog.workers._chunks import Assembly, Piece, cut
from dszog.workers.base import _named

START = 30.0  # seconds for a worker to begin, where it does not say when it does
HEARTBEAT = 0.5  # seconds after which a wait looks around, whatever happens
UNEVEN = 0.3  # differences in the pace of messages that are worth
UNEVEN_ROUNDS = 3  # several messages for each worker, the last for who is done first
MAX_ATTEMPTS = 6  # at one piece; if workers live for 20 calls on average, 3 are too few


@dataclass(frozen=True)
class Begun:
    """An attempt that a worker has taken up."""

    attempt: int


@dataclass(frozen=True)
class Done:
    """An attempt that was answered."""

    attempt: int
    replies: Sequence[Reply]
    seconds: float = 0.0  # that the worker was at it


@dataclass(frozen=True)
class Lost:
    """An attempt that will not be answered."""

    attempt: int
    why: str
    started: bool = True  # whether user code may have run


class Pool(Protocol):
    """Workers that hold one problem."""

    bundle: float  # pieces that take fewer seconds share a message; 0: none does

    @property
    def traffic(self) -> Traffic:
        """The bytes, and executions that nobody ordered."""
        ...

    @property
    def n_slots(self) -> int:
        """How many pieces can be worked at, at the same time."""
        ...

    def room(self, n_waiting: int) -> int:
        """Return how many attempts to hand out now, if so many pieces wait."""
        ...

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        """Have the parts of some pieces evaluated; does not wait."""
        ...

    def wait(self, seconds: float) -> Sequence[Begun | Done | Lost]:
        """Return what happened, after so many seconds if nothing did."""
        ...

    def stop(self, attempt: int) -> None:
        """End the worker that is at this attempt; nothing more is heard of it."""
        ...

    def forget(self) -> None:
        """Drop all attempts: nobody waits for them any more."""
        ...

    def close(self) -> None:
        """Let all workers go."""
        ...


class Supervised:
    """An evaluator whose pieces of work are done by a pool.

    Parameters
    ----------
    problem : Problem
    pool : Pool
    timeout : float, optional
        Seconds after which a piece is given up.
    start : float
        Seconds more that a worker may take to begin, before it says that it has.
    """

    def __init__(
        self,
        problem: Problem,
        pool: Pool,
        timeout: float | None = None,
        start: float = START,
    ) -> None:
        self._problem = problem
        self._pool = pool
        self._timeout = timeout
        self._start = start
        self._traffic = Traffic()
        self._seconds: float | None = None  # that a piece takes, about
        self._unevenness = 0.0  # by how much messages differ in that, about
        self._n_attempts = 0  # so far, in all iterations: each has a number of its own
        self.charge: Callable[[Cost], bool] = lambda _: True

    @property
    def traffic(self) -> Traffic:
        """What went between the run and its workers so far."""
        pool = self._pool.traffic
        return replace(
            self._traffic,
            n_duplicate=self._traffic.n_duplicate + pool.n_duplicate,
            bytes_sent=pool.bytes_sent,
            bytes_received=pool.bytes_received,
            bytes_problem=pool.bytes_problem,
        )

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        """Return one reply per query, whatever becomes of the workers."""
        pieces = cut(self._problem, queries)
        batch = _Batch(self, pieces, queries)
        try:
            return batch.run()
        except BaseException:  # Ctrl-C above all
            self._pool.forget()
            raise

    def close(self) -> None:
        """Let the workers go."""
        self._pool.close()

    def _next_attempt(self) -> int:
        self._n_attempts += 1
        return self._n_attempts

    def _note_seconds(self, seconds: float) -> None:
        """Keep a running mean of what a piece takes; it decides no bit."""
        known = seconds if self._seconds is None else self._seconds
        apart = abs(seconds / known - 1.0) if known > 0.0 else 0.0
        self._unevenness = 0.8 * self._unevenness + 0.2 * min(apart, 1.0)
        self._seconds = 0.8 * known + 0.2 * seconds

    def _count(self, name: str) -> None:
        known = getattr(self._traffic, name)
        self._traffic = replace(self._traffic, **{name: known + 1})


class _Batch:
    """The pieces of one iteration, until all are answered or given up."""

    def __init__(
        self, owner: Supervised, pieces: list[Piece], queries: Sequence[Query]
    ) -> None:
        self._owner = owner
        self._pool = owner._pool
        self._pieces = pieces
        self._assembly = Assembly(queries)
        self._waiting = deque(range(len(pieces)))
        self._open = set(range(len(pieces)))
        self._tries = [0] * len(pieces)
        self._pieces_of: dict[int, list[int]] = {}  # of every attempt at this batch
        self._answered: set[int] = set()  # pieces
        self._began: dict[int, float] = {}  # when attempts under way were handed out
        self._running: dict[int, float] = {}  # and when they were taken up
        self._size = _bundle_size(
            len(pieces),
            owner._pool.n_slots,
            owner._seconds if owner._timeout is None else None,
            owner._pool.bundle,
            UNEVEN_ROUNDS if owner._unevenness > UNEVEN else 1,
        )

    def run(self) -> tuple[Reply, ...]:
        """Hand out pieces and take answers until nothing is open."""
        while self._open:
            while self._waiting and self._pool.room(len(self._waiting)) > 0:
                self._hand_out(self._bundle())
            for event in self._pool.wait(self._patience()):
                if isinstance(event, Begun):
                    self._running[event.attempt] = time.monotonic()
                elif isinstance(event, Done):
                    self._take(event)
                else:
                    self._lose(event)
            self._end_overdue()
        return self._assembly.replies()

    def _bundle(self) -> list[int]:
        """Take the pieces of one message off those that wait.

        What was lost once goes alone: it may be to blame.
        """
        numbers = [self._waiting.popleft()]
        if self._tries[numbers[0]]:
            return numbers
        while (
            len(numbers) < self._size
            and self._waiting
            and not self._tries[self._waiting[0]]
        ):
            numbers.append(self._waiting.popleft())
        return numbers

    def _hand_out(self, numbers: list[int]) -> None:
        attempt = self._owner._next_attempt()
        self._pieces_of[attempt] = numbers
        self._began[attempt] = time.monotonic()
        for number in numbers:
            self._tries[number] += 1
        self._pool.submit(
            attempt, [part for one in numbers for part in self._pieces[one].parts]
        )

    def _take(self, event: Done) -> None:
        numbers = self._pieces_of.get(event.attempt)
        self._began.pop(event.attempt, None)
        if numbers is None:  # of an earlier batch, which was interrupted
            self._owner._count("n_late")
            return
        self._owner._note_seconds(event.seconds / len(numbers))
        replies = iter(event.replies)
        for number in numbers:
            own = [next(replies) for _ in self._pieces[number].parts]
            if number in self._open:
                self._open.discard(number)
                if number in self._waiting:  # it was given up for lost, and was not
                    self._waiting.remove(number)
                self._answered.add(number)
                self._assembly.put(self._pieces[number], own)
                self._owner._count("n_pieces")
            elif number in self._answered:
                self._owner._count("n_duplicate")
            else:
                self._owner._count("n_late")

    def _lose(self, event: Lost) -> None:
        if event.attempt not in self._began:
            return
        timeout = self._owner._timeout
        if (
            timeout is not None
            and event.started
            and self._seconds(event.attempt) >= timeout
        ):
            self._time_out(event.attempt, timeout)  # its worker ended itself
            return
        del self._began[event.attempt]
        for number in reversed(self._pieces_of[event.attempt]):
            if number in self._open:
                self._lose_piece(number, event)

    def _seconds(self, attempt: int) -> float:
        """Return for how long an attempt is under way, as far as is known."""
        began = self._running.get(attempt, self._began[attempt])
        return time.monotonic() - began

    def _lose_piece(self, number: int, event: Lost) -> None:
        if not event.started:
            self._tries[number] -= 1
            self._waiting.appendleft(number)
            return
        self._owner._count("n_lost")
        piece = self._pieces[number]
        if self._tries[number] >= MAX_ATTEMPTS:
            times = f"{MAX_ATTEMPTS} times"
            self._give_up(number, "worker lost", f"lost its worker {times}", event.why)
        elif not self._owner.charge(cost(piece.parts, self._owner._problem.size)):
            self._give_up(
                number,
                "worker lost",
                "lost its worker and `max_queries` leaves nothing for another attempt",
                event.why,
            )
        else:
            self._owner._count("n_retried")
            LOGGER.warning(
                "A worker was lost%s; its piece of work is done again (attempt %d).",
                printable(f" ({event.why})" if event.why else ""),
                self._tries[number] + 1,
            )
            self._waiting.appendleft(number)

    def _patience(self) -> float:
        timeout = self._owner._timeout
        if timeout is None:
            return HEARTBEAT
        longest = max((self._seconds(attempt) for attempt in self._began), default=0.0)
        return min(max(timeout - longest, 0.01), HEARTBEAT)

    def _end_overdue(self) -> None:
        timeout = self._owner._timeout
        if timeout is None:
            return
        for attempt in list(self._began):
            allowed = timeout + (0 if attempt in self._running else self._owner._start)
            if self._seconds(attempt) >= allowed:
                self._pool.stop(attempt)
                self._time_out(attempt, timeout)

    def _time_out(self, attempt: int, timeout: float) -> None:
        del self._began[attempt]
        self._owner._count("n_timeouts")
        happened = f"took longer than timeout={timeout:g} seconds"
        for number in self._pieces_of[attempt]:
            self._give_up(number, "timeout", happened, "")

    def _give_up(self, number: int, kind: str, happened: str, why: str) -> None:
        """Let the values of a piece be unknown, and say why."""
        self._open.discard(number)
        piece, size = self._pieces[number], self._owner._problem.size
        for part, place in zip(piece.parts, piece.places, strict=True):
            for what, indices in (
                (self._loss, part.losses),
                ("constraint", part.constraints),
            ):
                if not len(indices):
                    continue
                x = self._owner._problem.unscaled(part.points(size)[:1])[0]
                because = f" ({why})" if why else ""
                cure = (
                    "Allow more seconds, or smaller pieces: in_pieces(...)."
                    if kind == "timeout"
                    else "Call your function at this x: it may end the whole process."
                )
                failure = Failure(
                    kind=kind,
                    what=what,
                    index=int(indices[0]),
                    iteration=part.iteration,
                    x=x,
                    message=f"{_named(what, indices)} {happened}{because} {part.when}, "
                    f"x = {shown(x)}. {cure}",
                )
                self._assembly.note(place, failure)

    @property
    def _loss(self) -> str:
        return "loss" if self._owner._problem.size.n_losses > 1 else "objective"


def _bundle_size(
    n_pieces: int,
    n_slots: int,
    seconds: float | None,
    bundle: float,
    least_rounds: int = 1,
) -> int:
    """Return how many pieces share a message, so that workers have as many each.

    While pieces are quick, messages would cost more than the work; while they are not,
    each goes alone, so that little is lost with a worker. Where some pieces take much
    longer than others, a worker gets its share in some rounds.
    """
    if seconds is None or seconds >= bundle:
        return 1
    each = -(-n_pieces // n_slots)
    most = max(int(4 * bundle / max(seconds, 1e-9)), 1)
    n_rounds = -(-each // most)
    return -(-each // max(n_rounds, least_rounds)) or 1
