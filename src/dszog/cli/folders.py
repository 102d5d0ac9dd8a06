"""Where commands write."""

from __future__ import annotations

from pathlib import Path

from dszog.errors import InputError


def check_output(command: str, output: Path) -> None:
    """Refuse a file where a command is to make a folder."""
    if output.exists() and not output.is_dir():
        raise InputError(
            f"dszog {command}: --output must be a folder, got the file {output}. Name "
            "another."
        )
