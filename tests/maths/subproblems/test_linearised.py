"""Tangents of constraints, elastic mode, and the way back to the origin."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dszog import EmptySetError
from dszog.contract.arrays import FloatArray
from dszog.maths.subproblems import Polyhedron
from dszog.maths.subproblems.linearised import ELASTIC, LinearisedSet, retraction
from dszog.maths.subproblems.rows import MatrixRows

DIM = 3
ALL = np.arange(4)


def linearised(**more: object) -> LinearisedSet:
    settings: dict[str, object] = {"indices": ALL, "trust_radius": 50.0}
    return LinearisedSet(**(settings | more))  # type: ignore[arg-type]


def test_tangents_of_linear_functions_are_the_functions_themselves() -> None:
    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, DIM))
    b = np.ones(4)
    exact = Polyhedron.linear(A, b)
    for x in 2.0 * rng.normal(size=(10, DIM)):
        domain, events = linearised().at(x, A @ x - b, A)
        assert events == ()
        for point in 3.0 * rng.normal(size=(5, DIM)):
            np.testing.assert_allclose(
                domain.project(point).point, exact.project(point).point, atol=1e-8
            )


def contradiction(x: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """x <= -1 and x >= 1, in the first variable."""
    point = np.array([x, 0.0, 0.0])
    jacobian = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])
    return point, np.array([x + 1.0, 1.0 - x]), jacobian


def test_tangents_that_contradict_each_other_are_relaxed_and_that_is_said() -> None:
    x, values, jacobian = contradiction(0.0)
    domain, events = linearised(indices=np.arange(2)).at(x, values, jacobian)
    assert events == (ELASTIC,)
    np.testing.assert_allclose(domain.project(x).point, x, atol=1e-8)


@pytest.mark.parametrize("x", [-0.9, -0.3, 0.0, 0.4, 5.0])
def test_relaxed_tangents_make_no_violation_worse(x: float) -> None:
    point, values, jacobian = contradiction(x)
    domain, _ = linearised(indices=np.arange(2)).at(point, values, jacobian)
    moved = domain.project(point + np.array([0.0, 1.0, 0.0])).point
    _, after, _ = contradiction(moved[0])
    assert (np.maximum(after, 0.0) <= np.maximum(values, 0.0) + 1e-7).all()


def test_linear_constraints_that_leave_no_point_near_by_are_an_error() -> None:
    far = MatrixRows(np.array([[-1.0, 0.0, 0.0]]), np.array([-20.0]))  # x >= 20
    near = linearised(indices=np.arange(1), families=(far,), trust_radius=1.0)
    with pytest.raises(EmptySetError, match="leave no point near the iterate"):
        near.at(np.zeros(DIM), np.array([1.0]), np.eye(DIM)[:1])


@given(
    x=hnp.arrays(np.float64, DIM, elements=st.floats(-50, 50, allow_subnormal=False)),
    limit=st.floats(0.01, 10.0),
    seed=st.integers(0, 1000),
)
def test_a_retracted_point_is_feasible_for_homogeneous_functions(
    x: FloatArray, limit: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows, weights = rng.normal(size=(20, DIM)), rng.normal(size=(5, 20))

    def values(w: FloatArray) -> FloatArray:  # piecewise linear, neither way curved
        covariances = weights @ np.minimum(0.0, rows @ w) / 20
        return np.asarray(np.concatenate([covariances, -covariances]) - limit)

    factor = retraction(values(x), values(np.zeros(DIM)))
    assert 0.0 <= factor <= 1.0
    assert values(factor * x).max() <= 1e-9 * (1.0 + limit)
    if factor < 1.0:  # no farther than needed
        assert values(factor * x).max() >= -1e-9 * (1.0 + limit)


@pytest.mark.parametrize(
    ("values", "at_origin", "factor"),
    [
        ([-1.0, 0.0], [-2.0, -1.0], 1.0),  # feasible
        ([], [], 1.0),
        ([2.0], [0.0], 0.0),  # the origin alone belongs to the set
        ([1.0], [2.0], 0.0),  # 1 everywhere, or falling to 1: no factor helps
        ([1.0], [1.0], 0.0),
        ([1.0, 1.0], [-1.0, 0.5], 0.0),  # nor that another could be met half-way
    ],
)
def test_a_point_goes_as_far_towards_the_origin_as_helps(
    values: list[float], at_origin: list[float], factor: float
) -> None:
    assert retraction(np.array(values), np.array(at_origin)) == factor


def test_a_start_far_from_the_linear_constraints_finds_its_way_to_them() -> None:
    far = MatrixRows(np.array([[-1.0, 0.0, 0.0]]), np.array([-20.0]))  # x >= 20
    near = linearised(indices=np.arange(1), families=(far,), trust_radius=1.0)
    np.testing.assert_allclose(near.start(np.zeros(DIM)), [20.0, 0.0, 0.0], atol=1e-9)
