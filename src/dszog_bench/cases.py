"""Problems with a known optimum, and what counts as having solved them."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import dszog
from dszog.contract.arrays import FloatArray, IntArray

OPTIMA = Path(__file__).parent / "optima.json"


@dataclass(frozen=True, kw_only=True)
class Optimum:
    """The best point that is known, with the evidence for it.

    From SLSQP with exact gradients, on a growing set of constraints, from many starts.
    """

    w: list[float]
    value: float
    worst_violation: float
    kkt_residual: float
    multiplier_sum: float
    start_values: list[float]  # where each start ended
    seconds: float
    old: list[float] = field(default_factory=list)  # a model that the problem is about


def load_optimum(name: str) -> Optimum:
    return Optimum(**json.loads(OPTIMA.read_text(encoding="utf-8"))[name])


class Case(ABC):
    """A mean of losses under constraints that hold where they are at most 0."""

    n_losses: int
    n_constraints: int
    start: FloatArray  # where every solver begins; feasible
    target_objective: float  # a point with at most this objective ...
    target_violation: float  # ... and this worst violation solves the case
    planned_queries = 3_000_000  # DSZOG is told so: it sets how its steps shrink
    known: Optimum

    @abstractmethod
    def losses(self, points: FloatArray, indices: IntArray) -> Any:
        """Return values of losses, a row per point."""

    @abstractmethod
    def constraints(self, points: FloatArray, indices: IntArray) -> Any:
        """Return values of constraints, a row per point."""

    @cached_property
    def problem(self) -> dszog.Problem:
        """The problem with the objective and the constraints as black boxes."""
        return dszog.Problem(
            dszog.Losses(self.losses, self.n_losses),
            dszog.Constraints(self.constraints, self.n_constraints),
            len(self.start),
            x0=self.start,
        )

    def objective(self, w: FloatArray) -> float:
        return float(self.losses(w[np.newaxis], np.arange(self.n_losses)).mean())

    def all_constraints(self, w: FloatArray) -> Any:
        indices = np.arange(self.n_constraints)
        return self.constraints(w[np.newaxis], indices)[0]

    def worst(self, w: FloatArray) -> float:
        return float(self.all_constraints(w).max())
