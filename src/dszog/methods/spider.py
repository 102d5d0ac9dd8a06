r"""SPIDER: a gradient estimate that is refreshed now and then and corrected in between.

.. math:: v_t = \hat g(x_t; I_t, U_t) - \hat g(x_{t-1}; I_t, U_t) + v_{t-1}

with the same losses :math:`I_t` and the same directions :math:`U_t` at both points, so
that the correction is as small as the step between them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import check_count, check_count_fields
from dszog.maths.random_stream import distinct_indices
from dszog.methods.feasible import COMPARED_BATCH, FeasibleMethod, FeasibleState


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
        if n_losses is not None:
            n_losses = check_count(cls.__name__, "n_losses", n_losses)
            changes = {"period": math.ceil(n_losses / COMPARED_BATCH)} | changes
        settings = {"step_size": step_size, "loss_batch": COMPARED_BATCH}
        return cls(**(settings | changes))

    def _looks_back(self, state: FeasibleState) -> bool:
        return not self._is_refresh(state)

    def _draw(self, rng: np.random.Generator, state: FeasibleState) -> IntArray:
        """Draw losses; for a refresh without repeats, or all of them."""
        n_losses, n_wanted = state.size.n_losses, self._refresh_batch(state.size)
        if not self._is_refresh(state):
            return rng.integers(n_losses, size=self._batch(state.size))
        if n_wanted >= n_losses:
            return np.arange(n_losses)
        return distinct_indices(rng, n_losses, n_wanted)

    def _corrected(
        self, state: FeasibleState, new: FloatArray, old: FloatArray
    ) -> FloatArray:
        return new - old + state.gradient

    def _is_refresh(self, state: FeasibleState) -> bool:
        return state.iteration % self._period(state.size) == 0

    def _period(self, size: ProblemSize) -> int:
        return self.period or self._root(size)

    def _batch(self, size: ProblemSize) -> int:
        return self.loss_batch or self._root(size)

    def _root(self, size: ProblemSize) -> int:
        return math.isqrt(size.n_losses)

    def _refresh_batch(self, size: ProblemSize) -> int:
        return self.refresh_batch or size.n_losses

    def least_queries(self, size: ProblemSize) -> int:
        return self._queries_at_point(size, self._refresh_batch(size))

    def _queries_per_step(self, size: ProblemSize) -> int:
        period = self._period(size)
        between = 2 * self._queries_at_point(size, self._batch(size))
        return (self.least_queries(size) + (period - 1) * between) // period

    def _theory_radius(self, size: ProblemSize) -> float:
        return 1.0 / math.sqrt(size.dim * self._n_steps)
