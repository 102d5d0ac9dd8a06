"""Progress in a notebook: one line of HTML that is written over; no widgets needed."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

from dszog.run.history import Progress
from dszog.run.meter import Limits
from dszog.show.progress.summary import (
    Window,
    line,
    share_at_end,
    share_done,
    time_left,
)

SHOW_EVERY = 0.5  # seconds: each update is a message to the browser


def is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook; imports nothing to find out."""
    module = sys.modules.get("IPython")
    if module is None:
        return False
    shell = getattr(module, "get_ipython", lambda: None)()
    return shell is not None and getattr(shell, "kernel", None) is not None


class NotebookBar:
    """A bar with a line of text, in the output of the cell that is run."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last = time.monotonic()
        self._window = Window()
        self._progress: Progress | None = None
        self._place: Any = None
        self._show(0.0, "starting")

    def __call__(self, progress: Progress) -> None:
        """Write over what was shown, every now and then."""
        self._window.add(progress)
        self._progress = progress
        now = time.monotonic()
        if now - self._last < SHOW_EVERY:
            return
        self._last = now
        text = line(progress, self._window.take(), time_left(progress, self._limits))
        self._show(share_done(progress, self._limits), text)

    def finish(self, result: Any) -> None:
        """Show the last state, the bar full if the run went as far as it might."""
        last = self._progress
        if last is None:
            return
        share = share_at_end(result.status, last, self._limits)
        self._show(share, line(last, self._window.take()))

    def _show(self, share: float, text: str) -> None:
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
