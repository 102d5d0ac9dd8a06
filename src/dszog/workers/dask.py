"""Workers of a Dask cluster: the user's, or one of this machine."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from dszog.contract.validation import shown
from dszog.errors import InputTypeError, MissingExtraError
from dszog.problem import Problem
from dszog.workers._actors import ActorPool
from dszog.workers._supervisor import Supervised
from dszog.workers._worker import Actor, pickle_problem
from dszog.workers.base import Workers
from dszog.workers.processes import count_workers

SILENCE = "30s"  # after which the scheduler of our own cluster gives a worker up
MAX_CALLS = 400  # at a time: each holds a connection, of which Dask has 512
START = 30.0  # seconds for an actor to be there,
SLOWEST = 1e6  # and for the problem to get there, at so many bytes a second


class Dask(Workers):
    """Workers of a Dask cluster.

    Each worker gets an actor, which has the problem, lasts as long as the run and
    answers without the detour of a task; Dask makes no call again by itself. At most
    400 calls are under way at a time, however many threads the cluster has.

    Parameters
    ----------
    client : distributed.Client, optional
        Of a cluster whose workers can import dszog. Without it a cluster of processes
        is started on this machine, reachable from this machine only, at the first run;
        ``close()`` ends it.
    n_workers : int, optional
        Of a cluster that is started here; one for each processor if not given.
    """

    can_stop = hasattr(signal, "setitimer")

    def __init__(self, client: Any = None, *, n_workers: int | None = None) -> None:
        if client is not None and not hasattr(client, "scatter"):
            raise InputTypeError(
                f"Dask: `client` must be a distributed.Client, got {shown(client)}. "
                "Pass Client(address), or nothing for a cluster of this machine."
            )
        self.n_workers = count_workers("Dask", n_workers)
        self._client = client
        self._ours: list[Any] = []  # what close() has to close, in that order

    def __repr__(self) -> str:
        return f"Dask({self._client!r})"

    def open(self, problem: Problem, timeout: float | None = None) -> Supervised:
        """Return an evaluator of this problem."""
        pickled = pickle_problem(problem)
        if self._client is None:
            self._start()
        pool = _DaskPool(self._client, pickled, timeout, self._heal)
        return Supervised(problem, pool, timeout)

    def _heal(self, n_workers: int) -> None:
        """Start workers that our own cluster has given up for good."""
        if self._ours and n_workers < self.n_workers:
            self._ours[1].scale(self.n_workers)

    def _start(self) -> None:
        try:
            import dask
            from distributed import Client, LocalCluster
        except ImportError as error:
            raise MissingExtraError.of(
                'evaluator="dask"', "dask.distributed", "dask"
            ) from error
        settings = {
            "distributed.scheduler.allowed-failures": 0,  # we retry
            "distributed.scheduler.work-stealing": False,
            "distributed.scheduler.worker-ttl": SILENCE,
            "distributed.worker.profile.enabled": False,  # it samples all the time
            "distributed.logging.distributed": "critical",
        }
        with dask.config.set(settings):
            cluster = LocalCluster(
                n_workers=self.n_workers,
                threads_per_worker=1,
                processes=True,
                host="127.0.0.1",
                dashboard_address=None,
                silence_logs=50,
            )
            # It can reach its workers: calls need not go by way of the scheduler.
            self._client = Client(cluster, set_as_default=False, direct_to_workers=True)
        self._ours = [self._client, cluster]

    def close(self) -> None:
        """End the cluster if it was started here; the user's is the user's."""
        while self._ours:
            self._ours.pop(0).close()
            self._client = None


class _DaskActor(Actor):
    """An actor with as many threads as its worker, which has other things to do."""

    def __init__(self, n_threads: int, timeout: float | None) -> None:
        super().__init__(b"", timeout)
        self._threads = ThreadPoolExecutor(n_threads, thread_name_prefix="dszog")

    async def load(self, pickled: bytes) -> None:
        """Take the problem, to be unpickled by the first who needs it."""
        self._pickled = pickled

    async def ask(self, message: bytes) -> bytes:
        """Return the answer to a piece, which a thread makes."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, self.work, message)


class _DaskPool(ActorPool):
    """The workers that a client knows, each a place for an actor."""

    cluster = "Dask"
    notices_losses = False  # not those of a worker that is stopped

    def __init__(
        self,
        client: Any,
        pickled: bytes,
        timeout: float | None,
        heal: Callable[[int], None],
    ) -> None:
        super().__init__(pickled, timeout)
        self._client = client
        self._heal = heal

    def _find_places(self) -> dict[str, int]:
        threads: dict[str, int] = self._client.nthreads()
        self._heal(len(threads))
        self.start_patience = START + len(threads) * len(self._pickled) / SLOWEST
        places, n_left = {}, MAX_CALLS
        for address, n_threads in threads.items():
            if n_left:
                places[address] = min(n_threads, n_left)
                n_left -= places[address]
        return places

    def _start_actor(self, place: str, n_threads: int) -> tuple[Any, Future[Any]]:
        future = self._client.submit(
            _DaskActor,
            n_threads,
            self._timeout,
            actor=True,
            workers=[place],
            key=f"dszog-{secrets.token_hex(8)}",
            pure=False,
            retries=0,
        )
        ready = self._in_loop(self._prepared(future))
        return (future, ready), ready

    async def _prepared(self, future: Any) -> Any:
        actor = await future
        await _call(actor, "load", self._pickled)
        return actor

    def _ask(self, actor: Any, message: bytes) -> Future[bytes]:
        _, ready = actor

        async def asked() -> Any:
            there = await asyncio.shield(asyncio.wrap_future(ready))
            return await _call(there, "ask", message)

        return self._in_loop(asked())

    def _in_loop(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        async def done() -> Any:
            with self._client.as_current():
                return await work

        return asyncio.run_coroutine_threadsafe(done(), self._client.loop.asyncio_loop)

    def _end_actor(self, actor: Any) -> None:
        """Do nothing: Dask ends an actor that nobody refers to."""


async def _call(actor: Any, method: str, argument: bytes) -> Any:
    """Return what a method of an actor returns.

    Calling it as usual would do the same, but for a worker that is lost: it would wait
    for the actor to come back, which it never does, or call it a second time.
    """
    from distributed.protocol import to_serialize

    answer = await actor._worker_rpc.actor_execute(
        function=method, actor=actor.key, args=[to_serialize(argument)], kwargs={}
    )
    if answer["status"] != "OK":
        raise answer["exception"]
    return answer["result"]
