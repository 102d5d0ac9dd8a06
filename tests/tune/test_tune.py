"""Trials that choose a step size and a penalty, inside the budget of the call."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import NonlinearConstraint

import dszog
from dszog import (
    Constraints,
    EvaluationError,
    InputError,
    Losses,
    Problem,
    Progress,
    Status,
    Tuning,
)
from dszog.contract.arrays import FloatArray, IntArray
from dszog.tuning import Trial
from tests.runs import by_dszog


class Box:
    """A problem of `size` in its variables, whose functions count their calls."""

    def __init__(self, size: float = 1.0, m: int = 12, n: int = 1) -> None:
        self.size, self.m, self.n = size, m, n
        self.n_losses = self.n_constraints = 0
        self.interrupt_at = 10**9

    @property
    def n_calls(self) -> int:
        return self.n_losses + self.n_constraints

    def _count(self) -> None:
        if self.n_calls >= self.interrupt_at:
            self.interrupt_at = 10**9
            signal.raise_signal(signal.SIGINT)

    def losses(self, points: FloatArray, i: IntArray) -> FloatArray:
        self.n_losses += len(points) * len(i)
        self._count()
        values = np.square(points / self.size - 2.0).sum(axis=1)
        return np.asarray(values[:, np.newaxis] + 0.1 * np.sin(i))

    def values(self, points: FloatArray, j: IntArray) -> FloatArray:
        self.n_constraints += len(points) * len(j)
        self._count()
        angles = 2.0 * np.pi * j / self.m
        normals = np.array([np.cos(angles), np.sin(angles)])
        return np.asarray(points / self.size @ normals - 1.0)

    @property
    def problem(self) -> Problem:
        losses = Losses(self.losses, self.n)
        return Problem(losses, Constraints(self.values, self.m), 2)

    def minimize(self, **more: Any) -> Any:
        return by_dszog(self.problem, **{"seed": 0, "tune": True} | more)


ENOUGH = 12_000


def bits(result: Any) -> tuple[Any, ...]:
    return (
        result.x.tobytes(),
        result.digest,
        result.nit,
        result.nfev,
        result.ncev,
        result.tuning.chosen,
        tuple(tuple(t.settings.items()) for t in result.tuning.trials),
        tuple((t.n_queries, t.merit) for t in result.tuning.trials),
    )


# ------------------------------------------------------------------- what it achieves


@pytest.mark.parametrize("size", [100.0, 0.01])
def test_variables_of_another_size_are_tuned_to(size: float) -> None:
    tuned = Box(size).minimize(max_queries=15_000)
    # The best point of the polygon is near the disc's, at (1, 1) / sqrt(2).
    best = 2.0 * (2.0 - math.sqrt(0.5)) ** 2

    assert tuned.fun + 30 * tuned.maxcv**2 < best + 0.1
    if size > 1.0:  # a step that is too large is shortened without tuning, too
        plain = Box(size).minimize(max_queries=15_000, tune=False)
        assert plain.fun + 30 * plain.maxcv**2 > best + 1.0
    steps = tuned.tuning.best.settings["step_size"] / dszog.DSZOG().step_size
    assert steps > 1.0 if size > 1 else steps < 1.0


def test_the_final_run_goes_on_from_the_best_trial() -> None:
    result = Box(100.0).minimize(max_queries=20_000)
    best, penalty = result.tuning.best, result.method.penalty
    assert result.fun + penalty * result.maxcv**2 <= best.fun + penalty * best.maxcv**2
    assert result.nit > result.tuning.nit


# ------------------------------------------------------------- every query is counted


def check_counts(box: Box, result: Any) -> None:
    assert (result.nfev, result.ncev) == (box.n_losses, box.n_constraints)
    tuning = result.tuning
    assert tuning.n_queries == sum(trial.n_queries for trial in tuning.trials)
    assert result.costs.n_loss_queries == result.nfev
    assert result.costs.n_constraint_queries == result.ncev


@given(
    max_queries=st.integers(10, 20_000),
    max_iterations=st.none() | st.integers(1, 200),
    share=st.floats(0.05, 1.0),
    n_settings=st.none() | st.integers(2, 14),
    m=st.integers(1, 3000),
    n=st.integers(1, 40),
    fixed=st.sampled_from([{}, {"penalty": 10.0}, {"step_size": 0.1}]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=30)
def test_no_budget_is_exceeded_and_refusals_come_before_any_call(
    max_queries: int,
    max_iterations: int | None,
    share: float,
    n_settings: int | None,
    m: int,
    n: int,
    fixed: dict[str, float],
    seed: int,
) -> None:
    box, refused = Box(1.0, m, n), ""
    result = None
    try:
        result = box.minimize(
            max_queries=max_queries,
            max_iterations=max_iterations,
            tune=Tuning(share=share, n_settings=n_settings),
            options=fixed,
            seed=seed,
        )
    except InputError as error:
        refused = str(error)
    if result is None:
        assert "the smallest tuning, two trials" in refused
        assert box.n_calls == 0
        return
    assert box.n_calls <= max_queries
    assert max_iterations is None or result.nit <= max_iterations
    check_counts(box, result)
    trials = result.tuning.trials
    assert result.tuning.n_queries <= share * max_queries
    assert set(trials[0].settings) == {"step_size", "penalty"} - set(fixed)
    untuned = dszog.DSZOG()
    assert all(trials[0].settings[k] == getattr(untuned, k) for k in trials[0].settings)
    assert len({tuple(t.settings.items()) for t in trials}) <= (n_settings or 16)


def test_calls_that_learn_a_length_are_counted_once() -> None:
    calls: list[int] = []

    def limits(x: FloatArray) -> FloatArray:
        calls.append(1)
        return np.array([x[0] + x[1], x[0] - x[1]])

    losses: list[int] = []

    def loss(x: FloatArray) -> float:
        losses.append(1)
        return float(np.sum((x - 2.0) ** 2))

    result = dszog.minimize(
        loss,
        [0.0, 0.0],
        NonlinearConstraint(limits, -np.inf, 1.0),
        max_queries=3000,
        tune=True,
        seed=0,
    )
    assert (result.nfev, result.ncev) == (len(losses), len(calls))
    assert len(losses) + len(calls) <= 3000


def test_iterations_of_trials_are_inside_the_budget() -> None:
    box = Box()
    result = box.minimize(max_iterations=150)
    assert result.status == Status.MAX_ITERATIONS
    assert result.nit == 150
    assert 10 <= result.tuning.nit <= 0.3 * 150
    check_counts(box, result)


def test_time_can_be_the_budget() -> None:
    box = Box()
    result = box.minimize(max_time=0.6)
    assert result.status == Status.MAX_TIME
    assert len(result.tuning.trials) >= 2
    check_counts(box, result)


# ---------------------------------------------------------------------- the same again


def test_the_same_seed_gives_the_same_trials_and_result() -> None:
    one, other = (Box(10.0).minimize(max_queries=ENOUGH) for _ in range(2))
    assert bits(one) == bits(other)
    assert bits(Box(10.0).minimize(max_queries=ENOUGH, seed=1)) != bits(one)


@pytest.mark.parametrize("evaluator", ["threads", "processes"])
def test_every_evaluator_gives_the_same_bits(evaluator: str) -> None:
    if evaluator == "processes":
        pytest.importorskip("cloudpickle")
    serial = Box(10.0).minimize(max_queries=ENOUGH)
    assert bits(Box(10.0).minimize(max_queries=ENOUGH, evaluator=evaluator)) == bits(
        serial
    )


# ------------------------------------------------------------------- what is compared


def test_merits_are_made_of_fresh_values_and_the_untuned_penalty() -> None:
    seen: list[Any] = []
    result = Box(10.0).minimize(max_queries=ENOUGH, callback=seen.append)
    report = result.tuning
    assert report.penalty == 30.0
    for trial in report.trials:
        assert trial.merit == trial.fun + 30.0 * trial.maxcv**2
    text = str(report)
    assert text.count("\n") == len(report.trials)
    assert sum("chosen" in line for line in text.splitlines()) == 1


def test_the_untuned_setting_is_in_every_rung() -> None:
    report = Box(100.0).minimize(max_queries=20_000).tuning
    rungs = {trial.rung for trial in report.trials}
    assert len(rungs) > 1
    for rung in rungs:
        tried = [trial.settings for trial in report.trials if trial.rung == rung]
        assert {"step_size": 0.02, "penalty": 30.0} in tried
        if rung:
            before = [t.n_queries for t in report.trials if t.rung == rung - 1]
            now = [t.n_queries for t in report.trials if t.rung == rung]
            assert len(now) < len(before)
            assert min(now) > 2 * max(before)


def test_what_is_given_stays() -> None:
    result = Box().minimize(max_queries=ENOUGH, options={"step_size": 0.3})
    assert {tuple(trial.settings) for trial in result.tuning.trials} == {("penalty",)}
    assert result.method.step_size == 0.3


def test_methods_with_a_feasible_set_are_tuned_too() -> None:
    problem = Problem(
        Losses(lambda points, i: np.square(points - 2.0).sum(1)[:, None] + 0 * i, 8),
        Constraints.linear(np.eye(2), [1.0, 1.0]),
        2,
    )
    result = dszog.minimize(
        problem, method="zopsgd", max_queries=20_000, seed=0, tune=True
    )
    assert result.success
    assert set(result.tuning.best.settings) == {"step_size"}
    np.testing.assert_allclose(result.x, 1.0, atol=0.05)


# -------------------------------------------------------------- stopped in the middle


@pytest.mark.parametrize("at", [1, 2, 40, 1500, 3500, 9000, 11_500])
def test_ctrl_c_returns_the_best_so_far_with_every_query_counted(at: int) -> None:
    box = Box()
    box.interrupt_at = at
    result = box.minimize(max_queries=ENOUGH)
    assert box.interrupt_at == 10**9  # it was pressed
    assert result.status == Status.INTERRUPTED
    assert not result.success
    assert np.isfinite(result.x).all()
    assert "interrupted" in result.message
    assert result.tuning.trials
    # The batch in which it was pressed is charged whole, whatever was evaluated of it.
    assert 0 <= result.nfev - box.n_losses <= 10
    assert 0 <= result.ncev - box.n_constraints <= 100


def test_ctrl_c_can_be_raised_instead() -> None:
    def press(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Box().minimize(max_queries=ENOUGH, callback=press, on_interrupt="raise")


def test_ctrl_c_while_a_trial_is_written_down_loses_none_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n_made = 0

    def pressed(**about: Any) -> Trial:
        nonlocal n_made
        n_made += 1
        if n_made == 3:
            raise KeyboardInterrupt
        return Trial(**about)

    monkeypatch.setattr("dszog.tuning.tuner.Trial", pressed)
    result = Box().minimize(max_queries=ENOUGH)
    assert result.status == Status.INTERRUPTED
    assert len(result.tuning.trials) == 2


def test_a_callback_sees_the_counts_of_the_whole_call_and_can_end_it() -> None:
    seen: list[Progress] = []
    result = Box().minimize(max_queries=ENOUGH, callback=seen.append)
    for one in seen:
        assert one.n_queries == one.n_loss_queries + one.n_constraint_queries
    names = ("iteration", "n_loss_queries", "n_constraint_queries", "evaluation_time")
    for name in names:
        counts = [getattr(one, name) for one in seen]
        assert counts == sorted(counts)
    assert seen[-1].n_constraint_queries > result.tuning.ncev
    assert seen[-1].iteration == result.nit
    assert result.history["iteration"][-1] <= result.nit
    assert result.history["n_queries"][0] > result.tuning.n_queries

    def enough(progress: Progress) -> None:
        if progress.n_queries > 2000:
            raise StopIteration

    box = Box()
    result = box.minimize(max_queries=ENOUGH, callback=enough, constraint_tol=1.0)
    assert result.status == Status.STOPPED_BY_CALLBACK
    assert result.success
    check_counts(box, result)


# ---------------------------------------------------------------------- what may fail


def failing(at: float) -> Callable[[FloatArray], float]:
    def loss(x: FloatArray) -> float:
        if np.abs(x).max() > at:
            raise ArithmeticError("out of range")
        return float(np.sum((x - 0.5) ** 2))

    return loss


def test_a_setting_whose_trial_fails_is_out_of_the_race() -> None:
    angles = np.linspace(0, 2 * np.pi, 12)
    result = dszog.minimize(
        failing(3.0),
        [0.0, 0.0],
        Constraints(
            lambda points, j: points @ [np.cos(angles[j]), np.sin(angles[j])] - 1.0, 12
        ),
        max_queries=ENOUGH,
        tune=True,
        seed=0,
    )
    notes = [trial.note for trial in result.tuning.trials]
    assert "failed" in notes
    failed = [trial for trial in result.tuning.trials if trial.note]
    assert all(t.merit == math.inf and t.status is None for t in failed)
    assert result.tuning.best.note == ""
    assert result.success


def test_if_all_trials_fail_the_error_of_the_function_is_raised() -> None:
    with pytest.raises(EvaluationError, match="out of range"):
        dszog.minimize(
            failing(-1.0),
            [0.0, 0.0],
            Constraints.linear([[1.0, 0.0]], [1.0]),
            max_queries=ENOUGH,
            tune=True,
            seed=0,
        )


def test_an_error_in_the_last_run_carries_what_all_runs_cost() -> None:
    calls: list[int] = []

    def loss(x: FloatArray) -> float:
        calls.append(1)
        if len(calls) > 800:
            raise ArithmeticError("worn out")
        return float(np.sum((x - 0.5) ** 2))

    with pytest.raises(EvaluationError, match="worn out") as caught:
        dszog.minimize(
            loss,
            [0.0, 0.0],
            Constraints.linear([[1.0, 0.0]], [1.0]).black_box(),
            max_queries=2000,
            tune=True,
            seed=0,
        )
    assert caught.value.result.nfev > caught.value.result.tuning.nfev > 100


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({}, "`tune` uses a share of the budget, got none. Give max_queries"),
    ({"max_queries": 50}, "needs about max_queries=[0-9]+, got max_queries=50. Give a"),
    ({"max_iterations": 5}, "needs about max_iterations=[0-9]+, got max_iterations=5"),
    (
        {"max_queries": ENOUGH, "method": dszog.DSZOG()},
        "nothing to tune in DSZOG, got step_size and penalty set",
    ),
    (
        {"max_queries": ENOUGH, "options": {"step_size": 0.1, "penalty": 3.0}},
        "nothing to tune in DSZOG, got step_size and penalty set",
    ),
]


@pytest.mark.parametrize(("more", "said"), REFUSED, ids=[str(m) for m, _ in REFUSED])
def test_what_cannot_be_tuned_is_refused_before_any_call(
    more: dict[str, Any], said: str
) -> None:
    box = Box()
    with pytest.raises(InputError, match=said):
        box.minimize(**more)
    assert box.n_calls == 0


def test_the_budget_that_a_refusal_names_is_enough() -> None:
    import re

    for limit in ("max_queries", "max_iterations"):
        box = Box()
        with pytest.raises(InputError) as caught:
            box.minimize(**{limit: 5})
        found = re.search(rf"needs about {limit}=(\d+)", str(caught.value))
        assert found
        assert box.minimize(**{limit: int(found[1]) + 1}).tuning.trials


def test_a_checkpoint_beside_it_is_refused_with_the_way_round(tmp_path: Any) -> None:
    box = Box()
    with pytest.raises(InputError, match=r"cannot be saved.*dszog\.tune"):
        box.minimize(max_queries=ENOUGH, checkpoint=tmp_path / "run")
    assert box.n_calls == 0
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("wrong", [{"share": 0.0}, {"share": 1.5}, {"n_settings": 1}])
def test_a_tuning_that_cannot_work_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Tuning(**wrong)


def test_tune_spends_all_on_trials_and_minimize_goes_on_from_there() -> None:
    box = Box(100.0)
    found = dszog.tune(box.problem, max_queries=ENOUGH, seed=0)
    assert isinstance(found.best, Trial)
    assert found.n_queries == box.n_calls <= ENOUGH
    result = dszog.minimize(
        box.problem,
        found.x,
        options=found.options,
        weights=found.weights,
        max_queries=ENOUGH,
        seed=0,
    )
    merit = result.fun + found.options["penalty"] * result.maxcv**2
    best = found.best
    assert merit <= best.fun + found.options["penalty"] * best.maxcv**2 + 1e-12


def test_tune_takes_no_checkpoint() -> None:
    with pytest.raises(dszog.InputTypeError, match="there is no argument 'checkpoint'"):
        dszog.tune(Box().problem, max_queries=ENOUGH, checkpoint="run")
    with pytest.raises(dszog.InputTypeError, match="there is no argument 'max_querys'"):
        dszog.tune(Box().problem, max_querys=ENOUGH)


# ------------------------------------------------------------------ a sensible penalty


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_penalties_do_not_grow_from_trial_to_trial_without_end(size: float) -> None:
    contradicting = Constraints(lambda points, j: (1 - 2 * j) * points[:, :1] + 1.0, 2)
    result = dszog.minimize(
        lambda x: size * float(x @ x),
        np.ones(1),
        contradicting,
        max_queries=20_000,
        seed=0,
        tune=True,
    )

    assert not result.success
    # Order one: what an untuned run may reach. Else the objective's size over a tenth
    # of the tolerance, and it is not larger here than 10 times its size at the start.
    assert result.method.penalty <= max(3e5, 10 * size / 1e-3)
    assert "set the penalty" not in result.message
    assert "contradict each other" in result.message
