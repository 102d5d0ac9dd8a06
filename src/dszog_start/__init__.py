"""What the command `dszog` runs first.

The library takes a second to load. A signal that comes in that time has to be answered
by something that loads at once, so this lies outside of it.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


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


def main() -> None:
    """Load the command line and run it; a signal before is one line and its code."""
    received: list[int] = []
    said = "Interrupted before anything was done."
    try:
        with sigterm_as_interrupt() as received:
            from dszog.cli import main as run

            with suppress(ModuleNotFoundError):  # `run` says which one, and the cure
                import dszog.cli.app
                import dszog.cli.solve  # noqa: F401
        said = "Interrupted."
        run()
    except KeyboardInterrupt:  # commands answer it themselves once they have begun
        print(said, file=sys.stderr)
        sys.exit(143 if received else 130)
