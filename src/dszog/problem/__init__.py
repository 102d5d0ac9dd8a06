"""What is minimised, and under which constraints."""

from __future__ import annotations

from dszog.problem.losses import Losses
from dszog.problem.problem import Asking, Problem

__all__ = ["Asking", "Losses", "Problem"]
