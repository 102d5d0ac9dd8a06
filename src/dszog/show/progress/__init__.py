"""Showing how far a run is: on a terminal, in a notebook, or as lines in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from dszog.run.history import Callback, Progress
from dszog.run.meter import Limits
from dszog.show.progress.summary import Display, line, share_done

__all__ = ["line", "share_done", "show_progress"]


@contextmanager
def show_progress(wanted: bool, limits: Limits) -> Iterator[tuple[Callback, ...]]:
    """Yield the callbacks that show progress, none if it is not wanted."""
    # Of the limits, at which the run will stop, the nearest sets the bar.
    if not wanted:
        yield ()
        return
    if not _can_be_drawn_on() or find_spec("rich") is None:  # an extra
        yield (Lines(limits),)
        return
    from dszog.show.progress.terminal import terminal_display

    with terminal_display(limits) as show:
        yield (show,)


def _can_be_drawn_on() -> bool:
    if is_notebook():
        return find_spec("ipywidgets") is not None  # rich draws with them
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return sys.stderr.isatty() and not is_dumb


class Lines(Display):
    """Prints a line to standard error every few seconds, and one at the end."""

    every = 5.0

    def show(self, progress: Progress, share: float, left: float) -> None:
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
