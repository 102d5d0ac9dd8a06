"""What is done to a downloaded file before it is kept."""

from __future__ import annotations

import csv
import io

from dszog.errors import InputError
from dszog_paper.data.columns import COMMUNITIES, COMPAS


def name_communities_columns(original: bytes) -> bytes:
    """Put the names of the columns before ``communities.data``, which has none."""
    return ",".join(COMMUNITIES).encode() + b"\n" + original


def keep_compas_columns(original: bytes) -> bytes:
    """Keep 21 of the 53 columns of ``compas-scores-two-years.csv``.

    The others name people, tell dates and cases, or repeat a column.
    """
    rows = csv.reader(io.StringIO(original.decode("utf-8"), newline=""), strict=True)
    header = next(rows, [])
    absent = [name for name in COMPAS if name not in header]
    if absent:
        raise InputError(
            f"compas: the original file has no column {absent[0]!r}. Its format "
            "changed: put a file compas-two-years.csv into your data folder by hand."
        )
    places = [header.index(name) for name in COMPAS]  # where a name repeats: the first
    kept = io.StringIO()
    writer = csv.writer(kept, lineterminator="\n")
    writer.writerow(COMPAS)
    writer.writerows([row[place] for place in places] for row in rows)
    return kept.getvalue().encode()
