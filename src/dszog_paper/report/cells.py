"""What stands in the cells of a table, as text, for both forms of the report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from dszog_paper.report.readings import NEAR, Entry, entries
from dszog_paper.report.words import (
    NOTHING,
    Data,
    accuracy,
    count,
    ends,
    events,
    is_number,
    number,
    percent,
    printed,
    seconds,
    settings,
)

Column: TypeAlias = tuple[str, Callable[[dict[str, Any]], str]]

DETAILS: tuple[Column, ...] = (
    ("paper (%)", lambda cell: printed(cell["printed"]) or NOTHING),
    ("ours (%)", lambda cell: accuracy(cell["mean"], cell["spread"])),
    ("runs", lambda cell: count(cell["n"])),
    ("majority share", lambda cell: percent(cell["majority_share"], 2)),
    ("logistic regression", lambda cell: percent(cell["logistic_accuracy"], 2)),
    ("violated at |w| = 1", lambda cell: percent(cell["unit_share_violated"])),
    ("beyond 0.01", lambda cell: percent(cell["unit_share_beyond"])),
    ("worst at |w| = 1", lambda cell: number(cell["unit_worst_violation"])),
    ("violated as trained", lambda cell: percent(cell["share_violated"])),
    ("worst as trained", lambda cell: number(cell["worst_violation"])),
    ("|w|", lambda cell: number(cell["norm"])),
    ("mean loss", lambda cell: number(cell["objective"])),
    ("settings", lambda cell: settings(cell["setting"])),
    ("time", lambda cell: seconds(cell["seconds"])),
    ("in subproblems", lambda cell: percent(cell["share_subproblem"])),
    ("iterations", lambda cell: count(cell["iterations"])),
    ("loss queries", lambda cell: count(cell["loss_queries"])),
    ("constraint queries", lambda cell: count(cell["constraint_queries"])),
    ("rows in subproblems", lambda cell: count(cell["rows_respected"])),
    ("ended by", lambda cell: ends(cell["ended_by"])),
    ("events", lambda cell: events(cell["events"])),
)
"""Headings and texts of the table with all numbers."""

WORDY = frozenset({"settings", "events"})  # columns of words, not of numbers

REFERENCES = (
    ("Majority share", "majority_share"),
    ("Logistic regression", "logistic_accuracy"),
)
"""Rows that a table of accuracies begins with: they belong to the data."""

GROUP_RATES = (
    ("accuracy", "accuracy"),
    ("false positives", "false_positive_rate"),
    ("false negatives", "false_negative_rate"),
)


def table_name(number: object) -> str:
    """Return how a table is called."""
    return f"Table {number}"


def row_name(row: Data) -> str:
    """Return the name of a data set, marked if it is a stand-in."""
    return f"{row['data']} (stand-in)" if row["stand_in"] else str(row["data"])


def reference(row: Data, field: str) -> str:
    """Return a share that belongs to the data, over the cells of a row.

    Tables whose cells have different numbers of runs have a range.
    """
    cells = [cell for cell in row["cells"].values() if cell is not None]
    known = sorted({percent(cell[field], 2) for cell in cells})
    if len(known) < 2:
        return "".join(known) or NOTHING
    values = sorted(cell[field] for cell in cells if is_number(cell[field]))
    return f"{percent(values[0], 2)} to {percent(values[-1], 2)}"


def cell_lines(cell: dict[str, Any]) -> list[str]:
    """Return what stands below an accuracy."""
    known = printed(cell["printed"])
    lines = [] if known is None else [f"paper {known}"]
    lines.append(
        f"violated {percent(cell['unit_share_violated'])}, "
        f"worst {number(cell['unit_worst_violation'])}"
    )
    lines.append(f"beyond 0.01: {percent(cell['unit_share_beyond'])}")
    share = cell["majority_share"]
    if is_number(share) and abs(cell["mean"] - 100 * share) <= NEAR:
        lines.append("at the majority share")
    return lines


def firsts(table: Data) -> set[tuple[str, str]]:
    """Return data and column of the highest accuracies of a table."""
    best: dict[str, float] = {}
    for entry in entries(table):
        best[entry.data] = max(entry.mean, best.get(entry.data, entry.mean))
    return {
        (entry.data, entry.column)
        for entry in entries(table)
        if entry.mean == best[entry.data]
    }


def details(entry: Entry) -> list[str]:
    """Return all numbers of a cell."""
    return [text(entry.cell) for _, text in DETAILS]


def group_tables(groups: Sequence[Data]) -> dict[str, list[Data]]:
    """Return the entries about groups, by data set."""
    tables: dict[str, list[Data]] = {}
    for entry in groups:
        tables.setdefault(str(entry["data"]), []).append(entry)
    return tables


def group_rows(entries_: Sequence[Data]) -> list[tuple[str, list[str]]]:
    """Return name, size and rates of each group, for the methods one after another."""
    names = {name: None for entry in entries_ for name in entry["groups"]}
    rows = []
    for name in names:
        known = [entry["groups"].get(name, {}) for entry in entries_]
        sizes = [rates["n"] for rates in known if "n" in rates]
        texts = [count(sizes[0]) if sizes else NOTHING]
        texts += [percent(r.get(field)) for r in known for _, field in GROUP_RATES]
        rows.append((_group_name(str(name)), texts))
    return rows


def _group_name(name: str) -> str:
    """Return ``sex = Female: yes`` for ``sex = Female = 1``."""
    group, equals, value = name.rpartition(" = ")
    answer = {"0": "no", "1": "yes"}.get(value)
    return f"{group}: {answer}" if equals and answer else name


def ordered(results: Data) -> list[tuple[str, Data]]:
    """Return descriptions and tables in the order of their numbers.

    Each with its kind, ``"description"`` or ``"table"``.
    """
    parts = [("description", part) for part in results["descriptions"]]
    parts += [("table", part) for part in results["tables"]]

    def place(part: tuple[str, Data]) -> tuple[bool, int, str]:
        number_ = part[1]["number"]
        is_int = isinstance(number_, int)
        return not is_int, number_ if is_int else 0, str(number_)

    return sorted(parts, key=place)
