"""Scores of rows, and of pairs of them, in one compiled pass.

Of rows that are mostly zeros all points are scored at once; every sum runs over one row
at one point: no bit depends on which other rows and points are asked for. No values at
all stand for ones, as in data of yes and no: half of the memory is then not looked at,
and memory is what these loops wait for. Of dense rows it is the gathering that takes
time; the products of several points are left to NumPy.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dszog.contract.arrays import ColumnArray, FloatArray, IntArray
from dszog.kernels._compile import compiled

LANES = 4  # numbers that are added at once


@compiled
def scores(
    values: FloatArray,
    columns: ColumnArray,
    starts: IntArray,
    points: FloatArray,
    indices: IntArray,
    table: FloatArray,
) -> None:
    """Put the score of each point (row) and each indexed row (column) into a table."""
    by_column = _side_by_side(points)
    _score(values, columns, starts, points, by_column, indices, table)


@compiled
def pairs(
    values: FloatArray,
    columns: ColumnArray,
    starts: IntArray,
    other_values: FloatArray,
    other_columns: ColumnArray,
    other_starts: IntArray,
    margin: float,
    points: FloatArray,
    indices: IntArray,
    table: FloatArray,
) -> None:
    """Put by how much each pair fails, at each point, into a table."""
    # The positive rows come first, then the negative ones.
    n_others = len(other_starts) - 1
    rows, others = np.empty_like(indices), np.empty_like(indices)
    for i in range(len(indices)):
        rows[i] = indices[i] // n_others
        others[i] = indices[i] - rows[i] * n_others
    by_column, low = _side_by_side(points), np.empty_like(table)
    _score(values, columns, starts, points, by_column, rows, low)
    _score(other_values, other_columns, other_starts, points, by_column, others, table)
    for j in range(len(points)):
        for i in range(len(indices)):
            table[j, i] += margin - low[j, i]


@compiled
def _score(
    values: FloatArray,
    columns: ColumnArray,
    starts: IntArray,
    points: FloatArray,
    by_column: FloatArray,
    rows: IntArray,
    table: FloatArray,
) -> None:
    """Put the scores of some rows into a table; the points come side by side, too."""
    if len(rows):
        table[0, 0] = _called_up(values, columns, starts, rows)
    if len(points) == 1:  # as when the weights learn: twice as fast without `sums`
        point = points[0]
        for i in range(len(rows)):
            row, total = rows[i], 0.0
            if len(values):
                for t in range(starts[row], starts[row + 1]):
                    total += values[t] * point[columns[t]]
            else:
                for t in range(starts[row], starts[row + 1]):
                    total += point[columns[t]]
            table[0, i] = total
        return
    sums = np.empty(by_column.shape[1])
    for i in range(len(rows)):
        row = rows[i]
        sums[:] = 0.0
        if len(values):
            for t in range(starts[row], starts[row + 1]):
                column, value = columns[t], values[t]
                for j in range(len(sums)):
                    sums[j] += value * by_column[column, j]
        else:
            for t in range(starts[row], starts[row + 1]):
                column = columns[t]
                for j in range(len(sums)):
                    sums[j] += by_column[column, j]
        for j in range(len(points)):
            table[j, i] = sums[j]


@compiled
def differences(
    rows: FloatArray, others: FloatArray, indices: IntArray, table: FloatArray
) -> None:
    """Put the other row of each pair, less its own, into the rows of a table."""
    for i in range(len(indices)):
        row = indices[i] // len(others)
        other = indices[i] - row * len(others)
        for d in range(rows.shape[1]):
            table[i, d] = others[other, d] - rows[row, d]


@partial(compiled, reorders=True)
def dense_pairs(
    rows: FloatArray,
    others: FloatArray,
    margin: float,
    x: FloatArray,
    indices: IntArray,
    values: FloatArray,
) -> None:
    """Put by how much each pair fails at one point into a list."""
    for i in range(len(indices)):
        row = indices[i] // len(others)
        other = indices[i] - row * len(others)
        value = 0.0
        for d in range(len(x)):
            value += (others[other, d] - rows[row, d]) * x[d]
        values[i] = value + margin


@compiled
def _side_by_side(points: FloatArray) -> FloatArray:
    """Return several points as columns, with zeros up to a full number of lanes."""
    n_points, dim = points.shape
    if n_points == 1:
        return points
    by_column = np.zeros((dim, (n_points + LANES - 1) // LANES * LANES))
    for d in range(dim):
        for j in range(n_points):
            by_column[d, j] = points[j, d]
    return by_column


@compiled
def _called_up(
    values: FloatArray, columns: ColumnArray, starts: IntArray, rows: IntArray
) -> float:
    """Read the ends of all rows at once, and return something made of them.

    Rows lie all over the memory. To wait for one after the other takes longer than to
    sum them up; those that are asked for together come together.
    """
    total = 0.0
    for i in range(len(rows)):
        first, last = starts[rows[i]], starts[rows[i] + 1] - 1
        if first <= last:
            total += columns[first] + columns[last]
            if len(values):
                total += values[first] + values[last]
    return total
