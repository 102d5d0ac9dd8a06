"""Linear models, and models that are linear in kernels with the training rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.spatial.distance import cdist, pdist

from dszog._arrays import FloatArray, frozen_floats
from dszog_paper.data import Samples
from dszog_paper.data.splits import Split

Model: TypeAlias = Literal["linear", "rbf"]

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


def accuracy(rows: FloatArray, y: FloatArray, w: FloatArray) -> float:
    """Return the share of rows that the weights put into their class."""
    return float((predict(rows @ w) == y).mean())


def majority_share(train: Samples, test: Samples) -> float:
    """Return what always predicting the more frequent training class scores."""
    frequent = 1.0 if train.positive_share >= 0.5 else -1.0
    return float((test.y == frequent).mean())
