r"""SPIDER: a gradient estimate that is refreshed now and then and corrected in between.

.. math:: v_t = \hat g(x_t; I_t, U_t) - \hat g(x_{t-1}; I_t, U_t) + v_{t-1}

with the same losses :math:`I_t` and the same directions :math:`U_t` at both points, so
that the correction is as small as the step between them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from dszog.contract import ProblemSize, Query, Reply, check_replies
from dszog.contract.arrays import FloatArray
from dszog.contract.validation import check_count, check_count_fields
from dszog.maths.random_stream import stream
from dszog.methods.estimates import in_common
from dszog.methods.feasible import (
    COMPARED_BATCH,
    FeasibleMethod,
    FeasibleState,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpiderMethod(FeasibleMethod):
    r"""Fields of the methods that estimate by SPIDER.

    Parameters
    ----------
    period : int, optional
        Steps from one refresh to the next; :math:`\sqrt n` if not given.
    refresh_batch : int, optional
        Losses that a refresh looks at, drawn without repeats; all of them if not given.
        `loss_batch` is :math:`\sqrt n` if not given.
    """

    compares_points: ClassVar[bool] = True

    period: int | None = None
    refresh_batch: int | None = None

    def __post_init__(self) -> None:
        FeasibleMethod.__post_init__(self)
        check_count_fields(self, "period", "refresh_batch", optional=True)

    @classmethod
    def for_comparison(
        cls, step_size: float = 1e-2, n_losses: int | None = None, **changes: Any
    ) -> Self:
        """Return the settings of the DSZOG paper's comparison."""
        settings: dict[str, Any] = {
            "step_size": step_size,
            "loss_batch": COMPARED_BATCH,
        }
        if n_losses is not None:
            n_losses = check_count(cls.__name__, "n_losses", n_losses)
            settings["period"] = math.ceil(n_losses / COMPARED_BATCH)
        return cls(**(settings | changes))

    def ask(self, state: FeasibleState) -> tuple[Query, ...]:
        """Ask around the iterate; between refreshes also around the one before."""
        rng, size = stream(state.seed, state.iteration), state.size
        if self._is_refresh(state):
            losses = self._draw_refresh(rng, size, self._refresh_batch(size))
            steps = self._steps(rng, size, len(losses))
            return self._ask_at(state, state.x, steps, losses)
        losses = self._draw(rng, size, self._batch(size))
        steps = self._steps(rng, size, len(losses))
        here = self._ask_at(state, state.x, steps, losses)
        return here + self._ask_at(state, state.previous, steps, losses)

    def _spider(
        self, state: FeasibleState, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> FloatArray:
        check_replies(state.iteration, queries, replies, self._n_queries(state))
        if self._is_refresh(state):
            return self._gradient(queries, replies, state.size)
        both = in_common(queries, replies)
        if both is None:
            return state.gradient
        new = self._gradient(both.queries, both.replies, state.size)
        old = self._gradient(both.queries_before, both.replies_before, state.size)
        return new - old + state.gradient

    def _is_refresh(self, state: FeasibleState) -> bool:
        return state.iteration % self._period(state.size) == 0

    def _n_queries(self, state: FeasibleState) -> int:
        refresh = self._is_refresh(state)
        if not self.per_sample:
            return 1 if refresh else 2
        if refresh:
            return min(self._refresh_batch(state.size), state.size.n_losses)
        return 2 * self._batch(state.size)

    def _period(self, size: ProblemSize) -> int:
        return self.period or max(math.isqrt(size.n_losses), 1)

    def _batch(self, size: ProblemSize) -> int:
        return self.loss_batch or max(math.isqrt(size.n_losses), 1)

    def _refresh_batch(self, size: ProblemSize) -> int:
        return self.refresh_batch or size.n_losses

    def least_queries(self, size: ProblemSize) -> int:
        return self._queries_at_point(size, self._refresh_batch(size))

    def _queries_per_step(self, size: ProblemSize) -> int:
        period = self._period(size)
        between = 2 * self._queries_at_point(size, self._batch(size))
        return (self.least_queries(size) + (period - 1) * between) // period
