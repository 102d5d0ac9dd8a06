"""DSZOG where somebody else holds the variables: points are names.

A network on a GPU is moved and perturbed where it is. The method sees a point as a name
of a few numbers: how many moves lead there from the start, along which directions the
last of them went and by how much along each, and along which direction it is perturbed.
Whoever holds the variables follows the names (``dszog.torch``). All else is as with any
method: a run is saved, resumed, limited and checked by the same code.

With so many variables almost all of a step along random directions is noise. A step of
a length that is known beforehand cannot run away, whatever the slope: over a factor of
30 none did. A penalty of 1 was best on all networks that were tried, and raising it did
harm. `settings_for` has these settings, also for vectors too long to keep many of.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np

from dszog.contract import ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.signs import Signs
from dszog.methods.at_once import Step
from dszog.methods.dszog import DSZOG, DSZOGState, PenaltyRounds

HEAD = 4  # numbers of a name before the amounts
RISE = 10.0  # times the penalty at the end of a run: first learn, then mend
SETTINGS: dict[str, Any] = {
    "directions": "rademacher",
    "normalised": True,
    "penalty": 1.0,
    "radius": 1e-3,
}
REACH = 1.5  # of the length of x0, that all steps in one direction would go
WANDER = 1.0  # of it, that steps in random directions would go
MOST = 0.02  # of it, that one step goes at most, however short the run
UNKNOWN_LENGTH = 2000  # iterations, where only time limits a run


class PointName(NamedTuple):
    """A point, as a name says it."""

    n_moves: int  # from the start
    iteration: int  # whose directions the last move went along
    perturbed: int  # along which direction, counted from 1; 0 if not
    perturbed_at: int  # the iteration whose direction that is
    amounts: tuple[float, ...]  # of the last move, along each direction

    @classmethod
    def of(cls, point: FloatArray) -> PointName:
        """Read a name."""
        n_moves, iteration, perturbed, perturbed_at = map(int, point[:HEAD])
        amounts = tuple(point[HEAD:].tolist())
        return cls(n_moves, iteration, perturbed, perturbed_at, amounts)

    @property
    def vector(self) -> FloatArray:
        """The name as numbers."""
        return np.array([*self[:HEAD], *self.amounts], dtype=float)

    def move(self, seed: int, dim: int) -> Signs:
        """Return the directions of the last move."""
        numbers = tuple(range(len(self.amounts)))
        return Signs(seed, self.iteration, numbers, dim, 1.0)


@dataclass(frozen=True, eq=False, kw_only=True)
class NamedState(DSZOGState):
    """Where a run stands whose points are names."""

    def back_to(self, good: Any) -> Self:
        """Return the state with half of the last move taken back."""
        last = PointName.of(self.x)
        back = last._replace(
            n_moves=last.n_moves + 1, amounts=tuple(-a / 2 for a in last.amounts)
        )
        return replace(self, x=back.vector)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedDSZOG(DSZOG):
    """DSZOG by names: random signs, normalised steps, no average of gradients.

    Parameters
    ----------
    n_variables : int
        How many variables there are behind the names.
    """

    n_variables: int

    def _begun(
        self, first: DSZOGState, weights: tuple[IntArray, FloatArray] | None
    ) -> NamedState:
        return NamedState(**vars(first))

    def _around(
        self, state: DSZOGState, directions: FloatArray
    ) -> tuple[FloatArray, Any, FloatArray | None]:
        """Return the name of the iterate, and what to add for each perturbed point."""
        steps = np.zeros((self.n_directions, len(state.x)))
        steps[:, 2] = np.arange(1, self.n_directions + 1)
        steps[:, 3] = state.iteration
        return state.x, frozen_floats(steps), None

    def _along_names(
        self, state: DSZOGState, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> Step:
        """Take one move, which is named, and one step in the weights."""
        raised = self
        if self.step_decay == "linear":  # else nobody knows how much is over
            rise = RISE ** min(self.gone_at(state), 1.0)
            raised = replace(self, penalty=self.penalty * rise)
        found, weights, info = raised._amounts(
            state, queries, replies, self.n_variables
        )
        amounts = np.zeros(self.n_directions)
        amounts[queries[0].steps[:, 2].astype(int) - 1] = found
        n_moves = PointName.of(state.x).n_moves + 1
        name = PointName(n_moves, state.iteration, 0, 0, tuple(amounts.tolist()))
        return name.vector, state.velocity, weights, info

    def policy(self, fixed: frozenset[str]) -> NamedRounds:
        """Return how a run uses the method: names have no average."""
        return NamedRounds(fixed | {"penalty"})


class NamedRounds(PenaltyRounds):
    """One round; names have no average."""

    def averaged(self, average: FloatArray, state: Any, n: int) -> FloatArray:
        """Return the last iterate."""
        x: FloatArray = state.x
        return x


# ------------------------------------------------------------------------- settings


def step_for(
    length: float,
    dim: int,
    n_directions: int,
    n_iterations: int,
    wander: float = WANDER,
) -> float:
    """Return the step size, the root mean square over the variables.

    Of a step, the part along the gradient is the root of ``n_directions / dim``. All of
    them together shall reach far enough, and the rest not wander off too far.

    Examples
    --------
    >>> round(step_for(length=20.0, dim=20_000, n_directions=5, n_iterations=10**4), 6)
    0.001342
    """
    n = max(n_iterations, 1)
    share = min(REACH * math.sqrt(dim / n_directions) / n, wander / math.sqrt(n))
    return min(share, MOST) * (length or math.sqrt(dim)) / math.sqrt(dim)


def n_steps(
    method: DSZOG, size: ProblemSize, iterations: int | None, queries: int | None
) -> int:
    """Return how many steps a run within these limits will take, about."""
    found = [] if iterations is None else [iterations]
    if queries is not None:
        n_losses, n_drawn, n_duals = method.batches(size)
        each = (1 + method.n_directions) * (n_losses + n_drawn) + n_duals
        found.append(int(0.9 * queries / each))
    return max(min(found, default=UNKNOWN_LENGTH), 1)


def settings_for(
    given: Mapping[str, Any],
    length: float,
    dim: int,
    size: ProblemSize,
    iterations: int | None,
    queries: int | None,
    wander: float = WANDER,
) -> dict[str, Any]:
    """Return settings for so many variables, of which some may be given."""
    chosen = SETTINGS | dict(given)
    if "step_size" not in chosen and chosen["normalised"]:
        method = DSZOG(**chosen)
        n = n_steps(method, size, iterations, queries)
        chosen["step_size"] = step_for(length, dim, method.n_directions, n, wander)
    return chosen
