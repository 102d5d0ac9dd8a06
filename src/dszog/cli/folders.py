"""Where commands write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dszog.contract.validation import shown
from dszog.errors import InputError


def check_output(command: str, output: Path) -> None:
    """Refuse a file where a command is to make a folder."""
    if output.exists() and not output.is_dir():
        raise InputError(
            f"dszog {command}: --output must be a folder, got the file {output}. Name "
            "another."
        )


def check_output_file(
    command: str, output: Path | None, example: str, read: Sequence[Path] = ()
) -> None:
    """Refuse a place where a command cannot, or had better not, write a file.

    Parameters
    ----------
    command : str
    output : path, optional
        None: the command writes no file.
    example : str
        A name to advise.
    read : sequence of path
        What the command reads, which it must not write over.
    """
    if output is None:
        return
    if output.is_dir():
        raise InputError(
            f"dszog {command}: --output must be a file, got the folder "
            f"{shown(str(output))}. Name a file in it, such as {example}."
        )
    if not output.absolute().parent.is_dir():
        raise InputError(
            f"dszog {command}: the folder of --output {shown(str(output))} is not "
            "there. Make it, or name another."
        )
    if any(output.resolve() == path.resolve() for path in read):
        raise InputError(
            f"dszog {command}: --output {shown(str(output))} is read by the command "
            f"and would be lost. Name another file, such as {example}."
        )
