"""Every block of Python in the documentation runs."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

NEEDED = {  # by what a block has in it
    "dszog.learn": "sklearn",
    "dszog.cli": "cyclopts",
    ".plot(": "matplotlib",
    "plot.compare(": "matplotlib",
    "to_frame()": "pandas",
    "TensorBoard(": "tensorboardX",
    "MLflow(": "mlflow",
}
DOCS = Path(__file__).parents[1] / "docs"
BLOCKS = [
    pytest.param(block, id=f"{page.name}-{number}")
    for page in sorted(DOCS.glob("**/*.md"))
    for number, block in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), flags=re.DOTALL)
    )
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_of_the_documentation_runs(
    block: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for used, needed in NEEDED.items():
        if used in block:
            pytest.importorskip(needed)
    logger = logging.getLogger("dszog")
    level = logger.level
    try:
        exec(compile(block, "docs", "exec"), {})
    finally:
        logger.setLevel(level)

    said = [line.split("# ")[1] for line in block.splitlines() if "print(" in line]
    assert capsys.readouterr().out.split("\n")[: len(said)] == said


def test_no_page_is_left_unfinished() -> None:
    for page in DOCS.glob("**/*.md"):
        assert "@@" not in page.read_text("utf-8"), page.name
