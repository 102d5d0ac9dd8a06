"""A problem: losses whose mean is minimised, constraints, bounds and a start."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.validation import (
    check_bounds,
    check_count,
    check_flag,
    check_floats,
    check_names,
    check_tag,
    check_vector,
    shown,
)
from dszog.errors import InputError, InputTypeError, StartWarning
from dszog.problem.constraints import Constraints, Simulator
from dszog.problem.constraints.scipy_forms import (
    from_scipy,
    function_to_learn,
    is_scipy_form,
    learn_widths,
)
from dszog.problem.losses import Losses

Learn: TypeAlias = Callable[
    [Sequence[Callable[[FloatArray], Any]], FloatArray], Sequence[int]
]


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
    dim : int, optional
        The number of variables; that of `x0` if not given.
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
    names : sequence of str, optional
        The names of the variables, which messages and reports then use. Constraints
        get theirs by ``constraints.named(...)``.
    by_name : bool
        Whether points are names of what somebody else holds, as for ``dszog.torch``:
        nothing can be said of slopes along their coordinates.
    """

    def __init__(
        self,
        losses: Losses | Simulator | Callable[[FloatArray], float],
        constraints: Any = None,
        dim: int | None = None,
        *,
        bounds: Any = None,
        x0: Any = None,
        x_scale: Any = 1.0,
        unconstrained: bool = False,
        tag: str = "",
        names: Sequence[str] | None = None,
        by_name: bool = False,
    ) -> None:
        self.by_name = by_name
        self.tag = check_tag("Problem", tag)
        if dim is None:
            if x0 is None:
                raise InputTypeError(
                    "Problem: `dim` is missing, got no `x0` either. Give the number of "
                    "variables, or x0."
                )
            dim = len(check_vector("Problem", "x0", x0))
        self.dim = dim = check_count("Problem", "dim", dim)
        self.names = () if names is None else check_names("Problem", names, dim)
        self.lower, self.upper = check_bounds("Problem", bounds, self.dim)
        self.x_scale = _check_scale(x_scale, self.dim)
        self.has_start = x0 is not None  # or it is the origin
        self.x0 = self._within("Problem", np.zeros(self.dim) if x0 is None else x0)
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
        self.constraints: Constraints | None = parts[0] if parts else None
        if len(parts) > 1:
            self.constraints = Constraints.concat(*parts)
        for family, what in ((self.constraints, "matrices"), (self.losses, "data")):
            if family is not None and family.dim not in (None, self.dim):
                raise InputError(
                    f"Problem: the {family._family.lower()} are in {family.dim} "
                    f"variables, got dim = {self.dim}. Give {what} with one column per "
                    "variable."
                )
        check_flag("Problem", "unconstrained", unconstrained)
        check_flag("Problem", "by_name", by_name)
        nothing = self.constraints is None and not self.size.has_bounds
        if nothing and not unconstrained:
            raise InputError(
                "Problem: there is nothing to keep, got neither constraints nor "
                "bounds. Give constraints, or use an unconstrained method such as "
                "scipy.optimize.minimize."
            )

    def name(self, what: str, index: int) -> str:
        """Return the name of a "loss" or a "constraint"; empty if it has none."""
        family = self.constraints if what.endswith("constraint") else self.losses
        return "" if family is None else family.name(index)

    def names_of(self, *indices: IntArray) -> dict[int, str]:
        """Return the constraints among these that have names, and the names."""
        listed = np.unique(np.concatenate(indices)).tolist()
        named = {j: self.name("constraint", j) for j in listed}
        return {j: name for j, name in named.items() if name}

    def prepare(self) -> None:
        """Do what has to be done once in a process before functions are called."""
        if self.simulator is not None:
            self.simulator.prepare()

    def starting_at(self, x0: Any) -> Problem:
        """Return the same problem with another start."""
        other = self._with(has_start=True)
        other.x0 = other._within("minimize", x0)
        return other

    def rescaled(self, x_scale: Any) -> Problem:
        """Return the same problem with other typical sizes of the variables."""
        other = self._with(x_scale=_check_scale(x_scale, self.dim))
        for name in ("size", "is_unscaled"):
            other.__dict__.pop(name, None)
        return other

    def with_names(self, names: Sequence[str]) -> Problem:
        """Return the same problem with other names of the variables."""
        return self._with(names=check_names("minimize", names, self.dim))

    def tagged(self, tag: str) -> Problem:
        """Return the same problem with another tag."""
        return self._with(tag=check_tag("Problem", tag))

    def _with(self, **changes: Any) -> Problem:
        other = copy(self)
        vars(other).update(changes)
        return other

    def _within(self, owner: str, x0: Any) -> FloatArray:
        """Return the start, moved into the bounds; say so if it was given."""
        start = check_vector(owner, "x0", x0)
        if len(start) != self.dim:
            raise InputError(
                f"{owner}: `x0` has {len(start)} entries for {self.dim} variables. "
                "Give one entry per variable."
            )
        inside = np.clip(start, self.lower, self.upper)
        # A fixed variable has no choice.
        moves = np.abs(inside - start) * (self.lower < self.upper)
        if self.has_start and moves.any():
            warnings.warn(
                f"`x0` lies outside the bounds, so {np.count_nonzero(moves)} of its "
                f"{self.dim} entries were moved into them, the farthest by "
                f"{moves.max():.3g}. Give a start within the bounds.",
                StartWarning,
                stacklevel=3,
            )
        return frozen_floats(inside)

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
            n_shared = self.simulator.n if self.simulator.objective is None else 0
            calls = replace(calls, n_shared=n_shared)
        return ProblemSize(
            dim=self.dim,
            n_losses=len(self.losses),
            n_constraints=0 if constraints is None else len(constraints),
            lower=self._scaled_bound(self.lower),
            upper=self._scaled_bound(self.upper),
            has_gradient=self.losses.has_gradient,
            has_jacobian=constraints is not None and constraints.has_jacobian,
            calls=calls,
        )

    def _scaled_bound(self, bound: FloatArray) -> FloatArray:
        return bound if self.is_unscaled else frozen_floats(bound / self.x_scale)

    @cached_property
    def is_unscaled(self) -> bool:
        """Whether methods see the variables as they are."""
        return bool((self.x_scale == 1.0).all())

    def scaled(self, x: FloatArray) -> FloatArray:
        """Return a point as methods see it."""
        if self.is_unscaled:
            return frozen_floats(x)
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


def _check_scale(x_scale: Any, dim: int) -> FloatArray:
    scale = check_floats("Problem", "x_scale", x_scale)
    if scale.shape not in ((), (1,), (dim,)) or not (scale > 0).all():
        raise InputError(
            f"Problem: `x_scale` must be a positive number or one for each of {dim} "
            f"variables, got {shown(x_scale)}. Give the typical size of the variables."
        )
    return np.broadcast_to(scale.copy(), dim)  # one number stays one


def _as_losses(losses: Any) -> Losses:
    if isinstance(losses, Losses):
        return losses
    if isinstance(losses, Simulator):
        return losses.losses
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
        "Where it returns one number, use Constraints.from_callables([f, ...]), each "
        "of which holds where f(x) <= 0; where an array, NonlinearConstraint(f, "
        "-np.inf, 0) of scipy.optimize."
        if callable(constraints)
        else "Use dszog.Constraints(values, m), Constraints.from_function(f, m), or "
        "SciPy's LinearConstraint or NonlinearConstraint."
    )
    if isinstance(constraints, Iterator):
        advice = "Make it a list: list(...)."
    raise InputTypeError(
        f"Problem: constraints must be a dszog.Constraints or a SciPy constraint, got "
        f"{shown(constraints)}. {advice}"
    )


def _as_parts(
    forms: list[Any], x0: FloatArray, learn: Learn
) -> tuple[list[Constraints], int]:
    """Return the families as ours, and how many calls it takes to learn their sizes."""
    # All are looked at before the first function is called.
    unknown = [function_to_learn(form) for form in forms]
    parts = {
        place: form if isinstance(form, Constraints) else from_scipy(form, place)
        for place, form in enumerate(forms)
        if unknown[place] is None
    }
    functions = [function for function in unknown if function is not None]
    places = [place for place in range(len(forms)) if place not in parts]
    widths = learn(functions, x0) if functions else ()
    for place, width in zip(places, widths, strict=True):
        parts[place] = from_scipy(forms[place], place, width)
    return [parts[place] for place in range(len(forms))], len(functions)
