from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")
pytest.importorskip("pooch")
pytest.importorskip("sklearn")


from dszog_paper import command
from tests.cli.conftest import Dszog, refused
from tests.paper.test_protocol import TINY


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "QUICK", TINY)
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/nonexistent")


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
    assert says in refused(dszog, "paper", *words.split())


def test_tables_of_words_need_no_runs_and_the_verdict_is_said(
    tiny: None, dszog: Dszog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = "dszog_paper.report.readings.verdict"
    monkeypatch.setattr(verdict, lambda results: ["It holds."])
    code, said, _ = dszog("paper", "1", "5", "--output", tmp_path)
    assert (code, "* It holds.\n" in said) == (0, True)
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
    for name in ("report.html", "results.json"):
        assert (tmp_path / name).exists()
