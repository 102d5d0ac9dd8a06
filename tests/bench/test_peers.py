from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dszog_bench import peer_runs
from dszog_bench.budget import Budget, OverError
from dszog_bench.cases import Case, Optimum
from dszog_bench.peer_runs import Request, answer, made_run, peers
from dszog_bench.peers import PEERS
from dszog_bench.records import Effort, Row

REQUEST = Request(
    case="tiny", peer="dszog", seed=0, seconds=300.0, queries=10**9, gigabytes=64.0
)


class TinyCase(Case):
    """The search for the point nearest to (1, 1) in a disc of 60 half-planes."""

    n_losses, n_constraints = 3, 60
    start = np.zeros(2)
    target_violation = 0.01
    planned_queries = 200_000
    data = np.array([[1.0, 1.0], [1.2, 0.8], [0.8, 1.2]])
    angles = 2 * np.pi * np.arange(60) / 60
    normals = np.column_stack([np.cos(angles), np.sin(angles)])

    def __init__(self) -> None:
        best = np.sqrt(0.5) * np.ones(2)
        self.known = Optimum(
            w=best.tolist(), value=self.objective(best), worst_violation=0.0,
            kkt_residual=0.0, multiplier_sum=1.0, start_values=[], seconds=0.0,
        )  # fmt: skip
        self.target_objective = 1.05 * self.known.value

    def losses(self, points: Any, indices: Any) -> Any:
        return np.square(points[:, np.newaxis] - self.data[indices]).sum(axis=2)

    def constraints(self, points: Any, indices: Any) -> Any:
        return points @ self.normals[indices].T - 1.0


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Case:
    case = TinyCase()
    monkeypatch.setitem(peer_runs.CASES, "tiny", lambda: case)
    monkeypatch.setattr(peer_runs, "limit_memory", lambda _: None)
    return case


def test_a_look_at_everything_costs_as_many_queries_as_there_are_values() -> None:
    case = TinyCase()
    budget = Budget(case, 60.0, 10**6)
    assert budget.objective(np.zeros(2)) == case.objective(np.zeros(2))
    assert (budget.n_losses, budget.n_constraints) == (3, 0)
    values = budget.constraints(np.zeros(2))
    np.testing.assert_array_equal(values, case.all_constraints(np.zeros(2)))
    assert (budget.n_losses, budget.n_constraints) == (3, 60)
    budget.objective(np.zeros(2))  # remembered
    assert budget.worst(np.zeros(2)) == 0.0
    assert (budget.n_losses, budget.n_constraints) == (3, 60)
    budget.constraints(np.full(2, 0.1))
    assert budget.n_constraints == 120


def test_the_target_stops_a_solver_and_the_clock() -> None:
    budget = Budget(TinyCase(), 60.0, 10**6)
    with pytest.raises(OverError):
        budget.objective(np.full(2, 0.7))
    assert budget.is_reached
    assert budget.own_seconds == budget.ended
    with pytest.raises(OverError):
        budget.objective(np.zeros(2))
    assert budget.n_losses == 3


def test_every_value_of_dszog_is_charged() -> None:
    n_values = Counter[str]()

    class Counted(TinyCase):
        target_violation = -1.0  # never reached
        planned_queries = 20_000

        def losses(self, points: Any, indices: Any) -> Any:
            n_values["losses"] += len(points) * len(indices)
            return super().losses(points, indices)

        def constraints(self, points: Any, indices: Any) -> Any:
            n_values["constraints"] += len(points) * len(indices)
            return super().constraints(points, indices)

        def worst(self, w: Any) -> float:  # a look of the watcher
            return 1.0

    budget = Budget(Counted(), 60.0, 10**9)
    n_values.clear()
    PEERS["dszog"].solve(budget, 1)

    assert (budget.n_losses, budget.n_constraints) == (
        n_values["losses"],
        n_values["constraints"],
    )
    assert 10_000 < sum(n_values.values()) <= 20_000


@pytest.mark.parametrize("name", PEERS)
def test_a_solver_reaches_an_easy_target_or_says_why_not(tiny: Case, name: str) -> None:
    pytest.importorskip(PEERS[name].package)
    # NOMAD cannot be stopped from inside a value: its own clock ends it.
    seconds = 2.0 if "NOMAD" in name else REQUEST.seconds
    row = answer(replace(REQUEST, peer=name, queries=400_000, seconds=seconds))
    hard = ("uniform", "optuna", "nevergrad", "Lagrangian", "NOMAD")
    if any(word in name for word in hard):
        assert row["outcome"] in ("reached", "not reached")
    else:
        assert row["outcome"] == "reached", row
    if row["outcome"] == "reached":
        assert row["best_gap"] <= tiny.target_objective - tiny.known.value
        assert row["why"] == ""
    assert 0 < row["loss_queries"] + row["constraint_queries"] <= 400_100
    assert json.loads(json.dumps(row)) == row


def test_a_solver_that_does_not_look_up_is_reported_from_outside(
    tiny: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    late: list[dict[str, Any]] = []

    def stuck(budget: Budget, seed: int) -> None:
        budget.objective(np.zeros(2))
        while not late:
            time.sleep(0.01)

    peer = replace(PEERS["scipy COBYQA"], solve=stuck)
    monkeypatch.setitem(PEERS, "scipy COBYQA", peer)
    answer(replace(REQUEST, peer="scipy COBYQA", seconds=0.05), late.append)
    assert [row["why"] for row in late] == ["time, inside the solver"]
    assert late[0]["loss_queries"] == 3


def rows_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: dict[str, dict[str, Any]]
) -> tuple[list[Row], list[str]]:
    """Make the rows of given runs; return them, and which runs were made."""
    made: list[str] = []

    def made_run(request: Request) -> dict[str, Any]:
        made.append(request.peer)
        return asdict(request) | runs[request.peer]

    monkeypatch.setattr(peer_runs, "made_run", made_run)
    monkeypatch.setattr(peer_runs, "PEERS", {name: PEERS[name] for name in runs})
    return list(peers(Effort(output=tmp_path, peer_seconds=1.0))), made


REACHED: dict[str, Any] = {
    "outcome": "reached",
    "why": "",
    "own_seconds": 2.0,
    "loss_queries": 100,
    "constraint_queries": 10_000,
}
MISSING: dict[str, Any] = {"outcome": "missing", "why": "pip install it"}
FAR = REACHED | {
    "outcome": "not reached",
    "why": "time",
    "best_gap": 0.05,
    "optimum": 0.5,
}


def test_a_row_adds_the_cost_of_each_constraint_to_the_measured_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = {"dszog": REACHED, "scipy COBYLA": FAR, "cma, penalty": MISSING}
    (ours, far, missing), _ = rows_of(tmp_path, monkeypatch, runs)
    assert ours.what == "relaxed: dszog"
    assert ours.figure == 10_000
    assert ours.details["outcome"] == "reached by 1 of 1"
    times = [ours.details[f"seconds_at_{cost}"] for cost in ("0", "10_us", "1_ms")]
    assert times == pytest.approx([2.0, 2.1, 12.0])
    assert far.figure is None
    assert far.details["outcome"] == (
        "not reached (time); 10.0 % above the optimum at best"
    )
    assert missing.details["outcome"] == "missing (pip install it)"


def test_a_process_of_its_own_returns_its_run_or_says_how_it_failed() -> None:
    pytest.importorskip("sklearn")
    run = made_run(replace(REQUEST, case="relaxed", queries=1, peer="scipy SLSQP"))
    assert (run["outcome"], run["why"]) == ("not reached", "queries")
    assert run["constraint_queries"] > 60_000
    run = made_run(replace(REQUEST, case="nothing"))
    assert run["outcome"] == "not reached"
    assert "failed" in run["why"]
    assert "'nothing'" in run["why"]
