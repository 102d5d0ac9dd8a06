"""The yardstick of an iteration: its own queries, answered by plain NumPy.

A run is recorded: which points and indices its losses and constraints were asked for,
and when. Then exactly the same values are computed again by the straightforward code
below: gather rows, multiply, apply the loss. **This code is frozen**: it is what
iterations are compared with, over all versions, so it must never be made faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray

Values: TypeAlias = Callable[[FloatArray, IntArray], Any]


@dataclass(frozen=True, eq=False)
class Call:
    """One call of a black box."""

    kind: Literal["loss", "pair"]
    points: FloatArray  # (k, dim)
    indices: IntArray  # (b,)


@dataclass
class Record:
    """What a run asked for, and when each of its iterations began.

    What is recorded takes time, too: to tell when iterations begin is all that a run
    needs whose iterations are timed.
    """

    keeps_calls: bool = True  # of those that are timed
    times_calls: bool = True
    calls: list[Call] = field(default_factory=list)
    began: list[float] = field(default_factory=list)  # seconds, one per loss call
    inside_before: list[float] = field(default_factory=list)  # likewise
    inside: float = 0.0  # seconds that the calls took

    def losses(self, values: Values) -> Values:
        """Return the losses, recorded: each iteration asks for them once."""
        made = self._made("loss", values)

        def recorded(points: FloatArray, indices: IntArray) -> Any:
            self.began.append(time.perf_counter())
            self.inside_before.append(self.inside)
            return made(points, indices)

        return recorded

    def pairs(self, values: Values) -> Values:
        return self._made("pair", values)

    def _made(self, kind: Literal["loss", "pair"], values: Values) -> Values:
        if not self.times_calls:
            return values

        def recorded(points: FloatArray, indices: IntArray) -> Any:
            if self.keeps_calls:
                self.calls.append(Call(kind, np.array(points), np.array(indices)))
            before = time.perf_counter()
            answer = values(points, indices)
            self.inside += time.perf_counter() - before
            return answer

        return recorded

    def overhead(self, first: int, last: int) -> float:
        """Return the time of these iterations over that inside their calls."""
        elapsed = self.began[last] - self.began[first]
        return elapsed / (self.inside_before[last] - self.inside_before[first])

    def seconds_each(self, first: int, last: int) -> float:
        """Return the mean time of these iterations."""
        return (self.began[last] - self.began[first]) / (last - first)

    def of_iterations(self, first: int, last: int) -> list[Call]:
        """Return the calls from the loss call `first` up to the loss call `last`."""
        starts = [i for i, call in enumerate(self.calls) if call.kind == "loss"]
        return self.calls[starts[first] : starts[last]]


# ----------------------------------------------------------- frozen: do not make faster


@dataclass(frozen=True, eq=False)
class PairwiseData:
    """Rows of the pairwise problem with the loss ``1 - exp(-(y - x @ w)**2)``."""

    X: FloatArray  # (n, dim)
    y: FloatArray  # (n,), -1 or +1
    margin: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "positives", self.X[self.y > 0])
        object.__setattr__(self, "negatives", self.X[self.y < 0])


def frozen_values(data: Any, call: Call) -> FloatArray:
    """Return what one recorded call asks for.

    Examples
    --------
    >>> data = PairwiseData(np.eye(2), np.array([1.0, -1.0]))
    >>> call = Call("pair", np.array([[3.0, 1.0]]), np.array([0]))
    >>> frozen_values(data, call)
    array([[-2.]])
    """
    if call.kind == "loss":
        scores = call.points @ data.X[call.indices].T
        loss: FloatArray = 1.0 - np.exp(-np.square(data.y[call.indices] - scores))
        return loss
    positive, negative = np.divmod(call.indices, len(data.negatives))
    differences = data.negatives[negative] - data.positives[positive]
    values: FloatArray = call.points @ differences.T + data.margin
    return values


def frozen_evaluation(data: Any, calls: Sequence[Call]) -> None:
    """Compute all that was recorded, and forget it."""
    for call in calls:
        frozen_values(data, call)
