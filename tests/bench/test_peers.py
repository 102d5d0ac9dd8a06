from __future__ import annotations

import io
import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog_bench import peer_worker
from dszog_bench.budget import Budget, OverError
from dszog_bench.cases import Case
from dszog_bench.peer_worker import Request, answer
from dszog_bench.peers import PEERS, counted_problem, quietly

REQUEST = Request(
    case="tiny", peer="dszog", seed=0, seconds=300.0, queries=10**9, gigabytes=64.0
)


def tiny_case() -> Case:
    """Return the search for the point nearest to (1, 1) in a disc of 60 half-planes."""
    angles = 2 * np.pi * np.arange(60) / 60
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    data = np.array([[1.0, 1.0], [1.2, 0.8], [0.8, 1.2]])

    def losses(points: Any, indices: Any) -> Any:
        return np.square(points[:, np.newaxis] - data[indices]).sum(axis=2)

    def constraints(points: Any, indices: Any) -> Any:
        return points @ normals[indices].T - 1.0

    def objective(x: Any) -> float:
        return float(losses(x[np.newaxis], np.arange(3)).mean())

    best = np.sqrt(0.5) * np.ones(2)
    return Case(
        name="tiny",
        problem=dszog.Problem(
            dszog.Losses(losses, 3), dszog.Constraints(constraints, 60), 2
        ),
        objective=objective,
        constraints=lambda x: normals @ x - 1.0,
        worst=lambda x: float((normals @ x - 1.0).max()),
        optimum=objective(best),
        target_objective=1.05 * objective(best),
        target_violation=0.01,
        exact_weight=2.0,
        planned_queries=200_000,
    )


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> Case:
    case = tiny_case()
    monkeypatch.setitem(peer_worker.CASES, "tiny", lambda: case)
    monkeypatch.setattr(peer_worker, "limit_memory", lambda _: None)
    return case


# ------------------------------------------------------------------------------ counts


def test_a_look_at_everything_costs_as_many_queries_as_there_are_values() -> None:
    budget = Budget(tiny_case(), 60.0, 10**6)

    budget.objective(np.zeros(2))
    assert (budget.n_losses, budget.n_constraints) == (3, 0)
    budget.constraints(np.zeros(2))
    assert (budget.n_losses, budget.n_constraints) == (3, 60)
    budget.objective(np.zeros(2))  # remembered
    budget.worst(np.zeros(2))
    assert (budget.n_losses, budget.n_constraints, budget.n_queries) == (3, 60, 63)
    budget.constraints(np.full(2, 0.1))
    assert budget.n_constraints == 120


def test_the_values_are_those_of_the_case() -> None:
    case = tiny_case()
    budget = Budget(case, 60.0, 10**6)
    x = np.array([2.0, 0.5])

    assert budget.objective(x) == case.objective(x)
    np.testing.assert_array_equal(budget.constraints(x), case.constraints(x))
    assert budget.worst(x) == case.worst(x) > 0
    assert budget.worst(np.zeros(2)) == 0.0


def test_the_target_stops_a_solver_and_the_clock() -> None:
    budget = Budget(tiny_case(), 60.0, 10**6)

    with pytest.raises(OverError):
        budget.objective(np.full(2, 0.7))

    assert budget.is_reached
    assert budget.own_seconds == budget.ended
    with pytest.raises(OverError):
        budget.objective(np.zeros(2))
    assert budget.n_losses == 3


def test_a_point_that_violates_does_not_count_as_reached() -> None:
    budget = Budget(tiny_case(), 60.0, 10**6)

    budget.objective(np.ones(2))  # the best objective, outside of the disc

    assert not budget.is_reached
    assert budget.best_gap == np.inf
    assert budget.least_violation == pytest.approx(np.sqrt(2.0) - 1.0, abs=2e-3)


@pytest.mark.parametrize("limits", [(0.0, 10**6), (60.0, 2)])
def test_a_budget_ends(limits: tuple[float, int]) -> None:
    budget = Budget(tiny_case(), *limits)

    def spend() -> None:
        for shift in range(3):
            budget.objective(np.full(2, -1.0 - shift))

    with pytest.raises(OverError):
        spend()

    assert not budget.is_reached
    assert budget.n_losses <= 3


def test_watching_is_neither_counted_nor_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = tiny_case()
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def worst(x: Any) -> float:
        now[0] += 5.0
        return case.worst(x)

    budget = Budget(replace(case, worst=worst), 60.0, 10**6, _began=0.0)
    for shift in range(4):
        now[0] += 1.0
        budget.watch(np.full(2, -1.0 - shift))

    assert now[0] == 24.0
    assert budget.n_queries == 0
    assert budget.own_seconds == 4.0


def test_every_value_of_dszog_is_charged() -> None:
    budget = Budget(tiny_case(), 60.0, 10**9)

    result = dszog.minimize(counted_problem(budget), max_queries=20_000, seed=1)

    assert (budget.n_losses, budget.n_constraints) == (result.nfev, result.ncev)


# ----------------------------------------------------------------------------- solvers


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
        assert row["best_gap"] <= tiny.target_objective - tiny.optimum
        assert row["why"] == ""
    assert 0 < row["loss_queries"] + row["constraint_queries"] <= 400_100
    assert json.loads(json.dumps(row)) == row


def test_the_same_seed_makes_the_same_counts(tiny: Case) -> None:
    first, second, other = (answer(replace(REQUEST, seed=seed)) for seed in (1, 1, 2))

    assert first["constraint_queries"] == second["constraint_queries"]
    assert first["constraint_queries"] != other["constraint_queries"]


def test_a_package_that_is_missing_is_named(
    tiny: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = replace(PEERS["cma, penalty"], package="no_such_package")
    monkeypatch.setitem(PEERS, "cma, penalty", missing)

    row = answer(replace(REQUEST, peer="cma, penalty"))

    assert row["outcome"] == "missing"
    assert row["why"] == 'pip install "dszog[bench]"'


def test_a_problem_that_is_too_large_is_told(
    tiny: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_large(budget: Budget, seed: int) -> None:
        raise MemoryError("29.1 GiB")

    peer = replace(PEERS["scipy COBYQA"], solve=too_large)
    monkeypatch.setitem(PEERS, "scipy COBYQA", peer)

    row = answer(replace(REQUEST, peer="scipy COBYQA"))

    assert row["outcome"] == "not reached"
    assert row["why"] == "cannot hold the problem: 29.1 GiB"


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


def test_solvers_are_kept_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    with quietly():
        print("noise")

    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("field", "near"), [("case", "relaxed"), ("peer", "dszog")])
def test_an_unknown_name_is_refused_with_the_nearest(field: str, near: str) -> None:
    with pytest.raises(dszog.errors.InputError, match=f"Did you mean '{near}'"):
        answer(Request(**(asdict(REQUEST) | {"case": "relaxed", field: near[:-1]})))


# ------------------------------------------------------------------------------ tables


def table_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: dict[str, dict[str, Any]]
) -> tuple[str, list[str]]:
    """Make a table of given rows; return its text, and which rows were made."""
    pytest.importorskip("rich")
    from rich.console import Console

    from dszog_bench import peer_table as module

    made: list[str] = []

    def made_row(request: Request) -> dict[str, Any]:
        made.append(request.peer)
        return asdict(request) | rows[request.peer]

    monkeypatch.setattr(module, "made_row", made_row)
    monkeypatch.setattr(module, "PEERS", {name: PEERS[name] for name in rows})
    monkeypatch.setitem(module.PEER_TABLES, "peers", ("tiny",))
    console = Console(file=io.StringIO())
    allowance = module.Allowance(seconds=1.0, seeds=(0,))
    path = module.peer_table(console, "peers", tmp_path, full=True, allowance=allowance)
    return path.read_text(), made


REACHED: dict[str, Any] = {
    "outcome": "reached",
    "why": "",
    "own_seconds": 2.0,
    "loss_queries": 100,
    "constraint_queries": 10_000,
    "n_constraints": 60,
    "dim": 2,
}
MISSING: dict[str, Any] = {"outcome": "missing", "why": "pip install it"}
FAR = REACHED | {
    "outcome": "not reached",
    "why": "time",
    "best_gap": 0.05,
    "optimum": 0.5,
}


def test_a_table_adds_the_cost_of_each_constraint_to_the_measured_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"dszog": REACHED, "scipy COBYLA": FAR, "cma, penalty": MISSING}

    text, _ = table_of(tmp_path, monkeypatch, rows)

    assert "2 variables, 60 constraints" in text
    assert "| dszog | 1 of 1 | 1.0e+02 | 1.0e+04 | 2 s | 2.1 s | 12 s |" in text
    assert "not reached (time); 10.0 % above the optimum at best" in text
    assert "not installed: pip install it" in text


def test_rows_that_are_there_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"dszog": REACHED, "cma, penalty": MISSING}

    before, made = table_of(tmp_path, monkeypatch, rows)
    after, again = table_of(tmp_path, monkeypatch, rows)

    assert made == ["dszog", "cma, penalty"]
    assert again == ["cma, penalty"]  # it may have been installed since
    assert after == before


def test_a_row_of_other_limits_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table_of(tmp_path, monkeypatch, {"dszog": REACHED})
    for path in (tmp_path / "peers").glob("*.json"):
        row = json.loads(path.read_text())
        path.write_text(json.dumps(row | {"gigabytes": 1.0}))

    _, made = table_of(tmp_path, monkeypatch, {"dszog": REACHED})

    assert made == ["dszog"]


def test_a_process_of_its_own_returns_its_row() -> None:
    pytest.importorskip("rich")
    pytest.importorskip("sklearn")
    from dszog_bench.peer_table import made_row

    row = made_row(replace(REQUEST, case="relaxed", queries=1, peer="scipy SLSQP"))

    assert row["outcome"] == "not reached"
    assert row["why"] == "queries"
    assert row["n_constraints"] > 60_000


def test_a_process_that_fails_says_how() -> None:
    pytest.importorskip("rich")
    from dszog_bench.peer_table import made_row

    row = made_row(replace(REQUEST, case="nothing"))

    assert row["outcome"] == "not reached"
    assert "failed" in row["why"]
    assert "'nothing'" in row["why"]
