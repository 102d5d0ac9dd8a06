"""What functions may do wrong, in workers of every kind: never taken for a number.

The product of what goes wrong, where, the policies and the registry of evaluators.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import pytest

from dszog import EVALUATORS, Constraints, EvaluationError, Problem
from dszog.contract.arrays import FloatArray
from dszog.run.failures import POLICIES
from tests.run.test_failures import BAD, FUNCTIONS, KIND_OF
from tests.workers.helpers import limit, need, objective, solve, workers

SOME = ("nan", "-inf", "None", "str", "wrong shape", "exception", "SystemExit")
SLOW = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]


@dataclass(frozen=True)
class Wrong:
    """Functions of which one goes wrong away from the start."""

    bad: str
    function: str

    def objective(self, x: FloatArray) -> Any:
        if self.function == "objective" and x[0] > 1e-6:
            return BAD[self.bad]()
        return objective(x)

    def limit(self, x: FloatArray, j: int) -> Any:
        if self.function == "constraint" and x[0] > 1e-6 and j % 3 == 1:
            return BAD[self.bad]()
        return limit(x, j)

    def problem(self) -> Problem:
        return Problem(self.objective, Constraints.from_function(self.limit, 30), 3)


def outcome(bad: str, function: str, policy: Any, evaluator: Any) -> tuple[Any, ...]:
    problem = Wrong(bad, function).problem()
    try:
        result = solve(problem, evaluator, on_failure=policy)
    except EvaluationError as error:
        return (str(error),)
    report = result.failures
    assert not result.success or result.maxcv <= 1e-2
    messages = [failure.message for failure in report.first]
    return result.x.tobytes(), report.n_failed, report.kinds, messages


CELLS = list(itertools.product(SOME, FUNCTIONS, POLICIES))
FEW = [("exception", "constraint", "resample"), ("nan", "objective", "resample")]
QUICK = {"threads": CELLS, "processes": FEW}
MATRIX = [
    pytest.param(name, *cell, marks=[] if cell in QUICK.get(name, ()) else SLOW)
    for name, cell in itertools.product(EVALUATORS, CELLS)
    if name != "serial"
]


def test_the_matrix_is_the_product_of_its_registries() -> None:
    assert len(CELLS) == 7 * 2 * len(POLICIES)
    assert len(MATRIX) == len(CELLS) * (len(EVALUATORS) - 1)
    assert set(QUICK) < set(EVALUATORS)


@pytest.mark.parametrize(("name", "bad", "function", "policy"), MATRIX)
def test_workers_report_the_failures_that_serial_reports(
    team: Any, name: str, bad: str, function: str, policy: str
) -> None:
    need(name)
    alone = outcome(bad, function, policy, "serial")
    assert outcome(bad, function, policy, team(name, 2)) == alone
    if policy == "raise":
        assert len(alone) == 1
    elif len(alone) > 1:
        assert alone[2].keys() == {KIND_OF[bad]}


def test_callbacks_are_called_in_the_callers_thread_one_at_a_time() -> None:
    import threading

    seen: list[tuple[int, int]] = []
    others: set[int] = set()

    def watched(x: FloatArray, j: int) -> float:
        others.add(threading.get_ident())
        time.sleep(0.001)
        return limit(x, j)

    problem = Problem(objective, Constraints.from_function(watched, 30), 3)
    solve(
        problem,
        workers("threads", 3),
        callback=lambda p: seen.append((p.iteration, threading.get_ident())),
    )
    assert [iteration for iteration, _ in seen] == list(range(1, 7))
    assert {thread for _, thread in seen} == {threading.get_ident()}
    assert len(others) == 3
    assert threading.get_ident() not in others
