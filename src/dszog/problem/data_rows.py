"""Rows of data, and the scores that points give them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy import sparse

from dszog import kernels
from dszog.contract.arrays import (
    ColumnArray,
    FloatArray,
    IntArray,
    freeze,
    frozen_floats,
    frozen_ints,
)
from dszog.contract.validation import check_floats
from dszog.errors import InputError

MOSTLY_ZEROS = 0.25  # a dense matrix with at most this share of entries is kept sparse

# Values (none if all are 1), columns, and where each row starts.
Csr: TypeAlias = tuple[FloatArray, ColumnArray, IntArray]


class DataRows:
    """A data matrix, dense or sparse, whose rows are scored at several points at once.

    It is kept as it comes. Where Numba is installed, a dense one that is mostly zeros
    is kept sparse as well, which makes its scores several times faster. `owner` and
    `name` are for messages.
    """

    def __init__(self, owner: str, name: str, matrix: Any) -> None:
        advice = "Pass at least one row: X[y == 1]."
        kept = check_matrix(owner, name, matrix, "sample", advice)
        self.shape: tuple[int, int] = kept.shape
        self.sparse: Any = None
        self._dense: FloatArray | None = None
        if sparse.issparse(kept):
            self.sparse = kept
            self.sparse.sum_duplicates()
        else:
            self._dense = kept
            n_entries = np.count_nonzero(kept)
            if kernels.is_on() and n_entries <= MOSTLY_ZEROS * kept.size:
                self.sparse = sparse.csr_array(kept)
        self._owner, self._name = owner, name
        self.csr: Csr | None = None  # what compiled kernels read
        n_columns = self.shape[1]  # columns have 16 bits there, or 32
        if self.sparse is not None and n_columns < 2**31 and kernels.is_on():
            kind = np.uint16 if n_columns <= 2**16 else np.int32
            values = frozen_floats(self.sparse.data)
            self.csr = (
                values[:0] if (values == 1.0).all() else values,
                freeze(self.sparse.indices.astype(kind)),
                frozen_ints(self.sparse.indptr),
            )

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def is_dense(self) -> bool:
        """Whether the rows are kept as a dense matrix alone."""
        return self.sparse is None

    def scores(self, points: FloatArray, indices: IntArray) -> FloatArray:
        """Return the score of each point (row) and indexed row (column)."""
        self.check_points(points)
        if self.csr is not None and (compiled := kernels.rows()) is not None:
            table = np.empty((len(points), len(indices)))
            compiled.scores(
                *self.csr, frozen_floats(points), frozen_ints(indices), table
            )
            return table
        if self.sparse is not None:
            found: FloatArray = (self.sparse[indices] @ points.T).T
            return found
        return points @ self.dense(indices).T

    def check_points(self, points: FloatArray) -> None:
        """Refuse points of another length: compiled code would read beyond them."""
        if points.shape[-1] != self.shape[1]:
            raise InputError(
                f"{self._owner}: points must have {self.shape[1]} variables, a column "
                f"of `{self._name}` each, got {points.shape[-1]}. Give the problem as "
                "many variables as there are columns."
            )

    def all_scores(self, x: FloatArray) -> FloatArray:
        """Return the score of every row at one point.

        Each row is summed alike: equal rows have equal scores, bit for bit.
        """
        if self._dense is not None:
            scores: FloatArray = np.einsum("nd,d->n", self._dense, x)
        else:
            scores = self.sparse @ x
        return scores

    def dense(self, indices: IntArray) -> FloatArray:
        """Return these rows as a dense matrix."""
        if self._dense is not None:
            return self._dense.take(indices, axis=0)
        rows: FloatArray = self.sparse[indices].toarray()
        return rows

    @property
    def matrix(self) -> FloatArray:
        """All rows as a dense matrix."""
        if self._dense is None:
            self._dense = frozen_floats(self.sparse.toarray())
        return self._dense


def check_matrix(owner: str, name: str, matrix: Any, per_row: str, advice: str) -> Any:
    """Return a matrix of finite numbers as read-only float64, dense or CSR."""
    kept: Any
    if sparse.issparse(matrix):
        kept = sparse.csr_array(matrix, copy=True)
        check_floats(owner, f"{name}.data", kept.data)
        kept = kept.astype(np.float64)
    else:
        kept = frozen_floats(check_floats(owner, name, matrix))
    if kept.ndim != 2 or 0 in kept.shape:
        raise InputError(
            f"{owner}: `{name}` must be a matrix with a {per_row} per row, got shape "
            f"{kept.shape}. {advice}"
        )
    return kept
