"""Showing how far a run is: a bar on a terminal, lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dszog.run import Callback, Limits, Progress

LINE_EVERY = 5.0  # seconds between lines where there is no terminal
BAR_EVERY = 0.1  # seconds between redraws


@contextmanager
def show_progress(wanted: bool, limits: Limits) -> Iterator[tuple[Callback, ...]]:
    """Yield the callbacks that show progress, none if it is not wanted.

    Parameters
    ----------
    wanted : bool
    limits : Limits
        Where the run will stop; the limit that is nearest sets the bar.
    """
    if not wanted:
        yield ()
        return
    try:
        from rich.progress import (
            BarColumn,
            TaskProgressColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bar
    except ImportError:
        yield (_Lines(limits),)
        return
    if not sys.stderr.isatty():
        yield (_Lines(limits),)
        return
    from rich.console import Console

    columns = (
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.description}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=1.0)
        last = 0.0

        def show(progress: Progress) -> None:
            nonlocal last
            now = time.monotonic()
            if now - last < BAR_EVERY:
                return
            last = now
            bar.update(
                task, completed=share_done(progress, limits), description=line(progress)
            )

        yield (show,)
        bar.update(task, completed=1.0)


class _Lines:
    """Prints a line to standard error every few seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last = time.monotonic()

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last < LINE_EVERY:
            return
        self._last = now
        done = share_done(progress, self._limits)
        sys.stderr.write(f"dszog {done:4.0%}  {line(progress)}\n")


def share_done(progress: Progress, limits: Limits) -> float:
    """Return the part of the budget that is used, 1 at the most."""
    pairs = (
        (progress.iteration, limits.iterations),
        (progress.n_queries, limits.queries),
        (progress.elapsed, limits.time),
    )
    used = [done / limit for done, limit in pairs if limit is not None]
    return min(max(used, default=0.0), 1.0)


def line(progress: Progress) -> str:
    """Return the state of a run in one line; the values are those of a sample."""
    return (
        f"iteration {progress.iteration:,}  queries {progress.n_queries:,}  "
        f"objective ~{progress.sampled_objective:.4g}  "
        f"violation seen {progress.sampled_violation:.3g}"
    )
