"""How far a run is, in numbers and in words."""

from __future__ import annotations

import math
import time
from typing import Any, NamedTuple

from dszog.run.history import Progress
from dszog.run.meter import Limits
from dszog.status import Status

LEAST_SHARE = 0.02  # of the budget, after which the time left is told


class Batches(NamedTuple):
    """What batches say; `nan` where they say nothing.

    One is noise, and between two looks there may be thousands.
    """

    objective: float = math.nan  # mean
    violation: float = math.nan  # the worst
    share: float = math.nan  # mean of the parts that are violated

    @classmethod
    def of(cls, progress: Progress) -> Batches:
        seen = progress.sampled_objective, progress.sampled_violation
        return cls(*seen, progress.sampled_share)

    @classmethod
    def joined(cls, some: list[Batches]) -> Batches:
        objectives, violations, shares = (
            [one for one in column if not math.isnan(one)] or [math.nan]
            for column in zip(*some, strict=True)
        )
        mean = sum(objectives) / len(objectives)
        return cls(mean, max(violations), sum(shares) / len(shares))


def share_done(progress: Progress, limits: Limits) -> float:
    """Return the part of the budget that is used, 1 at the most."""
    pairs = (
        (progress.iteration, limits.iterations),
        (progress.n_queries, limits.queries),
        (progress.elapsed, limits.time),
    )
    used = [done / limit for done, limit in pairs if limit is not None]
    return min(max(used, default=0.0), 1.0)


def time_left(progress: Progress, limits: Limits) -> float:
    """Return the seconds that are left at the pace so far; `nan` if nobody knows."""
    share = share_done(progress, limits)
    if share < LEAST_SHARE:  # first iterations are no measure of the others
        return math.nan
    return progress.elapsed * (1.0 - share) / share


class Display:
    """Has what is shown brought up to date every so often, and at the end."""

    every: float  # seconds

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._seen: list[Batches] = []  # since one last looked
        self._before = Batches()
        self.last: Progress | None = None
        self._shown_at = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Take in one iteration; show it if it is time."""
        self._seen.append(Batches.of(progress))
        self.last = progress
        now = time.monotonic()
        if now - self._shown_at >= self.every:
            self._shown_at = now
            share = share_done(progress, self.limits)
            self.show(progress, share, time_left(progress, self.limits))

    def finish(self, result: Any) -> None:
        """Show the last state, the bar full unless something ended the run early."""
        if self.last is not None:
            stopped = result.status is Status.STOPPED_BY_CALLBACK
            is_full = result.status.is_planned and not stopped
            share = 1.0 if is_full else share_done(self.last, self.limits)
            self.show(self.last, share, math.nan)

    def take(self) -> Batches:
        """Return what was seen since one last looked; if nothing, what was before."""
        if self._seen:
            self._before, self._seen = Batches.joined(self._seen), []
        return self._before

    def show(self, progress: Progress, share: float, left: float) -> None:
        """Show how far the run is; `left` are seconds, `nan` if nobody knows."""
        raise NotImplementedError


def duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def facts(progress: Progress, seen: Batches) -> list[tuple[str, str]]:
    """Return names and values of what there is to say; what is not known is left out.

    The values with a ~ are means over batches.
    """
    found = [
        ("iteration", f"{progress.iteration:,}"),
        ("queries", f"{progress.n_queries:,}"),
    ]
    if not math.isnan(seen.objective):
        few = f" (of {progress.n_held:,} of {progress.n_losses:,} losses)"
        few = few if 0 < progress.n_held < progress.n_losses else ""
        found.append(("objective", f"~{seen.objective:.4g}{few}"))
    if not math.isnan(seen.violation):
        found.append(("worst violation seen", f"{seen.violation:.3g}"))
    if not math.isnan(seen.share):
        found.append(("share violated", f"~{seen.share:.2%}"))
    if progress.n_failed:
        found.append(("failures", f"{progress.n_failed:,}"))
    return found


def line(
    progress: Progress, seen: Batches | None = None, left: float = math.nan
) -> str:
    """Return the state of a run in one line; without `seen`, of its last batch."""
    found = facts(progress, Batches.of(progress) if seen is None else seen)
    if not math.isnan(left):
        found.append(("left", duration(left)))
    return "  ".join(f"{name} {value}" for name, value in found)
