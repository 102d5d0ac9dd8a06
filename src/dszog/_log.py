"""The logger that a run reports to: ``logging.getLogger("dszog")``.

INFO tells of starts, stops, new rounds, saves and resumed runs, WARNING of failures
and of work done again, DEBUG of each iteration. Nobody hears it who did not ask.
"""

from __future__ import annotations

import logging

LOGGER = logging.getLogger("dszog")
LOGGER.addHandler(logging.NullHandler())


def is_turn(count: int) -> bool:
    """Whether a count is worth a line: 1, 2, 4, 8, ..., so that logs stay short."""
    return count > 0 and not count & (count - 1)
