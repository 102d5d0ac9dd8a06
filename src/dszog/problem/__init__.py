"""What is minimised, and under which constraints."""

from __future__ import annotations

from dszog.problem.problem import Asking, Losses, Problem

__all__ = ["Asking", "Losses", "Problem"]
