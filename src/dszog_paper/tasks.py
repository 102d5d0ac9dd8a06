"""The two applications of the paper: pairwise and fairness constraints.

Models are linear, or linear in kernels with the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist, pdist

import dszog
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.errors import InputError
from dszog_paper.data import Split

Model: TypeAlias = Literal["linear", "rbf"]

TOLERANCE = 0.01  # up to this a violation is not counted in a second share
THRESHOLD = 0.01  # of covariances; the paper does not state it
ZERO_SCORE = 1e-12  # scores below this are 0, and predict the class +1


def features(split: Split, model: Model = "linear") -> dict[str, FloatArray]:
    r"""Return what scores are linear in, for each part of a split.

    The rows themselves, or their kernels with all training rows.

    The kernel is :math:`\exp(-\gamma \|x - x'\|^2)` with :math:`1/\gamma` the median
    squared distance of training rows; the paper does not state the width.
    """
    parts = {
        name: getattr(split, name).dense for name in ("train", "validation", "test")
    }
    if model == "linear":
        return parts
    centres = parts["train"]
    width = float(np.median(pdist(centres, "sqeuclidean")))
    return {
        name: frozen_floats(np.exp(-cdist(rows, centres, "sqeuclidean") / width))
        for name, rows in parts.items()
    }


@dataclass(frozen=True, kw_only=True)
class Task:
    """Losses, constraints and how a result is judged.

    The losses have gradients and the constraints are a white box, for methods that need
    them; :meth:`problem` hides this from the others.
    """

    split: Split
    features: dict[str, FloatArray]  # by part
    losses: Any
    constraints: Any
    loosened: Any  # the constraints, each allowed to be off by `TOLERANCE`

    @property
    def dim(self) -> int:
        return int(self.features["train"].shape[1])

    def problem(self, *, white_constraints: bool, gradient: bool = False) -> Any:
        """Return the problem with as much known as a method is given."""
        losses, constraints = self.losses, self.constraints
        if not gradient:
            losses = dszog.Losses(losses.values, len(losses))
        if not white_constraints:
            constraints = constraints.black_box()
        return dszog.Problem(losses, constraints, self.dim)

    def accuracy(self, w: FloatArray, part: str) -> float:
        """Return the accuracy on ``"train"``, ``"validation"`` or ``"test"``."""
        is_positive = self.features[part] @ w >= -ZERO_SCORE
        right = is_positive == (getattr(self.split, part).y > 0)
        return float(right.mean())

    def objective(self, w: FloatArray) -> float:
        everything = np.arange(len(self.losses))
        return float(self.losses.values(w[np.newaxis], everything).mean())

    def violations(self, w: FloatArray) -> dict[str, float]:
        """Return the share of violated constraints and the worst violation.

        As trained, and at :math:`|w| = 1`: pairwise and covariance constraints are
        homogeneous (but for a threshold), so that shrinking the weights would look
        like feasibility.
        """
        norm = float(np.sqrt(np.square(w).sum()))
        unit = w / norm if norm > 0 else w
        found: dict[str, float] = {"norm": norm}
        for name, point in (("", w), ("unit_", unit)):
            share, worst = _judged(self.constraints, point)
            found[f"{name}share_violated"] = share
            found[f"{name}worst_violation"] = max(worst, 0.0)
            found[f"{name}share_beyond"] = _judged(self.loosened, point)[0]
        return found

    @cached_property
    def majority_share(self) -> float:
        """What the trivial classifier scores on the test part."""
        frequent = 1.0 if self.split.train.positive_share >= 0.5 else -1.0
        return float((self.split.test.y == frequent).mean())

    @cached_property
    def logistic_accuracy(self) -> float:
        """What unconstrained logistic regression scores on the test part."""
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(C=1.0, fit_intercept=False, max_iter=1000)
        model.fit(self.features["train"], self.split.train.y)
        return float(model.score(self.features["test"], self.split.test.y))


def _judged(constraints: Any, w: FloatArray) -> tuple[float, float]:
    """Return the share of violated constraints and the largest value."""
    summary = constraints.summary(w)
    if summary is not None:
        return summary.n_violated / summary.n_constraints, summary.worst_value
    values = constraints.values(w[np.newaxis], np.arange(len(constraints)))[0]
    return float((values > 0.0).mean()), float(values.max())


# ----------------------------------------------------------------------- pairwise


def pairwise_task(split: Split, model: Model = "linear") -> Task:
    r"""Return the task of section 7.1: positives are to outscore negatives.

    There is a constraint for each pair of a positive and a negative training row. The
    loss is :math:`c^2 (1 - \exp(-(y - x \cdot w)^2 / c^2))`; the paper does not state
    :math:`c`, which is 1 here.
    """
    known = features(split, model)
    X, y = known["train"], split.train.y

    def values(points: FloatArray, indices: IntArray) -> Any:
        return 1.0 - np.exp(-np.square(y[indices] - points @ X[indices].T))

    def gradient(point: FloatArray, indices: IntArray) -> Any:
        gaps = y[indices] - X[indices] @ point
        slopes = -2.0 * gaps * np.exp(-np.square(gaps))
        return slopes[:, np.newaxis] * X[indices]

    return Task(
        split=split,
        features=known,
        losses=dszog.Losses(values, len(y), gradient=gradient),
        constraints=dszog.Constraints.pairwise(X[y > 0], X[y < 0]),
        loosened=dszog.Constraints.pairwise(X[y > 0], X[y < 0], -TOLERANCE),
    )


# ----------------------------------------------------------------------- fairness


class CovarianceConstraints(dszog.Constraints):
    r"""The :math:`4r` bounds on covariances of section 7.2 as :math:`f_j \le 0`.

    For each sensitive feature :math:`z_j` and each of two functions :math:`g` of label
    and score: :math:`-c \le \frac1n \sum_i (z_{ij} - \bar z_j) g(y_i, x_i w) \le c`.

    Constraint :math:`j` has the sign :math:`+` for :math:`j < 2r` and :math:`-` beyond;
    within each, the :math:`r` features with :math:`g_1` come before those with
    :math:`g_2`. Here :math:`g_1 = \min(0, \frac{1+y}{2} y h)` counts positives that are
    called negative, and :math:`g_2 = \min(0, \frac{1-y}{2} y h)` negatives that are
    called positive, after Zafar et al. (2017); the paper prints it without :math:`y`.
    """

    def __init__(
        self, X: FloatArray, y: FloatArray, sensitive: FloatArray, threshold: float
    ) -> None:
        self._X, self._threshold = X, threshold
        n, n_sensitive = sensitive.shape
        centred = (sensitive - sensitive.mean(axis=0)) / n
        self._signs = y  # min(0, sign * score) is summed
        weights = [centred * (y == label)[:, np.newaxis] for label in (1.0, -1.0)]
        self._weights = frozen_floats(np.concatenate(weights, axis=1))  # (n, 2 r)
        self._n_half = 2 * n_sensitive
        super().__init__(self._values_at, 4 * n_sensitive, jacobian=self._gradients)

    @property
    def dim(self) -> int:
        return int(self._X.shape[1])

    def _values_at(self, points: FloatArray, indices: IntArray) -> FloatArray:
        scores = np.minimum(0.0, points @ self._X.T * self._signs)
        covariances = scores @ self._weights  # (k, 2 r)
        found: FloatArray = covariances[:, indices % self._n_half]
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


def fairness_task(split: Split, model: Model = "linear") -> Task:
    r"""Return the task with the hinge loss :math:`\max(1 - y \, x \cdot w, 0)`.

    The split has sensitive columns; constraints are :class:`CovarianceConstraints`.
    """
    train = split.train
    if not train.sensitive.shape[1]:
        raise InputError(
            f"fairness_task: {train.name} has no sensitive columns, got nothing to be "
            "fair about. Use data with some, such as D1 to D4."
        )
    known = features(split, model)
    X, y = known["train"], train.y

    def values(points: FloatArray, indices: IntArray) -> Any:
        return np.maximum(1.0 - y[indices] * (points @ X[indices].T), 0.0)

    def gradient(point: FloatArray, indices: IntArray) -> Any:
        active = y[indices] * (X[indices] @ point) < 1.0
        return -(active * y[indices])[:, np.newaxis] * X[indices]

    strict, loose = (
        CovarianceConstraints(X, y, train.sensitive, threshold)
        for threshold in (THRESHOLD, THRESHOLD + TOLERANCE)
    )
    return Task(
        split=split,
        features=known,
        losses=dszog.Losses(values, len(y), gradient=gradient),
        constraints=strict,
        loosened=loose,
    )
