"""What a run counts, as dataclasses, of which those who count are subclasses."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from dszog.contract import Failure

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
    # By kind: seconds and queries so far, and the seconds of one in the last batch.
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
