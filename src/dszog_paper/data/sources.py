"""Where the real data come from (``sources.toml``)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_ENTRIES = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file: its name in a folder, its source, and its fingerprint.

    In a folder it may also be compressed, as ``name.xz``, ``name.gz`` or ``name.bz2``.
    """

    name: str
    url: str
    sha256: str
    n_bytes: int


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: its files by part, how to cite it, and on what terms it is given."""

    files: dict[str, DataFile]  # by part: "train", "test"
    citation: str
    licence: str


def _data_set(citation: str, licence: str, files: dict[str, Any]) -> DataSet:
    found = {part: DataFile(**entry) for part, entry in files.items()}
    return DataSet(files=found, citation=citation, licence=licence)


DATA_SETS: dict[str, DataSet] = {
    name: _data_set(**entry) for name, entry in _ENTRIES.items()
}
"""The real data sets by name."""
