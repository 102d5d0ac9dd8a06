"""Constraints ``A x <= b``."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.validation import check_floats
from dszog.errors import InputError
from dszog.problem.constraints.base import Constraints, Summary, summarise
from dszog.problem.data_rows import check_matrix


class LinearConstraints(Constraints):
    """The rows of ``A x <= b``; `A` is a dense array or a SciPy sparse matrix."""

    def __init__(self, A: Any, b: Any) -> None:
        name = "Constraints.linear"
        advice = "For one constraint pass A[None, :]."
        self._matrix = check_matrix(name, "A", A, "constraint", advice)
        self._limits = check_floats(name, "b", b)
        n_rows = self._matrix.shape[0]
        if self._limits.shape == ():
            self._limits = frozen_floats(np.full(n_rows, float(self._limits)))
        if self._limits.shape != (n_rows,):
            raise InputError(
                f"{name}: `b` must have an entry per row of A, got shape "
                f"{self._limits.shape} for {n_rows} rows. Pass a vector or a number."
            )
        super().__init__(self._rows_at, n_rows, jacobian=self._gradients)

    @property
    def dim(self) -> int:
        return int(self._matrix.shape[1])

    @property
    def rows(self) -> tuple[Any, FloatArray]:
        """`A` (dense, or sparse in CSR form) and `b`."""
        return self._matrix, self._limits

    def _rows_at(self, points: FloatArray, indices: IntArray) -> FloatArray:
        products: FloatArray = (self._matrix[indices] @ points.T).T
        return products - self._limits[indices]

    def _gradients(self, point: FloatArray, indices: IntArray) -> FloatArray:
        rows = self._matrix[indices]
        dense: FloatArray = rows.toarray() if sparse.issparse(rows) else rows
        return dense

    def summary(self, x: FloatArray) -> Summary:
        """Return what all rows say about `x`, by one matrix product."""
        return summarise(self._matrix @ x - self._limits)
