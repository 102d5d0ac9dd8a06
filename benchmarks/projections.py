"""How long a projection on the pairs takes, by form and solver, in one run.

The set is that of the relaxed pairwise problem: about 62,500 pairs in 50 variables.
``lifted`` solvers get a row per sample, ``full`` ones a row per pair ::

    python benchmarks/projections.py

Every answer is compared with that of the first solver. Times are medians over points,
of cold calls (nothing is known) and warm ones (a nearby point was projected before).
"""

import argparse
import json
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np

from dszog.subproblems import Polyhedron
from dszog_bench.relaxed import MARGIN, relaxed_pairwise_data

OUTPUT = Path(__file__).parent / "results" / "projections.json"
SOLVERS = ("generation", "daqp", "piqp")
FORMS = ("lifted", "full")


def timed(call: Any) -> tuple[Any, float]:
    """Return what a call returns, and its seconds."""
    before = time.perf_counter()
    answer = call()
    return answer, time.perf_counter() - before


def measure(domain: Polyhedron, points: Any, nearby: Any) -> dict[str, Any]:
    """Project all points, cold and warm."""
    cold, warm, answers = [], [], []
    for point, moved in zip(points, nearby, strict=True):
        answer, seconds = timed(lambda point=point: domain.project(point))
        cold.append(seconds)
        answers.append(answer.point)
        hint = answer.active
        _, seconds = timed(lambda moved=moved, hint=hint: domain.project(moved, hint))
        warm.append(seconds)
    return {
        "cold": statistics.median(cold),
        "warm": statistics.median(warm),
        "answers": np.array(answers),
    }


def main() -> None:
    """Measure every form and solver, print the table, store it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--points", type=int, default=7)
    parser.add_argument("--margin", type=float, default=-MARGIN)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    X, y, _, _ = relaxed_pairwise_data(0)
    rng = np.random.Generator(np.random.Philox(key=0))
    points = rng.standard_normal((arguments.points, X.shape[1]))
    nearby = points + 0.01 * rng.standard_normal(points.shape)
    rows: dict[str, Any] = {}
    reference = None
    for form in FORMS:
        for solver in SOLVERS:
            domain = Polyhedron.pairwise(
                X[y > 0], X[y < 0], arguments.margin, form=form, solver=solver
            )
            domain.project(points[0])  # what is made once is made now
            row = measure(domain, points, nearby)
            answers = row.pop("answers")
            reference = answers if reference is None else reference
            row["largest_difference"] = float(np.abs(answers - reference).max())
            rows[f"{form}, {solver}"] = row
            print(f"{form}, {solver}: {row}", flush=True)
    ratios = {}
    for kind in ("cold", "warm"):
        fastest = {
            form: min(row[kind] for name, row in rows.items() if name.startswith(form))
            for form in FORMS
        }
        ratios[kind] = fastest["full"] / fastest["lifted"]
        print(f"fastest full over fastest lifted, {kind}: {ratios[kind]:.1f}")
    stored = {
        "python": platform.python_version(),
        "margin": arguments.margin,
        "n_points": arguments.points,
        "seconds": rows,
        "full_over_lifted": ratios,
    }
    arguments.output.parent.mkdir(exist_ok=True)
    arguments.output.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
