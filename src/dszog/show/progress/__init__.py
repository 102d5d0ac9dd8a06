"""Showing how far a run is: on a terminal, in a notebook, or as lines in a log."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dszog.run.history import Callback
from dszog.run.meter import Limits
from dszog.show.progress.lines import Lines
from dszog.show.progress.notebook import NotebookBar, is_notebook
from dszog.show.progress.summary import line, share_done

__all__ = ["line", "share_done", "show_progress"]


@contextmanager
def show_progress(wanted: bool, limits: Limits) -> Iterator[tuple[Callback, ...]]:
    """Yield the callbacks that show progress, none if it is not wanted.

    Parameters
    ----------
    wanted : bool
    limits : Limits
        Where the run will stop; the limit that is nearest sets the bar.
    """
    if not wanted:
        yield ()
        return
    if is_notebook():
        yield (NotebookBar(limits),)
        return
    if not _is_drawable():
        yield (Lines(limits),)
        return
    try:
        from dszog.show.progress.terminal import terminal_display
    except ImportError:  # rich is an extra
        yield (Lines(limits),)
        return
    with terminal_display(limits) as show:
        yield (show,)


def _is_drawable() -> bool:
    """Whether standard error is a terminal on which a line can be written over."""
    is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown")
    return sys.stderr.isatty() and not is_dumb
