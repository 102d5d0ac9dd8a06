"""Where and how commands write: whole files, and JSON that every reader takes."""

from __future__ import annotations

import json
import math
import os
import platform
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from dszog._version import VERSION
from dszog.contract.validation import shown
from dszog.errors import DszogError, InputError
from dszog.save.files import replace_file


def check_output(output: Path) -> None:
    """Refuse a file where a command is to make a folder."""
    if output.exists() and not output.is_dir():
        raise InputError(
            f"--output must be a folder, got the file {output}. Name another."
        )


def check_output_file(
    output: Path | None, example: str, read: Sequence[Path] = ()
) -> None:
    """Refuse a place where a command cannot write a file, or that it reads."""
    if output is None:
        return
    where = shown(str(output))
    if output.is_dir():
        raise InputError(
            f"--output must be a file, got the folder {where}. Name a file in it, such "
            f"as {example}."
        )
    if not output.absolute().parent.is_dir():
        raise InputError(
            f"the folder of --output {where} is not there. Make it, or name another."
        )
    if any(output.resolve() == path.resolve() for path in read):
        raise InputError(
            f"--output {where} is read by the command and would be lost. Name another "
            f"file, such as {example}."
        )


def make_output(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"the folder {shown(str(output))} cannot be made ({error.strerror}). Name "
            "another with --output."
        ) from error


def write_text(path: Path, content: str, advice: str = "") -> None:
    """Write a file of a command, whole or not at all; `advice` is for a failure."""
    try:
        write_whole(path, content.encode())
    except OSError as error:
        raise DszogError(
            f"dszog: {shown(str(path))} cannot be written ({error.strerror}). Name "
            f"another place with --output{advice}."
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file for everybody, whole or not at all; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, [content], mode=0o666, mark=f".{os.getpid()}")


def as_json(value: Any, indent: int | None = 2) -> str:
    """Return JSON in which every number is one: null is what is not known."""
    return json.dumps(known(value), indent=indent, allow_nan=False) + "\n"


def known(value: Any) -> Any:
    """Return a value as JSON has it; what is not a finite number becomes None."""
    if isinstance(value, dict):
        return {str(key): known(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def versions() -> dict[str, str]:
    return {
        "dszog": VERSION,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "platform": sys.platform,
    }
