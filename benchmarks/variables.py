"""How many iterations a problem with many variables needs, with all else as it comes.

The nearest point, in the mean of squares, within 50,000 random half-spaces: of order
one in every variable, one objective, constraints known by values alone.  An iteration
looks along a handful of directions, however many variables there are.

Every answer is judged here, by its objective and by the worst of *all* constraints,
whatever the run itself had the budget to look at.

    python benchmarks/variables.py
"""

from typing import Any

import numpy as np

import dszog

N_CONSTRAINTS = 50_000
SEEDS = (0, 1, 2)


def main() -> None:
    """Print a row for each number of variables and budget, seeds side by side."""
    print("| variables | run | objective | worst violation | success |")
    print("| --- | --- | --- | --- | --- |")
    for dim in (50, 100, 200):
        runs: dict[str, dict[str, Any]] = {
            "2,000 iterations": {"max_iterations": 2000},
            "2,000, `tune=True`": {"max_iterations": 2000, "tune": True},
            f"{50 * dim:,} iterations": {"max_iterations": 50 * dim},
            f"{100 * dim:,} iterations": {"max_iterations": 100 * dim},
        }
        for name, arguments in runs.items():
            found = [solved(dim, seed, arguments) for seed in SEEDS]
            columns = [
                "; ".join(f"{fun:.3f}" for fun, _, _ in found),
                "; ".join(f"{worst:.3f}" for _, worst, _ in found),
                f"{sum(success for _, _, success in found)} of {len(found)}",
            ]
            print(f"| {dim} | {name} | {' | '.join(columns)} |", flush=True)


def solved(dim: int, seed: int, arguments: dict[str, Any]) -> tuple[float, float, bool]:
    """Return the objective, the worst of all violations, and what the run said."""
    rng = np.random.default_rng([dim, seed])
    rows = rng.normal(size=(N_CONSTRAINTS, dim)) / np.sqrt(dim)
    target = rng.normal(size=dim)
    result = dszog.minimize(
        lambda x: float(np.mean((x - target) ** 2)),
        np.zeros(dim),
        dszog.Constraints(lambda points, j: points @ rows[j].T - 1.0, N_CONSTRAINTS),
        seed=seed,
        **arguments,
    )
    worst = float(max((rows @ result.x - 1.0).max(), 0.0))
    return result.fun, worst, bool(result.success)


if __name__ == "__main__":
    main()
