"""Functions that answer the same question differently are noticed, at no cost."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import dszog
from dszog import Constraints, Problem, PurityWarning, Simulator
from dszog.contract.arrays import FloatArray

TOLD = "A function gave another value when it was asked the same again"
ROWS = np.cos(np.arange(160.0)).reshape(40, 4)


class WarmStart:
    """A simulator that starts where it was before, and so ends a little elsewhere."""

    def __init__(self, apart: float) -> None:
        self.apart, self.last = apart, 0.0

    def shift(self, x: FloatArray) -> float:
        before, self.last = self.last, float(x.sum())
        return self.apart * float(np.sin(1e6 * before + 1.0))

    def objective(self, x: FloatArray) -> float:
        return float(np.sum((x - 2.0) ** 2)) + self.shift(x)

    def limit(self, x: FloatArray, j: int) -> float:
        return float(ROWS[j] @ x - 1.0) + self.shift(x + j)

    def scenario(self, x: FloatArray, i: int) -> tuple[float, FloatArray]:
        limits = ROWS[i] * x - 1.0 + self.shift(x + i)
        return float(np.sum((x - 2.0) ** 2)), limits


def exact(x: FloatArray) -> float:
    return float(np.sum((x - 2.0) ** 2))


def table(points: FloatArray, j: Any) -> FloatArray:
    return np.asarray(points @ ROWS[j].T - 1.0)


PROBLEMS: dict[str, Any] = {
    "objective": lambda w: Problem(w.objective, Constraints(table, 40), 4),
    "limits": lambda w: Problem(exact, Constraints.from_function(w.limit, 40), 4),
    "blocks": lambda w: Problem(
        exact, Constraints.blocks(lambda x, b: w.scenario(x, b)[1], 40, 4), 4
    ),
    "simulator": lambda w: Problem(Simulator(w.scenario, 40, 4), None, 4),
    "beside a table": lambda w: Problem(
        exact, [Constraints(table, 40), Constraints.from_function(w.limit, 40)], 4
    ),
}


def run(problem: Problem, **more: Any) -> Any:
    return dszog.minimize(problem, max_iterations=20, seed=0, **more)


@pytest.mark.parametrize("apart", [3e-11, 1e-3])
@pytest.mark.parametrize("name", PROBLEMS)
def test_answers_that_differ_are_told_once(name: str, apart: float) -> None:
    with pytest.warns(PurityWarning, match="apart for the same point") as caught:
        result = run(PROBLEMS[name](WarmStart(apart)))
    assert len(caught) == 1
    assert result.message.count(TOLD) == 1


@pytest.mark.parametrize("name", PROBLEMS)
def test_answers_that_do_not_differ_are_not_spoken_of(name: str) -> None:
    assert TOLD not in run(PROBLEMS[name](WarmStart(0.0))).message


def test_a_table_that_rounds_differently_in_another_shape_is_not_blamed() -> None:
    def rounded(points: FloatArray, j: Any) -> FloatArray:
        return table(points, j) * (1.0 + 1e-15 * len(points) * len(j))

    result = run(Problem(exact, Constraints(rounded, 40), 4))
    assert TOLD not in result.message


def test_to_notice_it_costs_no_query(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PROBLEMS["limits"](WarmStart(0.0))
    watched = run(problem)
    monkeypatch.setattr("dszog.run.meter.Meter._look_for_repeats", lambda *_: None)
    plain = run(problem)
    for name in ("digest", "nfev", "ncev", "message"):
        assert watched[name] == plain[name]


def test_what_was_noticed_is_told_when_a_run_goes_on(tmp_path: Any) -> None:
    def stop(progress: dszog.Progress) -> None:
        if progress.iteration == 5:
            raise OSError("gone")

    problem = PROBLEMS["limits"](WarmStart(3e-11))
    call: dict[str, Any] = {"checkpoint": tmp_path / "run", "resume": True}
    with pytest.warns(PurityWarning), pytest.raises(OSError, match="gone"):
        run(problem, callback=stop, **call)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PurityWarning)
        assert TOLD in run(problem, **call).message
