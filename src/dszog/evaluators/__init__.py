"""Evaluators hold the user's functions and answer queries."""

from dszog.evaluators.base import Evaluator
from dszog.evaluators.serial import Serial

EVALUATORS: dict[str, type[Evaluator]] = {"serial": Serial}
"""Every evaluator by the name `minimize(evaluator=...)` knows it by."""

__all__ = ["EVALUATORS", "Evaluator", "Serial"]
