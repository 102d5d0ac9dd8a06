"""What a run does with a method between rounds, without a run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dszog.methods import DSZOG, METHODS, ZOPSGD
from dszog.methods.dszog import HIGHEST_PENALTY, MAX_RAISE, ROUNDS
from dszog.methods.policy import (
    GUARDED,
    LEAST_STEP,
    MAX_RESTARTS,
    ONE_ROUND,
    SLOWS_DOWN,
    RoundReport,
    policy_of,
)

REPORT = RoundReport(
    constraint_tol=1e-2,
    weighted_violation=4e-3,
    objectives=np.linspace(0.0, 1.0, 20),
    n_restarts=0,
    fell=False,
)


def test_the_penalty_is_raised_to_what_the_violation_asks_for() -> None:
    method, said = DSZOG().policy(frozenset()).after_round(DSZOG(), REPORT)
    assert method.penalty == pytest.approx(4 * 30.0)  # from 4e-3 to 0.1 of 1e-2
    assert method.step_size == pytest.approx(0.02 / 2)  # by the root
    assert said == "The penalty was raised from 30 to 120."


@pytest.mark.parametrize(
    ("changes", "penalty", "raised"),
    [
        ({"weighted_violation": 1e-3}, 30.0, 30.0),
        ({"weighted_violation": 1.0}, 30.0, MAX_RAISE * 30.0),
        ({"constraint_tol": 0.0}, 30.0, MAX_RAISE * 30.0),
        ({"weighted_violation": 1.0}, HIGHEST_PENALTY / 2, HIGHEST_PENALTY),
        ({"weighted_violation": 1.0}, 2 * HIGHEST_PENALTY, 2 * HIGHEST_PENALTY),
        ({"objectives": np.empty(0)}, 30.0, 120.0),
    ],
)
def test_it_is_raised_only_if_need_be_and_not_without_end(
    changes: dict[str, object], penalty: float, raised: float
) -> None:
    report = replace(REPORT, **changes)  # type: ignore[arg-type]
    before = DSZOG(penalty=penalty)
    method, said = before.policy(frozenset()).after_round(before, report)
    assert method.penalty == pytest.approx(raised)
    assert bool(said) == (raised != penalty)


def test_what_the_caller_set_is_never_changed() -> None:
    policy = DSZOG().policy(frozenset({"step_size"}))
    method, _ = policy.after_round(DSZOG(), REPORT)
    assert (policy.shares, method.step_size) == (ROUNDS, 0.02)
    assert policy.after_runaway(DSZOG(), REPORT) is None
    assert DSZOG().policy(frozenset({"penalty"})).shares == (1.0,)
    assert ZOPSGD().policy(frozenset({"step_size"})) is ONE_ROUND


@pytest.mark.parametrize(
    ("n_restarts", "fell", "step_size", "goes_on"),
    [
        (0, False, 0.02, True),
        (MAX_RESTARTS - 1, True, 0.02, True),
        (MAX_RESTARTS, True, 0.02, False),
        (10 * MAX_RESTARTS, False, 0.02, True),
        (MAX_RESTARTS, False, LEAST_STEP / 2, False),
    ],
)
def test_a_run_that_ran_away_starts_again_with_a_quarter_of_the_step(
    n_restarts: int, fell: bool, step_size: float, goes_on: bool
) -> None:
    method = DSZOG(step_size=step_size)
    report = replace(REPORT, n_restarts=n_restarts, fell=fell)
    again = method.policy(frozenset()).after_runaway(method, report)
    assert (again is not None) == goes_on
    if again is not None:
        assert again[0] == replace(method, step_size=step_size / 4)
        assert again[1].startswith("The iterates ran away")


def test_every_method_has_a_policy_and_one_of_the_callers_own_needs_none() -> None:
    for name, kind in METHODS.items():
        policy = policy_of(kind())
        assert policy.shares[-1] == 1.0
        assert (policy is GUARDED) == (name == "sampled_sqp")
    assert policy_of(object()) is ONE_ROUND
    assert policy_of(ZOPSGD()) is SLOWS_DOWN
