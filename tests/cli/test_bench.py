from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("rich")

from dszog.cli.app import app
from dszog_bench import command
from dszog_bench.measures import BY_DEFAULT, MEASURES
from dszog_bench.records import Effort, Row

TINY = Effort(
    iterations=5,
    n_blocks=2,
    plain_counts=(200,),
    counts=(10**4, 10**6),
    headline_iterations=20,
)


def run(*arguments: Any) -> int:
    """Run the command in this process and return the exit code."""
    with pytest.raises(SystemExit) as ended:
        app(["bench", *map(str, arguments)])
    return int(ended.value.code or 0)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "300")


def test_what_is_measured_by_default_writes_its_rows(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run("-o", tmp_path)

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
    shown = capsys.readouterr().out
    assert "a9a (stand-in)" in shown
    assert "dszog" in shown
    assert "Wrote" in shown


def test_stand_ins_are_not_held_to_the_bars(tiny: None, tmp_path: Path) -> None:
    assert run("a9a", "-o", tmp_path) == 0

    rows = json.loads((tmp_path / "a9a.json").read_text())["rows"]
    assert all(row["bar"] is None for row in rows)
    assert "stand-in" in rows[0]["what"]


def test_a_missed_bar_is_told_by_the_exit_code(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missed(effort: Effort) -> Any:
        yield Row(what="a ratio", figure=3.0, bar=2.0)

    monkeypatch.setitem(MEASURES, "memory", missed)

    assert run("memory", "-o", tmp_path) == 3
    assert "| a ratio | 3 | at most 2 | no |" in (tmp_path / "bench.md").read_text()


def test_the_table_keeps_the_measures_of_earlier_calls(
    tiny: None, tmp_path: Path
) -> None:
    run("constraints", "-o", tmp_path)
    run("a9a", "-o", tmp_path)

    text = (tmp_path / "bench.md").read_text()
    assert "m = 1e+06" in text
    assert "stand-in" in text


def test_the_list_has_a_line_for_each_measure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")

    assert run("list", "-o", tmp_path / "out") == 0

    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(MEASURES)
    assert all(len(line.split()) > 3 for line in lines)
    assert not (tmp_path / "out").exists()


def test_the_page_on_benchmarks_has_every_measure() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()

    assert re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE) == list(MEASURES)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["iterations"], "Did you mean 'iteration'"),
        (["peer"], "Did you mean 'peers'"),
        (["xyz"], "Choose from a9a, iteration"),
        (["--quick", "--full"], "got both --quick and --full"),
        (
            ["a9a", "--data", "/nonexistent"],
            "--data must name a folder with data",
        ),
    ],
)
def test_wrong_words_are_refused_before_anything_is_measured(
    tiny: None,
    tmp_path: Path,
    words: list[str],
    complaint: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    output = tmp_path / "out"

    assert run(*words, "-o", output) == 2

    told = capsys.readouterr().err
    assert told.startswith("dszog bench: ")
    assert complaint in told
    assert told.count("\n") == 1
    assert not output.exists()


def test_data_that_are_not_in_the_folder_are_asked_for(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()

    assert run("a9a", "--data", tmp_path / "empty", "-o", tmp_path / "out") == 2

    said = " ".join(capsys.readouterr().err.split())
    assert "a9a is not in" in said
    assert "the folder that was named" in said
    assert "Name the folder that has it: --data FOLDER, or DSZOG_DATA=FOLDER" in said
    assert "ownload" not in said


def test_a_folder_that_is_not_there_is_a_wrong_path_and_no_reason_to_download(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("a9a", "--data", tmp_path / "no", "-o", tmp_path / "out") == 2

    said = " ".join(capsys.readouterr().err.split())
    assert "Correct the path, or leave it out." in said
    assert "ownload" not in said


def test_an_output_that_is_a_file_is_refused(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")

    assert run("a9a", "-o", tmp_path / "file") == 2

    assert "must be a folder" in capsys.readouterr().err


def test_a_missing_package_is_named(
    tiny: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "dszog_bench.command", None)

    assert run("a9a") == 2

    assert 'pip install "dszog[bench]"' in capsys.readouterr().err
