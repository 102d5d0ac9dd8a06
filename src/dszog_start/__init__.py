"""What the command `dszog` runs first.

The library takes a second to load. A signal that comes in that time has to be answered
by something that loads at once, so this lies outside of it.
"""

from __future__ import annotations

import signal
import sys
from contextlib import suppress
from typing import Any


def main() -> None:
    """Load the command line and run it; a signal before is one line and its code."""
    received: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt

    said = "Interrupted before anything was done."
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        from dszog.cli import main as run

        with suppress(ModuleNotFoundError):  # `run` says which one, and the cure
            import dszog.cli.app
            import dszog.cli.solve  # noqa: F401
        signal.signal(signal.SIGTERM, before)
        said = "Interrupted."
        run()
    except KeyboardInterrupt:  # commands answer it themselves once they have begun
        print(said, file=sys.stderr)
        sys.exit(143 if received else 130)
