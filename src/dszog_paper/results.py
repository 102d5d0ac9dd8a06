"""Turns records into the tables and figures of the report, as plain data.

The layout of what :func:`assemble` returns is what the report, and the JSON file beside
it, hold::

    meta          date, versions, command, protocol, notes
    descriptions  Tables 1, 4 and 5: columns and rows of text
    tables        number, title, columns, rows; each row has a cell per column
    figures       number, title, panels; each panel has curves
    records       every run, but for its trace, which stays in its own file
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import zip_longest
from statistics import fmean, stdev
from typing import Any

from dszog.cli.files import versions
from dszog_paper.protocol import Protocol
from dszog_paper.runner import make_split
from dszog_paper.tables import Cell, Get, Record, Table, all_units

FIGURES = {
    1: ("Pairwise constraints", 2),
    2: ("Fairness constraints", 3),
    3: ("Fairness constraints, RBF kernel", 10),
}
"""Title of each figure, and the table whose runs it shows."""

MEANS = (
    "test_accuracy",
    "majority_share",
    "logistic_accuracy",
    "objective",
    "norm",
    "share_violated",
    "worst_violation",
    "unit_share_violated",
    "unit_worst_violation",
    "unit_share_beyond",
    "iterations",
    "loss_queries",
    "constraint_queries",
    "rows_respected",
)
"""What a cell reports the mean of."""


def assemble(
    tables: Sequence[Table],
    get: Get,
    protocol: Protocol,
    *,
    described: Sequence[Table] | None = None,
    command: str = "",
    notes: Sequence[str] = (),
    data: str | None = None,
) -> dict[str, Any]:
    """Return everything that the report shows; cells without runs are None."""
    return {
        "meta": {
            "date": datetime.now(UTC).isoformat(timespec="seconds"),
            "command": command,
            "versions": versions(),
            "machine": platform.machine(),
            "protocol": asdict(protocol),
            "notes": list(notes),
        },
        "descriptions": _descriptions(tables if described is None else described, data),
        "tables": [_table(table, get) for table in tables],
        "figures": _figures(tables, get),
        "records": [
            {name: value for name, value in record.items() if name != "trace"}
            for record in map(get, all_units(tables, get))
            if record is not None
        ],
    }


def _found(cell: Cell, get: Get) -> list[Record]:
    return [record for record in map(get, cell.units(get)) if record is not None]


def _table(table: Table, get: Get) -> dict[str, Any]:
    rows: dict[str, dict[str, Any]] = {}
    for cell in table.cells:
        new = {"data": cell.row, "stand_in": False, "cells": {}}
        row = rows.setdefault(cell.row, new)
        row["stand_in"] |= cell.choice.unit.stand_in
        row["cells"][cell.column] = _cell(cell, get)
    return {
        "number": table.number,
        "title": table.title,
        "columns": list(table.columns),
        "rows": list(rows.values()),
    }


def _cell(cell: Cell, get: Get) -> dict[str, Any] | None:
    found = _found(cell, get)
    if not found:
        return None
    accuracies = [100.0 * record["test_accuracy"] for record in found]
    unit, times = found[0]["unit"], [record["time"] for record in found]
    events: Counter[str] = Counter()
    for record in found:
        events.update(record["events"])
    return {
        "printed": cell.printed,
        "mean": fmean(accuracies),
        "spread": stdev(accuracies) if len(accuracies) > 1 else None,
        "n": len(accuracies),
        "method": unit["method"],
        "form": unit["form"],
        "setting": dict(unit["setting"]),
        "ended_by": sorted({record["ended_by"] for record in found}),
        "events": dict(events),
        "seconds": fmean(time["seconds"] for time in times),
        "share_subproblem": fmean(
            time["subproblem"] / max(time["seconds"], 1e-9) for time in times
        ),
        **{name: fmean(record[name] for record in found) for name in MEANS},
    }


def _figures(tables: Sequence[Table], get: Get) -> list[dict[str, Any]]:
    known = {table.number: table for table in tables}
    return [
        {"number": number, "title": title, "panels": _panels(known[source], get)}
        for number, (title, source) in FIGURES.items()
        if source in known
    ]


def _panels(table: Table, get: Get) -> list[dict[str, Any]]:
    """Return the traces, means over the repetitions, by data set."""
    panels: dict[str, Any] = {
        row: {"data": row, "majority": None, "curves": []} for row in table.rows
    }
    for cell in table.cells:
        found, panel = _found(cell, get), panels[cell.row]
        if found:
            unit = found[0]["unit"]
            about = {"label": cell.column, "method": unit["method"]}
            panel["curves"].append(about | {"form": unit["form"]} | _curve(found))
            panel["majority"] = fmean(record["majority_share"] for record in found)
    return list(panels.values())


def _curve(records: Sequence[Record]) -> dict[str, list[float]]:
    """Return the looks of several runs, the first of each, the second, and so on."""
    # All look after the same numbers of iterations; some end before others.
    traces = [one["trace"] | {"seconds": one["time"]["trace"]} for one in records]
    looks: dict[str, list[list[float]]] = {
        name: [
            [value for value in values if value is not None]
            for values in zip_longest(*(trace[name] for trace in traces))
        ]
        for name in traces[0]
    }
    accuracies = looks["test_accuracy"]
    return {name: list(map(fmean, values)) for name, values in looks.items()} | {
        "low": list(map(min, accuracies)),
        "high": list(map(max, accuracies)),
    }


# --------------------------------------------------------------------- descriptions


def _descriptions(tables: Sequence[Table], data: str | None) -> list[dict[str, Any]]:
    found = [_methods()]
    numbers = {table.number: table for table in tables}
    for number, task, source in ((4, "pairwise", 2), (5, "fairness", 3)):
        if source in numbers:
            table = numbers[source]
            first = {cell.row: cell for cell in reversed(table.cells)}
            rows = [_data_row(first[name], data) for name in table.rows]
            columns = ["data", "features", "training rows", "positive", "constraints"]
            title = f"Data of the {task} task (first split)"
            found.append(
                {"number": number, "title": title, "columns": columns, "rows": rows}
            )
    return found


def _data_row(cell: Cell, data: str | None) -> list[str]:
    unit = cell.choice.unit
    train = make_split(unit, data).train
    n_positive = int((train.y > 0).sum())
    n_constraints = n_positive * (train.n_rows - n_positive)
    if unit.task == "fairness":
        n_constraints = 4 * train.sensitive.shape[1]
    return [
        f"{cell.row} (stand-in)" if unit.stand_in else cell.row,
        str(train.n_features),
        str(train.n_rows),
        f"{100 * train.positive_share:.1f} %",
        f"{n_constraints:,}",
    ]


def _methods() -> dict[str, Any]:
    """Return Table 1: what each method needs."""
    white = "white box, convex"
    rows = [["DSZOG", "values", "values", "none", "stochastic"]]
    for name, subproblem in (
        ("ZOSCGD", "linear program"),
        ("FZFW", "linear program"),
        ("FZCGS", "linear programs"),
        ("FCGS", "linear programs"),
        ("AccSZOFW", "linear program"),
        ("AccSZOFW*", "linear program"),
        ("ZOPSGD", "projection"),
        ("AccZOMDA", "projection"),
    ):
        objective = "gradients" if name == "FCGS" else "values"
        rows.append([name, objective, white, subproblem, "full"])
    columns = ["method", "objective", "constraints", "subproblem", "constraints used"]
    return {"number": 1, "title": "The methods", "columns": columns, "rows": rows}
