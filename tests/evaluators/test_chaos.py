"""Workers that die all the time: every run ends, with the digest of a quiet one."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dszog.evaluators import Processes
from tests.evaluators.helpers import HAS, Deadly, digest, solve, workers

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
    m, n_iterations = SIZES[name]
    more = {"seed": seed, "max_iterations": n_iterations}
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
        "calls": calls.total(),
        "calls without chaos": asked.total(),
    }


def add_up(rows: Iterator[dict[str, int]]) -> dict[str, int]:
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
    rows = (chaotic(tmp_path, seed, "processes", team) for seed in range(2))
    check(add_up(rows), 2)


def test_the_release_has_five_hundred_runs() -> None:
    assert sum(N_RUNS.values()) == 500


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.filterwarnings("ignore")  # of clusters that lose their workers
@pytest.mark.parametrize("name", N_RUNS)
def test_chaotic_runs_end_as_quiet_ones_do(name: str, tmp_path: Path) -> None:
    if not HAS.get(name, True):
        pytest.skip(f"{name} is not installed")
    team = workers(name, 2)
    try:
        seeds = itertools.count(100)
        n_runs = N_RUNS[name] // SHARE
        rows = (chaotic(tmp_path, next(seeds), name, team) for _ in range(n_runs))
        check(add_up(rows), n_runs)
    finally:
        team.close()
