"""Writes the report's files, each whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import Any

from dszog_paper.report.figures import AXES, figure_png, file_name
from dszog_paper.report.html import page
from dszog_paper.report.markdown import markdown
from dszog_paper.report.words import Data


def write_report(results: Data, folder: Path) -> list[Path]:
    """Write ``report.html``, ``report.md``, ``results.json`` and ``figures/*.png``.

    Everything is made before anything is written, and each file takes the place of an
    older one in one step.

    Parameters
    ----------
    results : dict
        What :func:`dszog_paper.results.assemble` returns, or the same read from JSON.
    folder : path
        Made if it does not exist.

    Returns
    -------
    list of path
        The files: the page first.
    """
    plain = as_json(results)
    files: dict[str, bytes] = {
        "report.html": page(plain).encode(),
        "report.md": markdown(plain).encode(),
        "results.json": _json(plain).encode(),
    }
    for figure in plain["figures"]:
        for axis in AXES:
            files[f"figures/{file_name(figure, axis)}"] = figure_png(figure, axis)
    return [_put(folder / name, content) for name, content in files.items()]


def as_json(value: Any) -> Any:
    """Return a value as JSON has it; what is not a finite number becomes None."""
    if isinstance(value, dict):
        return {str(key): as_json(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _json(plain: Any) -> str:
    return json.dumps(plain, ensure_ascii=False, allow_nan=False) + "\n"


def _put(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(0o644)  # as other files, not for the owner alone
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path
