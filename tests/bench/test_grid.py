"""The grid: what it is made of, and constraint generation beside the library."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from dszog_bench.grid.generation import _Point, _step, generate
from dszog_bench.grid.measure import evolved


class Ridge:
    """Three cases of two limits in two variables, in place of the grid."""

    dim, n_cases, n_calls = 2, 3, 0

    def cost(self, x: np.ndarray) -> float:
        self.n_calls += 1
        return float(-x.sum())

    def limits(self, x: np.ndarray, case: int) -> np.ndarray:
        self.n_calls += 1
        return np.array([x[0] - 0.5 + 0.1 * case, x[1] ** 2 - 0.25])


@pytest.mark.parametrize("n_swept", [None, 2])
def test_constraint_generation_finds_the_corner(n_swept: int | None) -> None:
    ridge = Ridge()
    found = generate(ridge, np.zeros(2), n_swept=n_swept, seed=0)  # type: ignore[arg-type]
    if n_swept is None:
        np.testing.assert_allclose(found.x, [0.3, 0.5], atol=1e-3)
    assert found.n_calls == ridge.n_calls


def test_a_step_leaves_as_little_violation_as_the_region_allows() -> None:
    point = _Point(Ridge(), np.array([0.9, 0.5]))  # type: ignore[arg-type]
    step, left = _step(point, [0], 0.1)
    assert left == pytest.approx(0.3)
    assert step[0] == pytest.approx(-0.1)


def test_an_evolution_is_cut_short_and_pays_for_violations() -> None:
    pytest.importorskip("cma")
    ridge = Ridge()
    found = evolved(ridge, np.full(2, 0.2), 2.0, seed=1)  # type: ignore[arg-type]
    np.testing.assert_allclose(found.x, [0.3, 0.5], atol=1e-2)
    assert found.n_calls % (ridge.n_cases + 1) == 0


@pytest.mark.slow
def test_the_grid_has_the_size_that_is_told_of_it() -> None:
    pytest.importorskip("lightsim2grid")
    from dszog_bench.grid.network import Grid

    with warnings.catch_warnings(action="ignore"):  # of the readers of the network
        grid = Grid()
    assert (grid.dim, grid.n_cases, grid.width) == (75, 156, 647)
    assert grid.cost(grid.x_base) == 1.0
    assert grid.worst(grid.x_base) == pytest.approx(0.0598, abs=1e-3)
