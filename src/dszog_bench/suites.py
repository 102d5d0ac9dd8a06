"""Foreign suites: how many problems each solver solves, and with how many values.

All solvers begin at the suite's start and see values only, within 200 (dim + 1) times
the number of functions: differences are paid for like everything else. Of a peer the
best point that it looked at counts, of ours the answer it returns or went through. A
problem is solved by a point within 1 % of the best that any solver found and a
violation of 1e-6.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import Bounds

import dszog
from dszog_bench.foreign import CLASSES, PACKAGES, ForeignProblem, Half, sample
from dszog_bench.peers import SOLVERS, Counted, Solver, quietly
from dszog_bench.records import Effort, Row, kept

POINTS = 200  # times the number of variables and one
SECONDS = 60.0  # of a processor that a solver has for a problem, values included
GAP, LEAST, FEASIBLE = 1e-2, 1e-2, 1e-6
OURS, PEER = "sampled SQP", "SLSQP"
FULL_SAMPLE, QUICK_SAMPLE = 30, 2  # problems of each class
MOST_VALUES = 0.1  # of SLSQP's constraint values that ours may take where m >= 100


# --------------------------------------------------------------------------------- runs


def _ours(counted: Counted, method: str = "sampled_sqp") -> None:
    problem, n_rows = counted.problem, counted.problem.m - counted.problem.n_equal
    counted.stops_itself = True
    last = np.full(problem.dim, np.nan)

    def watch(progress: dszog.Progress) -> bool:
        if not np.array_equal(progress.x, last):
            before, last[:] = time.process_time(), progress.x
            counted.judge(last, problem.fun(last), problem.constraints(last))
            counted._began += time.process_time() - before
        return counted.seconds > SECONDS

    parts: list[Any] = []
    if n_rows:
        parts.append(dszog.Constraints(counted.some, n_rows))
    if problem.n_equal:
        places = np.arange(n_rows, problem.m)
        parts.append({"type": "eq", "fun": lambda x: counted.some(x[None], places)[0]})
    found = dszog.minimize(
        counted.fun,
        problem.x0,
        parts,
        bounds=Bounds(problem.lower, problem.upper),
        method=method,
        max_queries=counted.most + POINTS * (problem.dim + 1) * problem.n_equal,
        constraint_tol=FEASIBLE,
        on_failure="resample",
        callback=watch,
        seed=0,
    )
    counted.judge(found.x, problem.fun(found.x), problem.constraints(found.x))


TRIED: dict[str, Solver] = {OURS: _ours} | SOLVERS


def run(problem: ForeignProblem, solver: str) -> dict[str, Any]:
    """Let a solver try a problem; return what came of it."""
    most = POINTS * (problem.dim + 1) * (1 + problem.m)
    counted, why = Counted(problem, most, SECONDS, FEASIBLE), ""
    with quietly():
        try:
            TRIED[solver](counted)
        except (ValueError, ArithmeticError, AssertionError) as error:
            why = f"{type(error).__name__}: {error}"  # the solver's own failure
    return {
        "problem": problem.name,
        "class": problem.kind,
        "dim": problem.dim,
        "m": problem.m,
        "n_equal": problem.n_equal,
        "solver": solver,
        "n_values": counted.n_values,
        "n_constraint_values": counted.n_constraint_values,
        "seconds": counted.seconds,
        "best": counted.best,
        "why": why,
    }


def judged(runs: Sequence[dict[str, Any]]) -> None:
    """Say of all runs of a problem what the best of them took to solve it."""
    values = [value for run in runs for value, *_ in run["best"]]
    lowest = min(values, default=-np.inf)
    target = lowest + GAP * max(abs(lowest), LEAST)
    for made in runs:
        hits = [counts for value, *counts in made["best"] if value <= target]
        made["solved_after"] = hits[0] if hits else None


# ----------------------------------------------------------------------------- measures


def suites(effort: Effort, half: Half = "reporting") -> Iterator[Row]:
    """Solve problems of CUTEst and bbob-constrained, beside other solvers."""
    runs: list[dict[str, Any]] = []
    for problem in sample(half, FULL_SAMPLE if effort.is_full else QUICK_SAMPLE):
        made = [run(problem, OURS)]
        for solver in SOLVERS:
            name = f"{problem.kind} {problem.name} {solver}".replace(">=", "from")
            path = effort.output / "suites" / f"{name.replace(' ', '-')}.json"
            made.append(kept(path, partial(run, problem, solver)))
        judged(made)
        runs += made
    if not runs:
        what = f"needs {' and '.join(PACKAGES.values())}"
        yield Row(what=what, figure=None, details={"outcome": "not installed"})
        return
    for kind in CLASSES:
        yield from _rows(kind, [run for run in runs if run["class"] == kind])
    draw_profiles(runs, effort.output / f"suites-{half}.svg")


def suites_choosing(effort: Effort) -> Iterator[Row]:
    """Solve those of the half that constants are chosen on."""
    yield from suites(effort, "choosing")


def _rows(kind: str, runs: Sequence[dict[str, Any]]) -> Iterator[Row]:
    """Return a row for each solver, and of what ours takes where there are many."""
    solved = {
        solver: {
            run["problem"]: run["solved_after"]
            for run in runs
            if run["solver"] == solver and run["solved_after"] is not None
        }
        for solver in TRIED
    }
    names = {run["problem"] for run in runs}
    for solver in TRIED:
        yield Row(
            what=f"{kind}: {solver}",
            figure=len(solved[solver]),
            unit=f"of {len(names)}",
            bar=len(solved[PEER]) if solver == OURS and names else None,
            direction="at least",
            details={"not_solved": " ".join(sorted(names - set(solved[solver])))},
        )
    both = solved[OURS].keys() & solved[PEER].keys()
    if kind == "m >= 100" and both:
        yield Row.of(
            f"{kind}: constraint values to the solution over SLSQP's",
            [solved[OURS][name][1] / solved[PEER][name][1] for name in sorted(both)],
            unit="x",
            bar=MOST_VALUES,
        )


def draw_profiles(runs: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the share of problems solved over the values used, for each class."""
    from matplotlib.figure import Figure

    kinds = [kind for kind in CLASSES if any(run["class"] == kind for run in runs)]
    figure = Figure(figsize=(3.4 * len(kinds), 3.4), layout="constrained")
    for k, kind in enumerate(kinds):
        axes = figure.add_subplot(1, len(kinds), k + 1)
        of_kind = [run for run in runs if run["class"] == kind]
        n = len({run["problem"] for run in of_kind})
        for solver in TRIED:
            used = sorted(
                sum(run["solved_after"]) / ((1 + run["m"]) * (1 + run["dim"]))
                for run in of_kind
                if run["solver"] == solver and run["solved_after"] is not None
            )
            shares = np.arange(len(used) + 1) / n
            ends = [*shares, shares[-1]]
            axes.step([0.01, *used, POINTS], ends, where="post", label=solver)
        axes.set(xscale="log", xlim=(0.1, POINTS), ylim=(0, 1.02))
        axes.set(title=f"{kind} ({n})", xlabel="values / (functions (d + 1))")
        axes.grid(alpha=0.3)
    figure.axes[0].set_ylabel("share of problems solved")
    figure.axes[0].legend(fontsize="small")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
