"""One record per trial: what the caller sees of it, and what the tuner needs of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from dszog.maths.penalties import merit
from dszog.run.failures import FailureReport
from dszog.run.meter import Meter
from dszog.run.result import Result
from dszog.status import Status
from dszog.tuning.budget import Spent


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One short run: its settings, what it cost, and what was found at its end.

    ``fun`` and ``maxcv`` are fresh evaluations at its best point, ``merit`` is made of
    them; all are `nan` or infinite where the trial failed.
    """

    settings: dict[str, float]
    rung: int  # 0 for the first, shortest ones
    nit: int
    nfev: int
    ncev: int
    fun: float
    maxcv: float
    merit: float
    status: Status | None  # None if a function failed
    note: str = ""

    @property
    def n_queries(self) -> int:
        """Values of losses and constraints that the trial evaluated."""
        return self.nfev + self.ncev


@dataclass(frozen=True, eq=False, kw_only=True)
class Outcome:
    """A trial that was made: its line in the table, its result and what it spent."""

    trial: Trial
    result: Any  # a Result, None if a function failed
    failures: FailureReport
    spent: Spent


def outcome_of(
    settings: dict[str, float],
    rung: int,
    result: Result | None,
    meter: Meter,
    penalty: float,
) -> Outcome:
    """Return the record of a trial; its merit is by `penalty`, that of all trials."""
    fun = math.nan if result is None else float(result.fun)
    maxcv = math.nan if result is None else float(result.maxcv)
    is_known = math.isfinite(fun + maxcv)
    spent = Spent.of(meter)
    trial = Trial(
        settings=settings,
        rung=rung,
        nit=spent.iteration,
        nfev=spent.n_loss_queries,
        ncev=spent.n_constraint_queries,
        fun=fun,
        maxcv=maxcv,
        merit=merit(fun, maxcv, penalty) if is_known else math.inf,
        status=None if result is None else result.status,
        note="failed" if result is None else "",
    )
    return Outcome(
        trial=trial, result=result, failures=meter.failures.report, spent=spent
    )
