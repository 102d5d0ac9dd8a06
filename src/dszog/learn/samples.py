"""Training rows in an order of their own, each once, with its weight."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dszog.contract.arrays import FloatArray


@dataclass(frozen=True, kw_only=True)
class TrainingSet:
    """What a model is fitted to.

    Equal rows are one row with the sum of their weights, and rows are in the order of
    their bytes. So a fit does not depend on the order of its samples, a weight of 2 is
    the same as a second copy, and no pair is looked at twice.
    """

    X: Any  # (n, d), dense or CSR
    labels: FloatArray  # (n,), -1 or +1
    weights: FloatArray  # (n,), mean 1
    extra: FloatArray  # (n, r), what else is known of each row


def training_set(
    X: Any, labels: FloatArray, weights: FloatArray, extra: FloatArray
) -> TrainingSet:
    """Merge equal rows; rows of weight 0 are left out."""
    used = np.flatnonzero(weights)
    beside = np.column_stack([labels, extra])[used] + 0.0  # -0.0 becomes 0.0
    if sparse.issparse(X):
        X = sparse.csr_array(X, dtype=np.float64)[used]
        X.sum_duplicates()
        X.eliminate_zeros()
        keys = _keys_of_sparse(X, beside)
    else:
        X = X[used] + 0.0
        table = np.ascontiguousarray(np.column_stack([beside, X]))
        keys = table.view(np.dtype((np.void, table[0].nbytes))).ravel()
    _, first, group = np.unique(keys, return_index=True, return_inverse=True)
    total = np.bincount(group, weights=weights[used])
    return TrainingSet(
        X=X[first],
        labels=labels[used][first],
        weights=total / total.mean(),
        extra=extra[used][first],
    )


def _keys_of_sparse(X: Any, beside: FloatArray) -> NDArray[Any]:
    """Return the bytes of each row."""
    columns, keys = X.indices.astype(np.int64), np.empty(X.shape[0], dtype=object)
    for row, (start, stop) in enumerate(zip(X.indptr[:-1], X.indptr[1:], strict=True)):
        parts = beside[row], columns[start:stop], X.data[start:stop]
        keys[row] = b"".join(part.tobytes() for part in parts)
    return keys
