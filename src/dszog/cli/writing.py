"""How commands write files: whole or not at all, and JSON that every reader takes."""

from __future__ import annotations

import math
import os
import platform
import sys
from pathlib import Path
from typing import Any

import numpy as np
import scipy

from dszog._version import VERSION
from dszog.contract.validation import shown
from dszog.errors import DszogError


def write_text(path: Path, content: str, advice: str = "") -> None:
    """Write a file that is either whole under its name or as it was before.

    Parameters
    ----------
    path : path
    content : str
    advice : str
        What to do if it cannot be written, beside naming another place.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        beside.write_text(content, encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise DszogError(
            f"dszog: {shown(str(path))} cannot be written ({error.strerror}). Name "
            f"another place with --output{advice}."
        ) from error


def known(value: Any) -> Any:
    """Return JSON in which every number is one: null is what is not known."""
    if isinstance(value, dict):
        return {str(key): known(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [known(item) for item in value]
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    return int(value) if isinstance(value, np.integer) else value


def versions() -> dict[str, str]:
    """Return what figures were made with."""
    return {
        "dszog": VERSION,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "python": platform.python_version(),
        "platform": sys.platform,
    }
