"""What it costs to answer queries, known before any is answered."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from dszog.contract.query import Query
from dszog.contract.size import Calls, ProblemSize


class Cost(NamedTuple):
    """Queries: calls of the user's functions for one point and one index."""

    losses: int
    constraints: int

    @property
    def total(self) -> int:
        """Both together."""
        return self.losses + self.constraints


def cost(queries: Sequence[Query], size: ProblemSize) -> Cost:
    """Return what it costs to answer these queries, before any is answered.

    An index that is repeated in a query is charged once. Where a call serves several
    constraints, or a loss as well, the call is charged once for each distinct point.
    """
    if size.calls is None:
        losses = constraints = 0
        for query in queries:
            n = len(query.steps) + 1 + (query.want == "gradients")
            losses += n * len(query.distinct_losses[0])
            constraints += n * len(query.distinct_constraints[0])
        return Cost(losses, constraints)
    parts = [_calls_needed(query, size, size.calls) for query in queries]
    for_losses = set().union(*(part.for_losses for part in parts))
    for_constraints = set().union(*(part.for_constraints for part in parts))
    return Cost(
        losses=sum(part.plain_losses for part in parts) + len(for_losses),
        constraints=sum(part.plain_constraints for part in parts)
        + len(for_constraints - for_losses),
    )


_Call: TypeAlias = tuple[bytes, bool, int]  # a point, whether a gradient, its number


class _CallsNeeded(NamedTuple):
    """The calls that a query needs: how many plain ones, and which remembered ones."""

    plain_losses: int
    plain_constraints: int
    for_losses: set[_Call]
    for_constraints: set[_Call]


@lru_cache(maxsize=8)  # what a query costs is asked before, at and after its answer
def _calls_needed(query: Query, size: ProblemSize, calls: Calls) -> _CallsNeeded:
    """Return the calls that a query needs."""
    losses, constraints = query.distinct_losses[0], query.distinct_constraints[0]
    shared = losses[losses < calls.n_shared].tolist()
    remembered = constraints[calls.are_remembered(constraints)]
    numbers = np.unique(calls.of(remembered)).tolist()
    points = [(point.tobytes(), False) for point in query.points(size)]
    if query.want == "gradients":
        points.append((points[0][0], True))
    return _CallsNeeded(
        query.n_evaluations * (len(losses) - len(shared)),
        query.n_evaluations * (len(constraints) - len(remembered)),
        {(*point, i) for point in points for i in shared},
        {(*point, number) for point in points for number in numbers},
    )
