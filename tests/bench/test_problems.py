from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog_bench.a9a import a9a_rows
from dszog_bench.budget import Budget, OverError
from dszog_bench.customers import CUSTOMERS, customers_case
from dszog_bench.relaxed import RelaxedPairs
from dszog_bench.rotated import rotated_problem
from tests.bench.white_box import first_order_conditions, solve


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_trillion_rotated_constraints_are_run_on() -> None:
    result = dszog.minimize(rotated_problem(10**12, 5), max_iterations=20, seed=0)
    assert result.nit == 20
    assert len(result.weights[0]) < 10**6


def case_of(name: str) -> Any:
    if name.startswith("customers"):
        return customers_case(name)
    pytest.importorskip("sklearn")
    return RelaxedPairs(int(name[-1]))


@pytest.mark.parametrize(
    "name", [*(f"relaxed-{seed}" for seed in range(5)), *CUSTOMERS]
)
def test_the_kept_optimum_is_feasible_stationary_and_a_target(name: str) -> None:
    case = case_of(name)
    w = np.array(case.known.w)
    residual, multiplier_sum = first_order_conditions(case, w)
    assert case.objective(w) == pytest.approx(case.known.value, abs=1e-6)
    assert case.worst(w) < 1e-5
    assert residual < 1e-5
    assert multiplier_sum == pytest.approx(case.known.multiplier_sum, rel=1e-3)
    budget = Budget(case, 60.0, 10**9)
    for far in (case.start, np.full(len(w), np.nan)):
        budget.watch(far)
        assert not budget.is_reached
    with pytest.raises(OverError):
        budget.watch(w)
    assert budget.is_reached


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relaxed-1", "customers-linear-1e4"])
def test_no_other_start_ends_at_a_better_point(name: str) -> None:
    case = case_of(name)
    rng = np.random.Generator(np.random.Philox(key=1))
    starts = [case.start, case.start + 0.3 * rng.standard_normal(len(case.start))]
    ends = [solve(case, start) for start in starts]
    values = [case.objective(x) for x in ends]
    assert max(case.worst(x) for x in ends) <= 0.0
    assert min(values) == pytest.approx(case.known.value, rel=1e-6)


def test_without_data_a_named_stand_in_is_used(no_data: None) -> None:
    rows = a9a_rows()
    assert "stand-in" in rows.name
    assert not rows.is_real
    assert rows.train.n_rows + rows.test.n_rows == 600
