"""The curvature of the Lagrangian, from pairs of steps and changes of its gradient."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import BoolArray, FloatArray, FrozenArrays

MOST_PAIRS = 30
LAST_PAIRS = 5  # these choose the matrix to begin with, and its size
STEEPEST = 1e-3  # the least cosine between a step and its change
DAMPING = 0.1  # the least share of the curvature so far that a pair may leave


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Pairs(FrozenArrays):
    """Steps, and how the gradient of the Lagrangian changed along each."""

    steps: FloatArray  # (k, dim), in scaled variables
    changes: FloatArray  # (k, dim)

    @classmethod
    def none(cls, dim: int) -> Pairs:
        """Return no pairs."""
        return cls(steps=np.empty((0, dim)), changes=np.empty((0, dim)))

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes are those of pairs of such a problem."""
        shape = (len(self.steps), size.dim)
        return self.steps.shape == self.changes.shape == shape

    def with_pair(self, step: FloatArray, change: FloatArray) -> Pairs:
        """Return the pairs with one more; the oldest goes if there are too many."""
        if not step.any():
            return self
        return Pairs(
            steps=np.vstack([self.steps, step])[-MOST_PAIRS:],
            changes=np.vstack([self.changes, change])[-MOST_PAIRS:],
        )

    def matrix(self, slopes: FloatArray, measured: FloatArray) -> FloatArray:
        """Return a positive semidefinite matrix that explains the pairs.

        It begins with what was measured, if anything; else with a multiple of the unit
        matrix, or of the covariance of the losses' gradients (`slopes`, one row per
        loss) if that fits the last pairs better. Then come the pairs, one after the
        other, by damped BFGS updates: one that curves downwards takes away what is
        said of its step, else steps would stay as short as they were elsewhere. Not so
        where losses are sampled.
        """
        dim = self.steps.shape[1]
        steps, changes, upward = self._usable()
        if len(slopes):  # of a mean that is estimated: noise may curve downwards
            steps, changes, upward = steps[upward], changes[upward], upward[upward]
        matrix: FloatArray = np.zeros((dim, dim))
        if len(measured):
            matrix = measured
        elif upward.any():
            last = np.flatnonzero(upward)[-LAST_PAIRS:]
            base = _base(steps[last], changes[last], slopes)
            bent = np.einsum("ij,jk,ik->", steps[last], base, steps[last])
            matrix = base * ((steps[last] * changes[last]).sum() / bent)
        for step, change in zip(steps, changes, strict=True):
            matrix = _updated(matrix, step, change)
        return matrix

    def _usable(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return the pairs, and which of them curve upwards, or next to not at all.

        A change that is nearly at a right angle to its step would be taken for a
        curvature without bounds: it is turned towards the step a little.
        """
        squares = np.einsum("ij,ij->i", self.steps, self.steps)
        used = (squares > 0) & self.changes.any(axis=1)
        steps, changes, squares = self.steps[used], self.changes[used], squares[used]
        products = np.einsum("ij,ij->i", steps, changes)
        lengths = np.sqrt(squares) * np.linalg.norm(changes, axis=1)
        upward = products > -STEEPEST * lengths
        turns = np.maximum(STEEPEST * lengths - products, 0.0) / squares
        turns = np.where(upward, turns, 0.0)
        return steps, changes + turns[:, np.newaxis] * steps, upward


def _base(steps: FloatArray, changes: FloatArray, slopes: FloatArray) -> FloatArray:
    """Return the matrix to begin with."""
    dim = steps.shape[1]
    unit = np.eye(dim)
    if len(slopes) < 8:
        return unit
    centred = slopes - slopes.mean(axis=0)
    covariance = centred.T @ centred / len(slopes)
    size = np.trace(covariance) / dim
    if not size > 0:
        return unit
    covariance += 1e-3 * size * unit

    def fit(matrix: FloatArray) -> float:
        said = steps @ matrix
        products = np.einsum("ij,ij->i", said, changes)
        lengths = np.linalg.norm(said, axis=1) * np.linalg.norm(changes, axis=1)
        return float((products / (lengths + 1e-300)).mean())

    return covariance if fit(covariance) > fit(unit) else unit


def _updated(matrix: FloatArray, step: FloatArray, change: FloatArray) -> FloatArray:
    """Return the matrix after Powell's damped BFGS update."""
    said = matrix @ step
    bent, product = float(step @ said), float(step @ change)
    if not bent > 0:
        return matrix
    if product < DAMPING * bent:
        share = (1.0 - DAMPING) * bent / (bent - product)
        change = share * change + (1.0 - share) * said
        product = float(step @ change)
    return matrix - np.outer(said, said) / bent + np.outer(change, change) / product
