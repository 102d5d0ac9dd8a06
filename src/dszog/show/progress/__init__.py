"""Showing how far a run is: on a terminal, in a notebook, or as lines in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from typing import Any

from dszog.run.history import Callback, Progress
from dszog.run.meter import Limits
from dszog.show.progress.summary import Display, line, share_done

__all__ = ["line", "share_done", "show_progress"]


@contextmanager
def show_progress(wanted: bool, limits: Limits) -> Iterator[tuple[Callback, ...]]:
    """Yield the callbacks that show progress, none if it is not wanted.

    Of the limits, at which the run will stop, the nearest sets the bar.
    """
    if not wanted:
        yield ()
        return
    if is_notebook():
        yield (NotebookBar(limits),)
        return
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    if is_dumb or not sys.stderr.isatty():
        yield (Lines(limits),)
        return
    try:
        from dszog.show.progress.terminal import terminal_display
    except ImportError:  # rich is an extra
        yield (Lines(limits),)
        return
    with terminal_display(limits) as show:
        yield (show,)


class Lines(Display):
    """Prints a line to standard error every few seconds, and one at the end."""

    every = 5.0

    def show(self, progress: Progress, share: float, left: float) -> None:
        """Print a line; at the end none if the last state was printed."""
        text = line(progress, self.window.take(), left)
        sys.stderr.write(f"dszog {share:4.0%}  {text}\n")
        self.last = None


def is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook; imports nothing to find out."""
    module = sys.modules.get("IPython")
    if module is None:
        return False
    shell = getattr(module, "get_ipython", lambda: None)()
    return shell is not None and getattr(shell, "kernel", None) is not None


class NotebookBar(Display):
    """A bar with a line of text, in the output of the cell that is run.

    By hand, as rich needs widgets there.
    """

    every = 0.5  # each update is a message to the browser

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._place: Any = None
        self._draw(0.0, "starting")

    def show(self, progress: Progress, share: float, left: float) -> None:
        """Write over what was shown."""
        self._draw(share, line(progress, self.window.take(), left))

    def _draw(self, share: float, text: str) -> None:
        from IPython.display import HTML, display

        shown = HTML(
            f'<div style="font-variant-numeric:tabular-nums">'
            f'<progress value="{share:.4f}" max="1" style="width:14em;'
            f'vertical-align:middle"></progress> {share:.0%} &nbsp; '
            f"{escape(text)}</div>"
        )
        if self._place is None:
            self._place = display(shown, display_id=True)
        else:
            self._place.update(shown)
