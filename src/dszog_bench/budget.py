"""What a solver sees of a case: values that are counted, timed and watched."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from dszog.contract.arrays import FloatArray
from dszog_bench.cases import Case


class OverError(Exception):
    """The target is reached, or what was allowed is used up: the solver is stopped."""


@dataclass
class Budget:
    """Counts queries and seconds, and stops a solver that is done.

    A query is one value at one point for one index: a look at all constraints costs as
    many as there are. Watching whether the target is reached is neither counted nor
    timed. Values at the point that was asked for last are remembered and cost nothing.
    """

    case: Case
    seconds: float  # of real time
    queries: int  # in all
    n_losses: int = 0
    n_constraints: int = 0
    is_reached: bool = False
    best_gap: float = np.inf  # the least objective over the optimum that was feasible
    least_violation: float = np.inf
    ended: float | None = None  # own seconds when the solver was stopped
    leave: Callable[[], None] | None = None  # for a solver that swallows exceptions
    _began: float = field(default_factory=time.perf_counter)
    _watching: float = 0.0
    _known: dict[str, tuple[bytes, Any]] = field(default_factory=dict)

    @property
    def own_seconds(self) -> float:
        """Time of the solver and its evaluations, without the watching."""
        if self.ended is not None:
            return self.ended
        return time.perf_counter() - self._began - self._watching

    @property
    def is_over(self) -> bool:
        """Whether the target is reached or the time is up."""
        return self.is_reached or self.own_seconds > self.seconds

    def objective(self, x: FloatArray) -> float:
        return float(self._looked("losses", self.case.objective, x))

    def constraints(self, x: FloatArray) -> FloatArray:
        """Return all constraints; they hold where they are at most 0."""
        values: FloatArray = self._looked("constraints", self.case.all_constraints, x)
        return values

    def worst(self, x: FloatArray) -> float:
        """Return the worst violation, from a look at all constraints."""
        return max(float(self.constraints(x).max()), 0.0)

    def _looked(self, what: str, values: Callable[[FloatArray], Any], x: Any) -> Any:
        x = np.asarray(x, dtype=float)
        point, known = self._known.get(what, (b"", None))
        if point == x.tobytes():
            return known
        if self.is_over or self.n_losses + self.n_constraints > self.queries:
            self.stop()
        if what == "losses":
            self.n_losses += self.case.n_losses
        else:
            self.n_constraints += self.case.n_constraints
        known = values(x)
        self._known[what] = (x.tobytes(), known)
        self.watch(x)
        return known

    def stop(self) -> NoReturn:
        self.ended = self.own_seconds
        raise OverError

    def watch(self, x: FloatArray) -> None:
        """Look whether a point meets the target; stop the solver if it does."""
        before = time.perf_counter()
        violation = max(self.case.worst(x), 0.0) if np.isfinite(x).all() else np.inf
        self.least_violation = min(self.least_violation, violation)
        if violation <= self.case.target_violation:
            value = self.case.objective(x)
            self.best_gap = min(self.best_gap, value - self.case.known.value)
            self.is_reached = value <= self.case.target_objective
        self._watching += time.perf_counter() - before
        if self.is_reached:
            self.stop()
