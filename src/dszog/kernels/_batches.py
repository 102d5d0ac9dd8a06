"""Small things that are done to every batch, whichever method asks.

The plain forms are in :mod:`dszog.query.asked`, :mod:`dszog.evaluators.base` and
:mod:`dszog.run`.
"""

from __future__ import annotations

import numpy as np

from dszog._arrays import FloatArray, IntArray
from dszog.kernels._compile import compiled


@compiled
def distinct(
    indices: IntArray, kept: IntArray, places: IntArray
) -> int:  # pragma: no cover  (compiled)
    """Find the indices that differ, and each one's place; return how many differ.

    For ascending indices; -1 where they are not.
    """
    n_kept = 0
    for i in range(len(indices)):
        if i == 0 or indices[i] > indices[i - 1]:
            kept[n_kept] = indices[i]
            n_kept += 1
        elif indices[i] < indices[i - 1]:
            return -1
        places[i] = n_kept - 1
    return n_kept


@compiled
def place(
    x: FloatArray, steps: FloatArray, points: FloatArray
) -> None:  # pragma: no cover  (compiled)
    """Put a point, and the points that steps lead to from it, into the rows."""
    for d in range(len(x)):
        points[0, d] = x[d]
        for k in range(len(steps)):
            points[k + 1, d] = x[d] + steps[k, d]


@compiled
def average(
    before: FloatArray, x: FloatArray, share: float, after: FloatArray
) -> bool:  # pragma: no cover  (compiled)
    """Move an average by this share towards a point; say whether that is finite."""
    finite = True
    for d in range(len(x)):
        finite &= np.isfinite(x[d])
        after[d] = before[d] + share * (x[d] - before[d])
    return finite


@compiled
def spread(
    values: FloatArray, places: IntArray, table: FloatArray
) -> bool:  # pragma: no cover  (compiled)
    """Copy values, each to all of its places, and say whether all are finite.

    No places at all: as they stand.
    """
    finite = True
    for k in range(len(values)):
        for j in range(values.shape[1]):
            finite &= np.isfinite(values[k, j])
        if len(places) == 0:
            for j in range(values.shape[1]):
                table[k, j] = values[k, j]
        for j in range(len(places)):
            table[k, j] = values[k, places[j]]
    return finite


FIRST = spread
