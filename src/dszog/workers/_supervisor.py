"""Workers answer queries: hand out pieces, take each answer once, replace the lost.

Written by hand: the pools of the standard library, loky and joblib lose results that
are finished when one worker dies.
"""

from __future__ import annotations

import itertools
import math
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from dszog._log import LOGGER
from dszog.contract import Cost, Query, Reply, cost
from dszog.contract.validation import printable
from dszog.errors import EvaluationError
from dszog.problem import Problem
from dszog.run.accounting import Traffic
from dszog.workers._chunks import Assembly, Piece, cut
from dszog.workers._worker import INTERRUPTED, unpack_answer
from dszog.workers.base import failure_of

START = 30.0  # seconds for a worker to begin, where it does not say when it does
HEARTBEAT = 0.5  # seconds after which a wait looks around, whatever happens
MAX_BAD_STARTS = 5  # workers in a row that end before they are ready
MAX_NAMED = 100  # workers, those that are gone among them
MAX_ATTEMPTS = 6  # at one piece; if workers live for 20 calls on average, 3 are too few


class Begun(NamedTuple):
    """An attempt that a worker has taken up."""

    attempt: int


class Done(NamedTuple):
    """An attempt that was answered."""

    attempt: int
    replies: Sequence[Reply]
    seconds: float = 0.0  # that the worker was at it


class WorkerLost(NamedTuple):
    """An attempt that will not be answered."""

    attempt: int
    why: str
    started: bool = True  # whether user code may have run


Event: TypeAlias = Begun | Done | WorkerLost


def received(attempt: int, returned: bytes) -> Done:
    """Return what a worker sent, in the process that asked for it."""
    if returned == INTERRUPTED:
        raise KeyboardInterrupt
    return Done(attempt, *unpack_answer(returned))


class Pool(ABC):
    """Workers that hold one problem."""

    bundle = 0.0  # pieces that take fewer seconds share a message; 0: none does

    def __init__(self) -> None:
        self.traffic = Traffic()
        self._events: list[Event] = []  # not told of yet
        self._n_bad_starts = 0  # in a row
        self.done: dict[str, tuple[int, float]] = {}  # by worker: answers, seconds

    def count(self, **more: int) -> None:
        known = {name: getattr(self.traffic, name) + n for name, n in more.items()}
        self.traffic = replace(self.traffic, **known)

    def done_by(self, worker: str, done: Done) -> None:
        """Take an answer, for which a worker gets the credit."""
        n_answers, seconds = self.done.get(worker, (0, 0.0))
        self.done[worker] = n_answers + 1, seconds + done.seconds
        if len(self.done) > MAX_NAMED:
            del self.done[next(iter(self.done))]
        self._events.append(done)

    def _note_bad_start(self, message: str) -> None:
        """Raise if too many workers in a row ended before they were ready."""
        self._n_bad_starts += 1
        if self._n_bad_starts >= MAX_BAD_STARTS:
            raise EvaluationError(f"{MAX_BAD_STARTS} workers {message}")

    def _take_events(self) -> Sequence[Event]:
        events, self._events = self._events, []
        return events

    @property
    @abstractmethod
    def n_slots(self) -> int:
        """How many pieces can be worked at, at the same time."""

    @abstractmethod
    def room(self, n_waiting: int) -> int:
        """Return how many attempts to hand out now, if so many pieces wait."""

    @abstractmethod
    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        """Have the parts of some pieces evaluated; does not wait."""

    @abstractmethod
    def wait(self, seconds: float) -> Sequence[Event]:
        """Return what happened, after so many seconds if nothing did."""

    @abstractmethod
    def stop(self, attempt: int) -> None:
        """End the worker that is at this attempt; nothing more is heard of it."""

    @abstractmethod
    def forget(self) -> None:
        """Drop all attempts: nobody waits for them any more."""

    @abstractmethod
    def close(self) -> None:
        """Let all workers go."""


class Supervised:
    """An evaluator whose pieces of work are done by a pool.

    A piece is given up after `timeout` seconds; before it says that it has begun, a
    worker may take `start` seconds more.
    """

    def __init__(
        self,
        problem: Problem,
        pool: Pool,
        timeout: float | None = None,
        start: float | None = None,
    ) -> None:
        self.problem = problem
        self.pool = pool
        self.timeout = timeout
        self.start = START if start is None else start
        self.seconds: float | None = None  # that a piece takes, about
        self.attempts = itertools.count(1)  # numbers, one for each of all iterations
        self.charge: Callable[[Cost], bool] = lambda _: True

    @property
    def traffic(self) -> Traffic:
        return self.pool.traffic

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        """Return one reply per query, whatever becomes of the workers."""
        try:
            return _Batch(self, cut(self.problem, queries), queries).run()
        except BaseException:  # Ctrl-C above all
            self.pool.forget()
            raise

    def close(self) -> None:
        self.pool.close()


class _Batch:
    """The pieces of one iteration, until all are answered or given up."""

    def __init__(
        self, owner: Supervised, pieces: list[Piece], queries: Sequence[Query]
    ) -> None:
        self._owner = owner
        self._pool = owner.pool
        self._timeout = math.inf if owner.timeout is None else owner.timeout
        self._pieces = pieces
        self._assembly = Assembly(queries)
        self._waiting = deque(range(len(pieces)))
        self._open = set(range(len(pieces)))
        self._tries = [0] * len(pieces)
        self._answered: set[int] = set()  # pieces
        self._pieces_of: dict[int, list[int]] = {}  # of every attempt at this batch
        self._began: dict[int, float] = {}  # when attempts under way were handed out
        self._running: set[int] = set()  # of these; taken up since they began
        self._size = _bundle_size(
            len(pieces),
            owner.pool.n_slots,
            owner.seconds if owner.timeout is None else None,
            owner.pool.bundle,
        )

    def run(self) -> tuple[Reply, ...]:
        """Hand out pieces and take answers until nothing is open."""
        while self._open:
            while self._waiting and self._pool.room(len(self._waiting)) > 0:
                self._hand_out()
            for event in self._pool.wait(self._patience()):
                if isinstance(event, Done):
                    self._take(event)
                elif event.attempt not in self._began:
                    continue
                elif isinstance(event, WorkerLost):
                    self._lose(event)
                else:
                    self._began[event.attempt] = time.monotonic()
                    self._running.add(event.attempt)
            self._end_overdue()
        return self._assembly.replies()

    def _hand_out(self) -> None:
        """Send the first pieces that wait; what was lost once goes alone."""
        numbers = [self._waiting.popleft()]
        while (
            len(numbers) < self._size
            and self._waiting
            and not self._tries[numbers[0]]
            and not self._tries[self._waiting[0]]
        ):
            numbers.append(self._waiting.popleft())
        attempt = next(self._owner.attempts)
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
            self._pool.count(n_late=1)
            return
        seconds = event.seconds / len(numbers)  # a running mean, which decides no bit
        known = self._owner.seconds
        self._owner.seconds = 0.8 * (known or seconds) + 0.2 * seconds
        replies = iter(event.replies)
        for number in numbers:
            own = [next(replies) for _ in self._pieces[number].parts]
            if number in self._open:
                self._open.discard(number)
                if number in self._waiting:  # it was given up for lost, and was not
                    self._waiting.remove(number)
                self._answered.add(number)
                self._assembly.put(self._pieces[number], own)
                self._pool.count(n_pieces=1)
            elif number in self._answered:
                self._pool.count(n_duplicate=1)
            else:
                self._pool.count(n_late=1)

    def _lose(self, event: WorkerLost) -> None:
        if event.started and self._seconds(event.attempt) >= self._timeout:
            self._time_out(event.attempt)  # its worker ended itself
            return
        del self._began[event.attempt]
        for number in reversed(self._pieces_of[event.attempt]):
            if number in self._open:
                self._lose_piece(number, event)

    def _seconds(self, attempt: int) -> float:
        """Return for how long an attempt is under way, as far as is known."""
        return time.monotonic() - self._began[attempt]

    def _lose_piece(self, number: int, event: WorkerLost) -> None:
        if not event.started:
            self._tries[number] -= 1
            self._waiting.appendleft(number)
            return
        self._pool.count(n_lost=1)
        because = f" ({event.why})" if event.why else ""
        price = cost(self._pieces[number].parts, self._owner.problem.size)
        if self._tries[number] >= MAX_ATTEMPTS:
            happened = f"lost its worker {MAX_ATTEMPTS} times{because}"
        elif not self._owner.charge(price):
            happened = (
                "lost its worker and `max_queries` leaves nothing for another attempt"
                f"{because}"
            )
        else:
            self._pool.count(n_retried=1)
            LOGGER.warning(
                "A worker was lost%s; its piece of work is done again (attempt %d).",
                printable(because),
                self._tries[number] + 1,
            )
            self._waiting.appendleft(number)
            return
        cure = "Call your function at this x: it may end the whole process."
        self._give_up(number, "worker lost", happened, cure)

    def _patience(self) -> float:
        longest = max(map(self._seconds, self._began), default=0.0)
        return min(max(self._timeout - longest, 0.01), HEARTBEAT)

    def _end_overdue(self) -> None:
        for attempt in list(self._began):
            start = 0.0 if attempt in self._running else self._owner.start
            if self._seconds(attempt) >= self._timeout + start:
                self._pool.stop(attempt)
                self._time_out(attempt)

    def _time_out(self, attempt: int) -> None:
        del self._began[attempt]
        self._pool.count(n_timeouts=1)
        happened = f"took longer than timeout={self._timeout:g} seconds"
        cure = "Allow more seconds, or smaller pieces: in_pieces(...)."
        for number in self._pieces_of[attempt]:
            self._give_up(number, "timeout", happened, cure)

    def _give_up(self, number: int, kind: str, happened: str, cure: str) -> None:
        """Let the values of a piece be unknown, and say why."""
        self._open.discard(number)
        problem, piece = self._owner.problem, self._pieces[number]
        for part, place in zip(piece.parts, piece.places, strict=True):
            x = problem.unscaled(part.points(problem.size)[:1])[0]
            loss = "loss" if problem.size.n_losses > 1 else "objective"
            asked = (loss, part.losses), ("constraint", part.constraints)
            for what, indices in asked:
                if len(indices):
                    about = problem, part, kind, what, indices, x, happened, cure
                    self._assembly.note(place, failure_of(*about))


def _bundle_size(
    n_pieces: int, n_slots: int, seconds: float | None, bundle: float
) -> int:
    """Return how many pieces share a message, so that workers have as many each."""
    # While pieces are quick, messages would cost more than the work; while they are
    # not, each goes alone, so that little is lost with a worker.
    if seconds is None or seconds >= bundle:
        return 1
    each = -(-n_pieces // n_slots)
    most = max(int(4 * bundle / max(seconds, 1e-9)), 1)
    n_rounds = -(-each // most)
    return -(-each // max(n_rounds, 1)) or 1
