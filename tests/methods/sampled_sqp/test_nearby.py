"""What a run over cases went through: points near its end, and the best of all."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dszog
from dszog import Problem, SampledSQP
from dszog.contract.arrays import FloatArray
from dszog.methods.sampled_sqp import ending, nearby
from dszog.methods.sampled_sqp.looks import Look
from dszog.methods.sampled_sqp.models import WorkingSet
from dszog.methods.sampled_sqp.state import SampledSQPState
from dszog.save.encoding import decode, encode
from dszog.workers.serial import Serial

CASES = 12
METHOD = SampledSQP(constraint_tol=1e-2)


def ridge(x: FloatArray, case: int) -> tuple[float, list[float]]:
    """Limits with a kink at x[0] = 0.5, whose slope beyond says nothing before it."""
    return float(x.sum()), [0.1 * max(x[0] - 0.5, 0.0) + x[1] - 0.3, -1.0 - case]


def contradiction(x: FloatArray, case: int) -> tuple[float, list[float]]:
    return float(x.sum()), [0.4 - x[1], x[1] - 0.2]


def diverging(x: FloatArray, case: int) -> tuple[float, list[float]]:
    if case == 3:
        raise ArithmeticError("did not converge")
    return ridge(x, case)


def problem_of(run: Any) -> Problem:
    simulator = dszog.Simulator(run, n=CASES, width=2)
    return Problem(simulator, None, 2, bounds=[(0, 1)] * 2, x0=[0.5, 0.3])


def state_at(problem: Problem, x: FloatArray, slopes: FloatArray) -> SampledSQPState:
    """Return the end of a run whose models of the first case have these slopes."""
    size = problem.size
    values = np.array([0.05])
    members = WorkingSet.empty(2).joined(np.array([0]), values, slopes, x)
    members = replace(members, bent=np.array([1]))  # they may be wrong
    state = replace(METHOD.init(x, size, 0), x=x, members=members, n_loss_queries=10**5)
    seen = state.seen.with_values(np.arange(CASES), np.full(CASES, 0.05), x)
    return replace(state, seen=seen, violation=0.05)


def looked(run: Any, slopes: FloatArray) -> SampledSQPState:
    problem, x = problem_of(run), np.array([0.5, 0.3001])
    state = nearby.looking(METHOD, state_at(problem, x, slopes))
    (query,) = METHOD.ask(state)
    (reply,) = Serial(problem)((query,))
    return nearby.after_looking(state, reply)


@pytest.mark.parametrize("run", [ridge, diverging])
def test_a_run_goes_on_at_a_point_near_by_where_less_is_violated(run: Any) -> None:
    found = looked(run, slopes=np.array([[1.0, 0.0]]))  # wrong: x[1] matters

    assert found.phase == "again"
    assert found.x[1] <= 0.3
    assert np.abs(found.x - [0.5, 0.3001]).max() <= 0.1 + 1e-12


def test_where_limits_contradict_each_other_no_point_near_by_is_better() -> None:
    found = looked(contradiction, slopes=np.array([[0.0, 1.0]]))

    assert found.phase == "done"
    assert found.is_least == 1


def test_a_run_without_such_a_look_does_not_claim_the_least_violation() -> None:
    state = state_at(problem_of(ridge), np.array([0.5, 0.4]), np.array([[0.0, 1.0]]))
    state = replace(state, phase="done", n_trials=1)

    status, said = ending.how(METHOD, state)
    assert status is dszog.Status.STALLED
    assert ending.UNSEEN in said
    assert ending.how(METHOD, replace(state, is_least=1))[0] is (
        dszog.Status.LEAST_VIOLATION
    )


def grown(state: SampledSQPState, x: Any, losses: list[float]) -> SampledSQPState:
    """Return the state after a step to a point with these losses."""
    indices = np.arange(len(losses))
    table = (
        type(state.table)
        .empty(2)
        .grown(indices, np.array(losses), np.zeros((len(losses), 2)))
    )
    state = replace(state, x=np.array(x), table=table, violation=0.0)
    look = Look(at=state.x, constraints=np.arange(2 * CASES))
    return ending.with_best(METHOD, state, look)


def test_the_best_point_is_found_by_losses_that_were_known_at_both() -> None:
    problem = problem_of(ridge)
    start = METHOD.init(np.array([0.5, 0.2]), problem.size, 0)

    first = grown(start, [0.5, 0.2], [1.0, 2.0])
    more = grown(first, [0.4, 0.2], [1.5, 2.0, -9.0])  # worse, by the same losses
    np.testing.assert_array_equal(more.fallback, [0.5, 0.2])
    better = grown(more, [0.3, 0.2], [0.5, 2.0, 90.0])
    np.testing.assert_array_equal(better.fallback, [0.3, 0.2])


def test_a_point_that_was_seen_not_to_hold_is_not_the_best() -> None:
    problem = problem_of(ridge)
    start = METHOD.init(np.array([0.5, 0.2]), problem.size, 0)
    first = grown(start, [0.5, 0.2], [1.0])
    look = Look(at=first.x, constraints=np.arange(2 * CASES))

    violated = ending.with_best(METHOD, replace(first, violation=0.1), look)
    assert not violated.has_best
    elsewhere = replace(first, x=np.array([0.9, 0.2]), violation=0.1)
    look = replace(look, at=elsewhere.x)
    kept = ending.with_best(METHOD, elsewhere, look)
    np.testing.assert_array_equal(kept.fallback, [0.5, 0.2])


def test_a_run_returns_a_point_that_holds_if_it_went_through_one() -> None:
    widths = np.random.default_rng(0).uniform(1, 2, 40)

    def steep(x: FloatArray, i: int) -> tuple[float, list[float]]:
        grows = min(40 * (x[0] - 0.5 * widths[i] * x[1]), 60.0)
        return float(x[0] + x[1]), [float(np.exp(grows)) - 1.0, 0.2 - x[0]]

    result = dszog.minimize(
        dszog.Simulator(steep, n=40, width=2),
        [0.9, 0.1],
        bounds=[(0, 1)] * 2,
        seed=2,
        max_queries=20_000,
    )
    assert result.maxcv <= 1e-2  # it ended at a point that does not hold


def test_a_run_can_be_saved_where_it_looks_near_by() -> None:
    problem, x = problem_of(ridge), np.array([0.5, 0.3001])
    state = nearby.looking(METHOD, state_at(problem, x, np.array([[1.0, 0.0]])))
    state = grown(state, x, [1.0, 2.0])

    arrays: list[Any] = []
    loaded: Any = decode(encode(state, arrays), arrays, problem.size)
    assert (loaded.phase, loaded.n_near) == ("near", 1)
    for before, after in zip(METHOD.ask(state), METHOD.ask(loaded), strict=True):
        np.testing.assert_array_equal(
            before.points(problem.size), after.points(problem.size)
        )
    np.testing.assert_array_equal(loaded.best_values, [1.0, 2.0])
