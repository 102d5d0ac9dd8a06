"""Other solvers: what they are charged for, and when they are stopped."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from dszog_bench import peers
from dszog_bench.families import Member, nearest
from dszog_bench.records import Effort, kept


@pytest.fixture(scope="module")
def member() -> Member:
    return nearest(4, 7, m=300)


@pytest.mark.parametrize("name", peers.PEERS)
def test_a_solver_reaches_an_easy_target_or_says_why_not(
    member: Member, name: str
) -> None:
    found = peers.run(member, name, seconds=5.0)
    if found["why"].startswith("not installed"):
        pytest.skip(found["why"])
    if name == "CMA-ES, penalty":  # whose penalty is one for all problems
        assert found["why"] in ("", "time")
    else:
        assert found["why"] == ""
        assert found["gap"] <= 0.02
        assert found["n_constraint_values"] % 300 == 0


def test_the_target_stops_a_solver(member: Member) -> None:
    problem = peers.as_foreign(member)
    counted = peers.Counted(problem, 10**6, 60.0, 1e-6, target=np.inf)
    counted.fun(member.x0)
    with pytest.raises(peers.OverError):
        counted.constraints(member.x0)
    assert counted.is_reached


def test_a_solver_that_cannot_be_stopped_is_killed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(peers, "LATEST", -60.0)
    assert peers.in_process("SLSQP", 1.0)["why"] == "killed: it could not be stopped"


def test_a_row_adds_the_cost_of_each_constraint_to_the_measured_time(
    member: Member, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = {"why": "", "seconds": 2.0, "n_values": 100}
    reached["n_constraint_values"] = 10_000
    runs: dict[str, Any] = {"SLSQP": reached, "COBYLA": {"why": "time", "gap": 0.1}}
    monkeypatch.setattr(peers, "relaxed", lambda *_: member)
    monkeypatch.setattr(peers, "OURS", {"dszog": 100_000})
    monkeypatch.setattr(peers, "PEERS", runs)
    monkeypatch.setattr(peers, "in_process", lambda name, seconds: runs[name])
    ours, theirs, far = peers.peers(Effort(output=tmp_path))
    assert ours.figure is not None
    assert 0 < ours.figure < 100_000
    assert theirs.figure == 10_000
    assert theirs.details["outcome"] == "reached by 1 of 1"
    times = [theirs.details[f"seconds_at_{cost}"] for cost in ("0", "10_us", "1_ms")]
    assert times == pytest.approx([2.0, 2.1, 12.0])
    assert (far.figure, far.details) == (
        None,
        {"outcome": "not reached (time)", "gap": 0.1},
    )
    path = tmp_path / "peers" / "SLSQP-20s.json"
    assert kept(path, partial(dict, why="made again")) == reached
