"""Runs units, here or on workers, and keeps each record as soon as it is there."""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeAlias

from dszog.cli.files import write_whole
from dszog.errors import EvaluationError
from dszog_paper.protocol import Unit
from dszog_paper.runner import run_unit

ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Made: TypeAlias = tuple[Unit, dict[str, Any]]  # a unit and its record


class RecordFolder:
    """A folder of records, a file for each unit that was run; it is made if needed.

    A file appears whole or not at all, so that a run may be killed at any moment.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._read: dict[Unit, dict[str, Any]] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, unit: Unit) -> Path:
        return self.folder / f"{unit.key}.json"

    def get(self, unit: Unit) -> dict[str, Any] | None:
        """Return the record; None if there is none, or none that can be used."""
        if unit in self._read:
            return self._read[unit]
        try:
            record: Any = json.loads(self.path(unit).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        if not isinstance(record, dict) or record.get("unit") != unit.as_json():
            return None
        self._read[unit] = record
        return record

    def put(self, unit: Unit, record: dict[str, Any]) -> None:
        write_whole(self.path(unit), json.dumps(record).encode())


def execute(
    units: Sequence[Unit], store: RecordFolder, *, data: str | None, jobs: int
) -> Generator[Unit, None, None]:
    """Run units by `jobs` processes; yield each when its record is kept.

    The real data sets are in the folder `data`. Closed early, it begins no more runs.
    """
    made = _on_processes(units, data, jobs) if jobs > 1 else _here(units, data)
    for unit, record in made:
        store.put(unit, record)
        yield unit


def _here(units: Sequence[Unit], data: str | None) -> Iterator[Made]:
    return ((unit, run_unit(unit, data)) for unit in units)


def _on_processes(units: Sequence[Unit], data: str | None, jobs: int) -> Iterator[Made]:
    with _one_thread_each():
        pool = ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))
        try:
            futures = {pool.submit(run_unit, unit, data): unit for unit in units}
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool as error:
            raise EvaluationError(
                f"dszog paper: a process was lost in the middle of a run ({error}). "
                "What was finished is kept: see that there is memory enough, and call "
                "again with the same --output to go on."
            ) from None
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


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
