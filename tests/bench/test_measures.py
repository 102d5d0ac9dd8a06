"""Measures that look at answers: each in a small form."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

pytest.importorskip("rich")
pytest.importorskip("sklearn")

from dszog_bench import workers
from dszog_bench.fair import fair
from dszog_bench.records import FULL, Effort

TINY = Effort(share=0.002)


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_workers_send_what_they_need_and_change_no_bit() -> None:
    row = workers._row("processes", 2, 0.001, n=4, repeats=1)
    assert row.what == "2 processes, 1 ms a call: speed-up"
    assert row.details["same_bits"] == "True"
    assert row.details["bytes_sent"] > row.details["bytes_received"] > 0


def test_a_stand_in_for_the_census_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    plain, ours, *_ = fair(TINY)
    assert plain.what.startswith("LogisticRegression, adult (stand-in)")
    assert ours.what.startswith("FairClassifier, seed 0, adult (stand-in)")
    assert ours.details["accuracy"] > 0.5


@pytest.mark.slow
@pytest.mark.skipif("DSZOG_DATA" not in os.environ, reason="the real file is needed")
def test_on_adult_the_gap_is_halved_for_less_than_two_points() -> None:
    plain, ours, *_ = fair(FULL)
    assert plain.figure is not None
    assert ours.figure is not None
    assert ours.figure <= 0.5 * plain.figure
    assert ours.details["accuracy"] >= plain.details["accuracy"] - 0.02
