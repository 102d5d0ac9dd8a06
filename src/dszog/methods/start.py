r"""The first look at the constraints, from which the first weights follow.

Algorithm 1 starts at :math:`p_1 = \Pi_\Delta(\beta \phi(w_1) / \lambda)`. The penalties
come in blocks of all constraints, or in one large uniform draw; only those that can
have a positive weight are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.maths.penalties import cut, squared_violation
from dszog.maths.random_stream import constraint_block

BLOCK = 2**17  # constraints asked for at a time, if all are looked at, at most
FIRST_BLOCK = 2**8  # and at first
SAMPLE = 2**14  # constraints drawn, if not


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StartPass:
    """A look at the constraints that is under way."""

    n_seen: int = 0  # all constraints below this number were looked at
    indices: IntArray = field(default_factory=lambda: NO_INDICES)  # kept, ascending
    penalties: FloatArray = field(default_factory=lambda: np.empty(0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "indices", frozen_ints(self.indices))
        object.__setattr__(self, "penalties", frozen_floats(self.penalties))

    def next_block(self, size: ProblemSize) -> IntArray:
        # Doubling: after a few, one knows how long they take.
        n_wanted = min(max(self.n_seen, FIRST_BLOCK), BLOCK)
        return constraint_block(self.n_seen, n_wanted, size)

    def seen(
        self, asked: IntArray, query: Query, values: FloatArray, margin: float
    ) -> StartPass:
        r"""Return the look with one more block taken in.

        Of the constraints asked for, those that gave no value are not in the query.
        A weight can be positive only if its penalty is positive and within the margin
        :math:`\lambda / \beta` of the largest.
        """
        indices = np.concatenate([self.indices, query.constraints])
        with np.errstate(over="ignore"):
            penalties = cut(squared_violation(values))
        penalties = np.concatenate([self.penalties, penalties])
        keep = (penalties > 0.0) & (penalties >= penalties.max() - margin)
        return StartPass(
            n_seen=int(asked[-1]) + 1,
            indices=indices[keep],
            penalties=penalties[keep],
        )


def sample_size(size: ProblemSize, n_queries: int | None) -> int:
    """Return how many constraints to draw: at most for a tenth of limited queries."""
    n_wanted = min(SAMPLE, size.n_constraints)
    if n_queries is None:
        return n_wanted
    return min(n_wanted, max(n_queries // 10, 1))
