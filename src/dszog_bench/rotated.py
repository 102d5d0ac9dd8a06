"""As many constraints as one likes over the same 2,000 rows, as a function of an index.

Constraint `j` belongs to row ``j % 2000`` and asks that its score, with the features
shifted cyclically and a bound that depends on `j`, stays below that bound. Nothing is
ever listed, so `m` goes from ten thousand to a trillion with the same memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dszog
from dszog.contract.arrays import FloatArray, IntArray

N_ROWS, DIM = 2000, 50
GOLDEN = 0.6180339887498949  # spreads the bounds evenly over (0.3, 0.6)


def rotated_rows(dim: int = DIM) -> tuple[FloatArray, FloatArray]:
    """Return 2,000 rows of length about 1 and their labels."""
    rng = np.random.Generator(np.random.Philox(key=0))
    X = rng.standard_normal((N_ROWS, dim)) / np.sqrt(dim)
    y = np.where(X @ rng.standard_normal(dim) > 0, 1.0, -1.0)
    return X, y


def rotated_values(X: FloatArray) -> Any:
    """Return ``values(points, indices)`` of the constraints over these rows."""
    dim = X.shape[1]
    columns = np.arange(dim)

    def values(points: FloatArray, indices: IntArray) -> Any:
        turn, row = np.divmod(indices, N_ROWS)
        shifted = X[row[:, np.newaxis], (columns + turn[:, np.newaxis]) % dim]
        bounds = 0.3 + 0.3 * ((GOLDEN * (turn % 1_000_003)) % 1.0)
        return points @ shifted.T - bounds

    return values


def rotated_losses(X: FloatArray, y: FloatArray) -> Any:
    """Return ``values(points, indices)`` of logistic losses of the rows."""

    def values(points: FloatArray, indices: IntArray) -> Any:
        return np.logaddexp(0.0, -y[indices] * (points @ X[indices].T))

    return values


def rotated_problem(m: int, watched: Any = lambda values: values) -> dszog.Problem:
    """Return the problem with `m` constraints, all a black box, its losses watched."""
    X, y = rotated_rows()
    return dszog.Problem(
        dszog.Losses(watched(rotated_losses(X, y)), N_ROWS),
        dszog.Constraints(rotated_values(X), m),
        DIM,
    )
