"""From columns of data to what scores are linear in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import eigh
from scipy.optimize import minimize_scalar
from scipy.sparse.linalg import lsqr
from sklearn.metrics.pairwise import euclidean_distances, rbf_kernel

from dszog.contract.arrays import FloatArray
from dszog.learn.samples import TrainingSet
from dszog.maths.random_stream import distinct_indices, stream

CENTRES = 5
"""Purpose of the draw of the rows that a kernel model keeps."""
SMALLEST = 1e-10  # eigenvalues below this share of the largest are noise

RIDGE = 1e-2  # per row, of the start


@dataclass(frozen=True, kw_only=True)
class Scaling:
    """Columns with mean 0 and standard deviation 1; sparse ones keep their zeros."""

    mean: FloatArray  # (d,)
    scale: FloatArray  # (d,)

    @classmethod
    def of(cls, train: TrainingSet, wanted: bool) -> Scaling:
        n_columns = train.X.shape[1]
        mean, scale = np.zeros(n_columns), np.ones(n_columns)
        if not wanted:
            return cls(mean=mean, scale=scale)
        shares = train.weights / train.weights.sum()
        centre = np.asarray(shares @ train.X).ravel()
        if sparse.issparse(train.X):
            spread = np.asarray(shares @ train.X.power(2)).ravel() - centre**2
            spread = np.sqrt(np.maximum(spread, 0.0))
        else:
            mean = centre
            spread = np.sqrt(shares @ np.square(train.X - mean))
        # A constant column differs from its mean by rounding alone.
        varies = spread > 1e-7 * np.abs(centre)
        scale[varies] = spread[varies]
        return cls(mean=mean, scale=scale)

    def __call__(self, X: Any) -> Any:
        if sparse.issparse(X):
            return sparse.csr_array(X) @ sparse.diags_array(1.0 / self.scale)
        return (X - self.mean) / self.scale


@dataclass(frozen=True, kw_only=True)
class Kernel:
    r"""Kernels :math:`\exp(-\gamma \|x - x'\|^2)` with rows that are kept.

    A model is a combination of these, the columns of `basis` being the directions in
    which it may move. They are orthonormal in the norm of the kernel, the most
    important first, which makes all of them equally easy to move along.
    """

    centres: Any  # (c, d), scaled; dense or CSR
    gamma: float
    basis: FloatArray  # (c, k)

    @classmethod
    def of(
        cls,
        train: TrainingSet,
        scaled: Any,
        gamma: str | float,
        n_centres: int,
        n_components: int,
        seed: int,
    ) -> Kernel:
        n_rows = scaled.shape[0]
        drawn = distinct_indices(
            stream(seed, 0, CENTRES), n_rows, min(n_centres, n_rows)
        )
        centres = scaled[drawn]
        width = gamma
        if gamma == "scale":
            shares = train.weights / train.weights.sum()
            squares = scaled.power(2) if sparse.issparse(scaled) else scaled**2
            mean = (shares @ scaled).mean()
            variance = float((shares @ squares).mean() - mean**2)
            width = 1.0 / (scaled.shape[1] * variance) if variance > 0.0 else 1.0
        elif gamma == "median":
            distances = euclidean_distances(centres, squared=True)
            apart = distances[np.triu_indices(len(distances), 1)]
            middle = float(np.median(apart)) if len(apart) else 1.0
            width = 1.0 / middle if middle > 0.0 else 1.0
        table = rbf_kernel(centres, gamma=float(width))
        k = min(n_components, len(table))
        values, vectors = eigh(table, subset_by_index=(len(table) - k, len(table) - 1))
        values, vectors = values[::-1], vectors[:, ::-1]
        kept = values > SMALLEST * values[0]
        # Signs are free: the largest entry of each direction is made positive.
        heads = vectors[np.abs(vectors).argmax(axis=0), np.arange(k)]
        vectors = vectors * np.sign(heads)
        basis = vectors[:, kept] / np.sqrt(values[kept])
        # Rows then have the squared length of rows of as many standardised columns.
        basis = basis * np.sqrt(basis.shape[1])
        return cls(centres=centres, gamma=float(width), basis=basis)

    def __call__(self, scaled: Any) -> FloatArray:
        """Return the coordinates of scaled rows in the basis."""
        table: FloatArray = rbf_kernel(scaled, self.centres, gamma=self.gamma)
        return table @ self.basis


def with_ones(X: Any, ones: bool) -> Any:
    """Return the rows with a last column of ones for the intercept, or of zeros."""
    column = np.full((X.shape[0], 1), 1.0 if ones else 0.0)
    if sparse.issparse(X):
        return sparse.csr_array(sparse.hstack([X, sparse.csr_array(column)]))
    return np.ascontiguousarray(np.hstack([X, column]))


def least_squares(model: Any, train: TrainingSet) -> FloatArray:
    """Return the weights whose scores are nearest to the labels, a little shrunk."""
    roots = np.sqrt(train.weights)
    if sparse.issparse(model):
        scaled = sparse.diags_array(roots) @ model
    else:
        scaled = model * roots[:, np.newaxis]
    shrunk = np.sqrt(RIDGE * len(roots))
    found: FloatArray = lsqr(scaled, train.labels * roots, damp=shrunk)[0]
    return found


def likeliest_slope(scores: FloatArray, labels: FloatArray, w: FloatArray) -> float:
    """Return the slope by which scores are best taken for log-odds of the labels.

    Targets are a little inside of 0 and 1 (Platt 1999), so that it is finite where the
    classes are separated.
    """
    positive = labels > 0.0
    above, below = float(w[positive].sum()), float(w[~positive].sum())
    target = np.where(positive, (above + 1) / (above + 2), 1 / (below + 2))
    spread = float(np.sqrt(np.average(np.square(scores), weights=w))) or 1.0

    def loss(log_slope: float) -> float:
        odds = np.exp(log_slope) * scores / spread
        return float(w @ (np.logaddexp(0.0, odds) - target * odds))

    found = minimize_scalar(loss, bounds=(-9.0, 9.0), method="bounded")
    return float(np.exp(found.x) / spread)
