"""Answer queries one after the other, in the caller's thread."""

from __future__ import annotations

from collections.abc import Sequence

from dszog.evaluators.base import answer
from dszog.problem import Problem
from dszog.query import Query, Reply


class Serial:
    """The evaluator of one process: it calls the user's functions directly."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        """Return one reply per query."""
        return answer(self._problem, queries)

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
