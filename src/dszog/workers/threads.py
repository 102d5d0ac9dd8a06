"""Workers that are threads of this process and share the problem."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from dszog.contract import Query, Reply
from dszog.problem import Problem
from dszog.workers._chunks import Assembly, cut
from dszog.workers.base import Workers, answer
from dszog.workers.processes import count_workers


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

    def open(self, problem: Problem, timeout: float | None = None) -> _Threaded:
        """Return an evaluator of this problem."""
        return _Threaded(problem, self.n_workers)


class _Threaded:
    """An evaluator whose pieces of work are done by a pool of threads."""

    def __init__(self, problem: Problem, n_workers: int) -> None:
        self._problem = problem
        self._executor = ThreadPoolExecutor(n_workers, thread_name_prefix="dszog")

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        self._problem.prepare()  # once, before threads; not if nothing is asked
        pieces, assembly = cut(self._problem, queries), Assembly(queries)
        submit = self._executor.submit
        futures = [submit(answer, self._problem, piece.parts) for piece in pieces]
        try:
            for piece, future in zip(pieces, futures, strict=True):
                assembly.put(piece, future.result())
        except BaseException:  # Ctrl-C above all
            for future in futures:
                future.cancel()
            raise
        return assembly.replies()

    def close(self) -> None:
        self._executor.shutdown(wait=True, cancel_futures=True)
