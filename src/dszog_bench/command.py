"""`dszog bench`: measures, shows how far it is, writes the tables."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from dszog._validation import did_you_mean
from dszog.errors import InputError
from dszog.progress.counting import counting_bar
from dszog_bench.measures import FULL, MEASURES, QUICK, Effort
from dszog_bench.peer_table import PEER_TABLES, peer_table
from dszog_bench.records import HEADS, Row, as_json, markdown, versions, write_json
from dszog_paper.data.fetch import Folder, named_folder


def run_bench(
    console: Console,
    *,
    what: Sequence[str] = (),
    output: Path,
    full: bool = False,
    data: Folder | None = None,
) -> int:
    """Measure; return 0 if every bar that was looked at is met, else 3.

    Parameters
    ----------
    console : rich.console.Console
    what : sequence of str
        Names of measures and of tables of peers; all measures if none is given, and
        with `full` all tables as well.
    output : Path
        Where JSON and Markdown go. Rows of peers that are there are not made again.
    full : bool
        More blocks, larger tables.
    data : path, optional
        Folder with a9a and a9a.t.
    """
    names = _wanted(what, full)
    named_folder(data)  # refused before anything is measured
    effort = replace(FULL if full else QUICK, data=data)
    for name, version in versions().items():
        console.print(f"{name} {version}", style="dim", markup=False)
    is_met = True
    with counting_bar(console, "bench") as bar:
        line = bar.add_task("", total=len(names))
        for name in names:
            bar.update(line, description=name)
            if not console.is_terminal:
                console.print(f"{name} ...", markup=False)
            started = time.perf_counter()
            if name in PEER_TABLES:
                peer_table(console, name, output, full=full)
            else:
                rows = _measure(console, name, effort)
                is_met &= all(row.is_met is not False for row in rows)
                _keep(output, name, rows, full, time.perf_counter() - started)
            bar.advance(line)
    for path in _write(output):
        console.print(f"Wrote {path}", markup=False)
    return 0 if is_met else 3


def _wanted(what: Sequence[str], full: bool) -> list[str]:
    known = [*MEASURES, *PEER_TABLES]
    for name in what:
        if name not in known:
            raise InputError(
                f"dszog bench: there is nothing called {name!r} to measure."
                f"{did_you_mean(name, known)} Choose from {', '.join(known)}."
            )
    if what:
        return list(dict.fromkeys(what))
    return known if full else list(MEASURES)


def _measure(console: Console, name: str, effort: Effort) -> list[Row]:
    rows = []
    for row in MEASURES[name](effort):
        rows.append(row)
        figure = " ".join(row.cells()[1:2])
        console.print(f"  {row.what}: {figure}{_verdict(row)}", markup=False)
    return rows


def _verdict(row: Row) -> str:
    _, _, spread, bar, met = row.cells()
    spread = f" ({spread})" if spread else ""
    return (
        f"{spread}, bar {bar}: {'met' if met == 'yes' else 'missed'}" if bar else spread
    )


def _keep(
    output: Path, name: str, rows: Sequence[Row], full: bool, seconds: float
) -> None:
    content = {
        "measure": name,
        "effort": "full" if full else "quick",
        "seconds": seconds,
        "versions": versions(),
        "rows": [as_json(row) for row in rows],
    }
    write_json(output / f"{name}.json", content)


def _write(output: Path) -> list[Path]:
    """Write one table of all measures in the folder, those of earlier calls too."""
    cells: list[list[str]] = []
    texts = []
    for name in MEASURES:
        path = output / f"{name}.json"
        if not path.exists():
            continue
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for stored in content["rows"]:
            row = Row(**{key: stored[key] for key in stored if key != "is_met"})
            cells.append(row.cells())
        texts.append(
            f"{name}: {content['effort']}, {content['seconds']:.0f} s, "
            + ", ".join(f"{key} {value}" for key, value in content["versions"].items())
        )
    if not cells:
        return []
    path = output / "bench.md"
    notes = "\n".join(f"- {text}" for text in texts)
    path.write_text(f"{markdown(HEADS, cells)}\n{notes}\n", encoding="utf-8")
    return [path]
