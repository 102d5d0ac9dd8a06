from __future__ import annotations

import json
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dszog.errors import EvaluationError
from dszog_paper import execute as module
from dszog_paper.execute import RecordFolder, execute
from dszog_paper.protocol import FULL, QUICK, Protocol, Unit, grid
from dszog_paper.results import assemble
from dszog_paper.runner import run_unit
from dszog_paper.tables import Choice, all_units, missing, plan

TINY = Protocol(
    name="tiny", n_selection=1, n_repetitions=1, iterations=3, kernel_iterations=2,
    queries=4000, limit="queries", stages=(grid(step_size=(1e-2, 1e-3)),),
    ours=((("penalty", 30.0),),), steps=(1e-2,),
)  # fmt: skip
STAND_INS = frozenset({"a9a", "w8a", "svm"})
UNIT = Unit(task="pairwise", data="gen", method="dszog", iterations=3)
runs_units = pytest.mark.skipif(
    find_spec("sklearn") is None, reason="a unit needs scikit-learn"
)


def without_time(record: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != "time"}


@runs_units
@pytest.mark.parametrize(
    "unit",
    [
        UNIT,
        Unit(task="pairwise", data="gen", method="ours", iterations=3),
        Unit(
            task="pairwise",
            data="svm",
            stand_in=True,
            method="zopsgd",
            form="full",
            queries=4000,
        ),
        Unit(task="fairness", data="D1", method="accszofw", queries=300_000),
        Unit(task="fairness", data="D1", method="zopsgd", queries=8000),
    ],
    ids=lambda unit: f"{unit.task}-{unit.data}-{unit.method}-{unit.model}",
)
def test_a_unit_without_time_limit_gives_the_same_record_each_time(unit: Unit) -> None:
    one, other = run_unit(unit), run_unit(unit)
    assert without_time(one) == without_time(other)
    assert json.loads(json.dumps(one)) == one
    assert one["iterations"] > 0
    assert 0.0 <= one["test_accuracy"] <= 1.0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"unit": {}}', "\x00\xff"])
def test_a_damaged_record_is_as_if_there_were_none(tmp_path: Path, text: str) -> None:
    store = RecordFolder(tmp_path)
    store.path(UNIT).write_text(text, encoding="utf-8")
    assert store.get(UNIT) is None


def chooser(scores: dict[float, float]) -> Any:
    """Return records of runs whose validation accuracy depends on the step alone."""

    def get(unit: Unit) -> dict[str, Any] | None:
        step = dict(unit.setting).get("step_size")
        return None if step not in scores else {"validation_accuracy": scores[step]}

    return get


def test_the_setting_with_the_best_validation_accuracy_is_chosen() -> None:
    choice = Choice(unit=UNIT, stages=(grid(step_size=(1.0, 2.0, 3.0)),), n_selection=2)
    _, chosen = choice.follow(chooser({1.0: 0.5, 2.0: 0.7, 3.0: 0.7}))
    assert chosen is not None
    assert dict(chosen.setting) == {"step_size": 2.0}  # the first of equals


@pytest.mark.parametrize("protocol", [QUICK, FULL], ids=lambda p: p.name)
def test_every_cell_of_the_papers_tables_is_planned(protocol: Protocol) -> None:
    tables = {table.number: table for table in plan(protocol)}
    assert set(tables) == {2, 3, 6, 7, 8, 9, 10, 11, 12}
    for table in tables.values():
        filled = {(cell.row, cell.column) for cell in table.cells}
        assert filled == {(row, col) for row in table.rows for col in table.columns}
    assert all(
        cell.printed is not None
        for number in (6, 7, 8, 9, 10, 11, 12)
        for cell in tables[number].cells
    )


def make_everything(
    folder: Path, numbers: tuple[Any, ...], stop_after: int = -1
) -> Any:
    """Run the first rows of tables; stop after some runs, to see it go on."""
    tables = [
        replace(
            table,
            cells=tuple(cell for cell in table.cells if cell.row == table.rows[0]),
        )
        for table in plan(TINY, STAND_INS)
        if table.number in numbers
    ]
    store, n_runs = RecordFolder(folder), 0
    while units := missing(tables, store.get):
        for _ in execute(units, store, data=None, jobs=1):
            n_runs += 1
            if n_runs == stop_after:
                raise KeyboardInterrupt
    return tables, store, n_runs


@runs_units
def test_an_interrupted_run_goes_on_where_it_was(tmp_path: Path) -> None:
    tables, straight, n_all = make_everything(tmp_path / "straight", (2,))
    with pytest.raises(KeyboardInterrupt):
        make_everything(tmp_path / "cut", (2,), stop_after=7)
    _, resumed, n_after = make_everything(tmp_path / "cut", (2,))
    assert n_after == n_all - 7
    assert_same_records(all_units(tables, straight.get), straight, resumed)


@runs_units
def test_the_results_have_every_cell_and_curve(tmp_path: Path) -> None:
    tables, store, _ = make_everything(tmp_path, (3, 9))
    results = assemble(tables, store.get, TINY, command="dszog paper 3 9")
    assert json.loads(json.dumps(results))["meta"]["command"] == "dszog paper 3 9"
    assert [table["number"] for table in results["tables"]] == [3, 9]
    for table in results["tables"]:
        for row in table["rows"]:
            assert None not in row["cells"].values()
    assert [figure["number"] for figure in results["figures"]] == [2]
    assert [one["number"] for one in results["descriptions"]] == [1, 5]
    for panel in results["figures"][0]["panels"]:
        for curve in panel["curves"]:
            assert len(curve["seconds"]) == len(curve["test_accuracy"]) >= 2


def assert_same_records(units: Any, here: RecordFolder, there: RecordFolder) -> None:
    for unit in units:
        one, other = here.get(unit), there.get(unit)
        assert one is not None
        assert other is not None
        assert without_time(one) == without_time(other)


@runs_units
def test_workers_keep_the_same_records(tmp_path: Path) -> None:
    units = [UNIT.again(turn) for turn in range(3)]
    here, there = RecordFolder(tmp_path / "here"), RecordFolder(tmp_path / "there")
    assert [*execute(units, here, data=None, jobs=1)] == units
    assert {*execute(units, there, data=None, jobs=2)} == {*units}
    assert_same_records(units, here, there)


def end_the_process(unit: Unit, data: str | None) -> None:
    os._exit(1)


def test_a_lost_process_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run_unit", end_the_process)
    with pytest.raises(EvaluationError, match=r"a process was lost .*--output"):
        list(execute([UNIT], RecordFolder(tmp_path), data=None, jobs=2))
