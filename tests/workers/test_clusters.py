"""Dask and Ray: clusters of ours and of the user's."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dszog
from dszog import Constraints, InputError, InputTypeError, MissingExtraError, Problem
from dszog.workers import Dask
from dszog.workers import dask as dask_module
from tests.workers.helpers import (
    PROBLEMS,
    Deadly,
    children,
    digest,
    need,
    objective,
    sleep_long,
    solve,
    workers,
)

CLUSTERS = ("dask", "ray")
pytestmark = pytest.mark.filterwarnings("ignore")  # of the clusters themselves


@pytest.mark.parametrize(("name", "module"), [("dask", "distributed"), ("ray", "ray")])
def test_a_missing_extra_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, name: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match=rf'pip install "dszog\[{name}\]"'):
        solve(PROBLEMS["plain"](), name)


@pytest.mark.parametrize("name", ["serial", "threads"])
def test_a_timeout_is_refused_where_it_could_not_be_kept(name: str) -> None:
    with pytest.raises(InputError, match="`timeout` needs workers that can be ended"):
        solve(PROBLEMS["plain"](), workers(name, 2), timeout=1.0)


def test_what_is_no_client_is_refused() -> None:
    with pytest.raises(InputTypeError, match=r"`client` must be a distributed\.Client"):
        Dask("tcp://somewhere:8786")


@contextlib.contextmanager
def dask_client(**settings: Any) -> Iterator[Any]:
    """Have a client of a Dask cluster that is the user's."""
    need("dask")
    from distributed import Client, LocalCluster

    with (
        LocalCluster(dashboard_address="127.0.0.1:0", **settings) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("max_calls", [1, 400])
def test_a_client_of_the_users_stays_open(
    monkeypatch: pytest.MonkeyPatch, max_calls: int
) -> None:
    monkeypatch.setattr(dask_module, "MAX_CALLS", max_calls)
    with dask_client(n_workers=1, threads_per_worker=2, processes=False) as client:
        evaluator = Dask(client).open(PROBLEMS["mixed"]())
        assert evaluator.pool.n_slots == min(max_calls, 2)
        evaluator.close()
        found = solve(PROBLEMS["mixed"](), Dask(client))
        assert client.submit(int).result() == 0
    assert digest(found) == digest(solve(PROBLEMS["mixed"]()))


@pytest.mark.slow
@pytest.mark.parametrize("name", CLUSTERS)
def test_a_timeout_ends_the_worker_of_a_cluster(name: str) -> None:
    need(name)
    team = workers(name, 2)
    constraints = Constraints.from_function(sleep_long, 30)
    try:
        with pytest.raises(
            dszog.EvaluationError, match="Constraint 7 took longer than"
        ):
            solve(Problem(objective, constraints, 3), team, timeout=3.0)
        assert digest(solve(PROBLEMS["plain"](), team)) == digest(
            solve(PROBLEMS["plain"]())
        )
    finally:
        team.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_that_was_started_here_ends(name: str) -> None:
    need(name)
    before = children()
    assert digest(solve(PROBLEMS["simulator"](), name)) == digest(
        solve(PROBLEMS["simulator"]())
    )
    deadline = time.monotonic() + 10.0
    while children() - before and time.monotonic() < deadline:
        time.sleep(0.1)
    left = {
        Path(f"/proc/{pid}/cmdline").read_bytes()
        for pid in children() - before
        if Path(f"/proc/{pid}").exists()
    }
    # Python's own tracker of shared memory lasts as long as the process.
    assert not [command for command in left if b"resource_tracker" not in command]


def listening(pids: set[int]) -> set[str]:
    """Return the addresses on which processes listen, as the system writes them."""
    sockets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(link))
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found.add(fields[1].split(":")[0])
    return found


LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", f"{0:024x}01000000"}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("name", CLUSTERS)
def test_a_cluster_of_ours_listens_to_this_machine_only(name: str) -> None:
    need(name)
    team = workers(name, 2)
    try:
        solve(PROBLEMS["plain"](), team, max_iterations=2)
        addresses = listening({os.getpid(), *children()})
    finally:
        team.close()
    assert addresses
    assert addresses <= LOOPBACK


@pytest.mark.slow
def test_dask_makes_no_call_again_by_itself(tmp_path: Path) -> None:
    deadly = Deadly(str(tmp_path / "log"), mean_life=40.0)
    with dask_client(n_workers=2, threads_per_worker=1) as client:
        found = solve(deadly.problem(), Dask(client), max_iterations=4)
    again = deadly.calls().total() - found.nfev - found.ncev
    assert 0 < again <= found.costs.n_retried
    assert found.costs.traffic.n_duplicate == 0
    assert digest(found) == digest(solve(PROBLEMS["plain"](), max_iterations=4))
