"""The evidence for a point, against known minima and the paper's own formulas."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dszog
from dszog import DSZOG, Constraints, Losses, Problem, certify
from dszog.contract.arrays import FloatArray, IntArray
from dszog.evidence import stationarity
from dszog.maths.distribution import project_onto_simplex
from dszog.methods.theory import TheoremConstants, theorem_parameters
from tests.contracts.helpers import Kind, make_problem
from tests.runs import by_dszog


# ------------------------------------------------------------ minima that are known
@dataclass(frozen=True)
class Known:
    """A problem with its minimiser and multipliers, worked out by hand."""

    fun: Callable[[FloatArray], float]
    gradient: Callable[[FloatArray], FloatArray]
    values: Callable[[FloatArray], FloatArray]
    jacobian: Callable[[FloatArray], FloatArray]
    x: FloatArray
    multipliers: dict[int, float]
    bounds: Any = None

    def problem(self, white: bool = False, **more: Any) -> Problem:
        def losses(points: FloatArray, i: IntArray) -> FloatArray:
            return np.array([[self.fun(x)] for x in points])

        def values(points: FloatArray, j: IntArray) -> FloatArray:
            return np.array([self.values(x)[j] for x in points])

        m = len(self.values(self.x))
        return Problem(
            Losses(
                losses, 1, gradient=(lambda x, i: [self.gradient(x)]) if white else None
            ),
            Constraints(
                values,
                m,
                jacobian=(lambda x, j: self.jacobian(x)[j]) if white else None,
            ),
            len(self.x),
            bounds=self.bounds,
            **more,
        )


KNOWN = {
    # min x + y in the unit disc: -grad f = (-1, -1) = alpha 2 x.
    "linear in a disc": Known(
        lambda x: float(x.sum()),
        lambda x: np.ones(2),
        lambda x: np.array([x @ x - 1.0]),
        lambda x: 2.0 * x[np.newaxis],
        np.full(2, -math.sqrt(0.5)),
        {0: math.sqrt(0.5)},
    ),
    # The projection of (2, 1, -1) onto x <= 1/2, y <= 3, x + y <= 1: two are active.
    "a corner": Known(
        lambda x: float(((x - [2.0, 1.0, -1.0]) ** 2).sum()),
        lambda x: 2.0 * (x - [2.0, 1.0, -1.0]),
        lambda x: np.array([x[0] - 0.5, x[1] - 3.0, x[0] + x[1] - 1.0]),
        lambda x: np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0]]),
        np.array([0.5, 0.5, -1.0]),
        {0: 2.0, 2: 1.0},
    ),
    # A saddle made a minimum by a curve: min x y on x^2 + 4 y^2 <= 8.
    "nonconvex": Known(
        lambda x: float(x[0] * x[1]),
        lambda x: np.array([x[1], x[0]]),
        lambda x: np.array([x[0] ** 2 + 4.0 * x[1] ** 2 - 8.0, -x[0], x[0] - 9.0]),
        lambda x: np.array([[2.0 * x[0], 8.0 * x[1]], [-1.0, 0.0], [1.0, 0.0]]),
        np.array([2.0, -1.0]),
        {0: 0.25},
    ),
    # The bound x <= 1 takes the other half of the gradient.
    "with a bound": Known(
        lambda x: float(((x - [3.0, 2.0]) ** 2).sum()),
        lambda x: 2.0 * (x - [3.0, 2.0]),
        lambda x: np.array([x[1] - 1.0, x[0] + x[1] - 50.0]),
        lambda x: np.array([[0.0, 1.0], [1.0, 1.0]]),
        np.array([1.0, 1.0]),
        {0: 2.0},
        bounds=[(-1.0, 1.0), (-5.0, 5.0)],
    ),
    # An inner minimum: nothing is active.
    "inside": Known(
        lambda x: float(((x - 0.25) ** 2).sum()),
        lambda x: 2.0 * (x - 0.25),
        lambda x: np.array([x @ x - 1.0]),
        lambda x: 2.0 * x[np.newaxis],
        np.full(2, 0.25),
        {},
    ),
}


@pytest.mark.parametrize("white", [True, False], ids=["given", "differences"])
@pytest.mark.parametrize("name", KNOWN)
def test_multipliers_of_known_minima_are_found(name: str, white: bool) -> None:
    known = KNOWN[name]
    evidence = certify(known.problem(white), known.x)
    found = evidence.stationarity
    assert found is not None
    assert found.best_lagrangian < 1e-7
    recovered = dict(zip(*(a.tolist() for a in found.multipliers), strict=True))
    recovered = {j: a for j, a in recovered.items() if a > 1e-6}
    assert recovered.keys() == known.multipliers.keys()
    for j, alpha in known.multipliers.items():
        assert recovered[j] == pytest.approx(alpha, rel=1e-6)
    assert evidence.objective == known.fun(known.x)
    assert evidence.objective_error == 0.0
    assert evidence.feasibility.is_exact
    assert evidence.feasibility.maxcv < 1e-12
    assert found.violation < 1e-12
    assert found.complementarity < 1e-12
    assert found.gradients == ("given gradients" if white else "central differences")
    assert found.gradient_norm == pytest.approx(
        float(np.linalg.norm(known.gradient(known.x))), abs=1e-7 if white else 1e-4
    )  # at a bound the differences have one side only


@pytest.mark.parametrize("scale", [1.0, [0.1, 3.0], [2.0, 1e3]], ids=str)
@pytest.mark.parametrize("name", ["linear in a disc", "nonconvex", "with a bound"])
def test_the_evidence_is_in_the_users_variables(name: str, scale: Any) -> None:
    known = KNOWN[name]
    x = known.x * [0.9, 1.3]
    plain = certify(known.problem(white=True), x)
    for white in (True, False):
        scaled = certify(known.problem(white, x_scale=scale), x)
        assert scaled.stationarity is not None
        assert plain.stationarity is not None
        names = "gradient_norm lagrangian violation outer_gradient best_lagrangian"
        for field in names.split():
            assert getattr(scaled.stationarity, field) == pytest.approx(
                getattr(plain.stationarity, field), rel=1e-4, abs=1e-6
            )


# --------------------------------------------- the definitions, recomputed from scratch
@pytest.mark.parametrize("white", [True, False], ids=["given", "differences"])
@pytest.mark.parametrize("seed", range(6))
def test_definitions_2_3_and_4_are_those_of_the_paper(seed: int, white: bool) -> None:
    rng = np.random.Generator(np.random.Philox(key=seed))
    dim, n, m = 3, 4, 12
    beta, ridge = float(rng.uniform(1, 20)), float(rng.uniform(1, 9))
    centres, rows = rng.normal(size=(n, dim)), rng.normal(size=(m, dim))
    shifts = rng.normal(size=m)
    x = rng.normal(size=dim)
    p = rng.dirichlet(np.ones(m)) * (rng.random(m) < 0.7)
    p /= p.sum()

    def loss(points: FloatArray, i: IntArray) -> FloatArray:
        gaps = points[:, np.newaxis] - centres[i]
        return np.asarray((gaps**2 + np.sin(gaps)).sum(axis=2))

    def loss_gradient(w: FloatArray, i: IntArray) -> FloatArray:
        return np.asarray(2 * (w - centres[i]) + np.cos(w - centres[i]))

    def values(points: FloatArray, j: IntArray) -> FloatArray:
        return np.asarray(points @ rows[j].T + shifts[j] + (points**2).sum(1)[:, None])

    def jacobian(w: FloatArray, j: IntArray) -> FloatArray:
        return np.asarray(rows[j] + 2 * w)

    problem = Problem(
        Losses(loss, n, gradient=loss_gradient if white else None),
        Constraints(values, m, jacobian=jacobian if white else None),
        dim,
    )
    weights = np.flatnonzero(p), p[p > 0]
    found = certify(problem, x, weights, penalty=beta, ridge=ridge).stationarity
    assert found is not None
    assert found.n_examined == m
    # paper.md, section 5.
    f = values(x[np.newaxis], np.arange(m))[0]
    violation = np.maximum(f, 0.0)
    gradient = loss_gradient(x, np.arange(n)).mean(axis=0)
    gradients = jacobian(x, np.arange(m))
    alpha = 2 * beta * p * violation
    close: Any = {"rel": 1e-12 if white else 1e-6, "abs": 1e-12 if white else 1e-6}
    assert found.lagrangian == pytest.approx(
        np.linalg.norm(gradient + alpha @ gradients), **close
    )
    assert found.violation == pytest.approx(np.sqrt((violation**2).sum()))
    assert found.complementarity == pytest.approx(np.sqrt(((alpha * f) ** 2).sum()))
    in_p = beta * violation**2 - ridge * p
    assert found.dual_gradient == pytest.approx(np.linalg.norm(in_p))
    moved = project_onto_simplex(p + in_p) - p
    assert found.projected_dual_gradient == pytest.approx(np.linalg.norm(moved))
    best_p = project_onto_simplex(beta * violation**2 / ridge)  # p*(w)
    outer = gradient + (2 * beta * best_p * violation) @ gradients
    assert found.outer_gradient == pytest.approx(np.linalg.norm(outer), **close)
    assert found.best_lagrangian <= found.lagrangian + 1e-6
    assert (found.multipliers[1] > 0).all()
    positive = found.multipliers[1] @ gradients[found.multipliers[0]]
    assert found.best_lagrangian == pytest.approx(
        np.linalg.norm(gradient + positive), rel=1e-5, abs=1e-6
    )


def test_a_bound_takes_what_pushes_against_it_and_nothing_else() -> None:
    known = KNOWN["with a bound"]
    problem = known.problem(white=True)
    at_bound = certify(problem, [1.0, 0.0]).stationarity  # the gradient is (-4, -4)
    inside = certify(problem, [0.0, 0.0]).stationarity  # (-6, -4)
    assert at_bound is not None
    assert inside is not None
    assert at_bound.best_lagrangian == pytest.approx(4.0)
    assert at_bound.lagrangian == pytest.approx(4.0)
    assert inside.best_lagrangian == pytest.approx(math.hypot(6.0, 4.0))
    lower = Problem(  # at a lower bound against which the gradient does not push
        lambda x: float(-x[0]), Constraints.linear([[1.0]], 9.0), 1, bounds=[(0.0, 9.0)]
    )
    found = certify(lower, [0.0]).stationarity
    assert found is not None
    assert found.best_lagrangian == pytest.approx(1.0)


def test_without_multipliers_the_residual_is_too_large_and_never_too_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object) -> None:
        raise dszog.SubproblemError("not solved")

    monkeypatch.setattr("dszog.evidence.stationarity.least_squares", fails)
    known = KNOWN["a corner"]
    found = certify(known.problem(white=True), known.x).stationarity
    assert found is not None
    assert found.best_lagrangian == pytest.approx(found.gradient_norm)


# -------------------------------------------------------------------- how much is seen
def stripes(m: int) -> tuple[Problem, list[int]]:
    counted = [0, 0]

    def losses(points: FloatArray, i: IntArray) -> FloatArray:
        counted[0] += len(points) * len(i)
        return np.sin(i) + 0.0 * points[:, :1]

    def values(points: FloatArray, j: IntArray) -> FloatArray:
        counted[1] += len(points) * len(j)
        return np.where(j % 50 == 7, 0.5, -1.0) + 0.0 * points[:, :1]

    return Problem(Losses(losses, 3000), Constraints(values, m), 2), counted


@pytest.mark.parametrize("max_queries", [2, 3, 4, 5, 10, 100, 3000, 20_000])
def test_a_small_number_of_queries_is_kept_and_said(max_queries: int) -> None:
    problem, counted = stripes(10**6)
    evidence = certify(problem, np.zeros(2), max_queries=max_queries)
    assert sum(counted) <= max_queries
    feasibility = evidence.feasibility
    assert feasibility.kind == "sampled"
    assert feasibility.n_checked == counted[1] < 10**6
    assert feasibility.share_bound >= feasibility.n_violated / feasibility.n_checked
    assert feasibility.share_bound >= 0.02
    assert evidence.n_losses_checked == counted[0]
    assert "with 95 % confidence" in str(evidence)


@pytest.mark.parametrize("what", ["loss", "constraint", "gradient"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, "raise"])
def test_what_gave_no_value_never_counts_as_kept(what: str, bad: Any) -> None:
    def fail() -> Any:
        if bad == "raise":
            raise ValueError("no")
        return bad

    def fun(x: FloatArray) -> Any:
        moved = bool((x != 0.0).any())
        fails = what == "loss" or (what == "gradient" and moved)
        return fail() if fails else 1.0

    problem = Problem(
        fun,
        Constraints.from_function(
            lambda x, j: fail() if what == "constraint" and j == 2 else -1.0, 4
        ),
        2,
    )
    evidence = certify(problem, np.zeros(2))
    assert evidence.is_known == (what == "gradient")
    assert evidence.stationarity is None  # its violation would be unknown
    assert evidence.note == f"not known: a {what} gave no value"
    if what == "loss":
        assert np.isnan(evidence.objective)
    if what == "constraint":
        assert np.isnan(evidence.feasibility.maxcv)
        assert evidence.feasibility.n_unknown == 1
        assert not evidence.feasibility.is_exact
        assert evidence.feasibility.share_bound == 0.25
        assert "1 gave no value" in str(evidence)


# ------------------------------------------------------------- the evidence of minimize
@pytest.mark.parametrize("name", ["linear in a disc", "a corner", "with a bound"])
def test_minimize_brings_the_evidence_and_the_multipliers(name: str) -> None:
    known = KNOWN[name]
    result = by_dszog(
        known.problem(), np.zeros(len(known.x)), max_iterations=1000, seed=0
    )
    assert result.success
    np.testing.assert_allclose(result.x, known.x, atol=0.03)
    evidence = result.certificate
    np.testing.assert_array_equal(evidence.x, result.x)
    assert evidence.objective == result.fun == known.fun(result.x)
    assert evidence.feasibility.maxcv == result.maxcv
    assert evidence.stationarity is not None
    assert evidence.stationarity.best_lagrangian < 0.1
    assert evidence.stationarity.penalty == result.method.penalty
    indices, values = result.multipliers
    found = dict(zip(indices.tolist(), values.tolist(), strict=True))
    for j, alpha in known.multipliers.items():
        assert found.get(j, 0.0) == pytest.approx(alpha, abs=0.15)
    again = certify(
        known.problem(),
        result.x,
        result.weights,
        penalty=result.method.penalty,
        ridge=result.method.dual_ridge,
    )
    assert str(again) == str(evidence)


def test_where_gradients_are_too_expensive_the_note_says_what_they_cost() -> None:
    known = KNOWN["a corner"]
    result = dszog.minimize(known.problem(), np.zeros(3), max_iterations=2, seed=0)
    assert result.multipliers is None
    assert result.certificate.stationarity is None
    assert "result.x) does it for 28 queries" in str(result.certificate)


# ------------------------------------------------------------------------ the theorem
POSITIVE = st.floats(1e-3, 1e3)
CONSTANTS = st.builds(
    TheoremConstants, accuracy=st.floats(1e-3, 1.0), dim=st.integers(1, 10_000),
    smoothness=POSITIVE, concavity=POSITIVE, gap=POSITIVE, variance=POSITIVE,
    dual_variance=POSITIVE, least_scale=st.floats(1e-2, 1.0),
    largest_scale=st.floats(1.0, 1e2), least_dual_scale=st.floats(1e-2, 1e2),
    maximiser_smoothness=st.none() | POSITIVE, dual_averaging=st.floats(0.01, 1.0),
)  # fmt: skip


def _sharp(value: float, bounds: list[float]) -> None:
    """Check that a value keeps all upper bounds, one of them with equality."""
    least = min(bounds)
    assert 0.0 < value <= least * (1 + 1e-12)
    assert value == pytest.approx(least, rel=1e-12)


@given(k=CONSTANTS)
def test_the_theorems_parameters_keep_inequalities(k: TheoremConstants) -> None:
    found = theorem_parameters(k)
    eps, L, tau, d = k.accuracy, k.smoothness, k.concavity, k.dim
    c1l, c1u, c2l = k.least_scale, k.largest_scale, k.least_dual_scale
    s1, s2 = k.variance, k.dual_variance  # sigma_1^2, sigma_2^2
    a, b = found["dual_averaging"], found["averaging"]
    eta_w, eta_p, T = found["step_size"], found["dual_step_size"], found["horizon"]
    lg = L / tau if k.maximiser_smoothness is None else k.maximiser_smoothness
    assert 0.0 < a <= 1.0
    assert a == k.dual_averaging
    _sharp(b, [eps**2 / (2 * s1), tau**2 * eps**2 / (64 * s2 * L**2), 1.0])
    _sharp(
        eta_p,
        [
            1 / (3 * c2l * L),
            b**2 / (tau * a**2 * c2l),
            tau * b**2 / (32 * L**2 * a**2 * c2l),
            1.0,
        ],
    )
    _sharp(
        eta_w**2,
        [
            c1l**2 / (4 * L * c1u**4),
            b**2 / (4 * c1u**2 * L**2),
            tau**2 * a**2 * eta_p**2 * c2l**2 / (128 * lg**2 * L**2 * c1u),
            tau**2 * b**2 / (128 * L**4 * c1u**2),
            1.0,
        ],
    )
    _sharp(found["radius"], [eps / (L * (d + 3) ** 1.5)])
    least = max(
        2 * k.gap / (eps**2 * eta_w * c1l),
        2 * s1 / (eps**2 * b),
        64 * s2 * L**2 / (eps**2 * tau**2 * b),
    )
    assert isinstance(T, int)
    assert least * (1 - 1e-12) <= T
    assert least * (1 + 1e-12) + 1 >= T
    assert found["dual_ridge"] == tau


@given(k=CONSTANTS)
def test_a_method_from_the_theorem_has_its_numbers(k: TheoremConstants) -> None:
    method = DSZOG.from_theorem(k, penalty=3.0)
    for name, value in theorem_parameters(k).items():
        assert getattr(method, name) == value
    printed = DSZOG.as_published()
    for name in ("step_decay", "directions", "antithetic", "start", "adaptive"):
        assert getattr(method, name) == getattr(printed, name)
    assert method.penalty == 3.0


def test_the_draw_is_not_that_of_a_run_with_the_same_seed() -> None:
    # The run's draw may have chosen the point: it would bound nothing.
    asked: list[set[int]] = []

    def values(points: FloatArray, j: IntArray) -> FloatArray:
        if len(points) == 1:
            asked[-1].update(j.tolist())
        return np.zeros((len(points), len(j))) - 1.0 + 0.0 * points[:, :1]

    problem = Problem(lambda x: float(x @ x), Constraints(values, 10**6), 2)
    asked.append(set())
    options = {"start": "sampled"}
    result = dszog.minimize(problem, max_iterations=3, seed=0, options=options)
    asked.append(set())
    certify(problem, result.x, seed=0, max_queries=2_000)
    # Of some thousand of a million two draws share a few.
    assert len(asked[0] & asked[1]) < 0.05 * len(asked[1])


def test_slopes_of_many_variables_are_found_in_blocks(monkeypatch: Any) -> None:
    problem, tally = make_problem(Kind(bounded=True))
    x = np.array([0.5, -1.0, 0.1])
    at_once = dszog.certify(problem, x)
    n_queries = tally.n_queries
    monkeypatch.setattr(stationarity, "MANY", 6)
    monkeypatch.setattr(stationarity, "AROUND", 6)  # a variable at a time
    in_blocks = dszog.certify(problem, x)
    assert tally.n_queries == 2 * n_queries
    for name in ("gradient_norm", "best_lagrangian", "outer_gradient"):
        found, expected = (getattr(c.stationarity, name) for c in (in_blocks, at_once))
        assert found == pytest.approx(expected, rel=1e-12)
