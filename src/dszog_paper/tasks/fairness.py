r"""Classification under bounds on covariances with sensitive features (section 7.2).

For each sensitive feature :math:`z_j` and each of two functions :math:`g` of label and
score, :math:`-c \le \frac1n \sum_i (z_{ij} - \bar z_j) g(y_i, x_i \cdot w) \le c`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

import dszog
from dszog._arrays import FloatArray, IntArray, frozen_floats
from dszog._validation import check_choice, check_nonnegative
from dszog.errors import InputError
from dszog_paper.data import Split
from dszog_paper.tasks.task import TOLERANCE, Model, Task, features

Variant: TypeAlias = Literal["zafar", "literal"]
VARIANTS: tuple[Variant, ...] = ("zafar", "literal")


class CovarianceConstraints(dszog.Constraints):
    r"""The :math:`4r` bounds on covariances as :math:`f_j \le 0`.

    Constraint :math:`j` has the sign :math:`+` for :math:`j < 2r` and :math:`-` beyond;
    within each, the :math:`r` features with :math:`g_1` come before those with
    :math:`g_2`.

    Parameters
    ----------
    X : ndarray of shape (n, dim)
    y : ndarray of shape (n,)
        -1 or +1.
    sensitive : ndarray of shape (n, r)
    threshold : float
        :math:`c`.
    variant : {"zafar", "literal"}
        :math:`g_1 = \min(0, \frac{1+y}{2} y h)` counts positives that are called
        negative. :math:`g_2 = \min(0, \frac{1-y}{2} y h)` counts negatives that are
        called positive (``"zafar"``, after Zafar et al. 2017); as printed in the paper
        it has no :math:`y` (``"literal"``) and counts those that are called right.
    """

    def __init__(
        self,
        X: FloatArray,
        y: FloatArray,
        sensitive: FloatArray,
        threshold: float,
        variant: Variant,
    ) -> None:
        self._X, self._threshold = X, threshold
        n, n_sensitive = sensitive.shape
        centred = (sensitive - sensitive.mean(axis=0)) / n
        # Signed scores: min(0, sign * score) is summed, positives for g_1, negatives
        # for g_2.
        negatives = y if variant == "zafar" else np.ones(n)
        self._signs = frozen_floats(np.where(y > 0, 1.0, negatives))
        weights = np.concatenate(
            [centred * (y > 0)[:, np.newaxis], centred * (y < 0)[:, np.newaxis]], axis=1
        )
        self._weights = frozen_floats(weights)  # (n, 2 r)
        self._n_half = 2 * n_sensitive
        super().__init__(self._values_at, 4 * n_sensitive, jacobian=self._gradients)

    @property
    def dim(self) -> int:
        """Number of variables."""
        return int(self._X.shape[1])

    def covariances(self, points: FloatArray) -> FloatArray:
        """Return the covariances at each point, shape (k, 2 r)."""
        scores = np.minimum(0.0, points @ self._X.T * self._signs)
        found: FloatArray = scores @ self._weights
        return found

    def _values_at(self, points: FloatArray, indices: IntArray) -> FloatArray:
        found = self.covariances(points)[:, indices % self._n_half]
        return found * self._sides(indices) - self._threshold

    def _gradients(self, point: FloatArray, indices: IntArray) -> FloatArray:
        scores = self._X @ point * self._signs
        slopes = np.where(scores < 0.0, self._signs, 0.0)[:, np.newaxis] * self._weights
        columns = slopes[:, indices % self._n_half] * self._sides(indices)
        gradients: FloatArray = columns.T @ self._X
        return gradients

    def _sides(self, indices: IntArray) -> FloatArray:
        sides: FloatArray = np.where(indices < self._n_half, 1.0, -1.0)
        return sides


def fairness_task(
    split: Split,
    *,
    model: Model = "linear",
    width_factor: float = 1.0,
    threshold: float = 0.01,
    variant: Variant = "zafar",
) -> Task:
    r"""Return the task with the hinge loss :math:`\max(1 - y \, x \cdot w, 0)`.

    Parameters
    ----------
    split : Split
        With sensitive columns.
    model, width_factor
        See :func:`~dszog_paper.tasks.task.features`.
    threshold : float
        :math:`c`, which the paper does not state; 0.01 here.
    variant : {"zafar", "literal"}
        See :class:`CovarianceConstraints`.
    """
    check_choice("fairness_task", "variant", variant, VARIANTS)
    check_nonnegative("fairness_task", "threshold", threshold)
    train = split.train
    if not train.sensitive.shape[1]:
        raise InputError(
            f"fairness_task: {train.name} has no sensitive columns, got nothing to be "
            "fair about. Use data with some, such as D1 to D4 or adult."
        )
    known = features(split, model, width_factor)
    X, y = known.train, train.y

    def values(points: FloatArray, indices: IntArray) -> Any:
        return np.maximum(1.0 - y[indices] * (points @ X[indices].T), 0.0)

    def gradient(point: FloatArray, indices: IntArray) -> Any:
        active = y[indices] * (X[indices] @ point) < 1.0
        return -(active * y[indices])[:, np.newaxis] * X[indices]

    return Task(
        name="fairness",
        split=split,
        features=known,
        losses=dszog.Losses(values, len(y), gradient=gradient),
        constraints=CovarianceConstraints(X, y, train.sensitive, threshold, variant),
        loosened=CovarianceConstraints(
            X, y, train.sensitive, threshold + TOLERANCE, variant
        ),
    )
