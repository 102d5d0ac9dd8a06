"""A problem with a known answer, and what counts as having solved it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import dszog
from dszog._arrays import FloatArray


@dataclass(frozen=True, kw_only=True)
class Case:
    """A problem, its exact measures, and a target that every solver is held to.

    Parameters
    ----------
    name : str
    problem : dszog.Problem
        With the objective and the constraints as black boxes.
    objective : callable
        The mean of all losses at a point: as many queries as there are losses.
    constraints : callable
        The values of all `m` constraints at a point: `m` queries.
    worst : callable
        The largest of them, found in the cheapest way; for watching, not counted.
    optimum : float
        The best value that is known with all constraints kept.
    target_objective, target_violation : float
        A point with at most this objective and worst violation solves the case.
    planned_queries : int
        What DSZOG is told to make do with, which sets how its steps shrink.
    exact_weight : float
        More than the sum of the multipliers at the optimum: a penalty of this weight on
        the worst violation has the same minimum.
    """

    name: str
    problem: dszog.Problem
    objective: Callable[[FloatArray], float]
    constraints: Callable[[FloatArray], FloatArray]
    worst: Callable[[FloatArray], float]
    optimum: float
    target_objective: float
    target_violation: float
    exact_weight: float
    planned_queries: int = 3_000_000

    @property
    def start(self) -> FloatArray:
        """Where every solver begins."""
        return self.problem.x0

    @property
    def n_losses(self) -> int:
        """Queries of one look at the objective."""
        return self.problem.size.n_losses

    @property
    def n_constraints(self) -> int:
        """Queries of one look at all constraints."""
        return self.problem.size.n_constraints

    def is_reached(self, x: FloatArray) -> bool:
        """Whether a point meets the target."""
        if not np.isfinite(x).all() or self.worst(x) > self.target_violation:
            return False
        return self.objective(x) <= self.target_objective
