"""What runs reach: by method, and with many variables."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

import dszog
from dszog.maths.subproblems import Polyhedron
from dszog_bench.records import Effort, Row
from dszog_bench.relaxed import MARGIN, RelaxedPairs

# ------------------------------------------------------------ all methods, one problem

STEPS = (1e-2, 1e-3, 1e-4)  # the grid of the paper's comparison
MORE_STEPS = {"acczomda": (0.1,)}  # a step of its own paper beside the grid
TAKES_SIZE = ("fzfw", "fzcgs", "fcgs", "accszofw")
TUNING_DATA, DATA = 1, 0
NAMES = tuple(dszog.METHODS)
BLACK_BOX = ("dszog", "sampled_sqp")  # by values alone, with their defaults


def methods(effort: Effort) -> Iterator[Row]:
    """Run all methods on the relaxed pairs, at equal time and equal queries."""
    # DSZOG and the sampled SQP see the pairs as a black box; the others are given them
    # as linear constraints, listed (full) or not (lifted), within a ball of radius 10,
    # and `fcgs` gradients. Settings: the best of the defaults and the grid on another
    # draw.
    tried, judged = RelaxedPairs(TUNING_DATA), RelaxedPairs(DATA)
    time_alone, longest = 8.0 * effort.share, 20.0 * effort.share
    queries = max(effort.of(3_000_000), 100_000)
    limits: dict[str, dict[str, Any]] = {
        f"{time_alone:g} s": {"max_time": time_alone},
        f"{queries:,} queries": {"max_queries": queries, "max_time": longest},
    }

    def merit(name: str, method: Any) -> float:
        found = _solve(tried, name, method, "lifted", max_time=1.5 * effort.share)
        return float(found.fun + 30.0 * found.maxcv**2)

    for name in NAMES:
        settings = _settings(name)
        merits = {label: merit(name, method) for label, method in settings.items()}
        best = min(merits, key=lambda label: merits[label])
        for form in ("black box",) if name in BLACK_BOX else ("lifted", "full"):
            for limit, allowed in limits.items():
                before = time.perf_counter()
                found = _solve(judged, name, settings[best], form, **allowed)
                elapsed = time.perf_counter() - before
                yield Row(
                    what=f"{name}, {form}, {limit}: gap to the optimum",
                    figure=100.0 * (found.fun / judged.known.value - 1.0),
                    unit="%",
                    details=_how(found, elapsed) | {"setting": best},
                )


def _settings(name: str) -> dict[str, Any]:
    """Return the settings that are tried for a method, by a short name."""
    kind: Any = dszog.METHODS[name]
    if name in BLACK_BOX:
        return {"defaults": kind()}
    more = {"n_losses": 500} if name in TAKES_SIZE else {}
    steps = (*MORE_STEPS.get(name, ()), *STEPS)
    tried = {f"step {step:g}": kind.for_comparison(step, **more) for step in steps}
    return {"defaults": kind()} | tried


def _solve(
    pairs: RelaxedPairs, name: str, method: Any, form: str, **limits: Any
) -> Any:
    if name not in BLACK_BOX:
        method = replace(method, form=form, ball="l2", ball_radius=10.0)
    problem = pairs.known_as(black_box=name in BLACK_BOX, gradient=name == "fcgs")
    return dszog.minimize(problem, method=method, seed=0, **limits)


def _how(found: Any, elapsed: float) -> dict[str, Any]:
    costs = found.costs
    return {
        "worst_violation": found.maxcv,
        "iterations": found.nit,
        "loss_queries": costs.n_loss_queries,
        "constraint_queries": costs.n_constraint_queries,
        "rows_in_subproblems": costs.n_rows,
        "seconds": elapsed,
        "share_in_subproblems": costs.time_subproblem / costs.time,
        "ended_by": found.status.name.lower().replace("_", " "),
    }


def projections(effort: Effort) -> Iterator[Row]:
    """Time projections on the pairs, lifted and listed."""
    # Cold where nothing is known, warm where a nearby point was projected before.
    pairs = RelaxedPairs()
    rng = np.random.Generator(np.random.Philox(key=0))
    points = rng.standard_normal((max(effort.of(7), 2), len(pairs.start)))
    nearby = points + 0.01 * rng.standard_normal(points.shape)
    first: Any = None
    for form in ("lifted", "full"):
        domain = Polyhedron.pairwise(
            pairs.positives, pairs.negatives, -MARGIN, form=form
        )
        domain.project(points[0])  # what is made once is made now
        times: dict[str, list[float]] = {"cold": [], "warm": []}
        found = []
        for point, moved in zip(points, nearby, strict=True):
            started = time.perf_counter()
            cold = domain.project(point)
            between = time.perf_counter()
            domain.project(moved, cold.active)
            times["cold"].append(between - started)
            times["warm"].append(time.perf_counter() - between)
            found.append(cold.point)
        first = found if first is None else first
        gap = float(np.abs(np.subtract(found, first)).max())
        for kind, values in times.items():
            what = f"projection, {form}, {kind}"
            yield Row.of(what, values, unit="s", details={"difference": gap})


# ----------------------------------------------------------------------- many variables


DIMS = (50, 100, 200)


def variables(effort: Effort) -> Iterator[Row]:
    """Look how far runs get with 50 to 200 variables, by their number of iterations."""
    # The nearest point, in the mean of squares, within 50,000 random half-spaces. Every
    # answer is judged by its objective and by the worst of *all* constraints.
    seeds = range(effort.n_seeds)
    for dim in DIMS:
        for full in (2000, 50 * dim, 100 * dim):
            n = max(effort.of(full), 100)
            found = [_nearest(dim, seed, max_iterations=n) for seed in seeds]
            yield Row.of(
                f"{dim} variables, {n:,} iterations: objective",
                [result.fun for result, _ in found],
                details={
                    "objectives": _listed(result.fun for result, _ in found),
                    "worst_violations": _listed(worst for _, worst in found),
                    "successes": sum(bool(result.success) for result, _ in found),
                },
            )


def _nearest(dim: int, seed: int, m: int = 50_000, **budget: Any) -> tuple[Any, float]:
    rng = np.random.default_rng([dim, seed])
    rows = rng.normal(size=(m, dim)) / np.sqrt(dim)
    target = rng.normal(size=dim)
    result = dszog.minimize(
        lambda x: float(np.mean((x - target) ** 2)),
        np.zeros(dim),
        dszog.Constraints(lambda points, j: points @ rows[j].T - 1.0, m),
        method="dszog",
        seed=seed,
        **budget,
    )
    return result, float(max((rows @ result.x - 1.0).max(), 0.0))


def _listed(values: Any) -> str:
    return "; ".join(f"{value:.3f}" for value in values)
