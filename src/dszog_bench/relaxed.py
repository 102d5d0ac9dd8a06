"""The relaxed pairwise problem, and its optimum from a white-box solver.

A linear score ``x @ w`` is fitted to labels -1 and +1 by the nonconvex objective ::

    f0(w) = mean over the training rows of 1 - exp(-(y - x @ w)**2)

under one constraint for each pair of a positive row ``x_a`` and a negative row
``x_b``: the negative row may outscore the positive one by the margin at most, ::

    x_b @ w - x_a @ w - margin <= 0

The 500 training rows make about 62,500 pairs.  A black-box method has to face all of
them.  The reference here does not: with one more variable ``s`` the same feasible set
is described by one constraint for each row (the *lifted* form), ::

    x_a @ w >= s            for the positive rows,
    x_b @ w <= s + margin   for the negative rows,

which SLSQP solves, with derivatives, from several starts.  The optima of some data
seeds are kept in this package, for `load_optimum` to read.
"""

from __future__ import annotations

import json
import platform
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy
from scipy.linalg import lstsq
from scipy.optimize import minimize, nnls

import dszog
from dszog._arrays import FloatArray, IntArray
from dszog.constraints import PairwiseConstraints
from dszog.errors import MissingExtraError
from dszog_bench.cases import Case

Array: TypeAlias = FloatArray

N_SAMPLES = 1000
N_FEATURES = 50
N_TRAIN = 500
MARGIN = 0.3
DEFAULT_CACHE = Path(__file__).parent / "reference" / "relaxed_pairwise.json"


class Data(NamedTuple):
    """Training and test rows with their labels, -1 or +1."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array


class Kkt(NamedTuple):
    """The first-order conditions at a point, with the best multipliers for it."""

    residual: float
    multiplier_sum: float
    n_active: int
    n_positive_multipliers: int


@dataclass(frozen=True)
class Optimum:
    """The optimum of one relaxed pairwise problem, with the evidence for it.

    Attributes
    ----------
    w : list of float
        The minimiser of least norm: directions in which no training row has a
        component change neither the objective nor a constraint, and are left out.
    value : float
        The objective there.
    norm : float
        The Euclidean norm of `w`.
    worst_violation : float
        The largest ``x_b @ w - x_a @ w - margin``; at most rounding error above 0.
    kkt_residual : float
        The norm of the gradient of the Lagrangian in the lifted form.
    multiplier_sum : float
        The sum of the multipliers of all pair constraints.
    n_active_rows : int
        The number of active constraints in the lifted form.
    n_positive_multipliers : int
        How many of these have a positive multiplier.
    n_starts, n_starts_at_best : int
        The number of starts, and of those that ended at `value` to within 1e-8.
    start_values : list of float
        Where each start ended, in increasing order.
    seconds : float
        The time of the constrained solves.
    unconstrained_value, unconstrained_worst_violation, unconstrained_norm : float
        The same measures for the best minimiser found without the constraints.
    """

    w: list[float]
    value: float
    norm: float
    worst_violation: float
    kkt_residual: float
    multiplier_sum: float
    n_active_rows: int
    n_positive_multipliers: int
    n_starts: int
    n_starts_at_best: int
    start_values: list[float]
    seconds: float
    unconstrained_value: float
    unconstrained_worst_violation: float
    unconstrained_norm: float


# The problem.


def relaxed_pairwise_data(seed: int) -> Data:
    """Draw the data of the relaxed pairwise problem.

    Parameters
    ----------
    seed : int
        The random state handed to `sklearn.datasets.make_classification`.

    Returns
    -------
    X_train, y_train, X_test, y_test : ndarray
        500 rows each, of 50 features.  The features are standardised by the mean and
        the standard deviation of the training rows and multiplied by
        ``2 / sqrt(50)``, so that a training row has a norm of about 2.
    """
    try:
        from sklearn.datasets import make_classification
    except ImportError as error:
        raise MissingExtraError.of(
            "The relaxed pairwise problem", "scikit-learn", "bench"
        ) from error
    X, y01 = make_classification(
        n_samples=N_SAMPLES,
        n_features=N_FEATURES,
        n_informative=15,
        n_redundant=15,
        n_clusters_per_class=1,
        class_sep=0.7,
        flip_y=0.1,
        random_state=seed,
    )
    X_train = X[:N_TRAIN]
    X = (X - X_train.mean(axis=0)) / X_train.std(axis=0) * (2 / np.sqrt(N_FEATURES))
    y = 2.0 * y01 - 1.0
    return Data(X[:N_TRAIN], y[:N_TRAIN], X[N_TRAIN:], y[N_TRAIN:])


def relaxed_pairwise_problem(data_seed: int) -> dszog.Problem:
    """Return the problem with objective and constraints as black boxes."""
    X, y, _, _ = relaxed_pairwise_data(data_seed)

    def values(points: FloatArray, indices: IntArray) -> Any:
        return 1.0 - np.exp(-np.square(y[indices] - points @ X[indices].T))

    pairs = all_pairs(X, y)
    return dszog.Problem(dszog.Losses(values, len(y)), pairs.black_box(), X.shape[1])


def all_pairs(X: Array, y: Array, margin: float = MARGIN) -> PairwiseConstraints:
    """Return the pair constraints as the library knows them."""
    return dszog.Constraints.pairwise(X[y > 0], X[y < 0], margin=-margin)


def objective(w: Array, X: Array, y: Array) -> float:
    """Return the mean of ``1 - exp(-(y - X @ w)**2)``."""
    return float(-np.expm1(-((y - X @ w) ** 2)).mean())


def objective_gradient(w: Array, X: Array, y: Array) -> Array:
    """Return the gradient of `objective` with respect to `w`."""
    residual = y - X @ w
    gradient: Array = X.T @ (-2 * residual * np.exp(-(residual**2))) / len(y)
    return gradient


def worst_pair_violation(w: Array, X: Array, y: Array, margin: float = MARGIN) -> float:
    """Return the largest pair constraint; the point is feasible if it is <= 0."""
    score = X @ w
    return float(score[y < 0].max() - score[y > 0].min() - margin)


def pull_to_feasible(w: Array, X: Array, y: Array, margin: float = MARGIN) -> Array:
    """Shrink `w` towards 0, which is strictly feasible, by as much as is needed."""
    gap = worst_pair_violation(w, X, y, margin=0.0)
    return w * (margin / gap) if gap > margin else w


# The lifted form: its variable is (w, s), its constraints matrix @ (w, s) <= bound.


def lifted_constraints(
    X: Array, y: Array, margin: float = MARGIN
) -> tuple[Array, Array]:
    """Return the matrix and the bound of the lifted form, one row for each data row.

    Positive rows read ``s - x @ w <= 0``, negative ones ``x @ w - s <= margin``.
    """
    matrix = -y[:, np.newaxis] * np.column_stack([X, -np.ones(len(y))])
    bound = np.where(y > 0, 0.0, margin)
    return matrix, bound


def lift(w: Array, X: Array, y: Array) -> Array:
    """Append to `w` the lowest score of a positive row, the best value of ``s``."""
    return np.append(w, (X @ w)[y > 0].min())


def kkt_conditions(
    w: Array, X: Array, y: Array, margin: float = MARGIN, active_tol: float = 1e-7
) -> Kkt:
    """Fit nonnegative multipliers of the active rows to the gradient at `w`.

    The component of the gradient along ``s`` makes the multipliers of the positive
    rows sum to the same as those of the negative rows.  This is the sum over all pairs
    in the pair form, too: any way to pair the rows up with these marginals gives
    multipliers of the pairs.
    """
    matrix, bound = lifted_constraints(X, y, margin)
    active = matrix @ lift(w, X, y) >= bound - active_tol
    gradient = np.append(objective_gradient(w, X, y), 0.0)
    multiplier, _ = nnls(matrix[active].T, -gradient)
    return Kkt(
        residual=float(np.linalg.norm(gradient + matrix[active].T @ multiplier)),
        multiplier_sum=float(multiplier.sum() / 2),
        n_active=int(active.sum()),
        n_positive_multipliers=int((multiplier > 1e-10).sum()),
    )


# The solves.


def row_space_basis(X: Array) -> Array:
    """Return an orthonormal basis of the span of the rows, as columns.

    The redundant features leave `X` short of full column rank; in the coordinates of
    this basis the problem is smaller, and its minimisers are those of least norm.
    """
    _, singular, basis = np.linalg.svd(X, full_matrices=False)
    transposed: Array = basis[singular > 1e-10 * singular[0]].T
    return transposed


def random_starts(X: Array, n_starts: int, rng: np.random.Generator) -> list[Array]:
    """Draw points of random direction whose scores have a root mean square of 0.1-3."""
    starts = []
    for scale in np.exp(rng.uniform(np.log(0.1), np.log(3.0), size=n_starts)):
        w = rng.standard_normal(X.shape[1])
        starts.append(w * (scale / np.sqrt(np.mean((X @ w) ** 2))))
    return starts


def unconstrained_optimum(
    X: Array, y: Array, n_starts: int = 20, seed: int = 0
) -> tuple[Array, float]:
    """Minimise the objective without the constraints, as the best of several starts.

    Parameters
    ----------
    X, y : ndarray
        The rows and their labels.
    n_starts : int, optional
        The number of starts: 0, the least-squares fit, and random ones.
    seed : int, optional
        The seed of the random starts.

    Returns
    -------
    w : ndarray
        The best minimiser found, of least norm.
    value : float
        The objective there.
    """
    basis = row_space_basis(X)
    coordinates = X @ basis
    rng = np.random.default_rng(seed)
    starts = [np.zeros(basis.shape[1]), lstsq(coordinates, y)[0]]
    starts += random_starts(coordinates, n_starts - len(starts), rng)
    results = [
        minimize(
            objective,
            start,
            args=(coordinates, y),
            jac=objective_gradient,
            method="BFGS",
            options={"gtol": 1e-9},
        )
        for start in starts[:n_starts]
    ]
    best = min(results, key=lambda result: float(result.fun))
    return basis @ best.x, float(best.fun)


def solve_lifted(start: Array, X: Array, y: Array, margin: float = MARGIN) -> Array:
    """Run SLSQP on the lifted form from one start; return a feasible point."""
    matrix, bound = lifted_constraints(X, y, margin)
    result = minimize(
        lambda lifted: objective(lifted[:-1], X, y),
        lift(start, X, y),
        jac=lambda lifted: np.append(objective_gradient(lifted[:-1], X, y), 0.0),
        constraints={
            "type": "ineq",
            "fun": lambda lifted: bound - matrix @ lifted,
            "jac": lambda lifted: -matrix,
        },
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return pull_to_feasible(result.x[:-1], X, y, margin)


def solve_from_starts(
    X: Array, y: Array, margin: float = MARGIN, n_starts: int = 20, seed: int = 0
) -> list[tuple[Array, float]]:
    """Solve from every start of `constrained_optimum`; return ``(w, value)``, sorted.

    Parameters: those of `constrained_optimum`.
    """
    basis = row_space_basis(X)
    coordinates = X @ basis
    unconstrained, _ = unconstrained_optimum(X, y, n_starts, seed)
    starts = [np.zeros(basis.shape[1]), basis.T @ unconstrained]
    starts += random_starts(
        coordinates, n_starts - len(starts), np.random.default_rng(seed)
    )
    ends = [
        basis @ solve_lifted(start, coordinates, y, margin)
        for start in starts[:n_starts]
    ]
    # Changing coordinates rounds: make the points feasible for X itself, too.
    ends = [pull_to_feasible(w, X, y, margin) for w in ends]
    return sorted(((w, objective(w, X, y)) for w in ends), key=lambda end: end[1])


def constrained_optimum(
    X: Array, y: Array, margin: float = MARGIN, n_starts: int = 20, seed: int = 0
) -> tuple[Array, float]:
    """Minimise the objective under all pair constraints, as the best of several starts.

    Parameters
    ----------
    X, y : ndarray
        The rows and their labels.
    margin : float, optional
        By how much a negative row may outscore a positive one.
    n_starts : int, optional
        The number of starts: 0, the unconstrained minimiser, and random ones.
    seed : int, optional
        The seed of the random starts.

    Returns
    -------
    w : ndarray
        The best minimiser found, of least norm.
    value : float
        The objective there.

    Notes
    -----
    The objective is nonconvex, and nearly concave on the feasible set (the scores are
    small there, and ``1 - exp(-r**2)`` is concave where ``abs(r) > sqrt(1/2)``).  The
    minimisers are therefore vertices, which SLSQP finds to rounding error, but there
    can be several of them, which differ by about 1e-4 in value.  That the best one is
    the global minimiser is supported by the number of starts that reach it, not proved.
    """
    return solve_from_starts(X, y, margin, n_starts, seed)[0]


# The evidence, and the file that keeps it.


def reference_optimum(data_seed: int, n_starts: int = 20) -> Optimum:
    """Compute the optimum for one data seed, and check it.

    Raises
    ------
    RuntimeError
        If the best point found is infeasible or not stationary.
    """
    data = relaxed_pairwise_data(data_seed)
    X, y = data.X_train, data.y_train
    begin = time.perf_counter()
    ends = solve_from_starts(X, y, n_starts=n_starts)
    seconds = time.perf_counter() - begin
    w, value = ends[0]
    violation = worst_pair_violation(w, X, y)
    kkt = kkt_conditions(w, X, y)
    if violation > 1e-8 or kkt.residual > 1e-8:
        raise RuntimeError(
            f"data seed {data_seed}: no optimum found "
            f"(violation {violation:.1e}, KKT residual {kkt.residual:.1e})"
        )
    unconstrained_w, unconstrained_value = unconstrained_optimum(X, y, n_starts)
    return Optimum(
        w=w.tolist(),
        value=value,
        norm=float(np.linalg.norm(w)),
        worst_violation=violation,
        kkt_residual=kkt.residual,
        multiplier_sum=kkt.multiplier_sum,
        n_active_rows=kkt.n_active,
        n_positive_multipliers=kkt.n_positive_multipliers,
        n_starts=n_starts,
        n_starts_at_best=sum(end_value <= value + 1e-8 for _, end_value in ends),
        start_values=[end_value for _, end_value in ends],
        seconds=round(seconds, 2),
        unconstrained_value=unconstrained_value,
        unconstrained_worst_violation=worst_pair_violation(unconstrained_w, X, y),
        unconstrained_norm=float(np.linalg.norm(unconstrained_w)),
    )


def save_optima(optima: dict[int, Optimum], cache: Path = DEFAULT_CACHE) -> None:
    """Write the optima, by data seed, and the versions they were computed with."""
    import sklearn

    content = {
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
        },
        "margin": MARGIN,
        "optima": {str(seed): asdict(optimum) for seed, optimum in optima.items()},
    }
    cache.parent.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps(content, indent=1) + "\n")


def load_optimum(data_seed: int, cache: Path = DEFAULT_CACHE) -> Optimum:
    """Read the optimum for one data seed from the file `save_optima` wrote."""
    content: dict[str, Any] = json.loads(cache.read_text())
    return Optimum(**content["optima"][str(data_seed)])


def relaxed_case(data_seed: int = 0) -> Case:
    """Return the problem with a target for all solvers.

    The objective within 2 % of the constrained optimum, and a worst violation of at
    most 0.03, a tenth of the margin.
    """
    data, optimum = relaxed_pairwise_data(data_seed), load_optimum(data_seed)
    X, y = data.X_train, data.y_train
    positives, negatives = X[y > 0], X[y < 0]

    def constraints(w: Array) -> Array:
        values: Array = np.subtract.outer(-(positives @ w), -(negatives @ w))
        return values.ravel() - MARGIN

    return Case(
        name=f"relaxed pairwise, data {data_seed}",
        problem=relaxed_pairwise_problem(data_seed),
        objective=lambda w: objective(w, X, y),
        constraints=constraints,
        worst=lambda w: worst_pair_violation(w, X, y),
        optimum=optimum.value,
        target_objective=1.02 * optimum.value,
        target_violation=0.03,
        exact_weight=2.0 * optimum.multiplier_sum,
    )
