"""What is seen of a run while it goes on, what is kept of it, and what is counted.

Counts are dataclasses, of which those who count are subclasses.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, TypeAlias, TypeVar

import numpy as np

from dszog.contract import Failure
from dszog.contract.arrays import FloatArray


@dataclass(frozen=True, kw_only=True)
class Progress:
    """What a callback sees each time a method has been answered.

    ``iteration`` counts steps, as ``nit`` does. A method may look several times before
    a step: a callback then sees the same number again, with more queries.
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
    # Losses that `sampled_objective` is the mean of, where these stay the same.
    n_held: int = 0
    n_losses: int = 0  # in all


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
        return Rows(stride=self._stride, table=self._table())

    def go_on_from(self, rows: Rows) -> None:
        self._stride = rows.stride
        self._rows = list(map(tuple, rows.table.tolist()))


Kind = TypeVar("Kind")


@dataclass(kw_only=True)
class Counts:
    """What a run has used so far, in all processes that worked on it."""

    n_iterations: int = 0
    n_loss_queries: int = 0
    n_constraint_queries: int = 0
    n_gradients: int = 0  # of losses, among the queries
    n_retried: int = 0  # queries made again, of lost workers or failed calls
    n_inner: int = 0
    lost_before: int = 0  # queries used up by earlier processes, for nothing
    seconds: float = 0.0  # until it was saved
    evaluation_time: float = 0.0
    last_pace: float = 0.0
    # By kind: seconds of a query in the batch before the last, batches so far, and
    # seconds of one in the last.
    paces: dict[str, tuple[float, int, float]] = field(default_factory=dict)
    events: Counter[str] = field(default_factory=Counter)


@dataclass(kw_only=True)
class FailureCounts:
    """What failed so far."""

    n_rejected: int = 0  # steps taken back
    n_failed: int = 0  # points
    n_points: int = 0
    in_a_row: int = 0
    recent: list[bool] = field(default_factory=list)  # whether each of the last failed
    kinds: Counter[str] = field(default_factory=Counter)
    first: tuple[Failure, ...] = ()
    # Of a simulator: calls by case that gave no value, and those that did.
    lost_calls: Counter[int] = field(default_factory=Counter)
    far_calls: Counter[int] = field(default_factory=Counter)  # lost, far from the first
    good_calls: Counter[int] = field(default_factory=Counter)


@dataclass(kw_only=True)
class SubproblemCounts:
    """What was asked of feasible sets so far, and the time that took."""

    n_oracle_calls: int = 0
    n_projections: int = 0
    n_solver_rounds: int = 0
    n_rows: int = 0
    seconds: float = 0.0
    events: Counter[str] = field(default_factory=Counter)


def counts_of(kind: type[Kind], owner: Kind, **now: Any) -> Kind:
    """Return the counts of this kind that somebody has, as a value."""
    own = {item.name: getattr(owner, item.name) for item in fields(kind)}  # type: ignore[arg-type]
    return kind(**(own | now))


def count_on(owner: Kind, counts: Kind) -> None:
    """Have somebody count on from such a value."""
    vars(owner).update(vars(counts))
