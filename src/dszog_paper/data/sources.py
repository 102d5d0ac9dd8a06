"""Where the real data come from (``sources.toml``)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file: its name in a folder, its source, and its fingerprint.

    In a folder it may also be compressed, as ``name.xz``, ``name.gz`` or ``name.bz2``.
    """

    name: str
    url: str
    sha256: str
    n_bytes: int


_TEXT = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
DATA_SETS: dict[str, dict[str, DataFile]] = {
    name: {part: DataFile(**file) for part, file in entry["files"].items()}
    for name, entry in tomllib.loads(_TEXT).items()
}
"""The files of the real data sets, by name and by part: "train" or "test"."""
