from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog_bench.a9a import a9a_rows
from dszog_bench.budget import Budget, OverError
from dszog_bench.customers import CUSTOMERS, SLACK, customers_case
from dszog_bench.relaxed import RelaxedPairs
from dszog_bench.rotated import GOLDEN, N_ROWS, rotated_problem, rotated_rows
from tests.bench.white_box import first_order_conditions, solve

RNG = np.random.Generator(np.random.Philox(key=11))


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


# ------------------------------------------------------------ as many as one likes


def test_a_rotated_constraint_is_a_function_of_its_index() -> None:
    dim = 7
    X, _ = rotated_rows(dim)
    problem = rotated_problem(10**12, dim)
    indices = np.array([0, 1, N_ROWS, 5 * N_ROWS + 3, 10**12 - 1])
    w = RNG.standard_normal(dim)

    assert problem.constraints is not None
    found = problem.constraints.values(w[np.newaxis], indices)[0]

    for value, j in zip(found, indices.tolist(), strict=True):
        turn, row = divmod(j, N_ROWS)
        shifted = np.roll(X[row], -(turn % dim))
        bound = 0.3 + 0.3 * (GOLDEN * (turn % 1_000_003) % 1.0)
        assert value == pytest.approx(shifted @ w - bound, abs=1e-12)


def test_a_trillion_rotated_constraints_are_run_on() -> None:
    result = dszog.minimize(rotated_problem(10**12, 5), max_iterations=20, seed=0)

    assert result.nit == 20
    assert len(result.weights[0]) < 10**6


# ------------------------------------------------------------------- nobody gets worse


@pytest.mark.parametrize("name", ["customers-linear-1e4", "customers-neural-1e4"])
def test_the_black_box_of_the_customers_is_their_loss_and_its_rise(name: str) -> None:
    customers = customers_case(name)
    old, rows = customers.start, np.array([5, 200])
    w = old + 0.1 * RNG.standard_normal(len(old))

    at = customers.problem.constraints.values(np.array([old, w]), rows)  # type: ignore[union-attr]

    np.testing.assert_allclose(customers.all_constraints(old), -SLACK)
    np.testing.assert_allclose(at[0], -SLACK)
    np.testing.assert_allclose(at[1], customers.all_constraints(w)[rows])
    scores = customers.scores(w[np.newaxis], customers.X[rows])[0]
    rise = np.log1p(np.exp(-customers.y[rows] * scores)) - customers.allowed[rows]
    np.testing.assert_allclose(at[1], rise)


# ------------------------------------------------------------------------- the optima


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


# --------------------------------------------------------------------------------- a9a


def test_without_data_a_named_stand_in_is_used(no_data: None) -> None:
    rows = a9a_rows()

    assert "stand-in" in rows.name
    assert not rows.is_real
    assert rows.train.n_rows + rows.test.n_rows == 600
