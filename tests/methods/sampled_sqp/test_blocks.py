"""Cases: one call returns all limits, and everything is learned from it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from scipy.optimize import LinearConstraint
from scipy.optimize import minimize as scipy_minimize

import dszog
from dszog import Constraints, Problem, SampledSQP
from dszog.contract.arrays import FloatArray
from dszog.methods.sampled_sqp import plans
from dszog.methods.sampled_sqp.confirming import CONFIRMED, REFUTED
from dszog.methods.sampled_sqp.screening import Seen
from dszog.save.encoding import decode, encode
from dszog.status import Status
from dszog.workers.serial import Serial
from tests.contracts.helpers import advance

DIM, WIDTH = 6, 8


class Towers:
    """Limits that are curved and differ a little from case to case."""

    def __init__(self, n: int = 60, *, tight: float = 1.0) -> None:
        rng = np.random.Generator(np.random.Philox(key=5))
        self.n, self.tight = n, tight
        self.rows = rng.normal(size=(WIDTH, DIM))
        self.shifts = rng.uniform(-0.2, 0.2, (min(n, 1000), WIDTH))
        self.goal = rng.normal(1.0, 0.3, DIM)
        self.calls: Counter[str] = Counter()
        self.fails: Any = lambda x, case: False

    def cost(self, x: FloatArray) -> float:
        self.calls["cost"] += 1
        return float(((x - self.goal) ** 2).sum())

    def limits(self, x: FloatArray, case: int) -> FloatArray:
        self.calls["limits"] += 1
        if self.fails(x, case):
            raise ArithmeticError("did not converge")
        return self.exact(x, case)

    def exact(self, x: FloatArray, case: int) -> FloatArray:
        shift = self.shifts[case % len(self.shifts)]
        values: FloatArray = self.rows @ x + 0.2 * np.sin(x).sum() - self.tight + shift
        return values

    def worst(self, x: FloatArray) -> float:
        return max(float(self.exact(x, i).max()) for i in range(len(self.shifts)))

    def problem(self) -> Problem:
        limits = Constraints.blocks(self.limits, self.n, WIDTH)
        kept: Any = {"bounds": [(-3.0, 3.0)] * DIM, "x0": np.zeros(DIM)}
        return Problem(self.cost, limits, DIM, **kept)

    def optimum(self) -> float:
        def room(x: FloatArray) -> Any:
            return -np.max([self.exact(x, i) for i in range(self.n)], axis=0)

        options: Any = {"method": "SLSQP", "bounds": [(-3.0, 3.0)] * DIM}
        options["constraints"] = [{"type": "ineq", "fun": room}]
        found = scipy_minimize(
            lambda x: ((x - self.goal) ** 2).sum(), np.zeros(DIM), **options
        )
        return float(found.fun)


def solved(towers: Towers, seed: int = 0, **options: Any) -> dszog.Result:
    method = options.pop("method", "sampled_sqp")
    return dszog.minimize(towers.problem(), method=method, seed=seed, **options)


@pytest.mark.parametrize("seed", range(3))
def test_the_optimum_is_found_and_every_call_is_counted(seed: int) -> None:
    towers = Towers()
    result = solved(towers, seed=seed, constraint_tol=1e-3)
    assert result.success
    assert result.fun == pytest.approx(towers.optimum(), rel=1e-3)
    assert towers.worst(result.x) <= 1e-3
    assert result.nfev + result.ncev == towers.calls.total() < 500
    assert result.certificate.feasibility.is_exact


def test_saving_and_loading_changes_no_iterate() -> None:
    problem, method = Towers().problem(), SampledSQP()
    start: Any = method.init(problem.x0, problem.size, 3)
    straight = advance(method, problem, start, 14)
    for n in range(1, 14, 4):
        half = advance(method, problem, start, n)
        arrays: list[Any] = []
        loaded = decode(encode(half, arrays), arrays, problem.size)
        resumed = advance(method, problem, loaded, 14 - n)
        np.testing.assert_array_equal(resumed.x, straight.x)
        np.testing.assert_array_equal(resumed.members.slopes, straight.members.slopes)


def test_nothing_grows_with_the_number_of_cases() -> None:
    small, large = Towers(1000), Towers(10**12)
    for towers in (small, large):
        assert towers.worst(solved(towers, max_queries=4000).x) <= 1e-2
        assert towers.calls.total() <= 4000


def test_limits_that_contradict_each_other_are_said_to() -> None:
    towers = Towers()
    towers.rows[1] = -towers.rows[0]
    towers.tight = -1.0
    result = solved(towers, max_queries=5000)
    assert result.status == Status.LEAST_VIOLATION
    assert not result.success


@pytest.mark.parametrize(("seed", "share"), [(1, 0), (5, 0), (1, 4), (2, 4)])
def test_curved_cases_are_seen_again_and_failing_points_not_for_ever(
    seed: int, share: int
) -> None:
    rng = np.random.default_rng(6)
    squares, bends = rng.uniform(0.3, 1.5, (30, 4, 5)), rng.uniform(0, 6, (30, 4))
    slope = rng.uniform(0.2, 1.0, 5)

    def run(x: FloatArray, i: int) -> Any:
        if share and i % 5 == 3 and crc32(x.tobytes()) % share == 0:
            raise ArithmeticError("did not converge")
        return squares[i] @ x**2 / 5 * (1.0 + 0.1 * bends[i]) - 1.0

    cases = dszog.Simulator(run, 30, 4, objective=lambda x: -float(slope @ x))
    options: Any = {"bounds": [(-0.5, 3)] * 5, "on_failure": "resample", "seed": seed}
    result = dszog.minimize(cases, np.full(5, 0.3), max_queries=5000, **options)
    assert result.fun == pytest.approx(-2.1259, abs=2e-3)
    assert result.status != Status.MAX_QUERIES


@pytest.mark.parametrize("rate", [0.03, 0.2])
def test_calls_that_fail_now_and_then_are_left_out(rate: float) -> None:
    towers, rng = Towers(), np.random.default_rng(1)
    towers.fails = lambda x, case: rng.uniform() < rate
    result = solved(towers, on_failure="resample", constraint_tol=1e-3)
    assert result.fun == pytest.approx(towers.optimum(), rel=1e-2)
    assert not result.success or towers.worst(result.x) <= 1e-3
    assert result.failures.n_failed


@pytest.mark.parametrize("max_queries", range(180, 420, 40))
def test_asking_again_keeps_to_the_budget(max_queries: int) -> None:
    towers, rng = Towers(), np.random.default_rng(1)
    towers.fails = lambda x, case: rng.uniform() < 0.2
    solved(towers, on_failure="resample", max_queries=max_queries)
    assert towers.calls.total() <= max_queries


@pytest.mark.parametrize("seed", [31, 173, 352])
def test_borrowed_slopes_show_no_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(12, 2, 2)), rng.random((12, 2)) + 0.2
    goal = rng.normal(size=2) * 3

    def fun(x: FloatArray) -> float:
        return float(((x - goal) ** 2).sum() + 1.0)

    best = scipy_minimize(
        fun, np.zeros(2), constraints=LinearConstraint(A.reshape(-1, 2), ub=b.ravel())
    )
    simulator = dszog.Simulator(lambda x, i: A[i] @ x - b[i], 12, 2, objective=fun)
    result = dszog.minimize(simulator, np.zeros(2), bounds=[(-5.0, 5.0)] * 2, seed=0)
    assert result.success
    assert result.fun == pytest.approx(best.fun, rel=1e-4)


def test_a_run_ends_when_next_to_nothing_is_left_to_gain() -> None:
    rng = np.random.default_rng(8)
    A = rng.normal(size=(2, 32)) + 0.3 * rng.normal(size=(230, 2, 32))
    b, root = rng.uniform(0.3, 2.0, (230, 2)), rng.normal(size=(32, 32))
    Q, g = root @ root.T / 32 + 0.05 * np.eye(32), 2.0 * rng.normal(size=32)
    simulator = dszog.Simulator(
        lambda x, i: A[i] @ x - b[i],
        230,
        2,
        objective=lambda x: float(x @ Q @ x / 2 - g @ x),
    )
    found = [
        dszog.minimize(
            simulator, np.zeros(32), bounds=[(-5.0, 5.0)] * 32, seed=0, tol=tol
        )
        for tol in (1e-6, 1e-8)
    ]
    rough, exact = found
    assert rough.success
    assert exact.success
    assert rough.fun == pytest.approx(exact.fun, rel=2e-3)
    assert rough.nfev + rough.ncev < 3000 < exact.nfev + exact.ncev


def test_a_small_budget_of_calls_is_for_the_sampled_sqp() -> None:
    result = solved(Towers(), method="auto", max_queries=400)
    assert isinstance(result.method, SampledSQP)


@pytest.mark.parametrize("at", [1e-6, 1e5])
def test_a_start_of_another_size_leads_to_no_false_success(at: float) -> None:
    angles = np.linspace(0.0, 2.0 * np.pi, 20, endpoint=False).reshape(10, 2)

    def limits(x: FloatArray, i: int) -> Any:
        return np.cos(angles[i]) * x[0] + np.sin(angles[i]) * x[1] - 10.0

    simulator = dszog.Simulator(
        limits, 10, 2, objective=lambda x: (x[0] - 3) ** 2 + (x[1] - 2) ** 2 + 1.0
    )
    result = dszog.minimize(simulator, [at, at], seed=0, max_queries=2000)
    assert result.success
    assert result.fun <= 1.01


@pytest.mark.parametrize("always", [False, True])
def test_cases_may_fail_at_the_start_but_not_always(always: bool) -> None:
    towers = Towers()
    towers.fails = lambda x, i: i % 4 == 0 and np.abs(x).max() < 0.05
    if always:
        towers.fails = lambda x, i: i == 7
    result = solved(towers, on_failure="resample", constraint_tol=1e-3)
    assert result.success == (not always)
    assert always or towers.worst(result.x) <= 1e-3
    assert result.fun == pytest.approx(towers.optimum(), rel=1e-2)


ROWS, COLUMNS = np.random.Generator(np.random.Philox(key=6)).normal(size=180), 80


def in_table(x: FloatArray, case: int) -> FloatArray:
    row, column = divmod(case, COLUMNS)
    own = x[0] - 1.0 + 0.2 * ROWS[row] if column == 7 else x[0] - 3.0
    common = x.sum() - 4.0 + 0.05 * (ROWS[row] + ROWS[100 + column])
    return np.array([own, common, x[1] - 1.0 + 1e-9 * ROWS[row]])


def table() -> Problem:
    """Return a problem with one column that exceeds what all others keep."""

    def cost(x: FloatArray) -> float:
        return float(-x[0] - 0.5 * x[1] + 0.1 * (x[2:] ** 2).sum())

    plant = dszog.Simulator(in_table, n=(100, COLUMNS), width=3, objective=cost)
    return Problem(plant, None, 5, bounds=[(-2.0, 3.0)] * 5, x0=np.zeros(5))


@pytest.mark.parametrize("seed", [0, 3])
def test_what_one_column_of_a_table_exceeds_is_found_among_thousands(seed: int) -> None:
    result = dszog.minimize(table(), constraint_tol=1e-3, seed=seed, max_queries=8000)
    assert result.success
    assert result.nfev + result.ncev < 2500
    assert max(in_table(result.x, case).max() for case in range(8000)) <= 1e-3
    best = -(1.0 - 0.2 * ROWS[:100].max()) - 0.5
    assert result.fun == pytest.approx(best, abs=1e-3)


def test_a_budget_that_ends_before_likely_cases_are_seen_shows_no_optimum() -> None:
    problem, method = table(), SampledSQP(constraint_tol=1e-3)
    state: Any = method.init(problem.x0, problem.size, 0)
    while state.phase != "verify":
        state = advance(method, problem, state, 1)
    used = state.n_loss_queries + state.n_constraint_queries
    spent = replace(method, horizon_queries=used)
    state = replace(state, confirmed=CONFIRMED)
    assert plans.verifying(spent, state).phase == "verify"  # for which nothing is left
    while state.phase != "done":
        state = advance(method, problem, state, 1)
    used = state.n_loss_queries + state.n_constraint_queries
    spent = replace(method, horizon_queries=used)
    assert plans.verifying(spent, state).phase == "done"  # as none is likely any more


def test_before_models_are_learned_for_the_end_few_cases_are_looked_at() -> None:
    problem, method = table(), SampledSQP(constraint_tol=1e-3)
    state: Any = method.init(problem.x0, problem.size, 0)
    while state.phase != "verify":
        state = advance(method, problem, state, 1)
    members = state.members.marked(np.arange(len(state.members)))
    assert (members.multipliers > 0).any()
    nothing = Seen.nothing(problem.size.dim)  # was seen here
    state = replace(state, members=members, seen=nothing, n_idle=0, n_clean=10**4)
    found = plans.verifying(method, state)
    n_looked = len(problem.size.cases_of(found.looks[0].constraints))
    least = problem.size.dim * (len(plans.stale_cases(state)) + 1)
    assert found.phase == "verify"
    assert 0 < n_looked <= max(plans.CHUNK, least)
    learned = replace(state, members=replace(members, stale=0 * members.stale))
    (look,) = plans.verifying(method, replace(learned, n_stale=0)).looks
    assert len(problem.size.cases_of(look.constraints)) > 100


@pytest.mark.parametrize("before", [CONFIRMED, 0, REFUTED])
def test_a_point_at_which_a_case_is_violated_is_not_known_to_be_optimal(
    before: int,
) -> None:
    problem, method = table(), SampledSQP(constraint_tol=1e-3)
    state: Any = method.init(problem.x0, problem.size, 0)
    answer, is_met = Serial(problem), False
    while state.phase != "done" and not is_met:
        state = replace(state, confirmed=before) if state.phase == "verify" else state
        queries, phase = method.ask(state), state.phase
        replies = answer(queries)
        state, _ = method.tell(state, queries, replies)
        is_met = phase == "verify" and replies[0].constraints.max() > 1e-3
    assert is_met
    assert state.confirmed == (0 if before == CONFIRMED else before)


def test_cases_that_join_borrow_slopes_where_to_learn_them_costs_more() -> None:
    rng = np.random.Generator(np.random.Philox(key=4))
    rows, shifts = rng.normal(size=(64, 20)), rng.uniform(-0.2, 0.2, (300, 64))
    goal, n_borrowed = rng.normal(0.5, 0.2, 20), 0

    def run(x: FloatArray, i: int) -> tuple[float, FloatArray]:
        return float(((x - goal) ** 2).sum()), rows @ x - 1.0 + shifts[i]

    problem = Problem(dszog.Simulator(run, 300, 64), None, 20, x0=np.zeros(20))
    method = SampledSQP(constraint_tol=1e-3)
    state: Any = method.init(problem.x0, problem.size, 0)
    while state.phase != "done":
        before, state = state, advance(method, problem, state, 1)
        if before.phase in ("trial", "verify"):
            new = ~np.isin(state.members.indices, before.members.indices)
            n_borrowed += int((state.members.stale[new] == 1).sum())
    assert n_borrowed
    assert (rows @ state.x - 1.0 + shifts).max() <= 1e-3
