"""A trillion pair constraints: iterations, time, and memory above the data.

Two million generated rows make 10^12 pairs ::

    python benchmarks/trillion_pairs.py

Memory is the peak of the resident set during the run less that just before it, so the
rows themselves are not counted.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import dszog

MEGABYTE = 1024  # kilobytes, as the kernel counts


def resident(field: str) -> float:
    """Return a field of this process's status, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) / MEGABYTE


def trillion_pairs(n_each: int, dim: int) -> dszog.Problem:
    """Return a linear classification problem with ``n_each**2`` pair constraints."""
    rng = np.random.default_rng(0)
    truth = rng.standard_normal(dim)
    truth /= np.linalg.norm(truth)
    X = rng.standard_normal((2 * n_each, dim))
    y = np.repeat([1.0, -1.0], n_each)
    # Each row is mirrored to the side of its label, but for one in ten or so.
    scores = X @ truth + 0.3 * rng.standard_normal(2 * n_each)
    X *= (np.sign(scores) * y)[:, np.newaxis]
    X *= 2.0 / np.sqrt(dim)

    def values(points: Any, indices: Any) -> Any:
        return 1.0 - np.exp(-np.square(y[indices] - points @ X[indices].T))

    pairs = dszog.Constraints.pairwise(X[:n_each], X[n_each:], margin=-0.3)
    return dszog.Problem(dszog.Losses(values, len(y)), pairs.black_box(), dim)


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows-per-class", type=int, default=1_000_000)
    parser.add_argument("--dim", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=1000)
    arguments = parser.parse_args()
    problem = trillion_pairs(arguments.rows_per_class, arguments.dim)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here
    started = time.perf_counter()
    result = dszog.minimize(problem, max_iterations=arguments.iterations, seed=0)
    seconds = time.perf_counter() - started
    above = resident("VmHWM") - before
    print(f"constraints        {problem.size.n_constraints:,}")
    print(f"iterations         {result.nit:,} in {seconds:.1f} s")
    print(f"memory above data  {above:.0f} MB (data {before:.0f} MB)")
    print(f"touched weights    {len(result.weights[0]):,}")
    print(result.message)
    sys.exit(0 if above < 300 else 1)


if __name__ == "__main__":
    main()
