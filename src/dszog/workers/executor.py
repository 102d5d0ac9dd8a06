"""Workers of any `concurrent.futures.Executor`, and threads."""

from __future__ import annotations

import contextlib
import queue
import secrets
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from dszog.contract import Query
from dszog.contract.validation import check_count
from dszog.errors import EvaluationError, InputError
from dszog.problem import Problem
from dszog.run.accounting import Traffic
from dszog.workers._parcel import pack_problem
from dszog.workers._supervisor import Done, Lost, Supervised
from dszog.workers._wire import pack_parts
from dszog.workers._work import received, work_if_known, work_on
from dszog.workers.base import answer
from dszog.workers.processes import n_processors

AHEAD = 10_000  # pieces that may wait in an executor


class OnExecutor:
    """The workers of an executor of the user's, who also shuts it down.

    Parameters
    ----------
    executor : concurrent.futures.Executor
        Threads share the problem. To other workers it is sent when they do not have it
        yet. An executor that breaks when a worker is lost, such as
        ``ProcessPoolExecutor``, stays broken: use ``"processes"`` where that may be.
    """

    can_stop = False

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
            return Supervised(problem, ThreadPool(self._executor, problem))
        return Supervised(problem, ExecutorPool(self._executor, problem))

    def close(self) -> None:
        """Do nothing: the executor is the user's."""


class Threads:
    """Workers that are threads of this process.

    For functions that wait, or that let go of Python's lock while they compute. The
    functions are called from several threads at once.

    Parameters
    ----------
    n_workers : int, optional
        How many; without it, one for each processor that may be used.
    """

    can_stop = False

    def __init__(self, n_workers: int | None = None) -> None:
        if n_workers is None:
            n_workers = n_processors()
        self.n_workers = check_count("Threads", "n_workers", n_workers)

    def __repr__(self) -> str:
        return f"Threads({self.n_workers})"

    def open(self, problem: Problem, timeout: float | None = None) -> Supervised:
        """Return an evaluator of this problem."""
        executor = ThreadPoolExecutor(self.n_workers, thread_name_prefix="dszog")
        return Supervised(problem, ThreadPool(executor, problem, is_ours=True))

    def close(self) -> None:
        """Do nothing: the threads end with the run they work for."""


class ThreadPool:
    """Threads that share the problem."""

    def __init__(
        self, executor: Executor, problem: Problem, *, is_ours: bool = False
    ) -> None:
        self._executor = executor
        self._problem = problem
        self._is_ours = is_ours
        self._finished: queue.Queue[tuple[int, Future[Any]]] = queue.Queue()
        self._under_way: dict[int, Future[Any]] = {}
        self.bundle = 0.0
        self.n_slots = int(getattr(executor, "_max_workers", None) or n_processors())
        self.traffic = Traffic()

    def room(self, n_waiting: int) -> int:
        """Return how many more pieces may wait in the executor."""
        return AHEAD - len(self._under_way)

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        """Put a piece into the executor's own queue."""
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
        future.add_done_callback(lambda done: self._finished.put((attempt, done)))

    def wait(self, seconds: float) -> Sequence[Done | Lost]:
        """Return what happened."""
        events: list[Done | Lost] = []
        finished = []
        with contextlib.suppress(queue.Empty):
            finished.append(self._finished.get(timeout=seconds))
            while True:
                finished.append(self._finished.get_nowait())
        for attempt, future in finished:
            if self._under_way.pop(attempt, None) is not None:
                events += self._event(attempt, future)
        return events

    def _event(self, attempt: int, future: Future[Any]) -> list[Done | Lost]:
        if future.cancelled():
            return [Lost(attempt, "it was cancelled", started=False)]
        error = future.exception()
        if error is None:
            return [self._done(attempt, future.result())]
        if not isinstance(error, Exception):
            raise error  # a wish to leave
        return [Lost(attempt, f"{type(error).__name__}: {error}")]

    def _done(self, attempt: int, returned: Any) -> Done:
        return Done(attempt, returned)

    def stop(self, attempt: int) -> None:
        """Do nothing: a thread cannot be ended, and no timeout is accepted."""

    def forget(self) -> None:
        """Take what has not begun out of the queue."""
        under_way, self._under_way = self._under_way, {}
        for future in under_way.values():
            future.cancel()

    def close(self) -> None:
        """Let the threads end after what they are at."""
        self.forget()
        if self._is_ours:
            self._executor.shutdown(wait=True, cancel_futures=True)


class ExecutorPool(ThreadPool):
    """Workers somewhere, which get the problem when they say that they need it."""

    def __init__(self, executor: Executor, problem: Problem) -> None:
        super().__init__(executor, problem)
        self.bundle = 0.005
        self._parcel = pack_problem(problem)
        self._name = secrets.token_hex(8)
        self._messages: dict[int, bytes] = {}

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        """Send a piece, in the hope that the worker has the problem."""
        message = pack_parts(parts)
        self._messages[attempt] = message
        self._count(bytes_sent=len(message))
        self._start(attempt, work_if_known, self._name, message)

    def _event(self, attempt: int, future: Future[Any]) -> list[Done | Lost]:
        needs_problem = (
            not future.cancelled()
            and future.exception() is None
            and future.result() is None
        )
        message = self._messages.pop(attempt)
        if needs_problem:
            self._messages[attempt] = message
            self._count(bytes_problem=len(self._parcel), bytes_sent=len(message))
            self._start(attempt, work_on, self._name, self._parcel, message)
            return []
        return super()._event(attempt, future)

    def _done(self, attempt: int, returned: Any) -> Done:
        self._count(bytes_received=len(returned))
        return received(attempt, returned)

    def forget(self) -> None:
        """Take what has not begun out of the queue."""
        super().forget()
        self._messages.clear()

    def _count(self, **more: int) -> None:
        known = {name: getattr(self.traffic, name) + n for name, n in more.items()}
        self.traffic = replace(self.traffic, **known)
