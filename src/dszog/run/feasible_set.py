"""The feasible set of a problem, for methods that project or minimise linearly."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.errors import InputError
from dszog.maths.subproblems import Box, Domain, Polyhedron
from dszog.maths.subproblems.linearised import LinearisedSet
from dszog.maths.subproblems.polyhedron import Ball
from dszog.maths.subproblems.rows import BoxRows, MatrixRows, RowFamily
from dszog.methods import FeasibleMethod
from dszog.methods.linearised import LinearisedMethod
from dszog.problem import Problem
from dszog.problem.constraints import Constraints
from dszog.problem.constraints.concat import ConcatConstraints
from dszog.problem.constraints.linear import LinearConstraints
from dszog.problem.constraints.pairwise import PairwiseConstraints

MOST_TANGENTS = 10**6  # constraints that may be linearised at each iterate


def with_feasible_set(problem: Problem, method: Any) -> tuple[Any, list[str]]:
    """Return the method with the feasible set of the problem, and what to say of it.

    Methods that need none, or have one, are returned as they are.
    """
    if not isinstance(method, FeasibleMethod):
        return method, []
    if method.domain is not None:
        beside = "bounds" if problem.size.has_bounds else "x_scale"
        if problem.size.has_bounds or (problem.x_scale != 1.0).any():
            raise InputError(
                f"{type(method).__name__}: `domain` is all that the iterates keep, in "
                f"the variables as they are, got {beside} beside it. Put the bounds "
                "into the domain, scale the variables yourself, or leave `domain` out."
            )
        if problem.constraints is None:
            return method, []
        return method, [
            "The iterates keep to the domain that was given; the constraints beside it "
            "were only checked."
        ]
    return _Builder(problem, method).build()


def check_policy(method: Any, on_failure: str) -> None:
    """Refuse to go on after failures in ways that a method cannot make sense of."""
    inner = method.method if isinstance(method, LinearisedMethod) else method
    if not isinstance(inner, FeasibleMethod) or on_failure == "raise":
        return
    name = type(inner).__name__
    if on_failure == "penalise" and inner.compares_points:
        raise InputError(
            f"minimize: {name} takes the difference of values at two points, where a "
            "made-up one would pass for a slope: on_failure='penalise' cannot work. "
            "Use on_failure='resample'."
        )
    if inner.per_sample:
        raise InputError(
            f"minimize: with per_sample=True {name} asks for each loss once, so that "
            f"nothing can be left out: on_failure={on_failure!r} cannot work. Use "
            "shared directions, or on_failure='raise'."
        )


class _Builder:
    """Makes the feasible set in the variables that methods see."""

    def __init__(self, problem: Problem, method: FeasibleMethod) -> None:
        self._problem = problem
        self._method = method
        self._scale = problem.x_scale
        self._families: list[RowFamily] = []
        self._nonlinear: list[IntArray] = []

    def build(self) -> tuple[Any, list[str]]:
        size = self._problem.size
        if self._problem.constraints is not None:
            self._take(self._problem.constraints, 0)
        if size.has_bounds:
            self._families.append(BoxRows(size.lower, size.upper))
        if self._nonlinear:
            return self._linearised()
        if not self._families:  # bounds only would be a family
            raise InputError("minimize: there is nothing to keep. Give constraints.")
        ball, radius, note = self._ball(self._plain("none"))
        return replace(self._method, domain=self._plain(ball, radius)), note

    def _plain(self, ball: Ball, radius: float = 1.0) -> Domain:
        """Return a set of linear constraints and bounds."""
        only = self._families[0]
        if ball == "none" and len(self._families) == 1 and isinstance(only, BoxRows):
            return Box(lower=only.lower, upper=only.upper)
        return Polyhedron(
            families=tuple(self._families),
            ball=ball,
            ball_radius=radius,
            n_named=self._problem.size.n_constraints,
        )

    def _linearised(self) -> tuple[Any, list[str]]:
        method = self._method
        if method.nonconvex == "refuse":
            n = sum(len(indices) for indices in self._nonlinear)
            raise InputError(
                f"{type(method).__name__}: a convex set is needed, got {n} constraints "
                "that are not known to be convex. Use method='dszog', or accept "
                "tangents at each iterate: options={'nonconvex': 'linearise'}."
            )
        ball: Ball = "none" if method.ball == "auto" else method.ball
        bounds = BoxRows(self._problem.size.lower, self._problem.size.upper)
        constraints = LinearisedSet(
            indices=np.concatenate(self._nonlinear),
            families=tuple(self._families) or (bounds,),
            trust_radius=method.trust_radius,
            ball=ball,
            ball_radius=method.ball_radius,
        )
        note = (
            f"{len(constraints.indices)} constraints were replaced by tangents at each "
            "iterate, for which the method has no theory."
        )
        retract = method.nonconvex == "retract"
        origin = np.zeros(self._problem.dim)
        if retract and not np.array_equal(constraints.start(origin), origin):
            raise InputError(
                f"{type(method).__name__}: nonconvex='retract' draws iterates towards "
                "the origin, which the linear constraints or bounds exclude. Use "
                "nonconvex='linearise'."
            )
        wrapped = LinearisedMethod(
            method=method, constraints=constraints, retract=retract
        )
        return wrapped, [note]

    def _ball(self, without: Domain) -> tuple[Ball, float, list[str]]:
        """Return the ball that the set is cut to, and what to say of it.

        A ball that nobody asked for is large enough for the start to lie well inside.
        """
        method = self._method
        radius = method.ball_radius
        if method.ball != "auto":
            return method.ball, radius, []
        if not method.needs_bounded or without.is_bounded:
            return "none", radius, []
        start = without.project(self._problem.scaled(self._problem.x0)).point
        radius = max(radius, 2.0 * float(np.sqrt(np.square(start).sum())))
        x = "|x|" if (self._scale == 1.0).all() else "|x / x_scale|"
        return (
            "l2",
            radius,
            [
                "The set is not bounded, as the method needs it to be, and was cut to "
                f"the ball {x} <= {radius:g}; set ball_radius, or give bounds."
            ],
        )

    def _take(self, constraints: Constraints, first: int) -> None:
        """Take in a family of constraints, the first of which has this index."""
        if isinstance(constraints, ConcatConstraints):
            for part in constraints.parts:
                self._take(part, first)
                first += len(part)
        elif not constraints.has_jacobian:
            raise InputError(
                f"{type(self._method).__name__}: constraints that can be projected on "
                f"are needed, got {len(constraints):,} that are known by values alone. "
                "Use method='dszog', which needs no more, or give linear or pairwise "
                "constraints, or a jacobian."
            )
        elif isinstance(constraints, PairwiseConstraints):
            positives, negatives = constraints.samples
            pairs = Polyhedron.pairwise(
                positives * self._scale,
                negatives * self._scale,
                constraints.margin,
                form=self._method.form,
            )
            self._families += pairs.families
        elif isinstance(constraints, LinearConstraints):
            matrix, limits = constraints.rows
            self._families.append(_unit_rows(matrix * self._scale[np.newaxis], limits))
        elif len(constraints) > MOST_TANGENTS:
            raise InputError(
                f"{type(self._method).__name__}: tangents to all constraints are "
                f"needed at each iterate, got {len(constraints):,} constraints. Use "
                "method='dszog', which looks at few of them at a time."
            )
        else:
            self._nonlinear.append(np.arange(first, first + len(constraints)))


def _unit_rows(matrix: Any, limits: FloatArray) -> MatrixRows:
    """Return the same constraints with rows of length 1: violations are distances."""
    is_dense = isinstance(matrix, np.ndarray)
    squares = np.square(matrix) if is_dense else matrix.power(2)
    lengths = np.sqrt(np.asarray(squares.sum(axis=1)).ravel())
    factors = 1.0 / np.where(lengths > 0.0, lengths, 1.0)
    if is_dense:
        rows: Any = frozen_floats(matrix * factors[:, np.newaxis])
    else:
        rows = sparse.csr_array(sparse.diags_array(factors) @ matrix)
    return MatrixRows(rows, frozen_floats(factors * limits))
