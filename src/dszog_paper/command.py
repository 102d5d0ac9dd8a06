"""`dszog paper`: runs what is missing, shows how far it is, writes the report."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from dszog.errors import InputError, MissingExtraError
from dszog.progress.counting import counting_bar
from dszog.progress.summary import duration
from dszog_paper.data import DATA_SETS, fetch, find
from dszog_paper.execute import Pace, execute
from dszog_paper.plan import PAIRWISE, REAL_FAIRNESS, Planner, Table, missing
from dszog_paper.protocol import FULL, QUICK, Limit, Protocol
from dszog_paper.report import write_report
from dszog_paper.results import assemble
from dszog_paper.runner import FILES
from dszog_paper.store import Store
from dszog_paper.units import Unit

DESCRIBED = {"1": 2, "4": 2, "5": 3}  # tables of words, and whose data they tell of
FIGURES = {"fig1": 2, "fig2": 3, "fig3": 10}
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
    dask: str | None = None,
    data: Path | None = None,
    download: bool = False,
    command: str = "",
) -> int:
    """Make the tables and figures; return 0 when all of them are complete.

    Parameters
    ----------
    console : rich.console.Console
    tables : sequence of str
        Numbers of tables, ``fig1`` to ``fig3``, or ``F`` for fairness on real data; all
        of them if none is given.
    output : Path
        Where the records and the report go. Records that are there are not made again.
    full : bool
        The whole protocol instead of the quick one.
    limit : {"time", "queries"}
        What ends the runs of other methods than DSZOG.
    seconds, repetitions : optional
        Other than the protocol has.
    jobs : int
        Processes.
    dask : str, optional
        Address of a Dask scheduler, which is used instead.
    data : Path, optional
        Folder with the real data sets.
    download : bool
        Fetch those that are not at hand from their sources.
    command : str
        What was typed, for the report.
    """
    protocol = replace(FULL if full else QUICK, limit=limit)
    if seconds is not None:
        protocol = replace(protocol, seconds=seconds)
    if repetitions is not None:
        protocol = replace(
            protocol,
            n_repetitions=repetitions,
            n_selection=min(repetitions, protocol.n_selection),
        )
    folder = None if data is None else str(data)
    stand_ins, notes = _find_data(folder, download=download)
    notes = [*_about(protocol), *notes]
    planned = Planner(protocol, stand_ins).tables()
    described = _wanted(planned, tables)
    in_words = [name for name in tables if _short(name) in DESCRIBED]
    numbers = [name for name in tables if name not in in_words]
    wanted = _wanted(planned, numbers) if numbers or not tables else []
    for note in notes:
        console.print(note, markup=False)
    store = Store(output / "units")
    with _client(dask) as client:
        _run(console, wanted, store, jobs=jobs, client=client, data=folder)
    results = assemble(
        wanted,
        store.get,
        protocol,
        described=described,
        command=command,
        notes=notes,
        data=folder,
    )
    for path in write_report(results, output):
        if path.suffix in (".html", ".md", ".json"):
            console.print(f"Wrote {path}", markup=False)
    empty = [
        f"{table['number']}, {row['data']}, {column}"
        for table in results["tables"]
        for row in table["rows"]
        for column, cell in row["cells"].items()
        if cell is None
    ]
    if empty:
        console.print(f"Not complete: {'; '.join(empty[:5])}", markup=False)
    return 1 if empty else 0


def _about(protocol: Protocol) -> list[str]:
    """Say what kind of run this is."""
    end = (
        f"{protocol.seconds:g} s a run"
        if protocol.limit == "time"
        else f"{protocol.queries:,} loss queries a run"
    )
    kind = (
        "The whole protocol"
        if protocol.name == "full"
        else "A quick version, with fewer repetitions and grid points than the paper"
    )
    return [
        f"{kind}: settings chosen on {protocol.n_selection} repetitions (validation "
        f"data only), {protocol.n_repetitions} reported; DSZOG makes "
        f"{protocol.iterations:,} iterations, other methods get {end}."
    ]


def _find_data(data: str | None, *, download: bool) -> tuple[frozenset[str], list[str]]:
    """Return which real data sets have to be replaced by stand-ins, and why."""
    absent = []
    for name in (*PAIRWISE, *REAL_FAIRNESS):
        files = DATA_SETS.get(FILES.get(name, name))
        if files is None:
            continue  # generated
        if download:
            fetch(files.files["train"], data=data)
        elif not find(files.files["train"], data=data):
            absent.append(name)
    if not absent:
        return frozenset(), []
    return frozenset(absent), [
        f"Not at hand, replaced by generated stand-ins: {', '.join(absent)}. Their "
        "numbers say nothing about the real data. Name a folder with --data, or allow "
        "--download."
    ]


def _wanted(tables: Sequence[Table], names: Sequence[str]) -> list[Table]:
    """Return the tables that were asked for; refuse names that there are not."""
    known = {str(table.number): table for table in tables}
    chosen: dict[str, Table] = {}
    for name in names:
        short = _short(name)
        number = str(DESCRIBED.get(short, FIGURES.get(short, short))).upper()
        if number not in known:
            offered = [*known, *DESCRIBED, *FIGURES]
            raise InputError(
                f"dszog paper: there is no table {name!r}. Choose from "
                f"{', '.join(sorted(offered, key=_order))}."
            )
        chosen[number] = known[number]
    return list(chosen.values()) if names else list(tables)


def _short(name: str) -> str:
    return name.lower().removeprefix("table").strip()


def _order(name: str) -> tuple[int, str]:
    return (int(name), "") if name.isdigit() else (100, name)


def _client(address: str | None) -> Any:
    if address is None:
        return nullcontext()
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingExtraError.of("--dask", "dask.distributed", "dask") from error
    try:
        return Client(address)
    except (OSError, ValueError) as error:
        raise InputError(
            "dszog paper: --dask must be the address of a Dask scheduler, and "
            f"{address!r} does not answer as one ({error}). Start one with `dask "
            "scheduler`, and pass the address that it prints, such as "
            "tcp://127.0.0.1:8786."
        ) from None


def _run(
    console: Console,
    tables: Sequence[Table],
    store: Store,
    *,
    jobs: int,
    client: Any,
    data: str | None,
) -> None:
    """Run stage after stage until nothing is missing."""
    pace = Pace(jobs)
    n_done, stage = 0, 0
    with counting_bar(console, "runs") as bar:
        line = bar.add_task("", total=None)
        last = time.monotonic()
        while units := missing(tables, store.get):
            stage += 1
            left = {unit.key: unit for unit in units}
            bar.update(line, total=n_done + len(units))

            def report(unit: Unit, record: dict[str, Any]) -> None:
                nonlocal n_done, last
                n_done += 1
                left.pop(unit.key, None)  # noqa: B023  (used before the next stage)
                pace.note(unit, record)
                text = (
                    f"stage {stage}, about "  # noqa: B023
                    f"{duration(pace.left(list(left.values())))} left in it"  # noqa: B023
                )
                bar.update(line, completed=n_done, description=text)
                if not console.is_terminal and time.monotonic() - last > LINE_EVERY:
                    last = time.monotonic()
                    console.print(f"{n_done} runs, {text}", markup=False)

            execute(units, store, data=data, jobs=jobs, client=client, report=report)
