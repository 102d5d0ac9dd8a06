"""Kinks: slopes that were seen near by, kept as planes below a function.

Where a function has kinks a single slope says little: the largest of several planes
says more. Each trial that disappoints adds the plane at its point (a proximal bundle
method). In the subproblem one variable more stands for how far the largest plane of the
objective is above that of the iterate; planes of a constraint are further rows.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, FrozenArrays, IntArray
from dszog.methods.sampled_sqp.elastic_qp import Answer, LinearModels, solve

SOFT = 1e-6  # of the proximal weight, for the variable of the planes
OBJECTIVE = -1  # owner of planes; of others it is the constraint
MOST = 3  # planes for each variable
HIGH = 10.0  # times its steepness: the least price of a plane


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Bundle(FrozenArrays):
    """Planes ``values + slopes @ (z - bases)``."""

    values: FloatArray  # (k,)
    slopes: FloatArray  # (k, dim), in scaled variables
    bases: FloatArray  # (k, dim)
    owners: IntArray  # (k,)

    @classmethod
    def empty(cls, dim: int) -> Bundle:
        """Return a bundle without planes."""
        nothing = np.empty((0, dim))
        owners = np.empty(0, dtype=np.int64)
        return cls(values=np.empty(0), slopes=nothing, bases=nothing, owners=owners)

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes are those of planes of such a problem."""
        shape = (len(self.values), size.dim)
        is_whole = self.owners.shape == shape[:1]
        known = (self.owners >= OBJECTIVE) & (self.owners < size.n_constraints)
        shapes_fit = self.slopes.shape == self.bases.shape == shape
        return bool(shapes_fit and is_whole and known.all())

    def __len__(self) -> int:
        return len(self.values)

    def with_planes(
        self,
        owners: IntArray,
        values: FloatArray,
        slopes: FloatArray,
        bases: FloatArray,
    ) -> Bundle:
        """Return the bundle with more; the oldest go if there are too many."""
        known = np.isfinite(values) & np.isfinite(slopes).all(axis=1)
        most = MOST * slopes.shape[1] + 20
        return Bundle(
            values=np.append(self.values, values[known])[-most:],
            slopes=np.vstack([self.slopes, slopes[known]])[-most:],
            bases=np.vstack([self.bases, bases[known]])[-most:],
            owners=np.append(self.owners, owners[known])[-most:],
        )

    def among(self, owners: IntArray) -> Bundle:
        """Return the planes of some owners."""
        which = np.isin(self.owners, owners)
        parts = {part.name: getattr(self, part.name)[which] for part in fields(self)}
        return Bundle(**parts)

    def heights(self, z: FloatArray, value: float | FloatArray = 0.0) -> FloatArray:
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
        plain = np.hstack([rows.slopes, np.zeros((len(rows.slopes), 1))])
        both = LinearModels(
            slopes=np.vstack([plain, planes / lengths[:, np.newaxis]]),
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
        return replace(
            answer,
            step=answer.step[:dim],
            multipliers=answer.multipliers[: len(rows.offsets)],
            bound_multipliers=answer.bound_multipliers[:dim],
        )
