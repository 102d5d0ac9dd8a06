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
    has_values, n_points = len(values) > 0, len(points)
    by_column = points.T.copy()  # all points of a column lie side by side
    sums = np.empty(n_points)
    for i in range(len(indices)):
        row = indices[i]
        sums[:] = 0.0
        for t in range(starts[row], starts[row + 1]):
            column = columns[t]
            value = values[t] if has_values else 1.0
            for j in range(n_points):
                sums[j] += value * by_column[column, j]
        for j in range(n_points):
            table[j, i] = sums[j]


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
) -> None:  # pragma: no cover  (compiled)
    """Put by how much each pair fails, at each point, into a table.

    The positive rows come first, then the negative ones. The loops are written out
    again and again: a function that takes arrays counts references at every call.
    """
    has_values, n_points = len(values) > 0, len(points)
    has_others, n_others = len(other_values) > 0, len(other_starts) - 1
    if n_points == 1:  # as when the weights learn: twice as fast without sums in memory
        point = points[0]
        for i in range(len(indices)):
            row = indices[i] // n_others
            other = indices[i] - row * n_others
            below, above = 0.0, 0.0
            for t in range(starts[row], starts[row + 1]):
                below += (values[t] if has_values else 1.0) * point[columns[t]]
            for t in range(other_starts[other], other_starts[other + 1]):
                value = other_values[t] if has_others else 1.0
                above += value * point[other_columns[t]]
            table[0, i] = above + (margin - below)
        return
    by_column = points.T.copy()
    low, high = np.empty(n_points), np.empty(n_points)
    for i in range(len(indices)):
        row = indices[i] // n_others
        other = indices[i] - row * n_others
        low[:] = 0.0
        for t in range(starts[row], starts[row + 1]):
            column = columns[t]
            value = values[t] if has_values else 1.0
            for j in range(n_points):
                low[j] += value * by_column[column, j]
        high[:] = 0.0
        for t in range(other_starts[other], other_starts[other + 1]):
            column = other_columns[t]
            value = other_values[t] if has_others else 1.0
            for j in range(n_points):
                high[j] += value * by_column[column, j]
        for j in range(n_points):
            table[j, i] = high[j] + (margin - low[j])


FIRST = scores
