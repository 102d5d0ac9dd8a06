"""Workers of any `concurrent.futures.Executor`, and threads."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from typing import Any

from dszog.contract import Query
from dszog.errors import EvaluationError, InputError
from dszog.problem import Problem
from dszog.workers._messages import pack_parts
from dszog.workers._supervisor import Done, FuturePool, Supervised, WorkerLost, received
from dszog.workers._worker import pickle_problem, work_on
from dszog.workers.base import Workers, answer
from dszog.workers.processes import count_workers

AHEAD = 10_000  # pieces that may wait in an executor


class OnExecutor(Workers):
    """The workers of an executor of the user's, who also shuts it down.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Threads share the problem. To other workers it is sent when they do not have it
        yet. An executor that breaks when a worker is lost, such as
        ``ProcessPoolExecutor``, stays broken: use ``"processes"`` where that may be.
    """

    def __init__(self, executor: Executor) -> None:
        self._executor = executor

    def __repr__(self) -> str:
        return f"OnExecutor({type(self._executor).__name__})"

    def open(self, problem: Problem, timeout: float | None = None) -> Supervised:
        """Return an evaluator of this problem."""
        try:
            self._executor.submit(int)
        except RuntimeError as error:
            raise InputError(
                f"minimize: the executor given as `evaluator` takes no work: {error}. "
                "Give one that is neither shut down nor broken."
            ) from error
        if isinstance(self._executor, ThreadPoolExecutor):
            return Supervised(problem, _ThreadPool(self._executor, problem))
        return Supervised(problem, _ExecutorPool(self._executor, problem))


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
        executor = ThreadPoolExecutor(self.n_workers, thread_name_prefix="dszog")
        return Supervised(problem, _ThreadPool(executor, problem, is_ours=True))


class _ThreadPool(FuturePool):
    """Threads that share the problem."""

    def __init__(
        self, executor: Executor, problem: Problem, *, is_ours: bool = False
    ) -> None:
        super().__init__()
        self._executor = executor
        self._problem = problem
        self._is_ours = is_ours
        self._under_way: dict[int, Future[Any]] = {}

    @property
    def n_slots(self) -> int:
        return int(
            getattr(self._executor, "_max_workers", None) or count_workers("Threads")
        )

    def room(self, n_waiting: int) -> int:
        return AHEAD - len(self._under_way)

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        self._start(attempt, answer, self._problem, parts)

    def _start(self, attempt: int, function: Any, *arguments: Any) -> None:
        future: Future[Any]
        try:
            future = self._executor.submit(function, *arguments)
        except BrokenExecutor as error:  # a worker ended, as a function may have it do
            future = Future()
            future.set_exception(error)
        except RuntimeError as error:
            raise EvaluationError(
                f"The executor takes no more work: {error}. Shut it down after the run "
                "only."
            ) from error
        self._under_way[attempt] = future
        self._watch(attempt, future)

    def _heed(self, attempt: int, future: Future[Any]) -> None:
        if self._under_way.pop(attempt, None) is None:
            return
        if future.cancelled():
            self._events.append(WorkerLost(attempt, "it was cancelled", started=False))
        elif (error := future.exception()) is None:
            self._take(attempt, future.result())
        elif isinstance(error, Exception):
            self._events.append(WorkerLost(attempt, f"{type(error).__name__}: {error}"))
        else:
            raise error  # a wish to leave

    def _take(self, attempt: int, returned: Any) -> None:
        self._events.append(Done(attempt, returned))

    def stop(self, attempt: int) -> None:
        """Do nothing: a thread cannot be ended, and no timeout is accepted."""

    def forget(self) -> None:
        self._events.clear()
        under_way, self._under_way = self._under_way, {}
        for future in under_way.values():
            future.cancel()

    def close(self) -> None:
        self.forget()
        if self._is_ours:
            self._executor.shutdown(wait=True, cancel_futures=True)


class _ExecutorPool(_ThreadPool):
    """Workers somewhere, which get the problem when they say that they need it."""

    bundle = 0.005

    def __init__(self, executor: Executor, problem: Problem) -> None:
        super().__init__(executor, problem)
        self._pickled = pickle_problem(problem)
        self._name = secrets.token_hex(8)
        self._messages: dict[int, bytes] = {}

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        """Send a piece, in the hope that the worker has the problem."""
        message = self._messages[attempt] = pack_parts(parts)
        self.count(bytes_sent=len(message))
        self._start(attempt, work_on, self._name, None, message)

    def _heed(self, attempt: int, future: Future[Any]) -> None:
        super()._heed(attempt, future)
        if attempt not in self._under_way:
            self._messages.pop(attempt, None)

    def _take(self, attempt: int, returned: Any) -> None:
        if returned is None:  # it needs the problem
            message = self._messages[attempt]
            self.count(bytes_problem=len(self._pickled), bytes_sent=len(message))
            self._start(attempt, work_on, self._name, self._pickled, message)
            return
        self.count(bytes_received=len(returned))
        self._events.append(received(attempt, returned))

    def forget(self) -> None:
        super().forget()
        self._messages.clear()
