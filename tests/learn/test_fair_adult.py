"""The figures of docs/learning.md can be had again: the script runs, and they hold."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "fair_adult.py"


def run(**environment: str) -> str:
    done = subprocess.run(
        [sys.executable, str(SCRIPT)],
        capture_output=True,
        text=True,
        check=True,
        env={key: value for key, value in os.environ.items() if key != "DSZOG_DATA"}
        | {"PYTHONPATH": str(SCRIPT.parents[1] / "src")}
        | environment,
    )
    return done.stdout


def figures(output: str, name: str) -> tuple[float, float]:
    (line,) = (line for line in output.splitlines() if line.startswith(name))
    words = line.split()
    return float(words[2]), float(words[5])


def test_the_script_runs_on_its_stand_in() -> None:
    output = run()

    assert "adult (stand-in): 600 rows" in output
    assert "sex: Female" in output
    assert "race: Black" in output
    assert figures(output, "FairClassifier")[0] > 0.5


@pytest.mark.slow
@pytest.mark.skipif("DSZOG_DATA" not in os.environ, reason="the real file is needed")
def test_on_adult_the_gap_is_halved_for_less_than_two_points() -> None:
    output = run(DSZOG_DATA=os.environ["DSZOG_DATA"])

    accuracy, gap = figures(output, "LogisticRegression")
    fair_accuracy, fair_gap = figures(output, "FairClassifier")
    assert fair_gap <= 0.5 * gap
    assert fair_accuracy >= accuracy - 0.02
