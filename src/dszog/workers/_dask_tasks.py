"""Pieces of work as tasks of a Dask cluster, for clusters of many threads."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import secrets
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from dszog.contract import Query
from dszog.errors import EvaluationError
from dszog.run.accounting import Traffic
from dszog.workers._supervisor import Begun, Done, Lost
from dszog.workers._wire import pack_parts
from dszog.workers._work import (
    ended_after,
    received,
    refuse_if_unusable,
    work_on,
)

LOOK_EVERY = 5.0  # seconds after which the workers are counted again
MAX_WAITS = 20  # attempts at sending the problem, some seconds each
SEND_PATIENCE = 15.0  # seconds for one of them
SLOWEST = 1e6  # bytes a second, at least
SHORT = 8192  # bytes of an answer that goes with an event; schedulers keep 1,000


def scatter(client: Any, parcel: bytes, heal: Callable[[int], None]) -> Any:
    """Send the problem to the workers; wait for some if none is there."""
    patience = SEND_PATIENCE + len(parcel) / SLOWEST
    for _ in range(MAX_WAITS):
        # By way of the scheduler, which knows who is there, and with a deadline.
        sending = client.scatter(
            parcel,
            broadcast=True,
            hash=False,
            direct=False,
            timeout=LOOK_EVERY,
            asynchronous=True,
        )
        loop = client.loop.asyncio_loop
        try:
            return asyncio.run_coroutine_threadsafe(sending, loop).result(patience)
        except Exception:  # noqa: BLE001  (no worker, or one that went just now)
            time.sleep(0.5)
            heal(len(client.nthreads()))
    raise EvaluationError(
        f"The Dask cluster had no worker that took the problem in {MAX_WAITS} "
        "attempts. Look at its log, or use evaluator='processes'."
    )


def run_piece(
    name: str, parcel: bytes, message: bytes, attempt: int, timeout: float | None
) -> bytes:
    """Evaluate a piece in a Dask worker, and say that it was begun.

    A short answer goes with an event: a result would have to be asked for, which takes
    longer than all else. It is nothing then.
    """
    from distributed import get_worker

    worker = get_worker()
    worker.log_event(name, (attempt, None))
    with ended_after(timeout):
        returned = work_on(name, parcel, message)
    if len(returned) > SHORT:
        return returned
    worker.log_event(name, (attempt, returned))
    return b""


def forget_events(name: str, dask_scheduler: Any = None) -> None:
    """Have the scheduler drop the events of a run, of which it keeps some."""
    broker = getattr(dask_scheduler, "_broker", None)
    if broker is not None:
        broker.truncate(name)


class TaskPool:
    """The workers that a client knows, which get their work from its scheduler."""

    def __init__(
        self,
        client: Any,
        parcel: bytes,
        timeout: float | None,
        heal: Callable[[int], None],
    ) -> None:
        self._client = client
        self._heal = heal
        self._parcel = parcel
        self._timeout = timeout
        self._name = f"dszog-{secrets.token_hex(8)}"
        self._scattered: Any = None
        # What was begun; what was answered; or the number of one that ended.
        self._news: queue.Queue[Begun | tuple[int, bytes] | int] = queue.Queue()
        self._outgoing: dict[int, bytes] = {}  # not sent yet
        self._under_way: dict[int, Any] = {}
        self._begun: Counter[int] = Counter()  # how often each attempt was begun
        self._n_slots, self._looked = 1, -LOOK_EVERY
        self._traffic = Traffic()
        client.subscribe_topic(self._name, self._hear)

    def _hear(self, event: Any) -> None:
        attempt, returned = event[1]
        if returned is None:
            self._begun[attempt] += 1
            self._news.put(Begun(attempt))
        else:
            self._news.put((attempt, returned))

    @property
    def traffic(self) -> Traffic:
        """The bytes, and how often the scheduler ran what it was to run once."""
        again = sum(n - 1 for n in list(self._begun.values()))
        return replace(self._traffic, n_duplicate=again)

    bundle = 0.05

    @property
    def n_slots(self) -> int:
        """Threads of all workers, as last seen."""
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY:
            self._looked = now
            threads = self._client.nthreads()
            self._heal(len(threads))
            self._n_slots = max(sum(threads.values()), 1)
        return self._n_slots

    def room(self, n_waiting: int) -> int:
        """Return how many tasks to hand out: enough to keep workers busy.

        With a timeout none waits at a worker, as its time would run there.
        """
        ahead = 1 if self._timeout is not None else 2
        return ahead * self.n_slots - len(self._under_way) - len(self._outgoing)

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        """Have a task handed out with those that come next."""
        message = pack_parts(parts)
        self._count(bytes_sent=len(message))
        self._outgoing[attempt] = message

    def _send(self) -> None:
        """Hand out tasks at once: a client lets messages in a row wait for others."""
        if self._scattered is None or self._scattered.status != "finished":
            self._scattered = scatter(self._client, self._parcel, self._heal)
            self._count(bytes_problem=len(self._parcel))
        sent, self._outgoing = self._outgoing, {}
        n = len(sent)
        futures = self._client.map(
            run_piece,
            [self._name] * n,
            [self._scattered] * n,
            list(sent.values()),
            list(sent),
            [self._timeout] * n,
            key=[f"{self._name}-{attempt}" for attempt in sent],
            pure=False,
            retries=0,
        )
        for attempt, future in zip(sent, futures, strict=True):
            self._under_way[attempt] = future
            future.add_done_callback(partial(self._note_end, attempt))

    def _note_end(self, attempt: int, _: Any) -> None:
        self._news.put(attempt)

    def wait(self, seconds: float) -> Sequence[Begun | Done | Lost]:
        """Return what happened."""
        if self._outgoing:
            self._send()
        news = []
        with contextlib.suppress(queue.Empty):
            news.append(self._news.get(timeout=seconds))
            while True:
                news.append(self._news.get_nowait())
        events: list[Begun | Done | Lost] = []
        for one in news:
            if isinstance(one, Begun):
                events.append(one)
            elif isinstance(one, tuple):
                if self._under_way.pop(one[0], None) is not None:
                    events.append(self._answer(*one))
            elif (future := self._under_way.pop(one, None)) is not None:
                event = self._event(one, future)
                events += [] if event is None else [event]
        return events

    def _event(self, attempt: int, future: Any) -> Done | Lost | None:
        from distributed import TimeoutError as OutOfTime

        if future.status == "error":
            error = future.exception()
            refuse_if_unusable(error)
            return Lost(attempt, f"{type(error).__name__}: {error}"[:500])
        try:
            # A result whose worker is gone is computed again: wait for that elsewhere.
            returned = future.result(timeout=1.0) if not future.cancelled() else None
        except OutOfTime:
            self._under_way[attempt] = future
            self._news.put(attempt)
            return None
        except Exception as error:  # noqa: BLE001  (of the cluster: the piece is lost)
            return Lost(attempt, f"{type(error).__name__}: {error}"[:500])
        if returned is None:
            return Lost(attempt, "the task was cancelled", started=False)
        if not returned:
            return Lost(attempt, "its answer did not arrive")
        return self._answer(attempt, returned)

    def _answer(self, attempt: int, returned: bytes) -> Done:
        self._count(bytes_received=len(returned))
        return received(attempt, returned)

    def stop(self, attempt: int) -> None:
        """Cancel the task; a worker that is at it ends itself."""
        self._outgoing.pop(attempt, None)
        future = self._under_way.pop(attempt, None)
        if future is not None:
            future.cancel(force=True)

    def forget(self) -> None:
        """Cancel all tasks."""
        self._outgoing.clear()
        under_way, self._under_way = self._under_way, {}
        for future in under_way.values():
            future.cancel(force=True)

    def close(self) -> None:
        """Cancel what is under way and drop the problem."""
        self.forget()
        with contextlib.suppress(ValueError):
            self._client.unsubscribe_topic(self._name)
        with contextlib.suppress(Exception):  # it would be some megabytes at most
            self._client.run_on_scheduler(forget_events, self._name)
        self._scattered = None

    def _count(self, **more: int) -> None:
        known = {name: getattr(self._traffic, name) + n for name, n in more.items()}
        self._traffic = replace(self._traffic, **known)
