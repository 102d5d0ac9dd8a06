"""Runs units, here or on workers, and keeps each record as soon as it is there."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any

from dszog.errors import EvaluationError
from dszog_paper.protocol import Unit
from dszog_paper.runner import run_unit
from dszog_paper.store import Store

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Report = Callable[[Unit, dict[str, Any]], None]


def execute(
    units: Sequence[Unit],
    store: Store,
    *,
    data: str | None = None,
    jobs: int = 1,
    client: Any = None,
    report: Report | None = None,
) -> None:
    """Run every unit that has no record yet, and call `report` with each that has now.

    The real data sets are in the folder `data`. Runs are made by `jobs` processes, or
    on the Dask cluster of a `client`, all of whose machines see that folder.
    """
    todo = [unit for unit in units if store.get(unit) is None]

    def keep(unit: Unit, record: dict[str, Any]) -> None:
        store.put(unit, record)
        if report is not None:
            report(unit, record)

    if client is not None:
        _on_cluster(client, todo, data, keep)
    elif jobs == 1:
        for unit in todo:
            keep(unit, run_unit(unit, data))
    else:
        _on_processes(todo, data, jobs, keep)


def _on_processes(
    todo: Sequence[Unit], data: str | None, jobs: int, keep: Report
) -> None:
    with _one_thread_each():
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
        try:
            futures = {pool.submit(run_unit, unit, data): unit for unit in todo}
            for future in as_completed(futures):
                keep(futures[future], future.result())
        except BrokenProcessPool as error:
            raise _lost("A process", error) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()


def _on_cluster(
    client: Any, todo: Sequence[Unit], data: str | None, keep: Report
) -> None:
    from distributed import KilledWorker
    from distributed import as_completed as completed

    futures = {
        client.submit(run_unit, unit, data, key=f"dszog-{unit.key}"): unit
        for unit in todo
    }
    try:
        for future in completed(list(futures)):
            keep(futures[future], future.result())
    except (CancelledError, KilledWorker) as error:
        raise _lost("The Dask cluster, or a part of it,", error) from None


def _lost(what: str, error: BaseException) -> EvaluationError:
    return EvaluationError(
        f"dszog paper: {what} was lost in the middle of a run ({error}). What was "
        "finished is kept: see that there is memory enough, and call again with the "
        "same --output to go on."
    )


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Let each process use one thread: they would only get in each other's way."""
    before = {name: os.environ[name] for name in ONE_THREAD if name in os.environ}
    os.environ.update(dict.fromkeys(ONE_THREAD, "1"))
    try:
        yield
    finally:
        for name in ONE_THREAD:
            del os.environ[name]
        os.environ.update(before)
