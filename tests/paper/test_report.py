"""The report shows every table and figure, whatever is missing, and needs no net."""

from __future__ import annotations

import copy
import json
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from dszog.cli.files import known as as_json
from dszog_paper.protocol import FULL, OURS, QUICK, Unit
from dszog_paper.report import page, write_report
from dszog_paper.report.cells import best_places, cell_lines
from dszog_paper.report.figures import AXES, panel_svgs
from dszog_paper.report.readings import protocol_reading, verdict
from dszog_paper.results import assemble
from dszog_paper.tables import Table, plan

KEPT = Path(__file__).parents[2] / "results" / "results.json"
VOID = {"meta", "link", "br", "hr", "img", "input"}
HOSTILE = '<script>alert("1")</script> & $x_{ | `code` **bold** [a](http://b.c)'


# ------------------------------------------------ results, made of made-up records
ACCURACIES = {"dszog": 0.765, OURS: 0.755}  # all others 0.745
FEW = ("a9a", "D1")  # a row of each table, so that drawing is quick
COLUMNS = ("DSZOG", "DSZOG, our settings", "ZOSCGD, full")


def record(unit: Unit, n_looks: int = 20) -> dict[str, Any]:
    steps = [float(turn) for turn in range(n_looks)]
    trace = {
        "iteration": steps,
        "loss_queries": [1408.0 * step for step in steps],
        "constraint_queries": [128.0 * step for step in steps],
        "test_accuracy": [0.5 + 0.01 * step for step in steps],
        **dict.fromkeys(("unit_share_violated", "unit_worst_violation"), steps),
    }
    made: dict[str, Any] = {"unit": unit.as_json(), "trace": trace}
    made |= {"test_accuracy": ACCURACIES.get(unit.method, 0.745), "norm": 1.25}
    made |= {"validation_accuracy": 0.7, "majority_share": 0.5, "objective": 0.4}
    made |= {"logistic_accuracy": 0.8, "share_violated": 0.1, "iterations": 600.0}
    made |= {"worst_violation": 0.01, "unit_share_violated": 0.2}
    made |= {"unit_worst_violation": 0.0012, "unit_share_beyond": 0.0}
    made |= {"loss_queries": 844_800.0, "rows_respected": 0.0, "ended_by": "MAX_TIME"}
    made |= {"constraint_queries": 64_780.0, "events": {"drawn inwards": 12345}}
    elapsed = [0.01 * step for step in steps]
    return made | {"time": {"seconds": 1.5, "subproblem": 0.375, "trace": elapsed}}


def results(
    *numbers: int | str, rows: Sequence[str] = FEW, columns: Sequence[str] = ()
) -> dict[str, Any]:
    """Return some tables, or all, with these rows and columns."""
    tables = [
        replace(
            table,
            cells=tuple(
                cell
                for cell in table.cells
                if cell.row in rows and (not columns or cell.column in columns)
            ),
        )
        for table in plan(QUICK)
        if not numbers or table.number in numbers
    ]
    notes, command = ["A note for the reader."], "dszog paper --output DIR"
    found = assemble(tables, record, QUICK, described=[], command=command, notes=notes)
    found["meta"] |= {"date": "2030-01-02T03:04:05+00:00", "versions": {"dszog": "0.1"}}
    found["descriptions"] += [
        {"number": n, "title": "Data", "columns": ["data"], "rows": [["a9a"]]}
        for n in (4, 5)
    ]
    made: dict[str, Any] = as_json(found)
    return made


# ------------------------------------------------------------------- what a page has
class Page(HTMLParser):
    """What a page holds; an error if a tag is not closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.shown: list[str] = []
        self.captions: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self.open:
            return
        self.shown.append(data)
        if {"caption", "figcaption"} & set(self.open):
            self.captions.append(data)

    @property
    def text(self) -> str:
        return " ".join(self.shown)


@pytest.fixture(scope="module")
def small() -> dict[str, Any]:
    return results()


@pytest.fixture(scope="module")
def shown(small: dict[str, Any]) -> Page:
    return Page(page(small))


# ------------------------------------------------------------------------- the page
def test_the_page_has_every_table_and_every_figure_on_three_axes(shown: Page) -> None:
    captions = "\n".join(shown.captions)
    for name in range(1, 13):
        assert re.search(rf"^Table {name}\. ", captions, re.MULTILINE), name
    for figure_number in (1, 2, 3):
        for axis in AXES:
            wanted = rf"^Figure {figure_number}\. .* against {re.escape(axis.label)}$"
            assert re.search(wanted, captions, re.MULTILINE)
    pictures = [a for tag, a in shown.tags if tag == "svg"]
    assert sum(a.get("role") == "img" for a in pictures) == 3 * len(AXES)
    assert all(a.get("aria-label") or a.get("aria-hidden") == "true" for a in pictures)
    names = [a["id"] for _, a in shown.tags if "id" in a]
    assert len(names) == len(set(names))
    links = {h[1:] for _, a in shown.tags if (h := a.get("href") or "").startswith("#")}
    assert set() < links <= set(names)


def test_nothing_is_loaded_and_nothing_is_run(small: dict[str, Any]) -> None:
    text = page(small)
    shown = Page(text)
    for tag, attributes in shown.tags:
        assert tag not in ("script", "iframe", "object", "embed", "img")
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("#", "data:,"))
        assert not any(name.startswith("on") for name in attributes)
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)
    assert "://" not in text


def test_the_kind_of_run_stands_at_the_top(small: dict[str, Any]) -> None:
    top = page(small).partition("<main>")[0]
    wanted = "This is a quick run|repetitions 2 instead of 10|1.5 s instead of 10 s|"
    wanted += "dszog 0.1|2030-01-02|dszog paper --output DIR"
    for words in wanted.split("|"):
        assert words in top
    assert "This is a full run" in protocol_reading({"protocol": as_json(vars(FULL))})


def test_the_report_opens_with_the_verdict() -> None:
    told = results(2, rows=("a9a", "w8a"), columns=COLUMNS)
    first, second = (row["cells"] for row in told["tables"][0]["rows"])
    for cell in (*first.values(), *second.values()):
        cell["printed"] = [75.9, 0.26]
    second["DSZOG"] |= {"mean": 50.5, "unit_worst_violation": 0.3}
    lines = verdict(told)
    wanted = (
        "holds in 1 of 2 comparisons; against the best other method from -24.0 points "
        "(w8a) to +2.0 (a9a)",
        "holds in 1 of 2 comparisons; of the other methods' accuracies 2 of 2 do",
        "holds in 1 of 2 comparisons; at worst 0.3 (w8a)",
        "5 of 6 are met within 2 points; differences from -25.4 to +0.6",
        "does not hold in any of 2 comparisons; accuracies differ by -1.0 to +25.0",
    )
    assert len(lines) == 5
    assert "".join(lines).isascii()  # a terminal shows them, too
    assert all(part in line for part, line in zip(wanted, lines, strict=True))
    assert lines[0] in Page(page(told)).text.partition("What was run")[2]
    assert page(told).index("verdict") < page(told).index("What was run")


def test_what_does_not_beat_the_majority_share_is_not_bold() -> None:
    one = results(2, rows=("a9a", "w8a"))["tables"][0]
    for cells in one["rows"][1]["cells"].values():
        cells["majority_share"] = 0.765
    assert best_places(one) == {("a9a", "DSZOG")}


def test_curves_are_means_in_bands_over_the_repetitions() -> None:
    whole = next(t for t in plan(QUICK) if t.number == 3)
    (chosen,) = [c for c in whole.cells if (c.row, c.column) == ("D1", "DSZOG")]

    def get(unit: Unit) -> dict[str, Any]:
        made = record(unit, n_looks=3)
        if unit.repetition:  # it ended one look later, and higher
            made = record(unit, n_looks=4)
            made["trace"]["test_accuracy"] = [0.7, 0.71, 0.72, 0.73]
        return made

    found = assemble([Table(number=3, title="", cells=(chosen,))], get, QUICK)
    (panel,) = found["figures"][0]["panels"]
    (drawn,) = panel["curves"]
    assert drawn["low"] == [0.5, 0.51, 0.52, 0.73]
    assert drawn["high"] == [0.7, 0.71, 0.72, 0.73]
    assert drawn["test_accuracy"] == pytest.approx([0.6, 0.61, 0.62, 0.73])
    assert panel["majority"] == 0.5
    assert "in bands" in page(found)
    (svg,) = panel_svgs(found["figures"][0], AXES[0])
    assert "fill-opacity: 0.15" in svg
    assert svg.count("stroke-dasharray") == 1  # the majority share


# ------------------------------------------------------------- missing and hostile
def test_cells_that_were_not_run_say_so(small: dict[str, Any]) -> None:
    holed = copy.deepcopy(small)
    first, second = (table["rows"][0] for table in holed["tables"][:2])
    first["cells"]["DSZOG"] = None
    second["cells"] = dict.fromkeys(second["cells"])
    holed["figures"][0]["panels"][0]["curves"] = []
    assert Page(page(holed)).text.count("not run") > 9


def test_hostile_words_are_shown_and_nothing_else(small: dict[str, Any]) -> None:
    bad = copy.deepcopy(small)
    bad["meta"] |= {"notes": [HOSTILE], "command": HOSTILE}
    bad["meta"]["versions"]["dszog"] = HOSTILE
    (row,) = bad["tables"][0]["rows"]
    row["cells"][HOSTILE] = row["cells"].pop("DSZOG") | {"events": {HOSTILE: 1}}
    row["data"] = HOSTILE
    bad["tables"][0] |= {
        "title": HOSTILE,
        "number": HOSTILE,
        "columns": [*row["cells"]],
    }
    bad["descriptions"][0]["rows"] = [[HOSTILE, HOSTILE]]
    bad["figures"][0]["panels"][0]["data"] = HOSTILE
    bad["figures"][0]["panels"][0]["curves"][0]["label"] = HOSTILE
    shown = Page(page(bad))
    assert not any(tag == "script" for tag, _ in shown.tags)
    assert HOSTILE in shown.text


def test_missing_numbers_do_not_show_as_nan(small: dict[str, Any]) -> None:
    strange = copy.deepcopy(small)
    names = "spread norm objective unit_worst_violation unit_share_violated "
    missing = dict.fromkeys((names + "majority_share seconds").split())
    for cell in strange["tables"][0]["rows"][0]["cells"].values():
        cell |= missing
    strange["figures"][0]["panels"][0]["curves"][0]["test_accuracy"][-1] = None
    for results in (small, strange):
        assert not re.search(r"\b(nan|NaN|None|inf)\b", Page(page(results)).text)


# ----------------------------------------------------------------------- sentences
def test_a_cell_says_what_its_accuracy_is_worth() -> None:
    cell = results(2)["tables"][0]["rows"][0]["cells"]["DSZOG"]
    plain = cell_lines(cell)
    shrunk = cell_lines(cell | {"majority_share": cell["mean"] / 100, "norm": 1e-9})
    said = ["at the majority share", "weights of zero: means nothing"]
    assert shrunk == [*plain, *said]


# ---------------------------------------------------------------------------- files
def test_all_files_are_written_and_replaced_whole(tmp_path: Path) -> None:
    few = results(2) | {"records": [{"unit": {"data": "a9a"}, "objective": math.inf}]}
    folder = tmp_path / "new" / "folder"
    write_report(few, folder)
    files = write_report(few, folder)
    names = {path.relative_to(folder).as_posix() for path in files}
    assert names == {"report.html", "results.json"}
    assert {path for path in folder.rglob("*") if path.is_file()} == set(files)
    kept = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    assert kept["tables"] == few["tables"]
    assert kept["records"] == [{"unit": {"data": "a9a"}, "objective": None}]


@pytest.mark.skipif(not KEPT.exists(), reason="results/ is not in a source archive")
def test_results_that_were_kept_can_still_be_shown() -> None:
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    text = Page(page(kept)).text
    for table in kept["tables"]:
        assert f"Table {table['number']}. " in text


def test_a_failure_leaves_the_old_report(small: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old")
    broken = {**small, "tables": [{"number": 2}]}
    with pytest.raises(KeyError):
        write_report(broken, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
    assert (tmp_path / "report.html").read_text() == "old"
