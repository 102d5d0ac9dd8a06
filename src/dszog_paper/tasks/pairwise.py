"""Classification under the constraint that positives outscore negatives (section 7.1).

Every positive training row is to score at least as high as every negative one: a
constraint for each pair.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import dszog
from dszog._arrays import FloatArray, IntArray
from dszog_paper.data import Split
from dszog_paper.tasks.task import TOLERANCE, Model, Task, features


def pairwise_task(
    split: Split,
    *,
    model: Model = "linear",
    width_factor: float = 1.0,
    loss_scale: float = 1.0,
    margin: float = 0.0,
) -> Task:
    r"""Return the task with the loss :math:`c^2 (1 - \exp(-(y - x \cdot w)^2 / c^2))`.

    Parameters
    ----------
    split : Split
    model, width_factor
        See :func:`~dszog_paper.tasks.task.features`.
    loss_scale : float
        :math:`c`, which the paper does not state; 1 here.
    margin : float
        By how much positives are to outscore negatives; 0 in the paper.
    """
    known = features(split, model, width_factor)
    X, y, scale = known.train, split.train.y, loss_scale**2

    def values(points: FloatArray, indices: IntArray) -> Any:
        gaps = y[indices] - points @ X[indices].T
        return scale * (1.0 - np.exp(-np.square(gaps) / scale))

    def gradient(point: FloatArray, indices: IntArray) -> Any:
        gaps = y[indices] - X[indices] @ point
        slopes = -2.0 * gaps * np.exp(-np.square(gaps) / scale)
        return slopes[:, np.newaxis] * X[indices]

    return Task(
        name="pairwise",
        split=split,
        features=known,
        losses=dszog.Losses(values, len(y), gradient=gradient),
        constraints=dszog.Constraints.pairwise(X[y > 0], X[y < 0], margin),
        loosened=dszog.Constraints.pairwise(X[y > 0], X[y < 0], margin - TOLERANCE),
    )
