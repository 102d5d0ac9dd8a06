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


class Rows:
    """A data matrix, dense or sparse, whose rows are scored at several points at once.

    Parameters
    ----------
    owner, name : str
        Who asks, and what the matrix is called there; for messages.
    matrix : array_like or SciPy sparse matrix of shape (n, dim)
        Kept as it comes. Where Numba is installed, a dense one that is mostly zeros is
        kept sparse as well, which makes its scores several times faster.
    """

    def __init__(self, owner: str, name: str, matrix: Any) -> None:
        self.sparse: Any = None
        self._dense: FloatArray | None = None
        if sparse.issparse(matrix):
            self.sparse = _checked_sparse(owner, name, matrix)
            self.shape = _checked_shape(owner, name, self.sparse.shape)
        else:
            self._dense = frozen_floats(check_floats(owner, name, matrix))
            self.shape = _checked_shape(owner, name, self._dense.shape)
            n_entries = np.count_nonzero(self._dense)
            if kernels.is_on() and n_entries <= MOSTLY_ZEROS * self._dense.size:
                self.sparse = sparse.csr_array(self._dense)
        self._owner, self._name = owner, name
        self.csr: Csr | None = None  # what compiled kernels read
        fits = self.shape[1] < 2**31  # columns have 32 bits there, or 16
        if self.sparse is not None and fits and kernels.is_on():
            values = frozen_floats(self.sparse.data)
            self.csr = (
                values[:0] if (values == 1.0).all() else values,
                freeze(self.sparse.indices.astype(_columns(self.shape[1]))),
                frozen_ints(self.sparse.indptr),
            )

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def is_dense(self) -> bool:
        """Whether the rows are kept as a dense matrix alone."""
        return self.sparse is None

    def scores(self, points: FloatArray, indices: IntArray) -> FloatArray:
        """Return the score of each point (row) and each indexed row (column)."""
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


def _columns(n: int) -> type[np.signedinteger[Any] | np.unsignedinteger[Any]]:
    """Return the smaller type that holds a column: kernels wait for memory."""
    return np.uint16 if n <= 2**16 else np.int32


def _checked_sparse(owner: str, name: str, matrix: Any) -> Any:
    rows = sparse.csr_array(matrix, copy=True)
    check_floats(owner, f"{name}.data", rows.data)
    rows = rows.astype(np.float64)
    rows.sum_duplicates()
    return rows


def _checked_shape(owner: str, name: str, shape: tuple[int, ...]) -> tuple[int, int]:
    if len(shape) != 2 or 0 in shape:
        raise InputError(
            f"{owner}: `{name}` must be a matrix with a sample per row, got shape "
            f"{shape}. Pass at least one row: X[y == 1]."
        )
    return shape[0], shape[1]
