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
) -> FloatArray:  # pragma: no cover  (compiled)
    """Return the score of each point (row) and each indexed row (column)."""
    if len(points) == 1:
        single = np.empty((1, len(indices)))
        for i in range(len(indices)):
            single[0, i] = _sum_row(values, columns, starts, indices[i], points[0])
        return single
    by_column = _transposed(points)
    table = np.zeros((len(indices), len(points)))
    for i in range(len(indices)):
        _add_row(values, columns, starts, indices[i], by_column, table[i])
    return _transposed(table)


@compiled
def pairs(
    positives: tuple[FloatArray, ColumnArray, IntArray],
    negatives: tuple[FloatArray, ColumnArray, IntArray],
    margin: float,
    points: FloatArray,
    indices: IntArray,
) -> FloatArray:  # pragma: no cover  (compiled)
    """Return by how much each pair fails, at each point."""
    n_negatives = len(negatives[2]) - 1
    if len(points) == 1:
        single = np.empty((1, len(indices)))
        for i in range(len(indices)):
            a, b = indices[i] // n_negatives, indices[i] % n_negatives
            low = _sum_row(positives[0], positives[1], positives[2], a, points[0])
            high = _sum_row(negatives[0], negatives[1], negatives[2], b, points[0])
            single[0, i] = high + (margin - low)
        return single
    by_column = _transposed(points)
    table = np.zeros((len(indices), len(points)))
    lows = np.empty(len(points))
    for i in range(len(indices)):
        a, b = indices[i] // n_negatives, indices[i] % n_negatives
        lows[:] = 0.0
        _add_row(positives[0], positives[1], positives[2], a, by_column, lows)
        _add_row(negatives[0], negatives[1], negatives[2], b, by_column, table[i])
        for j in range(len(points)):
            table[i, j] += margin - lows[j]
    return _transposed(table)


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
            here = by_column[columns[t]]
            for j in range(len(sums)):
                sums[j] += here[j]
        return
    for t in range(starts[row], starts[row + 1]):
        value, here = values[t], by_column[columns[t]]
        for j in range(len(sums)):
            sums[j] += value * here[j]


@compiled
def _transposed(table: FloatArray) -> FloatArray:  # pragma: no cover  (compiled)
    n, k = table.shape
    turned = np.empty((k, n))
    for j in range(k):
        for i in range(n):
            turned[j, i] = table[i, j]
    return turned


FIRST = scores
