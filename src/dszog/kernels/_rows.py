"""Scores of rows that are mostly zeros, at several points in one compiled pass.

The plain form is :meth:`dszog.rows.Rows.scores` without kernels. Every sum runs over
one row at one point: no bit depends on which other rows and points are asked for. No
values at all stand for ones, as in data of yes and no: half of the memory is then not
looked at, and memory is what these loops wait for.
"""

from __future__ import annotations

import numpy as np

from dszog._arrays import ColumnArray, FloatArray, IntArray
from dszog.kernels._compile import compiled


@compiled
def scores(
    values: FloatArray,
    columns: ColumnArray,
    starts: IntArray,
    points: FloatArray,
    indices: IntArray,
    table: FloatArray,
) -> None:  # pragma: no cover  (compiled)
    """Put the score of each point (row) and each indexed row (column) into a table."""
    if len(points) == 1:
        point = points[0]
        for i in range(len(indices)):
            table[0, i] = _sum_row(values, columns, starts, indices[i], point)
        return
    by_column = _transposed(points)
    sums = np.empty(len(points))
    for i in range(len(indices)):
        sums[:] = 0.0
        _add_row(values, columns, starts, indices[i], by_column, sums)
        for j in range(len(points)):
            table[j, i] = sums[j]


@compiled
def pairs(
    positives: tuple[FloatArray, ColumnArray, IntArray],
    negatives: tuple[FloatArray, ColumnArray, IntArray],
    margin: float,
    points: FloatArray,
    indices: IntArray,
    table: FloatArray,
) -> None:  # pragma: no cover  (compiled)
    """Put by how much each pair fails, at each point, into a table."""
    n_negatives = len(negatives[2]) - 1
    values, columns, starts = positives
    other_values, other_columns, other_starts = negatives
    if len(points) == 1:
        point = points[0]
        for i in range(len(indices)):
            a, b = indices[i] // n_negatives, indices[i] % n_negatives
            low = _sum_row(values, columns, starts, a, point)
            high = _sum_row(other_values, other_columns, other_starts, b, point)
            table[0, i] = high + (margin - low)
        return
    by_column = _transposed(points)
    lows, highs = np.empty(len(points)), np.empty(len(points))
    for i in range(len(indices)):
        a, b = indices[i] // n_negatives, indices[i] % n_negatives
        lows[:] = 0.0
        highs[:] = 0.0
        _add_row(values, columns, starts, a, by_column, lows)
        _add_row(other_values, other_columns, other_starts, b, by_column, highs)
        for j in range(len(points)):
            table[j, i] = highs[j] + (margin - lows[j])


@compiled
def _sum_row(
    values: FloatArray,
    columns: ColumnArray,
    starts: IntArray,
    row: int,
    point: FloatArray,
) -> float:  # pragma: no cover  (compiled)
    total = 0.0
    if len(values) == 0:
        for t in range(starts[row], starts[row + 1]):
            total += point[columns[t]]
        return total
    for t in range(starts[row], starts[row + 1]):
        total += values[t] * point[columns[t]]
    return total


@compiled
def _add_row(
    values: FloatArray,
    columns: ColumnArray,
    starts: IntArray,
    row: int,
    by_column: FloatArray,
    sums: FloatArray,
) -> None:  # pragma: no cover  (compiled)
    if len(values) == 0:
        for t in range(starts[row], starts[row + 1]):
            column = columns[t]
            for j in range(len(sums)):
                sums[j] += by_column[column, j]
        return
    for t in range(starts[row], starts[row + 1]):
        value, column = values[t], columns[t]
        for j in range(len(sums)):
            sums[j] += value * by_column[column, j]


@compiled
def _transposed(table: FloatArray) -> FloatArray:  # pragma: no cover  (compiled)
    n, k = table.shape
    turned = np.empty((k, n))
    for j in range(k):
        for i in range(n):
            turned[j, i] = table[i, j]
    return turned


FIRST = scores
