"""Showing how far a run is: on a terminal, in a notebook, or as lines in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from dszog.run.history import Progress
from dszog.run.meter import Limits
from dszog.show.progress.summary import Display, line, share_done

__all__ = ["Display", "line", "share_done", "show_progress"]


@contextmanager
def show_progress(limits: Limits) -> Iterator[Display]:
    """Yield what shows progress, once an iteration and at the end."""
    # Of the limits, at which the run will stop, the nearest sets the bar.
    drawn = _drawn_display()
    with nullcontext(Lines(limits)) if drawn is None else drawn(limits) as display:
        yield display


def _drawn_display() -> Any:
    """Return what draws with rich, an extra; None where nothing can be drawn."""
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    if not is_notebook() and (is_dumb or not sys.stderr.isatty()):
        return None
    try:
        if is_notebook():
            import ipywidgets  # noqa: F401  (which rich draws with there)
        from dszog.show.progress.terminal import terminal_display
    except ImportError:
        return None
    return terminal_display


class Lines(Display):
    """Prints a line to standard error every few seconds, and one at the end."""

    every = 5.0

    def show(self, progress: Progress, share: float, left: float) -> None:
        text = line(progress, self.take(), left)
        sys.stderr.write(f"dszog {share:4.0%}  {text}\n")
        self.last = None


def is_notebook() -> bool:
    """Whether this runs in the kernel of a notebook; imports nothing to find out."""
    module = sys.modules.get("IPython")
    if module is None:
        return False
    shell = getattr(module, "get_ipython", lambda: None)()
    return shell is not None and getattr(shell, "kernel", None) is not None
