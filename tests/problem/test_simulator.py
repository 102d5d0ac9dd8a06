"""One call that serves many: made once, counted once, drawn whole."""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dszog
from dszog import DSZOG, Constraints, Problem, Progress, PurityWarning, Simulator
from dszog.contract import Calls, Query, cost
from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.random_stream import (
    constraint_block,
    constraints_per_draw,
    stream,
    uniform_constraints,
)
from dszog.run.checker import Checker
from dszog.run.failures import FailureHandler
from dszog.run.meter import Meter
from dszog.workers import Serial
from tests.runs import by_dszog, size_of

N_SCENARIOS, WIDTH, DIM = 200, 500, 4


@dataclass
class Plant:
    """A simulator that keeps its own books: every call, and the calls of an iteration.

    Scenario ``i`` has the loss ``|x - c_i|^2`` and the limits ``a_k x - b_ik``.
    """

    n: int = N_SCENARIOS
    width: int = WIDTH
    n_calls: int = 0
    pairs: Counter[tuple[bytes, int]] = field(default_factory=Counter)
    again: list[int] = field(default_factory=list)  # calls made again, by iteration

    def __post_init__(self) -> None:
        rng = np.random.Generator(np.random.Philox(key=3))
        self.centres = rng.normal(1.0, 0.2, (self.n, DIM))
        self.rows = rng.normal(size=(self.width, DIM))
        self.limits = rng.uniform(0.3, 2.0, (self.n, self.width))

    def exact(self, x: FloatArray, i: int) -> tuple[float, FloatArray]:
        values = np.einsum("kd,d->k", self.rows, x) - self.limits[i]
        return float(((x - self.centres[i]) ** 2).sum()), values

    def run(self, x: FloatArray, i: int) -> tuple[float, FloatArray]:
        assert type(i) is int
        assert not x.flags.writeable
        self.n_calls += 1
        self.pairs[x.tobytes(), i] += 1
        return self.exact(x, i)

    def block(self, x: FloatArray, i: int) -> FloatArray:
        return self.run(x, i)[1]

    def callback(self, progress: Progress) -> None:
        self.again.append(self.pairs.total() - len(self.pairs))
        self.pairs.clear()

    def simulator(self) -> Any:  # as `fun`, beside functions and losses
        return Simulator(self.run, self.n, self.width)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"antithetic": True},
        {"distribution": "dense", "n_directions": 2},
        {"distribution": "uniform"},
        {"dual_batch": 1700, "constraint_batch": 3, "loss_batch": 200},
        {"start": "sampled", "n_directions": 1},
    ],
    ids=str,
)
def test_each_scenario_is_simulated_once_a_point(options: dict[str, Any]) -> None:
    plant = Plant()
    result = dszog.minimize(
        plant.simulator(), np.zeros(DIM), options=options, max_iterations=4, seed=1,
        callback=plant.callback,
    )  # fmt: skip
    assert plant.n_calls == result.nfev + result.ncev
    assert len(plant.again) >= 4
    assert plant.again[0] == 1  # to see at the start whether it answers alike
    assert not any(plant.again[1:])
    assert result.certificate.feasibility.n_constraints == N_SCENARIOS * WIDTH


def test_a_call_that_serves_a_loss_and_limits_is_charged_once() -> None:
    size = Problem(Plant().simulator(), None, DIM).size
    x = np.zeros(DIM)
    both = Query.at(
        x,
        iteration=0,
        losses=np.array([3, 7]),
        constraints=np.array([3 * WIDTH, 3 * WIDTH + 499, 7 * WIDTH, 9 * WIDTH + 1]),
    )
    assert cost([both], size).losses == 2
    assert cost([both], size).constraints == 1
    assert cost([both, both], size) == cost([both], size)  # one session, one point
    around = Query(
        iteration=0,
        x=x,
        steps=np.ones((5, DIM)) * np.arange(1, 6)[:, np.newaxis],
        losses=both.losses,
        constraints=both.constraints,
    )
    assert cost([around], size).total == 6 * 3
    assert cost([around, both], size).total == 6 * 3  # the base point is shared


def test_each_block_is_called_once_a_point() -> None:
    plant = Plant()
    blocks = Constraints.blocks(plant.block, N_SCENARIOS, WIDTH)
    more: dict[str, Any] = {"max_queries": 3_333, "callback": plant.callback}
    result = by_dszog(lambda x: x @ x, np.ones(DIM), blocks, seed=0, **more)
    assert result.ncev == plant.n_calls
    assert len(plant.again) >= 4
    assert not any(plant.again)


@pytest.mark.parametrize("policy", ["resample", "penalise"])
def test_a_scenario_that_fails_is_one_call_all_the_same(policy: Any) -> None:
    plant = Plant(n=40, width=10)

    def run(x: FloatArray, i: int) -> tuple[float, FloatArray]:
        loss, limits = plant.run(x, i)
        if i % 17 == 5:
            raise FloatingPointError("no convergence")
        return loss, limits

    failing: Any = Simulator(run, 40, 10, retries=0)
    result = dszog.minimize(
        failing, np.zeros(DIM), method=DSZOG(), max_iterations=10, on_failure=policy,
        seed=0, callback=plant.callback,
    )  # fmt: skip
    assert plant.n_calls == result.nfev + result.ncev
    assert plant.again[0] == 1
    assert not any(plant.again[1:])
    assert not result.success  # two scenarios in forty never gave a value
    assert not result.certificate.is_known
    assert np.isfinite([result.fun, result.maxcv]).all()  # of the other cases


PARTS = st.lists(
    st.tuples(st.integers(1, 6), st.integers(1, 5)), min_size=1, max_size=5
)


def concatenated(parts: list[tuple[int, int]]) -> tuple[Calls, IntArray]:
    """Return the calls of families of (number of calls, width), and each one's call."""
    calls = Calls.concat(
        [(Calls.of_width(width, n * width), n * width) for n, width in parts]
    )
    widths = np.concatenate([np.full(n, width) for n, width in parts])
    return calls, np.repeat(np.arange(len(widths)), widths)


@given(parts=PARTS, n_wanted=st.integers(1, 40))
def test_blocks_cut_no_call(parts: list[tuple[int, int]], n_wanted: int) -> None:
    calls, call_of = concatenated(parts)
    size = size_of(1, m=len(call_of), calls=calls)
    first, seen = 0, []
    while first < len(call_of):
        block = constraint_block(first, n_wanted, size)
        seen.append(calls.of(block))
        first = int(block[-1]) + 1
    together = np.concatenate([np.unique(one) for one in seen])
    np.testing.assert_array_equal(together, np.arange(calls.n_calls))


@pytest.mark.parametrize(
    "parts",
    [
        [(10, 3)],  # blocks of one width
        [(4, 1), (2, 7), (3, 2)],  # of several
        [(12, 1), (1, 40)],  # one wide function among single ones
    ],
    ids=str,
)
@pytest.mark.parametrize("n_wanted", [1, 6, 20])
def test_every_constraint_has_the_same_chance_to_be_drawn(
    parts: list[tuple[int, int]], n_wanted: int
) -> None:
    calls, call_of = concatenated(parts)
    m = len(call_of)
    size = size_of(1, m=m, calls=calls)
    n_rounds = 2000
    hits = np.zeros(m)
    totals = np.empty(n_rounds)
    values = np.sin(np.arange(m)) + np.arange(m) / 7
    for k in range(n_rounds):
        drawn = uniform_constraints(stream(9, k), size, n_wanted)
        assert (np.diff(drawn) > 0).all()
        hits[drawn] += 1
        totals[k] = constraints_per_draw(drawn, size) * values[drawn].sum()
    n_drawn = min(max(round(n_wanted * calls.n_calls / m), 1), calls.n_calls)
    chance = n_drawn / calls.n_calls
    error = np.sqrt(chance * (1 - chance) / n_rounds)
    assert np.abs(hits / n_rounds - chance).max() <= 5 * error  # equal for all
    error = totals.std(ddof=1) / np.sqrt(n_rounds)
    assert abs(totals.mean() - values.sum()) <= 5 * error + 1e-9


def test_an_objective_of_its_own_is_no_mean_over_the_scenarios() -> None:
    plant = Plant(n=5, width=3)
    simulator = Simulator(
        plant.block, 5, 3, objective=lambda x: float(x.sum()) + plant.n_calls * 0
    )
    problem = Problem(simulator, None, DIM)
    losses, rows = np.array([0]), np.array([3, 5, 14])
    queries = [Query.at(np.ones(DIM), iteration=0, losses=losses, constraints=rows)]
    (reply,) = dszog.workers.serial.Serial(problem)(queries)
    assert problem.size.n_losses == 1
    assert cost(queries, problem.size) == (1, 2)
    assert plant.n_calls == 2
    np.testing.assert_array_equal(reply.losses, [[DIM]])
    expected = [plant.exact(np.ones(DIM), 1)[1][k] for k in (0, 2)]
    np.testing.assert_array_equal(reply.constraints[0, :2], expected)


def test_cases_in_rows_and_columns_are_known_as_such() -> None:
    plant = Simulator(lambda x, i: x - i, n=(3, 4), width=2, objective=sum)
    assert (plant.n, Problem(plant, None, 2).size.case_shape) == (12, (3, 4))
    assert Problem(sum, Constraints.linear(np.eye(2), 1.0), 2).size.case_shape == (2,)


def test_a_case_that_fails_at_the_minimum_does_not_cost_the_whole_run() -> None:
    def run(x: FloatArray, case: int) -> list[float]:
        known = case != 3 or x[0] >= 1.2
        return [1.0 - x[0] if known else np.nan, 1.0 - x[1] - 0.001 * case]

    simulator = Simulator(run, n=6, width=2, objective=lambda x: float(x.sum()))
    result = dszog.minimize(simulator, [3.0, 3.0], on_failure="resample", seed=0)
    assert 2.0 < result.fun < 2.6  # 6 at the start, 2.2 where all values are known
    assert "Values are missing at the last iterate" in result.message


# ------------------------------------------------------------- limits, names and costs

CHOICES = (-np.inf, -2.0, 0.0), (0.0, 3.0, np.inf), (1.0, 0.5, 100.0)
SIDES = st.tuples(*map(st.sampled_from, CHOICES))
WEIGHTS = st.lists(st.floats(0.0, 9.0), min_size=3, max_size=3).filter(any)


@given(sides=st.lists(SIDES, min_size=1, max_size=5), weights=WEIGHTS)
def test_limits_have_sides_sizes_and_names_and_cases_have_weights(
    sides: list[tuple[float, float, float]], weights: list[float]
) -> None:
    low, high, size = np.array(sides).T
    expected = [(k, "upper", high) for k in np.flatnonzero(high < np.inf)]
    expected += [(k, "lower", low) for k in np.flatnonzero(low > -np.inf)]
    if not expected:
        return
    n, names = len(sides), ([*"abc"], lambda k: f"v{k}")
    plant = Simulator(
        lambda x, i: (x[i], x[0] * np.arange(1.0, n + 1) + i), 3, n,
        lower=low, upper=high, scale=size, weights=weights, names=names,
    )  # fmt: skip
    problem, x = Problem(plant, None, 3), np.array([[0.7, -1.0, 4.0]])
    found = plant.constraints.values(x, np.arange(len(plant.constraints)))[0]
    for j, (i, (k, side, bound)) in enumerate(itertools.product(range(3), expected)):
        sign = 1.0 if side == "upper" else -1.0
        assert found[j] == sign * (0.7 * (k + 1) + i - bound[k]) / size[k]
        is_both = sum(one[0] == k for one in expected) == 2
        name = f"{'abc'[i]}, {side} v{k}" if is_both else f"{'abc'[i]}, v{k}"
        assert problem.name("constraint", j) == name
    mean = problem.losses.values(x, np.arange(3)).mean()
    assert mean == pytest.approx(np.average(x[0], weights=weights))
    assert problem.name("loss", 1) == "b"


def hours(fails: Any, *, mean: bool = False, **more: Any) -> Any:
    """Return 20 hours whose demand x and y supply at costs 1 and 2; some may fail."""
    demand = np.linspace(1.0, 3.0, 20)

    def run(x: FloatArray, i: int) -> Any:
        if fails(x, i):
            raise ArithmeticError("no solution")
        limits = [demand[i] - x[0] - x[1], x[1] - 1.0, x[0] - 2.5]
        return (x[0] + 2 * x[1], limits) if mean else limits

    cost = None if mean else lambda x: x[0] + 2 * x[1]
    names = [f"hour {i}" for i in range(20)], ["supply", "storage", "power"]
    return Simulator(run, 20, 3, objective=cost, names=names, **more)


def solved(plant: Any, **more: Any) -> dszog.Result:
    call: dict[str, Any] = {"max_queries": 4000, "seed": 0, "bounds": [(0, 5)] * 2}
    return dszog.minimize(plant, [1.0, 1.0], **(call | more))


def test_what_binds_is_told_by_name_with_its_cost() -> None:
    first, second = solved(hours(lambda x, i: False)).binding()
    found = first.multiplier, second.multiplier
    assert found == pytest.approx((2.0, 1.0), abs=1e-6)
    assert (first.name, first.constraint) == ("hour 19, supply", 57)
    assert second.name == f"hour {second.constraint // 3}, power"


def test_a_simulator_is_certified_as_it_is_minimised() -> None:
    plant, bounds = hours(lambda x, i: False), [(0, 5)] * 2
    found = dszog.certify(plant, [2.5, 0.5], bounds=bounds)
    made = dszog.Problem(plant, None, 2, bounds=bounds)
    assert str(found) == str(dszog.certify(made, [2.5, 0.5]))
    assert found.feasibility.maxcv == 0.0


# ------------------------------------------------------------------- cases that fail


@pytest.mark.parametrize("mean", [False, True])
@pytest.mark.parametrize(
    ("fails", "verdict", "said"),
    [
        (lambda x, i: i % 3 == 0 and x[0] < 1.5, "Success", ""),  # at the start
        (lambda x, i: i == 7, "19 of 20 cases could be simulated, not hour 7.",
         "within the tolerance. 1 case never gave a value (hour 7)"),
        (lambda x, i: i % 2 == 0,
         "10 of 20 cases could be simulated, not hour 0, hour 2, hour 4 and 7 more.",
         "10 cases never gave a value (hour 0, hour 2, hour 4, ...)"),
    ],
    ids=["at the start", "one never", "half never"],
)  # fmt: skip
def test_cases_that_fail_are_named_and_the_others_solved(
    fails: Any, verdict: str, said: str, mean: bool
) -> None:
    result = solved(hours(fails, mean=mean), on_failure="resample")
    np.testing.assert_allclose(result.x, [2.5, 0.5], atol=1e-6)
    assert verdict in result.verdict
    assert said in result.message
    assert result.nfev + result.ncev < 1000
    lost = [f"hour {i}" for i in range(20) if fails([2.5, 0.5], i)]
    assert result.failures.never == tuple(lost)
    assert set(lost) <= set(result.failures.cases)


def test_a_case_with_another_number_of_limits_is_named_with_both_numbers() -> None:
    def run(x: Any, i: int) -> Any:
        return np.full(2 if i == 7 else 3, -x[0])

    names = ([f"hour {i}" for i in range(9)], ["a", "b", "c"])
    plant = Simulator(run, 9, 3, objective=lambda x: x[0], names=names)
    said = r"hour 7.*returned 2 limits for scenario 7, expected 3"
    for policy in ("raise", "resample"):  # a mistake, which is not left out
        with pytest.raises(dszog.EvaluationError, match=said):
            dszog.minimize(plant, [1.0], bounds=[(0.5, 2.0)], seed=0, on_failure=policy)


@pytest.mark.parametrize("large", [0, 1])
def test_limits_of_other_sizes_are_kept_though_no_scale_was_given(large: int) -> None:
    """One is a million times the other; each has to hold in its own size."""
    sizes = np.array([1.0, 1.0])
    sizes[large] = 1e6

    def run(x: Any, i: int) -> Any:
        tilt = 1.0 + 0.1 * np.cos(i)
        return sizes * [tilt * x[0] ** 2 - 1.0, tilt * x[1] - x[0] - 1.0]

    plant = Simulator(run, 50, 2, objective=lambda x: -x[0] - x[1])
    bounds = [(0.0, 5.0)] * 2
    result = dszog.minimize(
        plant, [0.2, 0.2], bounds=bounds, constraint_tol=1e-3, seed=0
    )
    worst = max((run(result.x, i) / sizes).max() for i in range(50))
    assert worst <= 1e-3


def test_a_point_where_a_case_fails_is_judged_by_the_others() -> None:
    plant = hours(lambda x, i: i == 7 and x[0] > 2.0)  # not at the start
    result = solved(plant, on_failure="resample")
    np.testing.assert_allclose(result.x, [2.5, 0.5], atol=1e-6)
    assert "19 of 20 cases could be simulated, not hour 7." in result.verdict
    assert not result.success


def test_what_fails_by_chance_is_asked_again_while_that_helps() -> None:
    rng = np.random.default_rng(0)
    result = solved(hours(lambda x, i: rng.random() < 0.2), on_failure="resample")
    assert result.success
    assert sum(result.failures.cases.values()) <= 3  # 0.2^4 of the calls are lost
    never = solved(hours(lambda x, i: x[0] > 1.2), on_failure="resample")
    assert never.costs.n_retried < 0.25 * (never.nfev + never.ncev)


def test_what_the_run_has_just_seen_to_hold_is_not_asked_again() -> None:
    calls, demand = Counter[bytes](), np.linspace(1.0, 3.0, 200)

    def run(x: FloatArray, i: int) -> list[float]:
        calls[x.tobytes()] += 1
        return [demand[i] - x[0] - x[1], x[0] - 2.5]

    plant = Simulator(run, 200, 2, objective=lambda x: x[0] + 2 * x[1])
    result = solved(plant, max_queries=10_000)
    assert result.success
    assert result.certificate.feasibility.is_exact
    assert result.certificate.feasibility.n_checked == 400
    assert calls[result.x.tobytes()] <= 200 + 16 + 1


@pytest.mark.parametrize("n", [500, 4000])
def test_all_cases_are_checked_where_the_run_took_more_and_left_room(n: int) -> None:
    demand, prices = np.linspace(1.0, 3.0, n), np.linspace(1.0, 2.0, 60)
    plant = Simulator(
        lambda x, i: [demand[i] - x.sum(), (x**2).sum() - 4.0],
        *(n, 2), objective=lambda x: float(prices @ x + (x**2).sum()),
    )  # fmt: skip
    problem = Problem(plant, None, 60, x0=np.full(60, 0.06))
    result = dszog.minimize(problem, max_queries=10_000, seed=0)
    assert result.success
    assert result.certificate.feasibility.is_exact == (n == 500)
    assert result.nfev + result.ncev <= 10_000


@pytest.mark.parametrize("factors", [(1, 1, 1), (1e6, 1, 1e-3), (1e5, 1, 0.5)], ids=str)
def test_limits_that_contradict_or_differ_in_size_are_named(factors: Any) -> None:
    rows = np.linspace(1.0, 3.0, 20)  # the last two of which cannot be supplied
    plant = Simulator(
        lambda x, i: np.array([rows[i] - x[0], x[1] - 1.0, x[0] - 2.8]) * factors,
        *(20, 3), objective=sum, names=(None, ["supply", "storage", "power"]),
    )  # fmt: skip
    result = solved(plant)
    assert result.status == dszog.Status.LEAST_VIOLATION
    _, pulls = result.message.split("What pulls against each other here: ")
    assert "case 19, supply" in pulls
    assert ", power" in "; ".join(pulls.split("; ")[:2])  # one case of each limit first
    few, many = 1.8 * factors[2], 2.0 * factors[0]
    sizes = f"sizes from {few:.0e} (power) to {many:.0e} (supply) at the start"
    assert (sizes in result.message) == (factors[0] > 1.0)
    plant._sides = Simulator(plant._run, 1, 3, objective=sum, scale=factors)._sides
    assert sizes not in solved(plant).message
    nothing = solved(hours(lambda x, i: True), on_failure="resample")
    assert "of sizes" not in nothing.message  # as none is known


def test_retries_are_made_at_once_and_counted() -> None:
    calls, rng = Counter[str](), np.random.default_rng(0)

    def fails(x: Any, i: int) -> bool:
        calls["run"] += 1
        return bool(rng.random() < 0.1)

    plant = hours(fails, retries=9, initializer=lambda: calls.update(["init"]))
    result = solved(plant)  # on_failure="raise"
    assert result.success
    assert result.costs.n_retried > 0
    assert calls == {"run": result.ncev + result.costs.n_retried, "init": 1}
    most = result.ncev + result.nfev + result.costs.n_retried - 30
    calls.clear()
    with suppress(dszog.EvaluationError):
        solved(plant, max_queries=most)
    assert calls["run"] <= most
    assert calls["init"] == 0  # once in a process


def test_a_simulator_that_answers_otherwise_is_noticed_at_the_start() -> None:
    last: dict[int, float] = {}  # what it starts from next time, by case

    def run(x: FloatArray, i: int) -> list[float]:
        before, last[i] = last.get(i, x[0]), float(x[0])
        return [1.0 - x[0] + 1e-9 * before]

    plant = Simulator(run, 9, 1, objective=sum, names=(None, ["level"]))
    said = r"Constraint \d \(case \d, level\) gave"
    with pytest.warns(PurityWarning, match=said), pytest.raises(ZeroDivisionError):
        solved(plant, callback=lambda progress: 1 / 0)


# ------------------------------------------------------------- what is said of failures


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 21.0)])
def test_values_are_of_the_cases_that_could_be_simulated(weights: Any) -> None:
    plant = hours(lambda x, i: i == 7, mean=True, weights=weights)
    result = solved(plant, on_failure="resample")
    assert result.fun == pytest.approx(result.x @ [1.0, 2.0])  # the same in each
    assert 0.0 <= result.maxcv <= 1e-6
    assert not result.success  # one is not known
    assert "over 19 of 20 cases" in str(result.certificate)
    found = dszog.certify(plant, result.x, bounds=[(0, 5)] * 2)
    assert found.objective == pytest.approx(result.fun)
    assert not found.is_known


def test_that_no_case_can_be_simulated_is_said_with_the_reason() -> None:
    result = solved(hours(lambda x, i: True), on_failure="resample", max_queries=400)
    assert "none of the 20 cases could be simulated" in str(result)
    assert "no solution" in " ".join(str(result).split())


def test_a_point_at_which_all_cases_fail_is_no_result_where_others_give_values() -> (
    None
):
    plant = hours(lambda x, i: x[0] < 0.9 or (i % 4 == 0 and x[0] < 1.5))
    problem = Problem(plant, dim=2, bounds=[(0, 5)] * 2)
    meter = Meter(Serial(problem), problem.size, failures=FailureHandler("resample"))
    checker = Checker(problem, meter, 0, 100, None, 3)
    start, nowhere = checker.check(np.array([1.0, 1])), checker.check(np.zeros(2))
    assert start is not None
    assert nowhere is not None
    assert len(start.feasibility.lost_calls) == 5
    assert len(nowhere.feasibility.lost_calls) == 20
    assert checker.is_better(start, nowhere, 30.0)
    assert not checker.is_better(nowhere, start, 30.0)


def test_where_all_cases_fail_at_the_start_leaving_them_out_is_not_the_advice() -> None:
    with pytest.raises(dszog.EvaluationError, match="All cases that were") as caught:
        solved(hours(lambda x, i: True))
    assert "resample" not in str(caught.value)
    with pytest.raises(dszog.EvaluationError, match=r"cases that were.*'resample'"):
        solved(hours(lambda x, i: i % 2 == 0))


def test_what_certifies_a_simulator_is_named() -> None:
    plant = Simulator(
        lambda x, i: [1.0 - x[i % 20]], 200, 1, objective=lambda x: float(x @ x)
    )
    result = dszog.minimize(
        plant, np.full(20, 2.0), max_queries=700, seed=0, bounds=[(0, 5)] * 20
    )
    said = "dszog.certify(simulator, result.x, bounds=bounds) does it"
    assert said in str(result.certificate)


def test_cases_asked_for_at_one_design_are_not_said_to_be_impossible() -> None:
    plant = hours(lambda x, i: i == 7)
    problem = Problem(plant, dim=2, bounds=[(0, 5)] * 2)
    handler = FailureHandler("resample", problem)
    answer = Serial(problem)

    def ask(x: list[float]) -> None:
        query = Query.to_check(np.array(x), constraints=np.arange(60))
        handler.count(answer((query,)), (query,))

    for near in (0.0, 1e-6, 1e-3):
        ask([1.0, 1.0 + near])
    assert not handler.never_spread
    ask([1.0, 2.0])
    assert handler.never_spread
    assert handler.report.never == ("hour 7",)


def test_failures_are_told_in_a_few_words() -> None:
    result = solved(hours(lambda x, i: i % 2 == 0), on_failure="resample")
    assert len(result.failures.cases) == 10
    assert "hour 0" in repr(result.failures)
    assert "and 7 more" in repr(result.failures)
    assert "hour 14" not in repr(result.failures)


def test_retries_end_where_none_has_helped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dszog.run.meter.MOST_IN_VAIN", 30)
    width = np.linspace(1.0, 2.0, 40)

    def run(x: FloatArray, i: int) -> Any:
        if i == 7:
            raise ArithmeticError("no solution")
        apart = abs(x[0] - 0.3 * width[i] * x[1]) - 0.02 * width[i]
        return (x[0] - 2) ** 2 + (x[1] - 1) ** 2, [apart, x[0] - 3 * x[1] ** 2]

    plant = Simulator(run, 40, 2)
    result = solved(plant, on_failure="resample", bounds=[(0, 2)] * 2)
    assert sum(result.failures.cases.values()) > 20  # each was made again three times
    assert result.costs.n_retried <= 32


def test_where_cases_fail_at_the_start_the_way_out_comes_first() -> None:
    with pytest.raises(
        dszog.EvaluationError, match=r"^5\.0% of the cases .* fail"
    ) as e:
        solved(hours(lambda x, i: i == 7))
    assert "resample" in str(e.value).split(".")[1]
    assert "clip" not in str(e.value)


def test_a_budget_that_is_too_small_for_a_simulator_says_to_raise_it() -> None:
    with pytest.raises(dszog.InputError, match=r"Raise max_queries\.$"):
        solved(hours(lambda x, i: False), max_queries=20)


def test_a_finished_run_that_is_reported_again_opens_no_simulator(
    tmp_path: Any,
) -> None:
    opened: list[int] = []
    plant = hours(lambda x, i: False, initializer=lambda: opened.append(1))
    solved(plant, checkpoint=tmp_path / "run")
    assert len(opened) == 1
    plant = hours(lambda x, i: False, initializer=lambda: opened.append(1))
    result = solved(plant, checkpoint=tmp_path / "run", resume=True)
    assert len(opened) == 1
    assert "no function was called" in result.message


def test_what_cannot_be_opened_is_an_error_and_no_failing_case() -> None:
    def refuse() -> None:
        raise OSError("no licence")

    for evaluator in ("serial", "threads"):
        plant = hours(lambda x, i: False, initializer=refuse)
        with pytest.raises(OSError, match="no licence"):
            solved(plant, on_failure="resample", evaluator=evaluator)


@pytest.mark.filterwarnings("ignore::dszog.PurityWarning")
def test_a_simulator_that_keeps_answers_is_no_contradiction() -> None:
    demand = np.random.default_rng(0).uniform(1, 3, 200)
    last: dict[int, float] = {}

    def warm(x: FloatArray, i: int) -> Any:
        before = last.get(i, 0.0)
        last[i] = before + 0.9 * (demand[i] - x[0] - x[1] - before)
        return x[0] + 2 * x[1], [last[i], x[1] - 1.0, x[0] - 2.5]

    result = dszog.minimize(
        Simulator(warm, 200, 3), [2.0, 0.9], bounds=[(0, 5)] * 2, seed=0,
        max_queries=20_000,
    )  # fmt: skip
    assert "may contradict each other" not in result.message
    assert "cannot be told" in result.message


def test_a_limit_that_is_exceeded_within_the_tolerance_is_named() -> None:
    demand = np.random.default_rng(0).uniform(1, 3, 200)
    plant = Simulator(
        lambda x, i: (x[0] + 2 * x[1], [demand[i] - x[0] - x[1], x[1] - 1, x[0] - 2.5]),
        *(200, 3),
    )
    result = solved(plant, max_queries=20_000)
    assert 1e-6 < result.maxcv <= 1e-2
    worst = f"case {int(demand.argmax())}, limit 0"
    assert worst in [row.name for row in result.binding()]
    assert "is exceeded by" in str(result.certificate)


def test_many_cases_of_a_limit_are_named_once() -> None:
    plant = Simulator(
        lambda x, i: (x[0], [4.0 - x[0] - x[1], x[0] - 1.0, x[1] - 2.0]), 50, 3,
        names=(None, ["sum", "first", "second"]),
    )  # fmt: skip
    result = solved(plant)
    assert result.status == dszog.Status.LEAST_VIOLATION
    pulls = result.message.split("What pulls against each other here: ")[1]
    assert len(pulls.split(";")) == len(set(pulls.replace(".", "").split(";"))) <= 9


def test_a_whole_problem_of_a_simulator_needs_no_constraints() -> None:
    plant = hours(lambda x, i: False)
    problem = Problem(plant, dim=2, bounds=[(0, 5)] * 2)
    assert problem.size.n_constraints == 60
    with pytest.raises(TypeError, match="`dim` is missing"):
        Problem(plant)
