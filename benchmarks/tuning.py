"""Does ``tune=True`` beat the defaults at the same total budget? Badly scaled problems.

Every problem is one of order one, ``min f(u)`` under ``g_j(u) <= 0``, handed over in
other units: ``x = S u``, ``F f``, ``G g``. All results are compared in the old units,
by ``f(u) + 30 max_j max(g_j(u), 0)^2`` with all constraints looked at.

    python benchmarks/tuning.py [--budget 100000] [--seeds 3] [--sampler optuna]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

import dszog

PENALTY = 30.0
TOLERANCE = 1e-2


@dataclass(frozen=True)
class Case:
    """A problem of order one, and the units it is handed over in."""

    name: str
    base: str
    variables: Any = 1.0
    objective: float = 1.0
    constraints: float = 1.0


CASES = (
    Case("half-planes, order one", "half-planes"),
    Case("variables x 100", "half-planes", variables=100.0),
    Case("variables x 0.01", "half-planes", variables=0.01),
    Case("objective x 1000", "half-planes", objective=1000.0),
    Case("constraints x 100", "half-planes", constraints=100.0),
    Case(
        "variables x 0.1 to 10",
        "half-planes",
        variables=np.geomspace(0.1, 10.0, 10),
    ),
    Case("classifier, order one", "pairs"),
    Case("classifier, features x 30", "pairs", variables=1 / 30),
)


class HalfPlanes:
    """The point nearest to one outside of 2000 half-planes around the unit ball."""

    dim, n, m = 10, 1, 2000

    def __init__(self, seed: int) -> None:
        rng = np.random.Generator(np.random.Philox(key=seed))
        normals = rng.normal(size=(self.m, self.dim))
        self.normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)

    def losses(self, u: Any, i: Any) -> Any:
        return np.repeat(np.square(u - 1.0).mean(axis=1)[:, None], len(i), axis=1)

    def values(self, u: Any, j: Any) -> Any:
        return u @ self.normals[j].T - 1.0


class Pairs:
    """A linear classifier that lets no positive row score 0.3 below a negative one."""

    dim, n = 20, 200

    def __init__(self, seed: int) -> None:
        rng = np.random.Generator(np.random.Philox(key=100 + seed))
        X = rng.normal(size=(self.n, self.dim)) / np.sqrt(self.dim)
        truth = 3.0 * rng.normal(size=self.dim)
        y = np.where(X @ truth + 0.5 * rng.normal(size=self.n) > 0.0, 1.0, -1.0)
        self.X, self.y = X, y
        self.high, self.low = X[y > 0], X[y < 0]
        self.m = len(self.high) * len(self.low)

    def losses(self, u: Any, i: Any) -> Any:
        return 1.0 - np.exp(-np.square(self.y[i] - u @ self.X[i].T))

    def values(self, u: Any, j: Any) -> Any:
        a, b = np.divmod(j, len(self.low))
        return u @ (self.low[b] - self.high[a]).T - 0.3


BASES = {"half-planes": HalfPlanes, "pairs": Pairs}


def problem_of(case: Case, base: Any) -> dszog.Problem:
    s, f, g = case.variables, case.objective, case.constraints
    return dszog.Problem(
        dszog.Losses(lambda x, i: f * base.losses(x / s, i), base.n),
        dszog.Constraints(lambda x, j: g * base.values(x / s, j), base.m),
        base.dim,
    )


def outcome(case: Case, base: Any, result: Any) -> tuple[float, float]:
    """Return the merit and the worst violation in the old units."""
    u = (result.x / case.variables)[np.newaxis]
    worst = max(
        float(base.values(u, j).max())
        for j in np.array_split(np.arange(base.m), max(base.m // 4096, 1))
    )
    fun = float(base.losses(u, np.arange(base.n)).mean())
    return fun + PENALTY * max(worst, 0.0) ** 2, max(worst, 0.0)


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--budget", type=int, default=100_000)
    reader.add_argument("--seeds", type=int, default=3)
    reader.add_argument("--first-seed", type=int, default=0)
    reader.add_argument("--share", type=float, default=0.3)
    reader.add_argument("--sampler", choices=("halving", "optuna"), default="halving")
    reader.add_argument("--cases", nargs="*", default=None)
    reader.add_argument("--trials", action="store_true", help="print all trials")
    given = reader.parse_args()
    tuning = dszog.Tuning(share=given.share, sampler=given.sampler)
    print("| problem | untuned | tuned | tuned is better | chosen step, penalty |")
    print("| --- | --- | --- | --- | --- |")
    for case in CASES:
        if given.cases and case.name not in given.cases:
            continue
        plain, tuned, chosen = [], [], []
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            base = BASES[case.base](seed)
            settings: dict[str, Any] = {
                "max_queries": given.budget,
                "seed": seed,
                "constraint_tol": TOLERANCE * case.constraints,
            }
            first = dszog.minimize(problem_of(case, base), **settings)
            second = dszog.minimize(problem_of(case, base), tune=tuning, **settings)
            assert second.nfev + second.ncev <= given.budget
            plain.append(outcome(case, base, first)[0])
            tuned.append(outcome(case, base, second)[0])
            best = second.tuning.best.settings
            chosen.append(f"{best['step_size']:.3g}, {best['penalty']:.3g}")
            if given.trials:
                print(second.tuning, second.message)
        better = sum(b < a for a, b in zip(plain, tuned, strict=True))
        cells = [
            case.name,
            *("; ".join(f"{value:.3f}" for value in row) for row in (plain, tuned)),
            f"{better} of {given.seeds}",
            "; ".join(chosen),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
