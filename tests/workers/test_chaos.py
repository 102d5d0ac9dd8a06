"""Workers that die all the time: every run ends, with the digest of a quiet one."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dszog.workers import Processes
from tests.kept import kept
from tests.runs import Record
from tests.workers.helpers import HAS, SOLVED_BY, Deadly, digest, need, solve, workers

INF = float("inf")
N_RUNS = {"processes": 400, "dask": 50, "ray": 50}  # of the release; together 500
SHARE = int(os.environ.get("DSZOG_CHAOS_SHARE", "1"))  # 10: a tenth of them
SIZES = {  # constraints and iterations: a cluster takes seconds to replace a worker
    "processes": (30, 4),
    "dask": (5, 3),
    "ray": (5, 3),
}


def chaotic(folder: Path, seed: int, name: str, team: Any) -> dict[str, int]:
    """Run once in quiet and once in chaos; return what happened."""
    before = time.monotonic()
    m, n_iterations = SIZES[name]
    more: dict[str, Any] = {"seed": seed, "max_iterations": n_iterations}
    more["method"] = list(SOLVED_BY)[seed % len(SOLVED_BY)]
    calm = Deadly(str(folder / f"calm-{seed}"), mean_life=INF, m=m)
    wanted = solve(calm.problem(), **more)
    deadly = Deadly(str(folder / f"deadly-{seed}"), m=m)
    found = solve(deadly.problem(), team, **more)
    traffic, calls, asked = found.costs.traffic, deadly.calls(), calm.calls()
    n_pieces = found.nfev + found.ncev
    return {
        "runs": 1,
        "other digests": int(digest(found) != digest(wanted)),
        "lost": len(asked.keys() - calls.keys()),
        "not asked": len(calls.keys() - asked.keys()),
        "used twice": max(traffic.n_pieces - n_pieces, 0),
        "beyond what was charged": max(
            calls.total() - n_pieces - found.costs.n_retried - traffic.n_duplicate, 0
        ),
        "workers lost": traffic.n_lost,
        "retried": traffic.n_retried,
        "duplicates seen": traffic.n_duplicate,
        "late": traffic.n_late,
        "calls": calls.total(),
        "calls without chaos": asked.total(),
        "seconds": round(time.monotonic() - before),
    }


def add_up(rows: Iterable[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for row in rows:
        total = {name: total.get(name, 0) + n for name, n in row.items()}
        print(total, flush=True)
    return total


def check(total: dict[str, int], n_runs: int) -> None:
    print(total)
    assert total["runs"] == n_runs
    for name in ("other digests", "lost", "not asked", "used twice"):
        assert total[name] == 0, name
    assert total["beyond what was charged"] == 0
    assert total["workers lost"] > 0


def test_two_chaotic_runs_end_as_quiet_ones_do(tmp_path: Path) -> None:
    team = Processes(2)
    total = add_up(chaotic(tmp_path, seed, "processes", team) for seed in range(2))
    check(total, 2)
    assert total["workers lost"] == total["retried"]
    assert total["duplicates seen"] == total["late"] == 0


def test_the_release_has_five_hundred_runs() -> None:
    assert sum(N_RUNS.values()) == 500


@pytest.fixture
def quick_to_replace() -> Iterator[None]:
    """Have Dask fork its workers from a process that has all imported.

    A worker is as dead and as new as otherwise, and seconds sooner there.
    """
    if not HAS["dask"]:
        yield
        return
    import dask
    from distributed.utils import get_mp_context

    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(
            ["distributed", "dszog", "tests.workers.helpers"]
        )
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("quick_to_replace")
@pytest.mark.timeout(7200)
@pytest.mark.filterwarnings("ignore")  # of clusters that lose their workers
@pytest.mark.parametrize("name", N_RUNS)
def test_chaotic_runs_end_as_quiet_ones_do(
    name: str, tmp_path: Path, record_property: Record
) -> None:
    need(name)
    team: Any = workers(name, 2)  # one cluster for all runs, whose workers come and go
    n_runs = N_RUNS[name] // SHARE
    try:
        total = add_up(
            kept(f"chaos-{name}-{seed}", partial(chaotic, tmp_path, seed, name, team))
            for seed in range(100, 100 + n_runs)
        )
    finally:
        team.close()
    record_property(f"chaotic runs, {name}", total["runs"])
    for what in ("other digests", "lost", "used twice", "beyond what was charged"):
        record_property(what, total[what])
    record_property("workers lost", total["workers lost"])
    check(total, n_runs)
