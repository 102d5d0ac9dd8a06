from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cyclopts")

from dszog_bench import command
from dszog_bench.measures import BY_DEFAULT, MEASURES
from dszog_bench.records import Effort, Row
from tests.cli.conftest import Dszog

TINY = Effort(
    iterations=5,
    n_blocks=1,
    plain_counts=(200,),
    counts=(10**4, 10**6),
    headline_iterations=20,
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_what_is_measured_is_written(tiny: None, dszog: Dszog, tmp_path: Path) -> None:
    code, shown, _ = dszog("bench", "-o", tmp_path)

    text = (tmp_path / "bench.md").read_text()
    assert code in (0, 3)  # times so short tell nothing
    for name in BY_DEFAULT:
        stored = json.loads((tmp_path / f"{name}.json").read_text())
        assert stored["rows"], name
        assert stored["command"] == f"dszog bench {name}"
        assert stored["machine"]["cores"]
        assert stored["versions"]["numpy"]
        for row in stored["rows"]:
            assert row["figure"] >= 0
            assert f"| {row['what']} |" in text
    assert "a9a (stand-in)" in shown
    assert "dszog" in shown
    assert "Wrote" in shown


def test_a_missed_bar_is_told_by_the_exit_code(
    tiny: None, dszog: Dszog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missed(effort: Effort) -> Any:
        yield Row(what="a ratio", figure=3.0, bar=2.0)

    monkeypatch.setitem(MEASURES, "memory", missed)
    assert dszog("bench", "memory", "-o", tmp_path)[0] == 3
    assert "| a ratio | 3 | at most 2 | no |" in (tmp_path / "bench.md").read_text()


def test_the_page_on_benchmarks_has_every_measure() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    assert re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE) == list(MEASURES)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("iterations", "Did you mean 'iteration'"),
        ("peer", "Did you mean 'peers'"),
        ("xyz", "Choose from a9a, iteration"),
        ("--quick --full", "got both --quick and --full"),
        ("a9a --data nowhere", "--data must name a folder with data"),
        ("a9a --data nowhere", "Correct the path, or leave it out."),
        (
            "a9a --data empty",
            "the folder that was named, nor in .* Name the folder that has it: --data "
            "FOLDER, or DSZOG_DATA=FOLDER",
        ),
        ("a9a -o file", "must be a folder"),
    ],
)
def test_wrong_words_are_refused_before_anything_is_measured(
    tiny: None,
    dszog: Dszog,
    tmp_path: Path,
    words: str,
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("file").write_text("")
    code, _, told = dszog("bench", *words.split())
    assert code == 2
    assert told.startswith("dszog bench: ")
    assert re.search(complaint, told)
    assert "ownload" not in told
    assert told.count("\n") == 1
    assert sorted(path.name for path in Path().iterdir()) == ["empty", "file"]
