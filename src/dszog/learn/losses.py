"""Losses of a score and a label, by name. A label is -1 or +1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from dszog.contract.arrays import FloatArray

Loss: TypeAlias = Callable[[FloatArray, FloatArray], Any]

STEEP = 5.0  # of the smoothed zero-one loss: half of its step lies within 0.44


def logistic(scores: FloatArray, labels: FloatArray) -> FloatArray:
    r"""Return :math:`\log(1 + e^{-y s})`."""
    losses: FloatArray = np.logaddexp(0.0, -labels * scores)
    return losses


def hinge(scores: FloatArray, labels: FloatArray) -> FloatArray:
    r"""Return :math:`\max(1 - y s, 0)`."""
    losses: FloatArray = np.maximum(1.0 - labels * scores, 0.0)
    return losses


def squared(scores: FloatArray, labels: FloatArray) -> FloatArray:
    r"""Return :math:`(y - s)^2`."""
    losses: FloatArray = np.square(labels - scores)
    return losses


def sigmoid(scores: FloatArray, labels: FloatArray) -> FloatArray:
    r"""Return :math:`1 / (1 + e^{y s})`, which outliers cannot dominate."""
    losses: FloatArray = expit(-labels * scores)
    return losses


def ramp(scores: FloatArray, labels: FloatArray) -> FloatArray:
    r"""Return half of the hinge loss, at most 1."""
    losses: FloatArray = np.clip(0.5 * (1.0 - labels * scores), 0.0, 1.0)
    return losses


def zero_one(scores: FloatArray, labels: FloatArray) -> FloatArray:
    r"""Return :math:`1 / (1 + e^{5 y s})`: a mistake counts 1, nearly, however bad."""
    losses: FloatArray = expit(-STEEP * labels * scores)
    return losses


def welsch(scores: FloatArray, labels: FloatArray) -> FloatArray:
    r"""Return :math:`1 - e^{-(y - s)^2}`, the loss of the paper's pairwise task."""
    losses: FloatArray = -np.expm1(-np.square(labels - scores))
    return losses


LOSSES: dict[str, Loss] = {
    "logistic": logistic,
    "hinge": hinge,
    "squared": squared,
    "sigmoid": sigmoid,
    "ramp": ramp,
    "zero_one": zero_one,
    "welsch": welsch,
}
"""The losses that an estimator knows by name."""
