"""`dszog bench`: the only part of the library that knows of its benchmarks."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from dszog.cli.files import check_output
from dszog.cli.options import Flag, OutputFolder
from dszog.errors import InputError, MissingExtraError


def bench(
    *what: str,
    output: OutputFolder = Path("dszog-bench"),
    quick: Flag = False,
    full: Flag = False,
    data: Path | None = None,
) -> int:
    """Measure the library: what an iteration costs, and what it reaches.

    Without a name and --full: what the library costs, in a few minutes. With --full all
    measures with more repetitions, which take hours; runs of other libraries are kept
    as they finish: interrupt, and call again with the same --output to go on.

    For example:

        dszog bench list                     the measures, a line each

        dszog bench a9a --data FOLDER        193.8 million pairs from a cold start

        dszog bench iteration constraints    two measures

        dszog bench peers                    other libraries on one problem, quickly

    Parameters
    ----------
    what
        Names of measures; `dszog bench list` shows them.
    output
        Folder for JSON and Markdown.
    quick
        The quick version, as without --full.
    full
        More repetitions, and without a name all measures.
    data
        Folder with a9a, or set DSZOG_DATA. Without either, generated
        stand-ins take their place, named as such.
    """
    if quick and full:
        raise InputError(
            "got both --quick and --full. Give one; --quick is what happens without "
            "either."
        )
    check_output(output)
    try:
        from dszog_bench.command import run_bench
    except ModuleNotFoundError as missing:
        raise MissingExtraError.of("dszog bench", missing.name, "bench") from missing
    return run_bench(Console(), what=what, output=output, full=full, data=data)
