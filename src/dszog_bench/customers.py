r"""Nobody gets worse: a model is updated under one constraint per existing customer.

A model was trained on customers; now it is to fit new data, and no customer's loss may
rise by more than a slack: ``loss_i(w) - loss_i(w_old) - 0.05 <= 0`` for each of `m`
customers. The model is linear logistic, or has one hidden layer of eight tanh units,
which makes every constraint nonconvex. The old model is a feasible start.

The reference is a white-box one: SLSQP with exact gradients in a box around a feasible
point, on a growing set of customers, those that are worst off at its answer joining.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import expit

import dszog
from dszog._arrays import FloatArray, IntArray
from dszog._validation import check_choice
from dszog.errors import InputError
from dszog_bench.cases import Case

ModelName: TypeAlias = Literal["linear", "neural"]

N_FEATURES, N_HIDDEN, N_NEW = 10, 8, 2000
SLACK = 0.05
TARGET_GAIN = 0.9  # of what the optimum gains over the old model
TARGET_VIOLATION = 0.005  # a tenth of the slack
LARGEST_RESIDUAL = 1e-5  # of the first-order conditions at a reference
BLOCK = 2**15  # customers whose values are made at a time
REFERENCE = Path(__file__).parent / "reference"


class Model(Protocol):
    """Scores of rows, at several points, and their gradients at one."""

    dim: int

    def scores(self, points: FloatArray, X: FloatArray) -> FloatArray:
        """Return a row per point, a column per row of `X`."""
        ...

    def gradients(self, point: FloatArray, X: FloatArray) -> FloatArray:
        """Return the gradient of each row's score, of shape (len(X), dim)."""
        ...


class LinearModel:
    """A weight for each feature, and a bias."""

    dim = N_FEATURES + 1

    def scores(self, points: FloatArray, X: FloatArray) -> FloatArray:
        """Return a row per point, a column per row of `X`."""
        scores: FloatArray = points[:, :-1] @ X.T + points[:, -1:]
        return scores

    def gradients(self, point: FloatArray, X: FloatArray) -> FloatArray:
        """Return the gradient of each row's score."""
        return np.hstack([X, np.ones((len(X), 1))])


class NeuralModel:
    """One hidden layer of eight tanh units: ``b + a @ tanh(U x + c)``."""

    dim = N_HIDDEN * (N_FEATURES + 2) + 1

    def scores(self, points: FloatArray, X: FloatArray) -> FloatArray:
        """Return a row per point, a column per row of `X`."""
        U, c, a, b = self._parts(points)
        hidden = np.tanh(X @ U.transpose(0, 2, 1) + c[:, np.newaxis])
        scores: FloatArray = (hidden @ a[:, :, np.newaxis])[:, :, 0] + b
        return scores

    def gradients(self, point: FloatArray, X: FloatArray) -> FloatArray:
        """Return the gradient of each row's score."""
        U, c, a, _ = (part[0] for part in self._parts(point[np.newaxis]))
        hidden = np.tanh(X @ U.T + c)
        inner = a * (1.0 - hidden**2)  # (n, hidden)
        weights = (inner[:, :, np.newaxis] * X[:, np.newaxis]).reshape(len(X), -1)
        return np.hstack([weights, inner, hidden, np.ones((len(X), 1))])

    def _parts(self, points: FloatArray) -> tuple[FloatArray, ...]:
        ends = np.cumsum([N_HIDDEN * N_FEATURES, N_HIDDEN, N_HIDDEN])
        U, c, a, b = np.split(points, ends, axis=1)
        return U.reshape(-1, N_HIDDEN, N_FEATURES), c, a, b


MODELS: dict[str, Callable[[], Model]] = {"linear": LinearModel, "neural": NeuralModel}


@dataclass(frozen=True, kw_only=True)
class Reference:
    """The best point that the white-box solver found, with the evidence for it."""

    model: str
    m: int
    seed: int
    old: list[float]  # the old model: its training ends elsewhere with another BLAS
    w: list[float]
    value: float
    value_at_start: float
    worst_violation: float
    kkt_residual: float
    multiplier_sum: float
    n_active: int
    n_generated: int  # customers that ever were in the working set
    start_values: list[float]  # where each start ended
    unconstrained_value: float
    unconstrained_violation: float
    seconds: float


class Customers:
    """The data of one such problem, and everything exact that can be said of it.

    Examples
    --------
    >>> customers = Customers("linear", 1000)
    >>> round(customers.worst(customers.old), 12)
    -0.05
    """

    def __init__(
        self, model: ModelName, m: int, seed: int = 0, old: FloatArray | None = None
    ) -> None:
        check_choice("Customers", "model", model, MODELS)
        self.name, self.m, self.seed = model, m, seed
        self.model = MODELS[model]()
        rng = np.random.Generator(np.random.Philox(key=seed))
        truth = rng.standard_normal(N_FEATURES)
        bend = rng.standard_normal((2, N_FEATURES))
        moved = truth + 0.7 * rng.standard_normal(N_FEATURES)
        self.X_new, self.y_new = self._draw(rng, N_NEW, moved, bend)
        self.X, self.y = self._draw(rng, m, truth, bend)
        first = rng.standard_normal(self.model.dim) / np.sqrt(N_FEATURES)
        if model == "linear":
            first = np.zeros(self.model.dim)
        n_fit = min(m, 5000)
        if old is None:
            old = self._fit(first, self.X[:n_fit], self.y[:n_fit])
        self.old = old
        self.allowed: FloatArray = (
            self._row_losses(self.old[np.newaxis], slice(None))[0] + SLACK
        )

    @staticmethod
    def _draw(
        rng: np.random.Generator, n: int, truth: FloatArray, bend: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Draw rows in a cube, with labels of a logistic model that is not linear."""
        X = rng.uniform(-1.0, 1.0, size=(n, N_FEATURES))
        scores = 1.5 * (X @ truth + np.tanh(X @ bend[0]) * (X @ bend[1]))
        return X, np.where(rng.random(n) < expit(scores), 1.0, -1.0)

    def _fit(self, first: FloatArray, X: FloatArray, y: FloatArray) -> FloatArray:
        def both(w: FloatArray) -> tuple[float, FloatArray]:
            gaps = -y * self.model.scores(w[np.newaxis], X)[0]
            slopes = -y * expit(gaps) / len(y)
            value = np.logaddexp(0.0, gaps).mean() + 5e-4 * w @ w
            return value, slopes @ self.model.gradients(w, X) + 1e-3 * w

        found: FloatArray = minimize(both, first, jac=True, method="L-BFGS-B").x
        return found

    def _row_losses(self, points: FloatArray, rows: Any) -> FloatArray:
        X, y = self.X[rows], self.y[rows]
        if len(X) <= BLOCK:
            values: FloatArray = np.logaddexp(0.0, -y * self.model.scores(points, X))
            return values
        return np.hstack(
            [
                np.logaddexp(
                    0.0,
                    -y[i : i + BLOCK] * self.model.scores(points, X[i : i + BLOCK]),
                )
                for i in range(0, len(X), BLOCK)
            ]
        )

    # ------------------------------------------------------------------ the black box

    def losses(self, points: FloatArray, indices: IntArray) -> FloatArray:
        """Return losses of new rows."""
        scores = self.model.scores(points, self.X_new[indices])
        values: FloatArray = np.logaddexp(0.0, -self.y_new[indices] * scores)
        return values

    def constraints(self, points: FloatArray, indices: IntArray) -> FloatArray:
        """Return by how much customers are worse off than they may be."""
        values: FloatArray = self._row_losses(points, indices)
        return values - self.allowed[indices]

    def problem(self) -> dszog.Problem:
        """Return the problem as a black box, starting at the old model."""
        return dszog.Problem(
            dszog.Losses(self.losses, N_NEW),
            dszog.Constraints(self.constraints, self.m),
            self.model.dim,
            x0=self.old,
        )

    # ---------------------------------------------------------------------- the truth

    def objective(self, w: FloatArray) -> float:
        """Return the mean loss over all new rows."""
        return float(self.losses(w[np.newaxis], np.arange(N_NEW)).mean())

    def all_constraints(self, w: FloatArray) -> FloatArray:
        """Return the values of all customers."""
        values: FloatArray = self._row_losses(w[np.newaxis], slice(None))[0]
        return values - self.allowed

    def worst(self, w: FloatArray) -> float:
        """Return the value of the customer who is worst off."""
        return float(self.all_constraints(w).max())

    def _gradient(self, w: FloatArray) -> FloatArray:
        scores = self.model.scores(w[np.newaxis], self.X_new)[0]
        slopes = -self.y_new * expit(-self.y_new * scores) / N_NEW
        gradient: FloatArray = slopes @ self.model.gradients(w, self.X_new)
        return gradient

    def _jacobian(self, w: FloatArray, rows: IntArray) -> FloatArray:
        X, y = self.X[rows], self.y[rows]
        slopes = -y * expit(-y * self.model.scores(w[np.newaxis], X)[0])
        jacobian: FloatArray = slopes[:, np.newaxis] * self.model.gradients(w, X)
        return jacobian

    # ------------------------------------------------------------------- the reference

    def solve(
        self, start: FloatArray, radius: float = 0.5, n_rounds: int = 200
    ) -> tuple[FloatArray, int]:
        """Return a feasible local minimum, and how many customers it took.

        Each round moves from a feasible point within a box around it. Where the answer
        violates customers that were not looked at, they join and the round is repeated;
        where it is no better, the box shrinks.
        """
        x, rows = self._pulled_back(start), np.empty(0, np.int64)
        value = self.objective(x)
        for _ in range(n_rounds):
            moved, rows = self._within_box(x, radius, rows)
            moved = self._between(x, moved)
            gained = value - self.objective(moved)
            if gained > 0:
                x, value = moved, value - gained
            if gained > 1e-6 * abs(value):
                radius = min(2.0 * radius, 1.0)
            elif radius < 1e-5:
                break
            else:
                radius /= 4.0
        return x, len(rows)

    def _within_box(
        self, x: FloatArray, radius: float, rows: IntArray, n_added: int = 30
    ) -> tuple[FloatArray, IntArray]:
        """Minimise near a point under some customers, and more as they complain."""
        moved = x
        for _ in range(20):
            values = self.all_constraints(moved)
            worst = np.argsort(-values)[:n_added]
            if len(rows):
                worst = worst[values[worst] > 1e-9]
            new = np.setdiff1d(worst, rows)
            if not len(new):
                break
            rows = np.concatenate([rows, new])
            moved = self._under(rows, x, radius)
        else:
            return moved, rows
        return self._under(rows, x, radius) if moved is x else moved, rows

    def _under(self, rows: IntArray, x: FloatArray, radius: float) -> FloatArray:
        found: FloatArray = minimize(
            self.objective,
            x,
            jac=self._gradient,
            method="SLSQP",
            bounds=list(zip(x - radius, x + radius, strict=True)),
            constraints={
                "type": "ineq",
                "fun": lambda w: -self.constraints(w[np.newaxis], rows)[0],
                "jac": lambda w: -self._jacobian(w, rows),
            },
            options={"ftol": 1e-12, "maxiter": 200},
        ).x
        return found

    def _between(self, x: FloatArray, moved: FloatArray) -> FloatArray:
        """Return the farthest tried point on the way that leaves everyone content."""
        if not np.isfinite(moved).all():
            return x
        back = 0.0
        while back < 1.0:
            point: FloatArray = moved + back * (x - moved)
            if self.worst(point) <= 0:
                return point
            back = max(2.0 * back, 1e-9)
        return x

    def _pulled_back(self, x: FloatArray) -> FloatArray:
        """Return the point, moved towards the old model until everyone is content."""
        return self._between(self.old, x)

    def reference(self, n_starts: int = 5) -> Reference:
        """Return the best of several starts, with its KKT residual.

        Raises
        ------
        RuntimeError
            If the best point found is infeasible or not stationary.
        """
        began = time.perf_counter()
        rng = np.random.Generator(np.random.Philox(key=self.seed + 1))
        free = minimize(self.objective, self.old, jac=self._gradient, method="BFGS").x
        starts = [self.old, free]
        while len(starts) < n_starts:
            starts.append(self.old + 0.3 * rng.standard_normal(self.model.dim))
        ends = [self.solve(start) for start in starts[:n_starts]]
        values = [self.objective(x) for x, _ in ends]
        best = int(np.argmin(values))
        w = ends[best][0]
        residual, multipliers = self._kkt(w)
        if self.worst(w) > 0.0 or residual > LARGEST_RESIDUAL:
            raise RuntimeError(
                f"customers, {self.name}, m = {self.m:,}: no optimum found (violation "
                f"{self.worst(w):.1e}, KKT residual {residual:.1e})"
            )
        return Reference(
            model=self.name,
            m=self.m,
            seed=self.seed,
            old=self.old.tolist(),
            w=w.tolist(),
            value=values[best],
            value_at_start=self.objective(self.old),
            worst_violation=self.worst(w),
            kkt_residual=residual,
            multiplier_sum=float(multipliers.sum()),
            n_active=int((multipliers > 1e-10).sum()),
            n_generated=ends[best][1],
            start_values=sorted(values),
            unconstrained_value=self.objective(free),
            unconstrained_violation=self.worst(free),
            seconds=round(time.perf_counter() - began, 1),
        )

    def _kkt(self, w: FloatArray, tolerance: float = 1e-6) -> tuple[float, FloatArray]:
        """Return the residual of the first-order conditions, and the multipliers."""
        active = np.flatnonzero(self.all_constraints(w) > -tolerance)
        gradient = self._gradient(w)
        if not len(active):
            return float(np.linalg.norm(gradient)), np.zeros(1)
        jacobian = self._jacobian(w, active)
        multipliers, residual = nnls(jacobian.T, -gradient)
        return float(residual), multipliers


def reference_path(model: str, m: int, seed: int = 0) -> Path:
    """Return where the reference of a problem is kept."""
    return REFERENCE / f"customers_{model}_{m}_{seed}.json"


def save_reference(found: Reference) -> Path:
    """Keep a reference beside the code."""
    path = reference_path(found.model, found.m, found.seed)
    path.write_text(json.dumps(asdict(found), indent=1) + "\n", encoding="utf-8")
    return path


def load_reference(model: str, m: int, seed: int = 0) -> Reference:
    """Read a reference."""
    path = reference_path(model, m, seed)
    if not path.exists():
        raise InputError(
            f"customers: there is no reference for model {model!r}, m = {m:,}, seed "
            f"{seed}. Make it: python benchmarks/customers.py --model {model} --m {m}."
        )
    return Reference(**json.loads(path.read_text(encoding="utf-8")))


def customers_case(model: ModelName, m: int, seed: int = 0) -> Case:
    """Return the problem with a target for all solvers.

    At least nine tenths of what the reference gains over the old model, and nobody
    worse off than the slack by more than a tenth of it.
    """
    return case_of(model, m, seed, load_reference(model, m, seed))


def case_of(model: ModelName, m: int, seed: int, reference: Reference) -> Case:
    """Return the same for a reference that is known."""
    customers = Customers(model, m, seed, np.array(reference.old))
    gain = reference.value_at_start - reference.value
    return Case(
        name=f"customers, {model}, m = {m:,}",
        problem=customers.problem(),
        objective=customers.objective,
        constraints=customers.all_constraints,
        worst=customers.worst,
        optimum=reference.value,
        target_objective=reference.value_at_start - TARGET_GAIN * gain,
        target_violation=TARGET_VIOLATION,
        exact_weight=2.0 * reference.multiplier_sum,
    )
