"""`dszog paper`: the only part of the library that knows of the paper's tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from dszog.cli.files import check_output
from dszog.cli.options import Count, Flag, OptionalCount, OutputFolder
from dszog.errors import InputError, MissingExtraError


def paper(
    *tables: str,
    output: OutputFolder = Path("dszog-paper"),
    full: Flag = False,
    limit: Literal["time", "queries"] = "time",
    seconds: float | None = None,
    repetitions: OptionalCount = None,
    jobs: Count = 2,
    data: Path | None = None,
    download: Flag = False,
) -> int:
    """Reproduce the tables and figures of the paper, with what it leaves out.

    Without --full a quick version of everything: fewer repetitions and grid points,
    under 10 minutes on 2 cores. With --full the whole protocol, some hours. Every run
    is kept as it finishes: interrupt, and call again with the same --output to go on.

    For example:

        dszog paper                          all tables and figures, quickly

        dszog paper 2 fig1 --data FOLDER     Table 2 and Figure 1, on real data there

        dszog paper --full --limit queries   the same numbers on every machine

    Parameters
    ----------
    tables
        Numbers of tables (1 to 12), fig1 to fig3, or F for fairness on real data; all
        if none is given.
    output
        Folder for records, report.html and results.json.
    full
        The whole protocol: 10 repetitions, all grids, 10 s of CPU time a run.
    limit
        What ends the runs of other methods than DSZOG; "queries" makes all results
        reproducible bit for bit.
    seconds
        Seconds of CPU time of such a run, instead of the protocol's.
    repetitions
        Reported repetitions, instead of the protocol's.
    jobs
        Number of processes.
    data
        Folder with the real data sets, or set DSZOG_DATA. Missing ones are replaced
        by generated stand-ins, named as such.
    download
        Download missing data sets from their public sources.
    """
    given: dict[str, Any] = locals().copy()

    if jobs < 1:
        raise InputError(f"--jobs must be at least 1, got {jobs}.")
    for name in ("seconds", "repetitions"):
        if given[name] is not None and not given[name] > 0:
            raise InputError(f"--{name} must be above 0, got {given[name]:g}.")
    check_output(output)
    try:
        from dszog_paper.command import run_paper
    except ModuleNotFoundError as missing:
        raise MissingExtraError.of("dszog paper", missing.name, "paper") from missing
    typed = " ".join(["dszog", *sys.argv[1:]])
    run_paper(Console(), command=typed, **given)
    return 0
