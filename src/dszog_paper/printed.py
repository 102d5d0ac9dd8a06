"""The numbers that the paper prints (``printed.txt``), to stand beside ours."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

Printed: TypeAlias = tuple[float, float | None]  # mean and spread
Rows: TypeAlias = dict[str, dict[str, Printed]]  # by data set, then by column


def _table(text: str) -> tuple[int, Rows]:
    """Read a table: its number and columns, then a line for each data set."""
    (number, *columns), *lines = (line.split() for line in text.splitlines())
    return int(number), {
        data: dict(zip(columns, map(_entry, entries), strict=True))
        for data, *entries in lines
    }


def _entry(text: str) -> Printed:
    mean, _, spread = text.partition("+-")
    return float(mean), float(spread) if spread else None


_, *_TABLES = Path(__file__).with_suffix(".txt").read_text().strip().split("\n\n")
PRINTED: dict[int | str, Rows] = dict(map(_table, _TABLES))
"""The tables of accuracies, by number."""
