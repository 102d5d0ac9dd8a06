"""A bar that counts pieces of work, for commands that have many."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def counting_bar(console: Console, name: str) -> Progress:
    """Return a bar with a count, the time and a description; silent in a log.

    Parameters
    ----------
    console : rich.console.Console
    name : str
        What is counted.
    """
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
    )

    return Progress(
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
        console=console,
        disable=not console.is_terminal,
    )
