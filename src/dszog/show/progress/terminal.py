"""Progress on a terminal: a bar and a few facts below it, drawn by rich."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from dszog.run.history import Callback, Progress
from dszog.run.meter import Limits
from dszog.show.progress.summary import Display, duration, facts

REDRAWN = 8  # times a second at the most
WIDEST = 100  # columns, on whatever terminal


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
        for name, value in facts(progress, self.window.take()):
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
        return Group(head, _Facts(self._facts))


class _Facts:
    """Names and values in as many columns as the terminal has room for."""

    def __init__(self, facts: list[tuple[str, str]]) -> None:
        self._facts = facts

    def __rich_console__(
        self, console: Console, options: object
    ) -> Iterator[RenderableType]:
        widest = max(len(f"{name} {value}") for name, value in self._facts)
        room = min(console.width, WIDEST)
        n_columns = max(min(room // (widest + 3), 3), 1)
        table = Table.grid(padding=(0, 3, 0, 0))
        for first in range(0, len(self._facts), n_columns):
            row = self._facts[first : first + n_columns]
            table.add_row(*(_fact(name, value) for name, value in row))
        yield table


def _fact(name: str, value: str) -> Text:
    style = "bold yellow" if name == "failures" else "bold"
    return Text.assemble((f"{name} ", "dim"), (value, style), no_wrap=True)


@contextmanager
def terminal_display(limits: Limits) -> Iterator[Callback]:
    """Draw on standard error while the context lasts."""
    display = TerminalDisplay(limits)
    console = Console(stderr=True)
    live = Live(
        get_renderable=lambda: display, console=console, refresh_per_second=REDRAWN
    )
    with live:
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
