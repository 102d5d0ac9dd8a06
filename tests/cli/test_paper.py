from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("pooch")
pytest.importorskip("sklearn")


from dszog_paper import command
from tests.cli.conftest import Dszog
from tests.paper.test_protocol import TINY

RUN_TINY = """
import sys
from dszog.cli.app import app
from dszog_paper import command
from tests.paper.test_protocol import TINY
if __name__ == "__main__":
    command.QUICK = TINY
    app(sys.argv[1:])
"""
ROOT = Path(__file__).parents[2]


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/nonexistent")


def without_time(results: Any) -> Any:
    """Return the results but for what depends on the clock."""
    if isinstance(results, dict):
        return {
            name: without_time(value)
            for name, value in results.items()
            if name not in ("time", "date", "seconds", "share_subproblem", "command")
        }
    if isinstance(results, list):
        return [without_time(value) for value in results]
    return results


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("13", "there is no table '13'"),
        ("2 --jobs 0", "--jobs must be at least 1"),
        ("2 --seconds -1", "--seconds must be above 0"),
        ("2 --repetitions 0", "--repetitions must be above 0"),
        ("2 --output pyproject.toml", "--output must be a folder"),
        ("2 --data nowhere", "--data must name a folder with data files"),
    ],
)
def test_what_cannot_work_is_told_in_a_line(
    dszog: Dszog, words: str, says: str
) -> None:
    code, _, told = dszog("paper", *words.split())
    assert code == 2
    assert told.startswith("dszog paper: ")
    assert says in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("library", "words", "owner"),
    [
        ("sklearn", "9", "dszog paper"),
        ("matplotlib", "fig1", "dszog paper"),
        ("pooch", "1 --download", "dszog paper: A download of a9a"),
        ("dszog_paper.command", "9", "dszog paper"),
    ],
)
def test_what_is_needed_is_asked_for_before_anything_is_run(
    library: str,
    words: str,
    owner: str,
    tiny: None,
    dszog: Dszog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    code, _, told = dszog("paper", *words.split(), "--output", tmp_path)
    assert (code, told) == (
        2,
        f'{owner} needs {library}: pip install "dszog[paper]".\n',
    )
    assert list(tmp_path.iterdir()) == []


def test_tables_of_words_need_no_runs(tiny: None, dszog: Dszog, tmp_path: Path) -> None:
    assert dszog("paper", "1", "5", "--output", tmp_path)[0] == 0
    results = json.loads((tmp_path / "results.json").read_text())
    assert [table["number"] for table in results["descriptions"]] == [1, 4, 5]
    assert results["records"] == []


def test_a_table_is_made_only_once(tiny: None, dszog: Dszog, tmp_path: Path) -> None:
    words = ("paper", "9", "--jobs", 1, "--limit", "queries", "--output", tmp_path)
    assert dszog(*words)[0] == 0
    n_units = len(list((tmp_path / "units").iterdir()))
    first = json.loads((tmp_path / "results.json").read_text())

    code, said, _ = dszog(*words)

    assert code == 0
    assert len(list((tmp_path / "units").iterdir())) == n_units
    second = json.loads((tmp_path / "results.json").read_text())
    assert second["records"] == first["records"]
    assert all(row["stand_in"] for row in first["tables"][0]["rows"][:2])
    assert "replaced by generated stand-ins" in " ".join(said.split())
    for name in ("report.html", "report.md", "results.json"):
        assert (tmp_path / name).exists()


@pytest.mark.slow
def test_a_run_killed_ten_times_ends_with_the_same_results(tmp_path: Path) -> None:
    def start(folder: Path) -> subprocess.Popen[bytes]:
        arguments = ["paper", "9", "--limit", "queries", "--jobs", "1"]
        return subprocess.Popen(
            [sys.executable, "-c", RUN_TINY, *arguments, "--output", str(folder)],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
        )

    assert start(tmp_path / "straight").wait() == 0
    rng = np.random.Generator(np.random.Philox(key=1))
    n_killed = 0
    for _ in range(10):
        process = start(tmp_path / "killed")
        time.sleep(float(rng.uniform(0.5, 2.0)))
        process.kill()
        n_killed += process.wait() != 0
    assert start(tmp_path / "killed").wait() == 0

    assert n_killed >= 3  # or nothing was interrupted
    straight, killed = (
        json.loads((tmp_path / name / "results.json").read_text())
        for name in ("straight", "killed")
    )
    assert without_time(killed) == without_time(straight)
