r"""One constraint for every pair of a positive and a negative row."""

from __future__ import annotations

from typing import Any

import numpy as np

from dszog import kernels
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import check_number
from dszog.errors import InputError
from dszog.problem.constraints.base import Constraints, Summary
from dszog.problem.data_rows import DataRows


class PairwiseConstraints(Constraints):
    r""":math:`x_b^- \cdot w - x_a^+ \cdot w + \text{margin} \le 0` for all pairs.

    Pair :math:`j` is :math:`a = \lfloor j / n^- \rfloor, b = j \bmod n^-`; no list of
    pairs is ever made.
    """

    def __init__(self, X_pos: Any, X_neg: Any, margin: float = 0.0) -> None:
        name = "Constraints.pairwise"
        self._positives = DataRows(name, "X_pos", X_pos)
        self._negatives = DataRows(name, "X_neg", X_neg)
        if self._positives.shape[1] != self._negatives.shape[1]:
            raise InputError(
                f"{name}: `X_pos` and `X_neg` must have the same columns, got "
                f"{self._positives.shape[1]} and {self._negatives.shape[1]}. "
                "Take both from one matrix: X[y == 1], X[y == -1]."
            )
        self._is_dense = self._positives.is_dense and self._negatives.is_dense
        self._margin = check_number(name, "margin", margin)
        if not np.isfinite(self._margin):
            raise InputError(
                f"{name}: `margin` must be finite, got {margin}. Try 0, or -0.1 to "
                "relax."
            )
        super().__init__(
            self._pairs_at,
            len(self._positives) * len(self._negatives),
            jacobian=self._gradients,
        )

    @property
    def dim(self) -> int:
        return int(self._positives.shape[1])

    @property
    def samples(self) -> tuple[FloatArray, FloatArray]:
        return self._positives.matrix, self._negatives.matrix

    @property
    def margin(self) -> float:
        """By how much a positive row has to outscore a negative one."""
        return self._margin

    def pair(self, indices: IntArray) -> tuple[IntArray, IntArray]:
        """Return the positive and the negative row that each index stands for."""
        return np.divmod(indices, len(self._negatives))

    def _pairs_at(self, points: FloatArray, indices: IntArray) -> FloatArray:
        positives, negatives = self._positives, self._negatives
        positives.check_points(points)
        kernel = kernels.chosen()
        values: FloatArray
        if positives.sparse is not None and negatives.sparse is not None:
            rows = positives.prepared, negatives.prepared
            values = kernel.pairs(*rows, self._margin, points, indices)
        elif self._is_dense:
            values = kernel.dense_pairs(*self.samples, self._margin, points, indices)
        else:
            values = points @ self._differences(indices).T
            values += self._margin
        return values

    def _gradients(self, point: FloatArray, indices: IntArray) -> FloatArray:
        return self._differences(indices)

    def _differences(self, indices: IntArray) -> FloatArray:
        if self._is_dense:
            found: FloatArray = kernels.chosen().differences(*self.samples, indices)
            return found
        positive, negative = self.pair(indices)
        return self._negatives.dense(negative) - self._positives.dense(positive)

    def summary(self, x: FloatArray) -> Summary:
        r"""Return what all pairs say about `x` in :math:`O(n \log n)`, exactly.

        The worst pair is the lowest positive against the highest negative. A negative
        score :math:`s` violates with every positive score below :math:`s +` margin; in
        sorted order these are a prefix, whose sums of scores and squares give the rest.
        """
        positive = self._positives.all_scores(x)
        negative = self._negatives.all_scores(x) + self._margin
        low, high = int(np.argmin(positive)), int(np.argmax(negative))
        worst = float(negative[high] - positive[low])

        ordered = np.sort(positive)
        n_below = np.searchsorted(ordered, negative, side="left")
        centre = float(negative[high])  # sums of squares of small numbers keep digits
        ordered, negative = ordered - centre, negative - centre
        sums = np.concatenate([[0.0], np.cumsum(ordered)])[n_below]
        with np.errstate(over="ignore", invalid="ignore"):
            squares = np.concatenate([[0.0], np.cumsum(ordered**2)])[n_below]
            total = float((n_below * negative**2 - 2 * negative * sums + squares).sum())
        if np.isnan(total):  # the squares of such scores are no numbers
            total = np.inf if worst > 0.0 else 0.0
        return Summary(
            n_constraints=len(self),
            n_violated=int(n_below.sum()),
            worst_value=worst,
            worst_index=low * len(self._negatives) + high,
            sum_squares=max(total, 0.0),
        )
