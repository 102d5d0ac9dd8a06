"""Progress on a terminal: a bar and a few facts below it, drawn by rich."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dszog.run.history import Progress
from dszog.run.meter import Limits
from dszog.show.progress.summary import Display, duration, facts

REDRAWN = 8  # times a second at the most


class TerminalDisplay(Display):
    """What is drawn, brought up to date by being called."""

    every = 0.1

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._shown_at = -math.inf
        self._share, self._left = 0.0, ""
        self._facts: list[tuple[str, str]] = []

    def show(self, progress: Progress, share: float, left: float) -> None:
        self._share, self._left = share, f"{duration(left)} left"
        limits = {"iteration": self.limits.iterations, "queries": self.limits.queries}
        self._facts = []
        for name, value in facts(progress, self.take()):
            limit = limits.get(name)
            more = "" if limit is None else f" of {limit:,}"
            self._facts.append((name, f"{value}{more}"))

    def finish(self, result: Any) -> None:
        super().finish(result)
        self._left = ""

    def __rich__(self) -> RenderableType:
        head = Table.grid(padding=(0, 1))
        bar = ProgressBar(
            total=1.0,
            completed=self._share,
            width=40,
            complete_style="cyan",
            finished_style="green",
        )
        left = Text(self._left, style="dim", no_wrap=True)
        head.add_row("dszog", bar, f"{self._share:4.0%}", left)
        if not self._facts:
            return Group(head, Text("starting", style="dim"))
        found = [
            Text.assemble(
                (f"{name} ", "dim"),
                (value, "bold yellow" if name == "failures" else "bold"),
                no_wrap=True,
            )
            for name, value in self._facts
        ]
        return Group(head, Columns(found, padding=(0, 3)))


@contextmanager
def terminal_display(limits: Limits) -> Iterator[Display]:
    """Draw on standard error while the context lasts."""
    display, console = TerminalDisplay(limits), Console(stderr=True)
    with Live(
        get_renderable=lambda: display, console=console, refresh_per_second=REDRAWN
    ):
        yield display


def counting_bar(console: Console, name: str) -> Bars:
    """Return a bar that counts pieces of work, with a description; silent in a log."""
    return Bars(
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
        disable=not console.is_terminal,
    )
