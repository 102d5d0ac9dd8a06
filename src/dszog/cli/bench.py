"""`dszog bench`: the only part of the library that knows of its benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from dszog.cli.folders import check_output
from dszog.errors import InputError, MissingExtraError


def bench_command(
    console: Console, *, output: Path, quick: bool, full: bool, **more: Any
) -> int:
    """Check what was typed, measure, and return the exit code."""
    if quick and full:
        raise InputError(
            "dszog bench: got both --quick and --full. Give one; --quick is what "
            "happens without either."
        )
    check_output("bench", output)
    try:
        from dszog_bench.command import run_bench
    except ModuleNotFoundError as missing:
        raise MissingExtraError.of("dszog bench", missing.name, "bench") from missing
    return run_bench(console, output=output, full=full, **more)
