"""How much memory a run takes above its data: measured in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys

import dszog
from dszog_bench.rotated import rotated_problem

KILOBYTES = 1 if sys.platform != "darwin" else 1024  # in a unit of ru_maxrss


def peak_megabytes() -> float:
    """Return the largest resident set of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return usage / KILOBYTES / 1024


def memory_above_data(m: int, n_iterations: int) -> float:
    """Return the megabytes that a run on `m` constraints adds to its data."""
    command = [sys.executable, "-m", "dszog_bench.memory", str(m), str(n_iterations)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def _main(m: int, n_iterations: int) -> None:
    problem = rotated_problem(m)
    # What is loaded or compiled once is not the run's: a first one is made before.
    dszog.minimize(rotated_problem(10_000), max_iterations=50, seed=0)
    before = peak_megabytes()
    dszog.minimize(problem, max_iterations=n_iterations, seed=0)
    sys.stdout.write(json.dumps(peak_megabytes() - before))


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
