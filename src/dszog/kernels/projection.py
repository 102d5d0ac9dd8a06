r"""Euclidean projection onto the probability simplex, safe at every scale."""

from __future__ import annotations

import numpy as np

from dszog.contract.arrays import FloatArray
from dszog.errors import InputError


def project_onto_simplex(values: FloatArray) -> FloatArray:
    r"""Return the point of :math:`\{p \ge 0, \sum_j p_j = 1\}` nearest to `values`.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Finite numbers of any scale.

    Returns
    -------
    ndarray of shape (m,)

    Notes
    -----
    The projection is :math:`\max(v - \theta, 0)` with the :math:`\theta` that makes the
    sum one. It does not change when all values are shifted, so the largest is moved to
    0 first: the textbook form loses every digit of :math:`\theta` when the values are
    large. An entry more than 1 below the largest is always projected to 0. The running
    sum finds which entries stay positive; what it has lost in rounding over many
    entries, two Newton steps restore.

    Examples
    --------
    >>> project_onto_simplex(np.array([0.5, 0.5, 2.0]))
    array([0., 0., 1.])
    >>> project_onto_simplex(np.array([1e300, 1e300]))
    array([0.5, 0.5])
    """
    values = _finite(values)
    largest = float(values.max())
    # Halved before the subtraction, so that no difference of floats overflows.
    shifted = np.maximum(values / 2 - largest / 2, -1.0) * 2
    ordered = np.sort(shifted[shifted > -1.0])[::-1]
    thresholds = (np.cumsum(ordered) - 1.0) / np.arange(1, len(ordered) + 1)
    threshold = float(thresholds[np.count_nonzero(ordered > thresholds) - 1])
    # A small threshold has more digits: go back to the values as given if theirs is.
    if abs(threshold + largest) < abs(threshold):
        shifted, threshold = values, threshold + largest
    for _ in range(2):
        weights = np.maximum(shifted - threshold, 0.0)
        threshold += float(weights.sum() - 1.0) / np.count_nonzero(weights)
    return np.maximum(shifted - threshold, 0.0)


def _finite(values: FloatArray) -> FloatArray:
    values = np.asarray(values, dtype=np.float64)
    if not values.size or not np.isfinite(values).all():
        raise InputError(
            "project_onto_simplex: the values must be at least one finite number, "
            f"got {values!r}. Remove or replace what is not finite."
        )
    return values


def project_with_background(
    values: FloatArray, background: float, n_background: int
) -> tuple[FloatArray, float]:
    r"""Project `values` and `n_background` further entries that all equal `background`.

    The same projection as :func:`project_onto_simplex` of the long vector, at a cost
    that does not depend on `n_background`. The background stays positive exactly if the
    values above it exceed it by less than 1 in sum. Then everything is measured from
    the background, so that a weight of :math:`10^{-12}` shared by :math:`10^{12}`
    entries keeps its digits; otherwise the `k` values are projected by themselves.
    """
    if n_background:
        _finite(np.append(values, background))
    excess = np.asarray(values, dtype=np.float64) - background
    above = float(np.maximum(excess, 0.0).sum())
    if n_background == 0 or above >= 1.0:
        return project_onto_simplex(values), 0.0
    # What is above the background stays positive; what is below joins while it does.
    below = np.sort(excess[excess < 0.0])[::-1]
    n_above = len(excess) - len(below)
    masses = 1.0 - above - np.concatenate([[0.0], np.cumsum(below)])
    lifts = masses / (n_background + n_above + np.arange(len(below) + 1))
    lift = lifts[np.count_nonzero(below + lifts[1:] > 0.0)]
    return np.maximum(excess + lift, 0.0), float(lift)
