"""Constraints that are not linear, replaced by their tangents at a point."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import EmptySetError
from dszog.maths.subproblems.base import Domain
from dszog.maths.subproblems.polyhedron import Ball, Polyhedron
from dszog.maths.subproblems.rows import BoxRows, MatrixRows, RowFamily

RELAXED = (1.0, 0.5, 0.2, 0.05, 0.0)  # parts of the violation that are asked away

ELASTIC = "tangents that contradict each other were relaxed"


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearisedSet:
    r"""A set :math:`\{f_j(x) \le 0\} \cap P` of which only :math:`P` is a polyhedron.

    Around a point the other constraints are replaced by their tangents there, within a
    box in which these can be trusted. There is no theory for this: it is a fallback for
    methods that are made for convex sets.
    """

    indices: IntArray  # the constraints that are to be replaced
    families: tuple[RowFamily, ...] = ()  # the linear ones
    trust_radius: float = 1.0  # half the side of the box around the point
    ball: Ball = "none"
    ball_radius: float = 10.0
    watch: Callable[[Domain], Domain] | None = None  # counts what is asked of a set

    def start(self, x: FloatArray) -> FloatArray:
        """Return the point nearest to `x` that satisfies the linear constraints."""
        return self._made(self.families).project(x).point

    def around(self, x: FloatArray) -> Domain:
        """Return the linear constraints alone, near a point."""
        return self._watched(self._polyhedron(x, ()))

    def at(
        self, x: FloatArray, values: FloatArray, jacobian: FloatArray
    ) -> tuple[Domain, tuple[str, ...]]:
        """Return the tangents at `x` with the linear constraints, and what happened."""
        # Where no point satisfies them all, the tangents ask away a part of the present
        # violation only (elastic mode); nothing is worse than at `x` then, which
        # satisfies the linear constraints.
        limits = np.einsum("jd,d->j", jacobian, x) - values
        violation = np.maximum(values, 0.0)
        if not violation.any():
            return self._watched(self._tangent(x, jacobian, limits)), ()
        for part in RELAXED:
            relaxed = limits + (1.0 - part) * violation
            polyhedron = self._tangent(x, jacobian, relaxed)
            try:
                polyhedron.project(x)
            except EmptySetError:
                continue
            return self._watched(polyhedron), () if part == 1.0 else (ELASTIC,)
        raise EmptySetError(
            "The feasible set is empty: the linear constraints, bounds and the ball "
            "leave no point near the iterate. Relax them, or raise ball_radius."
        )

    def _tangent(
        self, x: FloatArray, jacobian: FloatArray, limits: FloatArray
    ) -> Polyhedron:
        return self._polyhedron(x, (MatrixRows(jacobian, limits),))

    def _polyhedron(self, x: FloatArray, tangents: tuple[RowFamily, ...]) -> Polyhedron:
        trust = BoxRows(x - self.trust_radius, x + self.trust_radius)
        return self._made((*tangents, *self.families, trust))

    def _made(self, families: tuple[RowFamily, ...]) -> Polyhedron:
        return Polyhedron(
            families=families,
            ball=self.ball,
            ball_radius=self.ball_radius,
        )

    def _watched(self, domain: Domain) -> Domain:
        return domain if self.watch is None else self.watch(domain)


def retraction(values: FloatArray, at_origin: FloatArray) -> float:
    r"""Return the largest factor in [0, 1] that makes a point feasible.

    For constraints :math:`f_j(x) = h_j(x) - c_j` with :math:`h_j(t x) = t h_j(x)` for
    :math:`t \ge 0`, such as covariances with a linear score: then
    :math:`c_j = -f_j(0)`, and the feasible set is star-shaped about the origin.
    """
    beyond = values > 0.0
    if not beyond.any():
        return 1.0
    if (at_origin[beyond] >= 0.0).any():
        return 0.0
    slope = values[beyond] - at_origin[beyond]
    return float((-at_origin[beyond] / slope).min())
