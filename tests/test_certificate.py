from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import dszog
from dszog import Constraints, Losses, Problem, ProblemSize, Query, Reply, Status
from dszog._arrays import FloatArray, IntArray
from dszog.certificate import (
    BLOCK,
    CheckPlan,
    Evidence,
    Feasibility,
    check_constraints,
    check_objective,
    known_feasibility,
    violated_share_bound,
)
from dszog.constraints import Summary
from dszog.solver import is_success

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


def size(n: int = 1, m: int = 0) -> ProblemSize:
    return ProblemSize(
        dim=2,
        n_losses=n,
        n_constraints=m,
        lower=np.full(2, -np.inf),
        upper=np.full(2, np.inf),
    )


def plan(n: int = 1, m: int = 0, suspects: Sequence[int] = ()) -> CheckPlan:
    return CheckPlan(
        n_losses=n, n_constraints=m, suspects=np.array(suspects, dtype=np.int64)
    )


# ----------------------------------------------------------------------- the objective


def test_the_objective_from_all_losses_is_their_mean_without_error() -> None:
    answers = Answers(losses=np.square)
    objective, error = check_objective(X, size(n=5), plan(n=5), 0, answers)
    assert (objective, error) == (6.0, 0.0)
    np.testing.assert_array_equal(answers.losses, np.arange(5))


def test_a_sampled_objective_is_a_mean_of_distinct_losses_with_standard_error() -> None:
    answers = Answers(losses=np.sqrt)
    objective, error = check_objective(X, size(n=1000), plan(n=40), 3, answers)
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
            check_objective(X, size(n=n), plan(n=n_drawn), seed, Answers(np.sqrt))
            for seed in range(n_repeats)
        ]
    )
    errors = found[:, 0] - truth
    assert abs(errors.mean()) < 4.0 * errors.std() / math.sqrt(n_repeats)
    # Drawing a tenth without repeats is a little better than the stated error.
    assert errors.std() == pytest.approx(math.sqrt(0.9) * found[:, 1].mean(), rel=0.1)


def test_the_same_seed_checks_the_same_losses_and_constraints() -> None:
    def looked_at(seed: int) -> tuple[list[int], list[int]]:
        losses, constraints = Answers(), Answers()
        check_objective(X, size(n=10**6), plan(n=20), seed, losses)
        check_constraints(X, size(m=10**6), plan(m=20), seed, constraints)
        return losses.losses.tolist(), constraints.constraints.tolist()

    assert looked_at(5) == looked_at(5)
    first, second = looked_at(5), looked_at(6)
    assert first[0] != second[0]
    assert first[1] != second[1]


def test_a_check_asks_at_the_point_alone_and_in_blocks() -> None:
    n = 2 * BLOCK + 5
    answers = Answers()
    check_objective(X, size(n=n), plan(n=n), 0, answers)
    assert [len(query.losses) for query in answers.queries] == [BLOCK, BLOCK, 5]
    check_constraints(X, size(m=n), plan(m=n), 0, answers)
    assert [len(query.constraints) for query in answers.queries[3:]] == [
        BLOCK,
        BLOCK,
        5,
    ]
    for query in answers.queries:
        np.testing.assert_array_equal(query.x, X)
        assert len(query.steps) == 0
    assert sum(query.n_queries for query in answers.queries) == 2 * n


# --------------------------------------------------------------------- the constraints


def test_no_constraints_cost_nothing_and_are_no_violation() -> None:
    answers = Answers()
    found = check_constraints(X, size(m=0), plan(m=0), 0, answers)
    assert (found.kind, found.n_checked, found.maxcv) == ("none", 0, 0.0)
    assert found.share_bound == 0.0
    assert found.is_exact
    assert not answers.queries


def test_a_check_of_all_constraints_is_exact() -> None:
    answers = Answers(constraints=lambda j: 3.0 - np.abs(j - 6.0))
    found = check_constraints(X, size(m=10), plan(m=10), 0, answers)
    assert found == Feasibility(
        kind="all",
        n_constraints=10,
        n_checked=10,
        n_violated=5,
        n_suspects=0,
        worst_value=3.0,
        worst_index=6,
        sum_squares=1.0 + 4.0 + 9.0 + 4.0 + 1.0,
        share_bound=0.5,
    )
    assert found.is_exact
    np.testing.assert_array_equal(answers.constraints, np.arange(10))


def test_worst_value_is_negative_and_maxcv_zero_where_all_hold() -> None:
    answers = Answers(constraints=lambda j: -1.0 - j)
    found = check_constraints(X, size(m=10), plan(m=10), 0, answers)
    assert (found.worst_value, found.worst_index, found.maxcv) == (-1.0, 0, 0.0)
    assert (found.n_violated, found.share_bound, found.sum_squares) == (0, 0.0, 0.0)


def test_a_constraint_at_zero_is_not_violated() -> None:
    found = check_constraints(X, size(m=10), plan(m=10), 0, Answers())
    assert (found.worst_value, found.n_violated) == (0.0, 0)


def test_a_sampled_check_counts_its_draw_and_bounds_the_share() -> None:
    answers = Answers(constraints=lambda j: (j % 2) - 0.5)  # every second is violated
    found = check_constraints(X, size(m=10**12), plan(m=100), 0, answers)
    drawn = answers.constraints
    assert len(set(drawn.tolist())) == 100
    assert 0 <= drawn.min() <= drawn.max() < 10**12
    n_odd = int((drawn % 2).sum())
    assert 0 < n_odd < 100
    assert found == Feasibility(
        kind="sampled",
        n_constraints=10**12,
        n_checked=100,
        n_violated=n_odd,
        n_suspects=0,
        worst_value=0.5,
        worst_index=found.worst_index,
        sum_squares=0.25 * n_odd,
        share_bound=violated_share_bound(n_odd, 100),
    )
    assert found.worst_index in drawn[drawn % 2 == 1]
    assert not found.is_exact


def test_suspects_show_in_the_worst_value_and_never_in_the_share() -> None:
    guilty = 123_456_789
    answers = Answers(constraints=lambda j: np.where(j == guilty, 7.0, -1.0))
    found = check_constraints(
        X, size(m=10**12), plan(m=50, suspects=[5, guilty]), 0, answers
    )
    assert (found.worst_value, found.worst_index, found.maxcv) == (7.0, guilty, 7.0)
    assert (found.n_checked, found.n_suspects, found.n_violated) == (50, 2, 0)
    assert found.share_bound == violated_share_bound(0, 50)
    assert found.sum_squares == 49.0
    assert len(answers.constraints) == 52


def test_a_suspect_that_was_drawn_anyway_or_is_named_twice_is_looked_at_once() -> None:
    first = Answers()
    check_constraints(X, size(m=1000), plan(m=50), 0, first)
    drawn = first.constraints
    outside = np.setdiff1d(np.arange(1000), drawn)[:3]
    suspects = [*drawn[:10].tolist(), *outside.tolist(), *outside.tolist()]

    answers = Answers(constraints=lambda j: np.ones(len(j)))
    found = check_constraints(
        X, size(m=1000), plan(m=50, suspects=suspects), 0, answers
    )
    np.testing.assert_array_equal(answers.constraints[:50], drawn)
    np.testing.assert_array_equal(np.sort(answers.constraints[50:]), outside)
    assert (found.n_checked, found.n_violated, found.n_suspects) == (50, 50, 3)


def test_a_check_never_costs_more_than_its_plan_says() -> None:
    answers = Answers()
    intended = plan(n=30, m=50, suspects=range(0, 1000, 10))
    check_objective(X, size(n=100, m=1000), intended, 0, answers)
    check_constraints(X, size(n=100, m=1000), intended, 0, answers)
    assert intended.n_queries == 30 + 50 + 100
    assert 80 < sum(query.n_queries for query in answers.queries) <= intended.n_queries


def test_structure_is_evidence_from_all_constraints() -> None:
    summary = Summary(
        n_constraints=8, n_violated=2, worst_value=0.5, worst_index=3, sum_squares=0.3
    )
    assert known_feasibility(summary) == Feasibility(
        kind="structure",
        n_constraints=8,
        n_checked=8,
        n_violated=2,
        n_suspects=0,
        worst_value=0.5,
        worst_index=3,
        sum_squares=0.3,
        share_bound=0.25,
    )


# ------------------------------------------------------------------ the 95 % confidence


@given(st.integers(1, 5000).flatmap(lambda k: st.tuples(st.integers(0, k), st.just(k))))
def test_the_share_bound_is_that_of_clopper_and_pearson(
    counts: tuple[int, int],
) -> None:
    n_violated, n_drawn = counts
    exact = stats.binomtest(n_violated, n_drawn, alternative="less").proportion_ci(
        confidence_level=0.95, method="exact"
    )
    assert violated_share_bound(n_violated, n_drawn) == pytest.approx(
        exact.high, rel=1e-6, abs=1e-12
    )


@pytest.mark.parametrize("n_drawn", [20, 1000, 10**6])
def test_none_of_k_violated_bounds_the_share_by_about_three_over_k(
    n_drawn: int,
) -> None:
    assert violated_share_bound(0, n_drawn) == pytest.approx(3 / n_drawn, rel=0.075)
    assert violated_share_bound(0, n_drawn) < 3 / n_drawn


def test_all_violated_bounds_the_share_by_one() -> None:
    assert violated_share_bound(7, 7) == 1.0
    assert violated_share_bound(0, 0) == 1.0


M = 10**6


@pytest.mark.parametrize("share", [0.0, 1e-4, 1e-3, 1e-2, 0.1])
def test_the_bound_covers_a_planted_share_in_95_of_100_checks(share: float) -> None:
    n_repeats, n_drawn = 2000, 400

    def planted(j: IntArray) -> FloatArray:
        scattered = j * 7919 % M  # one to one, as 7919 and M have no common factor
        return np.where(scattered < round(share * M), 1.0, -1.0)

    answers = Answers(constraints=planted)
    bounds = np.array(
        [
            check_constraints(X, size(m=M), plan(m=n_drawn), seed, answers).share_bound
            for seed in range(n_repeats)
        ]
    )
    coverage = (bounds >= share).mean()
    assert coverage >= 0.95 - 2.0 * math.sqrt(0.95 * 0.05 / n_repeats)
    # And it says something: not far above the share, as far as k draws can tell.
    assert np.median(bounds) < share + 3.0 * math.sqrt(share / n_drawn) + 4.0 / n_drawn


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


def test_the_objective_of_few_losses_is_exact() -> None:
    problem = Problem(Losses(losses, 4), Constraints(rows, 50), 1)
    result = dszog.minimize(problem, max_queries=20_000, seed=0)
    assert result.certificate.n_losses_checked == 4
    assert result.certificate.objective_error == 0.0
    expected = np.mean([(result.x[0] - 2.0 - i % 2) ** 2 for i in range(4)])
    assert result.fun == pytest.approx(expected, rel=1e-12)


# -------------------------------------------------------------------------- the words

SAMPLED = Feasibility(
    kind="sampled",
    n_constraints=10**12,
    n_checked=5000,
    n_violated=3,
    n_suspects=12,
    worst_value=0.1234,
    worst_index=77,
    sum_squares=0.02,
    share_bound=0.0025,
)


def test_a_sampled_check_reads_as_what_it_is() -> None:
    assert str(SAMPLED) == (
        "5,000 of 1,000,000,000,000 constraints drawn and 12 suspects checked: 3 of "
        "the draw violated, so at most 0.0025 of all with 95 % confidence; the worst "
        "seen by 0.123"
    )


@pytest.mark.parametrize("kind", ["all", "structure"])
def test_an_exact_check_reads_as_what_it_is(kind: Any) -> None:
    exact = replace(SAMPLED, kind=kind, n_constraints=5000, n_suspects=0)
    assert str(exact) == "all 5,000 constraints checked: 3 violated, the worst by 0.123"


def test_satisfied_constraints_are_worst_violated_by_nothing() -> None:
    exact = replace(SAMPLED, kind="all", n_violated=0, worst_value=-2.0)
    assert str(exact).endswith("0 violated, the worst by 0")


def test_a_problem_without_constraints_reads_as_such() -> None:
    none = check_constraints(X, size(m=0), plan(m=0), 0, Answers())
    assert str(none) == "there are no constraints but the bounds"


# ------------------------------------------------------------------ the unknown is bad


def evidence_of(**changes: Any) -> Evidence:
    feasible = replace(SAMPLED, n_violated=0, worst_value=-1.0, share_bound=6e-4)
    evidence = Evidence(
        x=X,
        objective=1.0,
        n_losses_checked=1,
        objective_error=0.0,
        feasibility=replace(feasible, **changes.pop("feasibility", {})),
    )
    return replace(evidence, **changes)


def test_known_and_satisfied_is_a_success() -> None:
    assert is_success(Status.MAX_ITERATIONS, evidence_of(), 1e-2)
    assert is_success(
        Status.MAX_QUERIES, evidence_of(feasibility={"worst_value": 1e-2}), 1e-2
    )


@pytest.mark.parametrize(
    ("status", "changes"),
    [
        (Status.MAX_ITERATIONS, {"objective": math.nan}),
        (Status.MAX_ITERATIONS, {"objective": math.inf}),
        (Status.MAX_ITERATIONS, {"x": np.array([0.0, math.nan])}),
        (Status.MAX_ITERATIONS, {"feasibility": {"worst_value": math.nan}}),
        (Status.MAX_ITERATIONS, {"feasibility": {"worst_value": math.inf}}),
        (Status.MAX_ITERATIONS, {"feasibility": {"worst_value": 1.01e-2}}),
        (Status.DIVERGED, {}),
        (Status.INTERRUPTED, {}),
    ],
)
def test_the_unknown_the_violated_and_the_broken_off_are_no_success(
    status: Status, changes: dict[str, Any]
) -> None:
    assert not is_success(status, evidence_of(**changes), 1e-2)


def test_an_unknown_worst_value_is_an_unknown_violation() -> None:
    answers = Answers(constraints=lambda j: np.where(j == 4, np.nan, -1.0))
    found = check_constraints(X, size(m=10), plan(m=10), 0, answers)
    assert math.isnan(found.maxcv)
    assert found.worst_index == 4
