"""Workers of a Ray cluster: the user's, or one of this machine."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from dszog.errors import EvaluationError, MissingExtraError
from dszog.problem import Problem
from dszog.workers._actors import ActorPool
from dszog.workers._supervisor import Supervised
from dszog.workers._worker import Actor, pickle_problem
from dszog.workers.base import Workers
from dszog.workers.processes import count_workers

ANYWHERE = ""  # the place of an actor in a cluster that has no processor yet


class Ray(Workers):
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
        self.n_workers = count_workers("Ray", n_workers)
        self._is_ours = False

    def __repr__(self) -> str:
        return f"Ray(n_workers={self.n_workers})"

    def open(self, problem: Problem, timeout: float | None = None) -> Supervised:
        """Return an evaluator of this problem."""
        pickled = pickle_problem(problem)
        ray = _ray()
        if not ray.is_initialized():
            self._start(ray)
        return Supervised(problem, _RayPool(ray, pickled, timeout), timeout)

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
    """Have a cluster that starts in the block listen on the loopback address only."""
    # Ray does so where it holds clusters of several machines for impossible. It is told
    # so by its environment, which it reads when it is imported, perhaps long ago.
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


class _RayPool(ActorPool):
    """The cluster this process is connected to: a place is a processor of a node.

    Actors keep their process for the length of a run: a call to one needs no scheduler.
    Ray asks for a processor to place one and for none to keep it, so two runs on one
    cluster share it and neither waits for the other.
    """

    cluster = "Ray"
    notices_losses = True
    start_patience = math.inf  # Ray may wait for a processor, or for a machine

    def __init__(self, ray: Any, pickled: bytes, timeout: float | None) -> None:
        super().__init__(pickled, timeout)
        self._ray = ray
        self._stored = ray.put(pickled)
        self._actor = ray.remote(max_restarts=0, max_task_retries=0)(Actor)

    def _find_places(self) -> dict[str, int]:
        """Return a place for each processor, first where most are left."""
        n_left = [
            (n - taken, f"{node['NodeID']} {taken}")
            for node in self._ray.nodes()
            if node["Alive"]
            for n in [int(node["Resources"].get("CPU", 0))]
            for taken in range(n)
        ]
        places = [place for _, place in sorted(n_left, reverse=True)]
        return dict.fromkeys(places or [ANYWHERE], 1)

    def _start_actor(self, place: str, n_threads: int) -> tuple[Any, Future[Any]]:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        settings: dict[str, Any] = {}
        if place != ANYWHERE:
            node = place.split()[0]
            strategy = NodeAffinitySchedulingStrategy(node, soft=True)
            settings["scheduling_strategy"] = strategy
        kind = self._actor.options(**settings)
        actor = kind.remote(self._stored, self._timeout)
        return actor, actor.begin.remote().future()

    def _ask(self, actor: Any, message: bytes) -> Future[bytes]:
        answer: Future[bytes] = actor.work.remote(message).future()
        return answer

    def _end_actor(self, actor: Any) -> None:
        with contextlib.suppress(ValueError, self._ray.exceptions.RayError):
            self._ray.kill(actor)
