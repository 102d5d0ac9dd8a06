"""Workers answer queries: hand out pieces, take each answer once, replace the lost."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dszog._validation import shown
from dszog.evaluators._chunks import Assembly, Piece, cut
from dszog.evaluators.base import _named
from dszog.problem import Problem
from dszog.query import Cost, Failure, Query, Reply, cost

HEARTBEAT = 0.5  # seconds after which a wait looks around, whatever happens
MAX_ATTEMPTS = 6  # at one piece; if workers live for 20 calls on average, 3 are too few


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What went between a run and its workers."""

    n_pieces: int = 0  # that were answered
    n_retried: int = 0  # attempts made because a worker was lost
    n_lost: int = 0  # attempts that were lost with their worker
    n_timeouts: int = 0  # attempts that were ended because they took too long
    n_duplicate: int = 0  # executions beyond those ordered and answers to them; unused
    n_late: int = 0  # answers to what nobody waited for any more; unused
    bytes_sent: int = 0  # pieces of work, without the problem
    bytes_received: int = 0
    bytes_problem: int = 0  # the problem, sent once to each worker


@dataclass(frozen=True)
class Done:
    """An attempt that was answered."""

    attempt: int
    replies: Sequence[Reply]


@dataclass(frozen=True)
class Lost:
    """An attempt that will not be answered."""

    attempt: int
    why: str
    started: bool = True  # whether user code may have run


class Pool(Protocol):
    """Workers that hold one problem."""

    @property
    def traffic(self) -> Traffic:
        """The bytes, and executions that nobody ordered."""
        ...

    def room(self) -> int:
        """Return how many more attempts can be handed out now."""
        ...

    def submit(self, attempt: int, piece: Piece) -> None:
        """Have a piece evaluated; does not wait."""
        ...

    def wait(self, seconds: float) -> Sequence[Done | Lost]:
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
    """

    def __init__(
        self, problem: Problem, pool: Pool, timeout: float | None = None
    ) -> None:
        self._problem = problem
        self._pool = pool
        self._timeout = timeout
        self._traffic = Traffic()
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
        self._piece_of: dict[int, int] = {}  # of every attempt at this batch
        self._answered: set[int] = set()  # pieces
        self._began: dict[int, float] = {}  # of the attempts under way

    def run(self) -> tuple[Reply, ...]:
        """Hand out pieces and take answers until nothing is open."""
        while self._open:
            while self._waiting and self._pool.room() > 0:
                self._hand_out(self._waiting.popleft())
            for event in self._pool.wait(self._patience()):
                if isinstance(event, Done):
                    self._take(event)
                else:
                    self._lose(event)
            self._end_overdue()
        return self._assembly.replies()

    def _hand_out(self, number: int) -> None:
        attempt = self._owner._next_attempt()
        self._piece_of[attempt] = number
        self._began[attempt] = time.monotonic()
        self._tries[number] += 1
        self._pool.submit(attempt, self._pieces[number])

    def _take(self, event: Done) -> None:
        self._began.pop(event.attempt, None)
        number = self._piece_of.get(event.attempt)
        if number in self._open:
            self._open.discard(number)
            if number in self._waiting:  # it was given up for lost, and was not
                self._waiting.remove(number)
            self._answered.add(number)
            self._assembly.put(self._pieces[number], event.replies)
            self._owner._count("n_pieces")
        elif number in self._answered:
            self._owner._count("n_duplicate")
        else:
            self._owner._count("n_late")

    def _lose(self, event: Lost) -> None:
        is_known = self._began.pop(event.attempt, None) is not None
        number = self._piece_of.get(event.attempt)
        if not is_known or number is None or number not in self._open:
            return
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
            self._waiting.appendleft(number)

    def _patience(self) -> float:
        timeout = self._owner._timeout
        if timeout is None or not self._began:
            return HEARTBEAT
        first = min(self._began.values()) + timeout
        return min(max(first - time.monotonic(), 0.0), HEARTBEAT)

    def _end_overdue(self) -> None:
        timeout = self._owner._timeout
        if timeout is None:
            return
        now = time.monotonic()
        for attempt, began in list(self._began.items()):
            if now - began < timeout:
                continue
            del self._began[attempt]
            self._pool.stop(attempt)
            self._owner._count("n_timeouts")
            happened = f"took longer than timeout={timeout:g} seconds"
            self._give_up(self._piece_of[attempt], "timeout", happened, "")

    def _give_up(self, number: int, kind: str, happened: str, why: str) -> None:
        """Let the values of a piece be unknown, and say why."""
        self._open.discard(number)
        piece = self._pieces[number]
        for part, place in zip(piece.parts, piece.places, strict=True):
            for what, indices in (
                (self._loss, part.losses),
                ("constraint", part.constraints),
            ):
                if not len(indices):
                    continue
                x = self._owner._problem.unscaled(part.rows[:1])[0]
                when = (
                    f"at iteration {part.iteration}"
                    if part.iteration >= 0
                    else "in the check of the result"
                )
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
                    message=f"{_named(what, indices)} {happened}{because} {when}, "
                    f"x = {shown(x)}. {cure}",
                )
                self._assembly.note(place, failure)

    @property
    def _loss(self) -> str:
        return "loss" if self._owner._problem.size.n_losses > 1 else "objective"
