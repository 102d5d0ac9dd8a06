"""`dszog paper`: runs what is missing, shows how far it is, writes the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from dszog.errors import InputError, MissingExtraError
from dszog.show.progress.summary import duration
from dszog.show.progress.terminal import counting_bar
from dszog_paper.data import DATA_SETS, fetch, find
from dszog_paper.execute import RecordFolder, execute
from dszog_paper.protocol import FULL, QUICK, Limit, Protocol
from dszog_paper.report import readings, write_report
from dszog_paper.results import FIGURES, assemble
from dszog_paper.runner import FILES
from dszog_paper.tables import PAIRWISE, Table, missing, plan

# Tables of words, and whose data they tell of.
DESCRIBED = {"1": "2", "4": "2", "5": "3"}
DRAWN = {f"fig{number}": str(source) for number, (_, source) in FIGURES.items()}
LINE_EVERY = 15.0  # seconds between lines of progress where there is no terminal


def run_paper(
    console: Console,
    *,
    tables: Sequence[str] = (),
    output: Path,
    full: bool = False,
    limit: Limit = "time",
    seconds: float | None = None,
    repetitions: int | None = None,
    jobs: int = 2,
    data: Path | None = None,
    download: bool = False,
    command: str = "",
) -> None:
    """Make the tables and figures, all of them or those that are named."""
    # Records that are in `output` are not made again. `command` is what was typed, for
    # the report; the other arguments are those of the command line.
    protocol = _protocol(FULL if full else QUICK, limit, seconds, repetitions)
    folder = None if data is None else str(data)
    stand_ins = _absent(folder, download=download)
    notes = _notes(protocol, stand_ins)
    planned = plan(protocol, stand_ins)
    described = _wanted(planned, tables)
    numbers = [name for name in tables if _short(name) not in DESCRIBED]
    wanted = _wanted(planned, numbers) if numbers or not tables else []
    _check_extras(wanted)
    for note in notes:
        console.print(note, markup=False)
    store = RecordFolder(output / "units")
    _run(console, wanted, store, jobs=jobs, data=folder)
    results = assemble(
        wanted,
        store.get,
        protocol,
        described=described,
        command=command,
        notes=notes,
        data=folder,
    )
    for said in readings.verdict(results):
        console.print(f"* {said}", markup=False)
    for path in write_report(results, output):
        console.print(f"Wrote {path}", markup=False)


def _protocol(
    protocol: Protocol, limit: Limit, seconds: float | None, repetitions: int | None
) -> Protocol:
    n = repetitions or protocol.n_repetitions
    return replace(
        protocol,
        limit=limit,
        seconds=seconds or protocol.seconds,
        n_repetitions=n,
        n_selection=min(n, protocol.n_selection),
    )


def _absent(data: str | None, *, download: bool) -> frozenset[str]:
    """Return which real data sets have to be replaced by stand-ins."""
    absent = set()
    for name in PAIRWISE:
        files = DATA_SETS.get(FILES.get(name, name))
        if files is None:
            continue  # generated
        if download:
            fetch(files["train"], data=data)
        elif not find(files["train"], data=data):
            absent.add(name)
    return frozenset(absent)


def _notes(protocol: Protocol, stand_ins: frozenset[str]) -> list[str]:
    """Say what kind of run this is."""
    is_timed, is_full = protocol.limit == "time", protocol.name == "full"
    end = (
        f"{protocol.seconds:g} s of CPU time"
        if is_timed
        else f"{protocol.queries:,} loss queries"
    )
    less = "A quick version, with fewer repetitions and grid points than the paper"
    kind = "The whole protocol" if is_full else less
    notes = [
        f"{kind}: settings chosen on {protocol.n_selection} repetitions (validation "
        f"data only), {protocol.n_repetitions} reported; DSZOG makes "
        f"{protocol.iterations:,} iterations, other methods get {end} a run."
    ]
    if stand_ins:
        names = [name for name in PAIRWISE if name in stand_ins]
        notes.append(
            f"Not at hand, replaced by generated stand-ins: {', '.join(names)}. Their "
            "numbers say nothing about the real data. Name a folder with --data, or "
            "allow --download."
        )
    return notes


def _wanted(tables: Sequence[Table], names: Sequence[str]) -> list[Table]:
    """Return the tables that were asked for; refuse names that are unknown."""
    known = {str(table.number): table for table in tables}
    chosen: dict[str, Table] = {}
    for name in names:
        number = (DESCRIBED | DRAWN).get(_short(name), _short(name)).upper()
        if number not in known:
            offered = sorted([*known, *DESCRIBED, *DRAWN], key=_order)
            raise InputError(
                f"dszog paper: there is no table {name!r}. Choose from "
                f"{', '.join(offered)}."
            )
        chosen[number] = known[number]
    return list(chosen.values()) if names else list(tables)


def _check_extras(tables: Sequence[Table]) -> None:
    """Refuse to run for hours what could not be finished."""
    is_drawn = any(str(table.number) in DRAWN.values() for table in tables)
    for name, needed in (("sklearn", bool(tables)), ("matplotlib", is_drawn)):
        if needed and find_spec(name) is None:
            raise MissingExtraError.of("dszog paper", name, "paper")


def _short(name: str) -> str:
    return name.lower().removeprefix("table").strip()


def _order(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (100, name)


def _run(
    console: Console,
    tables: Sequence[Table],
    store: RecordFolder,
    *,
    jobs: int,
    data: str | None,
) -> None:
    """Run stage after stage until nothing is missing."""
    n_done, stage = 0, 0
    started = last = time.monotonic()
    with counting_bar(console, "runs") as bar:
        line = bar.add_task("", total=None)
        while units := missing(tables, store.get):
            stage, n_known = stage + 1, n_done + len(units)
            bar.update(line, total=n_known)
            with closing(execute(units, store, data=data, jobs=jobs)) as runs:
                for _ in runs:
                    n_done += 1
                    now = time.monotonic()
                    left = duration((now - started) / n_done * (n_known - n_done))
                    text = f"stage {stage}, about {left} left in it"
                    bar.update(line, completed=n_done, description=text)
                    if not console.is_terminal and now - last > LINE_EVERY:
                        last = now
                        console.print(f"{n_done} runs, {text}", markup=False)
