"""A problem: losses whose mean is minimised, constraints, bounds and a start."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.validation import (
    check_bounds,
    check_callable,
    check_count,
    check_flag,
    check_floats,
    check_indices,
    check_not_overridden,
    check_tag,
    check_vector,
    shown,
)
from dszog.errors import InputError, InputTypeError, StartWarning
from dszog.problem.calls import Grain, call_number
from dszog.problem.constraints import Constraints, Simulator
from dszog.problem.constraints.scipy_forms import (
    from_scipy,
    function_to_learn,
    is_scipy_form,
    learn_widths,
)
from dszog.problem.rows import Rows

Learn: TypeAlias = Callable[
    [Sequence[Callable[[FloatArray], Any]], FloatArray], Sequence[int]
]


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

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse a class whose values nobody would ask for."""
        super().__init_subclass__(**more)
        check_not_overridden(cls, Losses, "values, n")

    def __init__(
        self,
        values: Callable[[FloatArray, IntArray], Any],
        n: int | float,
        *,
        gradient: Callable[[FloatArray, IntArray], Any] | None = None,
    ) -> None:
        check_callable(
            "Losses", "values", values, "values(points, indices) -> (k, b) array", 2
        )
        if gradient is not None:
            check_callable(
                "Losses",
                "gradient",
                gradient,
                "gradient(point, indices) -> (b, dim) array",
                2,
            )
        self.values_at = values  # of indices known to be good; evaluators call it
        self._gradient = gradient
        self.grain = Grain()
        self.dim: int | None = None  # number of variables, where it is known
        self._n = check_count("Losses", "n", n)
        if self._n >= 2**63:
            raise InputError(
                f"Losses: `n` must be below 2**63, got {n}. Indices have 64 bits."
            )

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
        check_callable(
            "Losses.from_function", "function", function, "fun(x) -> float", 1
        )
        losses = cls(_OneLoss(function), 1)
        losses.grain = Grain(each=True)
        return losses

    def in_pieces(self, size: int) -> Losses:
        """Return the same losses, evaluated in pieces of at most `size` values.

        See :meth:`dszog.Constraints.in_pieces`.
        """
        other = copy(self)
        size = check_count("Losses.in_pieces", "size", size)
        other.grain = replace(self.grain, size=size)
        return other

    @classmethod
    def linear(cls, X: Any, y: Any, loss: Callable[[FloatArray, Any], Any]) -> Losses:
        r"""Return :math:`\text{loss}(x_i \cdot w, y_i)` for each row, a linear model.

        The scores of all points are found together, and from a sparse `X` (or a dense
        one that is mostly zeros) without touching the zeros.

        Parameters
        ----------
        X : array_like or SciPy sparse matrix of shape (n, dim)
            Rows of data; or of kernels with chosen rows, for a kernel model.
        y : array_like of shape (n,)
            What the loss wants to know of each row, such as its label.
        loss : callable
            ``loss(scores, y)`` with `scores` of shape ``(k, b)`` and `y` of shape
            ``(b,)``, returning ``(k, b)`` values. A black box: it need not be smooth.

        Examples
        --------
        >>> import numpy as np
        >>> X, y = np.eye(2), np.array([1.0, -1.0])
        >>> losses = Losses.linear(
        ...     X, y, lambda scores, y: np.maximum(1 - y * scores, 0)
        ... )
        >>> losses.values(np.array([[2.0, 0.5]]), np.arange(2))
        array([[0. , 1.5]])
        """
        rows = Rows("Losses.linear", "X", X)
        try:
            labels = np.array(y)
        except ValueError:  # ragged
            labels = np.array(None)
        if labels.shape != (len(rows),):
            raise InputError(
                f"Losses.linear: `y` must have an entry per row of X, got shape "
                f"{labels.shape} for {len(rows)} rows. Pass a vector."
            )
        labels.flags.writeable = False
        check_callable("Losses.linear", "loss", loss, "loss(scores, y) -> (k, b)", 2)

        def values(points: FloatArray, indices: IntArray) -> Any:
            return loss(rows.scores(points, indices), labels[indices])

        losses = cls(values, len(rows))
        losses.dim = rows.shape[1]
        return losses

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
        return self.values_at(points, check_indices(self, indices, self._n))

    def gradient(self, point: FloatArray, indices: IntArray) -> Any:
        """Return the gradients of the indexed losses at one point, as rows."""
        if self._gradient is None:
            raise InputError(
                "Losses: there is no gradient, got asked for it. Give one: "
                "Losses(values, n, gradient=...)."
            )
        return self._gradient(point, check_indices(self, indices, self._n))


@dataclass(frozen=True)
class _OneLoss:
    """The values of a single loss; a class, so that it can be sent to workers."""

    function: Callable[[FloatArray], float]

    def __call__(self, points: FloatArray, indices: IntArray) -> FloatArray:
        once = np.array([call_number(self.function, x) for x in points])
        return np.repeat(once[:, np.newaxis], len(indices), axis=1)


@dataclass(frozen=True)
class Asking:
    """Constraints, and whom to ask how many values SciPy's functions return.

    A front door passes them so that it can count these calls before they are made.
    """

    constraints: Any
    learn: Learn


class Problem:
    """What is to be minimised, and under which constraints.

    Parameters
    ----------
    losses : Losses, Simulator or callable
        The objective is their mean; a callable ``fun(x) -> float`` is a single loss. A
        :class:`Simulator` brings its limits as constraints.
    constraints : Constraints, SciPy constraint, or a sequence of these
        ``scipy.optimize.LinearConstraint``, ``NonlinearConstraint`` and dictionaries
        are taken as SciPy means them. None for a problem with bounds only.
    dim : int
        The number of variables.
    bounds : sequence of (low, high) or scipy.optimize.Bounds, optional
        Kept at every point that is evaluated.
    x0 : array_like of shape (dim,), optional
        Where to start; the origin, moved into the bounds, if not given.
    x_scale : float or array_like of shape (dim,)
        The typical size of the variables. Methods work with ``x / x_scale``.
    unconstrained : bool
        Allow a problem with neither constraints nor bounds, for a method that brings a
        feasible set of its own.
    tag : str
        A name for the functions, such as a version of the data: a run is not resumed
        from a checkpoint of a problem with another one.
    """

    def __init__(
        self,
        losses: Losses | Simulator | Callable[[FloatArray], float],
        constraints: Any,
        dim: int,
        *,
        bounds: Any = None,
        x0: Any = None,
        x_scale: Any = 1.0,
        unconstrained: bool = False,
        tag: str = "",
    ) -> None:
        self.tag = check_tag("Problem", tag)
        self.dim = check_count("Problem", "dim", dim)
        self.lower, self.upper = check_bounds("Problem", bounds, self.dim)
        self.x_scale = _check_scale(x_scale, self.dim)
        start = np.zeros(self.dim) if x0 is None else check_vector("Problem", "x0", x0)
        if len(start) != self.dim:
            raise InputError(
                f"Problem: `x0` has {len(start)} entries for {self.dim} variables. "
                "Give one entry per variable."
            )
        self.has_start = x0 is not None  # or it is the origin
        self.x0 = _within(start, self.lower, self.upper, warns=self.has_start)
        self.simulator = losses if isinstance(losses, Simulator) else None
        self.losses = _as_losses(losses)
        learn: Learn = learn_widths
        if isinstance(constraints, Asking):
            constraints, learn = constraints.constraints, constraints.learn
        forms = _forms(constraints)
        self.has_scipy_form = any(map(is_scipy_form, forms))
        parts, self.n_calls_made = _as_parts(forms, self.x0, learn)
        if self.simulator is not None:
            parts = [self.simulator.constraints, *parts]
        self.constraints = _joined(parts)
        known = None if self.constraints is None else self.constraints.dim
        if known is not None and known != self.dim:
            raise InputError(
                f"Problem: the constraints are in {known} variables, got dim = "
                f"{self.dim}. Give matrices with one column per variable."
            )
        if self.losses.dim is not None and self.losses.dim != self.dim:
            raise InputError(
                f"Problem: the losses are in {self.losses.dim} variables, got dim = "
                f"{self.dim}. Give data with one column per variable."
            )
        check_flag("Problem", "unconstrained", unconstrained)
        nothing = self.constraints is None and not self.size.has_bounds
        if nothing and not unconstrained:
            raise InputError(
                "Problem: there is nothing to keep, got neither constraints nor "
                "bounds. Give constraints, or use an unconstrained method such as "
                "scipy.optimize.minimize."
            )

    def starting_at(self, x0: Any) -> Problem:
        """Return the same problem with another start."""
        start = check_vector("minimize", "x0", x0)
        if len(start) != self.dim:
            raise InputError(
                f"minimize: `x0` has {len(start)} entries for {self.dim} variables. "
                "Give one entry per variable."
            )
        other = copy(self)
        other.has_start = True
        other.x0 = _within(start, self.lower, self.upper)
        return other

    def tagged(self, tag: str) -> Problem:
        """Return the same problem with another tag."""
        other = copy(self)
        other.tag = check_tag("Problem", tag)
        return other

    def __repr__(self) -> str:
        return (
            f"Problem(dim={self.dim}, n_losses={self.size.n_losses:_}, "
            f"n_constraints={self.size.n_constraints:_})"
        )

    @cached_property
    def size(self) -> ProblemSize:
        """What methods may know of the problem; bounds in scaled variables."""
        constraints = self.constraints
        calls = None if constraints is None else constraints.calls
        if calls is not None and self.simulator is not None:
            calls = replace(calls, n_shared=self.simulator.n)
        return ProblemSize(
            dim=self.dim,
            n_losses=len(self.losses),
            n_constraints=0 if constraints is None else len(constraints),
            lower=frozen_floats(self.lower / self.x_scale),
            upper=frozen_floats(self.upper / self.x_scale),
            has_gradient=self.losses.has_gradient,
            has_jacobian=constraints is not None and constraints.has_jacobian,
            calls=calls,
        )

    @cached_property
    def is_unscaled(self) -> bool:
        """Whether methods see the variables as they are."""
        return bool((self.x_scale == 1.0).all())

    def scaled(self, x: FloatArray) -> FloatArray:
        """Return a point as methods see it."""
        return frozen_floats(x / self.x_scale)

    def unscaled(self, points: FloatArray) -> FloatArray:
        """Return points as the user's functions see them, within the bounds.

        The start comes back to the bit, which multiplication would not grant.
        """
        if self.is_unscaled:
            return points
        there = np.where(
            (points == self.scaled(self.x0)).all(axis=-1, keepdims=True),
            self.x0,
            points * self.x_scale,
        )
        return frozen_floats(np.clip(there, self.lower, self.upper))


def _within(
    start: FloatArray, lower: FloatArray, upper: FloatArray, *, warns: bool = True
) -> FloatArray:
    """Return the start, moved into the bounds; say so if it was somebody's choice."""
    inside = np.clip(start, lower, upper)
    moves = np.abs(inside - start) * (lower < upper)  # a fixed variable has no choice
    if warns and moves.any():
        warnings.warn(
            f"`x0` lies outside the bounds, so {np.count_nonzero(moves)} of its "
            f"{len(start)} entries were moved into them, the farthest by "
            f"{moves.max():.3g}. Give a start within the bounds.",
            StartWarning,
            stacklevel=3,
        )
    return frozen_floats(inside)


def _check_scale(x_scale: Any, dim: int) -> FloatArray:
    scale = check_floats("Problem", "x_scale", x_scale)
    if scale.shape not in ((), (1,), (dim,)) or not (scale > 0).all():
        raise InputError(
            f"Problem: `x_scale` must be a positive number or one for each of {dim} "
            f"variables, got {shown(x_scale)}. Give the typical size of the variables."
        )
    return frozen_floats(np.broadcast_to(scale, dim).copy())


def _as_losses(losses: Any) -> Losses:
    if isinstance(losses, Losses):
        return losses
    if isinstance(losses, Simulator):
        of_simulator = Losses(losses.loss_values, losses.n)
        of_simulator.grain = losses.grain
        return of_simulator
    if callable(losses):
        return Losses.from_function(losses)
    raise InputTypeError(
        f"Problem: the objective must be a function, got {shown(losses)}. Pass "
        "fun(x) -> float, or dszog.Losses(values, n) for a mean of n terms."
    )


def _forms(constraints: Any) -> list[Any]:
    """Return all families of constraints, ours or SciPy's, out of nested sequences."""
    if constraints is None:
        return []
    if isinstance(constraints, Constraints) or is_scipy_form(constraints):
        return [constraints]
    if isinstance(constraints, (tuple, list)):
        return [form for one in constraints for form in _forms(one)]
    advice = (
        "Use Constraints.from_callables([f, ...]), each of which holds where f(x) <= 0."
        if callable(constraints)
        else "Use dszog.Constraints(values, m), Constraints.from_function(f, m), or "
        "SciPy's LinearConstraint or NonlinearConstraint."
    )
    raise InputTypeError(
        f"Problem: constraints must be a dszog.Constraints or a SciPy constraint, got "
        f"{shown(constraints)}. {advice}"
    )


def _as_parts(
    forms: list[Any], x0: FloatArray, learn: Learn
) -> tuple[list[Constraints], int]:
    """Return the families as ours, and how many calls it takes to learn their sizes.

    All are looked at before the first function is called.
    """
    unknown = [function_to_learn(form) for form in forms]
    parts = {
        place: form if isinstance(form, Constraints) else from_scipy(form)
        for place, form in enumerate(forms)
        if unknown[place] is None
    }
    functions = [function for function in unknown if function is not None]
    places = [place for place in range(len(forms)) if place not in parts]
    widths = learn(functions, x0) if functions else ()
    for place, width in zip(places, widths, strict=True):
        parts[place] = from_scipy(forms[place], width)
    return [parts[place] for place in range(len(forms))], len(functions)


def _joined(parts: list[Constraints]) -> Constraints | None:
    if len(parts) > 1:
        return Constraints.concat(*parts)
    return parts[0] if parts else None
