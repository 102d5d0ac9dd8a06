"""Small problems by the sampled SQP and SLSQP: ``python -m dszog_bench.small_table``.

Either may look at 200 (dim + 1) points; a problem is solved within 1 % of the optimum
and a violation of 1e-6. The first argument chooses the half: training or held_out.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.optimize import minimize

import dszog
from dszog_bench.small_suite import HELD_OUT, TRAINING, SmallProblem

POINTS = 200  # times the number of variables and one


def ours(problem: SmallProblem, method: str = "sampled_sqp") -> tuple[bool, int]:
    """Return whether a method of the library solves it, and points looked at."""
    n = problem.n_functions
    lower, upper = np.array(problem.bounds or [(-np.inf, np.inf)] * problem.dim).T
    result = dszog.minimize(
        problem.fun,
        np.clip(problem.x0, lower, upper),
        problem.constraints() or None,
        bounds=problem.bounds,
        method=method,
        max_queries=POINTS * (problem.dim + 1) * n,
        constraint_tol=1e-6,
        seed=0,
    )
    return problem.is_solved(result.x), (result.nfev + result.ncev) // n


def slsqp(problem: SmallProblem) -> tuple[bool, int]:
    """Return the same of SciPy's SLSQP with its defaults."""
    result = minimize(
        problem.fun,
        np.array(problem.x0),
        method="SLSQP",
        bounds=problem.bounds,
        constraints=problem.constraints(),
        options={"maxiter": 1000},
    )
    within = result.nfev <= POINTS * (problem.dim + 1)
    return bool(within and problem.is_solved(result.x)), int(result.nfev)


def main(half: str = "held_out") -> None:
    """Print a line for each problem, and how many each has solved."""
    problems = TRAINING if half == "training" else HELD_OUT
    totals = np.zeros(2, dtype=int)
    for problem in problems:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            (good, n), (good_too, n_too) = ours(problem), slsqp(problem)
        totals += good, good_too
        sys.stdout.write(
            f"HS{problem.number:<4} sampled SQP {'yes' if good else 'no ':3} {n:5} "
            f"SLSQP {'yes' if good_too else 'no ':3} {n_too:5}\n"
        )
    sys.stdout.write(
        f"of {len(problems)}: sampled SQP {totals[0]}, SLSQP {totals[1]}\n"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
