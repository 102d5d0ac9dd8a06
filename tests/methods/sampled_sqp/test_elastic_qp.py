"""The subproblem: answers satisfy the optimality conditions, whatever the rows say."""

from __future__ import annotations

import numpy as np
import pytest

from dszog.contract.arrays import FloatArray
from dszog.methods.sampled_sqp import elastic_qp
from dszog.methods.sampled_sqp.elastic_qp import Answer, LinearModels, solve

FAR = np.inf


def rows_of(slopes: FloatArray, offsets: FloatArray, n_equal: int = 0) -> LinearModels:
    lengths = np.linalg.norm(slopes, axis=1)
    return LinearModels(
        slopes=slopes / lengths[:, np.newaxis],
        offsets=offsets / lengths,
        two_sided=np.arange(len(offsets)) < n_equal,
    )


def cost(
    hessian: FloatArray,
    gradient: FloatArray,
    rows: LinearModels,
    price: float,
    s: FloatArray,
) -> float:
    values = rows.offsets + rows.slopes @ s
    values = np.where(rows.two_sided, np.abs(values), np.maximum(values, 0.0))
    return float(gradient @ s + 0.5 * s @ hessian @ s + price * values.sum())


def check_optimal(
    hessian: FloatArray,
    gradient: FloatArray,
    rows: LinearModels,
    price: float,
    reach: float,
    answer: Answer,
) -> None:
    """The cost is convex: no nearby point, in any of many directions, is better."""
    assert answer.residual <= 1e-8
    assert (np.abs(answer.step) <= reach).all()
    here = cost(hessian, gradient, rows, price, answer.step)
    rng = np.random.Generator(np.random.Philox(key=1))
    for size in (1e-1, 1e-3, 1e-5):
        moves = size * rng.normal(size=(200, len(gradient)))
        for move in moves:
            there = np.clip(answer.step + move, -reach, reach)
            assert cost(hessian, gradient, rows, price, there) >= here - 1e-7 * (
                1.0 + abs(here)
            )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("dim", "k", "n_equal", "price", "reach"),
    [
        (1, 3, 0, 1e3, FAR),
        (4, 12, 2, 1e3, 0.4),
        (4, 12, 0, 0.3, FAR),  # rows are rather paid for
        (12, 40, 3, 1e4, FAR),
        (12, 80, 0, 5.0, 0.2),
    ],
)
def test_no_point_nearby_is_better(
    dim: int, k: int, n_equal: int, price: float, reach: float, seed: int
) -> None:
    rng = np.random.Generator(np.random.Philox(key=seed))
    root = rng.normal(size=(dim, dim))
    hessian = root @ root.T / dim * 10.0 ** rng.uniform(-2, 2) + 1e-3 * np.eye(dim)
    gradient = rng.normal(size=dim)
    rows = rows_of(rng.normal(size=(k, dim)), rng.normal(size=k) - 0.5, n_equal)
    sides = np.full(dim, reach)
    answer = solve(hessian, gradient, rows, price, -sides, sides, np.zeros(k))
    check_optimal(hessian, gradient, rows, price, reach, answer)


def test_rows_that_contradict_each_other_are_violated_as_little_as_can_be() -> None:
    rows = rows_of(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([1.0, 1.0]))
    far = np.full(2, FAR)
    answer = solve(np.eye(2), np.array([0.0, 1.0]), rows, 1e3, -far, far, np.zeros(2))
    values = rows.offsets + rows.slopes @ answer.step
    assert np.maximum(values, 0.0).sum() == pytest.approx(2.0)  # 1 - s and 1 + s
    assert answer.step[1] == pytest.approx(-1.0)
    assert answer.residual <= 1e-9


def test_an_equality_pulls_from_either_side() -> None:
    far = np.full(1, FAR)
    for target in (-2.0, 2.0):
        rows = rows_of(np.array([[1.0]]), np.array([-target]), n_equal=1)
        answer = solve(np.eye(1), np.zeros(1), rows, 1e3, -far, far, np.zeros(1))
        assert answer.step == pytest.approx([target])
        assert answer.multipliers == pytest.approx([-target])


def test_rows_that_depend_on_each_other_are_no_obstacle() -> None:
    slopes = np.repeat(np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), 4, axis=0)
    rows = rows_of(slopes, np.full(8, -1.0))
    far = np.full(3, FAR)
    gradient = -np.array([3.0, 5.0, 3.0])
    answer = solve(np.eye(3), gradient, rows, 1e3, -far, far, np.zeros(8))
    assert answer.residual <= 1e-9
    assert (rows.offsets + rows.slopes @ answer.step).max() <= 1e-9


@pytest.mark.parametrize("seed", range(8))
def test_the_multipliers_to_begin_with_change_nothing(seed: int) -> None:
    """Also where rows are equal or opposite, prices high and the matrix nearly flat."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    dim, k, price = 8, 40, 10.0 ** rng.uniform(0, 5)
    slopes = np.round(2.0 * rng.normal(size=(k, dim)))
    slopes[0] = 1.0
    slopes[k // 2 :] = -slopes[rng.integers(k // 2, size=k // 2)]
    slopes[(slopes == 0).all(axis=1)] = 1.0
    rows = rows_of(slopes, np.round(rng.normal(size=k)), 2)
    hessian = 10.0 ** rng.uniform(-6, 0) * np.eye(dim)
    sides = np.full(dim, 3.0)
    gradient = rng.normal(size=dim)
    cold, warm = (
        solve(hessian, gradient, rows, price, -sides, sides, start)
        for start in (np.zeros(k), rng.normal(size=k) * price)
    )

    assert max(cold.residual, warm.residual) <= 1e-9
    np.testing.assert_allclose(warm.step, cold.step, rtol=0, atol=1e-7)


def test_a_subproblem_that_cannot_be_solved_says_so() -> None:
    rows = rows_of(np.array([[1.0]]), np.array([1.0]))
    far = np.full(1, FAR)
    hessian = np.full((1, 1), np.nan)
    answer = solve(hessian, np.ones(1), rows, 1e3, -far, far, np.zeros(1))
    assert not answer.residual <= 1.0


def test_rows_that_take_turns_are_left_alone_after_some_moves() -> None:
    rows = rows_of(np.eye(2), np.array([2.0, 1.0]))
    far = np.full(2, np.inf)
    problem = elastic_qp._Problem(np.eye(2), np.zeros(2), rows, 9.0, -far, far)
    for expected in (0, 1):
        assert (problem._worst(np.zeros(2)) or (None,))[0] == expected
        problem.n_moves[expected] = elastic_qp.MOVES
    assert problem._worst(np.zeros(2)) is None
