"""A real browser opens the report, shows every table and figure and logs no error."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jinja2")
pytest.importorskip("matplotlib")

from dszog_paper.report import write_report
from dszog_paper.report.figures import AXES
from dszog_paper.tables import FAIRNESS, PAIRWISE
from tests.paper.test_report import results

pytestmark = pytest.mark.browser

ALL = (*PAIRWISE, *FAIRNESS)

LOOK = """<script>
const seen = {};
seen.captions = [...document.querySelectorAll("caption, figcaption")]
  .filter(it => it.checkVisibility() && it.getBoundingClientRect().height > 10)
  .map(it => it.textContent);
seen.panels = [...document.querySelectorAll("svg[role=img]")]
  .map(it => it.getBoundingClientRect()).filter(it => it.width > 200 && it.height > 100)
  .length;
seen.overflow = document.documentElement.scrollWidth - window.innerWidth;
seen.ground = getComputedStyle(document.body).backgroundColor;
document.title = JSON.stringify(seen);
</script>"""
"""Put into a copy of the page: the page itself has no script."""


@pytest.fixture(scope="module")
def chromium() -> str:
    found = shutil.which("chromium")
    if found is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(results(rows=ALL), tmp_path_factory.mktemp("report"))[0]


def browse(
    chromium: str, page: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Open a page without a window and without a net."""
    return subprocess.run(
        [
            chromium,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--enable-logging=stderr",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={page.parent / 'profile'}",
            *arguments,
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )


def looked(chromium: str, report: Path, *arguments: str) -> dict[str, Any]:
    """Return what a copy of the page tells about itself."""
    copy = report.with_name("looked.html")
    copy.write_text(report.read_text(encoding="utf-8") + LOOK, encoding="utf-8")
    dom = browse(chromium, copy, "--dump-dom", *arguments).stdout
    title = re.findall(r"<title>(.*?)</title>", dom, re.DOTALL)[0]
    seen: dict[str, Any] = json.loads(html.unescape(title))
    return seen


def test_the_page_opens_without_a_word(chromium: str, report: Path) -> None:
    run = browse(chromium, report, "--dump-dom")
    assert "</html>" in run.stdout
    assert "CONSOLE" not in run.stderr


def test_a_word_on_the_console_would_be_noticed(chromium: str, report: Path) -> None:
    bad = report.with_name("bad.html")
    bad.write_text("<script>missing()</script>", encoding="utf-8")
    assert "CONSOLE" in browse(chromium, bad, "--dump-dom").stderr


@pytest.mark.parametrize("width", [1280, 500])
def test_every_table_and_figure_shows_and_nothing_is_cut_off(
    chromium: str, report: Path, width: int
) -> None:
    seen = looked(chromium, report, f"--window-size={width},900")
    captions = "\n".join(seen["captions"])
    for name in range(1, 13):
        assert f"Table {name}. " in captions
    for number in (1, 2, 3):
        for axis in AXES:
            assert f"Figure {number}. " in captions
            assert f"against {axis.label}" in captions
    assert seen["panels"] == sum(
        len(AXES) * len(figure["panels"]) for figure in results(rows=ALL)["figures"]
    )
    assert seen["overflow"] <= 0
