from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

import dszog
from dszog import Constraints, Losses, Problem, ProblemSize, Query, Reply, Status
from dszog.contract import NO_INDICES, Calls, cost
from dszog.contract.arrays import FloatArray, IntArray
from dszog.evidence.certificate import Certificate, Feasibility
from dszog.evidence.look import (
    BLOCK,
    N_WORST,
    CheckPlan,
    FreshLook,
    mean_and_error,
    violated_share_bound,
)
from dszog.evidence.stationarity import Stationarity
from dszog.methods import State
from dszog.methods.base import FirstOrder
from dszog.run.checker import Checker, certificate_merit, plan_check, suspects_of
from dszog.run.final_check import FinalCheck
from dszog.run.loop import Outcome, Position
from dszog.run.meter import Limits, Meter
from dszog.run.verdict import Way, advice, is_success, on_first_order
from dszog.workers import Serial
from tests.runs import Record, size_of

NOBODY = np.empty(0, dtype=np.int64)
X = np.array([0.25, -1.0])


class Answers:
    """An evaluator with values that depend on the index alone; it keeps the queries."""

    def __init__(
        self,
        losses: Callable[[IntArray], Any] = np.zeros_like,
        constraints: Callable[[IntArray], Any] = np.zeros_like,
    ) -> None:
        self._losses = losses
        self._constraints = constraints
        self.queries: list[Query] = []

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        self.queries.extend(queries)
        return tuple(
            Reply(
                losses=np.array([self._losses(query.losses)], dtype=float),
                constraints=np.array([self._constraints(query.constraints)], float),
            )
            for query in queries
        )

    @property
    def losses(self) -> IntArray:
        return np.concatenate([query.losses for query in self.queries])

    @property
    def constraints(self) -> IntArray:
        return np.concatenate([query.constraints for query in self.queries])


def size(n: int = 1, m: int = 0, calls: Calls | None = None) -> ProblemSize:
    return size_of(2, n, m, calls=calls)


def plan(n: int = 1, m: int = 0, suspects: Sequence[int] = ()) -> CheckPlan:
    return CheckPlan(
        n_losses=n,
        n_calls=m,
        suspects=np.array(suspects, dtype=np.int64),
        n_queries=n + m + len(suspects),
    )


def numbers(feasibility: Feasibility) -> dict[str, Any]:
    """Return every field but the list of the worst and the calls."""
    return {
        item.name: getattr(feasibility, item.name)
        for item in fields(feasibility)
        if item.name in found_by("", 0, 0, *range(6))
    }


def found_by(kind: str, m: int, n_checked: int, *found: Any) -> dict[str, Any]:
    """Return the numbers of a check where all is known, of these values at last."""
    counts = {"n_constraints": m, "n_checked": n_checked, "n_unknown": 0}
    names = "n_suspects n_violated worst_value worst_index sum_squares share_bound"
    return {"kind": kind, **counts} | dict(zip(names.split(), found, strict=True))


def checked(
    values: Callable[[IntArray], Any], m: int, n: int, suspects: Sequence[int] = ()
) -> tuple[Feasibility, Answers]:
    """Return what a look at `n` of `m` constraints finds, and who answered."""
    answers = Answers(constraints=values)
    given = plan(m=n, suspects=suspects)
    return FreshLook(X, size(m=m), given, 0, answers).constraints(), answers


# ----------------------------------------------------------------------- the objective
def test_a_sampled_objective_is_a_mean_of_distinct_losses_with_standard_error() -> None:
    answers = Answers(losses=np.sqrt)
    values = FreshLook(X, size(n=1000), plan(n=40), 3, answers).losses()
    objective, error = mean_and_error(values, 1000)
    drawn = answers.losses
    assert len(set(drawn.tolist())) == 40
    assert 0 <= drawn.min() <= drawn.max() < 1000
    values = np.sqrt(drawn)
    assert objective == pytest.approx(values.mean())
    assert error == pytest.approx(stats.sem(values))


def test_a_sampled_objective_is_right_on_average_and_within_its_error() -> None:
    n, n_drawn, n_repeats = 1000, 100, 1000
    truth = float(np.sqrt(np.arange(n)).mean())
    found = np.array(
        [
            mean_and_error(
                FreshLook(
                    X, size(n=n), plan(n=n_drawn), seed, Answers(np.sqrt)
                ).losses(),
                n,
            )
            for seed in range(n_repeats)
        ]
    )
    errors = found[:, 0] - truth
    assert abs(errors.mean()) < 4.0 * errors.std() / math.sqrt(n_repeats)
    # Drawing a tenth without repeats is a little better than the stated error.
    assert errors.std() == pytest.approx(math.sqrt(0.9) * found[:, 1].mean(), rel=0.1)


def test_a_check_asks_at_the_point_alone_and_in_blocks() -> None:
    n, answers = 2 * BLOCK + 5, Answers()
    FreshLook(X, size(n=n), plan(n=n), 0, answers).losses()
    FreshLook(X, size(m=n), plan(m=n), 0, answers).constraints()
    asked = [len(query.losses) + len(query.constraints) for query in answers.queries]
    assert asked == 2 * [BLOCK, BLOCK, 5]
    for query in answers.queries:
        np.testing.assert_array_equal(query.x, X)
        assert len(query.steps) == 0
    assert cost(answers.queries, size(n=n, m=n)).total == 2 * n


# --------------------------------------------------------------------- the constraints
def test_no_constraints_cost_nothing_and_are_no_violation() -> None:
    answers = Answers()
    found = FreshLook(X, size(m=0), plan(m=0), 0, answers).constraints()
    assert (found.kind, found.n_checked, found.maxcv) == ("none", 0, 0.0)
    assert found.share_bound == 0.0
    assert found.is_exact
    assert not answers.queries
    assert str(found) == "there are no constraints but the bounds"


def test_a_sampled_check_counts_its_draw_and_bounds_the_share() -> None:
    found, answers = checked(lambda j: (j % 2) - 0.5, 10**12, 100)
    drawn = answers.constraints  # of which every second is violated
    assert len(set(drawn.tolist())) == 100
    assert 0 <= drawn.min() <= drawn.max() < 10**12
    n_odd = int((drawn % 2).sum())
    assert 0 < n_odd < 100
    expected = n_odd, 0.5, found.worst_index, 0.25 * n_odd
    bound = violated_share_bound(n_odd, 100)
    assert numbers(found) == found_by("sampled", 10**12, 100, 0, *expected, bound)
    assert found.worst_index in drawn[drawn % 2 == 1]
    assert not found.is_exact
    assert found.is_known


def test_a_suspect_that_was_drawn_anyway_or_is_named_twice_is_looked_at_once() -> None:
    drawn = checked(np.zeros_like, 1000, 50)[1].constraints
    outside = np.setdiff1d(np.arange(1000), drawn)[:3]
    suspects = [*drawn[:10].tolist(), *outside.tolist(), *outside.tolist()]
    found, answers = checked(lambda j: np.ones(len(j)), 1000, 50, suspects)
    np.testing.assert_array_equal(answers.constraints[:3], outside)
    np.testing.assert_array_equal(answers.constraints[3:], drawn)
    assert (found.n_checked, found.n_violated, found.n_suspects) == (50, 50, 3)


@pytest.mark.parametrize("n_suspects", [1, 40, BLOCK - 1, BLOCK, BLOCK + 1])
@pytest.mark.parametrize("n_drawn", [1, 200, BLOCK, 2 * BLOCK + 3])
def test_suspects_come_first_and_apart(n_suspects: int, n_drawn: int) -> None:
    suspects = np.arange(n_suspects) * 10**6
    found, answers = checked(
        lambda j: np.where(np.isin(j, suspects), 2.0, -1.0),
        10**12,
        n_drawn,
        suspects.tolist(),
    )
    first = answers.queries[0].constraints
    assert set(first.tolist()) <= set(suspects.tolist())
    assert (found.n_suspects, found.n_checked) == (n_suspects, n_drawn)
    assert (found.n_violated, found.worst_value) == (0, 2.0)
    assert found.sum_squares == 4.0 * n_suspects
    assert found.share_bound == violated_share_bound(0, n_drawn)
    assert max(len(query.constraints) for query in answers.queries) <= BLOCK


@given(
    n=st.sampled_from([1, 2, 5, 100, 10**6]),
    m=st.sampled_from([0, 1, 2, 300, 10**6]),
    allowance=st.integers(4, 5000),
)
def test_a_plan_fits_its_allowance_and_a_check_never_costs_more_than_its_plan(
    n: int, m: int, allowance: int
) -> None:
    problem = Problem(
        Losses(lambda points, i: np.zeros((len(points), len(i))), n),
        Constraints(lambda points, j: np.zeros((len(points), len(j))), m) if m else [],
        2,
        bounds=[(-9, 9)] * 2,
    )
    intended = plan_check(problem, allowance)
    answers = Answers()
    suspects = np.arange(len(intended.suspects))
    plan = replace(intended, suspects=suspects)
    look = FreshLook(X, problem.size, plan, 0, answers)
    look.losses()
    found = look.constraints()
    spent = cost(answers.queries, problem.size)
    assert spent.losses == intended.n_losses >= min(n, 2)
    assert spent.total <= intended.n_queries <= allowance
    # It is made use of: all is looked at, or most of the allowance is spent.
    assert intended.n_queries == min(allowance, n + m)
    assert found.is_exact == (intended.n_calls == m)


# -------------------------------------------- losses and constraints from the same call
def full(both: ProblemSize) -> CheckPlan:
    """Return a plan to look at everything."""
    return plan(n=both.n_losses, m=both.n_constraint_calls)


def shared_calls(n: int, width: int, n_more: int = 0) -> ProblemSize:
    """Return `n` calls for a loss and `width` limits, and `n_more` for one limit."""
    parts: list[tuple[Calls | None, int]] = [
        (Calls.of_width(width, n * width), n * width)
    ]
    parts += [(None, n_more)] if n_more else []
    calls = replace(Calls.concat(parts), n_shared=n)
    return size(n=n, m=n * width + n_more, calls=calls)


@pytest.mark.parametrize("n_more", [0, 1, 3000])
@pytest.mark.parametrize(
    ("n", "width"), [(1, 1), (1, 5000), (5, 700), (3000, 1), (40, BLOCK), (7, 1025)]
)
def test_a_check_of_both_makes_a_call_once(n: int, width: int, n_more: int) -> None:
    both = shared_calls(n, width, n_more)
    answers = Answers(np.sqrt, lambda j: np.sin(j))
    losses, found = FreshLook(X, both, full(both), 0, answers).together()
    np.testing.assert_array_equal(answers.losses, np.arange(n))
    np.testing.assert_array_equal(answers.constraints, np.arange(n * width + n_more))
    assert sum(cost([query], both).total for query in answers.queries) == n + n_more
    # The same as one look after the other, at other calls.
    m = both.n_constraints
    apart = Answers(np.sqrt, lambda j: np.sin(j))
    expected = FreshLook(X, size(n=n), plan(n=n), 0, apart).losses()
    assert mean_and_error(losses, n) == mean_and_error(expected, n)
    alone = FreshLook(X, size(m=m), plan(m=m), 0, apart).constraints()
    assert found.sum_squares == pytest.approx(alone.sum_squares, rel=1e-12)
    assert numbers(replace(found, sum_squares=0.0)) == numbers(
        replace(alone, sum_squares=0.0)
    )
    np.testing.assert_array_equal(found.worst_indices, alone.worst_indices)
    assert found.kind == "all"


def test_in_a_check_of_both_together_the_unknown_stays_unknown() -> None:
    both = shared_calls(6, 500)
    lost = Answers(
        losses=lambda i: np.where(i == 2, np.nan, 1.0),
        constraints=lambda j: np.where(j // 500 == 2, np.nan, -1.0),
    )
    losses, found = FreshLook(X, both, full(both), 0, lost).together()
    assert np.isnan(losses).tolist() == [i == 2 for i in range(6)]
    assert (found.n_unknown, found.n_violated, found.n_checked) == (500, 0, 3000)
    assert found.share_bound == pytest.approx(1 / 6)
    assert math.isnan(found.maxcv)
    assert not found.is_exact


# ------------------------------------------------------------------ the 95 % confidence
@given(st.integers(1, 5000).flatmap(lambda k: st.tuples(st.integers(0, k), st.just(k))))
@example((0, 10**6))
def test_the_share_bound_is_clopper_and_pearsons(counts: tuple[int, int]) -> None:
    n_violated, n_drawn = counts
    exact = stats.binomtest(n_violated, n_drawn, alternative="less").proportion_ci(
        confidence_level=0.95, method="exact"
    )
    assert violated_share_bound(n_violated, n_drawn) == pytest.approx(
        exact.high, rel=1e-6, abs=1e-12
    )
    assert violated_share_bound(0, 0) == 1.0


M = 10**6


@pytest.mark.parametrize("share", [0.0, 1e-4, 1e-3, 1e-2, 0.1])
def test_the_bound_covers_a_planted_share_in_95_of_100_checks(
    share: float, record_property: Record
) -> None:
    n_repeats, n_drawn = 2000, 400

    def planted(j: IntArray) -> FloatArray:
        scattered = j * 7919 % M  # one to one, as 7919 and M have no common factor
        return np.where(scattered < round(share * M), 1.0, -1.0)

    answers = Answers(constraints=planted)
    bounds = np.array(
        [
            FreshLook(X, size(m=M), plan(m=n_drawn), seed, answers)
            .constraints()
            .share_bound
            for seed in range(n_repeats)
        ]
    )
    coverage = (bounds >= share).mean()
    record_property("checks", n_repeats)
    record_property("least coverage", float(coverage))
    assert coverage >= 0.95 - 2.0 * math.sqrt(0.95 * 0.05 / n_repeats)
    # And it says something: not far above the share, as far as k draws can tell.
    assert np.median(bounds) < share + 3.0 * math.sqrt(share / n_drawn) + 4.0 / n_drawn


# ----------------------------------------------------- a point that is chosen by a draw
def hidden(x: FloatArray, j: IntArray, share: float) -> FloatArray:
    """Violate other constraints at every point: a share of them, scattered by `x`."""
    scattered = (j + round(1e6 * float(x[0]))) * 7919 % M
    return np.where(scattered < round(share * M), 1.0, -1.0)


@pytest.mark.parametrize("share", [0.0135, 0.0205, 0.0305])
@pytest.mark.parametrize("n_repeats", [300, pytest.param(2000, marks=pytest.mark.slow)])
def test_the_bound_holds_for_the_best_of_three_points_on_one_draw(
    share: float, n_repeats: int, record_property: Record
) -> None:
    # Each point has violations of its own, and that with the luckiest draw is chosen.
    # The shares are just above the bounds that a draw of 225, as it is, and one of 150,
    # as it was, give if none or one of it is violated. A bound that holds in just 95 of
    # 100 misses the limit below in 1 of 44 tests; the seeds say once for all which.
    problem = Problem(
        lambda x: 0.0,
        Constraints(lambda points, j: [hidden(x, j, share) for x in points], M),
        1,
    )
    n_held = 0
    for seed in range(n_repeats):
        last, average, start = np.random.default_rng(seed).uniform(0, 1, (3, 1))
        status, found = finally_checked(problem, seed, last, average, start)
        assert status == Status.MAX_QUERIES
        assert found.feasibility.kind == "sampled"
        assert found.feasibility.n_checked == 225
        n_held += found.feasibility.share_bound >= share
    if n_repeats == 2000:
        record_property("checks", n_repeats)
        record_property("least coverage", n_held / n_repeats)
    assert n_held / n_repeats >= 0.95 - 2.0 * math.sqrt(0.95 * 0.05 / n_repeats)


def finally_checked(
    problem: Problem, seed: int, *points: FloatArray, **seen: Any
) -> tuple[Status, Certificate]:
    """Return what the check of a run says: of its last point, average and start."""
    last, average, start = points
    meter = Meter(Serial(problem), problem.size, 6000)
    check = FinalCheck(problem, meter, Limits(queries=6000), seed, 1e-2)
    state = State(iteration=9, seed=seed, size=problem.size, x=last)
    position = Position.at(state, **seen)._replace(average=average)
    outcome = Outcome(position, Status.MAX_QUERIES)
    found = check.best(outcome, Weightless(), start, 0.0)
    assert meter.n_queries <= check.reserved(6000)
    return found


def test_without_a_fresh_look_each_of_three_points_has_a_third_of_the_error() -> None:
    problem = Problem(lambda x: 0.0, Constraints(rows, 10**9), 1)
    checker = Checker(problem, Meter(Serial(problem), problem.size), 0, 200, n_points=3)
    found = checker.check(np.zeros(1))
    assert found is not None
    assert (found.feasibility.n_checked, found.feasibility.n_violated) == (75, 0)
    bound = 1.0 - (0.05 / 3) ** (1 / 75)  # of which 75 draws hit none so often
    assert found.feasibility.share_bound == pytest.approx(bound, rel=1e-9)


def test_what_the_run_last_saw_violated_is_looked_at_before_it_says_success() -> None:
    guilty = 123_456_789
    problem = Problem(
        lambda x: 0.0,
        Constraints(lambda points, j: np.where([j == guilty], 0.5, -1.0), 10**12),
        1,
    )
    zero, one = np.zeros(1), np.ones(1)
    seen = {5: 0.1, guilty: 0.5}
    status, found = finally_checked(problem, 0, zero, one, one, seen=seen)
    assert found.feasibility.worst_index == guilty
    assert not is_success(status, found, 1e-2, Way())


class Weightless:
    """As much of a method as the check of its result needs."""

    def weights(self, state: State) -> tuple[IntArray, FloatArray]:
        return NO_INDICES, np.empty(0)


def test_a_fresh_look_bounds_by_its_own_draw_and_forgets_no_violation() -> None:
    values = np.sin(np.arange(1000.0))
    answers = Answers(constraints=lambda j: values[j])
    intended = replace(plan(m=50, suspects=[5, 7, 11]), n_fresh=200)
    first = FreshLook(X, size(m=1000), intended, 3, answers).constraints()
    seen = answers.constraints
    answers.queries.clear()
    found = FreshLook(X, size(m=1000), intended, 3, answers).confirmed(first)
    drawn = answers.constraints
    assert len(np.unique(drawn)) == len(drawn) == 200
    both = np.union1d(seen, drawn)
    assert len(both) < len(seen) + 200  # or the test would not see what is there twice
    n_violated = int((values[drawn] > 0).sum())
    expected = (
        len(both) - 200,
        n_violated,
        values[both].max(),
        both[values[both].argmax()],
    )
    squares = pytest.approx(np.square(np.maximum(values[both], 0)).sum())
    bound = violated_share_bound(n_violated, 200)
    assert numbers(found) == found_by("sampled", 1000, 200, *expected, squares, bound)
    worst = both[np.argsort(-values[both])][:N_WORST]
    np.testing.assert_array_equal(found.worst_indices, worst)
    np.testing.assert_array_equal(found.worst_values, values[worst])


@given(
    n=st.sampled_from([1, 5, 100, 10**6]),
    m=st.sampled_from([1, 300, 2500, 10**6]),
    width=st.sampled_from([0, 1, 7]),
    is_simulator=st.booleans(),
    max_queries=st.integers(50, 30_000),
)
def test_all_looks_of_a_final_check_together_keep_to_what_is_set_aside(
    n: int, m: int, width: int, is_simulator: bool, max_queries: int
) -> None:
    losses: Any = Losses(lambda points, i: np.zeros((len(points), len(i))), n)
    constraints: Any = Constraints(lambda P, j: np.full((len(P), len(j)), -1.0), m)
    if width:
        constraints = Constraints.blocks(lambda x, b: np.zeros(width), m, width)
    if width and is_simulator:
        losses = dszog.Simulator(lambda x, i: (0.0, np.zeros(width)), m, width)
        constraints = [constraints] if n == 5 else None
    problem = Problem(losses, constraints, 2)
    allowance = max(max_queries // 30, 3)
    meter = Meter(Answers(), problem.size)
    checker = Checker(problem, meter, 0, allowance, n_points=3)
    suspects = np.arange(0, problem.size.n_constraints, 1 + m // 50)
    certificates = [checker.check(X, suspects) for _ in range(3)]
    certificate = certificates[-1]
    assert certificate is not None
    checker.confirm(certificate, X, suspects)
    assert meter.n_queries <= 3 * checker.plan.n_queries <= 3 * allowance
    if certificate.feasibility.kind == "sampled" and allowance > 7:
        assert meter.n_queries >= 1.9 * allowance  # suspects may be drawn anyway


# --------------------------------------------------- calls that give many constraints
def test_a_sampled_check_uses_all_values_of_its_calls_and_bounds_their_share() -> None:
    calls, width = Calls.of_width(20, 20_000), 20
    blocks = size(m=20_000, calls=calls)
    # Every tenth call has one violated constraint, its last.
    answers = Answers(constraints=lambda j: np.where(j % 200 == 199, 0.5, -1.0))
    found = FreshLook(
        X, blocks, plan(m=300, suspects=[9, 19]), 0, answers
    ).constraints()
    counts = found.calls
    assert counts is not None
    spent = cost(answers.queries, blocks).total
    assert spent == counts.n_drawn + counts.n_suspects
    made = np.unique(calls.of(answers.constraints))
    np.testing.assert_array_equal(np.sort(answers.constraints), calls.served_by(made))
    assert counts.n_calls == 1000
    assert (counts.n_drawn, found.n_checked) == (300, 300 * width)
    assert 10 < counts.n_violated == found.n_violated < 60
    assert found.n_suspects == width * counts.n_suspects
    assert found.share_bound == violated_share_bound(counts.n_violated, 300)
    assert (found.worst_value, found.worst_index % 200) == (0.5, 199)


def test_a_call_with_a_value_that_is_not_known_counts_as_violated() -> None:
    blocks = size(m=5000, calls=Calls.of_width(5, 5000))
    answers = Answers(constraints=lambda j: np.where(j % 5 == 3, np.nan, -1.0))
    found = FreshLook(X, blocks, plan(m=50), 0, answers).constraints()
    assert found.calls is not None
    assert (found.calls.n_violated, found.n_unknown, found.n_violated) == (50, 50, 0)
    assert found.share_bound == 1.0


def test_a_sampled_check_of_a_simulator_makes_each_call_once_for_both() -> None:
    called: list[int] = []

    def run(x: FloatArray, i: int) -> tuple[float, FloatArray]:
        called.append(i)
        return float(i), np.array([-1.0, i - 900.0])

    problem = Problem(dszog.Simulator(run, n=1000, width=2), None, 2)
    meter = Meter(Serial(problem), problem.size)
    certificate = Checker(problem, meter, 0, 400).check(X, np.array([1999, 1]))
    assert certificate is not None
    assert len(called) == len(set(called)) == meter.n_queries
    counts = certificate.feasibility.calls
    assert counts is not None
    assert counts.n_drawn == certificate.n_losses_checked == 300
    assert counts.n_suspects <= 2
    assert {0, 999} <= set(called)
    assert certificate.feasibility.worst_value == 99.0
    assert abs(certificate.objective - 499.5) < 5 * certificate.objective_error


def test_suspects_are_taken_by_turns_from_the_heaviest_and_the_worst_seen() -> None:
    weights = np.array([4, 7, 9]), np.array([0.1, 0.6, 0.3])
    seen = np.array([5, 9, 1, 2]), np.array([0.2, 0.9, 0.4, 0.1])
    assert suspects_of(weights, seen).tolist() == [9, 7, 1, 5, 4, 2]
    nobody = NO_INDICES, np.empty(0)
    assert suspects_of(nobody, seen).tolist() == [9, 1, 5, 2]
    assert suspects_of(weights, nobody).tolist() == [7, 9, 4]
    assert suspects_of(nobody, nobody).tolist() == []


# --------------------------------------------------------------------- what a run shows
def rows(points: FloatArray, indices: IntArray) -> FloatArray:
    values: FloatArray = points[:, :1] - 1.0 - indices / 10**9
    return values


def losses(points: FloatArray, indices: IntArray) -> FloatArray:
    values: FloatArray = (points[:, :1] - 2.0 - indices % 2) ** 2
    return values


RUNS: dict[str, tuple[Constraints | None, int, str]] = {
    "structure": (Constraints.linear(np.ones((50, 1)), np.ones(50)), 50, "all 50 "),
    "all": (Constraints(rows, 50), 50, "all 50 "),
    "sampled": (Constraints(rows, 10**9), 10**9, "of 1,000,000,000 "),
    "none": (None, 0, "no constraints"),
}


@pytest.mark.parametrize(("kind", "run"), RUNS.items(), ids=RUNS)
def test_a_result_says_from_what_its_violation_is_known(
    kind: str, run: tuple[Constraints | None, int, str]
) -> None:
    constraints, m, words = run
    problem = Problem(Losses(losses, 10**6), constraints, 1, bounds=[(0, 5)])
    result = dszog.minimize(problem, max_queries=60_000, seed=0)
    evidence = result.certificate
    found = evidence.feasibility
    assert found.kind == kind
    assert found.n_constraints == m
    assert words in str(found)
    assert str(found) in result.message
    assert result.maxcv == found.maxcv == max(found.worst_value, 0.0)
    np.testing.assert_array_equal(result.x, evidence.x)
    assert result.fun == evidence.objective
    assert 1 < evidence.n_losses_checked < 10**6
    truth = float(np.mean((result.x[0] - 2.0 - np.arange(2)) ** 2))
    assert evidence.objective_error > 0
    assert abs(result.fun - truth) < 5 * evidence.objective_error
    if constraints is not None:
        index = np.array([found.worst_index])
        value = constraints.values(result.x[np.newaxis], index)
        assert found.worst_value == pytest.approx(float(value[0, 0]), rel=1e-12)


# -------------------------------------------------------------------------- the words

SAMPLED = Feasibility(
    kind="sampled", n_constraints=10**12, n_checked=5000, n_violated=3, n_suspects=12,
    n_unknown=0, worst_value=0.1234, worst_index=77, sum_squares=0.02,
    share_bound=0.0025,
)  # fmt: skip


def test_a_sampled_check_reads_as_what_it_is() -> None:
    assert str(SAMPLED) == (
        "5,000 of 1,000,000,000,000 constraints drawn and 12 others checked: 3 of "
        "the draw above 0, so at most 0.25 % of all with 95 % confidence; among those "
        "checked, the worst by 0.123"
    )
    assert str(replace(SAMPLED, n_unknown=1234)) == f"{SAMPLED}, 1,234 gave no value"
    assert "so at most 0 % of all" in str(replace(SAMPLED, share_bound=0.0))
    nothing = Feasibility(kind="unchecked", n_constraints=5000)
    assert str(nothing) == "the constraints were not checked"


@given(share=st.floats(1e-300, 1.0))
@example(share=0.00251)
@example(share=0.00999)
@example(share=0.996)
@example(share=0.1)
def test_the_bound_is_shown_with_two_digits_never_below(share: float) -> None:
    words = str(replace(SAMPLED, share_bound=share))
    shown = words.split("at most ")[1].split(" % of all")[0]
    percent = 100 * share
    assert percent * (1 - 1e-8) <= float(shown) <= 1.1 * percent * (1 + 1e-8)
    assert len(shown.split("e")[0].replace(".", "").strip("0")) <= 2


@pytest.mark.parametrize("kind", ["all", "structure"])
def test_an_exact_check_reads_as_what_it_is(kind: Any) -> None:
    exact = replace(SAMPLED, kind=kind, n_constraints=5000, n_suspects=0)
    assert str(exact) == "all 5,000 constraints checked: 3 above 0, the worst by 0.123"
    some = str(exact).replace("all 5,000", "4,993 of 5,000")
    assert str(replace(exact, n_unknown=7)) == f"{some}, 7 gave no value"
    none = "all 5,000 constraints asked for, 5,000 gave no value"
    assert str(replace(exact, n_unknown=5000)) == none


@pytest.mark.parametrize("worst", [-2.0, -0.0])
def test_satisfied_constraints_are_worst_violated_by_nothing(worst: float) -> None:
    exact = replace(SAMPLED, kind="all", n_violated=0, worst_value=worst)
    assert str(exact).endswith("checked: none above 0")
    assert str(exact.maxcv) == "0.0"


# ------------------------------------------------------------------ the unknown is bad
def evidence_of(**changes: Any) -> Certificate:
    feasible = replace(SAMPLED, n_violated=0, worst_value=-1.0, share_bound=6e-4)
    certificate = Certificate(
        x=X,
        objective=1.0,
        n_losses_checked=1,
        objective_error=0.0,
        feasibility=replace(feasible, **changes.pop("feasibility", {})),
    )
    return replace(certificate, **changes)


@pytest.mark.parametrize(
    ("worst", "said"),
    [
        ([1e-9, 0.0], "with 1 multiplier."),
        ([3e-3, 1e-9], "multiplier; all limits that are exceeded take part, and"),
        ([3e-3, 2e-3], "but a limit beside these is exceeded by 0.002: with a smal"),
    ],
)
def test_limits_that_take_part_are_not_said_to_be_left_out(
    worst: list[float], said: str
) -> None:
    known = FirstOrder(1e-3, np.array([7]), np.ones(1))
    exceeded = {
        "worst_value": worst[0],
        "worst_indices": np.array([7, 8]),
        "worst_values": np.array(worst),
    }
    found = evidence_of(first_order=known, feasibility=exceeded)
    (sentence,) = on_first_order(Status.CONVERGED, found)
    assert said in sentence


def test_feasible_is_a_success_only_if_it_is_shown_to_be_optimal() -> None:
    way, shown = Way(distance=1.0, gain=1.0), residuals(0.0, 1.0)
    assert is_success(ENDED, evidence_of(stationarity=shown), 1e-2, way)
    for free in ({"n_constraints": 0}, {}):
        found = evidence_of(stationarity=shown, feasibility=free)
        of_method = replace(way, converges=not free)
        assert not is_success(ENDED, found, 1e-2, of_method)
        assert is_success(Status.CONVERGED, found, 1e-2, of_method)
    for known in (None, residuals(1.0, 1.0)):
        assert not is_success(ENDED, evidence_of(stationarity=known), 1e-2, way)
    (sentence,) = advice(ENDED, evidence_of(), Way(), 1e-2)
    assert "feasible but not shown to be optimal: stationarity is not comp" in sentence
    slopes = FirstOrder(residual=0.6, indices=NO_INDICES, multipliers=np.empty(0))
    (sentence,) = advice(ENDED, evidence_of(first_order=slopes), Way(), 1e-2)
    assert "optimal: by the slopes it learned optimality conditions are off" in sentence


def residuals(left: float, gradient: float) -> Stationarity:
    nothing: dict[str, Any] = {
        item.name: 0.0 for item in fields(Stationarity) if item.type == "float"
    }
    return Stationarity(
        **nothing | {"best_lagrangian": left, "gradient_norm": gradient},
        multipliers=(NOBODY, np.empty(0)),
        n_examined=1,
        gradients="given gradients",
    )


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6], ids="variables x {:g}".format)
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6], ids="objective x {:g}".format)
@pytest.mark.parametrize(
    ("left", "gradient", "said"),
    [
        (2.0, 2.0, "far from stationary, and not shown to be optimal"),
        (0.2, 2.0, "not shown to be optimal: the constraints leave 10%"),
        (0.02, 2.0, ""),
        (0.02, 0.02, ""),  # the least value is inside: little is left of little
        (0.0, 0.0, ""),
    ],
)
def test_a_point_that_leaves_room_for_gain_is_not_shown_to_be_optimal(
    left: float, gradient: float, said: str, unit: float, size: float
) -> None:
    # A run that went a distance of one and gained one, told in other units.
    found = residuals(left * size / unit, gradient * size / unit)
    way = Way(distance=unit, gain=size)
    for status in (Status.MAX_QUERIES, Status.STALLED):
        told = advice(status, evidence_of(stationarity=found), way, 1e-2)
        assert len(told) == bool(said)
        assert said in " ".join(told)
        assert ("larger budget" in str(told)) == (bool(said) and status.name[0] == "M")


@pytest.mark.parametrize(
    ("status", "way", "said"),
    [
        ("MAX_QUERIES", Way(penalty=30.0), r"set the penalty .* about 3000\."),
        ("MAX_QUERIES", Way(penalty=2e5), r"set the penalty .* about 300000\."),
        ("MAX_QUERIES", Way(penalty=3e5), "only make steps shorter"),
        ("MAX_QUERIES", Way(penalty=3e3, responds=False), "to 3000 did not lower"),
        ("MAX_QUERIES", Way(), "give a larger budget.$"),
        ("CONVERGED", Way(), "a smaller tol, or allow more.$"),
        ("DIVERGED", Way(), "^Lower step_size by a factor of 4, use more"),
        ("DIVERGED", Way(has_own_step=True), "leave it out, so that it is lowered"),
        ("DIVERGED", Way(fell=True), "give bounds, or look at the signs"),
    ],
)
def test_what_is_advised_may_help_and_was_not_tried(
    status: str, way: Way, said: str
) -> None:
    violated = evidence_of(feasibility={"worst_value": 0.5})
    sentence = advice(Status[status], violated, way, 1e-2)[0]
    assert re.search(said, sentence)
    assert ("set the penalty" in sentence) == said.startswith("set the penalty")


ENDED = Status.MAX_ITERATIONS
NO_SUCCESS: list[tuple[Status, dict[str, Any], str]] = [
    (ENDED, {"objective": math.nan}, "not known"),
    (ENDED, {"objective": math.inf}, "not known"),
    (ENDED, {"objective": -math.inf}, "not known"),
    (ENDED, {"x": np.array([0.0, math.nan])}, ""),
    (ENDED, {"feasibility": {"worst_value": math.nan}}, ""),
    (ENDED, {"feasibility": {"worst_value": math.inf}}, "give a larger budget"),
    (ENDED, {"feasibility": {"worst_value": 1.01e-2}}, "give a larger budget"),
    (ENDED, {"feasibility": {"n_unknown": 1}}, "not known"),
    (ENDED, {"feasibility": {"kind": "all", "n_unknown": 1}}, "not known"),
    (ENDED, {"feasibility": {"kind": "unchecked"}}, "not known"),
    (Status.DIVERGED, {}, "Lower step_size"),
    (Status.INTERRUPTED, {}, ""),
    (Status.TOO_MANY_FAILURES, {}, r"See result\.failures"),
]


@pytest.mark.parametrize(("status", "changes", "what_to_do"), NO_SUCCESS)
def test_the_unknown_the_violated_and_the_broken_off_are_no_success(
    status: Status, changes: dict[str, Any], what_to_do: str
) -> None:
    certificate = evidence_of(**changes)
    shown = replace(certificate, stationarity=residuals(0.0, 1.0))  # to be optimal
    assert not is_success(status, shown, 1e-2, Way())
    sentences = " ".join(advice(status, certificate, Way(penalty=30.0), 1e-2))
    assert re.search(what_to_do, sentences)


@given(st.lists(st.sampled_from([-1.0, 0.0, 0.5, 2.0, math.nan]), min_size=1))
@example([math.nan] * 10)
def test_an_unknown_value_is_violated_and_no_success(known: list[float]) -> None:
    m, values = len(known), np.array(known)
    found, answers = checked(lambda j: values[j], m, m)
    np.testing.assert_array_equal(answers.constraints, np.arange(m))
    n_unknown, n_violated = np.isnan(values).sum(), (values > 0).sum()
    assert (found.n_unknown, found.n_violated) == (n_unknown, n_violated)
    assert found.n_checked == m
    assert found.share_bound == pytest.approx((n_unknown + n_violated) / m)
    violations = np.maximum(values[~np.isnan(values)], 0.0)
    assert found.sum_squares == pytest.approx(np.square(violations).sum())
    assert found.is_exact == found.is_known == (n_unknown == 0)
    assert math.isnan(found.maxcv) if n_unknown else found.maxcv == max(0.0, *known)
    # The unknown is no candidate for the worst, and there may be none.
    order = np.argsort(-values, kind="stable")[: m - n_unknown]
    np.testing.assert_array_equal(found.worst_indices, order[:N_WORST])
    worst = order[0] if len(order) else -1
    assert found.worst_index == worst
    assert worst < 0 or found.worst_value == values[worst]
    certificate = evidence_of(stationarity=residuals(0.0, 1.0))
    certificate = replace(certificate, feasibility=found)
    success = is_success(Status.MAX_ITERATIONS, certificate, 1.0, Way())
    assert success == (n_unknown == 0 and max(known) <= 1.0)


def test_unknown_draws_raise_the_bound_and_unknown_suspects_do_not() -> None:
    guilty = 123_456_789
    found, answers = checked(
        lambda j: np.where((j == guilty) | (j % 3 == 0), np.nan, -1.0),
        10**12,
        100,
        [5, guilty],
    )
    n_lost = int((answers.constraints[2:] % 3 == 0).sum())
    assert 0 < n_lost < 100
    assert (found.n_unknown, found.n_violated) == (n_lost + 1, 0)
    assert found.share_bound == violated_share_bound(n_lost, 100)
    assert math.isnan(found.maxcv)
    assert not found.is_known


def test_a_point_that_was_not_looked_at_has_a_certificate_that_says_so() -> None:
    problem = Problem(Losses(losses, 4), Constraints(rows, 50), 1, x_scale=4.0)
    meter = Meter(Serial(problem), problem.size)
    blank = Checker(problem, meter, 0, 100).blank(np.array([0.5]))
    assert meter.n_queries == 0
    assert blank.x.tolist() == [2.0]
    assert math.isnan(blank.objective)
    assert blank.n_losses_checked == 0
    nothing = blank.feasibility
    assert nothing.kind == "unchecked"
    assert (nothing.n_constraints, nothing.n_checked) == (50, 0)
    assert nothing.share_bound == 1.0
    assert math.isnan(nothing.maxcv)
    assert (nothing.is_exact, nothing.is_known) == (False, False)
    assert not is_success(Status.MAX_ITERATIONS, blank, math.inf, Way())


@pytest.mark.parametrize(
    "changes", [{"objective": math.nan}, {"feasibility": {"n_unknown": 1}}], ids=str
)
def test_a_point_with_unknowns_is_never_the_best(changes: dict[str, Any]) -> None:
    assert certificate_merit(evidence_of(), 2.0) == 1.0
    violated = evidence_of(feasibility={"worst_value": 3.0})
    assert certificate_merit(violated, 2.0) == 1.0 + 2.0 * 9.0
    assert certificate_merit(evidence_of(**changes), 2.0) == math.inf


@pytest.mark.parametrize("later", [0.5, np.nan])
def test_what_a_second_look_finds_counts_whatever_the_first_said(later: float) -> None:
    calls: dict[tuple[bytes, int], int] = {}

    def value(x: FloatArray, j: int) -> float:
        key = (x.tobytes(), j)
        calls[key] = calls.get(key, 0) + 1
        return later if calls[key] > 1 else -1.0

    with pytest.warns(dszog.PurityWarning) if later == 0.5 else nullcontext():
        result = dszog.minimize(
            lambda x: float(x @ x), [1.0, 2.0],
            Constraints.from_function(value, 20_000), seed=0, max_queries=20_000,
            on_failure="resample",
        )  # fmt: skip
    found = result.certificate.feasibility
    assert found.n_unknown if np.isnan(later) else found.maxcv == 0.5
    assert not result.success
