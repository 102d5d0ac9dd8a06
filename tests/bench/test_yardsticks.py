from __future__ import annotations

import hashlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog.workers import EVALUATORS
from dszog_bench.frozen import PairwiseData, Record, frozen_evaluation, frozen_values
from dszog_bench.memory import memory_above_data
from dszog_bench.plain import Draws, Plain, PlainState
from dszog_bench.records import Row, read_record, write_record
from dszog_bench.rotated import rotated_losses, rotated_rows, rotated_values
from dszog_paper.data import stand_in

KEPT = Path(__file__).parents[2] / "benchmarks"
METHOD = dszog.DSZOG.as_published(loss_batch=16, constraint_batch=16, dual_batch=16)


def test_frozen_values_are_those_the_library_asked_for() -> None:
    rows = stand_in("a9a")
    X, y = rows.dense, rows.y

    def losses(points: Any, indices: Any) -> Any:
        return 1.0 - np.exp(-np.square(y[indices] - points @ X[indices].T))

    pairs = dszog.Constraints.pairwise(X[y > 0], X[y < 0], margin=0.2)
    data, record = PairwiseData(X, y, margin=0.2), Record()
    problem = dszog.Problem(
        dszog.Losses(record.losses(losses), len(y)),
        dszog.Constraints(record.pairs(pairs.values), len(pairs)),
        pairs.dim,
    )

    result = dszog.minimize(problem, method=METHOD, max_iterations=6, seed=3)

    kinds = {"loss": losses, "pair": pairs.values}
    assert {call.kind for call in record.calls} == set(kinds)
    for call in record.calls:
        expected = kinds[call.kind](call.points, call.indices)
        np.testing.assert_allclose(frozen_values(data, call), expected, atol=1e-14)
    n_values = sum(len(call.points) * len(call.indices) for call in record.calls)
    assert n_values == result.nfev + result.ncev
    calls = record.of_iterations(1, 5)
    assert [call.kind for call in calls] == ["loss", "pair", "pair"] * 4
    assert [len(call.points) for call in calls] == [11, 11, 1] * 4
    assert record.seconds_each(1, 5) > 0
    assert record.overhead(1, 5) > 1  # calls are inside their iterations
    frozen_evaluation(data, calls)


def test_the_frozen_code_has_not_been_touched() -> None:
    text = inspect.getsource(frozen_values).encode()
    assert hashlib.sha256(text).hexdigest() == FROZEN, (
        "Iterations are compared with frozen_values over all versions: leave it be."
    )


FROZEN = "eed28eae3e572cabcde7ecfa5a3e95aaebb78870ec43b594ee746fd5b4d98e69"


def test_plain_algorithm_1_makes_the_iterates_of_the_dense_method() -> None:
    dim, m = 6, 4001
    X, y = rotated_rows(dim)
    losses, constraints = rotated_losses(X, y), rotated_values(X)
    problem = dszog.Problem(
        dszog.Losses(losses, len(y)), dszog.Constraints(constraints, m), dim
    )
    method = dszog.DSZOG.as_published(
        distribution="dense", loss_batch=20, constraint_batch=20, dual_batch=40
    )
    plain = Plain(
        losses=losses, constraints=constraints, n_losses=len(y), m=m, loss_batch=20,
        constraint_batch=20, dual_batch=40,
    )  # fmt: skip
    start = np.full(dim, 2.0)  # far out: many constraints are violated
    evaluate = EVALUATORS["serial"](problem)
    state = method.init(start, problem.size, seed=5)
    printed: PlainState = plain.start(start)
    n_steps = 0
    while n_steps < 40:
        queries = method.ask(state)
        if state.start is None:
            around, dual = queries
            draws = Draws(
                directions=around.steps / method.radius,
                losses=around.losses,
                constraints=around.constraints,
                duals=dual.constraints,
            )
            printed = plain.step(printed, draws)
            n_steps += 1
        state, _ = method.tell(state, queries, evaluate(queries))

    np.testing.assert_allclose(printed.w, state.x, rtol=0, atol=1e-9)
    assert state.distribution is not None
    np.testing.assert_allclose(printed.p, state.distribution.dense(), rtol=0, atol=1e-9)
    assert np.abs(state.x - start).max() > 0.1  # it did go somewhere
    assert np.count_nonzero(printed.p) > 1


def test_memory_is_that_of_the_run_and_not_of_who_started_it() -> None:
    ballast = np.ones(2**26)  # 512 MB
    above = memory_above_data(10**12, 20)
    assert ballast[-1] == 1.0
    assert 0.0 < above < 300.0


@pytest.mark.parametrize(
    ("row", "is_met", "cells"),
    [
        (Row(what="a", figure=1.9, bar=2.0, unit="x"), True, "1.9 x||at most 2 x|yes"),
        (Row(what="a", figure=2.1, bar=2.0, unit="x"), False, "2.1 x||at most 2 x|no"),
        (
            Row(what="a", figure=2.1, bar=2.0, direction="at least"),
            True,
            "2.1||at least 2|yes",
        ),
        (
            Row.of("a", [1e-9, 1e-9, 3.0, 1e9, 1e9]),
            None,
            "3|1.00e-09 to 1.00e+09||",
        ),
        (Row(what="a", figure=float("nan"), bar=2.0), False, "||at most 2|no"),
    ],
)
def test_a_row_knows_whether_its_bar_is_met(
    row: Row, is_met: bool | None, cells: str
) -> None:
    assert row.is_met is is_met
    assert row.cells() == ["a", *cells.split("|")]
    assert row.figure is None or np.isfinite(row.figure)  # JSON has no NaN


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = [Row(what="a", figure=3.0, low=1.0, high=4.0, bar=2.0, details={"n": 1})]
    write_record(tmp_path / "a.json", rows, measure="a", seeds=[0])
    assert read_record(tmp_path / "a.json") == ({"measure": "a", "seeds": [0]}, rows)


@pytest.mark.parametrize(
    "path", sorted(KEPT.glob("*.json")), ids=lambda path: path.stem
)
def test_kept_results_have_the_one_form(path: Path) -> None:
    facts, rows = read_record(path)
    assert set(facts) == {
        *("measure", "command", "seeds", "seconds", "machine", "versions")
    }
    assert facts["measure"] == path.stem
    assert set(facts["machine"]) == {"processor", "system", "cores", "load"}
    assert rows
