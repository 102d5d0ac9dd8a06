"""Rows of data, and the scores that points give them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from dszog import kernels
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.validation import check_floats
from dszog.errors import InputError


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
            if n_entries <= kernels.chosen().SPARSE_SHARE * kept.size:
                self.sparse = sparse.csr_array(kept)
        self._owner, self._name = owner, name

    @cached_property
    def prepared(self) -> Any:
        """The sparse rows as the kernels of this process read them."""
        return kernels.chosen().prepared_rows(self.sparse)

    def __getstate__(self) -> dict[str, Any]:  # another process may have other kernels
        return {name: kept for name, kept in vars(self).items() if name != "prepared"}

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def is_dense(self) -> bool:
        return self.sparse is None

    def scores(self, points: FloatArray, indices: IntArray) -> FloatArray:
        self.check_points(points)
        if self.sparse is not None:
            found: FloatArray = kernels.chosen().scores(self.prepared, points, indices)
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
        """Return the score of every row at one point."""
        # Each row is summed alike: equal rows have equal scores, bit for bit.
        if self._dense is not None:
            scores: FloatArray = np.einsum("nd,d->n", self._dense, x)
        else:
            scores = self.sparse @ x
        return scores

    def dense(self, indices: IntArray) -> FloatArray:
        if self._dense is not None:
            return self._dense.take(indices, axis=0)
        rows: FloatArray = self.sparse[indices].toarray()
        return rows

    @property
    def matrix(self) -> FloatArray:
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
