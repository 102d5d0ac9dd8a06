"""The relaxed pairwise problem: 62,500 pairs, and a known optimum.

A linear score ``x @ w`` is fitted to labels -1 and +1 by the nonconvex objective ::

    f0(w) = mean over the training rows of 1 - exp(-(y - x @ w)**2)

under one constraint for each pair of a positive row ``x_a`` and a negative row
``x_b``: the negative row may outscore the positive one by the margin at most, ::

    x_b @ w - x_a @ w - margin <= 0

The objective is nearly concave on the feasible set, so that minimisers are vertices.
There are several, which differ by about 1e-4 in value: that the best one is the global
minimiser is supported by the number of starts that reach it, not proved.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

import dszog
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import MissingExtraError
from dszog_bench.cases import Case, load_optimum

N_SAMPLES, N_TRAIN, N_FEATURES = 1000, 500, 50
MARGIN = 0.3


def relaxed_rows(seed: int) -> tuple[FloatArray, FloatArray]:
    """Return 500 rows of norm about 2, and their labels."""
    try:
        from sklearn.datasets import make_classification
    except ImportError as error:
        raise MissingExtraError.of(
            "The relaxed pairwise problem", "scikit-learn", "bench"
        ) from error
    X, y = make_classification(
        n_samples=N_SAMPLES,
        n_features=N_FEATURES,
        n_informative=15,
        n_redundant=15,
        n_clusters_per_class=1,
        class_sep=0.7,
        flip_y=0.1,
        random_state=seed,
    )
    X = X[:N_TRAIN]
    X = (X - X.mean(axis=0)) / X.std(axis=0) * (2 / np.sqrt(N_FEATURES))
    return X, 2.0 * y[:N_TRAIN] - 1.0


class Pairs(Case):
    """The problem on some rows, whose labels are -1 and +1."""

    target_violation = 0.1 * MARGIN

    def __init__(self, X: FloatArray, y: FloatArray) -> None:
        self.X, self.y = X, y
        self.positives, self.negatives = X[y > 0], X[y < 0]
        self.pairs = dszog.Constraints.pairwise(
            self.positives, self.negatives, margin=-MARGIN
        )
        self.n_losses, self.n_constraints = len(y), len(self.pairs)
        self.start = np.zeros(X.shape[1])

    def losses(self, points: FloatArray, indices: IntArray) -> Any:
        gaps = self.y[indices] - points @ self.X[indices].T
        return 1.0 - np.exp(-np.square(gaps))

    def gradients(self, w: FloatArray, indices: IntArray) -> Any:
        gaps = self.y[indices] - self.X[indices] @ w
        slopes: FloatArray = -2.0 * gaps * np.exp(-np.square(gaps))
        return slopes[:, np.newaxis] * self.X[indices]

    def known_as(self, *, black_box: bool, gradient: bool) -> dszog.Problem:
        losses = dszog.Losses(
            self.losses, self.n_losses, gradient=self.gradients if gradient else None
        )
        pairs = self.pairs.black_box() if black_box else self.pairs
        return dszog.Problem(losses, pairs, len(self.start))

    @cached_property
    def problem(self) -> dszog.Problem:
        """The problem as a black box; the pairs still tell their exact summary."""
        return self.known_as(black_box=True, gradient=False)

    def objective(self, w: FloatArray) -> float:
        return float(-np.expm1(-np.square(self.y - self.X @ w)).mean())

    def constraints(self, points: FloatArray, indices: IntArray) -> Any:
        return self.pairs.values(points, indices)

    def all_constraints(self, w: FloatArray) -> Any:
        scores = np.subtract.outer(-(self.positives @ w), -(self.negatives @ w))
        return scores.ravel() - MARGIN

    def worst(self, w: FloatArray) -> float:
        lowest = (self.positives @ w).min()
        return float((self.negatives @ w).max() - lowest - MARGIN)


class RelaxedPairs(Pairs):
    """The problem of one data seed, solved within 2 % of the optimum."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__(*relaxed_rows(seed))
        self.known = load_optimum(f"relaxed-{seed}")
        self.target_objective = 1.02 * self.known.value
