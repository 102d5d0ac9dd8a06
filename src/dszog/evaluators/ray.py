"""Workers of a Ray cluster: the user's, or one of this machine."""

from __future__ import annotations

import contextlib
import secrets
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dszog._validation import check_count
from dszog.errors import MissingExtraError
from dszog.evaluators._chunks import Part
from dszog.evaluators._parcel import pack_problem
from dszog.evaluators._supervisor import Done, Lost, Supervised, Traffic
from dszog.evaluators._wire import pack_parts
from dszog.evaluators._work import (
    ended_after,
    received,
    refuse_if_unusable,
    work_on,
)
from dszog.evaluators.processes import n_processors
from dszog.problem import Problem

LOOK_EVERY = 5.0  # seconds after which the processors are counted again


class Ray:
    """Workers of the Ray cluster this process is connected to.

    The problem is put into Ray's store once. Ray's own retries are switched off for
    what is handed out here.

    Parameters
    ----------
    n_workers : int, optional
        Of a cluster of this machine, which is started at the first run if ``ray.init``
        was not called before; ``close()`` ends it. One for each processor if not given.
        Ray listens on all network addresses of the machine: call ``ray.init`` yourself,
        as its manual says, where this matters.
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
            ray.init(
                num_cpus=self.n_workers,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
                _node_ip_address="127.0.0.1",
            )
            self._is_ours = True
        return Supervised(problem, RayPool(ray, parcel, timeout), timeout)

    def close(self) -> None:
        """End the cluster if it was started here; the user's is the user's."""
        if self._is_ours:
            _ray().shutdown()
            self._is_ours = False


def _ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError(
            'evaluator="ray" needs Ray: pip install "dszog[ray]".'
        ) from error
    return ray


def run_piece(name: str, parcel: bytes, message: bytes, timeout: float | None) -> bytes:
    """Evaluate a piece in a Ray worker."""
    with ended_after(timeout):
        return work_on(name, parcel, message)


class RayPool:
    """The workers of the cluster this process is connected to."""

    def __init__(self, ray: Any, parcel: bytes, timeout: float | None) -> None:
        self._ray = ray
        self._timeout = timeout
        self._name = secrets.token_hex(8)
        self._parcel = ray.put(parcel)
        self._task = ray.remote(num_cpus=1, max_retries=0)(run_piece)
        self._under_way: dict[Any, int] = {}
        self._n_slots, self._looked = 1, -LOOK_EVERY
        self.traffic = Traffic(bytes_problem=len(parcel))

    bundle = 0.02

    @property
    def n_slots(self) -> int:
        """Processors of the cluster, as last seen."""
        now = time.monotonic()
        if now - self._looked > LOOK_EVERY:
            self._looked = now
            self._n_slots = max(int(self._ray.cluster_resources().get("CPU", 1)), 1)
        return self._n_slots

    def room(self, n_waiting: int) -> int:
        """Return how many tasks to hand out: enough to keep workers busy.

        With a timeout none waits for a worker, as its time would run there.
        """
        ahead = 1 if self._timeout is not None else 2
        return ahead * self.n_slots - len(self._under_way)

    def submit(self, attempt: int, parts: Sequence[Part]) -> None:
        """Hand out a task."""
        message = pack_parts(parts)
        self._count(bytes_sent=len(message))
        task = self._task.remote(self._name, self._parcel, message, self._timeout)
        self._under_way[task] = attempt

    def wait(self, seconds: float) -> Sequence[Done | Lost]:
        """Return what happened."""
        tasks = list(self._under_way)
        if not tasks:
            time.sleep(min(seconds, 0.05))
            return []
        done, _ = self._ray.wait(tasks, num_returns=1, timeout=seconds)
        if done:
            done, _ = self._ray.wait(tasks, num_returns=len(tasks), timeout=0)
        return [self._event(task, self._under_way.pop(task)) for task in done]

    def _event(self, task: Any, attempt: int) -> Done | Lost:
        try:
            returned = self._ray.get(task)
        except Exception as error:  # noqa: BLE001  (of the cluster: the piece is lost)
            refuse_if_unusable(getattr(error, "cause", None) or error)
            text = str(error).strip().split("\n")[0]
            return Lost(attempt, f"{type(error).__name__}: {text}"[:500])
        self._count(bytes_received=len(returned))
        return received(attempt, returned)

    def stop(self, attempt: int) -> None:
        """Have Ray end the worker that is at this attempt; it would do so itself."""
        for task in [
            one for one, number in self._under_way.items() if number == attempt
        ]:
            del self._under_way[task]
            self._cancel(task)

    def forget(self) -> None:
        """Cancel all tasks."""
        under_way, self._under_way = self._under_way, {}
        for task in under_way:
            self._cancel(task)

    def _cancel(self, task: Any) -> None:
        with contextlib.suppress(ValueError, self._ray.exceptions.RayError):
            self._ray.cancel(task, force=True)

    def close(self) -> None:
        """Cancel what is under way and drop the problem."""
        self.forget()
        self._parcel = None

    def _count(self, **more: int) -> None:
        known = {name: getattr(self.traffic, name) + n for name, n in more.items()}
        self.traffic = replace(self.traffic, **known)
