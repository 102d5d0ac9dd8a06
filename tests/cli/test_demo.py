from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclopts")

from dszog import __version__ as version
from dszog import minimize
from dszog.cli.demo import MARGIN, demo_problem
from tests.cli.conftest import Dszog

MAX_QUERIES = 100_000  # the least that leaves room for some thirty iterations
SHORT = ("demo", "--max-queries", "1e5", "--output")


@pytest.fixture(autouse=True)
def few_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dszog.cli.demo.MOST_LOOKS", 200)
    monkeypatch.setattr("dszog.cli.demo.TELL_EVERY", 0.0)


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)


def figures_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "demo.json").read_text())
    return found


@pytest.mark.usefixtures("without_matplotlib")
def test_the_figures_are_those_of_the_same_run(dszog: Dszog, tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    code, said, _ = dszog(*SHORT, folder, "--seed", "3")
    assert "Data of seed 3." in said
    figures, again = figures_of(folder), demo_problem(3)
    result = minimize(again.problem, max_queries=MAX_QUERIES, seed=3)

    scores, labels = again.X @ result.x, again.y
    gaps = scores[labels < 0] - scores[labels > 0][:, np.newaxis] + MARGIN
    losses = 1.0 - np.exp(-((labels - scores) ** 2))
    assert figures["objective"] == pytest.approx(losses.mean(), rel=1e-12)
    assert figures["objective_at_start"] == pytest.approx(1.0 - np.exp(-1.0))
    assert figures["worst_violation"] == pytest.approx(max(gaps.max(), 0.0), abs=1e-12)
    assert figures["share_violated"] == (gaps > 0.0).mean()
    np.testing.assert_allclose(again.violations(result.x), np.maximum(gaps, 0.0))
    assert 60_000 < figures["constraints"] == gaps.size <= 62_500
    queries = (figures["loss_queries"], figures["constraint_queries"])
    assert queries == (result.nfev, result.ncev)
    assert sum(queries) <= MAX_QUERIES
    assert figures["looks_at_all_constraints"] == result.ncev / gaps.size
    assert figures["iterations"] == result.nit > 20
    assert figures["message"] == result.message
    assert figures["success"] is bool(result.success)
    moved = figures["objective"] != figures["objective_at_start"]
    assert code == (0 if result.success and moved else 3)
    assert figures["dszog"] == version
    assert figures["seconds"] > 0
    assert [path.name for path in folder.iterdir()] == ["demo.json"]
    assert "No picture: The picture needs matplotlib: pip install" in said
    for word in ("objective", "worst violation", "looks at all constraints", "seconds"):
        assert word in said
    # What it is compared with was measured in the same run, and said along the way.
    usual = figures["usual"]
    assert 150 <= usual["looks_at_all_constraints"] <= 600
    assert usual["objective"] < figures["objective_at_start"]
    ratio = usual["looks_at_all_constraints"] / figures["looks_at_all_constraints"]
    assert f"the usual way took {ratio:,.0f} times as many" in said
    assert said.count(" looks after ") > 100


@pytest.mark.slow
@pytest.mark.usefixtures("without_matplotlib")
def test_as_it_comes_the_demo_keeps_the_constraints_and_lowers_the_objective(
    dszog: Dszog, tmp_path: Path
) -> None:
    assert dszog("demo", "--output", tmp_path)[0] == 0
    figures = figures_of(tmp_path)
    assert figures["success"] is True
    assert figures["looks_at_all_constraints"] < 10
    assert figures["worst_violation"] <= 1e-2
    assert figures["objective"] < 0.95 * figures["objective_at_start"]
    assert figures["loss_queries"] + figures["constraint_queries"] <= 3_000_000


def test_a_picture_is_drawn(dszog: Dszog, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    said = dszog(*SHORT, tmp_path)[1]
    picture = tmp_path / "demo.png"
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    from matplotlib.image import imread

    pixels = imread(picture)
    assert min(pixels.shape[:2]) > 500
    assert 0.5 < pixels[..., :3].mean() < 1.0  # mostly white, and not nothing
    assert f"Picture: {picture}" in said
