"""Polyhedra: what is known of answers, and what can go wrong.

That answers are right, of every kind of set, ball and form, is tested against
exact arithmetic in ``test_against_exact.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

import dszog.maths.subproblems.nearest as nearest
import dszog.maths.subproblems.polyhedron as polyhedron
from dszog import EmptySetError, InputError, SubproblemError
from dszog.contract.arrays import FloatArray
from dszog.maths.subproblems import Polyhedron
from dszog.maths.subproblems.nearest import (
    Weights,
    by_active_set,
    is_empty,
    least_distance,
    least_squares,
)
from dszog.maths.subproblems.rows import MatrixRows

BALLS = ("none", "l2")
DIM = 5


# --------------------------------------------------------------------------- degenerate
def test_a_cone_that_is_the_origin_alone_sends_everything_there() -> None:
    rows = np.vstack([np.eye(DIM), -np.eye(DIM)])
    in_ball = Polyhedron.linear(rows, np.zeros(2 * DIM), ball="l2")
    np.testing.assert_array_equal(in_ball.lmo(np.ones(DIM)).point, np.zeros(DIM))
    alone = Polyhedron.linear(rows, np.zeros(2 * DIM))
    point = np.random.default_rng(12).normal(size=DIM)
    np.testing.assert_allclose(alone.project(point).point, np.zeros(DIM), atol=1e-12)
    assert alone.is_bounded
    assert alone.diameter() == 0.0


def test_a_row_of_zeros_is_true_or_a_contradiction() -> None:
    A = np.array([[0.0, 0.0], [1.0, 0.0]])
    true = Polyhedron.linear(A, [0.0, 1.0])
    untrue = Polyhedron.linear(A, [-1e-3, 1.0])
    np.testing.assert_allclose(true.project(np.array([3.0, 3.0])).point, [1.0, 3.0])
    for point in (np.zeros(2), np.array([3.0, 3.0])):
        with pytest.raises(EmptySetError, match="The feasible set is empty"):
            untrue.project(point)
    with pytest.raises(EmptySetError):
        least_distance(np.zeros(2), A, np.array([-1.0, 1.0]))
    with pytest.raises(EmptySetError):  # equal samples, one to beat the other
        Polyhedron.pairwise(np.ones((1, 2)), np.ones((1, 2)), 0.1).project(np.ones(2))


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_rows_and_sets_of_any_size_are_projected_on_alike(scale: float) -> None:
    rng = np.random.default_rng(15)
    A, b = rng.normal(size=(6, DIM)), rng.random(6)
    lengths = 10.0 ** rng.integers(-8, 8, size=6)
    plain = Polyhedron.linear(A, b)
    scaled = Polyhedron.linear(lengths[:, np.newaxis] * A, lengths * b * scale)
    for point in 3.0 * rng.normal(size=(5, DIM)):
        np.testing.assert_allclose(
            scaled.project(scale * point).point,
            scale * plain.project(point).point,
            atol=1e-8 * (scale if scale == 1.0 else 1.0 + scale),
        )


# --------------------------------------------------------------------------- empty sets
@pytest.mark.parametrize("ball", BALLS)
def test_a_set_without_a_point_is_said_to_be_empty(ball: Any) -> None:
    nowhere = Polyhedron.linear([[1.0, 0.0], [-1.0, 0.0]], [0.0, -1.0], ball=ball)
    gradient = np.array([1.0, 2.0])
    with pytest.raises(EmptySetError, match="no point satisfies all constraints"):
        nowhere.project(np.array([0.5, 3.0]))
    with pytest.raises(EmptySetError, match="Relax them"):
        nowhere.feasible_start()
    with pytest.raises(EmptySetError):
        nowhere.lmo(gradient)


@pytest.mark.parametrize("gap", [1e-2, 1e-3, 1e-4, 1e-5])
def test_a_set_that_is_empty_by_little_is_said_to_be_empty(gap: float) -> None:
    for start in np.linspace(-3.0, 3.0, 61):
        with pytest.raises(EmptySetError):
            Polyhedron.linear([[1.0], [-1.0]], [0.0, -gap]).project(np.array([start]))


# -------------------------------------------------------------------------- boundedness
def recedes(A: FloatArray) -> bool:
    """Whether some direction never leaves ``A w <= b``, in two variables, by trying.

    If there is one then a vector along some row's edge is one, or minus it.
    """
    for row in A:
        edge = np.array([-row[1], row[0]])
        for direction in (edge, -edge):
            if direction.any() and (A @ direction <= 1e-12).all():
                return True
    return not A.any()


def test_whether_a_set_is_bounded_is_what_trying_all_directions_says() -> None:
    rng = np.random.default_rng(17)
    verdicts = []
    for _ in range(150):
        A = rng.integers(-2, 3, size=(int(rng.integers(1, 6)), 2)).astype(float)
        domain = Polyhedron.linear(A, np.ones(len(A)))
        assert domain.is_bounded is (not recedes(A))
        verdicts.append(domain.is_bounded)
    assert 20 < sum(verdicts) < 130


@pytest.mark.parametrize("gradient", [[-1.0, 0.0], [0.0, -1.0]])
def test_an_unbounded_set_has_no_lowest_point(gradient: list[float]) -> None:
    quarter = Polyhedron.linear([[-1.0, 0.0], [0.0, -1.0]], [0.0, 0.0])
    with pytest.raises(InputError, match="no least value on an unbounded set"):
        quarter.lmo(np.array(gradient))
    with pytest.raises(InputError, match="Give finite bounds, or a ball"):
        quarter.diameter()


# --------------------------------------------------------------------------- what fails
# No column leads towards the target, but for rounding. Under some BLAS kernels nnls of
# SciPy 1.16 to 1.17.1 claims a residual of 0.915; that of its weights is 1.344.
A_ROUNDED = np.array(
    [
        [0.09869686526223068, 0.07601600106484643, 0.15018089357457218],
        [-0.38520742206597486, 0.0045350290317346656, -0.4264728949980235],
        [0.12542098421592032, 0.5013838817470087, -0.5180317341078938],
        [-0.7767682966300574, -0.8197131988591311, -0.5482817860440146],
        [-0.4719902126542925, 0.26624326439221485, -0.4760218215446659],
    ]
)
B_ROUNDED = np.array(
    [
        0.9762790907348218,
        -0.0030235889242815656,
        0.1371070223858664,
        0.16508154645022988,
        -0.02863114280094579,
    ]
)
# Under other kernels the same nnls is wrong here. The answer is 1 for the first column.
A_WHOLE = np.array(
    [[2.0, -2.0, -1.0, 0.0], [3.0, 0.0, -3.0, 2.0], [2.0, 3.0, -1.0, 0.0]]
)
B_WHOLE = np.array([3.0, 3.0, 1.0])


def test_least_squares_are_right_where_nnls_is_not() -> None:
    rounded = least_squares(A_ROUNDED, B_ROUNDED)
    whole = least_squares(A_WHOLE, B_WHOLE)
    assert rounded.residual == pytest.approx(1.0)
    assert np.abs(rounded.weights).max() < 1e-12
    np.testing.assert_allclose(whole.weights, [1.0, 0.0, 0.0, 0.0], atol=1e-12)
    assert whole.residual == pytest.approx(np.sqrt(2.0))


WRONG_WEIGHTS: dict[str, Any] = {
    "all zero": lambda A, b: (np.zeros(A.shape[1]), np.linalg.norm(b)),
    "negative": lambda A, b: (
        np.linalg.lstsq(A, b, rcond=None)[0],
        np.linalg.norm(A @ np.linalg.lstsq(A, b, rcond=None)[0] - b),
    ),
    "not a number": lambda A, b: (np.full(A.shape[1], np.nan), 0.0),
    "a false residual": lambda A, b: (optimize.nnls(A, b)[0], 0.0),
}


@pytest.mark.parametrize("kind", WRONG_WEIGHTS)
def test_a_wrong_answer_of_nnls_is_replaced_and_counted(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    A, b = np.array([[1.0, 0.5], [0.0, 1.0], [1.0, 1.0]]), np.array([2.0, -1.0, 1.0])
    right = optimize.nnls(A, b)
    monkeypatch.setattr(
        nearest, "nnls", lambda A, b, maxiter: WRONG_WEIGHTS[kind](A, b)
    )
    found = least_squares(A, b)
    np.testing.assert_allclose(found.weights, right[0], atol=1e-14)
    assert found.residual == pytest.approx(right[1], rel=1e-12)
    assert found.events == (
        "nnls failed (a wrong answer); an active-set method was used instead",
    )


def test_nnls_that_stops_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    def stops(*_: object, **__: object) -> None:
        raise RuntimeError("Maximum number of iterations reached.")

    rng, shift = np.random.default_rng(0), 1.5 / np.sqrt(DIM)
    high, low = rng.normal(size=(14, DIM)) + shift, rng.normal(size=(17, DIM)) - shift
    cone = Polyhedron.pairwise(high, low)
    right = cone.project(-np.ones(DIM))
    monkeypatch.setattr(nearest, "nnls", stops)
    found = cone.project(-np.ones(DIM))
    np.testing.assert_allclose(found.point, right.point, atol=1e-12)
    assert set(found.events) == {
        "nnls failed (Maximum number of iterations reached.); an active-set method was "
        "used instead"
    }


def test_unsolved_least_squares_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def gives_up(matrix: FloatArray, target: FloatArray) -> Weights:
        return Weights(np.zeros(matrix.shape[1]), float(np.linalg.norm(target)))

    monkeypatch.setattr(nearest, "nnls", lambda A, b, maxiter: gives_up(A, b)[:2])
    monkeypatch.setattr(nearest, "by_active_set", gives_up)
    with pytest.raises(
        SubproblemError, match=r"3 weights .* were not solved: nnls failed .* Scale the"
    ):
        least_squares(np.eye(3), np.ones(3))


@given(seed=st.integers(0, 2**32), n_columns=st.integers(1, 12), n=st.integers(1, 8))
@settings(max_examples=150)
def test_an_active_set_is_optimal(seed: int, n_columns: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.integers(-3, 4, size=(n, n_columns)) * 2.0 ** rng.integers(-9, 10)
    b = rng.integers(-3, 4, size=n).astype(float)
    found = by_active_set(A, b)
    left = b - A @ found.weights
    assert (found.weights >= 0.0).all()
    assert (A.T @ left).max() <= 1e-11 * max(np.abs(A).max(), 1.0)
    assert abs((A @ found.weights) @ left) <= 1e-11
    assert found.residual == pytest.approx(np.linalg.norm(left), abs=1e-12)


WRONG_CORNERS: dict[str, Any] = {
    "stops early": {"status": 1, "message": "Iteration limit."},
    "calls it empty": {"status": 2, "message": "Infeasible."},
    "calls it unbounded": {"status": 3, "message": "Unbounded."},
    "leaves the set": {"status": 0, "x": np.full(2, 3.0)},
    "is not the lowest": {"status": 0, "x": np.zeros(2)},
    "is not a number": {"status": 0, "x": np.full(2, np.nan)},
}


@pytest.mark.parametrize("kind", WRONG_CORNERS)
def test_a_wrong_answer_of_highs_is_replaced_and_counted(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object, **__: object) -> optimize.OptimizeResult:
        no_rows = optimize.OptimizeResult(marginals=np.zeros(2))
        return optimize.OptimizeResult(ineqlin=no_rows, **WRONG_CORNERS[kind])

    monkeypatch.setattr(polyhedron, "linprog", wrong)
    domain = Polyhedron.linear(np.eye(2), np.ones(2), lower=-2.0, upper=2.0)
    found = domain.lmo(np.array([-1.0, 1.0]))
    np.testing.assert_allclose(found.point, [1.0, -2.0], atol=1e-5)
    said = WRONG_CORNERS[kind].get("message", "a wrong answer")
    assert found.events == (f"HiGHS failed ({said}); a projection was used instead",)


def test_a_set_is_empty_if_rows_contradict(monkeypatch: pytest.MonkeyPatch) -> None:
    def contradicts(limit: float) -> bool:
        rows = MatrixRows(np.array([[1.0, 1.0], [-1.0, -1.0]]), np.array([1.0, limit]))
        return is_empty([rows])

    assert contradicts(-1.001)
    assert not contradicts(-1.0)
    lies = optimize.OptimizeResult(
        status=0, ineqlin=optimize.OptimizeResult(marginals=np.array([0.0, -1.0]))
    )
    monkeypatch.setattr(nearest, "linprog", lambda *_, **__: lies)
    assert not contradicts(-1.001)  # those multipliers prove nothing


def test_a_projection_that_makes_no_progress_is_an_error_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nonsense(
        point: FloatArray, normals: FloatArray, limits: FloatArray
    ) -> nearest.Nearest:
        return nearest.Nearest(point, np.ones(len(limits)))

    monkeypatch.setattr(nearest, "least_distance", nonsense)
    with pytest.raises(SubproblemError, match="stopped with a violation of 2 after"):
        Polyhedron.linear([[1.0, 0.0]], [1.0]).project(np.array([3.0, 0.0]))


# -------------------------------------------------------------------------- wrong input
def test_a_list_of_pairs_that_would_not_fit_is_refused_with_its_size() -> None:
    many = np.zeros((40_000, 10))
    with pytest.raises(
        InputError, match=r"lists 1,600,000,000 pairs, which takes 128 GB"
    ):
        Polyhedron.pairwise(many, many, form="full")
    assert Polyhedron.pairwise(many, many).n_rows == 1_600_000_000
