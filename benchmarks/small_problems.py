"""Twenty small problems with known solutions: SciPy's COBYQA beside dszog.

With a handful of variables and constraints a model-based solver such as COBYQA is the
right tool, and this file does not pretend otherwise.  It asks whether dszog, made for
another kind of problem, still finds the solution with its defaults, on problems that
were not scaled for it: variables of order 10, functions of order 1000, curved valleys,
equalities, a start outside the bounds, a solution without multipliers (problem 13).

The problems, starts and solutions are those of [1]_, under their numbers there.  Both
solvers are handed the same SciPy objects, and what they return is judged here, by
values that neither of them computed:

* the *gap*, ``(f - f*) / max(abs(f*), 1)``: relative, but absolute for a small ``f*``;
* the *violation*, the largest over all constraints and bounds, ``abs(h)`` for an
  equality ``h = 0``.

A problem counts as solved if the gap is within 0.01 on either side and the violation is
at most 0.01.  Mind the units of the price: an evaluation of COBYQA is the objective and
all constraints at one point, a query of dszog is one value of one function.

References
----------
.. [1] W. Hock and K. Schittkowski, "Test Examples for Nonlinear Programming Codes",
   Lecture Notes in Economics and Mathematical Systems 187, Springer 1981.
"""

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.optimize import (
    Bounds,
    LinearConstraint,
    NonlinearConstraint,
    OptimizeResult,
    minimize,
)

import dszog

Array: TypeAlias = NDArray[np.float64]
Function: TypeAlias = Callable[[Array], Any]
Constraint: TypeAlias = LinearConstraint | NonlinearConstraint

TOLERANCE = 0.01  # of the gap and of the violation
MAX_QUERIES = 200_000
DEFAULT_OUTPUT = Path(__file__).parent / "results" / "small_problems.json"
INF = math.inf


@dataclass(frozen=True, eq=False, kw_only=True)
class SmallProblem:
    """A problem of the collection, with its standard start and its solution.

    Attributes
    ----------
    name : str
        Its number in the collection.
    fun : callable
        The objective ``fun(x) -> float``.
    x0 : tuple of float
        The standard start, which may violate constraints and bounds.
    constraints : tuple of LinearConstraint or NonlinearConstraint
        As SciPy takes them; an equality has the same lower and upper bound.
    bounds : Bounds, optional
        On the variables.
    optimum : float
        The value at the solution.
    solution : tuple of float
        A point where it is attained, to at least six digits.
    """

    name: str
    fun: Function
    x0: tuple[float, ...]
    constraints: tuple[Constraint, ...]
    bounds: Bounds | None = None
    optimum: float
    solution: tuple[float, ...]

    @property
    def dim(self) -> int:
        """The number of variables."""
        return len(self.x0)

    @property
    def n_constraints(self) -> int:
        """The number of constraints; bounds are not counted, an equality is one."""
        return sum(len(values) for values, _, _ in self._rows(np.array(self.x0)))

    def gap(self, x: Array) -> float:
        """Return how far the objective lies above the optimum, relative or absolute."""
        return float(self.fun(x) - self.optimum) / max(abs(self.optimum), 1.0)

    def violation(self, x: Array) -> float:
        """Return the largest violation over all constraints and bounds."""
        rows = self._rows(x)
        if self.bounds is not None:
            rows.append((x, self.bounds.lb, self.bounds.ub))
        worst = [np.maximum(low - v, v - high).max() for v, low, high in rows]
        return max(0.0, *(float(value) for value in worst))

    def _rows(self, x: Array) -> list[tuple[Array, Any, Any]]:
        rows = []
        for constraint in self.constraints:
            if isinstance(constraint, LinearConstraint):
                values = np.atleast_1d(constraint.A @ x)
            else:
                values = np.atleast_1d(constraint.fun(x))
            rows.append((values, constraint.lb, constraint.ub))
        return rows


# ------------------------------------------------------------------------ the problems


def at_least_zero(*functions: Function) -> NonlinearConstraint:
    """Return the constraints that each of these functions is at least 0."""
    return NonlinearConstraint(lambda x: np.array([g(x) for g in functions]), 0.0, INF)


def equal_zero(*functions: Function) -> NonlinearConstraint:
    """Return the constraints that each of these functions is 0."""
    return NonlinearConstraint(lambda x: np.array([h(x) for h in functions]), 0.0, 0.0)


def linear(
    rows: Sequence[Sequence[float]],
    low: float | Sequence[float] = -INF,
    high: float | Sequence[float] = INF,
) -> LinearConstraint:
    """Return the constraints ``low <= rows @ x <= high``."""
    return LinearConstraint(np.array(rows, dtype=float), low, high)


def hs6() -> SmallProblem:
    return SmallProblem(
        name="6",
        fun=lambda x: (1 - x[0]) ** 2,
        x0=(-1.2, 1.0),
        constraints=(equal_zero(lambda x: 10 * (x[1] - x[0] ** 2)),),
        optimum=0.0,
        solution=(1.0, 1.0),
    )


def hs7() -> SmallProblem:
    return SmallProblem(
        name="7",
        fun=lambda x: np.log(1 + x[0] ** 2) - x[1],
        x0=(2.0, 2.0),
        constraints=(equal_zero(lambda x: (1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4),),
        optimum=-math.sqrt(3),
        solution=(0.0, math.sqrt(3)),
    )


def hs10() -> SmallProblem:
    return SmallProblem(
        name="10",
        fun=lambda x: x[0] - x[1],
        x0=(-10.0, 10.0),
        constraints=(
            at_least_zero(lambda x: -3 * x[0] ** 2 + 2 * x[0] * x[1] - x[1] ** 2 + 1),
        ),
        optimum=-1.0,
        solution=(0.0, 1.0),
    )


def hs11() -> SmallProblem:
    a = 7.5 * math.sqrt(6) + math.sqrt(338.5)
    x1 = (a ** (1 / 3) - a ** (-1 / 3)) / math.sqrt(6)
    return SmallProblem(
        name="11",
        fun=lambda x: (x[0] - 5) ** 2 + x[1] ** 2 - 25,
        x0=(4.9, 0.1),
        constraints=(at_least_zero(lambda x: -(x[0] ** 2) + x[1]),),
        optimum=(x1 - 5) ** 2 + x1**4 - 25,
        solution=(x1, x1**2),
    )


def hs12() -> SmallProblem:
    return SmallProblem(
        name="12",
        fun=lambda x: 0.5 * x[0] ** 2 + x[1] ** 2 - x[0] * x[1] - 7 * x[0] - 7 * x[1],
        x0=(0.0, 0.0),
        constraints=(at_least_zero(lambda x: 25 - 4 * x[0] ** 2 - x[1] ** 2),),
        optimum=-30.0,
        solution=(2.0, 3.0),
    )


def hs13() -> SmallProblem:
    return SmallProblem(
        name="13",
        fun=lambda x: (x[0] - 2) ** 2 + x[1] ** 2,
        x0=(-2.0, -2.0),
        constraints=(at_least_zero(lambda x: (1 - x[0]) ** 3 - x[1]),),
        bounds=Bounds([0.0, 0.0], [INF, INF]),
        optimum=1.0,
        solution=(1.0, 0.0),
    )


def hs14() -> SmallProblem:
    return SmallProblem(
        name="14",
        fun=lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
        x0=(2.0, 2.0),
        constraints=(
            at_least_zero(lambda x: 1 - 0.25 * x[0] ** 2 - x[1] ** 2),
            linear([[1, -2]], -1.0, -1.0),
        ),
        optimum=9 - 2.875 * math.sqrt(7),
        solution=(0.5 * (math.sqrt(7) - 1), 0.25 * (math.sqrt(7) + 1)),
    )


def hs15() -> SmallProblem:
    return SmallProblem(
        name="15",
        fun=lambda x: 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2,
        x0=(-2.0, 1.0),
        constraints=(
            at_least_zero(lambda x: x[0] * x[1] - 1, lambda x: x[0] + x[1] ** 2),
        ),
        bounds=Bounds([-INF, -INF], [0.5, INF]),
        optimum=306.5,
        solution=(0.5, 2.0),
    )


def hs21() -> SmallProblem:
    return SmallProblem(
        name="21",
        fun=lambda x: 0.01 * x[0] ** 2 + x[1] ** 2 - 100,
        x0=(-1.0, -1.0),
        constraints=(linear([[10, -1]], 10.0),),
        bounds=Bounds([2.0, -50.0], [50.0, 50.0]),
        optimum=-99.96,
        solution=(2.0, 0.0),
    )


def hs22() -> SmallProblem:
    return SmallProblem(
        name="22",
        fun=lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
        x0=(2.0, 2.0),
        constraints=(
            linear([[1, 1]], -INF, 2.0),
            at_least_zero(lambda x: -(x[0] ** 2) + x[1]),
        ),
        optimum=1.0,
        solution=(1.0, 1.0),
    )


def hs23() -> SmallProblem:
    return SmallProblem(
        name="23",
        fun=lambda x: x[0] ** 2 + x[1] ** 2,
        x0=(3.0, 1.0),
        constraints=(
            linear([[1, 1]], 1.0),
            at_least_zero(
                lambda x: x[0] ** 2 + x[1] ** 2 - 1,
                lambda x: 9 * x[0] ** 2 + x[1] ** 2 - 9,
                lambda x: x[0] ** 2 - x[1],
                lambda x: x[1] ** 2 - x[0],
            ),
        ),
        bounds=Bounds([-50.0, -50.0], [50.0, 50.0]),
        optimum=2.0,
        solution=(1.0, 1.0),
    )


def hs24() -> SmallProblem:
    root = math.sqrt(3)
    return SmallProblem(
        name="24",
        fun=lambda x: ((x[0] - 3) ** 2 - 9) * x[1] ** 3 / (27 * root),
        x0=(1.0, 0.5),
        constraints=(
            linear([[1 / root, -1], [1, root], [-1, -root]], [0.0, 0.0, -6.0]),
        ),
        bounds=Bounds([0.0, 0.0], [INF, INF]),
        optimum=-1.0,
        solution=(3.0, root),
    )


def hs35() -> SmallProblem:
    return SmallProblem(
        name="35",
        fun=lambda x: (
            9
            - 8 * x[0]
            - 6 * x[1]
            - 4 * x[2]
            + 2 * x[0] ** 2
            + 2 * x[1] ** 2
            + x[2] ** 2
            + 2 * x[0] * x[1]
            + 2 * x[0] * x[2]
        ),
        x0=(0.5, 0.5, 0.5),
        constraints=(linear([[1, 1, 2]], -INF, 3.0),),
        bounds=Bounds([0.0] * 3, [INF] * 3),
        optimum=1 / 9,
        solution=(4 / 3, 7 / 9, 4 / 9),
    )


def hs37() -> SmallProblem:
    return SmallProblem(
        name="37",
        fun=lambda x: -x[0] * x[1] * x[2],
        x0=(10.0, 10.0, 10.0),
        constraints=(linear([[1, 2, 2]], 0.0, 72.0),),
        bounds=Bounds([0.0] * 3, [42.0] * 3),
        optimum=-3456.0,
        solution=(24.0, 12.0, 12.0),
    )


def hs43() -> SmallProblem:
    return SmallProblem(
        name="43",
        fun=lambda x: np.dot([1, 1, 2, 1], np.square(x)) + np.dot([-5, -5, -21, 7], x),
        x0=(0.0, 0.0, 0.0, 0.0),
        constraints=(
            at_least_zero(
                lambda x: (
                    8 - np.dot([1, 1, 1, 1], np.square(x)) - np.dot([1, -1, 1, -1], x)
                ),
                lambda x: 10 - np.dot([1, 2, 1, 2], np.square(x)) + x[0] + x[3],
                lambda x: (
                    5 - np.dot([2, 1, 1, 0], np.square(x)) - 2 * x[0] + x[1] + x[3]
                ),
            ),
        ),
        optimum=-44.0,
        solution=(0.0, 1.0, 2.0, -1.0),
    )


def hs71() -> SmallProblem:
    return SmallProblem(
        name="71",
        fun=lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        x0=(1.0, 5.0, 5.0, 1.0),
        constraints=(
            at_least_zero(lambda x: np.prod(x) - 25),
            equal_zero(lambda x: np.dot(x, x) - 40),
        ),
        bounds=Bounds([1.0] * 4, [5.0] * 4),
        optimum=17.0140173,
        solution=(1.0, 4.7429994, 3.8211503, 1.3794082),
    )


def hs76() -> SmallProblem:
    return SmallProblem(
        name="76",
        fun=lambda x: (
            np.dot([1, 0.5, 1, 0.5], np.square(x))
            - x[0] * x[2]
            + x[2] * x[3]
            + np.dot([-1, -3, 1, -1], x)
        ),
        x0=(0.5, 0.5, 0.5, 0.5),
        constraints=(
            linear([[1, 2, 1, 1], [3, 1, 2, -1]], -INF, [5.0, 4.0]),
            linear([[0, 1, 4, 0]], 1.5),
        ),
        bounds=Bounds([0.0] * 4, [INF] * 4),
        optimum=-103 / 22,
        solution=(3 / 11, 23 / 11, 0.0, 6 / 11),
    )


def hs80() -> SmallProblem:
    return SmallProblem(
        name="80",
        fun=lambda x: np.exp(np.prod(x)),
        x0=(-2.0, 2.0, 2.0, -1.0, -1.0),
        constraints=(
            equal_zero(
                lambda x: np.dot(x, x) - 10,
                lambda x: x[1] * x[2] - 5 * x[3] * x[4],
                lambda x: x[0] ** 3 + x[1] ** 3 + 1,
            ),
        ),
        bounds=Bounds([-2.3, -2.3, -3.2, -3.2, -3.2], [2.3, 2.3, 3.2, 3.2, 3.2]),
        optimum=0.0539498478,
        solution=(-1.717143, 1.595709, 1.827247, -0.7636413, -0.7636450),
    )


def hs100() -> SmallProblem:
    return SmallProblem(
        name="100",
        fun=lambda x: (
            (x[0] - 10) ** 2
            + 5 * (x[1] - 12) ** 2
            + x[2] ** 4
            + 3 * (x[3] - 11) ** 2
            + 10 * x[4] ** 6
            + 7 * x[5] ** 2
            + x[6] ** 4
            - 4 * x[5] * x[6]
            - 10 * x[5]
            - 8 * x[6]
        ),
        x0=(1.0, 2.0, 0.0, 4.0, 0.0, 1.0, 1.0),
        constraints=(
            at_least_zero(
                lambda x: (
                    127
                    - 2 * x[0] ** 2
                    - 3 * x[1] ** 4
                    - x[2]
                    - 4 * x[3] ** 2
                    - 5 * x[4]
                ),
                lambda x: 282 - 7 * x[0] - 3 * x[1] - 10 * x[2] ** 2 - x[3] + x[4],
                lambda x: 196 - 23 * x[0] - x[1] ** 2 - 6 * x[5] ** 2 + 8 * x[6],
                lambda x: (
                    -4 * x[0] ** 2
                    - x[1] ** 2
                    + 3 * x[0] * x[1]
                    - 2 * x[2] ** 2
                    - 5 * x[5]
                    + 11 * x[6]
                ),
            ),
        ),
        optimum=680.6300573,
        solution=(
            2.330499,
            1.951372,
            -0.4775414,
            4.365726,
            -0.6244870,
            1.038131,
            1.594227,
        ),
    )


def hs113() -> SmallProblem:
    return SmallProblem(
        name="113",
        fun=lambda x: (
            x[0] ** 2
            + x[1] ** 2
            + x[0] * x[1]
            - 14 * x[0]
            - 16 * x[1]
            + (x[2] - 10) ** 2
            + 4 * (x[3] - 5) ** 2
            + (x[4] - 3) ** 2
            + 2 * (x[5] - 1) ** 2
            + 5 * x[6] ** 2
            + 7 * (x[7] - 11) ** 2
            + 2 * (x[8] - 10) ** 2
            + (x[9] - 7) ** 2
            + 45
        ),
        x0=(2.0, 3.0, 5.0, 5.0, 1.0, 2.0, 7.0, 3.0, 6.0, 10.0),
        constraints=(
            linear(
                [
                    [4, 5, 0, 0, 0, 0, -3, 9, 0, 0],
                    [10, -8, 0, 0, 0, 0, -17, 2, 0, 0],
                    [-8, 2, 0, 0, 0, 0, 0, 0, 5, -2],
                ],
                -INF,
                [105.0, 0.0, 12.0],
            ),
            at_least_zero(
                lambda x: (
                    120
                    - 3 * (x[0] - 2) ** 2
                    - 4 * (x[1] - 3) ** 2
                    - 2 * x[2] ** 2
                    + 7 * x[3]
                ),
                lambda x: 40 - 5 * x[0] ** 2 - 8 * x[1] - (x[2] - 6) ** 2 + 2 * x[3],
                lambda x: (
                    30
                    - 0.5 * (x[0] - 8) ** 2
                    - 2 * (x[1] - 4) ** 2
                    - 3 * x[4] ** 2
                    + x[5]
                ),
                lambda x: (
                    -(x[0] ** 2)
                    - 2 * (x[1] - 2) ** 2
                    + 2 * x[0] * x[1]
                    - 14 * x[4]
                    + 6 * x[5]
                ),
                lambda x: 3 * x[0] - 6 * x[1] - 12 * (x[8] - 8) ** 2 + 7 * x[9],
            ),
        ),
        optimum=24.3062091,
        solution=(
            2.171996,
            2.363683,
            8.773926,
            5.095984,
            0.9906548,
            1.430574,
            1.321644,
            9.828726,
            8.280092,
            8.375927,
        ),
    )


PROBLEMS: dict[str, SmallProblem] = {
    problem.name: problem
    for problem in (
        hs6(),
        hs7(),
        hs10(),
        hs11(),
        hs12(),
        hs13(),
        hs14(),
        hs15(),
        hs21(),
        hs22(),
        hs23(),
        hs24(),
        hs35(),
        hs37(),
        hs43(),
        hs71(),
        hs76(),
        hs80(),
        hs100(),
        hs113(),
    )
}
"""The problems by name, in the order of the collection."""


# ------------------------------------------------------------------------ the solvers


@dataclass(frozen=True, kw_only=True)
class Score:
    """How one solver did on one problem.

    Attributes
    ----------
    x : list of float
        What it returned.
    gap, violation : float
        As measured here, not as reported by the solver.
    solved : bool
        Whether both are within the tolerance.
    evaluations : int
        Points for COBYQA, single values for dszog.
    success : bool
        What the solver says of itself.
    seconds : float
        The time of the solve.
    """

    x: list[float]
    gap: float
    violation: float
    solved: bool
    evaluations: int
    success: bool
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Both solvers on one problem; `seed` and `max_queries` are those of dszog."""

    problem: str
    seed: int
    max_queries: int
    cobyqa: Score
    dszog: Score


def compare(
    problem: SmallProblem, max_queries: int = MAX_QUERIES, seed: int = 0
) -> Comparison:
    """Solve one problem with COBYQA and with dszog, both with their defaults.

    Parameters
    ----------
    problem : SmallProblem
    max_queries : int, optional
        The budget of dszog.
    seed : int, optional
        The seed of dszog; COBYQA is deterministic.

    Returns
    -------
    Comparison
    """
    return Comparison(
        problem=problem.name,
        seed=seed,
        max_queries=max_queries,
        cobyqa=run_cobyqa(problem),
        dszog=run_dszog(problem, max_queries, seed),
    )


@cache
def run_cobyqa(problem: SmallProblem) -> Score:
    """Run COBYQA once; later calls return what the first one found."""
    begin = time.perf_counter()
    result = minimize(
        problem.fun,
        np.array(problem.x0),
        method="COBYQA",
        bounds=problem.bounds,
        constraints=list(problem.constraints),
    )
    seconds = time.perf_counter() - begin
    return judge(problem, result, int(result.nfev), seconds)


def run_dszog(problem: SmallProblem, max_queries: int, seed: int) -> Score:
    """Run dszog, with nothing set but the budget and the seed."""
    begin = time.perf_counter()
    result = dszog.minimize(
        problem.fun,
        np.array(problem.x0),
        constraints=list(problem.constraints),
        bounds=problem.bounds,
        max_queries=max_queries,
        seed=seed,
    )
    seconds = time.perf_counter() - begin
    return judge(problem, result, int(result.nfev + result.ncev), seconds)


def judge(
    problem: SmallProblem, result: OptimizeResult, evaluations: int, seconds: float
) -> Score:
    """Measure what a solver returned."""
    x = np.asarray(result.x, dtype=float)
    gap, violation = problem.gap(x), problem.violation(x)
    return Score(
        x=x.tolist(),
        gap=gap,
        violation=violation,
        solved=abs(gap) <= TOLERANCE and violation <= TOLERANCE,
        evaluations=evaluations,
        success=bool(result.success),
        seconds=round(seconds, 3),
    )


# ------------------------------------------------------------------------- the report

HEADER = (
    "| problem | n | m | f* | COBYQA gap | violation | evaluations "
    "| dszog gap | violation | queries | success | solved |\n"
    "| --- " + "| ---: " * 9 + "| --- | ---: |"
)


def table_row(problem: SmallProblem, found: Sequence[Comparison]) -> str:
    """Return the row of one problem; of dszog, the seed that did worst is shown."""
    cobyqa = found[0].cobyqa
    worst = max(
        (comparison.dszog for comparison in found),
        key=lambda score: max(abs(score.gap), score.violation),
    )
    n_solved = sum(comparison.dszog.solved for comparison in found)
    return (
        f"| {problem.name} | {problem.dim} | {problem.n_constraints} "
        f"| {problem.optimum:.6g} | {cobyqa.gap:.1e} | {cobyqa.violation:.1e} "
        f"| {cobyqa.evaluations} | {worst.gap:.1e} | {worst.violation:.1e} "
        f"| {worst.evaluations} | {'yes' if worst.success else 'no'} "
        f"| {n_solved}/{len(found)} |"
    )


def summary(comparisons: Sequence[Comparison]) -> list[str]:
    """Return how many problems each solver solved, dszog with each of the seeds."""
    seeds = list(dict.fromkeys(comparison.seed for comparison in comparisons))
    first = [c for c in comparisons if c.seed == seeds[0]]
    lines = [f"COBYQA solved {sum(c.cobyqa.solved for c in first)} of {len(first)}."]
    for seed in seeds:
        found = [c.dszog for c in comparisons if c.seed == seed]
        lines.append(
            f"dszog with seed {seed} solved {sum(score.solved for score in found)} of "
            f"{len(found)}."
        )
    return lines


def save(comparisons: Sequence[Comparison], output: Path) -> None:
    """Write all results, and the versions they were computed with."""
    content = {
        "versions": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "dszog": dszog.__version__,
        },
        "tolerance": TOLERANCE,
        "comparisons": [asdict(comparison) for comparison in comparisons],
    }
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(json.dumps(content, indent=1) + "\n")


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        description="Compare dszog with COBYQA on small problems of known solution."
    )
    parser.add_argument(
        "--problems",
        nargs="+",
        choices=list(PROBLEMS),
        default=list(PROBLEMS),
        metavar="NUMBER",
        help="Hock-Schittkowski numbers (default: all of %(choices)s)",
    )
    parser.add_argument(
        "--seeds",
        type=int,
        nargs="+",
        default=[0, 1, 2],
        help="seeds of dszog (default: 0 to 2)",
    )
    parser.add_argument(
        "--max-queries",
        type=int,
        default=MAX_QUERIES,
        help="the budget of dszog (default: %(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        default=DEFAULT_OUTPUT,
        help="JSON file to write, replacing what is there (default: %(default)s)",
    )
    return parser.parse_args(arguments)


def main() -> None:
    """Compare, print a table and store the results."""
    arguments = parse_arguments()
    comparisons: list[Comparison] = []
    print(HEADER)
    for name in arguments.problems:
        found = [
            compare(PROBLEMS[name], arguments.max_queries, seed)
            for seed in arguments.seeds
        ]
        comparisons += found
        print(table_row(PROBLEMS[name], found), flush=True)
    print()
    print("\n".join(summary(comparisons)))
    save(comparisons, arguments.output)
    print(f"Stored in {arguments.output}")


if __name__ == "__main__":
    main()
