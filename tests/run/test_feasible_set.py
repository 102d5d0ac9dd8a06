"""`minimize` with methods that stay in a set: the set, the answer, the costs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import optimize, sparse

from dszog import (
    FCGS,
    FZCGS,
    FZFW,
    ZOPSGD,
    ZOSCGD,
    AccSZOFW,
    AccSZOFWStorm,
    AccZOM,
    Constraints,
    EmptySetError,
    Losses,
    Problem,
    Status,
    SubproblemError,
    minimize,
)
from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.subproblems import Box, L1Ball, L2Ball, Polyhedron, Simplex, Solution
from dszog.methods import FeasibleMethod
from dszog.methods.linearised import LinearisedMethod
from dszog.run.feasible_set import with_feasible_set
from tests.contracts.helpers import FEASIBLE_METHODS

TARGET = np.array([2.0, 1.0, -1.0])
# x + y <= 1, x >= 0, z >= -0.5, and a box that does not matter
A = np.array([[1.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
B = np.array([1.0, 0.0, 0.5])
NEAREST = np.array([1.0, 0.0, -0.5])


def distance(x: FloatArray) -> float:
    return float(np.square(x - TARGET).sum())


def half_distance() -> Losses:
    return Losses(
        lambda points, i: (
            np.square(points - TARGET).sum(axis=1)[:, np.newaxis] + 0.0 * i
        ),
        20,
        gradient=lambda point, i: np.tile(2.0 * (point - TARGET), (len(i), 1)),
    )


def solve(fun: Any = distance, **settings: Any) -> Any:
    """Minimise over the rows from the origin."""
    return minimize(fun, np.zeros(3), Constraints.linear(A, B), seed=0, **settings)


def solved(
    method: Any,
    constraints: Any = (),
    *,
    n: int | None = None,
    fun: Any = distance,
    x0: Any = (0.0, 0.0, 0.0),
    **more: Any,
) -> Any:
    """Minimise over any constraints."""
    more |= {"method": method, "max_iterations": n, "seed": 0}
    return minimize(fun, x0, constraints, **more)


def made(method: FeasibleMethod, constraints: Any, dim: int = 3, **more: Any) -> Any:
    """Return the method with the set that `minimize` would give it."""
    problem = Problem(half_distance(), constraints, dim, **more)
    return with_feasible_set(problem, method)[0]


# --------------------------------------------------------------- every method solves it
SOLVERS: dict[str, tuple[Any, int, float]] = {
    "zoscgd": (ZOSCGD(step_rule="open_loop", n_directions=30), 400, 0.15),
    "fzfw": (FZFW(step_size=0.01), 500, 0.03),
    "fzcgs": (FZCGS(step_size=0.1, exact_prox=True), 60, 1e-3),
    "fcgs": (FCGS(step_size=0.1, max_inner=15), 30, 0.05),
    "accszofw": (AccSZOFW(step_size=0.01), 500, 0.03),
    "accszofw_storm": (AccSZOFWStorm(step_size=0.01), 500, 0.03),
    "zopsgd": (ZOPSGD(step_size=0.05, estimator="coordinate"), 150, 1e-3),
    "acczomda": (AccZOM(estimator="coordinate"), 150, 1e-3),
}


def test_every_method_of_feasible_sets_is_solved_with_below() -> None:
    assert set(SOLVERS) == set(FEASIBLE_METHODS)


@pytest.mark.parametrize("name", SOLVERS)
def test_the_nearest_point_of_a_polytope_is_found(name: str) -> None:
    method, n_steps, accuracy = SOLVERS[name]
    result = run(method, n_steps)
    np.testing.assert_allclose(result.x, NEAREST, atol=accuracy)
    # Methods of Frank and Wolfe end a little inside, where nothing is seen to bind.
    assert result.success or "shown to be optimal" in result.message
    assert result.status == Status.MAX_ITERATIONS
    assert result.maxcv <= 1e-8
    assert result.fun == pytest.approx(distance(NEAREST), abs=6 * accuracy)
    assert result.nit == n_steps


# ---------------------------------------------------------------------------- which set
def test_bounds_alone_are_a_box() -> None:
    method = made(ZOPSGD(), None, bounds=[(-1.0, 1.0), (0.0, None), (None, None)])
    assert isinstance(method.domain, Box)
    np.testing.assert_array_equal(
        method.domain.project(np.array([5.0, -5.0, 7.0])).point, [1.0, 0.0, 7.0]
    )


@pytest.mark.parametrize(
    "constraints",
    [
        Constraints.linear(A, B),
        Constraints.linear(sparse.csr_array(A), B),
        [Constraints.linear(A[:1], B[:1]), Constraints.linear(A[1:], B[1:])],
        Constraints.concat(
            Constraints.linear(A[:2], B[:2]), Constraints.linear(A[2:], B[2:])
        ),
        optimize.LinearConstraint(A, -np.inf, B),
        [
            Constraints.linear(A[:1], B[:1]),
            optimize.LinearConstraint(-A[1:], -B[1:], np.inf),
        ],
    ],
    ids=["dense", "sparse", "list", "concat", "scipy", "mixed"],
)
def test_linear_constraints_of_all_kinds_make_the_same_set(constraints: Any) -> None:
    method = made(ZOPSGD(), constraints)
    assert isinstance(method.domain, Polyhedron)
    np.testing.assert_allclose(method.domain.project(TARGET).point, NEAREST, atol=1e-9)


def test_the_constraints_that_hold_the_answer_are_reported_by_their_index() -> None:
    result = solve(method=ZOPSGD(step_size=0.05), max_iterations=300)
    indices, weights = result.weights
    assert indices.tolist() == [0, 2]
    assert weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("x_scale", [1.0, 100.0, [0.01, 1.0, 50.0]])
@pytest.mark.parametrize("kind", ["linear", "sparse", "pairs", "bounds"])
def test_the_answer_is_in_the_variables_of_the_user(kind: str, x_scale: Any) -> None:
    scale = np.broadcast_to(x_scale, 3)
    constraints: Any = Constraints.linear(A / scale, B)
    bounds: Any = None
    if kind == "sparse":
        constraints = Constraints.linear(sparse.csr_array(A / scale), B)
    if kind == "bounds":
        constraints = Constraints.linear(A[:1] / scale, B[:1])
        bounds = [(0.0, None), (None, None), (-0.5 * scale[2], None)]
    if kind == "pairs":  # x + y <= 1 by itself is the pair (0, row) with margin -1
        constraints = [
            Constraints.pairwise(np.zeros((1, 3)), A[:1] / scale, margin=-1.0),
            Constraints.linear(A[1:] / scale, B[1:]),
        ]
    result = solved(
        AccZOM(estimator="coordinate"), constraints, n=150,
        fun=lambda x: distance(x / scale), bounds=bounds, x_scale=x_scale,
    )  # fmt: skip
    np.testing.assert_allclose(result.x / scale, NEAREST, atol=1e-3)
    assert result.maxcv <= 1e-8


def test_a_set_of_the_users_own_is_all_that_is_needed() -> None:
    result = solved(AccZOM(domain=L2Ball(dim=3, radius=0.5)), n=300)
    assert np.linalg.norm(result.x) == pytest.approx(0.5, abs=1e-3)
    assert "stationary" not in result.message


# ----------------------------------------------------------------------- unbounded sets
HALF = Constraints.linear([[-1.0, 0.0, 0.0]], [0.0])
RETRACT = {"nonconvex": "retract"}


@pytest.mark.parametrize("name", ["zoscgd", "fzfw", "fzcgs", "accszofw"])
def test_an_unbounded_set_is_cut_to_a_ball_and_that_is_said(name: str) -> None:
    result = minimize(
        distance, np.zeros(3), HALF, method=name, max_iterations=3, seed=0
    )
    assert "was cut to the ball |x| <= 10" in result.message
    assert result.method.domain.ball == "l2"
    assert result.method.domain.is_bounded


def test_bounded_sets_and_methods_that_project_are_not_cut() -> None:
    assert made(ZOPSGD(), HALF).domain.ball == "none"
    assert made(AccZOM(), HALF).domain.ball == "none"
    bounded = made(FZFW(), HALF, bounds=[(-1.0, 1.0)] * 3)
    assert bounded.domain.ball == "none"
    eye = np.eye(3)
    rows = made(FZFW(), Constraints.linear(np.vstack([eye, -eye]), np.ones(6)))
    assert rows.domain.ball == "none"


# ----------------------------------------------------------------------------- tangents
def test_tangents_of_a_convex_constraint_lead_to_its_optimum() -> None:
    disc = Constraints(
        lambda points, j: np.square(points).sum(axis=1, keepdims=True) - 1.0,
        1,
        jacobian=lambda point, j: 2.0 * point[np.newaxis],
    )
    result = solved(
        ZOPSGD(nonconvex="linearise", step_size=0.05, estimator="coordinate"),
        disc,
        n=300,
        constraint_tol=1e-3,
    )
    assert isinstance(result.method, LinearisedMethod)
    assert "1 constraints were replaced by tangents at each iterate" in result.message
    np.testing.assert_allclose(result.x, TARGET / np.linalg.norm(TARGET), atol=0.01)
    assert result.success
    assert result.ncev > 300


def covariances() -> Constraints:
    """|cov_j| <= 0.05 for three groups and a linear score: neither way curved."""
    rng = np.random.default_rng(4)
    rows, signs = rng.normal(size=(80, 3)), rng.choice([-1.0, 1.0], 80)
    groups = rng.random((3, 80))
    weights = (groups - groups.mean(axis=1, keepdims=True)) / 80

    def values(points: FloatArray, j: IntArray) -> FloatArray:
        scores = np.minimum(0.0, signs * (points @ rows.T))
        both = scores @ weights.T
        return np.concatenate([both, -both], axis=1)[:, j] - 0.05

    def slopes(point: FloatArray, j: IntArray) -> FloatArray:
        below = signs * (rows @ point) < 0.0
        both = (weights * below * signs) @ rows
        return np.concatenate([both, -both])[j]

    return Constraints(values, 6, jacobian=slopes)


@pytest.mark.parametrize(
    "method",
    [
        ZOPSGD(nonconvex="retract", step_size=0.02),
        AccZOM(nonconvex="retract", step_size=0.05),
        FZFW(nonconvex="retract", step_size=0.02),
        FZCGS(nonconvex="retract", step_size=0.02, exact_prox=True),
        AccSZOFWStorm(nonconvex="retract", step_size=0.02),
    ],
    ids=lambda method: type(method).__name__,
)
def test_retracted_iterates_are_feasible_all_the_way(method: Any) -> None:
    constraints, every = covariances(), np.arange(6)
    worst: list[float] = []

    def look(progress: Any) -> None:
        values = constraints.values(progress.x[np.newaxis], every)
        worst.append(float(values.max()))

    result = solved(method, constraints, n=100, callback=look)
    assert max(worst) <= 1e-8
    assert result.maxcv <= 1e-8
    assert result.fun < distance(np.zeros(3)) - 0.3


# -------------------------------------------------------------------------------- costs
def run(method: Any, n_steps: int, **more: Any) -> Any:
    return solve(
        half_distance(),
        bounds=[(-3.0, 3.0)] * 3,
        method=method,
        max_iterations=n_steps,
        **more,
    )


@pytest.mark.parametrize("name", SOLVERS)
def test_subproblems_are_counted(name: str) -> None:
    method = SOLVERS[name][0]
    result = run(method, 12)
    costs = result.costs
    parts = (costs.time_estimate, costs.time_subproblem, costs.time_other)
    assert min(parts) > 0.0
    assert costs.time == pytest.approx(sum(parts))
    projects = isinstance(method, (ZOPSGD, AccZOM)) or name == "fzcgs"  # exact_prox
    assert costs.n_projections == (12 if projects else 0)
    if name == "fcgs":
        assert costs.n_oracle_calls == costs.n_inner >= 12
    else:
        assert costs.n_oracle_calls == (0 if projects else 12)
        assert costs.n_inner == 0
    n_calls = costs.n_projections + costs.n_oracle_calls
    assert costs.n_rows == n_calls * (3 + 6)  # three rows and six sides
    assert costs.n_solver_rounds >= n_calls
    assert costs.n_loss_queries == result.nfev
    assert costs.n_constraint_queries == result.ncev


def test_the_inner_loop_that_hits_its_cap_is_counted_and_told() -> None:
    result = run(FZCGS(step_size=0.1, inner_gap=1e-12, max_inner=2), 10)
    event = "inner loop ended by max_inner"
    assert result.costs.n_inner == result.costs.n_oracle_calls <= 20
    assert 1 <= result.costs.events[event] <= 10
    assert "Inner loop ended by max_inner (" in result.message


def test_dszog_costs_no_subproblem() -> None:
    costs = run("dszog", 10).costs
    assert costs.n_projections == costs.n_oracle_calls == costs.n_rows == 0
    assert costs.time_subproblem == 0.0


# -------------------------------------------------------------------- what may go wrong
class Fragile:
    """A ball that works a few times."""

    def __init__(self, n_good: int, error: Exception) -> None:
        self._ball = L2Ball(dim=3, radius=1.0)
        self._n_left = n_good
        self._error = error

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ball, name)

    def project(self, point: FloatArray, hint: object = None) -> Solution:
        self._n_left -= 1
        if self._n_left < 0:
            raise self._error
        return self._ball.project(point)


@pytest.mark.parametrize("error", [SubproblemError, EmptySetError])
def test_a_failing_subproblem_ends_with_the_best(error: type[Exception]) -> None:
    domain: Any = Fragile(30, error("The solver gave up. Scale."))
    result = solved(ZOPSGD(domain=domain, step_size=0.05), n=100)
    assert result.status == Status.SUBPROBLEM_FAILED
    assert not result.success
    assert result.message.startswith(
        "A projection or a linear minimisation failed. The solver gave up. Scale."
    )
    assert result.nit == 30
    assert result.fun < distance(np.zeros(3)) - 2.0


# ---------------------------------------------------------- what a first user ran into
@pytest.mark.parametrize(
    ("domain", "start"),
    [
        (Simplex(dim=3), np.zeros(3)),
        (L1Ball(dim=3, radius=1.0), np.array([2.0, 1.0, -1.0])),
    ],
    ids=["simplex", "l1 ball"],
)
@pytest.mark.parametrize("name", ["zopsgd", "acczomda", "fzfw", "accszofw_storm"])
def test_an_answer_is_in_the_set(domain: Any, start: FloatArray, name: str) -> None:
    result = solved(
        name,
        n=30,
        fun=lambda x: float(np.sum((x - start) ** 2)),
        x0=start,
        options={"domain": domain},
    )
    assert domain.contains(result.x)


def far(x: FloatArray) -> float:
    return float(np.square(x - 30.0).sum())


def beyond_one(points: FloatArray, j: IntArray) -> FloatArray:
    return 1.0 - points[:, :1] + 0.0 * j


BEYOND = Constraints(
    beyond_one, 2, jacobian=lambda x, j: np.tile([-1.0, 0.0, 0.0], (len(j), 1))
)
TOLD: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "The start was moved to the nearest feasible point.": (
        *("zopsgd", Constraints.linear(A, B)),
        {"x0": np.full(3, 5.0)},
    ),
    "the constraints beside it were only checked": (
        *("zopsgd", Constraints.linear(np.eye(3)[:1], [0.1])),
        {"options": {"domain": L2Ball(dim=3, radius=1.0)}},
    ),
    "was cut to the ball |x| <= 69.28": (  # where 10 would leave no point
        *("fzfw", Constraints.linear(-np.ones((1, 3)), [-60.0])),
        {},
    ),
    "The result lies on the ball of radius 10": (
        *("accszofw", Constraints.linear([[1.0, -1.0, 0.0]], [1.0])),
        {"fun": far},
    ),
    "was cut to the ball |x / x_scale| <= 10;": ("fzfw", HALF, {"x_scale": 100.0}),
    "The origin is not feasible": ("zopsgd", BEYOND, {"options": RETRACT}),
}


@pytest.mark.parametrize("words", TOLD)
def test_what_was_done_to_start_and_set_is_told(words: str) -> None:
    method, constraints, more = TOLD[words]
    result = solved(method, constraints, n=100, **more)
    assert words in result.message
    assert result.maxcv <= 1e-3 or "only checked" in words
