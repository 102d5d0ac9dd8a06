"""The first minutes of five people go as they should.

Each journey asserts what the person would expect of each step, mistakes included.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.runs import said_by

ROOT = Path(__file__).parents[2]
JOURNEYS = ROOT / "docs" / "journeys"
NEEDS: dict[str, tuple[str, ...]] = {
    "readme_only": (),
    "scipy_user": (),
    "scikit_learn_user": ("sklearn",),
    "engineer_with_a_simulator": ("cloudpickle",),
    "researcher_with_the_paper": (),
}


def test_every_journey_is_made_here() -> None:
    found = {path.stem for path in JOURNEYS.glob("*.py")} - {"steps"}
    assert found == set(NEEDS)


@pytest.mark.parametrize("name", sorted(NEEDS))
def test_a_journey_arrives(name: str) -> None:
    for module in NEEDS[name]:
        pytest.importorskip(module)
    said = said_by("-W", "error", str(JOURNEYS / f"{name}.py"))
    arrived = re.search(r"Arrived: (\d+) steps, (\d+) of them mistakes", said)
    assert arrived is not None
    assert int(arrived[1]) >= 10
    assert int(arrived[2]) >= 2


def test_the_table_lists_every_journey_with_its_steps() -> None:
    table = (JOURNEYS / "index.md").read_text("utf-8")
    rows = dict(re.findall(r"\| `(\w+)\.py` \|.*?\| (\d+ \| \d+) \|", table))
    assert set(rows) == set(NEEDS)
    for name, counts in rows.items():
        text = (JOURNEYS / f"{name}.py").read_text("utf-8")
        n_mistakes = text.count("with journey.mistake(")
        n_steps = text.count("with journey.step(") + n_mistakes
        assert counts == f"{n_steps} | {n_mistakes}", name
