r"""STORM: a gradient estimate with momentum that corrects itself at every step.

.. math:: v_t = \hat g(x_t; I_t, U_t)
          + (1 - \rho_t) \bigl(v_{t-1} - \hat g(x_{t-1}; I_t, U_t)\bigr)

with the same losses :math:`I_t` and the same directions :math:`U_t` at both points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dszog.contract import ProblemSize, Query, Reply, check_replies
from dszog.contract.arrays import FloatArray
from dszog.maths.random_stream import stream
from dszog.methods.estimates import in_common
from dszog.methods.feasible import FeasibleMethod, FeasibleState


@dataclass(frozen=True, slots=True, kw_only=True)
class StormMethod(FeasibleMethod):
    """The estimate of the methods that estimate by STORM."""

    compares_points: ClassVar[bool] = True

    def ask(self, state: FeasibleState) -> tuple[Query, ...]:
        """Ask around the iterate, and from the second time on around the one before."""
        rng, size = stream(state.seed, state.iteration), state.size
        losses = self._draw(rng, size, self._batch(size))
        steps = self._steps(rng, size, len(losses))
        here = self._ask_at(state, state.x, steps, losses)
        if state.iteration == 0:
            return here
        return here + self._ask_at(state, state.previous, steps, losses)

    def _storm(
        self,
        state: FeasibleState,
        queries: Sequence[Query],
        replies: Sequence[Reply],
        share: float,
    ) -> FloatArray:
        r"""Return the new estimate; `share` is :math:`\rho_t`, the newest one's."""
        check_replies(state.iteration, queries, replies, self._n_queries(state))
        if state.iteration == 0:
            return self._gradient(queries, replies, state.size)
        both = in_common(queries, replies)
        if both is None:
            return state.gradient
        new = self._gradient(both.queries, both.replies, state.size)
        old = self._gradient(both.queries_before, both.replies_before, state.size)
        return new + (1.0 - share) * (state.gradient - old)

    def _n_queries(self, state: FeasibleState) -> int:
        n_points = 1 if state.iteration == 0 else 2
        return n_points * (self._batch(state.size) if self.per_sample else 1)

    def _queries_per_step(self, size: ProblemSize) -> int:
        return 2 * self.least_queries(size)
