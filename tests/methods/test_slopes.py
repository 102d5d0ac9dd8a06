"""DSZOG that remembers slopes: in any units, with multipliers instead of penalties."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dszog import DSZOG, Constraints, Losses, Problem, Status, load_result, minimize
from dszog.contract import Query
from dszog.contract.arrays import FloatArray
from dszog.errors import OtherRunError
from dszog.methods import slope_models
from dszog.methods.auto import suited
from dszog.methods.slopes import SlopesDSZOG
from dszog.save import checkpoints
from tests.contracts.helpers import Kind, after, evaluate, make_problem, told
from tests.runs import size_of

by_dszog = partial(minimize, method="dszog")
DIM, M = 1000, 3000
RNG = np.random.default_rng(0)
TARGET, WHICH = RNG.normal(size=DIM), RNG.integers(0, DIM, (M, 10))


def problem_of(fun: Any, rows: FloatArray, limit: float, x0: float = 0.0) -> Problem:
    """Return an objective with rows that stay below a limit."""
    limits = Constraints(lambda x, j: x @ rows[j].T - limit, len(rows))
    return Problem(fun, limits, x0=np.full(rows.shape[1], x0))


def solve(x: float = 1.0, fun: float = 1.0, limit: float = 1.0, **more: Any) -> Any:
    """Minimise a distance within 3,000 limits, all in units of some size."""
    rows = Constraints(lambda p, j: limit * (p[:, WHICH[j]].mean(axis=2) / x - 0.2), M)
    more, x0 = {"max_iterations": 20, "seed": 3} | more, np.full(DIM, 0.5 * x)
    return by_dszog(lambda w: fun * np.square(w / x - TARGET).mean(), x0, rows, **more)


UNITS = [(2.0**10, 1.0, 1.0), (1.0, 2.0**-13, 1.0), (2.0**-10, 2.0**13, 2.0**10)]


@pytest.mark.parametrize("units", UNITS)
def test_units_change_nothing(units: tuple[float, float, float]) -> None:
    way: list[Any] = []
    solve(callback=lambda progress: way.append(progress.x))
    solve(*units, callback=lambda progress: way.append(progress.x / units[0]))
    plain, other = np.array(way).reshape(2, -1, DIM)
    np.testing.assert_allclose(other, plain, rtol=1e-4, atol=1e-6)
    assert np.abs(plain[-1] - plain[0]).max() > 0.01


def test_a_start_that_breaks_every_constraint_is_left() -> None:
    result = solve(max_iterations=None, max_queries=300_000)
    assert result.fun < 0.95  # 1.25 at the start
    assert result.maxcv <= 1e-2  # 0.3 at the start
    assert not result.success  # nobody has looked at slopes
    assert "No success: feasible, but not shown to be optimal" in str(result)


def test_what_the_caller_sets_is_left_alone() -> None:
    assert type(solve(options={"step_size": 0.1}).method) is DSZOG
    assert type(solve(options={"loss_batch": 1}).method) is SlopesDSZOG
    assert "Slopes of constraints that bind are remembered" in solve().message


@pytest.mark.parametrize(
    ("dim", "fixed", "form", "said"),
    [
        (1, "loss_batch", SlopesDSZOG, "Slopes of constraints"),
        (2**20, "loss_batch", SlopesDSZOG, "Slopes of constraints"),
        (2**20 + 1, "loss_batch", DSZOG, "1,048,577 variables: random signs"),
        (9_999, "penalty", DSZOG, ""),
        (10_000, "penalty", DSZOG, "10,000 variables: random signs"),
        (10_000, "directions", DSZOG, ""),
    ],
)
def test_the_form_follows_from_the_variables_and_what_is_set(
    dim: int, fixed: str, form: type[DSZOG], said: str
) -> None:
    method, size = DSZOG(loss_batch=5, penalty=7.0), size_of(dim, 10, 10)
    chosen, words = suited(method, frozenset({fixed}), size, 1.0, 100, None)
    assert type(chosen) is form
    assert said in words
    assert bool(words) is bool(said)
    assert getattr(chosen, fixed) == getattr(method, fixed)


def test_the_slopes_of_very_many_variables_do_not_fill_the_memory(
    tmp_path: Path,
) -> None:
    dim = 10**6
    rows = Constraints(lambda p, j: p[:, j] - 0.5, 5000)
    problem = Problem(lambda x: np.square(x).mean(), rows, x0=np.ones(dim))
    tracemalloc.start()
    result = by_dszog(problem, max_iterations=5, seed=0, checkpoint=tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert type(result.method) is SlopesDSZOG
    assert peak < 70 * 8 * dim
    largest = max(file.stat().st_size for file in tmp_path.rglob("*.dszog"))
    assert largest < 25 * 8 * dim


@pytest.mark.parametrize("seed", [4, 5])
def test_where_more_are_violated_than_can_be_kept_a_run_stays_where_few_are(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    rows, target = rng.normal(size=(2000, 300)) / np.sqrt(300), rng.normal(size=300)
    monkeypatch.setattr(slope_models, "HELD", 6 * 300)  # six slopes
    problem = problem_of(lambda x: np.square(x - target).mean(), rows, 1.0)
    result = minimize(problem, method=SlopesDSZOG(), max_queries=30_000, seed=1)
    assert result.fun < 0.9 * np.square(target).mean()  # else the start is best
    assert (rows @ result.x - 1.0).max() < 1e-2


def test_a_step_into_more_violations_than_can_be_kept_is_taken_back() -> None:
    first: Any = SlopesDSZOG().init(np.zeros(1000), size_of(1000, m=10**6), 0)
    state = replace(first, x=np.ones(1000), level=0.05)
    over = np.repeat([1.0, 0.0], [100, 900])  # a mean of 0.1, known to 0.01
    after, level, is_crowded = slope_models.looked(state, over)
    assert (level, is_crowded) == (0.1, True)
    assert after.trust <= 0.5 * np.sqrt(1000.0)
    assert not slope_models.looked(replace(state, level=0.09), over)[2]


def test_at_the_end_the_way_back_to_the_start_is_as_long_as_constraints_ask() -> None:
    dim, falls, method = 5, np.array([1.0, 2.0, 0.0, -1.0, 0.5]), SlopesDSZOG()
    wall = Constraints(lambda x, j: np.tile(x[:, :1] - 1.0, (1, len(j))), 10**6)
    problem = Problem(lambda x: x @ falls, wall, dim)
    weights = np.array([2]), np.ones(1)
    state: Any = method.init(problem.x0, problem.size, 0, weights)
    out = np.full(dim, 4.0)  # a quarter of the way keeps the constraint
    state = replace(state, x=out, before=out, ending=1.0)
    state, _ = told(method, problem, state)
    assert state.retreat == pytest.approx(0.75, rel=1e-3)
    np.testing.assert_allclose(state.fallback, 4.0 * (1 - 1.1 * 0.75), rtol=1e-2)


def test_the_slope_of_a_linear_objective_becomes_known() -> None:
    rng = np.random.default_rng(1)
    rows, falls = rng.normal(size=(7, 12)), rng.normal(size=12)
    problem = problem_of(lambda x: x @ falls, rows, -0.1)
    method = SlopesDSZOG(n_directions=4).planned(problem.size, 60, None)
    velocity = after(method, problem, 30).velocity
    np.testing.assert_allclose(velocity, falls, atol=1e-2)


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_slopes_of_few_variables_become_known(dim: int) -> None:
    # The minimum without the limits, at 1, breaks them all: each becomes known.
    rows = np.abs(np.random.default_rng(dim).normal(size=(4, dim))) + 0.5
    problem = problem_of(lambda x: np.square(x - 1.0).sum(), rows, 0.0, x0=0.5)
    last = after(SlopesDSZOG().planned(problem.size, 30, None), problem, 12)
    assert len(last.rows)
    np.testing.assert_allclose(last.slopes, rows[last.rows], rtol=1e-3)


def test_with_few_queries_few_losses_are_drawn_unless_their_number_is_given() -> None:
    size = size_of(20, 1000, 1000)
    drawn = [
        SlopesDSZOG().planned(size, None, queries).batches(size)[0]
        for queries in (1000, 10_000, 10**6)
    ]
    assert drawn == [3, 22, 64]
    given = SlopesDSZOG(loss_batch=30).planned(size, None, 1000)
    assert given.batches(size)[0] == 30


def test_a_look_goes_through_all_constraints_before_any_comes_again() -> None:
    size = size_of(3, 5, 1000)
    method = SlopesDSZOG(dual_batch=100)
    state: Any = method.init(np.zeros(3), size, 7)
    seen: list[int] = []
    for _ in range(10):
        seen += method._look(state, np.random.default_rng(0), 0).tolist()
        state = replace(state, n_looked=len(seen))
    assert sorted(seen) == list(range(1000))


def test_a_value_that_was_guessed_corrects_no_slope() -> None:
    rng = np.random.default_rng(0)
    rows, target = rng.normal(size=(20_000, 20)) / np.sqrt(20), rng.normal(size=20)
    problem = problem_of(lambda x: np.square(x - target).mean(), rows, 1.0)
    last = after(SlopesDSZOG().planned(problem.size, None, 200_000), problem, 120)
    lengths = np.linalg.norm(last.slopes, axis=1)  # of linear functions
    assert lengths.max() < 1.2 * np.linalg.norm(rows, axis=1).max()


@pytest.mark.parametrize("seed", [0, 1])
def test_noise_in_all_values_does_not_hold_a_run_up(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, target = rng.normal(size=(2000, 30)) / np.sqrt(30), rng.normal(size=30)

    def noisy(values: Any) -> Any:
        return values * (1.0 + 1e-4 * np.sin(1e12 * values))

    result = by_dszog(
        lambda x: float(noisy(np.square(x - target).mean())),
        np.zeros(30),
        Constraints(lambda x, j: noisy(x @ rows[j].T - 1.0), 2000),
        method=SlopesDSZOG(),
        max_queries=60_000,
        seed=seed,
    )
    plain = np.square(target).mean()
    assert np.square(result.x - target).mean() < 0.7 * plain
    assert (rows @ result.x - 1.0).max() < 1e-2


def test_sampled_losses_lead_down() -> None:
    rng = np.random.default_rng(5)
    centres = TARGET + rng.normal(size=(300, DIM))
    rows = Constraints(lambda p, j: p[:, WHICH[j]].mean(axis=2) - 0.2, M)
    losses = Losses(lambda x, i: np.square(x[:, None] - centres[i]).mean(axis=2), 300)
    result = by_dszog(losses, np.full(DIM, 0.0), rows, max_queries=200_000, seed=1)
    best, first = np.square(centres.std(axis=0)).mean(), np.square(centres).mean()
    assert result.fun < best + 0.8 * (first - best)
    assert result.maxcv <= 1e-2


@pytest.mark.parametrize("factor", [0.2, 1.0, 6.0])
def test_the_first_step_matters_little(factor: float) -> None:
    problem, _ = make_problem(Kind(n=1, m=40, dim=6))
    method = SlopesDSZOG(step_size=factor).planned(problem.size, 60, None)
    end = after(method, problem, 60).before
    every = {"losses": np.arange(1), "constraints": np.arange(40)}
    (reply,) = evaluate(problem, [Query.at(end, iteration=0, **every)])
    assert reply.constraints.max() < 1e-6
    assert reply.losses[0, 0] == pytest.approx(0.37636833, abs=1e-6)  # the SQP's


def test_a_run_that_was_cut_short_goes_on_to_the_same_end(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError):
        solve(checkpoint=tmp_path, callback=lambda p: 1 / (12 - p.iteration))
    assert solve(checkpoint=tmp_path, resume=True).digest == solve().digest


def test_a_folder_of_a_form_that_is_gone_is_refused_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    solve(checkpoint=tmp_path, max_iterations=2)
    monkeypatch.setattr(checkpoints, "GONE", ("'SlopesDSZOG'",))
    with pytest.raises(OtherRunError, match="that this version no longer has"):
        solve(checkpoint=tmp_path, max_iterations=2, resume=True)


def test_ten_iterations_come_near_in_few_variables() -> None:
    rng = np.random.default_rng(2)
    rows, target = rng.normal(size=(1000, 2)), 2.0 * rng.normal(size=2)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    problem = problem_of(lambda x: np.square(x - target).sum(), rows, 1.0)
    result = by_dszog(problem, max_iterations=10, seed=0)
    best = minimize(problem, seed=0)
    assert result.fun < best.fun + 0.01 * (np.square(target).sum() - best.fun)
    assert (rows @ result.x).max() < 1.0 + 1e-2


def test_however_short_steps_are_points_around_an_iterate_differ_from_it() -> None:
    # Slopes that came of points alike gave a penalty of 0: the start was returned.
    problem = problem_of(lambda x: np.square(x).sum(), np.eye(5)[:3], 1.0, x0=0.1)
    method = SlopesDSZOG()
    state: Any = method.init(problem.x0, problem.size, 0)
    query = method.ask(replace(state, trust=1e-17, reach=1e-17))[0]
    assert (query.points(problem.size)[1:] != problem.x0).any(axis=1).all()


def test_an_objective_that_falls_without_end_ends_the_run() -> None:
    limits = Constraints(lambda x, j: -x[:, j] - 2.0, 2)
    result = by_dszog(lambda x: float(-x.sum()), np.zeros(2), limits, seed=0)
    assert result.status == Status.DIVERGED
    assert "look at the signs" in result.message


def test_a_result_that_was_saved_has_its_method(tmp_path: Path) -> None:
    result = solve(max_iterations=2)
    result.save(tmp_path / "it")
    assert load_result(tmp_path / "it").method == result.method
