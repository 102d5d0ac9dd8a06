"""Progress as plain lines, for logs and wherever nothing better is to be had."""

from __future__ import annotations

import sys
import time

from dszog.progress.summary import Window, line, share_done, time_left
from dszog.run import Limits, Progress

LINE_EVERY = 5.0  # seconds


class Lines:
    """Prints a line to standard error every few seconds."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._last = time.monotonic()
        self._window = Window()

    def __call__(self, progress: Progress) -> None:
        self._window.add(progress)
        now = time.monotonic()
        if now - self._last < LINE_EVERY:
            return
        self._last = now
        done = share_done(progress, self._limits)
        text = line(progress, self._window.take(), time_left(progress, self._limits))
        sys.stderr.write(f"dszog {done:4.0%}  {text}\n")
