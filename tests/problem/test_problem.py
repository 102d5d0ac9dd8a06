from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds

import dszog
from dszog import Constraints, Losses, Problem
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import DszogError

INF = np.inf
DATA = np.array([1.0, 2.0, 6.0])


def distances(points: FloatArray, indices: IntArray) -> FloatArray:
    """Return the squared distance of the first variable from each datum."""
    values: FloatArray = (points[:, :1] - DATA[indices]) ** 2
    return values


def ceilings(points: FloatArray, indices: IntArray) -> FloatArray:
    """Return the first variable over the ceiling 1, 2, 3, ..."""
    values: FloatArray = points[:, :1] - (1.0 + indices)
    return values


def half_lines(m: int = 4) -> Constraints:
    return Constraints(ceilings, m)


def test_losses_know_their_number_and_values() -> None:
    losses = Losses(distances, 3)
    assert len(losses) == 3
    assert repr(Losses(distances, 1_000_000)) == "Losses(n=1_000_000)"
    np.testing.assert_array_equal(
        losses.values(np.array([[2.0], [0.0]]), np.array([0, 2])),
        [[1.0, 16.0], [1.0, 36.0]],
    )


@pytest.mark.parametrize("family", [Losses, Constraints])
def test_functions_of_one_point_are_called_at_each(family: Any) -> None:
    single = family(lambda x, i: (x[0] - DATA[i]) ** 2, 3, one_point=True)
    points, indices = np.array([[2.0], [0.0]]), np.array([2, 0])
    many = family(distances, 3).values(points, indices)
    np.testing.assert_array_equal(single.values(points, indices), many)
    short = family(lambda x, i: x[:1], 3, one_point=True)  # one value for two indices
    with pytest.raises(dszog.EvaluationError, match="expected 2 real numbers"):
        short.values(points, indices)


def test_losses_are_a_white_box_exactly_if_a_gradient_is_given() -> None:
    def gradient(point: FloatArray, indices: IntArray) -> FloatArray:
        slopes: FloatArray = 2.0 * (point - DATA[indices, np.newaxis])
        return slopes

    white = Losses(distances, 3, gradient=gradient)
    assert white.has_gradient
    np.testing.assert_array_equal(
        white.gradient(np.array([2.0]), np.array([0, 2])), [[2.0], [-8.0]]
    )
    black = Losses(distances, 3)
    assert not black.has_gradient
    with pytest.raises(DszogError, match="no gradient"):
        black.gradient(np.array([2.0]), np.array([0]))


def test_size_is_all_that_a_method_may_know() -> None:
    size = Problem(Losses(distances, 3), half_lines(5), 2, bounds=[(0, 1), (2, 3)]).size
    assert (size.dim, size.n_losses, size.n_constraints) == (2, 3, 5)
    np.testing.assert_array_equal([size.lower, size.upper], [[0.0, 2.0], [1.0, 3.0]])


@pytest.mark.parametrize("white_losses", [False, True])
@pytest.mark.parametrize("white_constraints", [False, True])
def test_size_tells_of_gradients(white_losses: bool, white_constraints: bool) -> None:
    def slopes(point: FloatArray, indices: IntArray) -> FloatArray:
        return np.ones((len(indices), len(point)))

    losses = Losses(distances, 3, gradient=slopes if white_losses else None)
    constraints = Constraints(
        ceilings, 4, jacobian=slopes if white_constraints else None
    )
    size = Problem(losses, constraints, 1).size
    assert size.has_gradient is white_losses
    assert size.has_jacobian is white_constraints


def test_constraints_may_come_alone_or_as_a_list_of_one() -> None:
    own = half_lines()
    for given in (own, [own], (own,)):
        assert Problem(Losses(distances, 3), given, 1).constraints is own


@pytest.mark.parametrize("nothing", [None, (), []])
def test_a_problem_may_have_bounds_alone(nothing: Any) -> None:
    problem = Problem(Losses(distances, 3), nothing, 1, bounds=[(0, 1)])
    assert problem.constraints is None
    assert problem.size.n_constraints == 0
    assert not problem.size.has_jacobian


BOUNDS: dict[str, tuple[Any, list[float], list[float]]] = {
    "nothing": (None, [-INF, -INF], [INF, INF]),
    "pairs": ([(0, 1), (-2.5, 3)], [0.0, -2.5], [1.0, 3.0]),
    "tuple of lists": (([0, 1], [-2.5, 3]), [0.0, -2.5], [1.0, 3.0]),
    "matrix": (np.array([[0, 1], [-2.5, 3]]), [0.0, -2.5], [1.0, 3.0]),
    "zip": (zip([0, -2.5], [1, 3], strict=True), [0.0, -2.5], [1.0, 3.0]),
    "None on one side": ([(None, 1), (-2.5, None)], [-INF, -2.5], [1.0, INF]),
    "None on both sides": ([(None, None), (0, 1)], [-INF, 0.0], [INF, 1.0]),
    "infinities": ([(-INF, 1), (-2.5, INF)], [-INF, -2.5], [1.0, INF]),
    "fixed variable": ([(1, 1), (0, 2)], [1.0, 0.0], [1.0, 2.0]),
    "SciPy's": (Bounds([0, -2.5], [1, 3]), [0.0, -2.5], [1.0, 3.0]),
    "SciPy's, numbers": (Bounds(-1, 2), [-1.0, -1.0], [2.0, 2.0]),
    "SciPy's, one side": (Bounds(lb=[0, -2.5]), [0.0, -2.5], [INF, INF]),
}


@pytest.mark.parametrize(("bounds", "lower", "upper"), BOUNDS.values(), ids=BOUNDS)
def test_bounds_are_accepted_in_this_form(
    bounds: Any, lower: list[float], upper: list[float]
) -> None:
    problem = Problem(Losses(distances, 3), half_lines(), 2, bounds=bounds)
    np.testing.assert_array_equal(problem.lower, lower)
    np.testing.assert_array_equal(problem.upper, upper)
    assert problem.lower.dtype == problem.upper.dtype == np.float64
    assert problem.size.has_bounds is bool(np.isfinite([lower, upper]).any())


def test_bounds_and_x0_are_copied_and_read_only() -> None:
    x0 = np.array([1.0, 2.0])
    problem = Problem(Losses(distances, 3), half_lines(), 2, x0=x0)
    x0[:] = 77.0
    np.testing.assert_array_equal(problem.x0, [1.0, 2.0])
    assert "Problem(dim=2, n_losses=3, n_constraints=" in repr(problem)
    pairs, upper = np.array([[0.0, 1.0], [0.0, 1.0]]), np.ones(2)
    for bounds, given in ((pairs, pairs), (Bounds(np.zeros(2), upper), upper)):
        problem = Problem(Losses(distances, 3), half_lines(), 2, bounds=bounds)
        given[...] = 77.0
        np.testing.assert_array_equal(problem.upper, [1.0, 1.0])
        with pytest.raises(ValueError, match="read-only"):
            problem.upper[0] = 5.0


@pytest.mark.parametrize(
    ("x0", "bounds", "start"),
    [
        (None, None, [0.0, 0.0]),
        (None, [(1, 2), (-4, -3)], [1.0, -3.0]),
        ([5, -7], None, [5.0, -7.0]),
        ([5, -7], [(1, 2), (-4, None)], [2.0, -4.0]),
        ([1.5, -3.5], [(1, 2), (-4, -3)], [1.5, -3.5]),
    ],
    ids=["origin", "origin, moved", "given", "given, moved", "given, within"],
)
@pytest.mark.filterwarnings("ignore::dszog.StartWarning")
def test_the_start_is_x0_or_the_origin_moved_into_the_bounds(
    x0: Any, bounds: Any, start: list[float]
) -> None:
    problem = Problem(Losses(distances, 3), half_lines(), 2, bounds=bounds, x0=x0)
    np.testing.assert_array_equal(problem.x0, start)
    assert problem.x0.dtype == np.float64


def test_a_start_outside_the_bounds_is_moved_into_them_and_that_is_said() -> None:
    def problem(**more: Any) -> Problem:
        rules = Constraints.linear(np.eye(3), np.ones(3))
        return Problem(lambda x: float(x @ x), rules, 3, bounds=[(1, 2)] * 3, **more)

    with pytest.warns(dszog.StartWarning, match="2 of its 3 entries .* farthest by 4"):
        moved = problem(x0=[1.0, 6.0, 0.5])
    np.testing.assert_array_equal(moved.x0, [1.0, 2.0, 1.0])
    with pytest.warns(dszog.StartWarning, match="1 of its 3 entries"):
        moved.starting_at([1.0, 1.0, 0.0])
    problem()  # the origin is nobody's choice
