"""The figures of the reliability report are those that the tests recorded."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import dszog.readers
from tests.fuzz.test_fuzz import NAMES
from tools import reliability
from tools.reliability import HELD, ITEMS, MUTANTS, Bar, Item, markdown, read_report

ROOT = Path(__file__).parents[2]
ELSEWHERE = {  # of workers, whose extras may be missing
    "workers/test_chaos.py",
    "workers/test_clusters.py",
    "workers/test_determinism.py",
    "workers/test_failure_matrix.py",
}

REPORT = """<?xml version="1.0"?>
<testsuites><testsuite>
<testcase name="a"><properties>
  <property name="kills" value="600"/><property name="slowest" value="0.2"/>
  <property name="coverage of x.py" value="97.5"/><property name="p-value" value="0.3"/>
</properties></testcase>
<testcase name="b"><properties>
  <property name="kills" value="450"/><property name="slowest" value="0.1"/>
  <property name="coverage of y.py" value="96.0"/><property name="p-value" value="0.1"/>
  <property name="words" value="are no figure"/>
</properties></testcase>
<testcase name="c"><skipped/></testcase>
<testcase name="d"><failure/></testcase>
</testsuite></testsuites>
"""


def test_a_report_is_read_and_its_figures_are_joined(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    assert read_report(tmp_path / "report.xml") == {
        "tests": 4,
        "skipped": 1,
        "failed": 1,
        "kills": 1050,
        "slowest": 0.2,
        "least coverage of a reader, %": 96.0,
        "p-value": 0.1,
    }


@pytest.mark.parametrize(
    ("bar", "value", "is_met"),
    [
        (Bar("kills", ">=", 1000), 1000, True),
        (Bar("kills", ">=", 1000), 999, False),
        (Bar("kills", "<=", 0.5), 0.6, False),
        (Bar("kills", "=", 0), 0, True),
        (Bar("kills", "=", 0), 1, False),
        (Bar("kills", "=", 0), float("nan"), False),
        (Bar("others", "=", 0), 0, False),  # what was not measured is not met
    ],
)
def test_a_bar_is_met_or_not(bar: Bar, value: float, is_met: bool) -> None:
    assert bar.is_met({"kills": value}) is is_met


def test_an_item_whose_tests_are_not_there_says_so() -> None:
    found = reliability.run_item(Item("X", "none", "no/such_file.py"), quick=True)
    assert found["outcome"] == "not run"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small tree with one item of its own."""
    monkeypatch.setattr(reliability, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "argv", ["reliability.py", "--output", str(tmp_path)])
    (tmp_path / "tests").mkdir()
    monkeypatch.setattr(
        reliability, "run_mutants", lambda: {"outcome": "passed", "figures": {}}
    )
    item = Item("X", "Nothing breaks", "test_x.py", "breaks = 0")
    monkeypatch.setattr(reliability, "ITEMS", (item,))
    return tmp_path


def outcome_of(tree: Path, n_breaks: int) -> str:
    (tree / "tests" / "test_x.py").write_text(
        f"def test_x(record_property):\n    record_property('breaks', {n_breaks})\n"
    )
    reliability.main()
    record = json.loads((tree / "reliability.json").read_text())
    return str(record["items"]["X"]["outcome"])


def test_a_figure_lasts_as_long_as_what_it_depends_on(
    tree: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("src/used", "src/other", "docs"):
        (tree / name).mkdir(parents=True)
        (tree / name / "__init__.py").write_text("")
    (tree / "tests" / "helper.py").write_text("from used import thing\n")
    (tree / "src/used/thing.py").write_text("one = 1\n")
    outcome_of(tree, 0)

    def outcome_after(name: str, text: str) -> str:
        (tree / name).write_text(text)
        reliability.imported.cache_clear()
        capsys.readouterr()
        reliability.main()
        return capsys.readouterr().out

    assert "X    passed before" in outcome_after("docs/page.md", "words")
    assert "X    passed before" in outcome_after("src/other/__init__.py", "two = 2\n")
    assert "X    passed before" in outcome_after("tests/test_y.py", "")
    # Left out, a figure stays, and is said to be of an earlier state.
    (tree / "src/used/thing.py").write_text("one = 3\n")
    words = ["reliability.py", "--output", str(tree), "--only", "S2"]
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", words)
        reliability.main()
    page = (tree / "docs" / "reliability.md").read_text()
    assert "| X | Nothing breaks | passed | tests 1; breaks 0 | breaks = 0 |" in page
    assert "earlier |" in page
    assert "X    passed {" in outcome_after("src/used/thing.py", "one = 4\n")
    assert "earlier |" not in (tree / "docs" / "reliability.md").read_text()


def test_an_item_depends_on_what_its_tests_import_and_on_nothing_else() -> None:
    (checkpoints,) = (item for item in ITEMS if item.id == "A4")
    files = {str(path.relative_to(ROOT)) for path in reliability.sources(checkpoints)}
    assert "tests/save/test_journal.py" in files
    assert "tests/save/kill_loop.py" in files  # beside it; may be run by it
    assert "src/dszog/save/journal.py" in files
    assert "src/dszog/run/loop.py" in files  # by way of dszog itself
    assert not any(name.startswith("src/dszog_paper") for name in files)
    assert "tests/test_readme.py" not in files


def test_the_page_has_a_row_for_every_item() -> None:
    page = markdown(
        {
            "date": "2026-01-01T00:00:00",
            "quick": False,
            "versions": {"python": "3", "numpy": "2", "scipy": "1"},
            "machine": {"cores": 2, "system": "any"},
            "items": {},
        }
    )
    for item in (*ITEMS, MUTANTS):
        assert f"| {item.id} | {item.promise} | not run |" in page


def test_every_item_names_tests_that_are_there() -> None:
    named = {node for item in ITEMS for node in item.nodes}
    missing = {node for node in named if not (ROOT / "tests" / node).exists()}
    assert missing <= ELSEWHERE
    ids = [item.id for item in (*ITEMS, MUTANTS)]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("promise", HELD)
def test_every_other_promise_names_a_test_that_is_there(promise: str) -> None:
    for node in HELD[promise].split():
        file, _, name = node.partition("::")
        text = (ROOT / "tests" / file).read_text(encoding="utf-8")
        assert not name or f"def {name}(" in text  # the whole name, not a beginning


def test_every_reader_is_fuzzed() -> None:
    functions = {name for name in dszog.readers.__all__ if name.startswith("read_")}
    assert {f"read_{name}" for name in NAMES if name in ("libsvm", "csv")} == functions
    assert {"checkpoint", "journal"} < set(NAMES)


UNSEEDED = ("default_rng", "Philox", "PCG64", "SeedSequence", "Random")


def test_no_test_draws_without_a_seed_and_none_is_tried_again() -> None:
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or node.args or node.keywords:
                continue
            if ast.unparse(node.func).split(".")[-1] in UNSEEDED:
                found.append(f"{path.name}, line {node.lineno}")
    assert found == []
    assert settings.get_profile("default").derandomize
    ours = (ROOT / "pyproject.toml", ROOT / "Makefile", ROOT / "tests" / "conftest.py")
    for path in ours:
        assert not re.search(r"rerun|flaky|--lf|--retr", path.read_text("utf-8"))


ALLOWED = {"test_content.py"}  # named pipes, which not every system has


def marks(path: Path) -> Iterator[str]:
    """Yield the skips and expected failures of a test file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in ("skip", "skipif", "xfail"):
            yield f"{path.name}, line {node.lineno}: {node.attr}"


def test_no_reliability_test_is_skipped_or_expected_to_fail() -> None:
    found: list[str] = []
    for node in sorted({node for item in ITEMS for node in item.nodes} - ELSEWHERE):
        path = ROOT / "tests" / node
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            if file.name not in ALLOWED:
                found += marks(file)
    assert found == []
