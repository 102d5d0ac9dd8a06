"""All nine methods on the relaxed pairwise problem, at equal time and equal queries.

About 62,500 pairs, the objective known by its values (by its gradient too for ``fcgs``,
which needs it). DSZOG sees the pairs as a black box as well; the eight others are given
them as linear constraints, listed (``full``) or not (``lifted``), within a ball of
radius 10 ::

    python benchmarks/nine_methods.py

Steps: for each method the best of the grid of the paper's comparison (batches of 128)
and the method's own defaults, chosen on another draw of the data by the least
``objective + 30 * violation**2``. A run that the time cuts short before its queries are
used says so.
"""

import argparse
import json
import platform
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import dszog
from dszog_bench.relaxed import MARGIN, load_optimum, relaxed_pairwise_data

OUTPUT = Path(__file__).parent / "results" / "nine_methods"
GRID = (1e-2, 1e-3, 1e-4)
MORE = {"acczomda": (0.1,)}  # a step of its own paper beside the grid
PENALTY = 30.0
TUNING_DATA, DATA = 1, 0


def problem(data_seed: int, *, black_box: bool, gradient: bool) -> dszog.Problem:
    """Return the problem with as much known as the method is given."""
    X, y, _, _ = relaxed_pairwise_data(data_seed)

    def values(points: Any, indices: Any) -> Any:
        return 1.0 - np.exp(-np.square(y[indices] - points @ X[indices].T))

    def gradients(point: Any, indices: Any) -> Any:
        gap = y[indices] - X[indices] @ point
        return (-2.0 * gap * np.exp(-np.square(gap)))[:, np.newaxis] * X[indices]

    losses = dszog.Losses(values, len(y), gradient=gradients if gradient else None)
    pairs: Any = dszog.Constraints.pairwise(X[y > 0], X[y < 0], margin=-MARGIN)
    return dszog.Problem(losses, pairs.black_box() if black_box else pairs, X.shape[1])


def settings(name: str) -> dict[str, Any]:
    """Return the settings that are tried for a method, by a short name."""
    if name == "dszog":
        return {"defaults": dszog.DSZOG()}
    kind: Any = dszog.METHODS[name]
    more: dict[str, Any] = {}
    if name in ("fzfw", "fzcgs", "fcgs", "accszofw"):
        more = {"n_losses": 500}
    steps = (*MORE.get(name, ()), *GRID)
    tried = {f"step {step:g}": kind.for_comparison(step, **more) for step in steps}
    return {"defaults": kind()} | tried


def solve(name: str, method: Any, form: str, data_seed: int, **limits: Any) -> Any:
    """Run a method once."""
    if name != "dszog":
        method = replace(method, form=form, ball="l2", ball_radius=10.0)
    made = problem(data_seed, black_box=name == "dszog", gradient=name == "fcgs")
    return dszog.minimize(made, method=method, seed=0, **limits)


def choose(name: str, seconds: float) -> str:
    """Return the setting that does best on other data."""
    merits = {}
    for label, method in settings(name).items():
        result = solve(name, method, "lifted", TUNING_DATA, max_time=seconds)
        merits[label] = result.fun + PENALTY * result.maxcv**2
    return min(merits, key=lambda label: merits[label])


def row(name: str, form: str, setting: str, limit: str, **limits: Any) -> Any:
    """Run a method and return its line of the table."""
    started = time.perf_counter()
    result = solve(name, settings(name)[setting], form, DATA, **limits)
    seconds = time.perf_counter() - started
    optimum = load_optimum(DATA).value
    costs = result.costs
    return {
        "method": name,
        "form": form,
        "setting": setting,
        "limit": limit,
        "ended_by": result.status.name,
        "seconds": seconds,
        "objective": result.fun,
        "gap_percent": 100.0 * (result.fun - optimum) / optimum,
        "worst_violation": result.maxcv,
        "iterations": result.nit,
        "loss_queries": costs.n_loss_queries,
        "constraint_queries": costs.n_constraint_queries,
        "rows_respected": costs.n_rows,
        "oracle_calls": costs.n_oracle_calls,
        "projections": costs.n_projections,
        "inner": costs.n_inner,
        "share_estimate": costs.time_estimate / costs.time,
        "share_subproblem": costs.time_subproblem / costs.time,
        "message": result.message,
    }


def table(rows: list[Any]) -> str:
    """Return the rows as Markdown, one table per limit."""
    parts = []
    for limit in dict.fromkeys(row["limit"] for row in rows):
        parts += [
            f"### {limit}",
            "",
            "| method | pairs | setting | objective | gap, % | worst violation | "
            "iterations | loss queries | constraint queries | rows in subproblems | "
            "seconds | of it in subproblems | ended by |",
            "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        ]
        for one in rows:
            if one["limit"] != limit:
                continue
            parts.append(
                f"| {one['method']} | {one['form']} | {one['setting']} | "
                f"{one['objective']:.4f} | {one['gap_percent']:.2f} | "
                f"{one['worst_violation']:.1e} | {one['iterations']:,} | "
                f"{one['loss_queries']:.2e} | {one['constraint_queries']:.2e} | "
                f"{one['rows_respected']:.1e} | {one['seconds']:.1f} | "
                f"{100 * one['share_subproblem']:.0f} % | "
                f"{one['ended_by'].lower().replace('_', ' ')} |"
            )
        parts.append("")
    return "\n".join(parts)


def main() -> None:
    """Choose settings, run everything, print and store the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--queries", type=int, default=3_000_000)
    parser.add_argument("--longest", type=float, default=60.0)
    parser.add_argument("--tuning-seconds", type=float, default=3.0)
    parser.add_argument("--methods", nargs="+", default=list(dszog.METHODS))
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.methods:
        setting = choose(name, arguments.tuning_seconds)
        for form in ("none",) if name == "dszog" else ("lifted", "full"):
            for limit, limits in (
                (
                    f"After {arguments.seconds:g} seconds",
                    {"max_time": arguments.seconds},
                ),
                (
                    f"After {arguments.queries:,} queries (at most "
                    f"{arguments.longest:g} seconds)",
                    {"max_queries": arguments.queries, "max_time": arguments.longest},
                ),
            ):
                rows.append(row(name, form, setting, limit, **limits))
                print({k: v for k, v in rows[-1].items() if k != "message"}, flush=True)
    text = (
        f"Optimum {load_optimum(DATA).value:.4f}; the origin, where every run starts, "
        f"{solve('dszog', dszog.DSZOG(), 'none', DATA, max_iterations=1).fun:.4f}.\n\n"
        f"{table(rows)}"
    )
    print(text)
    stored = {
        "python": platform.python_version(),
        "numpy": np.__version__,
        "arguments": {k: str(v) for k, v in vars(arguments).items() if k != "output"},
        "rows": rows,
    }
    arguments.output.parent.mkdir(exist_ok=True)
    arguments.output.with_suffix(".json").write_text(json.dumps(stored, indent=1))
    arguments.output.with_suffix(".md").write_text(text)


if __name__ == "__main__":
    main()
