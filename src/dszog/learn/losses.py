"""Losses of a score `s` and a label `y`, by name. A label is -1 or +1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from scipy.special import expit

from dszog.contract.arrays import FloatArray

Loss: TypeAlias = Callable[[FloatArray, FloatArray], Any]

STEEP = 5.0  # of the smoothed zero-one loss: half of its step lies within 0.44

LOSSES: dict[str, Loss] = {
    "logistic": lambda s, y: np.logaddexp(0.0, -y * s),  # log(1 + exp(-y s))
    "hinge": lambda s, y: np.maximum(1.0 - y * s, 0.0),
    "squared": lambda s, y: np.square(y - s),
    "sigmoid": lambda s, y: expit(-y * s),  # which outliers cannot dominate
    "ramp": lambda s, y: np.clip(0.5 * (1.0 - y * s), 0.0, 1.0),
    "zero_one": lambda s, y: expit(-STEEP * y * s),  # a mistake counts 1, nearly
    "welsch": lambda s, y: -np.expm1(-np.square(y - s)),  # of the paper's pairwise task
}
"""The losses that an estimator knows by name."""
