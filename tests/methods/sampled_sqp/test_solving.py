"""The whole method: small problems, many constraints, equalities, bad functions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import dszog
from dszog import Constraints, Losses, Problem, SampledSQP, Status
from dszog.contract.arrays import FloatArray, IntArray
from dszog.run.verdict import on_first_order
from dszog.save.encoding import decode, encode
from dszog.workers.serial import Serial
from tests.contracts.helpers import advance
from tests.methods.sampled_sqp.small_suite import PROBLEMS, SmallProblem
from tests.runs import disc, size_of

minimized = partial(dszog.minimize, method="sampled_sqp", seed=0)
BY_NUMBER = {problem.number: problem for problem in PROBLEMS}
# With equalities, bounds, curved constraints, and those that are known to stall.
QUICK = (5, 6, 7, 8, 9, 11, 27, 31, 39, 43, 46, 61, 71, 77, 79, 113)


def solve(problem: SmallProblem, **more: Any) -> Any:
    budget = 200 * (problem.dim + 1) * problem.n_functions
    return minimized(
        problem.fun,
        problem.x0,
        problem.constraints() or None,
        bounds=problem.bounds,
        max_queries=budget,
        constraint_tol=1e-6,
        **more,
    )


def test_a_message_does_not_doubt_what_the_method_has_shown() -> None:
    # Too few queries for gradients at the result, which the method knows anyway.
    result = minimized(
        lambda x: (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2,
        [2.0, 0.0],
        {"type": "ineq", "fun": lambda x: x[0] - 2 * x[1] + 2},
    )
    assert (result.status, result.certificate.stationarity) == (Status.CONVERGED, None)
    assert "not shown to be optimal" not in result.message


@pytest.mark.parametrize(
    "spoil",
    [
        lambda value, x: round(value, 5),
        lambda value, x: round(value, 2),
        lambda value, x: value + 1e-3 * np.sin(1e9 * x[0] + 3e9 * x[1] + 1.0),
        lambda value, x: 0.0,
    ],
)
def test_nothing_is_said_to_be_optimal_that_noise_or_steps_may_hide(spoil: Any) -> None:
    def fun(x: FloatArray) -> float:
        return float(spoil(float(np.sum((x - 2.0) ** 2)), x))

    result = minimized(fun, np.zeros(2), bounds=[(-5.0, 5.0)] * 2, max_iterations=100)
    assert result.status == Status.STALLED
    assert "differences" in result.message


@pytest.mark.parametrize("number", QUICK)
def test_small_problems_are_solved_and_said_to_be(number: int) -> None:
    problem = BY_NUMBER[number]
    result = solve(problem)
    assert problem.is_solved(result.x, gap=1e-4)
    assert result.success
    assert result.status == Status.CONVERGED
    assert result.nfev + result.ncev < 200 * (problem.dim + 1) * problem.n_functions


def test_the_weights_are_the_multipliers() -> None:
    # At (1, 0): gradient (-2, 0) = -(2, 0), of the constraint x0 <= 1 alone.
    result = minimized(
        lambda x: (x[0] - 2.0) ** 2 + x[1] ** 2,
        np.zeros(2),
        Constraints.linear(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([3.0, 1.0])),
        max_queries=2000,
    )
    indices, weights = result.weights
    assert indices.tolist() == [0, 1]
    np.testing.assert_allclose(weights, [0.0, 1.0])


def test_multipliers_and_the_residual_come_with_the_certificate() -> None:
    # At (1, 0): gradient (-2, 0), and 4 times the constraint 0.5 x0 <= 0.5 balances it.
    result = minimized(
        lambda x: (x[0] - 2.0) ** 2 + x[1] ** 2,
        np.zeros(2),
        {"type": "ineq", "fun": lambda x: 0.5 - 0.5 * x[0]},
    )
    known = result.certificate.first_order
    indices, multipliers = result.multipliers
    assert result.status == Status.CONVERGED
    assert known.residual <= 1e-6
    assert indices.tolist() == [0]
    np.testing.assert_allclose(multipliers, [4.0], rtol=1e-4)
    assert "Its optimality conditions hold to" in result.message
    assert "with 1 multiplier" in str(result.certificate)
    # Where next to no forces are there to compare with, no share of them is named.
    without = replace(result.certificate, first_order=known._replace(residual=1.0))
    assert on_first_order(Status.CONVERGED, without) == [
        "Values around it show no way down."
    ]
    assert "optimality conditions are off by 1, with 1 multiplier" in str(without)


@pytest.mark.parametrize("seed", range(1, 7))
def test_a_minimum_where_no_difference_is_left_is_a_success(seed: int) -> None:
    angles = np.arange(500.0)
    normals = np.column_stack([np.cos(angles), np.sin(angles)])
    rows = Constraints(lambda points, j: points @ normals[j].T - 0.9, 500)
    result = minimized(
        lambda x: x[0] - np.sqrt(max(1.0 - x @ x, 0.0)), np.zeros(2), rows, seed=seed
    )
    assert result.success
    assert result.fun == pytest.approx(-np.sqrt(2.0))


def test_a_plateau_below_the_start_is_none() -> None:
    rows = Constraints(lambda points, j: points @ np.ones((2, len(j))) - 9.0, 300)
    for seed in range(3):
        result = minimized(
            lambda x: float(x[0] > 0.5) + float(x[1] > 0.2), np.ones(2), rows, seed=seed
        )
        assert not result.success


@pytest.mark.parametrize("seed", range(3))
def test_other_units_change_next_to_nothing(seed: int) -> None:
    rng = np.random.Generator(np.random.Philox(key=seed))
    plain = BY_NUMBER[43]
    units = 10.0 ** rng.uniform(-4, 4, plain.dim)
    above = plain.above
    assert above is not None
    other = SmallProblem(
        number=0,
        fun=lambda x: 1e5 * plain.fun(x / units),
        x0=tuple(np.array(plain.x0) * units),
        optimum=1e5 * plain.optimum,
        above=lambda x: [1e-3 * value for value in above(x / units)],
    )
    one, two = solve(plain), solve(other)
    np.testing.assert_allclose(two.x / units, one.x, atol=1e-4)
    assert abs(two.nit - one.nit) <= max(4, 0.5 * one.nit)


def to_two(x: FloatArray) -> float:
    return float(((x - 2.0) ** 2).sum())


@pytest.mark.parametrize("m", [1, 30, 10**4, 10**7, 10**12])
def test_the_nearest_point_of_a_disc_is_found_however_many_planes_bound_it(
    m: int,
) -> None:
    result = minimized(to_two, np.zeros(2), disc(m), max_queries=200_000, seed=1)
    if m >= 10**4:
        np.testing.assert_allclose(result.x, np.full(2, np.sqrt(0.5)), atol=3e-3)
        assert result.maxcv <= 1e-4
    assert result.status == Status.CONVERGED
    assert result.success


def test_a_look_at_few_constraints_is_enough() -> None:
    rng = np.random.Generator(np.random.Philox(key=9))
    dim, m = 12, 20_000
    slopes, centre = rng.normal(size=(m, dim)) / np.sqrt(dim), rng.normal(size=dim)
    rows = Constraints(lambda w, j: w @ slopes[j].T - 1.0, m)
    problem = Problem(lambda x: float(((x - centre) ** 2).sum()), rows, dim)
    result = minimized(problem, max_queries=150_000, constraint_tol=1e-6)
    found = result.x
    active = slopes @ found - 1.0 > -1e-6
    gradient = 2.0 * (found - centre)
    pull, *_ = np.linalg.lstsq(slopes[active].T, -gradient, rcond=None)
    assert (slopes @ found).max() <= 1.0 + 1e-8
    assert result.success
    # First-order conditions of a convex problem: this is the optimum.
    np.testing.assert_allclose(slopes[active].T @ pull, -gradient, atol=1e-4)
    assert (pull >= -1e-6).all()


def test_a_run_that_is_cut_short_falls_back_to_what_its_models_find_feasible() -> None:
    rng = np.random.Generator(np.random.Philox(key=11))
    slopes, centre = rng.normal(size=(5000, 10)), rng.normal(size=10)
    states: list[Any] = []

    class Watched(dszog.SampledSQP):
        def tell(self, state: Any, queries: Any, replies: Any) -> Any:
            told = super().tell(state, queries, replies)
            states.append(told[0])
            return told

    rows = Constraints(lambda w, j: w @ slopes[j].T - 1.0, 5000)
    problem = Problem(lambda x: float(((x - centre) ** 2).sum()), rows, 10)
    dszog.minimize(problem, method=Watched(), max_queries=5000, seed=0)
    cut = [state for state in states if state.fallback is not state.x]
    assert cut
    for state in cut:
        models = state.members.at(state.fallback / state.scale)
        values = slopes[state.members.indices] @ state.fallback - 1.0
        assert models.max() <= 1e-9
        assert values.max() <= 1e-6  # differences err a little
        assert state.fallback.any()


def test_a_run_falls_back_to_where_all_held_with_a_smaller_objective() -> None:
    method, size = dszog.SampledSQP(), size_of(2)
    state = method.init(np.array([3.0, 1.0]), size, 0)
    for before, point in ((0.5, [1.0, 1.0]), (0.7, [3.0, 1.0])):
        known = replace(state, has_home=1, home=np.ones(2), home_objective=before)
        known = replace(known, objective=0.6)
        np.testing.assert_array_equal(known.fallback, point)
    assert state.fallback is state.x


def test_losses_are_looked_at_as_far_as_needed() -> None:
    rng = np.random.Generator(np.random.Philox(key=10))
    centres = rng.normal(size=(2000, 4))
    problem = Problem(
        Losses(lambda w, i: ((w[:, np.newaxis] - centres[i]) ** 2).sum(axis=2), 2000),
        Constraints(lambda w, j: disc(500).values(w[:, :2], j), 500),
        4,
        x0=np.full(4, 3.0),
    )
    result = minimized(problem, max_queries=200_000)
    np.testing.assert_allclose(result.x, centres.mean(axis=0), atol=1e-3)


def test_steps_that_gain_little_by_a_gradient_of_a_few_losses_do_not_shrink() -> None:
    rng = np.random.Generator(np.random.Philox(key=3))
    X = rng.normal(size=(3000, 20))
    X[:, :15] = ((rng.random((3000, 15)) < 0.001) - 0.001) / np.sqrt(0.001)  # rare
    score = X[:, 15:] @ rng.normal(size=5) + rng.normal(size=3000)
    y = np.where(score > 0, 1.0, -1.0)
    losses = Losses(lambda w, i: np.logaddexp(0.0, -y[i] * (w @ X[i].T)), 3000)
    problem, method = (
        Problem(losses, None, 20, unconstrained=True),
        SampledSQP(horizon_queries=600_000),
    )
    state: Any = method.init(np.zeros(20), problem.size, 3)
    largest = 0.0
    while state.n_loss_queries < 300_000:
        state = advance(method, problem, state, 1)
        largest = max(largest, state.sigma / state.first_sigma)
    assert largest < 1e4


def run(fun: Any, x0: Any, constraints: Any = None, **more: Any) -> Any:
    return minimized(fun, x0, constraints, max_queries=4000, **more)


def distance(x: FloatArray) -> float:
    return float((x[0] - 2.0) ** 2 + x[1] ** 2)


def above(function: Any) -> dict[str, Any]:
    return {"type": "ineq", "fun": function}


def test_constraints_that_contradict_each_other_end_with_the_least_violation() -> None:
    both = [above(lambda x: x[0] - 1.0), above(lambda x: -x[0] - 1.0)]
    result = run(distance, np.array([5.0, 5.0]), both)
    assert result.status == Status.LEAST_VIOLATION
    assert "may contradict each other" in result.message
    assert "larger budget" not in result.message
    assert not result.success
    assert -1.0 - 1e-6 <= result.x[0] <= 1.0 + 1e-6
    assert "has a smaller sum of violations" in result.message


def test_equalities_that_contradict_each_other_likewise() -> None:
    both = [{"type": "eq", "fun": lambda x, b=b: x[0] + x[1] - b} for b in (1.0, 2.0)]
    result = run(distance, np.zeros(2), both)
    assert result.status == Status.LEAST_VIOLATION
    assert 1.0 - 1e-6 <= result.x.sum() <= 2.0 + 1e-6


def test_many_constraints_that_contradict_each_other_end_soon() -> None:
    rng = np.random.Generator(np.random.Philox(key=4))
    slopes = rng.normal(size=(100, 2))  # each row is to be below -1 and above 1

    def pairs(points: FloatArray, j: IntArray) -> FloatArray:
        sides: FloatArray = np.where(j % 2, -1.0, 1.0) * (points @ slopes[j // 2].T)
        return sides + 1.0

    result = minimized(distance, np.zeros(2), Constraints(pairs, 200))
    assert result.status == Status.LEAST_VIOLATION
    assert result.maxcv == pytest.approx(1.0, abs=1e-6)  # no point has less
    assert result.nit < 200


def two_valleys(x: FloatArray) -> float:
    """Return what is below 0 in one valley, and in the one near the start is not."""
    return float((x[0] ** 2 - 1.0) ** 2 + 0.3 * x[0] + 0.1 + (x[1:] ** 2).sum())


def ends(rows: Any, seed: int = 0) -> tuple[list[Any], Problem, SampledSQP]:
    """Return the states of a run by hand, to its end."""
    problem = Problem(distance, rows, 3)
    method = SampledSQP(horizon_queries=20_000)
    states, info = [method.init(np.r_[1.5, 0.3, 0.2], problem.size, seed)], None
    while info is None or info.stop is None:
        queries = method.ask(states[-1])
        after, info = method.tell(states[-1], queries, Serial(problem)(queries))
        states.append(after)
    return states, problem, method


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_cannot_keep_a_constraint_begins_where_it_can(seed: int) -> None:
    found = run(
        distance, [1.5, 0.3, 0.2], [above(lambda x: -two_valleys(x))], seed=seed
    )
    assert found.success
    assert found.maxcv <= 1e-6
    assert found.x[0] < 0


def test_lines_that_contradict_each_other_are_not_looked_for_elsewhere() -> None:
    lines = Constraints.from_callables([lambda x: x[0] + 1.0, lambda x: 1.0 - x[0]])
    states, _, _ = ends(lines)
    assert not any(state.n_elsewhere for state in states)


def test_the_best_of_three_ends_is_kept_and_a_saved_run_is_the_same() -> None:
    hill = Constraints.from_callables([lambda x: two_valleys(x) + 1.0])  # nowhere kept
    runs = [ends(hill, seed) for seed in range(4)]
    for states, _, _ in runs:
        last = states[-1]
        least = min(s.violation for s in states if s.phase in ("elsewhere", "done"))
        assert last.n_elsewhere == 2
        assert last.violation == pytest.approx(least, rel=1e-5)
        assert last.kept is None
    lowest = min(states[-1].violation for states, _, _ in runs)
    assert lowest == pytest.approx(0.795, abs=1e-3)
    states, problem, method = runs[0]
    k = next(k for k, s in enumerate(states) if s.kept and s.phase == "trial")
    assert states[k].fallback is states[k].kept.x  # if the run is cut short here
    arrays: list[Any] = []
    state = decode(encode(states[k], arrays), arrays, problem.size)
    for after in states[k + 1 :]:
        state = advance(method, problem, state, 1)
        np.testing.assert_array_equal(state.x, after.x)


def test_functions_without_values_elsewhere_are_no_failure() -> None:
    def fun(x: FloatArray) -> float:
        if abs(x[0] - 1.25) > 0.4:
            raise ValueError("far away")
        return distance(x)

    rows = [above(lambda x: -two_valleys(x))]
    found = run(fun, [1.5, 0.3, 0.2], rows, on_failure="resample")
    assert found.status == Status.LEAST_VIOLATION


@pytest.mark.parametrize("power", [1, 3])
def test_an_objective_without_a_minimum_is_noticed(power: int) -> None:
    result = run(lambda x: float(x[0] ** power), -np.ones(2), above(lambda x: 1 - x[1]))
    assert result.status == Status.UNBOUNDED
    assert not result.success
    assert "has no minimum" in result.message
    assert "Give bounds" in result.message


@pytest.mark.parametrize(
    ("rows", "status", "words"),
    [
        (  # they contradict each other by less than is allowed
            [above(lambda x: x[0] - 1.0), above(lambda x: 0.995 - x[0])],
            Status.STALLED,
            "keeps all constraints exactly",
        ),
        ([above(lambda x: -1 - np.ceil(x[0]) ** 2)], Status.LEAST_VIOLATION, "a count"),
        ([above(lambda x: -1.0 - x[0] ** 2)], Status.LEAST_VIOLATION, "contradict"),
        ([], Status.CONVERGED, "Success: the run has converged."),
    ],
)
def test_what_stands_in_the_way_is_said(rows: Any, status: Status, words: str) -> None:
    result = dszog.minimize(distance, np.array([3.3, 1.0]), rows, seed=0)
    assert result.status == status
    assert words in f"{result.verdict} {result.message}"
    assert "around for a better point" not in result.message


def test_differences_that_vanish_are_said() -> None:
    inside = above(lambda x: 10 - x @ x)
    result = run(lambda x: float(np.floor(5 * x[0]) ** 2), np.full(2, 3.0), inside)
    assert "change in jumps" in result.message
    assert result.fun == 0.0


@pytest.mark.parametrize(
    ("fun", "optimum"),
    [
        (lambda x: np.cos(x).sum(), -3.0),  # a maximum, but for the constraint
        (lambda x: x[0] + x @ x, -0.25),  # stationary along all variables but one
        (lambda x: x @ x, 0.0),  # the minimum
        (lambda x: x @ x - 2.0 * x[1] ** 2 + x[1] ** 4, -0.25),
    ],
)
def test_a_start_without_slopes_is_left_or_found_to_be_the_end(
    fun: Any, optimum: float
) -> None:
    result = run(fun, np.zeros(3), above(lambda x: 100.0 - x @ x))
    assert result.status == Status.CONVERGED
    assert result.fun == pytest.approx(optimum, abs=1e-6)
    assert result.nfev < 300


def _hinge(x: FloatArray) -> float:
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(60, 3))
    labels = np.sign(rows @ [1.0, -2.0, 0.5] + 0.3 * rng.normal(size=60))
    return float(np.maximum(0.0, 1.0 - labels * (rows @ x)).mean() + 0.01 * x @ x)


def _distances(x: FloatArray) -> float:
    rng = np.random.default_rng([5, 5])
    rows = rng.normal(size=(20, 4))
    wanted = rows @ rng.normal(size=4) + 0.3 * rng.standard_t(2, size=20)
    return float(np.abs(rows @ x - wanted).sum())


BOX: dict[str, Any] = {"bounds": [(-30, 30)] * 2}
DISC: dict[str, Any] = {"constraints": above(lambda x: 900.0 - x @ x)}
PLANES: FloatArray = np.array([[1.0, 2.0], [-3.0, 1.0], [1.0, -2.0]])
IN_A_PLANE = (
    (lambda x: abs(x[0] - 0.3) + 100 * abs(x[1] - x[0]), 0.0),
    (lambda x: np.max(PLANES @ x + [0.0, 1.0, 0.5]), 0.46875),
    (lambda x: np.abs(x).max() + abs(x[0] + 3 * x[1] - 1), 0.25),
)
ROWS_WITH_KINKS = (
    (lambda x: 1.0 - np.abs(x).sum(), 4.25),
    (lambda x: -np.max(PLANES @ x - 1.0), 4.25),
    (lambda x: 0.5 - np.maximum(0.0, PLANES @ x).mean(), 5.078125),
)


@pytest.mark.parametrize(
    ("fun", "start", "where", "optimum"),
    [
        *[(f, [3, -5], where, best) for f, best in IN_A_PLANE for where in (BOX, DISC)],
        (lambda x: 5 * abs(x[1] - x[0]) + (x[0] - 2) ** 2, [0, 0], {}, 0.0),
        (lambda x: np.abs(x).sum() + (x[0] - 1) ** 2 + x[1] ** 2, [0, 0], {}, 0.75),
        (lambda x: abs(x[0]) - abs(x[1]) + x[1] ** 2, [0, 0], {}, -0.25),
        (lambda x: abs(x[0] - 1) + x[1] ** 2, [3, 2], {}, 0.0),
        (_hinge, np.zeros(3), {}, 0.17645526),
        *[
            (
                lambda x: ((x - [3.0, 0.5]) ** 2).sum(),
                [0, 0],
                {"constraints": above(rows)},
                best,
            )
            for rows, best in ROWS_WITH_KINKS
        ],
    ],
)
def test_kinks_are_followed_to_a_minimum_that_is_shown(
    fun: Any, start: Any, where: Any, optimum: float
) -> None:
    result = run(fun, np.array(start, float), **where)
    assert (result.status, result.success) == (Status.CONVERGED, True)
    assert result.fun == pytest.approx(optimum, abs=1e-4 if where else 1e-5)


def test_planes_enclose_the_least_sum_of_distances() -> None:
    result = minimized(_distances, np.zeros(4))
    assert result.status == Status.CONVERGED
    assert result.nfev < 1500


def test_a_saddle_is_left_along_all_ways_that_fall() -> None:
    def fun(x: FloatArray) -> float:
        apart = 4.0 * x[7] * x[90] + 2.5 * x[30] * x[110]
        return float((x**2).sum() + 0.1 * (x**4).sum() - apart)

    result = dszog.minimize(fun, np.zeros(121), seed=0)
    assert result.success
    assert result.fun == pytest.approx(-5.3125, abs=1e-5)
    assert result.nfev < 20_000


def test_constraints_seen_near_by_are_looked_at_again_before_the_end() -> None:
    """The largest error of a fit, from far above: what is near then is far now."""
    t = np.linspace(0.0, 3.0, 5000)
    values = np.exp(-t) * np.sin(3 * t)
    terms = np.polynomial.chebyshev.chebvander(t / 1.5 - 1, 6)

    def rows(points: FloatArray, j: IntArray) -> FloatArray:
        i, sign = j % len(t), np.where(j < len(t), 1.0, -1.0)
        errors = points[:, :-1] @ terms[i].T - values[i]
        return np.asarray(sign * errors - points[:, -1:])

    result = dszog.minimize(
        lambda x: float(x[-1]),
        np.append(np.ones(7), 20.0),
        dszog.Constraints(rows, 2 * len(t)),
        constraint_tol=1e-6,
        max_queries=10**7,
        seed=3,
    )
    assert result.success
    assert result.fun == pytest.approx(0.021543, abs=1e-6)


def test_constraints_that_hardly_move_are_worth_any_price() -> None:
    """The objective is steep along the variables that a flat slope must move."""

    def balance(x: FloatArray) -> Any:
        a, b, c, d = x
        swings = np.sin(np.array([[-c, -d], [c, c - d], [d, d - c]]) - 0.25)
        return 1000 * swings.sum(axis=1) + [894.8 - a, 894.8 - b, 1294.8]

    result = run(
        lambda x: 3 * x[0] + 1e-6 * x[0] ** 3 + 2 * x[1] + 2e-6 / 3 * x[1] ** 3,
        np.zeros(4),
        {"type": "eq", "fun": balance},
        bounds=[(0, 1200), (0, 1200), (-0.55, 0.55), (-0.55, 0.55)],
    )
    assert result.success
    assert result.fun == pytest.approx(5126.498, abs=1e-2)


@pytest.mark.parametrize(
    ("fun", "start", "optimum"),
    [
        (lambda x: 10 * abs(x[1] - x[0] ** 2) + abs(1 - x[0]), [-1.2, 1.0], 0.0),
        (lambda x: 10 * abs(x[1] - x[0] ** 2) + abs(1 - x[0]), [0.0, 0.0], 0.0),
        (
            lambda x: 3 * np.abs(np.diff(x)).sum() + ((x - np.arange(6)) ** 2).sum(),
            np.zeros(6),
            10.75,
        ),
    ],
)
def test_a_run_that_stays_at_a_kink_is_no_success(
    fun: Any, start: Any, optimum: float
) -> None:
    result = dszog.minimize(fun, start, seed=0, max_queries=1000)
    if result.status != Status.MAX_QUERIES:
        assert result.success == (result.fun < optimum + 1e-4)
    else:
        assert not result.success


CUBE = {"bounds": [(-1.0, 1.0)] * 2}


@pytest.mark.parametrize(
    ("fun", "where", "found"),
    [
        (lambda x: x[0] ** 3 + x[1] ** 2, {}, Status.UNBOUNDED),
        (lambda x: (x[0] - x[1]) ** 3 + x.sum() ** 2, {}, Status.UNBOUNDED),
        (lambda x: x[0] ** 3 + x[1] ** 2, CUBE, -1.0),
        (lambda x: x[0] ** 3 + x[1] ** 2 + x[0] ** 4, {}, -27 / 256),
        (lambda x: np.exp(-x[0]) + x[1] ** 2, {}, Status.STALLED),
        (lambda x: 1.0 + np.exp(-x[0]) + x[1] ** 2, {}, Status.STALLED),
    ],
    ids=[
        "cube",
        "across",
        "cube in a box",
        "with a minimum",
        "no end",
        "no end above one",
    ],
)
def test_no_minimum_is_claimed_at_an_inflection_or_on_a_slope_without_end(
    fun: Any, where: Any, found: Any
) -> None:
    result = dszog.minimize(fun, [0.0, 1.0], seed=0, **where)
    if isinstance(found, Status):
        assert (result.status, result.success) == (found, False)
        assert "no minimum" in result.message
    else:
        assert result.success
        assert result.fun == pytest.approx(found, abs=1e-6)


def test_values_that_are_missing_farther_out_are_no_failure() -> None:
    result = dszog.minimize(
        lambda x: float(np.sum((x - 2.0) ** 2)) if x[0] < 2.5 else np.nan,
        np.array([1.0, 1.0]),
        seed=0,
    )
    assert result.success
    np.testing.assert_allclose(result.x, 2.0, atol=1e-4)
    assert not result.failures.n_failed


@pytest.mark.filterwarnings("ignore::dszog.PurityWarning")
@pytest.mark.parametrize("noise", [1e-6, 1e-4, 1e-3])
def test_noise_is_noticed_and_lived_with(noise: float) -> None:
    # Measured over 20 seeds: gap at most 15, violation at most 8 times the noise.
    def planes(points: FloatArray, j: IntArray) -> FloatArray:
        found: FloatArray = points @ [np.cos(j), np.sin(j)] - 1.0
        return found

    exact = run(distance, np.zeros(2), Constraints(planes, 12))
    for seed in range(3):
        rng = np.random.Generator(np.random.Philox(key=seed))

        def noisy(points: FloatArray, j: IntArray, rng: Any = rng) -> Any:
            return planes(points, j) + noise * rng.normal(size=(len(points), len(j)))

        def objective(x: FloatArray, rng: Any = rng) -> float:
            return distance(x) + noise * float(rng.normal())

        result = run(objective, np.zeros(2), Constraints(noisy, 12))
        assert distance(result.x) == pytest.approx(exact.fun, abs=50 * noise)
        assert planes(result.x[np.newaxis], np.arange(12)).max() <= 50 * noise
        assert ("Values are noisy" in result.message) == (noise > 1e-5)


@pytest.mark.filterwarnings("ignore::dszog.PurityWarning")
@pytest.mark.parametrize(
    ("noise", "digits"), [(1e-6, 16), (1e-4, 16), (1e-3, 16), (0.0, 4), (0.0, 2)]
)
def test_noise_of_the_objective_alone_is_not_hidden_by_clean_constraints(
    noise: float, digits: int
) -> None:
    # Measured over 20 seeds: gap at most 6 times the noise or step, violation 1e-9.
    for seed in range(3):
        rng = np.random.Generator(np.random.Philox(key=seed))
        centre, slopes = rng.normal(size=5), rng.normal(size=(200, 5)) / np.sqrt(5)

        def smooth(x: FloatArray, centre: FloatArray = centre) -> float:
            return float(((x - centre) ** 2).mean())

        def fun(x: FloatArray, rng: Any = rng, smooth: Any = smooth) -> float:
            return float(np.round(smooth(x) + noise * rng.normal(), digits))

        def planes(w: FloatArray, j: IntArray, a: FloatArray = slopes) -> Any:
            return w @ a[j].T - 0.5

        rows = Constraints(planes, 200)
        exact = run(smooth, np.zeros(5), rows)
        result = run(fun, np.zeros(5), rows)
        error = max(noise, 10.0**-digits)
        assert smooth(result.x) <= exact.fun + 10 * error
        assert result.maxcv <= 1e-6
        assert result.noise.losses == pytest.approx(
            max(noise, 0.3 * 10.0**-digits), rel=3
        )
        assert result.noise.constraints <= 1e-12
        assert ("in jumps" in result.message) == (digits < 16)


@pytest.mark.parametrize("x0", [0.0, 0.3, 1.0])
def test_one_variable_within_bounds(x0: float) -> None:
    seen: list[float] = []

    def fun(x: FloatArray) -> float:
        seen.append(float(x[0]))
        return float((x[0] - 3.0) ** 2)

    result = run(fun, np.array([x0]), bounds=[(0.0, 1.0)])
    assert result.x == pytest.approx([1.0])
    assert result.status == Status.CONVERGED
    assert min(seen) >= 0.0
    assert max(seen) <= 1.0


def test_a_variable_that_cannot_move_stays() -> None:
    fixed = [(0.0, 5.0), (2.0, 2.0)]
    result = run(lambda x: (x[0] - 3.0) ** 2 + x[1] ** 2, [0.0, 2.0], bounds=fixed)
    assert result.x == pytest.approx([3.0, 2.0])


WAY: FloatArray = np.cos(range(30)) / np.linalg.norm(np.cos(range(30)))
CIRCLE: dict[str, Any] = {"constraints": {"type": "eq", "fun": lambda x: x @ x - 1}}


@pytest.mark.parametrize(
    ("fun", "start", "where", "optimum"),
    [
        (lambda x: np.exp(x[0]) - x[0] + (x[1] - 1) ** 2, [10.0, 0.0], BOX, 1.0),
        (lambda x: np.exp(x[0]) - x[0] + (x[1] - 1) ** 2, [10.0, 0.0], DISC, 1.0),
        (lambda x: 1e8 * (x[0] - 1) ** 2 + (x[1] - 1) ** 2, [0.0, 0.0], BOX, 0.0),
        (lambda x: 1e6 * (x[0] - 1) ** 2 + (x[1] - 1) ** 2, [0.0, 0.0], DISC, 0.0),
        (lambda x: 1e10 * (x[0] - 1) ** 2 + (x[1] - 1) ** 2, [0.0, 0.0], DISC, 0.0),
        (
            lambda x: 1e8 * (x[0] + x[1] - 2) ** 2 + (x[0] - x[1] - 1) ** 2,
            [0.0, 0.0],
            DISC,
            0.0,
        ),
        (lambda x: np.exp(x[0]) - x[0], [20.0], {"bounds": [(-30, 30)]}, 1.0),
        (lambda x: x[0] * x[1], [0.0, 0.0], {"bounds": [(-3, 3)] * 2}, -9.0),
        (lambda x: x[0] * x[1], [0.0, 0.0], DISC, -450.0),
        (lambda x: x.sum() ** 3 + (x[0] - x[1]) ** 2 + 1, [0.5, 0.2], CUBE, -7),
        (lambda x: np.logspace(0, 2, 10) @ (x - 1) ** 2 + 1, np.full(10, 1e6), {}, 1),
        (lambda x: np.sum((x - 1) ** 4) + 1, [1e3, 1e3], {}, 1.0),
        (Losses(lambda w, i: (w - i) ** 2, 301), [1e6], {}, 7550.0),
        (Losses(lambda w, i: (i % 1250 == 7) * (w - 1) ** 2, 5000), [0], {}, 0.0),
        (lambda x: np.exp(x[0]) + np.exp(-x[0]), [40.0], {}, 2.0),
        (lambda x: x[1], [0.0, 2.0], CIRCLE, -1.0),
        (lambda x: x @ x - 2 * (t := x @ WAY) ** 2 + t**4 / 4, np.zeros(30), {}, -1),
        (lambda x: x[1], [1e-3, 4.0], {"constraints": above(lambda x: 1 - x @ x)}, -1),
    ],
)
def test_a_steep_variable_does_not_hide_the_slope_along_another(
    fun: Any, start: list[float], where: dict[str, Any], optimum: float
) -> None:
    result = minimized(fun, start, **where)
    assert result.status == Status.CONVERGED
    assert result.fun == pytest.approx(optimum, abs=1e-3)


@pytest.mark.parametrize(
    ("size", "tolerance"), [(1e-6, 1e-2), (1.0, 1e-12), (1e6, 1e-2)]
)
def test_violations_count_in_the_units_of_the_caller(
    size: float, tolerance: float
) -> None:
    result = minimized(
        to_two,
        np.zeros(2),
        Constraints(lambda w, j: size * disc(20_000).values(w, j), 20_000),
        constraint_tol=tolerance,
    )
    assert (result.status, result.success) == (Status.CONVERGED, True)
    np.testing.assert_allclose(result.x, np.sqrt(0.5), atol=1e-3)


@pytest.mark.parametrize(
    ("number", "a", "b", "cut"),
    [
        (43, 300, 0, None),
        (43, 0, -300, None),
        (71, -300, 300, None),
        (0, -300, 0, None),
        (0, 0, 300, None),
        (0, 300, -300, 950),
    ],
)
def test_functions_of_any_size_take_the_same_way_to_the_bit(
    number: int, a: int, b: int, cut: int | None
) -> None:
    # Sizes are powers of two, so that nothing is rounded in another way.
    def solved(a: int, b: int) -> Any:
        fun: Any = distance
        x0, bounds, rows = np.zeros(2), None, disc(3000)
        if number:
            small = BY_NUMBER[number]
            fun, x0, bounds = small.fun, np.array(small.x0), small.bounds
            rows = Problem(fun, small.constraints(), len(x0)).constraints or rows
        return minimized(
            lambda x: 2.0**a * fun(x),
            x0,
            Constraints(lambda w, j: 2.0**b * rows.values(w, j), len(rows)),
            bounds=bounds,
            constraint_tol=2.0**b * 1e-2,
            max_queries=cut,
        )

    one, two = solved(0, 0), solved(a, b)
    assert two.x.tobytes() == one.x.tobytes()
    assert (two.status, two.nfev, two.ncev) == (one.status, one.nfev, one.ncev)
    assert two.success == one.success
    assert one.certificate.feasibility.is_exact or cut  # all is looked at if cheap


def test_a_constraint_without_a_value_at_the_end_is_not_taken_for_kept() -> None:
    angles = np.linspace(0, 2 * np.pi, 100_000)

    def values(points: Any, j: Any) -> Any:
        found = points @ [np.cos(angles[j]), np.sin(angles[j])] - 1.0
        found[:, j == 85_062] = np.nan
        return found

    rows = Constraints(values, 100_000)
    result = minimized(to_two, np.zeros(2), rows, on_failure="resample")
    assert (result.status, result.success) == (Status.UNCONFIRMED, False)
    assert result.certificate.feasibility.n_unknown == 1
    np.testing.assert_allclose(result.x, np.sqrt(0.5), atol=1e-2)


def test_failures_beside_a_later_iterate_do_not_blame_the_start() -> None:
    rng = np.random.default_rng(3)
    rows, least = rng.uniform(0.5, 1.5, (300, 4)), rng.uniform(1.0, 3.0, 300)

    def simulate(x: FloatArray, i: int) -> tuple[float, list[float]]:
        if i == 130 and rows[i] @ x < least[i] + 0.05:
            raise RuntimeError("mesh collapsed")
        return float(x @ x + 0.3 * rows[i] @ x), [least[i] - rows[i] @ x]

    result = minimized(
        dszog.Simulator(simulate, n=300, width=1),
        np.full(4, 2.0),
        bounds=[(0.0, 5.0)] * 4,
        max_queries=30_000,
        on_failure="resample",
    )
    assert result.status == Status.TOO_MANY_FAILURES
    assert "start cannot be evaluated" not in result.message.lower()


def test_a_start_at_zero_says_nothing_of_sizes() -> None:
    rng = np.random.Generator(np.random.Philox(key=3))
    slopes, centre = rng.normal(size=(2000, 12)) / 3.5, rng.normal(size=12)

    def n_iterations(u: FloatArray) -> int:
        rows = Constraints(lambda w, j: (w / u) @ slopes[j].T - 1.0, 2000)
        problem = Problem(lambda x: ((x / u - centre) ** 2).sum(), rows, 12)
        return int(minimized(problem, max_queries=100_000).nit)

    assert n_iterations(np.logspace(-4, 4, 12)) <= 1.2 * n_iterations(np.ones(12))


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.parametrize(
    ("offset", "unit"),
    [
        *[(5e6, 1.0), (-1e8, 1.0), (1.7e9, 1.0), (1e10, 1.0), (3e6, 1e-2)],
        *[(0.0, 1e-8), (0.0, 1e-9), (0.0, 1e-12)],
    ],
)
def test_a_start_says_nothing_of_sizes_either_far_from_zero_or_near(
    offset: float, unit: float, gradient: bool
) -> None:
    centre = np.array([1.0, -2.0, 3.0])
    at = np.array([offset, offset, 0.0])  # one variable is counted from 0
    result = minimized(
        lambda x: float((((x - at) / unit - centre) ** 2).sum()),
        at,
        {"type": "ineq", "fun": lambda x: 1.0 - ((x - at) / unit).sum()},
        jac=(lambda x: 2.0 * ((x - at) / unit - centre) / unit) if gradient else None,
    )
    assert result.success
    assert result.fun == pytest.approx(1.0 / 3.0, rel=1e-3)
    assert result.nfev + result.ncev < 400


def test_a_start_is_far_from_zero_in_the_sizes_of_a_curved_constraint() -> None:
    result = minimized(
        lambda x: float(x[0] - 5e5 + x[1] - 4.9e6),
        [5e5 + 0.5, 4.9e6],
        {
            "type": "ineq",
            "fun": lambda x: 1.0 - (x[0] - 5e5) ** 2 - (x[1] - 4.9e6) ** 2,
        },
    )
    assert result.success
    assert result.fun == pytest.approx(-np.sqrt(2.0), abs=1e-3)


@pytest.mark.parametrize("most", [1e3, 1e6, 1e30])
def test_a_step_to_an_infinite_value_is_a_step_too_far(most: float) -> None:
    def left(x: FloatArray) -> float:
        with np.errstate(over="ignore"):
            return float(most - np.exp(x[0]))

    result = minimized(lambda x: -x[0], [0.0], {"type": "ineq", "fun": left})
    assert result.success
    assert result.x[0] == pytest.approx(np.log(most))


@pytest.mark.parametrize("bad", [np.nan, -np.inf, "raise"])
def test_other_unknown_values_at_a_trial_point_are_raised(bad: Any) -> None:
    def fun(x: FloatArray) -> float:
        if x[0] > 3.0 and bad == "raise":
            raise ZeroDivisionError
        return float(bad) if x[0] > 3.0 else float(-x[0])

    with pytest.raises(dszog.EvaluationError, match="Objective"):
        minimized(fun, [0.0])


def test_a_function_that_is_infinite_however_short_the_step_is_named() -> None:
    with pytest.raises(dszog.EvaluationError, match="Objective returned inf"):
        minimized(lambda x: float(-x[0]) if abs(x[0]) < 2e-6 else np.inf, [0.0])


@pytest.mark.parametrize("dim", [2, 4, 6])
@pytest.mark.parametrize("seed", [0, 1])
def test_a_start_at_the_maximum_on_a_sphere_is_left(dim: int, seed: int) -> None:
    sphere = {"type": "eq", "fun": lambda x: x @ x - dim}
    result = minimized(lambda x: float(x.sum()), np.ones(dim), sphere, seed=seed)
    assert result.success
    assert result.fun == pytest.approx(-dim)


@pytest.mark.parametrize(("seed", "most"), [(1, 20_000), (2, 30_000)])
def test_a_budget_that_leaves_no_looks_at_unseen_constraints_is_no_success(
    seed: int, most: int
) -> None:
    rng = np.random.default_rng(0)
    rows, limits = rng.normal(size=(20_000, 12)), 1.0 + rng.random(20_000)

    def values(points: FloatArray, j: IntArray) -> FloatArray:
        along = points @ rows[j].T
        return np.asarray(along + 0.05 * np.sin(along) - limits[j])

    result = minimized(
        lambda x: float(((x - 1.5) ** 2).sum()),
        np.zeros(12),
        Constraints(values, 20_000),
        max_queries=most,
        seed=seed,
    )
    assert (result.status, result.success) == (Status.MAX_QUERIES, False)
    assert "fewer than one in a thousand" in result.message


def test_few_of_very_many_constraints_are_enough_if_none_is_violated() -> None:
    result = minimized(to_two, np.zeros(2), disc(10**9), max_queries=10_000)
    assert result.success


def test_some_hundred_constraints_are_not_all_looked_at_in_every_trial() -> None:
    times = np.linspace(-1.0, 1.0, 300)
    powers = np.stack([times**k for k in range(5)], axis=1)
    curve, used = np.exp(2.0 * times) + np.sin(5.0 * times), []

    def errors(points: FloatArray, j: IntArray) -> FloatArray:
        off = points[:, 1:] @ powers[j % 300].T - curve[j % 300]
        return np.asarray(np.where(j < 300, off, -off) - points[:, :1])

    result = minimized(
        lambda x: x[0],
        np.array([10.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
        Constraints(errors, 600),
        constraint_tol=1e-6,
        callback=lambda progress: used.append(progress.n_constraint_queries),
    )
    assert result.status == Status.CONVERGED
    assert used[-1] < 6 * 600  # of which one look at all is the last


def test_a_point_that_is_not_optimal_far_from_the_start_is_a_new_beginning() -> None:
    def fun(x: FloatArray) -> float:
        return float(100.0 * (x[1] - x[0] ** 2) ** 2 + (1.0 - x[0]) ** 2)

    result = minimized(fun, [-120.6, 1773.2])
    assert result.status == Status.CONVERGED
    assert result.fun < 1e-3  # of 1.6e10


@pytest.mark.parametrize("number", [0, 8])
def test_a_run_that_is_led_astray_returns_to_where_all_constraints_held(
    number: int,
) -> None:
    # Discs that overlap around the minimum: a step into them finds no way out.
    centres = np.random.default_rng(number).normal(size=(400, 2))

    def values(x: FloatArray, indices: IntArray) -> FloatArray:
        found: FloatArray = 0.5 - np.linalg.norm(x - centres[indices], axis=-1)
        return found

    constraints = Constraints(values, 400, one_point=True)
    result = minimized(lambda x: float(x @ x), [4.0, 4.0], constraints)
    assert result.success
    assert result.fun < 10.0  # 32 at the start


@pytest.mark.parametrize("start", [(0.27, 0.25, 10.9), (1.0, 0.5, 2.0)])
def test_a_valley_between_rows_that_curve_is_followed_with_long_steps(
    start: tuple[float, ...],
) -> None:
    # The lightest spring: diameters of wire and coil, and the number of coils.
    def rows(x: FloatArray) -> FloatArray:
        d, coil, n = x
        shear = (4 * coil**2 - d * coil) / (12566 * (coil * d**3 - d**4))
        deflection = coil**3 * n / (71785 * d**4) - 1
        frequency = 140.45 * d / (coil**2 * n) - 1
        stress = shear + 1 / (5108 * d**2) - 1
        return np.array([deflection, -stress, frequency, 1 - (d + coil) / 1.5])

    result = minimized(
        lambda x: (x[2] + 2) * x[1] * x[0] ** 2,
        start,
        {"type": "ineq", "fun": rows},
        bounds=[(0.05, 2), (0.25, 1.3), (2, 15)],
        constraint_tol=1e-6,
    )
    assert result.success
    assert result.fun == pytest.approx(0.0126652, rel=1e-5)
    assert result.nfev < 800


def test_a_price_that_was_once_high_does_not_hide_the_objective() -> None:
    # A chain of 21 links between two hooks: at first the links contradict each other.
    n, link = 20, 0.08
    t = np.linspace(0, 1, n + 2)[1:-1]

    def links(x: FloatArray) -> FloatArray:
        joints = np.vstack([[0, 0], x.reshape(n, 2), [1, 0]])
        return np.asarray((np.diff(joints, axis=0) ** 2).sum(axis=1) / link**2 - 1)

    result = minimized(
        lambda x: float(x.reshape(n, 2)[:, 1].sum()),
        np.column_stack([t, -0.3 * np.sin(np.pi * t)]).ravel(),
        {"type": "eq", "fun": links},
    )
    assert result.success
    np.testing.assert_allclose(result.fun, -7.57163, rtol=1e-4)


def test_slopes_of_all_losses_are_taken_where_sizes_cannot_be_learned() -> None:
    def values(points: FloatArray, i: IntArray) -> FloatArray:
        return np.asarray((points[:, :1] - 5e6 - 0.1 * i) ** 2)

    rows = Constraints.linear(np.ones((1, 1)), np.array([6e6]))
    problem = Problem(Losses(values, 20), rows, 1)
    method = SampledSQP(horizon_queries=2000)
    state: Any = method.init(np.array([5e6 + 3.0]), problem.size, 0)
    while state.phase != "sizes":
        state = advance(method, problem, state, 1)
    # What was asked there has failed.
    state = advance(method, problem, state.back_to(state), 1)
    assert len(state.table) == 20
    assert state.table.slopes.all()


@pytest.mark.parametrize("seed", range(3))
def test_a_start_that_violates_all_constraints_is_left(seed: int) -> None:
    """The smallest ball around points: whatever joins was as much violated before."""
    points = np.random.default_rng(14).normal(size=(5000, 10)) + 5.0

    def outside(balls: FloatArray, j: IntArray) -> FloatArray:
        gaps = balls[:, np.newaxis, :-1] - points[j]
        return np.asarray(np.linalg.norm(gaps, axis=2) - balls[:, -1:])

    x0 = np.append(np.zeros(10), 1.0)
    result = dszog.minimize(lambda x: x[-1], x0, Constraints(outside, 5000), seed=seed)
    assert result.success
    assert result.fun == pytest.approx(5.50405885, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_values_that_jump_at_the_start_alone_do_not_make_variables_small(
    seed: int,
) -> None:
    """A classifier without weights is wrong everywhere, with any weights it is not."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(500, 4))
    labels = np.sign(rows @ rng.normal(size=4) + 0.5 * rng.normal(size=500))

    def errors(points: FloatArray, j: IntArray) -> FloatArray:
        wrong = np.sign(points @ rows.T) != labels
        return np.asarray(wrong.mean(axis=1, keepdims=True) - 0.4 + 0.0 * j)

    def loss(x: FloatArray) -> float:
        return float(np.logaddexp(0.0, -labels * (rows @ x)).mean())

    result = minimized(loss, np.zeros(4), Constraints(errors, 1))
    alone = minimized(loss, np.zeros(4))
    assert result.maxcv == 0.0
    assert result.fun == pytest.approx(alone.fun, rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_a_start_where_a_violated_product_is_level_is_left(seed: int) -> None:
    """Along each variable nothing changes there, but along both together."""
    bounds = [(0.0, None), (0.0, None)]
    product = [lambda x: 1.0 - x[0] * x[1]]
    result = dszog.minimize(
        lambda x: x[0] + 2.0 * x[1],
        np.zeros(2),
        Constraints.from_callables(product),
        bounds=bounds,
        seed=seed,
    )
    assert result.success
    assert result.fun == pytest.approx(2.0 * np.sqrt(2.0), rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_levels_beside_rows_that_are_known_are_left(seed: int) -> None:
    def rows(x: FloatArray) -> FloatArray:
        return np.array([np.sin(x[0]) + x[1] ** 2 - 1.0, x[2] * x[3] - 0.5])

    equal = {"type": "eq", "fun": rows}
    result = dszog.minimize(lambda x: 0.0, np.zeros(4), equal, seed=seed)
    assert result.success
    assert result.maxcv <= 1e-6


@pytest.mark.parametrize("seed", [11, 12, 14])
def test_few_of_many_constraints_that_bind_are_looked_for_among_unseen_ones(
    seed: int,
) -> None:
    """Looks at those seen before do not tell that the others hold."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(200_000, 3))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    down = rng.normal(size=3)
    down /= np.linalg.norm(down)
    rows *= -np.sign(rows @ down)[:, np.newaxis]
    few = rng.integers(len(rows), size=8)
    rows[few] = down + 0.3 * rng.normal(size=(8, 3))
    result = dszog.minimize(
        lambda x: -down @ x,
        np.zeros(3),
        Constraints(lambda points, j: points @ rows[j].T - 1.0, len(rows)),
        bounds=[(-50.0, 50.0)] * 3,
        seed=seed,
    )
    assert result.success
    assert (rows @ result.x).max() <= 1.0 + 1e-2


@pytest.mark.parametrize("size", [1e-12, 1e-16])
def test_small_variables_of_values_that_straighten_far_away_are_no_jump(
    size: float,
) -> None:
    """Far away, a look says only that steps are too long, and not by how much."""
    aim = np.array([1.0, -0.7, 0.4])

    def loss(x: FloatArray) -> float:
        return float(np.sqrt(1.0 + (x / size - aim) ** 2).sum())

    def angle(points: FloatArray, j: IntArray) -> FloatArray:
        return np.asarray(np.arctan(points[:, :1] / size) - 0.3 + 0.0 * j)

    result = minimized(loss, np.zeros(3), Constraints(angle, 1), seed=1)
    assert result.success
    expected = 2.0 + np.hypot(1.0, 1.0 - np.tan(0.3))
    assert result.fun == pytest.approx(expected, rel=1e-6)
