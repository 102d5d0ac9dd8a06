r"""What goes into the kernels and comes out of them, beside plain arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, Self, TypeVar

from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.query import Distinct

EXACT = 2**53  # a random float is a multiple of the inverse of this
SPARE = 8  # uniform numbers drawn at the least beyond those needed


Weights = TypeVar("Weights", bound="SparseWeights")


class Draw(NamedTuple):
    """A draw without repeats, and how many uniform numbers it is made of."""

    n: int  # how many there are to draw from
    size: int
    n_numbers: int  # -1 where most of them would be repeats

    @staticmethod
    @lru_cache(maxsize=64)  # the same each time
    def of(n: int, size: int) -> Draw:
        """Return the draw, with as many numbers as nearly always suffice."""
        if size == n:
            return Draw(n, size, 0)
        if 2 * size > n or n > EXACT:
            return Draw(n, size, -1)
        return Draw(n, size, size + SPARE + 2 * size * size // n)


class Drawn(NamedTuple):
    """What an iteration looks at; ascending."""

    losses: IntArray
    duals: IntArray  # constraints that the weights learn from
    constraints: IntArray  # drawn from the weights, with repeats
    distinct: Distinct | None = None  # those that differ, if that is known


class DualStep(NamedTuple):
    """The parameters of one step of the weights, and the paper's letters."""

    step_size: float  # eta_p
    averaging: float  # b, the share of the new estimate in the averaged gradient
    mixing: float  # a, the share of the projected point in the new weights
    penalty: float  # beta
    ridge: float  # lambda
    step_eps: float  # c, which keeps the adaptive step finite
    adaptive: bool = True  # divide the step by sqrt(|z|) + c; False: the plain method
    centred: bool = False  # estimate from changes of remembered penalties

    def scale(self, norm: float) -> float:
        """Return the factor of the averaged gradient of the given norm in a step."""
        if not self.adaptive:
            return self.step_size
        return self.step_size / (math.sqrt(norm) + self.step_eps)


@dataclass(frozen=True, eq=False)
class SparseWeights:
    """Weights of the touched constraints, and of all others: the background."""

    n_constraints: int
    indices: IntArray  # (k,), ascending
    weights: FloatArray  # (k,)
    gradient: FloatArray  # (k,)
    memory: FloatArray  # (k,), remembered penalties; 0 in the background
    background_weight: float
    background_gradient: float

    @property
    def columns(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """What is known of each touched constraint."""
        return self.indices, self.weights, self.gradient, self.memory

    def after(self, *learned: Any) -> Self:
        """Return the same after a step: read-only arrays, and the background."""
        return type(self)(self.n_constraints, *learned)


class Stepped(NamedTuple):
    """Both steps of an iteration, and what the values they rest on say."""

    x: FloatArray
    velocity: FloatArray
    weights: Any  # of the type that was given
    objective: float  # the mean loss at the iterate
    worst: float  # the largest violation that was seen there
    mean_violation: float  # over the constraints drawn from the weights
    n_violated: int  # of those that the weights learn from
