"""`dszog bench`: measures, shows how far it is, writes the tables."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from dszog.contract.validation import did_you_mean
from dszog.errors import InputError
from dszog.show.progress.terminal import counting_bar
from dszog_bench.measures import BY_DEFAULT, FIRST_SEEDS, MEASURES
from dszog_bench.records import (
    FULL,
    QUICK,
    Effort,
    Row,
    machine,
    read_record,
    table,
    versions,
    write_record,
)
from dszog_paper.data.fetch import named_folder

LIST = "list"  # the word that shows what there is


def run_bench(
    console: Console,
    *,
    what: Sequence[str] = (),
    output: Path,
    full: bool = False,
    data: Path | None = None,
) -> int:
    """Measure; return 0 if every bar that was looked at is met, else 3."""
    # Without a name what takes minutes is measured, and with `full` everything, with
    # more blocks and seeds and longer runs. JSON and Markdown go to `output`, where
    # runs of peers that are there are not made again. ``list`` shows the names.
    names = _wanted(what, full)
    if LIST in names:
        for name, measure in MEASURES.items():
            line = (measure.__doc__ or "").splitlines()[0]
            console.print(f"{name:16} {line}", markup=False, soft_wrap=True)
        return 0
    named_folder(data)  # refused before anything is measured
    effort = replace(FULL if full else QUICK, data=data, output=output)
    for name, version in versions().items():
        console.print(f"{name} {version}", style="dim", markup=False)
    is_met = True
    with counting_bar(console, "bench") as bar:
        task = bar.add_task("", total=len(names))
        for name in names:
            bar.update(task, description=name)
            if not console.is_terminal:
                console.print(f"{name} ...", markup=False)
            is_met &= _measure(console, name, effort, full)
            bar.advance(task)
    console.print(f"Wrote {_write(output)}", markup=False)
    return 0 if is_met else 3


def _wanted(what: Sequence[str], full: bool) -> list[str]:
    known = [*MEASURES, LIST]
    for name in what:
        if name not in known:
            raise InputError(
                f"dszog bench: there is nothing called {name!r} to measure."
                f"{did_you_mean(name, known)} Choose from {', '.join(known)}."
            )
    return list(dict.fromkeys(what)) or (list(MEASURES) if full else list(BY_DEFAULT))


def _measure(console: Console, name: str, effort: Effort, full: bool) -> bool:
    """Make and keep the rows of a measure; return whether no bar is missed."""
    started, rows = time.perf_counter(), []
    for row in MEASURES[name](effort):
        rows.append(row)
        console.print(f"  {_line(row)}", markup=False, highlight=False)
    write_record(
        effort.output / f"{name}.json",
        rows,
        measure=name,
        command=f"dszog bench {name}{' --full' if full else ''}",
        seeds=[*effort.seeds(FIRST_SEEDS[name])] if name in FIRST_SEEDS else [0],
        seconds=time.perf_counter() - started,
        machine=machine(),
        versions=versions(),
    )
    return all(row.is_met is not False for row in rows)


def _line(row: Row) -> str:
    what, figure, spread, bar, met = row.cells()
    words = [f"{what}: {figure or row.details.get('outcome', '')}"]
    words += [f"({spread})"] if spread else []
    verdict = f", bar {bar}: {'met' if met == 'yes' else 'missed'}" if bar else ""
    return " ".join(words) + verdict


def _write(output: Path) -> Path:
    """Write a table for each measure in the folder, those of earlier calls too."""
    parts = []
    for name in MEASURES:
        path = output / f"{name}.json"
        if not path.exists():
            continue
        facts, rows = read_record(path)
        used = facts["machine"] | facts["versions"]
        words = ", ".join(f"{key} {value}" for key, value in used.items() if value)
        parts.append(f"## {name}\n\n{table(rows)}\n`{facts['command']}`: {words}\n")
    path = output / "bench.md"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path
