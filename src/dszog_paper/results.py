"""Turns records into the tables and figures of the report, as plain data.

The layout of what :func:`assemble` returns is what the report, and the JSON file beside
it, hold::

    meta          date, versions, command, protocol, notes
    descriptions  Tables 1, 4 and 5: columns and rows of text
    tables        number, title, columns, rows; each row has a cell per column
    figures       number, title, panels; each panel has curves
    groups        error rates per sensitive group on the real data
    records       every run, but for its trace and groups, which stay in its own file
"""

from __future__ import annotations

import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy

import dszog
from dszog_paper.plan import (
    LABELS,
    Cell,
    Get,
    Record,
    Table,
    all_units,
)
from dszog_paper.protocol import Protocol
from dszog_paper.runner import make_split
from dszog_paper.units import Unit

FIGURES = (
    (1, "Pairwise constraints", 2),
    (2, "Fairness constraints", 3),
    (3, "Fairness constraints, RBF kernel", 10),
)
"""Number, title and the table whose runs a figure shows."""

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
            "versions": {
                "dszog": dszog.__version__,
                "python": platform.python_version(),
                "numpy": np.__version__,
                "scipy": scipy.__version__,
            },
            "machine": platform.machine(),
            "protocol": asdict(protocol),
            "notes": list(notes),
        },
        "descriptions": _descriptions(tables if described is None else described, data),
        "tables": [_table(table, get) for table in tables],
        "figures": _figures(tables, get),
        "groups": _groups(tables, get),
        "records": [_in_short(get(unit)) for unit in all_units(tables, get)],
    }


def _in_short(record: dict[str, Any] | None) -> dict[str, Any] | None:
    if record is None:
        return None
    long = ("trace", "groups")
    return {name: value for name, value in record.items() if name not in long}


# --------------------------------------------------------------------------- tables


def _table(table: Table, get: Get) -> dict[str, Any]:
    cells = {(cell.row, cell.column): _cell(cell, get) for cell in table.cells}
    return {
        "number": table.number,
        "title": table.title,
        "columns": list(table.columns),
        "rows": [
            {
                "data": row,
                "stand_in": any(
                    cell.choice.unit.stand_in for cell in table.cells if cell.row == row
                ),
                "cells": {column: cells.get((row, column)) for column in table.columns},
            }
            for row in table.rows
        ],
    }


def _cell(cell: Cell, get: Get) -> dict[str, Any] | None:
    found = _found(cell, get)
    if not found:
        return None
    accuracies = [100.0 * record["test_accuracy"] for record in found]
    unit = found[0]["unit"]
    return {
        "printed": cell.printed,
        "mean": statistics.fmean(accuracies),
        "spread": statistics.stdev(accuracies) if len(accuracies) > 1 else None,
        "n": len(accuracies),
        "method": unit["method"],
        "form": unit["form"],
        "setting": dict(unit["setting"]),
        "ended_by": sorted({record["ended_by"] for record in found}),
        "events": _summed([record["events"] for record in found]),
        "seconds": statistics.fmean(record["time"]["seconds"] for record in found),
        "share_subproblem": statistics.fmean(
            record["time"]["subproblem"] / max(record["time"]["seconds"], 1e-9)
            for record in found
        ),
        **{name: statistics.fmean(r[name] for r in found) for name in MEANS},
    }


def _found(cell: Cell, get: Get) -> list[Record]:
    units = cell.units(get) or []
    return [record for record in map(get, units) if record is not None]


def _summed(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for events in counts:
        for name, n in events.items():
            total[name] = total.get(name, 0) + n
    return total


# -------------------------------------------------------------------------- figures


def _figures(tables: Sequence[Table], get: Get) -> list[dict[str, Any]]:
    known = {table.number: table for table in tables}
    figures = []
    for number, title, table_number in FIGURES:
        table = known.get(table_number)
        if table is None:
            continue
        panels = [
            {
                "data": row,
                "curves": [
                    curve
                    for cell in table.cells
                    if cell.row == row and (curve := _curve(cell, get)) is not None
                ],
            }
            for row in table.rows
        ]
        figures.append({"number": number, "title": title, "panels": panels})
    return figures


def _curve(cell: Cell, get: Get) -> dict[str, Any] | None:
    """Return the trace of the first repetition."""
    found = _found(cell, get)
    if not found:
        return None
    record = found[0]
    return {
        "label": cell.column,
        "method": record["unit"]["method"],
        "form": record["unit"]["form"],
        "seconds": record["time"]["trace"],
        **record["trace"],
    }


# --------------------------------------------------------------------- descriptions


def _descriptions(tables: Sequence[Table], data: str | None) -> list[dict[str, Any]]:
    found = [_methods()]
    numbers = {table.number: table for table in tables}
    for number, title, source in (
        (4, "Data of the pairwise task (first split)", 2),
        (5, "Data of the fairness task (first split)", 3),
    ):
        table = numbers.get(source)
        if table is not None:
            rows = [_data_row(table, name, data) for name in table.rows]
            columns = ["data", "features", "training rows", "positive", "constraints"]
            found.append(
                {"number": number, "title": title, "columns": columns, "rows": rows}
            )
    return found


def _data_row(table: Table, name: str, data: str | None) -> list[str]:
    unit: Unit = next(c.choice.unit for c in table.cells if c.row == name)
    train = make_split(unit, data).train
    n_positive = int((train.y > 0).sum())
    n_constraints = n_positive * (train.n_rows - n_positive)
    if unit.task == "fairness":
        n_constraints = 4 * train.sensitive.shape[1]
    return [
        f"{name} (stand-in)" if unit.stand_in else name,
        str(train.n_features),
        str(train.n_rows),
        f"{100 * train.positive_share:.1f} %",
        f"{n_constraints:,}",
    ]


def _methods() -> dict[str, Any]:
    """Return Table 1: what each method needs."""
    rows = [
        ["DSZOG", "values", "values", "none", "stochastic"],
        ["ZOSCGD", "values", "white box, convex", "linear program", "full"],
        ["FZFW", "values", "white box, convex", "linear program", "full"],
        ["FZCGS", "values", "white box, convex", "linear programs", "full"],
        ["FCGS", "gradients", "white box, convex", "linear programs", "full"],
        ["AccSZOFW", "values", "white box, convex", "linear program", "full"],
        ["AccSZOFW*", "values", "white box, convex", "linear program", "full"],
        ["ZOPSGD", "values", "white box, convex", "projection", "full"],
        ["AccZOMDA", "values", "white box, convex", "projection", "full"],
    ]
    columns = ["method", "objective", "constraints", "subproblem", "constraints used"]
    return {"number": 1, "title": "The methods", "columns": columns, "rows": rows}


# --------------------------------------------------------------------------- groups


def _groups(tables: Sequence[Table], get: Get) -> list[dict[str, Any]]:
    """Return error rates per sensitive group, of the first repetition."""
    found = []
    for table in tables:
        if table.number != "F":
            continue
        for cell in table.cells:
            records = _found(cell, get)
            if records and cell.column in (LABELS["dszog"], LABELS["ours"]):
                found.append(
                    {
                        "data": cell.row,
                        "method": cell.column,
                        "groups": records[0]["groups"],
                    }
                )
    return found
