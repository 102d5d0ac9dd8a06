"""The report: one page with its figures, and all numbers as JSON beside it.

What is said is in the folder ``templates``; what is computed for it is in the modules
here, whose functions the templates call.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from dszog.cli.files import as_json, known, write_whole
from dszog_paper.report import cells, figures, readings, words
from dszog_paper.report.words import Data

__all__ = ["page", "write_report"]


def write_report(results: Data, folder: Path) -> list[Path]:
    """Write ``report.html`` and ``results.json``; return their paths."""
    # The results are what :func:`dszog_paper.results.assemble` returns, or the same
    # read from JSON. Everything is made before anything is written, and each file takes
    # the place of an older one in one step.
    plain = known(results)
    files = {
        "report.html": page(plain),
        "results.json": as_json(plain, indent=None),
    }
    for name, content in files.items():
        write_whole(folder / name, content.encode())
    return [folder / name for name in files]


def page(results: Data) -> str:
    """Return the report as one page that needs nothing but itself."""
    environment = Environment(
        loader=PackageLoader("dszog_paper.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        results,
        results=results,
        sections=_sections(results),
        words=words,
        readings=readings,
        cells=cells,
        drawing=figures,
    )


def _sections(results: Data) -> list[dict[str, Any]]:
    """Return the sections in their order: kind, address, heading, what it shows."""
    descriptions = [("description", part) for part in results["descriptions"]]
    numbered = [*descriptions, *(("table", part) for part in results["tables"])]
    found = [_section("verdict", "The verdict")] if readings.verdict(results) else []
    found += [
        _section("run", "What was run"),
        _section("reading", "How to read the tables"),
    ]
    for kind, part in sorted(numbered, key=lambda item: _place(item[1]["number"])):
        found.append(_section(kind, part["title"], f"Table {part['number']}", part))
    for part in results["figures"]:
        name = f"Figure {part['number']}"
        found.append(_section("figure", part["title"], name, part))
    return found


def _section(
    kind: str, title: str, name: str = "", part: Data | None = None
) -> dict[str, Any]:
    return {
        "kind": kind,
        "name": name,
        "id": re.sub(r"[^a-z0-9]+", "-", (name or kind).lower()).strip("-"),
        "heading": f"{name}. {title}" if name else title,
        "part": part,
    }


def _place(number: object) -> tuple[bool, int, str]:
    """Sort by number; what has a letter instead comes last."""
    if isinstance(number, int):
        return False, number, ""
    return True, 0, str(number)
