"""Kinks: slopes that were seen near by, kept as planes below the objective.

Where an objective has kinks a single slope says little: the largest of several planes
says more. Each trial that disappoints adds the plane at its point (a proximal bundle
method). In the subproblem one variable more stands for how far the largest plane is
above that of the iterate.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, frozen_floats
from dszog.methods.sampled_sqp.elastic_qp import Answer, LinearModels, solve

SOFT = 1e-6  # of the proximal weight, for the variable of the planes
HIGH = 10.0  # times its steepness: the least price of a plane


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bundle:
    """Planes ``values + slopes @ (z - bases)``."""

    values: FloatArray  # (k,)
    slopes: FloatArray  # (k, dim), in scaled variables
    bases: FloatArray  # (k, dim)

    def __post_init__(self) -> None:
        for name in ("values", "slopes", "bases"):
            object.__setattr__(self, name, frozen_floats(getattr(self, name)))

    @classmethod
    def empty(cls, dim: int) -> Bundle:
        """Return a bundle without planes."""
        nothing = np.empty((0, dim))
        return cls(values=np.empty(0), slopes=nothing, bases=nothing)

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes are those of planes of such a problem."""
        shape = (len(self.values), size.dim)
        return self.slopes.shape == self.bases.shape == shape

    def __len__(self) -> int:
        return len(self.values)

    def with_plane(self, value: float, slope: FloatArray, base: FloatArray) -> Bundle:
        """Return the bundle with one more; the oldest goes if there are too many."""
        if not (np.isfinite(value) and np.isfinite(slope).all()):
            return self
        most = 3 * len(slope) + 20
        return Bundle(
            values=np.append(self.values, value)[-most:],
            slopes=np.vstack([self.slopes, slope])[-most:],
            bases=np.vstack([self.bases, base])[-most:],
        )

    def heights(self, z: FloatArray, value: float) -> FloatArray:
        """Return how far each plane is above a value at a point."""
        found: FloatArray = (
            self.values + np.einsum("ij,ij->i", self.slopes, z - self.bases) - value
        )
        return found

    def above(
        self, z: FloatArray, value: float, gradient: FloatArray, step: FloatArray
    ) -> float:
        """Return how far the largest plane is above that of the point, after a step."""
        heights = np.minimum(self.heights(z, value), 0.0)
        return float((heights + (self.slopes - gradient) @ step).max(initial=0.0))

    def solved(
        self,
        z: FloatArray,
        value: float,
        sigma: float,
        gradient: FloatArray,
        rows: LinearModels,
        price: float,
        lower: FloatArray,
        upper: FloatArray,
        start: FloatArray,
    ) -> Answer:
        """Return the answer of the subproblem with these planes."""
        dim, k = len(gradient), len(self)
        turns = self.slopes - gradient
        steepness = max(float(np.linalg.norm(turns, axis=1).max()), 1e-300)
        planes = np.hstack([turns / steepness, -np.ones((k, 1))])
        lengths = np.linalg.norm(planes, axis=1)
        heights = np.minimum(self.heights(z, value), 0.0) / steepness
        both = LinearModels(
            slopes=np.vstack(
                [
                    np.hstack([rows.slopes, np.zeros((len(rows.slopes), 1))]),
                    planes / lengths[:, np.newaxis],
                ]
            ),
            offsets=np.concatenate([rows.offsets, heights / lengths]),
            two_sided=np.concatenate([rows.two_sided, np.zeros(k, dtype=bool)]),
        )
        answer = solve(
            np.diag(np.append(np.full(dim, sigma), SOFT * sigma)),
            np.append(gradient, steepness),
            both,
            max(price, HIGH * steepness),
            np.append(lower, 0.0),
            np.append(upper, np.inf),
            np.concatenate([start, np.zeros(k)]),
        )
        return Answer(
            step=answer.step[:dim],
            multipliers=answer.multipliers[: len(rows.offsets)],
            bound_multipliers=answer.bound_multipliers[:dim],
            residual=answer.residual,
        )
