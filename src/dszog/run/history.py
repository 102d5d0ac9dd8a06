"""What is seen of a run while it goes on, and what is kept of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dszog.contract.arrays import FloatArray


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a callback sees after each iteration.

    The sampled values are those of the batch just drawn: noisy, and no statement about
    all constraints; `nan` where none was drawn. ``sampled_objective`` is the mean loss
    of the batch, ``sampled_violation`` its worst violation, ``sampled_share`` the part
    of a uniform draw that is violated. Queries are counted so far, in all and of each
    kind; ``n_touched`` constraints have a weight of their own.
    """

    iteration: int
    n_queries: int
    elapsed: float  # seconds
    x: FloatArray  # (dim,), read-only
    sampled_objective: float
    sampled_violation: float
    sampled_share: float
    n_touched: int
    n_loss_queries: int = 0
    n_constraint_queries: int = 0
    penalty: float = math.nan  # of the method, where it has one
    n_failed: int = 0  # points at which a value was not known, so far
    evaluation_time: float = 0.0  # seconds of `elapsed` that the functions took


Callback: TypeAlias = Callable[[Progress], Any]

LAST_FALL = 0.05  # of the objective's range in the last third: it falls on
MUCH_RAISED = 10.0  # a penalty this many times the first should make a difference
RESPONSE = 0.5  # of the violation, or less, is left if it does


@dataclass(frozen=True, eq=False, kw_only=True)
class Rows:
    """The rows of a history."""

    stride: int  # of the iterations that are recorded
    table: FloatArray


class History:
    """Rows of progress, thinned so that their number stays bounded.

    When `capacity` rows are full every second one is dropped, and from then on every
    second iteration is recorded, and so on.
    """

    COLUMNS = (
        "iteration",
        "n_queries",
        "elapsed",
        "sampled_objective",
        "sampled_violation",
        "sampled_share",
        "n_touched",
        "n_constraint_queries",
        "penalty",
        "n_failed",
    )

    def __init__(self, capacity: int = 2000) -> None:
        self._capacity = capacity
        self._stride = 1
        self._rows: list[tuple[float, ...]] = []

    def wants(self, iteration: int) -> bool:
        """Whether a row of this iteration is kept; looks before the first are not."""
        return iteration > 0 and iteration % self._stride == 0

    def record(self, row: tuple[float, ...]) -> None:
        """Keep a row, an entry per column, whose turn has come."""
        self._rows.append(row)
        if len(self._rows) >= self._capacity:
            self._stride *= 2
            self._rows = [row for row in self._rows if not row[0] % self._stride]

    def columns(self) -> dict[str, FloatArray]:
        """Return the recorded rows as one array per column."""
        return dict(zip(self.COLUMNS, self._table().T, strict=True))

    def known(self, name: str) -> FloatArray:
        """Return the values of a column that are known, the oldest first."""
        column: FloatArray = self._table()[:, self.COLUMNS.index(name)]
        return column[np.isfinite(column)]

    @property
    def is_falling(self) -> bool:
        """Whether the objective fell in the last third by a good part of its range."""
        objective = self.known("sampled_objective")
        third = len(objective) // 3
        if not third:
            return False
        before, last = objective[-2 * third : -third], objective[-third:]
        with np.errstate(over="ignore", invalid="ignore"):  # then nothing is known
            return bool(before.mean() - last.mean() > LAST_FALL * np.ptp(objective))

    @property
    def responds_to_penalty(self) -> bool:
        """Whether violations became smaller when the penalty was raised.

        True as well where it was not raised by much: then nothing is known.
        """
        columns = self.columns()
        penalty, violation = columns["penalty"], columns["sampled_violation"]
        known = np.isfinite(penalty) & np.isfinite(violation)
        penalty, violation = penalty[known], violation[known]
        if not len(penalty) or penalty[-1] < MUCH_RAISED * penalty[0]:
            return True
        first, last = (violation[penalty == one] for one in (penalty[0], penalty[-1]))
        with np.errstate(over="ignore"):
            before, after = (one[len(one) // 2 :].mean() for one in (first, last))
        return not after > RESPONSE * before

    def _table(self) -> FloatArray:
        return np.array(self._rows, dtype=float).reshape(-1, len(self.COLUMNS))

    def rows(self) -> Rows:
        """Return all rows, as a value."""
        return Rows(stride=self._stride, table=self._table())

    def go_on_from(self, rows: Rows) -> None:
        self._stride = rows.stride
        self._rows = list(map(tuple, rows.table.tolist()))
