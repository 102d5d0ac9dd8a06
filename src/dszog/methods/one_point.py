"""A gradient estimate from one batch of losses around the iterate, and no memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dszog.contract import Query, Reply, check_replies
from dszog.contract.arrays import FloatArray
from dszog.maths.random_stream import stream
from dszog.methods.feasible import FeasibleMethod, FeasibleState


@dataclass(frozen=True, slots=True, kw_only=True)
class OnePointMethod(FeasibleMethod):
    """The estimate of the methods that look around the iterate alone."""

    def ask(self, state: FeasibleState) -> tuple[Query, ...]:
        """Ask for a batch of losses around the iterate."""
        rng, size = stream(state.seed, state.iteration), state.size
        losses = self._draw(rng, size, self._batch(size))
        steps = self._steps(rng, size, len(losses))
        return self._ask_at(state, state.x, steps, losses)

    def _estimate(
        self, state: FeasibleState, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> FloatArray:
        """Return the estimate."""
        n_expected = self._batch(state.size) if self.per_sample else 1
        check_replies(state.iteration, queries, replies, n_expected)
        return self._gradient(queries, replies, state.size)
