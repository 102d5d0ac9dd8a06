"""Workers of a Ray cluster: the user's, or one of this machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from dszog.contract import Query
from dszog.contract.validation import check_count
from dszog.errors import EvaluationError, MissingExtraError
from dszog.problem import Problem
from dszog.run.accounting import Traffic
from dszog.workers._parcel import pack_problem
from dszog.workers._supervisor import Begun, Done, Lost, Supervised
from dszog.workers._wire import pack_parts
from dszog.workers._work import (
    ended_after,
    received,
    refuse_if_unusable,
    work_on,
)
from dszog.workers.processes import n_processors

LOOK_EVERY = 5.0  # seconds after which the processors are counted again
MAX_BAD_STARTS = 5  # workers in a row that end before they have begun


class Ray:
    """Workers of the Ray cluster this process is connected to.

    The problem is put into Ray's store once. A worker is an actor that lasts as long as
    the run; one for each processor of the cluster. Ray's own retries are switched off.

    Parameters
    ----------
    n_workers : int, optional
        Of a cluster of this machine, which is started at the first run if ``ray.init``
        was not called before; ``close()`` ends it. One for each processor if not given.
        Such a cluster listens on the loopback address only.
    """

    can_stop = hasattr(signal, "setitimer")

    def __init__(self, *, n_workers: int | None = None) -> None:
        if n_workers is None:
            n_workers = n_processors()
        self.n_workers = check_count("Ray", "n_workers", n_workers)
        self._is_ours = False

    def __repr__(self) -> str:
        return f"Ray(n_workers={self.n_workers})"

    def open(self, problem: Problem, timeout: float | None = None) -> Supervised:
        """Return an evaluator of this problem."""
        parcel = pack_problem(problem)
        ray = _ray()
        if not ray.is_initialized():
            self._start(ray)
        return Supervised(problem, RayPool(ray, parcel, timeout), timeout)

    def _start(self, ray: Any) -> None:
        try:
            with _loopback_only():
                ray.init(
                    num_cpus=self.n_workers,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="ERROR",
                    configure_logging=False,
                    _node_ip_address="127.0.0.1",
                    _system_config={"worker_niceness": 0},  # as for other processes
                )
        except Exception as error:  # what Ray raises if it is too slow to start
            raise EvaluationError(
                f"Ray did not start: {type(error).__name__}: {error}. Look at its log, "
                "start it yourself (ray.init), or use evaluator='processes'."
            ) from error
        self._is_ours = True

    def close(self) -> None:
        """End the cluster if it was started here; the user's is the user's."""
        if self._is_ours:
            _ray().shutdown()
            self._is_ours = False


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError.of('evaluator="ray"', "Ray", "ray") from error
    return ray


@contextmanager
def _loopback_only() -> Iterator[None]:
    """Have a cluster that starts in the block listen on the loopback address only.

    Ray does so where it holds clusters of several machines for impossible. It is told
    so by its environment, which it reads when it is imported, perhaps long ago.
    """
    from ray._private import ray_constants

    name = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
    before = os.environ.get(name)
    known = getattr(ray_constants, "ENABLE_RAY_CLUSTER", None)
    os.environ[name] = "0"
    ray_constants.ENABLE_RAY_CLUSTER = False
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = known
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


class Seat:
    """One worker: it unpacks the problem once, then answers piece after piece."""

    def __init__(self, name: str, parcel: bytes) -> None:
        self._name = name
        self._parcel = parcel

    def begin(self) -> int:
        """Return the process that this is, now that it has begun."""
        return os.getpid()

    def work(self, message: bytes, timeout: float | None) -> bytes:
        """Evaluate a piece."""
        with ended_after(timeout):
            return work_on(self._name, self._parcel, message)


@dataclass(eq=False)
class _Worker:
    actor: Any
    node: str
    is_ready: bool = False
    attempt: int = 0  # that it is at; none has the number 0


class RayPool:
    """The workers of the cluster this process is connected to.

    They are actors, which keep their process for the length of a run: a call to one
    needs no scheduler. Ray asks for a processor to place one and for none to keep it,
    so two runs on one cluster share it and neither waits for the other.
    """

    def __init__(self, ray: Any, parcel: bytes, timeout: float | None) -> None:
        self._ray = ray
        self._timeout = timeout
        self._name = secrets.token_hex(8)
        self._parcel = ray.put(parcel)
        self._seat = ray.remote(max_restarts=0, max_task_retries=0)(Seat)
        self._workers: list[_Worker] = []
        self._starting: dict[Any, _Worker] = {}  # by what says that it has begun
        self._under_way: dict[Any, _Worker] = {}  # by what will be its answer
        self._nodes: dict[str, int] = {}  # and their processors
        self._n_bad_starts = 0
        self._looked = -LOOK_EVERY
        self.traffic = Traffic(bytes_problem=len(parcel))

    bundle = 0.1

    @property
    def n_slots(self) -> int:
        """Processors of the cluster, as last seen."""
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY:
            self._looked = now
            self._nodes = {
                node["NodeID"]: int(node["Resources"].get("CPU", 0))
                for node in self._ray.nodes()
                if node["Alive"]
            }
        return max(sum(self._nodes.values()), 1)

    def room(self, n_waiting: int) -> int:
        """Return how many tasks to hand out: one to each worker.

        None waits at a worker: who is to blame for its end is known then.
        """
        return self.n_slots - len(self._under_way)

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        """Hand out a task to a worker that has none."""
        message = pack_parts(parts)
        self._count(bytes_sent=len(message))
        free = [one for one in self._workers if not one.attempt]
        worker = free[0] if free else self._start_worker()
        worker.attempt = attempt
        self._under_way[worker.actor.work.remote(message, self._timeout)] = worker

    def _start_worker(self) -> _Worker:
        """Start a worker where most processors have none of ours."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        taken = Counter(worker.node for worker in self._workers)
        left = {node: n - taken[node] for node, n in self._nodes.items()}
        node = max(left, key=lambda one: left[one], default="")
        settings: dict[str, Any] = {}
        if node:
            settings["scheduling_strategy"] = NodeAffinitySchedulingStrategy(
                node, soft=True
            )
        actor = self._seat.options(**settings).remote(self._name, self._parcel)
        worker = _Worker(actor, node)
        self._workers.append(worker)
        self._starting[actor.begin.remote()] = worker
        return worker

    def wait(self, seconds: float) -> Sequence[Begun | Done | Lost]:
        """Return what happened."""
        tasks = [*self._starting, *self._under_way]
        if not tasks:
            time.sleep(min(seconds, 0.05))
            return []
        done, _ = self._ray.wait(tasks, num_returns=1, timeout=seconds)
        if done and len(tasks) > 1:
            done, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=0)
        events: list[Begun | Done | Lost] = []
        for task in done:
            if task in self._starting:
                events += self._begun(task, self._starting.pop(task))
        for task in done:
            if task in self._under_way:
                events.append(self._event(task, self._under_way.pop(task)))
        return events

    def _begun(self, task: Any, worker: _Worker) -> list[Begun]:
        try:
            self._ray.get(task)
        except self._ray.exceptions.RayError:
            return []  # as the answer to what it was given will say
        worker.is_ready = True
        self._n_bad_starts = 0
        return [Begun(worker.attempt)] if worker.attempt else []

    def _event(self, task: Any, worker: _Worker) -> Done | Lost:
        attempt, worker.attempt = worker.attempt, 0
        try:
            returned = self._ray.get(task)
        except self._ray.exceptions.RayActorError as error:
            self._workers.remove(worker)
            text = str(error).strip().split("\n")[0]
            if not worker.is_ready:
                self._note_bad_start(text)
            why = f"{type(error).__name__}: {text}"[:500]
            return Lost(attempt, why, started=worker.is_ready)
        except Exception as error:  # noqa: BLE001  (of the cluster: the piece is lost)
            refuse_if_unusable(getattr(error, "cause", None) or error)
            text = str(error).strip().split("\n")[0]
            return Lost(attempt, f"{type(error).__name__}: {text}"[:500])
        self._count(bytes_received=len(returned))
        return received(attempt, returned)

    def _note_bad_start(self, why: str) -> None:
        self._n_bad_starts += 1
        if self._n_bad_starts >= MAX_BAD_STARTS:
            raise EvaluationError(
                f"{MAX_BAD_STARTS} workers of Ray in a row ended before they had "
                f"begun, the last one so: {why[:300]}. Look at Ray's log, or use "
                "evaluator='processes'."
            )

    def stop(self, attempt: int) -> None:
        """Have Ray end the worker that is at this attempt; it would do so itself."""
        for worker in [one for one in self._workers if one.attempt == attempt]:
            self._drop(worker)

    def forget(self) -> None:
        """End the workers that are at something."""
        for worker in [one for one in self._workers if one.attempt]:
            self._drop(worker)

    def _drop(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        for waiting in (self._starting, self._under_way):
            for task in [task for task, who in waiting.items() if who is worker]:
                del waiting[task]
        with contextlib.suppress(ValueError, self._ray.exceptions.RayError):
            self._ray.kill(worker.actor)

    def close(self) -> None:
        """End all workers and drop the problem."""
        for worker in list(self._workers):
            self._drop(worker)
        self._parcel = None

    def _count(self, **more: int) -> None:
        known = {name: getattr(self.traffic, name) + n for name, n in more.items()}
        self.traffic = replace(self.traffic, **known)
