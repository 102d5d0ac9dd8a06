"""What stands in the cells of a table, as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

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
    seconds,
    settings,
)

NEAR = 1.0  # points from the majority share that count as "at the majority share"
VANISHED = 1e-6  # a norm of the weights below this is zero but for rounding

DETAILS: dict[str, Callable[[dict[str, Any]], str]] = {
    "paper (%)": lambda cell: accuracy(*(cell["printed"] or [None])),
    "ours (%)": lambda cell: accuracy(cell["mean"], cell["spread"]),
    "runs": lambda cell: count(cell["n"]),
    "majority share": lambda cell: percent(cell["majority_share"], 2),
    "logistic regression": lambda cell: percent(cell["logistic_accuracy"], 2),
    "violated at |w| = 1": lambda cell: percent(cell["unit_share_violated"]),
    "beyond 0.01": lambda cell: percent(cell["unit_share_beyond"]),
    "worst at |w| = 1": lambda cell: number(cell["unit_worst_violation"]),
    "violated as trained": lambda cell: percent(cell["share_violated"]),
    "worst as trained": lambda cell: number(cell["worst_violation"]),
    "|w|": lambda cell: number(cell["norm"]),
    "mean loss": lambda cell: number(cell["objective"]),
    "settings": lambda cell: settings(cell["setting"]),
    "time": lambda cell: seconds(cell["seconds"]),
    "in subproblems": lambda cell: percent(cell["share_subproblem"]),
    "iterations": lambda cell: count(cell["iterations"]),
    "loss queries": lambda cell: count(cell["loss_queries"]),
    "constraint queries": lambda cell: count(cell["constraint_queries"]),
    "rows in subproblems": lambda cell: count(cell["rows_respected"]),
    "ended by": lambda cell: ends(cell["ended_by"]),
    "events": lambda cell: events(cell["events"]),
}
"""Headings and texts of the table with all numbers."""

WORDY = ("settings", "events")  # columns of words, not of numbers

REFERENCES = {
    "Majority share": "majority_share",
    "Logistic regression": "logistic_accuracy",
}
"""Rows that a table of accuracies begins with: they belong to the data."""


class Entry(NamedTuple):
    """A cell of a table that was run, and where it stands."""

    data: str
    column: str
    cell: dict[str, Any]


def entries(table: Data) -> list[Entry]:
    return [
        Entry(row["data"], column, row["cells"][column])
        for row in table["rows"]
        for column in table["columns"]
        if row["cells"].get(column) is not None
    ]


def row_names(table: Data) -> list[str]:
    return [
        f"{row['data']} (stand-in)" if row["stand_in"] else str(row["data"])
        for row in table["rows"]
    ]


def reference(row: Data, field: str) -> str:
    """Return a share that belongs to the data, over the cells of a row."""
    # Tables whose cells have different numbers of runs have a range.
    values = [cell[field] for cell in row["cells"].values() if cell is not None]
    if len({percent(value, 2) for value in values}) < 2:
        return percent(values[0], 2) if values else NOTHING
    known = sorted(filter(is_number, values))
    return f"{percent(known[0], 2)} to {percent(known[-1], 2)}"


def cell_lines(cell: dict[str, Any]) -> list[str]:
    """Return what stands below an accuracy."""
    lines = [f"paper {accuracy(*cell['printed'])}"] if cell["printed"] else []
    share, worst = cell["unit_share_violated"], cell["unit_worst_violation"]
    lines.append(f"violated {percent(share)}, worst {number(worst)}")
    lines.append(f"beyond 0.01: {percent(cell['unit_share_beyond'])}")
    majority = cell["majority_share"]
    if is_number(majority) and abs(cell["mean"] - 100 * majority) <= NEAR:
        lines.append("at the majority share")
    if is_number(cell["norm"]) and cell["norm"] < VANISHED:
        lines.append("weights of zero: means nothing")
    return lines


def beats_majority(cell: Data) -> bool:
    majority = cell["majority_share"]
    return not is_number(majority) or cell["mean"] > 100.0 * majority


def best_places(table: Data) -> set[tuple[str, str]]:
    """Return data and column of the highest accuracies that beat the majority share."""
    top: dict[str, float] = {}
    for data, _, cell in entries(table):
        top[data] = max(cell["mean"], top.get(data, cell["mean"]))
    return {
        (data, column)
        for data, column, cell in entries(table)
        if cell["mean"] == top[data] and beats_majority(cell)
    }
