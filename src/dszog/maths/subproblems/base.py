"""What every feasible set offers: nearest points and linear minimisers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints

FEASIBLE = 1e-8
"""How far outside a point may lie, relative to its size, and still count as inside."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Solution:
    """The answer to one subproblem, with what the next one may start from.

    Parameters
    ----------
    point : ndarray of shape (dim,)
    active : ndarray of int64
        The rows that hold the point where it is. A hint for the next subproblem, which
        then takes less time; it changes no answer beyond rounding.
    n_rounds : int
        Small problems that were solved on the way.
    events : tuple of str
        What a person should hear of, such as a solver that failed and was replaced.
    """

    point: FloatArray
    active: IntArray = field(default_factory=lambda: NO_INDICES)
    n_rounds: int = 1
    events: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "point", frozen_floats(self.point))
        object.__setattr__(self, "active", frozen_ints(self.active))


class Domain(Protocol):
    r"""A closed convex set :math:`C` that can be projected on and minimised over.

    Domains are immutable and keep nothing between calls: what may speed up the next
    call is handed out as ``Solution.active`` and handed in again as `hint`.
    """

    @property
    def dim(self) -> int:
        """Number of variables."""
        ...

    @property
    def n_rows(self) -> int:
        """Constraints that an exact answer has to respect."""
        ...

    @property
    def is_bounded(self) -> bool:
        """Whether the set has a finite diameter, as Frank-Wolfe methods need."""
        ...

    def project(self, point: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        r"""Return :math:`\arg\min_{w \in C} \|w - \text{point}\|`."""
        ...

    def lmo(self, gradient: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        r"""Return a point of :math:`\arg\min_{s \in C} \langle g, s \rangle`."""
        ...

    def violation(self, x: FloatArray) -> float:
        """Return by how much `x` violates the worst constraint; 0 inside."""
        ...

    def contains(self, x: FloatArray, tol: float = FEASIBLE) -> bool:
        """Whether `x` lies in the set, but for `tol` relative to its size."""
        ...

    def diameter(self) -> float:
        """Return an upper bound on the distance of two points of the set."""
        ...

    def feasible_start(self) -> FloatArray:
        """Return the point of the set that is nearest to the origin."""
        ...
