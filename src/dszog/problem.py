"""A problem: losses whose mean is minimised, constraints, bounds and a start."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from dszog._arrays import FloatArray, IntArray
from dszog._validation import (
    check_bounds,
    check_callable,
    check_count,
    check_vector,
    shown,
)
from dszog.constraints import Constraints
from dszog.errors import InputError, InputTypeError
from dszog.query import ProblemSize


class Losses:
    """The terms of the objective, which is their mean.

    Parameters
    ----------
    values : callable
        ``values(points, indices)`` with `points` of shape ``(k, dim)`` and `indices` of
        shape ``(b,)``, returning an array of shape ``(k, b)``.
    n : int
        The number of terms.
    gradient : callable, optional
        ``gradient(point, indices)`` of shape ``(b, dim)``: the gradients at one point.
        Given, the losses are a white box and methods that can use it do.

    Examples
    --------
    >>> import numpy as np
    >>> data = np.array([1.0, 2.0, 6.0])
    >>> losses = Losses(lambda points, i: (points - data[i]) ** 2, n=3)
    >>> losses.values(np.array([[2.0]]), np.array([0, 2]))
    array([[ 1., 16.]])
    """

    def __init__(
        self,
        values: Callable[[FloatArray, IntArray], Any],
        n: int,
        *,
        gradient: Callable[[FloatArray, IntArray], Any] | None = None,
    ) -> None:
        check_callable(
            "Losses", "values", values, "values(points, indices) -> (k, b) array"
        )
        if gradient is not None:
            check_callable(
                "Losses",
                "gradient",
                gradient,
                "gradient(point, indices) -> (b, dim) array",
            )
        self._values = values
        self._gradient = gradient
        self._n = check_count("Losses", "n", n)

    @classmethod
    def from_function(cls, function: Callable[[FloatArray], float]) -> Losses:
        """Return the single loss ``function(x) -> float``.

        Examples
        --------
        >>> import numpy as np
        >>> Losses.from_function(lambda x: x @ x).values(np.eye(2), np.array([0]))
        array([[1.],
               [1.]])
        """
        check_callable("Losses.from_function", "function", function, "fun(x) -> float")

        def values(points: FloatArray, indices: IntArray) -> FloatArray:
            return np.array([[function(x)] for x in points])

        return cls(values, 1)

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return f"Losses(n={self._n:_})"

    @property
    def has_gradient(self) -> bool:
        """Whether gradients of the losses can be asked for."""
        return self._gradient is not None

    def values(self, points: FloatArray, indices: IntArray) -> Any:
        """Return the loss of each point (row) and each index (column)."""
        return self._values(points, indices)

    def gradient(self, point: FloatArray, indices: IntArray) -> Any:
        """Return the gradients of the indexed losses at one point, as rows."""
        if self._gradient is None:
            raise NotImplementedError(f"{self!r} was given no gradient.")
        return self._gradient(point, indices)


class Problem:
    """What is to be minimised, and under which constraints.

    Parameters
    ----------
    losses : Losses or callable
        The objective is their mean; a callable ``fun(x) -> float`` is a single loss.
    constraints : Constraints, optional
        None for a problem with bounds only.
    dim : int
        The number of variables.
    bounds : sequence of (low, high) or scipy.optimize.Bounds, optional
        Kept at every point that is evaluated.
    x0 : array_like of shape (dim,), optional
        Where to start; the origin, moved into the bounds, if not given.
    """

    def __init__(
        self,
        losses: Losses | Callable[[FloatArray], float],
        constraints: Constraints | None,
        dim: int,
        *,
        bounds: Any = None,
        x0: Any = None,
    ) -> None:
        self.losses = _as_losses(losses)
        self.constraints = _as_constraints(constraints)
        self.dim = check_count("Problem", "dim", dim)
        known = None if self.constraints is None else self.constraints.dim
        if known is not None and known != self.dim:
            raise InputError(
                f"Problem: the constraints are in {known} variables, got dim = "
                f"{self.dim}. Give matrices with one column per variable."
            )
        self.lower, self.upper = check_bounds("Problem", bounds, self.dim)
        if self.constraints is None and not self.size.has_bounds:
            raise InputError(
                "Problem: there is nothing to keep, got neither constraints nor "
                "bounds. Give constraints, or use an unconstrained method such as "
                "scipy.optimize.minimize."
            )
        start = np.zeros(self.dim) if x0 is None else check_vector("Problem", "x0", x0)
        if len(start) != self.dim:
            raise InputError(
                f"Problem: `x0` has {len(start)} entries for {self.dim} variables. "
                "Give one entry per variable."
            )
        self.x0 = self.size.clip(start)

    def __repr__(self) -> str:
        return (
            f"Problem(dim={self.dim}, n_losses={self.size.n_losses:_}, "
            f"n_constraints={self.size.n_constraints:_})"
        )

    @cached_property
    def size(self) -> ProblemSize:
        """What methods may know of the problem."""
        constraints = self.constraints
        return ProblemSize(
            dim=self.dim,
            n_losses=len(self.losses),
            n_constraints=0 if constraints is None else len(constraints),
            lower=self.lower,
            upper=self.upper,
            has_gradient=self.losses.has_gradient,
            has_jacobian=constraints is not None and constraints.has_jacobian,
        )


def _as_losses(losses: Any) -> Losses:
    if isinstance(losses, Losses):
        return losses
    if callable(losses):
        return Losses.from_function(losses)
    raise InputTypeError(
        f"Problem: the objective must be a function, got {shown(losses)}. Pass "
        "fun(x) -> float, or dszog.Losses(values, n) for a mean of n terms."
    )


def _as_constraints(constraints: Any) -> Constraints | None:
    if constraints is None or isinstance(constraints, Constraints):
        return constraints
    if isinstance(constraints, (tuple, list)):
        if not constraints:
            return None
        if len(constraints) == 1:
            return _as_constraints(constraints[0])
    raise InputTypeError(
        f"Problem: constraints must be a dszog.Constraints, got {shown(constraints)}. "
        "Use dszog.Constraints(values, m), or Constraints.from_function(f, m)."
    )
