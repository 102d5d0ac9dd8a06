"""DSZOG in the units of its problem: sizes are learned, a margin replaces penalties."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dszog import Constraints, minimize
from dszog.methods.sized import LEAST_STEPS, MOST_MARGIN, SizedDSZOG
from tests.contracts.helpers import Kind, make_problem, walk
from tests.runs import size_of

DIM, M = 1000, 3000
RNG = np.random.default_rng(0)
TARGET, WHICH = RNG.normal(size=DIM), RNG.integers(0, DIM, (M, 10))


def solve(x: float = 1.0, fun: float = 1.0, limit: float = 1.0, **more: Any) -> Any:
    """Minimise a distance within 3,000 limits, all in units of some size."""
    rows = Constraints(lambda p, j: limit * (p[:, WHICH[j]].mean(axis=2) / x - 0.2), M)
    more, x0 = {"max_iterations": 40, "seed": 3} | more, np.full(DIM, 0.5 * x)
    method = SizedDSZOG(n_directions=20)  # chosen from 10,000 variables on
    return minimize(
        lambda w: fun * np.square(w / x - TARGET).mean(),
        x0,
        rows,
        method=method,
        **more,
    )


@pytest.mark.parametrize("units", [(1e3, 1.0, 1.0), (1.0, 1e-4, 1.0), (1e-3, 1e4, 1e3)])
def test_units_change_nothing(units: tuple[float, float, float]) -> None:
    way: list[Any] = []
    solve(callback=lambda progress: way.append(progress.x))
    solve(*units, callback=lambda progress: way.append(progress.x / units[0]))
    plain, other = np.array(way).reshape(2, -1, DIM)
    np.testing.assert_allclose(other, plain, rtol=1e-4, atol=1e-6)
    assert np.abs(plain[-1] - plain[0]).max() > 0.01


def test_a_start_that_breaks_every_constraint_is_left() -> None:
    result = solve(max_iterations=None, max_queries=300_000)
    assert result.fun < 0.95  # 1.25 at the start
    assert result.maxcv <= 1e-2  # 0.3 at the start
    assert not result.success  # nobody has looked at slopes
    assert "No success: feasible, but not shown to be optimal" in str(result)


@pytest.mark.parametrize("queries", [30_000, 10**6])
def test_batches_fit_the_budget_but_for_those_set(queries: int) -> None:
    size = size_of(DIM, 500, 10**6)
    planned = SizedDSZOG(dual_batch=99).planned(size, None, queries)
    n_losses, n_drawn, n_duals = planned.batches(size)
    assert n_duals == 99
    cost = (1 + planned.n_directions) * (n_losses + n_drawn) + n_duals
    assert cost * LEAST_STEPS <= queries or n_losses == n_drawn == 8


def test_the_margin_is_bounded_also_where_no_point_is_feasible() -> None:
    problem, _ = make_problem(Kind())
    method = SizedDSZOG(n_directions=3).planned(problem.size, 60, None)
    states = walk(method, problem, method.init(problem.x0 + 9.0, problem.size, 0), 60)
    margins = [state.margin for state in states]
    assert max(margins) == MOST_MARGIN
    assert min(margins) == 0.0


def test_a_run_that_was_cut_short_goes_on_to_the_same_end(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        solve(checkpoint=tmp_path, callback=lambda p: 1 / (25 - p.iteration))
    assert solve(checkpoint=tmp_path, resume=True).digest == solve().digest
