"""Workers that are threads of this process and share the problem."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from dszog.contract import Query
from dszog.problem import Problem
from dszog.workers._supervisor import Done, FuturePool, Supervised, WorkerLost
from dszog.workers.base import Workers, answer
from dszog.workers.processes import count_workers

AHEAD = 10_000  # pieces that may wait


class Threads(Workers):
    """Workers that are threads of this process.

    For functions that wait, or that let go of Python's lock while they compute. The
    functions are called from several threads at once.

    Parameters
    ----------
    n_workers : int, optional
        How many; without it, one for each processor that may be used.
    """

    def __init__(self, n_workers: int | None = None) -> None:
        self.n_workers = count_workers("Threads", n_workers)

    def __repr__(self) -> str:
        return f"Threads({self.n_workers})"

    def open(self, problem: Problem, timeout: float | None = None) -> Supervised:
        """Return an evaluator of this problem."""
        return Supervised(problem, _ThreadPool(problem, self.n_workers))


class _ThreadPool(FuturePool):
    def __init__(self, problem: Problem, n_workers: int) -> None:
        super().__init__()
        problem.prepare()
        self._executor = ThreadPoolExecutor(n_workers, thread_name_prefix="dszog")
        self._problem = problem
        self._n_workers = n_workers
        self._under_way: dict[int, Future[Any]] = {}

    @property
    def n_slots(self) -> int:
        return self._n_workers

    def room(self, n_waiting: int) -> int:
        return AHEAD - len(self._under_way)

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        future = self._executor.submit(answer, self._problem, parts)
        self._under_way[attempt] = future
        self._watch(attempt, future)

    def _heed(self, attempt: int, future: Future[Any]) -> None:
        if self._under_way.pop(attempt, None) is None:
            return
        if (error := future.exception()) is None:
            self.done_by("threads", Done(attempt, future.result()))
        elif isinstance(error, Exception):
            self._events.append(WorkerLost(attempt, f"{type(error).__name__}: {error}"))
        else:
            raise error  # a wish to leave

    def stop(self, attempt: int) -> None:
        """Do nothing: a thread cannot be ended, and no timeout is accepted."""

    def forget(self) -> None:
        self._events.clear()
        under_way, self._under_way = self._under_way, {}
        for future in under_way.values():
            future.cancel()

    def close(self) -> None:
        self.forget()
        self._executor.shutdown(wait=True, cancel_futures=True)
