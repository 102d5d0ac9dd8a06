from __future__ import annotations

from pathlib import Path

import pytest

import dszog
from dszog_bench.a9a import a9a_rows
from dszog_bench.rotated import rotated_problem


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("DSZOG_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_a_trillion_rotated_constraints_are_run_on() -> None:
    result = dszog.minimize(rotated_problem(10**12, 5), max_iterations=20, seed=0)
    assert result.nit == 20
    assert len(result.weights[0]) < 10**6


def test_without_data_a_named_stand_in_is_used(no_data: None) -> None:
    train, test = a9a_rows()
    assert "stand-in" in train.name
    assert train.is_stand_in
    assert (train.n_rows, test.n_rows) == (300, 300)
