"""Would other settings be better defaults? Many problems at equal total budgets.

``max_queries`` counts losses and constraints alike, so a larger batch of losses means
fewer steps. Each problem has a reference optimum from a white-box solver. A run is
judged in two ways:

* the queries until an iterate (every twentieth is looked at) meets the target;
* the merit of the answer once the budget is spent: ``f + weight * violation - f*``, a
  penalty whose minimum is that of the problem, over what the optimum gains on the
  start. 0 is the optimum, 1 is where the run began.

The first set of problems is for trying things out. The second was looked at only
after a choice, which was three times: for more losses, for fewer, and for weights that
learn from both draws.

    python benchmarks/batches.py [--set tried] [--budgets 1000000] [--seeds 3]
        [--settings 64/32/256 "64/32/256 averaging=0.9"]

A setting is the three batch sizes, and then other options of the method; everything is
held against what was the default when the batch sizes were compared.

Rows are kept in ``results/batches.json`` as they finish; call again to go on.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls
from scipy.special import expit

import dszog
from dszog_bench import relaxed
from dszog_bench.cases import Case
from dszog_bench.customers import Customers, case_of, customers_case
from dszog_bench.records import markdown, versions, write_json

RESULTS = Path(__file__).parent / "results" / "batches.json"
DEFAULTS = "64/32/256"  # losses, weighted constraints, uniform constraints
BEFORE = f"{DEFAULTS} dual_estimate=plain averaging=0.5"
NOT_REACHED = 4.0  # the factor between a target that was reached and one that was not
MARGIN = 0.3


# ------------------------------------------------------------------------ the problems


def pairs(X: Any, y: Any) -> Case:
    """Return the relaxed pairwise problem on other rows."""
    w, value = relaxed.solve_from_starts(X, y, MARGIN, n_starts=4)[0]

    def losses(points: Any, i: Any) -> Any:
        return 1.0 - np.exp(-np.square(y[i] - points @ X[i].T))

    constraints = relaxed.all_pairs(X, y, MARGIN).black_box()
    return Case(
        name="pairs",
        problem=dszog.Problem(dszog.Losses(losses, len(y)), constraints, X.shape[1]),
        objective=lambda w: relaxed.objective(w, X, y),
        constraints=lambda w: np.subtract.outer(X[y < 0] @ w, X[y > 0] @ w) - MARGIN,
        worst=lambda w: relaxed.worst_pair_violation(w, X, y, MARGIN),
        optimum=value,
        target_objective=1.02 * value,
        target_violation=0.1 * MARGIN,
        exact_weight=2.0 * relaxed.kkt_conditions(w, X, y, MARGIN).multiplier_sum,
    )


def classified_pairs(dim: int, n: int, seed: int) -> Case:
    """Pairs of rows that are like those of the relaxed pairwise problem."""
    from sklearn.datasets import make_classification

    X, y = make_classification(
        n_samples=n,
        n_features=dim,
        n_informative=max(3, int(0.3 * dim)),
        n_redundant=int(0.3 * dim),
        n_clusters_per_class=1,
        class_sep=0.7,
        flip_y=0.1,
        random_state=seed,
    )
    X = (X - X.mean(axis=0)) / X.std(axis=0) * (2 / np.sqrt(dim))
    return pairs(X, 2.0 * y - 1.0)


def normal_pairs(seed: int, dim: int = 20, n: int = 200) -> Case:
    """Pairs of normal rows with labels that are nearly linear."""
    rng = np.random.Generator(np.random.Philox(key=100 + seed))
    X = rng.normal(size=(n, dim)) / np.sqrt(dim)
    truth = 3.0 * rng.normal(size=dim)
    return pairs(X, np.where(X @ truth + 0.5 * rng.normal(size=n) > 0.0, 1.0, -1.0))


def other_customers(seed: int, m: int = 10**4) -> Case:
    """Linear customers whose reference is not kept in the package."""
    found = Customers("linear", m, seed).reference(n_starts=3)
    return case_of("linear", m, seed, found)


def optimum_under_rows(f: Any, slope: Any, A: Any, b: Any) -> tuple[float, float]:
    """Return the least ``f`` where ``A x <= b``, and the sum of the multipliers.

    SLSQP on a growing set of rows, those joining that its answer violates most.
    """
    x, rows = np.zeros(A.shape[1]), np.empty(0, np.int64)
    while True:
        excess = A @ x - b
        new = np.setdiff1d(np.argsort(-excess)[:30], rows)
        new = new[excess[new] > 1e-9] if len(rows) else new
        if not len(new):
            break
        rows = np.concatenate([rows, new])
        known = {
            "type": "ineq",
            "fun": lambda x, j=rows: b[j] - A[j] @ x,
            "jac": lambda x, j=rows: -A[j],
        }
        options = {"ftol": 1e-13, "maxiter": 500}
        x = minimize(
            f, x, jac=slope, method="SLSQP", constraints=known, options=options
        ).x
    active = A @ x - b > -1e-6
    multipliers, residual = nnls(A[active].T, -slope(x))
    if residual > 1e-4:
        raise RuntimeError(f"no optimum found: KKT residual {residual:.1e}")
    return f(x), float(multipliers.sum())


def under_rows(losses: Any, n: int, f: Any, slope: Any, A: Any, b: Any) -> Case:
    """Return a convex problem with linear constraints, starting at 0."""
    value, multiplier_sum = optimum_under_rows(f, slope, A, b)
    start = np.zeros(A.shape[1])
    constraints = dszog.Constraints(lambda points, j: points @ A[j].T - b[j], len(A))
    return Case(
        name="rows",
        problem=dszog.Problem(dszog.Losses(losses, n), constraints, len(start)),
        objective=f,
        constraints=lambda x: A @ x - b,
        worst=lambda x: float((A @ x - b).max()),
        optimum=value,
        target_objective=f(start) - 0.95 * (f(start) - value),
        target_violation=0.01,
        exact_weight=2.0 * multiplier_sum,
    )


def regression(dim: int, n: int, m: int, seed: int) -> Case:
    """Least squares; what is predicted is capped in other rows."""
    rng, scale = np.random.default_rng(seed), 2 / np.sqrt(dim)
    X = scale * rng.standard_normal((n, dim))
    truth = rng.standard_normal(dim) * 0.6
    y = X @ truth + rng.standard_normal(n)
    return under_rows(
        lambda points, i: 0.5 * np.square(y[i] - points @ X[i].T),
        n,
        lambda w: float(0.5 * np.square(y - X @ w).mean()),
        lambda w: -X.T @ (y - X @ w) / n,
        scale * rng.standard_normal((m, dim)),
        np.ones(m),
    )


def portfolio(dim: int, n: int, m: int, seed: int) -> Case:
    """Mean return over heavy-tailed scenarios; a floor in every stress scenario."""
    rng = np.random.default_rng(seed)
    drift = 0.2 * np.abs(rng.standard_normal(dim))
    X = (drift + rng.standard_t(4, (n, dim))) / np.sqrt(dim) * 2
    mean = X.mean(axis=0)
    return under_rows(
        lambda points, i: -points @ X[i].T + 0.2 * np.square(points).sum(1)[:, None],
        n,
        lambda w: float(-mean @ w + 0.2 * w @ w),
        lambda w: -mean + 0.4 * w,
        -(drift + rng.standard_t(4, (m, dim))) / np.sqrt(dim),
        np.full(m, 0.5),
    )


def logistic(dim: int, n: int, m: int, seed: int) -> Case:
    """Logistic regression on sparse rows; scores are capped in other rows."""
    rng = np.random.default_rng(seed)

    def draw(k: int) -> Any:
        return (rng.random((k, dim)) < 0.2) * rng.standard_normal((k, dim))

    X, A = draw(n), draw(m)
    truth = 1.5 * rng.standard_normal(dim)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-X @ truth)), 1.0, -1.0)
    return under_rows(
        lambda points, i: np.logaddexp(0, -y[i] * (points @ X[i].T)),
        n,
        lambda w: float(np.logaddexp(0, -y * (X @ w)).mean()),
        lambda w: -(X.T @ (y * expit(-y * (X @ w)))) / n,
        A,
        np.full(m, 1.5),
    )


def polytope(dim: int, m: int, seed: int) -> Case:
    """One objective value only: the batch of losses makes no difference."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((m, dim))
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    c = rng.standard_normal(dim)

    def f(x: Any) -> float:
        return float(c @ x) + 0.05 * float(x @ x)

    case = under_rows(lambda points, i: 0, 1, f, lambda x: c + 0.1 * x, A, np.ones(m))
    constraints = dszog.Constraints(lambda points, j: points @ A[j].T - 1.0, m=m)
    return replace(case, problem=dszog.Problem(f, constraints, dim))


SETS: dict[str, dict[str, Callable[[], Case]]] = {
    "tried": {
        "relaxed, data 0": partial(relaxed.relaxed_case, 0),
        "relaxed, data 1": partial(relaxed.relaxed_case, 1),
        "customers, linear, 1e4": partial(customers_case, "linear", 10**4),
        "customers, linear, 1e5": partial(customers_case, "linear", 10**5),
        "customers, neural, 1e4": partial(customers_case, "neural", 10**4),
        "pairs, 10 variables": partial(classified_pairs, 10, 300, 10),
        "pairs, 200 variables": partial(classified_pairs, 200, 1000, 11),
        "pairs, 20 variables, normal": partial(normal_pairs, 0),
        "regression, 20 variables": partial(regression, 20, 4000, 20_000, 0),
        "portfolio, 30 variables": partial(portfolio, 30, 5000, 20_000, 0),
        "logistic, 40 variables": partial(logistic, 40, 3000, 20_000, 0),
        "polytope, 20 variables": partial(polytope, 20, 5000, 0),
    },
    "held back": {
        "relaxed, data 2": partial(relaxed.relaxed_case, 2),
        "relaxed, data 3": partial(relaxed.relaxed_case, 3),
        "relaxed, data 4": partial(relaxed.relaxed_case, 4),
        "customers, linear, seed 1": partial(other_customers, 1),
        "customers, linear, seed 2": partial(other_customers, 2),
        "pairs, 30 variables": partial(classified_pairs, 30, 400, 20),
        "pairs, 100 variables": partial(classified_pairs, 100, 800, 21),
        "pairs, 20 variables, normal 1": partial(normal_pairs, 1),
        "regression, 80 variables": partial(regression, 80, 8000, 50_000, 7),
        "portfolio, 10 variables": partial(portfolio, 10, 3000, 30_000, 7),
        "logistic, 150 variables": partial(logistic, 150, 6000, 30_000, 7),
    },
}


# ---------------------------------------------------------------------------- the runs


def options_of(setting: str, case: Case) -> dict[str, Any]:
    """Return the options of the method that a setting stands for.

    Batches of at most what there is.
    """
    batches, *others = setting.split()
    of_losses, weighted, uniform = (int(number) for number in batches.split("/"))
    options: dict[str, Any] = {
        "loss_batch": min(of_losses, case.problem.size.n_losses),
        "constraint_batch": weighted,
        "dual_batch": min(uniform, case.problem.size.n_constraints),
    }
    for name, value in (word.split("=") for word in others):
        options[name] = float(value) if value[0].isdigit() else value
    return options


def solved(case: Case, setting: str, budget: int, seed: int) -> dict[str, Any]:
    """Return what came of one run."""
    reached: list[tuple[int, int]] = []

    def watch(progress: dszog.Progress) -> None:
        if not reached and progress.iteration % 20 == 0 and case.is_reached(progress.x):
            reached.append((progress.n_loss_queries, progress.n_constraint_queries))

    result = dszog.minimize(
        case.problem,
        options=options_of(setting, case),
        max_queries=budget,
        seed=seed,
        callback=watch,
    )
    if not reached and case.is_reached(result.x):
        reached.append((result.nfev, result.ncev))
    gain = case.objective(case.start) - case.optimum
    gap = case.objective(result.x) - case.optimum
    violation = max(case.worst(result.x), 0.0)
    return {
        "reached_after": reached[0] if reached else None,
        "success": bool(result.success),
        "gap": gap / gain,
        "violation": violation,
        "merit": (gap + case.exact_weight * violation) / gain,
        "iterations": result.nit,
    }


def queries_to_target(rows: Sequence[dict[str, Any]], kind: int | None = None) -> float:
    """Return the median, of losses (0), of constraints (1) or of both."""
    return median(
        math.inf
        if row["reached_after"] is None
        # one kind, or both together
        else sum(row["reached_after"][slice(kind, None if kind is None else kind + 1)])
        for row in rows
    )


def factor(mine: float, other: float) -> float:
    """Return the quotient; where only one was reached, a factor for that."""
    if math.isfinite(mine) and math.isfinite(other):
        return mine / other
    return 1.0 if mine == other else NOT_REACHED ** (1 if mine > other else -1)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the mean of the logarithms, as a factor."""
    return math.exp(fmean(math.log(value) for value in values))


# -------------------------------------------------------------------------- the tables


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return a line for each problem, budget and setting, means or medians of seeds."""
    heads = ["problem", "max_queries", "setting", "reached", "constraint queries"]
    heads += ["loss queries", "success", "gap", "violation", "merit"]
    lines = []
    for (problem, budget, setting), group in grouped(rows).items():
        n, n_reached = (
            len(group),
            sum(row["reached_after"] is not None for row in group),
        )
        known = 2 * n_reached > n
        line = [problem, f"{budget:.0e}", setting, f"{n_reached} of {n}"]
        line += [f"{queries_to_target(group, k):.2g}" if known else "" for k in (1, 0)]
        line += [f"{sum(row['success'] for row in group)} of {n}"]
        lines.append(
            line
            + [
                f"{fmean(row[name] for row in group):.4f}"
                for name in ("gap", "violation", "merit")
            ]
        )
    return markdown(heads, lines)


def summary(rows: Sequence[dict[str, Any]]) -> str:
    """Return the geometric means over the problems, as factors of :data:`BEFORE`."""
    groups, lines = grouped(rows), []
    for budget in sorted({row["budget"] for row in rows}):
        for setting in dict.fromkeys(row["setting"] for row in rows):
            both = [
                (group, groups[problem, budget, BEFORE])
                for (problem, of, name), group in groups.items()
                if of == budget
                and name == setting != BEFORE
                and (problem, budget, BEFORE) in groups
            ]
            if not both:
                continue
            queries = [
                geometric_mean(
                    [
                        factor(queries_to_target(a, kind), queries_to_target(b, kind))
                        for a, b in both
                    ]
                )
                for kind in (1, 0, None)
            ]
            merits = [
                fmean(row["merit"] for row in a) / fmean(row["merit"] for row in b)
                for a, b in both
            ]
            lines.append(
                [
                    f"{budget:.0e}",
                    setting,
                    *(f"{value:.2f}" for value in queries),
                    f"{geometric_mean(merits):.2f}",
                    f"{sum(value < 1 for value in merits)} of {len(merits)}",
                    f"{sum(row['success'] for a, _ in both for row in a)}"
                    f" instead of {sum(row['success'] for _, b in both for row in b)}",
                ]
            )
    heads = ["max_queries", "setting", "constraint queries to the target"]
    heads += ["loss queries", "both", "merit", "better merit", "successes"]
    return markdown(heads, lines)


def grouped(rows: Sequence[dict[str, Any]]) -> dict[Any, list[dict[str, Any]]]:
    """Return the rows of each problem, budget and setting."""
    groups: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        key = row["problem"], row["budget"], row["setting"]
        groups.setdefault(key, []).append(row)
    return groups


def main() -> None:
    """Make what is missing, and write all of it."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--set", choices=[*SETS, "none"], default="tried")
    reader.add_argument("--budgets", type=int, nargs="+", default=[10**6])
    reader.add_argument("--seeds", type=int, default=3)
    reader.add_argument("--settings", nargs="+", default=[BEFORE, DEFAULTS])
    given = reader.parse_args()
    kept = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    known = {(r["problem"], r["budget"], r["setting"], r["seed"]) for r in kept}
    for problem, make in SETS.get(given.set, {}).items():
        case = None
        for budget in given.budgets:
            for setting in given.settings:
                for seed in range(given.seeds):
                    if (problem, budget, setting, seed) in known:
                        continue
                    case = case or make()
                    names = {"set": given.set, "problem": problem, "budget": budget}
                    names |= {"setting": setting, "seed": seed}
                    kept.append(names | solved(case, setting, budget, seed))
                    write_json(RESULTS, {"versions": versions(), "rows": kept})
    parts = []
    for name in SETS:
        rows = [row for row in kept if row["set"] == name]
        parts += [f"## {name}\n", summary(rows), table(rows)]
    text = "\n".join(parts)
    RESULTS.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
