r"""FCGS: conditional gradient sliding along exact gradients.

Not a zeroth-order method, although it is listed among them in the comparison that this
library reproduces: it needs the gradients of the losses.

References
----------
.. [1] H. Gao and H. Huang, "Can stochastic zeroth-order Frank-Wolfe method converge
   faster for non-convex problems?", ICML 2020, PMLR 119, Algorithm 4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dszog.contract import ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import InputError
from dszog.methods.feasible import FeasibleState
from dszog.methods.fzcgs import FZCGS


@dataclass(frozen=True, slots=True, kw_only=True)
class FCGS(FZCGS):
    """Make proximal steps as :class:`FZCGS` does, on gradients that are given.

    The fields are those of :class:`FZCGS`; what is said there of estimates has no
    effect.
    """

    needs_gradient: ClassVar[bool] = True

    def __post_init__(self) -> None:
        FZCGS.__post_init__(self)
        if self.per_sample:
            raise InputError(
                "FCGS: `per_sample` is for estimates, got True for a method that is "
                "given gradients. Leave it out."
            )

    def _steps(
        self, rng: np.random.Generator, size: ProblemSize, batch: int
    ) -> FloatArray:
        return np.empty((0, size.dim))

    def _ask_at(
        self, state: FeasibleState, x: FloatArray, steps: FloatArray, losses: IntArray
    ) -> tuple[Query, ...]:
        """Ask for gradients at the point, where others ask for values around it."""
        return (
            Query.at(x, iteration=state.iteration, losses=losses, want="gradients"),
        )

    def _gradient(
        self, queries: Sequence[Query], replies: Sequence[Reply], size: ProblemSize
    ) -> FloatArray:
        mean: FloatArray = replies[0].loss_gradients.mean(axis=0)
        return mean

    def _queries_at_point(self, size: ProblemSize, batch: int) -> int:
        return 2 * min(batch, size.n_losses)
