"""A learning problem of the paper on one split: features, losses, constraints, scores.

Models are linear, or linear in kernels with the training rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist, pdist

import dszog
from dszog._arrays import FloatArray, frozen_floats
from dszog_paper.data import Split

Model: TypeAlias = Literal["linear", "rbf"]

TOLERANCE = 0.01
"""Violations up to this are not counted in a second share beside the strict one."""
ZERO_SCORE = 1e-12  # scores below this are 0, and predict the class +1


@dataclass(frozen=True, kw_only=True)
class Features:
    """What scores are linear in, for each part of a split."""

    train: FloatArray
    validation: FloatArray
    test: FloatArray

    @property
    def dim(self) -> int:
        """Number of weights."""
        return int(self.train.shape[1])


def features(
    split: Split, model: Model = "linear", width_factor: float = 1.0
) -> Features:
    r"""Return the rows themselves, or their kernels with all training rows.

    The kernel is :math:`\exp(-\gamma \|x - x'\|^2)` with :math:`1/\gamma` the median
    squared distance of training rows, times `width_factor` (paper.md leaves the width
    open, as the paper does).
    """
    parts = {
        name: getattr(split, name).dense for name in ("train", "validation", "test")
    }
    if model == "linear":
        return Features(**parts)
    centres = parts["train"]
    width = width_factor * float(np.median(pdist(centres, "sqeuclidean")))
    kernels = {
        name: frozen_floats(np.exp(-cdist(rows, centres, "sqeuclidean") / width))
        for name, rows in parts.items()
    }
    return Features(**kernels)


def predict(scores: FloatArray) -> FloatArray:
    """Return the class of each score; a score of 0 predicts +1."""
    classes: FloatArray = np.where(scores >= -ZERO_SCORE, 1.0, -1.0)
    return classes


@dataclass(frozen=True, kw_only=True)
class Task:
    """Losses, constraints and how a result is judged.

    The losses have gradients and the constraints are a white box, for methods that need
    them; :meth:`problem` hides this from the others.
    """

    name: str  # "pairwise" or "fairness"
    split: Split
    features: Features
    losses: Any
    constraints: Any
    loosened: Any  # the constraints, each allowed to be off by `TOLERANCE`

    def problem(self, *, white_constraints: bool, gradient: bool = False) -> Any:
        """Return the problem with as much known as a method is given."""
        losses = self.losses
        if not gradient:
            losses = dszog.Losses(self.losses.values, len(self.losses))
        constraints = self.constraints
        if not white_constraints:
            constraints = constraints.black_box()
        return dszog.Problem(losses, constraints, self.features.dim)

    def accuracy(self, w: FloatArray, part: str) -> float:
        """Return the accuracy on ``"train"``, ``"validation"`` or ``"test"``."""
        right = predict(getattr(self.features, part) @ w) == getattr(self.split, part).y
        return float(right.mean())

    def objective(self, w: FloatArray) -> float:
        """Return the mean loss over the training rows."""
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
        model.fit(self.features.train, self.split.train.y)
        return float(model.score(self.features.test, self.split.test.y))


def _judged(constraints: Any, w: FloatArray) -> tuple[float, float]:
    """Return the share of violated constraints and the largest value."""
    summary = constraints.summary(w)
    if summary is not None:
        return summary.n_violated / summary.n_constraints, summary.worst_value
    values = constraints.values(w[np.newaxis], np.arange(len(constraints)))[0]
    return float((values > 0.0).mean()), float(values.max())
