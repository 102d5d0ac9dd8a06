"""One call that serves many: made once, counted once, drawn whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dszog
from dszog import DSZOG, Constraints, Problem, Progress, Simulator
from dszog.contract import Calls, Query, cost
from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.random_stream import stream
from dszog.maths.sampling import (
    constraint_block,
    constraints_per_draw,
    uniform_constraints,
)
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
    most: list[int] = field(default_factory=list)  # the largest count per iteration

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
        self.most.append(max(self.pairs.values()))
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
        plant.simulator(),
        np.zeros(DIM),
        options=options,
        max_iterations=4,
        seed=1,
        callback=plant.callback,
    )
    assert plant.n_calls == result.nfev + result.ncev
    assert len(plant.most) >= 4
    assert set(plant.most) == {1}
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


@pytest.mark.parametrize("max_queries", [2_000, 3_333, 5_000])
@pytest.mark.parametrize("kind", ["simulator", "blocks", "with others"])
def test_a_budget_counts_calls_and_is_kept(kind: str, max_queries: int) -> None:
    plant = Plant()
    others = Counter[str]()

    def loss(x: FloatArray) -> float:
        others["loss"] += 1
        return float(((x - 1.0) ** 2).sum())

    def more(x: FloatArray, j: int) -> float:
        others["more"] += 1
        return float(x[j % DIM] - 3.0)

    fun: Any = plant.simulator()
    constraints: Any = ()
    if kind == "blocks":
        fun, constraints = loss, Constraints.blocks(plant.block, N_SCENARIOS, WIDTH)
    if kind == "with others":
        constraints = Constraints.from_function(more, 30)
    result = by_dszog(
        fun,
        np.zeros(DIM),
        constraints,
        max_queries=max_queries,
        seed=0,
        callback=plant.callback,
    )
    n_calls = plant.n_calls + sum(others.values())
    assert set(plant.most) == {1}  # once for each point and iteration
    assert n_calls == result.nfev + result.ncev
    assert n_calls <= max_queries
    assert result.nit > 0


@pytest.mark.parametrize("policy", ["resample", "penalise"])
def test_a_scenario_that_fails_is_one_call_all_the_same(policy: Any) -> None:
    plant = Plant(n=40, width=10)

    def run(x: FloatArray, i: int) -> tuple[float, FloatArray]:
        loss, limits = plant.run(x, i)
        if i % 17 == 5:
            raise FloatingPointError("no convergence")
        return loss, limits

    failing: Any = Simulator(run, 40, 10)
    result = dszog.minimize(
        failing,
        np.zeros(DIM),
        method=DSZOG(),
        max_iterations=10,
        on_failure=policy,
        seed=0,
        callback=plant.callback,
    )
    assert plant.n_calls == result.nfev + result.ncev
    assert set(plant.most) == {1}
    assert not result.success  # two scenarios in forty never gave a value
    assert np.isnan(result.maxcv)


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


def test_a_case_that_fails_at_the_minimum_does_not_cost_the_whole_run() -> None:
    def run(x: FloatArray, case: int) -> list[float]:
        known = case != 3 or x[0] >= 1.2
        return [1.0 - x[0] if known else np.nan, 1.0 - x[1] - 0.001 * case]

    simulator = Simulator(run, n=6, width=2, objective=lambda x: float(x.sum()))
    result = dszog.minimize(simulator, [3.0, 3.0], on_failure="resample", seed=0)
    assert 2.0 < result.fun < 2.6  # 6 at the start, 2.2 where all values are known
    assert "Values are missing at the last iterate" in result.message
