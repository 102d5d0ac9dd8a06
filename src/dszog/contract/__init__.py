"""The contract between methods, which ask, and evaluators, which answer.

A method describes what it wants to know as a :class:`Query` of plain arrays; an
evaluator, which alone holds the user's functions, returns a :class:`Reply`. Neither
half of the library knows anything else about the other.
"""

from __future__ import annotations

from dszog.contract.query import (
    NO_GRADIENTS,
    NO_INDICES,
    NO_ITERATION,
    Cost,
    Distinct,
    Evaluate,
    Failure,
    Purpose,
    Query,
    Reply,
    Want,
    check_replies,
    cost,
    no_steps,
)
from dszog.contract.signs import Signs
from dszog.contract.size import Calls, ProblemSize

__all__ = [
    "NO_GRADIENTS",
    "NO_INDICES",
    "NO_ITERATION",
    "Calls",
    "Cost",
    "Distinct",
    "Evaluate",
    "Failure",
    "ProblemSize",
    "Purpose",
    "Query",
    "Reply",
    "Signs",
    "Want",
    "check_replies",
    "cost",
    "no_steps",
]
