"""Pieces of work as calls of actors in the workers of a Dask cluster.

A call goes to its worker and back: no task graph, no state of the scheduler, and
nothing that the scheduler would run again when a worker is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from dszog.contract import Query
from dszog.errors import EvaluationError
from dszog.run.accounting import Traffic
from dszog.workers._supervisor import Begun, Done, Lost
from dszog.workers._wire import pack_parts
from dszog.workers._work import ended_after, received, refuse_if_unusable, work_on

LOOK_EVERY = 2.0  # seconds after which the workers are counted again
LOOK_SOON = 0.2  # seconds after which workers are looked for while some are missing
PATIENCE = 100.0  # seconds without any worker
START = 30.0  # seconds for an actor to be there
MAX_BAD_STARTS = 5  # actors in a row that fail before they are there


class Seat:
    """An actor: it unpacks the problem once, then answers piece after piece."""

    def __init__(self, name: str, n_threads: int) -> None:
        self._name = name
        self._parcel = b""
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix="dszog")

    async def load(self, parcel: bytes) -> None:
        """Take the problem, to be unpacked by the first who needs it."""
        self._parcel = parcel

    async def work(self, message: bytes, timeout: float | None) -> bytes:
        """Evaluate a piece in a thread, as the worker has other things to do."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self._work, message, timeout)

    def _work(self, message: bytes, timeout: float | None) -> bytes:
        with ended_after(timeout):
            return work_on(self._name, self._parcel, message)


@dataclass(eq=False)
class _Worker:
    address: str
    n_threads: int
    future: Any  # of its actor
    since: float
    start: Any = None  # what waits for the actor to be there
    is_ready: bool = False
    attempts: set[int] = field(default_factory=set)  # under way there


@dataclass(frozen=True)
class _Ready:
    worker: _Worker


@dataclass(frozen=True)
class _Returned:
    worker: _Worker
    attempt: int
    returned: bytes | BaseException


class ActorPool:
    """The workers that a client knows, with an actor in each."""

    bundle = 0.1

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
        self._workers: dict[str, _Worker] = {}
        self._n_started = 0  # actors
        self._news: queue.SimpleQueue[_Ready | _Returned] = queue.SimpleQueue()
        self._look_at = 0.0  # when to count the workers again
        self._n_most = 0  # threads that there were
        self._alone_since: float | None = None
        self._n_bad_starts = 0
        self._events: list[Begun | Done | Lost] = []
        self.traffic = Traffic()

    # ------------------------------------------------------------------- the workers

    @property
    def n_slots(self) -> int:
        """Threads of all workers, as last seen."""
        self._look()
        return max(sum(one.n_threads for one in self._workers.values()), 1)

    def _look(self) -> None:
        """Start an actor in each worker that has none; let go of who is gone."""
        now = time.monotonic()
        if now < self._look_at:
            return
        threads = self._client.nthreads()
        self._heal(len(threads))
        for worker in list(self._workers.values()):
            if worker.address not in threads:
                self._drop(worker, "the worker is gone")
            elif not worker.is_ready and now - worker.since > START:
                self._drop(worker, f"not there after {START:g} seconds")
        for address, n_threads in threads.items():
            if address not in self._workers:
                self._start(address, n_threads)
        n_threads = sum(threads.values())
        self._n_most = max(self._n_most, n_threads)
        missing = n_threads < self._n_most or not threads
        self._look_at = now + (LOOK_SOON if missing else LOOK_EVERY)
        self._alone_since = None if threads else self._alone_since or now
        if self._alone_since is not None and now - self._alone_since > PATIENCE:
            raise EvaluationError(
                f"The Dask cluster had no worker for {PATIENCE:.0f} seconds. Look at "
                "its log, or use evaluator='processes'."
            )

    def _start(self, address: str, n_threads: int) -> None:
        self._n_started += 1
        self._count(bytes_problem=len(self._parcel))
        future = self._client.submit(
            Seat,
            self._name,
            n_threads,
            actor=True,
            workers=[address],
            key=f"{self._name}-{self._n_started}",
            pure=False,
            retries=0,
        )
        worker = _Worker(address, n_threads, future, time.monotonic())
        self._workers[address] = worker
        self._client.loop.add_callback(self._welcome, worker)

    async def _welcome(self, worker: _Worker) -> None:
        """Say when the actor is there; calls that wait for it say if it fails."""
        with contextlib.suppress(Exception, asyncio.CancelledError):
            await self._actor(worker)
            self._news.put(_Ready(worker))

    async def _actor(self, worker: _Worker) -> Any:
        """Return the actor of a worker, when it is there and has the problem."""
        if worker.start is None:
            worker.start = asyncio.ensure_future(self._prepared(worker))
        return await worker.start

    async def _prepared(self, worker: _Worker) -> Any:
        with self._client.as_current():
            actor = await worker.future
            await _call(actor, "load", self._parcel)
        return actor

    # ---------------------------------------------------------------------- the work

    def room(self, n_waiting: int) -> int:
        """Return how many pieces to hand out: one to each thread.

        None waits at a worker: who is to blame for its end is known then.
        """
        self._look()
        return sum(_free(worker) for worker in self._workers.values())

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        """Send a piece to the worker with the most threads that do nothing."""
        message = pack_parts(parts)
        self._count(bytes_sent=len(message))
        worker = max(self._workers.values(), key=_free)
        worker.attempts.add(attempt)
        if worker.is_ready:
            self._events.append(Begun(attempt))
        self._client.loop.add_callback(self._ask, worker, attempt, message)

    async def _ask(self, worker: _Worker, attempt: int, message: bytes) -> None:
        returned: bytes | BaseException
        try:
            actor = await self._actor(worker)
            with self._client.as_current():
                returned = await _call(actor, "work", message, self._timeout)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  (any of Dask)
            returned = error
        self._news.put(_Returned(worker, attempt, returned))

    def wait(self, seconds: float) -> Sequence[Begun | Done | Lost]:
        """Return what happened."""
        self._look()
        until_look = max(self._look_at - time.monotonic(), 0.01)
        patience = 0.0 if self._events else min(seconds, until_look)
        with contextlib.suppress(queue.Empty):
            self._heed(self._news.get(timeout=patience))
            while True:
                self._heed(self._news.get_nowait())
        events, self._events = self._events, []
        return events

    def _heed(self, news: _Ready | _Returned) -> None:
        worker = news.worker
        if isinstance(news, _Ready):
            worker.is_ready = True
            self._n_bad_starts = 0
            self._events += [Begun(attempt) for attempt in worker.attempts]
        elif news.attempt in worker.attempts:  # else nobody waits for it any more
            worker.attempts.discard(news.attempt)
            if isinstance(news.returned, bytes):
                self._count(bytes_received=len(news.returned))
                self._events.append(received(news.attempt, news.returned))
            else:
                self._mourn(worker, news.attempt, news.returned)

    def _mourn(self, worker: _Worker, attempt: int, error: BaseException) -> None:
        """Let go of a worker whose actor does not answer."""
        refuse_if_unusable(error)
        self._forget_worker(worker)
        why = f"{type(error).__name__}: {error}"[:500]
        if not worker.is_ready:
            self._n_bad_starts += 1
            if self._n_bad_starts >= MAX_BAD_STARTS:
                raise EvaluationError(
                    f"Actors in {MAX_BAD_STARTS} workers of Dask in a row did not "
                    f"start, the last one so: {why}. Look at Dask's log, or use "
                    "evaluator='processes'."
                )
        self._events.append(Lost(attempt, why, started=worker.is_ready))

    def _drop(self, worker: _Worker, why: str) -> None:
        waiting, worker.attempts = worker.attempts, set()
        self._forget_worker(worker)
        for attempt in waiting:
            self._mourn(worker, attempt, ConnectionError(why))

    def _forget_worker(self, worker: _Worker) -> None:
        if self._workers.get(worker.address) is worker:
            del self._workers[worker.address]
        self._look_at = min(self._look_at, time.monotonic() + LOOK_SOON)

    def stop(self, attempt: int) -> None:
        """Let go of the worker that is at this attempt; it ends itself."""
        for worker in list(self._workers.values()):
            if attempt in worker.attempts:
                worker.attempts.discard(attempt)
                self._forget_worker(worker)

    def forget(self) -> None:
        """Wait for no answer any more."""
        self._events.clear()
        for worker in self._workers.values():
            worker.attempts.clear()

    def close(self) -> None:
        """Let go of the actors, and of the problem with them."""
        self.forget()
        self._workers.clear()

    def _count(self, **more: int) -> None:
        known = {name: getattr(self.traffic, name) + n for name, n in more.items()}
        self.traffic = replace(self.traffic, **known)


async def _call(actor: Any, method: str, *arguments: Any) -> Any:
    """Return what a method of an actor returns.

    Calling it as usual would do the same, but for a worker that is lost: it would wait
    for the actor to come back, which it never does, or call it a second time.
    """
    from distributed.protocol import to_serialize

    answer = await actor._worker_rpc.actor_execute(
        function=method,
        actor=actor.key,
        args=[to_serialize(argument) for argument in arguments],
        kwargs={},
    )
    if answer["status"] != "OK":
        raise answer["exception"]
    return answer["result"]


def _free(worker: _Worker) -> int:
    return worker.n_threads - len(worker.attempts)
