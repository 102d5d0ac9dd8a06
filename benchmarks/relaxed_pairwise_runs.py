"""`dszog.minimize` on the relaxed pairwise problem, against its known optimum.

Untuned defaults beside the paper's constant-step settings, all by evaluations alone
and with the same number of queries, over several data and run seeds ::

    python benchmarks/relaxed_pairwise_runs.py

The gap is that of the objective to the constrained optimum of `dszog_bench.relaxed`, in
percent, at the returned point; the violation is the worst over all pairs. A negative
gap is bought by violation.
"""

import argparse
import json
import platform
import statistics
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import dszog
from dszog_bench.relaxed import load_optimum, relaxed_pairwise_problem

OUTPUT = Path(__file__).parent / "results" / "relaxed_pairwise_runs.json"

SETTINGS: dict[str, dszog.DSZOG | str] = {
    "defaults": "dszog",
    "uniform": dszog.DSZOG(distribution="uniform"),
    **{
        f"paper, penalty {penalty:g}, a = b = {average:g}": dszog.DSZOG.as_published(
            penalty=penalty, averaging=average, dual_averaging=average
        )
        for penalty, average in product((0.1, 1.0, 10.0), (0.1, 0.9))
    },
    "paper, penalty 1, b = 0.1, one direction": dszog.DSZOG.as_published(
        averaging=0.1, n_directions=1
    ),
}


def solve(setting: str, data_seed: int, run_seed: int, max_queries: int) -> Any:
    """Run once; return what the table and the JSON file need."""
    started = time.perf_counter()
    result = dszog.minimize(
        relaxed_pairwise_problem(data_seed),
        method=SETTINGS[setting],
        max_queries=max_queries,
        seed=run_seed,
    )
    optimum = load_optimum(data_seed).value
    return {
        "setting": setting,
        "data_seed": data_seed,
        "run_seed": run_seed,
        "objective": result.fun,
        "gap_percent": 100.0 * (result.fun - optimum) / optimum,
        "worst_violation": result.maxcv,
        "share_violated": result.certificate.feasibility.share_bound,
        "queries": result.nfev + result.ncev,
        "iterations": result.nit,
        "success": result.success,
        "status": result.status.name,
        "message": result.message,
        "seconds": time.perf_counter() - started,
    }


def summary(rows: list[Any]) -> str:
    """Return the table over all settings as Markdown."""
    lines = [
        "| setting | median gap (absolute), % | largest | median worst violation | "
        "largest | success | status |",
        "|---|---|---|---|---|---|---|",
    ]
    for setting in dict.fromkeys(row["setting"] for row in rows):
        mine = [row for row in rows if row["setting"] == setting]
        gaps = [abs(row["gap_percent"]) for row in mine]
        violations = [row["worst_violation"] for row in mine]
        lines.append(
            f"| {setting} | {statistics.median(gaps):.2f} | {max(gaps):.2f} | "
            f"{statistics.median(violations):.4f} | {max(violations):.4f} | "
            f"{sum(row['success'] for row in mine)} of {len(mine)} | "
            f"{', '.join(sorted({row['status'].lower() for row in mine}))} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run all settings and seeds, print the table, store every run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-seeds", type=int, default=5)
    parser.add_argument("--run-seeds", type=int, default=3)
    parser.add_argument("--max-queries", type=int, default=3_000_000)
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS))
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    cells = list(
        product(
            arguments.settings,
            range(arguments.data_seeds),
            range(arguments.run_seeds),
            [arguments.max_queries],
        )
    )
    with ProcessPoolExecutor(arguments.jobs) as pool:
        rows = list(pool.map(solve, *zip(*cells, strict=True)))
    table = summary(rows)
    print(table)
    versions = {
        "dszog": dszog.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "sklearn": sklearn.__version__,
        "python": platform.python_version(),
    }
    arguments.output.write_text(
        json.dumps({"versions": versions, "runs": rows}, indent=1) + "\n"
    )
    arguments.output.with_suffix(".md").write_text(table + "\n")


if __name__ == "__main__":
    main()
