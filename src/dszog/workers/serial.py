"""Answer queries one after the other, in the caller's thread."""

from __future__ import annotations

from collections.abc import Sequence

from dszog.contract import Query, Reply
from dszog.problem import Problem
from dszog.workers._chunks import Assembly, cut, each_piece, needs_cut, whole_limits
from dszog.workers.base import answer


class Serial:
    """The evaluator of one process: it calls the user's functions directly."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._limits = whole_limits(problem)

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        self._problem.prepare()  # not before: perhaps nothing is asked
        if not needs_cut(self._limits, queries):
            return answer(self._problem, queries)
        assembly = Assembly(queries)
        if self._problem.size.calls is None:  # a piece is made when it is its turn
            for piece in each_piece(self._problem, queries):
                assembly.put(piece, answer(self._problem, piece.parts))
            return assembly.replies()
        pieces = cut(self._problem, queries)
        replies = iter(answer(self._problem, [p for one in pieces for p in one.parts]))
        for piece in pieces:
            assembly.put(piece, [next(replies) for _ in piece.parts])
        return assembly.replies()

    def close(self) -> None:
        """Do nothing: there is nothing to let go of."""
