"""Where the real data come from (``sources.toml``), and what is done to their files."""

from __future__ import annotations

import csv
import io
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dszog.errors import InputError

_ENTRIES = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


def _names(value: Any) -> Any:
    """Return the names in a text, or in the texts of a table."""
    if isinstance(value, dict):
        return {name: _names(part) for name, part in value.items()}
    return tuple(value.split() if isinstance(value, str) else value)


COLUMNS: dict[str, Any] = {
    name: _names(entry.pop("columns", {})) for name, entry in _ENTRIES.items()
}
"""The columns of Adult, COMPAS and Communities, and the values they may take."""


@dataclass(frozen=True, kw_only=True)
class Original:
    """A published file that is changed before it is used."""

    sha256: str
    prepare: Callable[[bytes], bytes]
    n_bytes: int  # or an upper bound


@dataclass(frozen=True, kw_only=True)
class DataFile:
    """One file: its name in a folder, its source, and its fingerprint.

    In a folder it may also be compressed, as ``name.xz``, ``name.gz`` or ``name.bz2``.
    """

    name: str
    url: str
    sha256: str
    n_bytes: int
    original: Original | None = None

    @property
    def max_bytes(self) -> int:
        """How much is downloaded at most: line ends may take two bytes there."""
        return 2 * (self.original.n_bytes if self.original else self.n_bytes)


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A data set: its files by part, how to cite it, and on what terms it is given."""

    files: dict[str, DataFile]  # by part: "train", "test"
    citation: str
    licence: str


# --------------------------------------------------- what is done to a published file


def name_communities_columns(original: bytes) -> bytes:
    """Put the names of the columns before ``communities.data``, which has none."""
    return ",".join(COLUMNS["communities"]["all"]).encode() + b"\n" + original


def keep_compas_columns(original: bytes) -> bytes:
    """Keep 21 of the 53 columns of ``compas-scores-two-years.csv``."""
    # The others name people, tell dates and cases, or repeat a column.
    columns = COLUMNS["compas"]["all"]
    rows = csv.reader(io.StringIO(original.decode("utf-8"), newline=""), strict=True)
    header = next(rows, [])
    absent = [name for name in columns if name not in header]
    if absent:
        raise InputError(
            f"compas: the original file has no column {absent[0]!r}. Its format "
            "changed: put a file compas-two-years.csv into your data folder by hand."
        )
    places = [header.index(name) for name in columns]  # where a name repeats: the first
    kept = io.StringIO()
    writer = csv.writer(kept, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[place] for place in places] for row in rows)
    return kept.getvalue().encode()


# ----------------------------------------------------------------------- the data sets

PREPARE = {"compas": keep_compas_columns, "communities": name_communities_columns}


def _data_set(name: str, citation: str, licence: str, files: dict[str, Any]) -> DataSet:
    found = {}
    for part, entry in files.items():
        original = entry.pop("original", None)
        if original is not None:
            original = Original(prepare=PREPARE[name], **original)
        found[part] = DataFile(original=original, **entry)
    return DataSet(files=found, citation=citation, licence=licence)


DATA_SETS: dict[str, DataSet] = {
    name: _data_set(name, **entry) for name, entry in _ENTRIES.items()
}
"""The real data sets by name."""
