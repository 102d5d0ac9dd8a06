"""Where a run of the sampled SQP over cases stands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.methods.base import State
from dszog.methods.sampled_sqp.blocks.cases import Cases
from dszog.methods.sampled_sqp.looks import Look, are_indices
from dszog.methods.sampled_sqp.screening import Seen
from dszog.methods.sampled_sqp.state import SqpPhase

_VECTORS = ("start", "scale", "gradient", "bent", "step", "anchor")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BlockState(State):
    """All that was learned, and the looks that come next.

    Slopes and lengths are in scaled variables, ``z = x / scale``.
    """

    phase: SqpPhase
    looks: tuple[Look, ...]  # what is asked next
    cases: Cases
    seen: Seen  # the worst limit of each case that was looked at
    losses: IntArray  # those whose mean is minimised
    start: FloatArray  # (dim,)
    scale: FloatArray  # (dim,)
    gradient: FloatArray  # (dim,), of the objective
    bent: FloatArray  # (dim,), whose square is the curvature along the last step
    reach: float  # of differences
    loss_noise: float
    constraint_noise: float
    usual: float  # size of a limit
    # The step that is tried.
    step: FloatArray  # (dim,)
    promise: float  # decrease of the merit that the step promises
    delta: float  # radius of the trust region
    price: float  # of the largest violation
    # How things go.
    objective: float  # at the iterate
    first_objective: float
    violation: float  # the largest one known at the iterate
    anchor: FloatArray  # (dim,), where all that matters was last learned
    n_learned: int  # times that all that matters was learned anew
    n_trials: int
    n_rejected: int  # trials in a row
    n_verified: int  # times that verification found something
    n_clean: int  # unseen cases looked at since one was violated
    n_retries: int  # of the first look
    unknown: IntArray  # cases that gave no value when they were last asked
    tries: IntArray  # how often that was since the last step
    residual: float  # what the models still promise, relative; -1: not known
    n_loss_queries: int
    n_constraint_queries: int

    takes_unknown = True  # replies may hold nan: a case that fails is left out

    def __post_init__(self) -> None:
        State.__post_init__(self)
        for name in _VECTORS:
            object.__setattr__(self, name, frozen_floats(getattr(self, name)))
        for name in ("losses", "unknown", "tries"):
            object.__setattr__(self, name, frozen_ints(getattr(self, name)))

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes are those of a state of such a problem."""
        return (
            all(getattr(self, name).shape == (size.dim,) for name in _VECTORS)
            and are_indices(self.losses, size.n_losses)
            and are_indices(self.unknown, size.n_constraint_calls)
            and self.unknown.shape == self.tries.shape
            and all(look.fits(size) for look in self.looks)
        )

    @property
    def z(self) -> FloatArray:
        """The iterate in scaled variables."""
        scaled: FloatArray = self.x / self.scale
        return scaled

    @property
    def fallback(self) -> FloatArray:
        """A point that may be feasible where the iterate is not: itself."""
        return self.x

    @property
    def target(self) -> FloatArray:
        """The point that is asked about next."""
        return self.looks[0].at

    def back_to(self, good: Any) -> Self:
        """Return the state that looks half as far."""
        if self.phase != "trial":
            looks = tuple(look.shorter(self.size) for look in self.looks)
            return replace(self, looks=looks)
        look = replace(self.looks[0], at=(self.x + self.looks[0].at) / 2)
        return replace(
            self,
            looks=(look,),
            step=self.step / 2,
            promise=self.promise / 2,
            delta=self.delta / 2,
        )


def served(size: ProblemSize, cases: IntArray) -> IntArray:
    """Return all constraints of these cases, in ascending order."""
    width = size.block_width
    first = width * np.sort(cases)[:, np.newaxis]
    return (first + np.arange(width)).ravel()


def worst_of(values: FloatArray) -> FloatArray:
    """Return the largest limit of each case."""
    worst: FloatArray = values.max(axis=1, initial=-np.inf)
    return worst
