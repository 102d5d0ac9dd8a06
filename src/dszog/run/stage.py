"""Where one call of a front door stands: which attempt, which round, where in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dszog.run.loop import Position
from dszog.run.meter import Limits


@dataclass(kw_only=True)
class Stage:
    """One round of one attempt."""

    attempt: int  # how often the run was started again with a smaller step
    round: int
    ends: list[Limits]  # of each round
    method: Any  # as planned for this round
    position: Position

    @property
    def end(self) -> Limits:
        """Where this round ends."""
        return self.ends[self.round]
