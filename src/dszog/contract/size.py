"""What a method may know of a problem: sizes, and what a call of it serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dszog.contract.arrays import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, kw_only=True)
class Calls:
    """Which constraints one call of the user's function serves.

    The constraints are cut into segments; within a segment each call serves `width`
    consecutive ones. Calls are numbered through.

    Parameters
    ----------
    starts : ndarray of int64
        The first constraint of each segment.
    widths : ndarray of int64
        How many constraints a call serves there.
    first_calls : ndarray of int64
        The number of the first call of each segment.
    remembered : ndarray of bool
        Whether a call is made only once at a point, whatever asks for it.
    n_calls : int
        How many calls serve all constraints.
    n_shared : int
        Call ``i < n_shared`` serves loss ``i`` as well.
    shape : tuple of int
        Calls that differ in one place of it are alike; empty if nothing is known.
    """

    starts: IntArray
    widths: IntArray
    first_calls: IntArray
    remembered: BoolArray
    n_calls: int
    n_shared: int = 0
    shape: tuple[int, ...] = ()

    @classmethod
    def of_width(
        cls, width: int, n_constraints: int, *, remembered: bool = True
    ) -> Calls:
        """Return calls that serve `width` consecutive constraints each."""
        return cls(
            starts=np.zeros(1, np.int64),
            widths=np.array([width]),
            first_calls=np.zeros(1, np.int64),
            remembered=np.array([remembered]),
            n_calls=n_constraints // width,
        )

    @classmethod
    def concat(cls, parts: Sequence[tuple[Calls | None, int]]) -> Calls:
        """Return the calls of several families of constraints, one after the other.

        Parameters
        ----------
        parts : sequence of (calls, number of constraints)
            `None` where each constraint has a call of its own.
        """
        segments: list[tuple[IntArray, IntArray, IntArray, BoolArray]] = []
        n_before = n_calls = 0
        for calls, n in parts:
            calls = calls or cls.of_width(1, n, remembered=False)
            starts, firsts = n_before + calls.starts, n_calls + calls.first_calls
            segments.append((starts, calls.widths, firsts, calls.remembered))
            n_before, n_calls = n_before + n, n_calls + calls.n_calls
        names = ("starts", "widths", "first_calls", "remembered")
        joined: Any = map(np.concatenate, zip(*segments, strict=True))
        return cls(**dict(zip(names, joined, strict=True)), n_calls=n_calls)

    def are_remembered(self, constraints: IntArray) -> BoolArray:
        """Return which constraints are served by a call that is not made twice."""
        segment = np.searchsorted(self.starts, constraints, side="right") - 1
        found: BoolArray = self.remembered[segment]
        return found

    def of(self, constraints: IntArray) -> IntArray:
        """Return the number of the call that serves each constraint."""
        segment = np.searchsorted(self.starts, constraints, side="right") - 1
        within = (constraints - self.starts[segment]) // self.widths[segment]
        numbers: IntArray = self.first_calls[segment] + within
        return numbers

    def served_by(self, calls: IntArray) -> IntArray:
        """Return all constraints that these calls serve, in ascending order."""
        segment = np.searchsorted(self.first_calls, calls, side="right") - 1
        widths = self.widths[segment]
        firsts = self.starts[segment] + (calls - self.first_calls[segment]) * widths
        served = np.repeat(firsts - np.cumsum(widths) + widths, widths)
        served += np.arange(len(served))
        return np.sort(served)


@dataclass(frozen=True, eq=False, kw_only=True)
class ProblemSize:
    """What a method may know about a problem: its sizes, never its functions.

    Parameters
    ----------
    dim : int
        Number of variables, the paper's :math:`d`.
    n_losses : int
        Number of terms of the objective, :math:`n`.
    n_constraints : int
        Number of constraints, :math:`m`; may be :math:`10^{12}`.
    lower, upper : ndarray of shape (dim,)
        Bounds on the variables, infinite where there is none.
    has_gradient, has_jacobian : bool
        Whether gradients of the losses and of the constraints may be asked for.
    calls : Calls, optional
        Which constraints share a call of the user's function; None if each has its own.
    """

    dim: int
    n_losses: int
    n_constraints: int
    lower: FloatArray
    upper: FloatArray
    has_gradient: bool = False
    has_jacobian: bool = False
    calls: Calls | None = None

    @property
    def n_constraint_calls(self) -> int:
        """How many calls of user functions a look at all constraints takes."""
        return self.n_constraints if self.calls is None else self.calls.n_calls

    @property
    def block_width(self) -> int:
        """How many constraints each call serves; 1 if calls differ in that."""
        if self.calls is None or len(self.calls.widths) != 1:
            return 1
        return int(self.calls.widths[0]) if self.calls.remembered[0] else 1

    @property
    def by_case(self) -> bool:
        """Whether calls return the values of many constraints each, alone: cases.

        A single call is a vector of constraints.
        """
        is_many = self.block_width > 1 and self.n_constraint_calls > 1
        return is_many and not self.has_jacobian

    @property
    def n_cases(self) -> int:
        """How many calls there are to look at if they are cases; else constraints."""
        return self.n_constraint_calls if self.by_case else self.n_constraints

    @property
    def case_shape(self) -> tuple[int, ...]:
        """The cases in rows and columns, if they are; else their number."""
        shape = self.calls.shape if self.by_case and self.calls is not None else ()
        return shape or (self.n_cases,)

    def cases_of(self, constraints: IntArray) -> IntArray:
        """Return the cases of these constraints, each once; else they themselves."""
        return (
            np.unique(constraints // self.block_width) if self.by_case else constraints
        )

    def limits_of(self, cases: IntArray) -> IntArray:
        """Return all constraints of these cases, in order; else they themselves."""
        if not self.by_case:
            return cases
        width = self.block_width
        return (width * cases[:, np.newaxis] + np.arange(width)).ravel()

    def clip(self, points: FloatArray) -> FloatArray:
        """Return the points, each moved to the nearest point within the bounds."""
        if not self.has_bounds:
            return points
        clipped: FloatArray = np.clip(points, self.lower, self.upper)
        return clipped

    def inside(self, x: FloatArray, reach: FloatArray) -> FloatArray:
        """Return the point moved so that `reach` on either side is within the bounds.

        To the middle, where the bounds leave less room than that.
        """
        if not self.has_bounds:
            return x
        lower, upper = self.lower + reach, self.upper - reach
        with np.errstate(invalid="ignore"):
            middle = (self.lower + self.upper) / 2
        moved: FloatArray = np.clip(x, lower, np.maximum(lower, upper))
        return np.where(lower <= upper, moved, middle)

    @cached_property
    def is_black_box(self) -> bool:
        """Whether there are values only, and no gradients."""
        return not (self.has_gradient or self.has_jacobian)

    @cached_property
    def has_bounds(self) -> bool:
        """Whether any variable is bounded."""
        return bool(np.isfinite(self.lower).any() or np.isfinite(self.upper).any())
