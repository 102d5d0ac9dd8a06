"""How a command speaks, is interrupted, and ends."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from dszog.contract.validation import printable, shown

DONE, FAILED, USAGE, NO_SUCCESS, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print text in which nothing steers the terminal, whatever it quotes."""
    console.print(
        printable(text, keep="\n"),
        style=style,
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def tell_new_words(console: Console, new: dict[str, int]) -> None:
    """Say how many rows have a word that the model has not met."""
    for name, n in new.items():
        say(
            console,
            f"{n:,} rows have a word in column {shown(name)} that is new to the model; "
            "none of its features is set there.",
            style="yellow",
        )


@contextmanager
def sigterm_as_interrupt() -> Iterator[list[int]]:
    """Have SIGTERM do what Ctrl-C does; yield what will list it if it comes."""
    received: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield received
    finally:
        signal.signal(signal.SIGTERM, before)
