"""What trials used of the budget: their shares, what is left, counts of the whole."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from dszog.contract.arrays import FloatArray
from dszog.run.history import Callback, Progress
from dszog.run.meter import Limits, Meter

LEAST_TIME = 1e-3  # seconds: a trial that begins late still gets that


@dataclass(frozen=True, kw_only=True)
class Spent:
    """What runs used and counted, by the names of `Progress`."""

    iteration: int = 0
    n_queries: int = 0
    n_loss_queries: int = 0
    n_constraint_queries: int = 0
    n_failed: int = 0
    elapsed: float = 0.0
    evaluation_time: float = 0.0

    @classmethod
    def of(cls, meter: Meter) -> Spent:
        return cls(
            iteration=meter.n_iterations,
            n_queries=meter.n_charged,
            n_loss_queries=meter.n_loss_queries,
            n_constraint_queries=meter.n_constraint_queries,
            n_failed=meter.failures.n_failed,
            elapsed=meter.elapsed,
            evaluation_time=meter.evaluation_time,
        )

    @classmethod
    def total(cls, parts: Iterable[Spent]) -> Spent:
        every = list(parts)
        names = cls.__dataclass_fields__
        return cls(**{name: sum(getattr(one, name) for one in every) for name in names})

    def share_of(self, total: Limits, share: float) -> Limits:
        """Return that share of a budget, and of its time no more than is left."""
        iterations = queries = time = None
        if total.iterations is not None:
            iterations = max(int(share * total.iterations), 1)
        if total.queries is not None:
            queries = int(share * total.queries)
        if total.time is not None:
            time = min(share * total.time, max(total.time - self.elapsed, LEAST_TIME))
        return Limits(iterations=iterations, queries=queries, time=time)

    def left_of(self, total: Limits) -> Limits | None:
        """Return what is left of a budget, None if that is nothing."""
        used = {
            "iterations": self.iteration,
            "queries": self.n_queries,
            "time": self.elapsed,
        }
        left: dict[str, Any] = {
            name: limit - used[name]
            for name, limit in asdict(total).items()
            if limit is not None
        }
        return Limits(**left) if all(amount > 0 for amount in left.values()) else None

    def counted_on(self, callback: Callback) -> Callback:
        """Return a callback that is told the counts of the whole call."""
        before = asdict(self)

        def told(progress: Progress) -> Any:
            so_far = {name: getattr(progress, name) + n for name, n in before.items()}
            return callback(replace(progress, **so_far))

        return told

    def history_on(self, history: dict[str, FloatArray]) -> dict[str, FloatArray]:
        """Return the history of a later run with the counts of the whole call."""
        before = {name: n for name, n in asdict(self).items() if name in history}
        return history | {name: history[name] + n for name, n in before.items()}
