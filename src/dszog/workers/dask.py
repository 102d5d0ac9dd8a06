"""Workers of a Dask cluster: the user's, or one of this machine."""

from __future__ import annotations

import signal
from typing import Any

from dszog.contract.validation import check_count, shown
from dszog.errors import InputTypeError, MissingExtraError
from dszog.problem import Problem
from dszog.workers._dask_actors import ActorPool
from dszog.workers._dask_tasks import TaskPool
from dszog.workers._parcel import pack_problem
from dszog.workers._supervisor import Supervised
from dszog.workers.processes import n_processors

SILENCE = "30s"  # after which the scheduler of our own cluster gives a worker up
MANY_THREADS = 300  # of a cluster: a call to an actor holds a connection, of some 500
MANY_BYTES = 2**30  # of the problem, to all workers: these had better pass it on


class Dask:
    """Workers of a Dask cluster.

    Each worker gets an actor, which has the problem, lasts as long as the run and
    answers without the detour of a task. In a cluster of very many threads, or for a
    very large problem, the problem is scattered, and the pieces are tasks. Dask runs a
    task again by itself when a worker is lost, and may run again what was finished;
    this is counted in ``result.costs.traffic.n_duplicate``, and no answer is used
    twice.

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
        if n_workers is None:
            n_workers = n_processors()
        self.n_workers = check_count("Dask", "n_workers", n_workers)
        self._client = client
        self._ours: list[Any] = []  # what close() has to close, in that order

    def __repr__(self) -> str:
        return f"Dask({self._client!r})"

    def open(self, problem: Problem, timeout: float | None = None) -> Supervised:
        """Return an evaluator of this problem."""
        parcel = pack_problem(problem)
        if self._client is None:
            self._start()
        threads = self._client.nthreads()
        is_small = (
            sum(threads.values()) <= MANY_THREADS
            and len(parcel) * len(threads) <= MANY_BYTES
        )
        kind = ActorPool if is_small else TaskPool
        pool = kind(self._client, parcel, timeout, self._heal)
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
