"""One learning problem of the paper, on one split of one data set."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

import dszog
from dszog._arrays import FloatArray
from dszog_paper.data.splits import Split
from dszog_paper.tasks.models import Features, accuracy, majority_share

TOLERANCE = 0.01
"""Violations up to this are not counted in a second share beside the strict one."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """Losses, constraints and how a result is judged.

    Parameters
    ----------
    name : str
        ``"pairwise"`` or ``"fairness"``.
    split : Split
    features : Features
    losses : dszog.Losses
        With gradients, for methods that need them; :meth:`problem` hides these.
    constraints : dszog.Constraints
        A white box, likewise.
    loosened : dszog.Constraints
        The same, each allowed to be off by `TOLERANCE`.
    """

    name: str
    split: Split
    features: Features
    losses: Any
    constraints: Any
    loosened: Any

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
        return accuracy(getattr(self.features, part), getattr(self.split, part).y, w)

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
        return majority_share(self.split.train, self.split.test)

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
