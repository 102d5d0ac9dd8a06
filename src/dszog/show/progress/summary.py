"""How far a run is, in numbers and in words."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any

from dszog.run.history import Progress
from dszog.run.meter import Limits
from dszog.status import Status

LEAST_SHARE = 0.02  # of the budget, after which the time left is told


class Window:
    """What was seen in the batches since one last looked; if in none, what was before.

    One batch is noise. Between two looks there may be thousands, so the mean of their
    objectives and the worst of their violations are kept.
    """

    def __init__(self) -> None:
        self._seen: list[tuple[float, float, float]] = []
        self._before = BatchSummary(math.nan, math.nan, math.nan)

    def add(self, progress: Progress) -> None:
        self._seen.append(
            (
                progress.sampled_objective,
                progress.sampled_violation,
                progress.sampled_share,
            )
        )

    def take(self) -> BatchSummary:
        if self._seen:
            known = [
                [one for one in column if not math.isnan(one)] or [math.nan]
                for column in zip(*self._seen, strict=True)
            ]
            objective, share = (sum(known[k]) / len(known[k]) for k in (0, 2))
            self._before = BatchSummary(objective, max(known[1]), share)
            self._seen = []
        return self._before


@dataclass(frozen=True)
class BatchSummary:
    """What the batches of a window say; `nan` where they say nothing."""

    objective: float  # mean
    violation: float  # the worst
    share: float  # mean of the parts that are violated


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
        self.window = Window()
        self.last: Progress | None = None
        self._shown_at = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        """Take in one iteration; show it if it is time."""
        self.window.add(progress)
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

    def show(self, progress: Progress, share: float, left: float) -> None:
        """Show how far the run is; `left` are seconds, `nan` if nobody knows."""
        raise NotImplementedError


def duration(seconds: float) -> str:
    """Return a time in words."""
    if not math.isfinite(seconds):
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    if not minutes:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min {rest:02d} s"


def facts(progress: Progress, seen: BatchSummary) -> list[tuple[str, str]]:
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
    progress: Progress, seen: BatchSummary | None = None, left: float = math.nan
) -> str:
    """Return the state of a run in one line; without `seen`, of its last batch."""
    if seen is None:
        window = Window()
        window.add(progress)
        seen = window.take()
    found = facts(progress, seen)
    if not math.isnan(left):
        found.append(("left", duration(left)))
    return "  ".join(f"{name} {value}" for name, value in found)
