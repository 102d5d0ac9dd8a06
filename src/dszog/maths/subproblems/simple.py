"""Sets whose projections and linear minimisers have closed forms."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.validation import (
    as_numbers,
    check_count_fields,
    check_positive,
    check_positive_number,
)
from dszog.errors import InputError
from dszog.kernels.projection import project_onto_simplex
from dszog.maths.subproblems.base import FEASIBLE, Solution


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ball(ABC):
    """What balls around the origin have in common."""

    dim: int
    radius: float

    def __post_init__(self) -> None:
        check_count_fields(self, "dim")
        check_positive(self, radius="Try 10 for variables of order one.")

    @property
    def n_rows(self) -> int:
        return 1

    @property
    def is_bounded(self) -> bool:
        return True

    def diameter(self) -> float:
        return 2.0 * self.radius

    def feasible_start(self) -> FloatArray:
        return np.zeros(self.dim)

    def contains(self, x: FloatArray, tol: float = FEASIBLE) -> bool:
        return self.violation(x) <= tol * self.radius

    def violation(self, x: FloatArray) -> float:
        return max(self._norm(x) - self.radius, 0.0)

    @abstractmethod
    def _norm(self, x: FloatArray) -> float:
        """Return the norm whose ball this is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class L2Ball(_Ball):
    """All points with a Euclidean norm of at most `radius`.

    Examples
    --------
    >>> import numpy as np
    >>> L2Ball(dim=2, radius=1.0).project(np.array([3.0, 4.0])).point
    array([0.6, 0.8])
    """

    def project(self, point: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the point, shortened to the radius if it is longer."""
        return Solution(point=shortened(point, self.radius))

    def lmo(self, gradient: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the end of the radius that points down the gradient."""
        largest = float(np.abs(gradient).max())
        if largest == 0.0:
            return Solution(point=np.zeros(self.dim))
        direction = gradient / largest
        return Solution(point=-self.radius / length(direction) * direction)

    def _norm(self, x: FloatArray) -> float:
        return length(x)


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Ball(_Ball):
    """All points whose absolute values sum to at most `radius`.

    Examples
    --------
    >>> import numpy as np
    >>> L1Ball(dim=3, radius=2.0).lmo(np.array([1.0, -5.0, 2.0])).point
    array([0., 2., 0.])
    """

    def project(self, point: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the point with all absolute values lowered by one threshold."""
        size = np.abs(point)
        if size.sum() <= self.radius:
            return Solution(point=point)
        kept = self.radius * project_onto_simplex(size / self.radius)
        return Solution(point=np.sign(point) * kept)

    def lmo(self, gradient: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the corner of the coordinate with the steepest slope."""
        corner = np.zeros(self.dim)
        steepest = int(np.argmax(np.abs(gradient)))
        corner[steepest] = -self.radius * np.sign(gradient[steepest])
        return Solution(point=corner)

    def _norm(self, x: FloatArray) -> float:
        return float(np.abs(x).sum())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Box:
    """All points with ``lower <= x <= upper``, where a side may be infinite.

    Examples
    --------
    >>> import numpy as np
    >>> Box(lower=[0.0, 0.0], upper=[1.0, np.inf]).project(np.array([3.0, 4.0])).point
    array([1., 4.])
    """

    lower: Any
    upper: Any
    _sides: tuple[FloatArray, FloatArray] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        lower = np.atleast_1d(as_numbers(self, "lower", self.lower))
        upper = np.atleast_1d(as_numbers(self, "upper", self.upper))
        fits = lower.shape == upper.shape and lower.ndim == 1 and lower.size > 0
        if (
            not fits
            or not ((lower <= upper) & (lower < np.inf) & (upper > -np.inf)).all()
        ):
            raise InputError(
                f"Box: `lower` must be at most `upper`, entry by entry, with room for "
                f"a number, got shapes {lower.shape} and {upper.shape}. Pass one entry "
                "per variable; swap those that are the wrong way round."
            )
        object.__setattr__(self, "_sides", (frozen_floats(lower), frozen_floats(upper)))

    @property
    def dim(self) -> int:
        """Number of variables."""
        return len(self._sides[0])

    @property
    def n_rows(self) -> int:
        """The number of finite sides."""
        return int(np.isfinite(self._sides).sum())

    @property
    def is_bounded(self) -> bool:
        """Whether all sides are finite."""
        return bool(np.isfinite(self._sides).all())

    def project(self, point: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the point, clipped."""
        return Solution(point=np.clip(point, *self._sides))

    def lmo(self, gradient: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the corner that lies down the slope of each variable."""
        check_bounded(self)
        lower, upper = self._sides
        return Solution(point=np.where(gradient > 0.0, lower, upper))

    def violation(self, x: FloatArray) -> float:
        """Return how far the worst variable lies outside."""
        lower, upper = self._sides
        return float(np.maximum(np.maximum(lower - x, x - upper), 0.0).max())

    def contains(self, x: FloatArray, tol: float = FEASIBLE) -> bool:
        """Whether `x` lies between the sides."""
        return self.violation(x) <= tol * (1.0 + float(np.abs(x).max()))

    def diameter(self) -> float:
        """Return the length of the diagonal."""
        lower, upper = self._sides
        return float(np.sqrt(np.square(upper - lower).sum()))

    def feasible_start(self) -> FloatArray:
        """Return the origin, clipped."""
        return self.project(np.zeros(self.dim)).point


@dataclass(frozen=True, slots=True, kw_only=True)
class Simplex:
    """All points with entries of at least 0 that sum to `total`.

    Examples
    --------
    >>> import numpy as np
    >>> Simplex(dim=2).project(np.array([2.0, 1.0])).point
    array([1., 0.])
    """

    dim: int
    total: float = 1.0

    def __post_init__(self) -> None:
        check_count_fields(self, "dim")
        check_positive_number(self, "total", self.total)

    @property
    def n_rows(self) -> int:
        """The signs and the sum."""
        return self.dim + 1

    @property
    def is_bounded(self) -> bool:
        """Always."""
        return True

    def project(self, point: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the entries lowered by one threshold, at least 0."""
        return Solution(point=self.total * project_onto_simplex(point / self.total))

    def lmo(self, gradient: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the corner of the least entry."""
        corner = np.zeros(self.dim)
        corner[int(np.argmin(gradient))] = self.total
        return Solution(point=corner)

    def violation(self, x: FloatArray) -> float:
        """Return the largest of what the signs and the sum are off by."""
        return float(max(-x.min(), abs(x.sum() - self.total), 0.0))

    def contains(self, x: FloatArray, tol: float = FEASIBLE) -> bool:
        """Whether `x` lies on the simplex."""
        return self.violation(x) <= tol * self.total

    def diameter(self) -> float:
        """Return the length of an edge."""
        return float(np.sqrt(2.0) * self.total)

    def feasible_start(self) -> FloatArray:
        """Return the centre."""
        return np.full(self.dim, self.total / self.dim)


def shortened(point: FloatArray, radius: float) -> FloatArray:
    """Return the point, brought back to the radius if it lies beyond."""
    norm = length(point)
    return point if norm <= radius else radius * (point / norm)


def length(x: FloatArray) -> float:
    """Return the Euclidean norm, also of entries whose squares are no numbers."""
    largest = float(np.abs(x).max(initial=0.0))
    if largest == 0.0:
        return 0.0
    return largest * float(np.sqrt(np.square(x / largest).sum()))


def check_bounded(domain: Any) -> None:
    """Refuse to look for the lowest point of a set without an end."""
    if not domain.is_bounded:
        raise InputError(
            f"{type(domain).__name__}: a linear function has no least value on an "
            "unbounded set. Give finite bounds, or a ball."
        )
