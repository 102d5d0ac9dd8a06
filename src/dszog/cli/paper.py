"""`dszog paper`: the only part of the library that knows of the paper's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from dszog.cli.folders import check_output
from dszog.errors import InputError, MissingExtraError


def paper_command(console: Console, *, output: Path, jobs: int, **more: Any) -> int:
    """Check what was typed, run, and return the exit code."""
    if jobs < 1:
        raise InputError(f"dszog paper: --jobs must be at least 1, got {jobs}.")
    for name in ("seconds", "repetitions"):
        value = more.get(name)
        if value is not None and not value > 0:
            raise InputError(f"dszog paper: --{name} must be above 0, got {value:g}.")
    check_output("paper", output)
    try:
        from dszog_paper.command import run_paper
    except ModuleNotFoundError as missing:
        raise MissingExtraError.of("dszog paper", missing.name, "paper") from missing
    return run_paper(console, output=output, jobs=jobs, **more)
