r"""Nobody gets worse: a model is updated under one constraint per existing customer.

A model was trained on customers; now it is to fit new data, and no customer's loss may
rise by more than a slack: ``loss_i(w) - loss_i(w_old) - 0.05 <= 0`` for each of `m`
customers. The model is linear logistic, or has one hidden layer of eight tanh units,
which makes every constraint nonconvex. The old model is a feasible start.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from dszog.contract.arrays import FloatArray, IntArray
from dszog_bench.cases import Case, Optimum, load_optimum

N_FEATURES, N_HIDDEN, N_NEW = 10, 8, 2000
SLACK = 0.05
TARGET_GAIN = 0.9  # of what the optimum gains over the old model
BLOCK = 2**15  # customers whose values are made at a time


def linear_scores(points: FloatArray, X: FloatArray) -> Any:
    """Score rows by a weight for each feature and a bias: a row per point."""
    return points[:, :-1] @ X.T + points[:, -1:]


def neural_scores(points: FloatArray, X: FloatArray) -> Any:
    """Score rows by one hidden layer: ``b + a @ tanh(U x + c)``."""
    ends = np.cumsum([N_HIDDEN * N_FEATURES, N_HIDDEN, N_HIDDEN])
    U, c, a, b = np.split(points, ends, axis=1)
    U = U.reshape(-1, N_HIDDEN, N_FEATURES)
    hidden = np.tanh(X @ U.transpose(0, 2, 1) + c[:, np.newaxis])
    return (hidden @ a[:, :, np.newaxis])[:, :, 0] + b


SCORES = {"linear": linear_scores, "neural": neural_scores}


class Customers(Case):
    """The problem of one model and number of customers.

    It is solved with nine tenths of what the optimum gains over the old model, and
    nobody worse off than the slack by more than a tenth of it.
    """

    n_losses = N_NEW
    target_violation = 0.1 * SLACK

    def __init__(self, model: str, m: int, known: Optimum) -> None:
        self.scores, self.n_constraints, self.known = SCORES[model], m, known
        self.start = np.array(known.old)
        rng = np.random.Generator(np.random.Philox(key=0))
        truth = rng.standard_normal(N_FEATURES)
        bend = rng.standard_normal((2, N_FEATURES))
        moved = truth + 0.7 * rng.standard_normal(N_FEATURES)
        self.X_new, self.y_new = _drawn(rng, N_NEW, moved, bend)
        self.X, self.y = _drawn(rng, m, truth, bend)
        self.allowed = self._row_losses(self.start[np.newaxis], slice(None))[0] + SLACK
        before = self.objective(self.start)
        self.target_objective = before - TARGET_GAIN * (before - known.value)

    def _row_losses(self, points: FloatArray, rows: Any) -> Any:
        X, y = self.X[rows], self.y[rows]

        def block(part: slice) -> Any:
            return np.logaddexp(0.0, -y[part] * self.scores(points, X[part]))

        if len(X) <= BLOCK:
            return block(slice(None))
        starts = range(0, len(X), BLOCK)
        return np.hstack([block(slice(i, i + BLOCK)) for i in starts])

    def losses(self, points: FloatArray, indices: IntArray) -> Any:
        scores = self.scores(points, self.X_new[indices])
        return np.logaddexp(0.0, -self.y_new[indices] * scores)

    def constraints(self, points: FloatArray, indices: IntArray) -> Any:
        return self._row_losses(points, indices) - self.allowed[indices]

    def all_constraints(self, w: FloatArray) -> Any:
        values = self._row_losses(w[np.newaxis], slice(None))[0]
        return values - self.allowed


def _drawn(
    rng: np.random.Generator, n: int, truth: FloatArray, bend: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Draw rows in a cube, with labels of a logistic model that is not linear."""
    X = rng.uniform(-1.0, 1.0, size=(n, N_FEATURES))
    scores = 1.5 * (X @ truth + np.tanh(X @ bend[0]) * (X @ bend[1]))
    return X, np.where(rng.random(n) < expit(scores), 1.0, -1.0)


CUSTOMERS: dict[str, tuple[str, int]] = {
    "customers-linear-1e4": ("linear", 10**4),
    "customers-linear-1e5": ("linear", 10**5),
    "customers-linear-1e6": ("linear", 10**6),
    "customers-neural-1e4": ("neural", 10**4),
}
"""The problems whose optimum is kept."""


def customers_case(name: str) -> Customers:
    return Customers(*CUSTOMERS[name], load_optimum(name))
