"""Pieces of work as calls of actors in the workers of a cluster.

An actor has the problem and lasts as long as the run. A call goes to its worker and
back, and the cluster makes none again by itself when a worker is lost.
"""

from __future__ import annotations

import contextlib
import queue
import time
from abc import abstractmethod
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from typing import Any

from dszog.contract import Query
from dszog.errors import DszogError, EvaluationError
from dszog.workers._supervisor import Begun, Event, Pool, WorkerLost, received
from dszog.workers._worker import pack_parts

LOOK_EVERY = 2.0  # seconds after which the workers are counted again
LOOK_SOON = 0.2  # seconds after which workers are looked for while some are missing
PATIENCE = 100.0  # seconds without any worker


@dataclass(eq=False)
class _Running:
    """An actor, in the process that has it started."""

    place: str
    actor: Any
    since: float = field(default_factory=time.monotonic)
    is_ready: bool = False
    attempts: set[int] = field(default_factory=set)  # under way there


class ActorPool(Pool):
    """One actor at each place of a cluster, started when it is needed."""

    bundle = 0.1
    cluster: str  # its name
    notices_losses: bool  # whether each call of a worker that is lost fails soon
    start_patience: float  # seconds for an actor to be there

    def __init__(self, pickled: bytes, timeout: float | None) -> None:
        super().__init__()
        self._pickled = pickled
        self._timeout = timeout
        self._places: dict[str, int] = {}
        self._actors: dict[str, _Running] = {}  # by place
        self._look_at = 0.0  # when to count the places again
        self._n_most = 0  # pieces that could be worked at
        self._alone_since: float | None = None
        self._finished: queue.SimpleQueue[tuple[Any, Future[Any]]] = queue.SimpleQueue()

    @abstractmethod
    def _find_places(self) -> dict[str, int]:
        """Return where an actor can be, and how many pieces each works at there."""

    @abstractmethod
    def _start_actor(self, place: str, n_threads: int) -> tuple[Any, Future[Any]]:
        """Return a new actor, and what is done when it is there."""

    @abstractmethod
    def _ask(self, actor: Any, message: bytes) -> Future[bytes]:
        """Have an actor answer, as soon as it is there."""

    @abstractmethod
    def _end_actor(self, actor: Any) -> None:
        """Let go of an actor, and end its process if it is its own."""

    @property
    def n_slots(self) -> int:
        self._look()
        return max(sum(self._places.values()), 1)

    def room(self, n_waiting: int) -> int:
        """Return how many pieces to hand out: one to each thread."""
        self._look()
        return sum(map(self._free, self._places))

    def _free(self, place: str) -> int:
        actor = self._actors.get(place)
        return self._places[place] - (0 if actor is None else len(actor.attempts))

    def _look(self) -> None:
        """Let go of actors that are gone, and see where others could be."""
        now = time.monotonic()
        if now < self._look_at:
            return
        self._places = self._find_places()
        for actor in list(self._actors.values()):
            if actor.place not in self._places and not self.notices_losses:
                self._give_up(actor, "the worker is gone")
            elif not actor.is_ready and now - actor.since > self.start_patience:
                self._give_up(actor, f"not there after {self.start_patience:g} seconds")
        n_slots = sum(self._places.values())
        self._n_most = max(self._n_most, n_slots)
        is_missing = n_slots < self._n_most or not n_slots
        self._look_at = now + (LOOK_SOON if is_missing else LOOK_EVERY)
        self._alone_since = None if n_slots else self._alone_since or now
        if self._alone_since is not None and now - self._alone_since > PATIENCE:
            raise EvaluationError(
                f"The {self.cluster} cluster had no worker for {PATIENCE:.0f} "
                "seconds. Look at its log, or use evaluator='processes'."
            )

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        """Send a piece to the actor with the most threads that do nothing."""
        message = pack_parts(parts)
        place = max(
            self._places, key=lambda one: (self._free(one), one in self._actors)
        )
        running = self._actors.get(place) or self._start(place)
        running.attempts.add(attempt)
        if running.is_ready:
            self._events.append(Begun(attempt))
        self.count(bytes_sent=len(message))
        self._watch((running, attempt), self._ask(running.actor, message))

    def _start(self, place: str) -> _Running:
        actor, ready = self._start_actor(place, self._places[place])
        running = self._actors[place] = _Running(place, actor)
        self.count(bytes_problem=len(self._pickled))
        self._watch((running, None), ready)
        return running

    def wait(self, seconds: float) -> Sequence[Event]:
        self._look()
        until_look = max(self._look_at - time.monotonic(), 0.01)
        patience = 0.0 if self._events else min(seconds, until_look)
        with contextlib.suppress(queue.Empty):
            self._heed(*self._finished.get(timeout=patience))
            while True:
                self._heed(*self._finished.get_nowait())
        return self._take_events()

    def _watch(self, key: Any, future: Future[Any]) -> None:
        future.add_done_callback(lambda done: self._finished.put((key, done)))

    def _heed(self, key: Any, future: Future[Any]) -> None:
        """Take note of a future that was watched and is done."""
        running, attempt = key
        error = CancelledError() if future.cancelled() else future.exception()
        if attempt is None:
            if error is None:  # else the calls that wait for the actor fail too
                running.is_ready = True
                self._n_bad_starts = 0
                self._events += map(Begun, running.attempts)
        elif attempt in running.attempts:  # else nobody waits for it any more
            running.attempts.discard(attempt)
            if error is None:
                returned = future.result()
                self.count(bytes_received=len(returned))
                self.done_by(running.place, received(attempt, returned))
            else:
                self._lose(running, attempt, error)

    def _lose(self, running: _Running, attempt: int, error: BaseException) -> None:
        """Let go of an actor that does not answer."""
        _refuse_if_unusable(getattr(error, "cause", None) or error)
        self._retire(running)
        text = str(error).strip().split("\n")[0]
        why = f"{type(error).__name__}: {text}"[:500]
        if not running.is_ready:
            self._note_bad_start(
                f"of {self.cluster} in a row ended before they had begun, the last one "
                f"so: {why}. Look at its log, or use evaluator='processes'."
            )
        self._events.append(WorkerLost(attempt, why, started=running.is_ready))

    def _give_up(self, running: _Running, why: str) -> None:
        self._retire(running)
        while running.attempts:
            self._lose(running, running.attempts.pop(), ConnectionError(why))

    def _retire(self, running: _Running) -> None:
        """Give an actor no more work; other calls of it may still be answered."""
        # Its place is left alone until the next look: its worker may be about to end.
        if self._actors.get(running.place) is running:
            del self._actors[running.place]
            self._places.pop(running.place, None)
            self._end_actor(running.actor)
        self._look_at = min(self._look_at, time.monotonic() + LOOK_SOON)

    def stop(self, attempt: int) -> None:
        """Let go of the actor that is at this attempt; its process ends itself."""
        for running in list(self._actors.values()):
            if attempt in running.attempts:
                running.attempts.discard(attempt)
                self._retire(running)

    def forget(self) -> None:
        self._events.clear()
        for running in [one for one in self._actors.values() if one.attempts]:
            running.attempts.clear()
            self._retire(running)

    def close(self) -> None:
        self.forget()
        for running in list(self._actors.values()):
            self._retire(running)


def _refuse_if_unusable(error: BaseException) -> None:
    """Raise where the workers of a cluster cannot unpickle the problem at all."""
    if isinstance(error, (ImportError, AttributeError)):
        raise DszogError(
            f"The problem cannot be unpacked in a worker: {type(error).__name__}: "
            f"{error}. Make dszog and the modules of your functions importable there."
        ) from error
