"""What of a run is drawn: the history as curves, and what it is drawn against."""

from __future__ import annotations

from typing import Any

import numpy as np

from dszog.contract.arrays import FloatArray

N_WINDOWS = 40  # parts of a run over each of which the mean is taken
LOG_RANGE = 100.0  # factor between largest and least from which a scale is logarithmic
TIME_UNITS = ((3 * 3600.0, 3600.0, "hours"), (600.0, 60.0, "minutes"))


AXES = {  # the column of the history, and the label
    "queries": ("n_queries", "queries (values of losses and constraints)"),
    "time": ("elapsed", "time in seconds"),
    "iterations": ("iteration", "iterations"),
}


def horizontal(result: Any, against: str) -> tuple[FloatArray, str]:
    """Return where the rows of a run lie, and how the axis is labelled."""
    name, label = AXES[against]
    column = np.asarray(result.history[name], float)
    for least, unit, words in TIME_UNITS if against == "time" else ():
        if column[-1] >= least:
            return column / unit, f"time in {words}"
    return column, label


def running_mean(values: FloatArray) -> FloatArray:
    """Return the mean of the known values around each; `nan` where there are none."""
    # Over a fortieth of the rows, so that a curve of any length is as smooth.
    half = len(values) // (2 * N_WINDOWS)
    if not half:
        return values
    known = np.isfinite(values)
    sums = np.cumsum(np.pad(np.where(known, values, 0.0), (half + 1, half)))
    counts = np.cumsum(np.pad(known.astype(int), (half + 1, half)))
    width = 2 * half + 1
    sums, counts = sums[width:] - sums[:-width], counts[width:] - counts[:-width]
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def spans_decades(values: FloatArray) -> bool:
    """Whether positive values differ so much that a logarithmic scale shows more."""
    known = values[np.isfinite(values)]
    return bool(
        len(known) and known.min() > 0 and known.max() > LOG_RANGE * known.min()
    )


def raises(penalty: FloatArray) -> list[int]:
    """Return the rows at which the penalty is another than in the row before."""
    return np.flatnonzero(np.abs(np.diff(penalty, prepend=penalty[:1])) > 0.0).tolist()
