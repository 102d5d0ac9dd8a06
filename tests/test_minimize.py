"""`minimize`: budgets, honesty, interrupts, determinism, and whether it solves."""

from __future__ import annotations

import math
import re
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, OptimizeResult

from dszog import DSZOG, Constraints, Losses, Problem, Progress, Status, minimize
from dszog.contract.arrays import FloatArray
from tests.contracts.helpers import PROBLEMS, Kind, digest, make_problem
from tests.runs import by_dszog, disc


# ----------------------------------------------------------------------------- helpers
def exact_fun(problem: Problem, x: FloatArray) -> float:
    every = np.arange(problem.size.n_losses)
    return float(problem.losses.values(x[np.newaxis], every).mean())


def exact_maxcv(problem: Problem, x: FloatArray) -> float:
    if problem.constraints is None:
        return 0.0
    every = np.arange(problem.size.n_constraints)
    return max(float(problem.constraints.values(x[np.newaxis], every).max()), 0.0)


def exact_merit(problem: Problem, x: FloatArray, result: OptimizeResult) -> float:
    penalty = float(result.history["penalty"][-1])
    return exact_fun(problem, x) + penalty * exact_maxcv(problem, x) ** 2


def bits(result: OptimizeResult) -> object:
    """Return everything that the seed decides; elapsed seconds it does not."""
    names = "x fun maxcv success nit nfev ncev seed message weights method certificate"
    history = [item for item in result.history.items() if item[0] != "elapsed"]
    return [digest(result[name]) for name in names.split()], digest(history)


# ------------------------------------------------------------------------- the budget
def test_without_a_budget_two_thousand_iterations_are_made() -> None:
    problem, _ = make_problem(Kind(dim=1, n=1, m=0, gradient=True, bounded=True))
    result = by_dszog(problem, seed=0)
    assert (result.nit, result.status) == (2000, Status.MAX_ITERATIONS)
    assert 900 <= len(result.history["iteration"]) <= 2000


# ---------------------------------------------------------------------- honest results
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("method", ["auto", "dszog"])
def test_fun_and_maxcv_are_fresh_full_values(name: str, method: str) -> None:
    problem, _ = make_problem(PROBLEMS[name])
    result = minimize(problem, method=method, max_iterations=60, seed=0)
    assert result.fun == pytest.approx(exact_fun(problem, result.x), rel=1e-12)
    assert result.maxcv == pytest.approx(
        exact_maxcv(problem, result.x), rel=1e-10, abs=1e-13
    )
    assert result.certificate.feasibility.is_exact
    assert not result.success or result.maxcv <= 0.01
    assert (result.x >= problem.lower).all()
    assert (result.x <= problem.upper).all()
    result.x += 1.0  # it is the caller's


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize(
    "call",
    [
        {"max_iterations": 1},
        {"max_iterations": 2},
        {"max_iterations": 20},
        {"max_iterations": 8, "options": {"step_size": 3.0}},
        {"max_iterations": 8, "options": {"step_size": 3.0, "penalty": 500.0}},
    ],
    ids=lambda call: str(call).replace(" ", ""),
)
def test_no_result_is_worse_than_the_start(name: str, call: dict[str, Any]) -> None:
    problem, _ = make_problem(PROBLEMS[name])
    result = minimize(problem, seed=0, **call)
    best = exact_merit(problem, problem.x0, result)
    assert exact_merit(problem, result.x, result) <= best + 1e-12 * abs(best)


def test_an_optimal_start_is_returned_as_it_is() -> None:
    # Any step leads away from (1, 1): the objective rises and nothing is violated.
    constraints = Constraints(lambda points, j: points[:, j] - 1.0, 2)
    result = minimize(
        lambda x: float(np.abs(x - 1.0).sum()),
        np.ones(2),
        constraints,
        max_iterations=20,
        seed=0,
    )
    np.testing.assert_array_equal(result.x, [1.0, 1.0])
    assert result.fun == result.maxcv == 0.0


def test_a_violation_above_the_tolerance_is_no_success() -> None:
    problem, _ = make_problem(Kind(n=1))
    call: dict[str, Any] = {
        "max_iterations": 60,
        "seed": 0,
        "options": {"penalty": 1.0},
    }
    loose = minimize(problem, constraint_tol=10.0, **call)
    tight = minimize(problem, constraint_tol=1e-3, **call)
    assert not loose.success
    assert loose.verdict == "No success: feasible, but not shown to be optimal."
    assert not tight.success
    assert tight.maxcv > 1e-3
    assert re.search(
        r"The worst violation is above constraint_tol=0.001: give a larger budget, or "
        r"set the penalty \(it ended at 1\) to about \d+",
        tight.message,
    )
    exactly = minimize(problem, constraint_tol=loose.maxcv, **call)
    assert exactly.verdict == loose.verdict
    below = math.nextafter(loose.maxcv, 0.0)
    assert "keep" in minimize(problem, constraint_tol=below, **call).verdict


def test_divergence_is_reported_with_advice_and_costs_nothing() -> None:
    problem, _ = make_problem(Kind())
    result = minimize(
        problem,
        max_iterations=200,
        seed=0,
        options={"step_size": 500.0, "penalty": 1e3},
    )

    assert result.status == Status.DIVERGED
    assert not result.success
    assert result.verdict.startswith("No success: the iterates ran away")
    assert "Lower step_size by a factor of 4" in result.message
    assert result.nit < 200
    merit = exact_merit(problem, result.x, result)
    assert merit <= exact_merit(problem, problem.x0, result)
    assert result.method.step_size == 500.0
    assert result.method.penalty == 1e3


def test_a_default_step_that_diverges_is_shrunk_and_said_so() -> None:
    # A step of eta sqrt(|4 L x^3|) leads away from 0 where x > 1 / (eta^2 L): at 0.9
    # the default of 0.02 does (0.25), a quarter of it does not (4).
    seen: list[Progress] = []
    result = by_dszog(
        lambda x: float(1e4 * x[0] ** 4), np.array([0.9]),
        Constraints(lambda points, j: points - 5.0, 1), max_iterations=100, seed=0,
        callback=seen.append,
    )  # fmt: skip

    assert result.status == Status.MAX_ITERATIONS
    assert result.success
    assert result.method.step_size == 0.02 / 4
    assert (
        "The iterates ran away with step_size=0.02; the run was started again with "
        "0.005." in result.message
    )
    assert abs(result.x.item()) < 0.1
    # The budget is that of both attempts together; each begins with a look.
    assert result.nit == 100
    n_first = [progress.iteration for progress in seen].count(0)
    iterations = [progress.iteration for progress in seen[n_first:]]
    again = next(a for a, b in pairwise(iterations) if a == b)
    assert n_first == 1
    assert iterations == [*range(1, again + 1), *range(again, 101)]


def test_a_fall_without_end_is_not_tried_with_ever_smaller_steps() -> None:
    result = by_dszog(
        lambda x: float(-1e6 * np.sum(x**4)),
        np.full(2, 3.0),
        Constraints(lambda points, j: -points[:, j] - 2.0, 2),
        max_queries=50_000,
        seed=0,
    )
    assert result.status == Status.DIVERGED
    assert "started again 3 times" in result.message
    assert "look at the signs" in result.message


# ----------------------------------------------------------------- the penalty's raise
def test_the_penalty_is_raised_until_the_violation_fits_the_tolerance() -> None:
    problem, _ = make_problem(Kind(n=1))
    result = by_dszog(problem, max_iterations=300, seed=0)
    assert result.method.penalty > 30.0
    assert "The penalty was raised from 30 to" in result.message
    assert result.method.step_size < 0.02
    assert result.success


# ------------------------------------------------------------------------- determinism
def test_a_run_without_a_seed_reports_one_that_repeats_it() -> None:
    problem, _ = make_problem(Kind())
    drawn = [minimize(problem, max_iterations=10) for _ in range(2)]
    assert drawn[0].seed != drawn[1].seed
    assert drawn[0].x.tolist() != drawn[1].x.tolist()
    for result in drawn:
        again = minimize(problem, max_iterations=10, seed=result.seed)
        assert bits(again) == bits(result)


def test_what_the_caller_passes_stays_as_it_was() -> None:
    x0, low, options = np.array([2, 2]), np.array([0.0, 0.0]), {"penalty": 5.0}
    before = digest([x0, low]), dict(options)
    minimize(
        lambda x: float(x @ x), x0,
        Constraints(lambda points, j: 1.0 - points[:, :1] - 0.1 * j, 4),
        bounds=Bounds(low, np.array([3.0, 3.0])), options=options, max_iterations=20,
        seed=0,
    )  # fmt: skip
    assert (digest([x0, low]), options) == before


# ---------------------------------------------------------------------- does it solve?
@pytest.mark.parametrize("method", ["auto", "dszog"])
def test_the_nearest_point_of_a_disc_of_half_planes_is_found(method: str) -> None:
    result = minimize(
        lambda x: float(np.sum((x - 2.0) ** 2)), np.zeros(2), disc(1000),
        method=method, max_iterations=1000, seed=0,
    )  # fmt: skip

    # f* = (2 sqrt 2 - 1)^2, with multiplier 2 (2 sqrt 2 - 1) = 3.66 (the polygon
    # differs from the disc by 5e-6). A violation of v gains at most 3.66 v; within the
    # tolerance of 0.01 the objective is thus above f* - 0.037, and near it from above.
    least = (2 * math.sqrt(2) - 1) ** 2
    assert result.success
    assert least - 3.66 * result.maxcv - 1e-4 <= result.fun <= least + 0.02
    # f - f* >= 3.66 (|x - x*|^2 / 2 - v) + |x - x*|^2 on the disc grown by v.
    np.testing.assert_allclose(result.x, math.sqrt(0.5), rtol=0, atol=0.05)


def test_a_nonconvex_problem_is_solved_from_an_infeasible_start() -> None:
    # Out of the unit ball (a constraint that is not convex), in the half-plane x >= 0:
    # nearest to (0.5, 0.2) is the point of the circle in that direction.
    target = np.array([0.5, 0.2])
    constraints = Constraints.from_function(
        lambda x, j: 1.0 - float(x @ x) if j == 0 else -float(x[0]), 2
    )
    result = by_dszog(
        lambda x: float(np.sum((x - target) ** 2)),
        np.array([0.3, -0.3]),
        constraints,
        max_iterations=800,
        seed=0,
    )

    length = float(np.hypot(*target))
    assert result.success
    # The multiplier of 1 - |x|^2 is 1 - |target|; 0.01 of violation is 0.005 of |x|.
    np.testing.assert_allclose(result.x, target / length, rtol=0, atol=0.03)
    assert result.fun == pytest.approx((1.0 - length) ** 2, abs=0.006)


# ---------------------------------------------------------------------- the front door
def test_the_result_is_scipys_with_what_the_documentation_lists() -> None:
    problem, _ = make_problem(Kind())
    result = minimize(problem, max_iterations=5, seed=3)
    assert isinstance(result, OptimizeResult)
    names = "x fun maxcv success status message nit nfev ncev seed history weights "
    names += "certificate failures multipliers method costs digest noise is_start "
    names += "constraint_tol names variables jac njev"
    assert set(result) == set(names.split())
    assert result.x.flags.writeable
    assert isinstance(result.success, bool)
    assert (result.seed, result.nit) == (3, 5)
    assert isinstance(result.method, DSZOG)


# ------------------------------------------------------------------------ ways to call
@pytest.mark.filterwarnings("ignore::dszog.StartWarning")
def test_the_ways_to_call_are_one_call() -> None:
    def fun(x: FloatArray) -> float:
        return float(np.sum((x - 1.0) ** 2))

    limits = [(-0.5, 2.0), (None, 0.5)]
    circle = disc(30)
    call: dict[str, Any] = {"max_iterations": 15, "seed": 0}
    reference = bits(by_dszog(fun, [0.1, 0.2], circle, bounds=limits, **call))

    bounds = Bounds([-0.5, -np.inf], [2.0, 0.5])
    problem = Problem(fun, circle, 2, bounds=bounds, x0=[0.1, 0.2])
    elsewhere = Problem(fun, circle, 2, bounds=bounds, x0=[9.0, 9.0])
    losses = Losses(lambda points, i: np.array([[fun(x)] for x in points]), 1)
    for result in (
        by_dszog(fun=fun, x0=[0.1, 0.2], constraints=circle, bounds=bounds, **call),
        by_dszog(fun, [0.1, 0.2], [circle], bounds=bounds, **call),
        by_dszog(losses, [0.1, 0.2], (circle,), bounds=bounds, **call),
        by_dszog(problem, **call),
        by_dszog(elsewhere, [0.1, 0.2], **call),
        by_dszog(problem, method="dszog", evaluator="serial", **call),
    ):
        assert bits(result) == reference


def test_options_are_the_fields_of_the_method() -> None:
    problem, _ = make_problem(Kind())
    every = {item.name: getattr(DSZOG(), item.name) for item in fields(DSZOG)}
    options = every | {"penalty": 7.0, "n_directions": 2}
    by_name = by_dszog(problem, max_iterations=5, seed=0, options=options)
    method = DSZOG(penalty=7.0, n_directions=2)
    by_instance = minimize(problem, max_iterations=5, seed=0, method=method)
    assert by_name.method == by_instance.method == method
    assert bits(by_name) == bits(by_instance)


@pytest.mark.parametrize("more", [{"bounds": [(0, 0)] * 2}, {"max_iterations": 20}])
def test_a_run_that_did_not_converge_is_no_success(more: Any) -> None:
    result = minimize(lambda x: float(x @ x + x[0]), [0.0, 0.0], seed=0, **more)
    assert str(result).startswith("No success: not shown to be optimal")


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_wrong_sign_is_asked_for_where_no_constraint_holds(sign: float) -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 200)

    def values(points: Any, j: Any) -> Any:
        return sign * (points @ [np.cos(angles[j]), np.sin(angles[j])] - 1.0)

    result = minimize(
        lambda x: float(((x - 2.0) ** 2).sum()),
        np.zeros(2),
        Constraints(values, 200),
        seed=0,
        max_queries=3000,
    )
    assert ("is the sign right?" in result.message) == (sign < 0.0)
