"""Progress as plain lines, for logs and wherever nothing better is to be had."""

from __future__ import annotations

import math
import sys
import time
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

LINE_EVERY = 5.0  # seconds


class Lines:
    """Prints a line to standard error every few seconds, and one at the end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last = time.monotonic()
        self._window = Window()
        self._untold: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        self._window.add(progress)
        self._untold = progress
        now = time.monotonic()
        if now - self._last < LINE_EVERY:
            return
        self._last = now
        share = share_done(progress, self._limits)
        self._tell(progress, share, time_left(progress, self._limits))

    def finish(self, result: Any) -> None:
        """Print the last state, unless it was: a short run had no line before."""
        if self._untold is not None:
            share = share_at_end(result.status, self._untold, self._limits)
            self._tell(self._untold, share)

    def _tell(self, progress: Progress, share: float, left: float = math.nan) -> None:
        text = line(progress, self._window.take(), left)
        sys.stderr.write(f"dszog {share:4.0%}  {text}\n")
        self._untold = None
