"""How much memory a run takes above its data: measured in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import dszog
from dszog_bench.rotated import rotated_problem

UNIT = 1024 if sys.platform != "darwin" else 1  # bytes in a unit of ru_maxrss
MEGABYTE = 2**20


def peak_megabytes() -> float:
    """Return the largest resident set of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT / MEGABYTE


def resident_megabytes() -> float:
    """Return the resident set of this process now; its peak where that is not told."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return peak_megabytes()
    return pages * resource.getpagesize() / MEGABYTE


def memory_above_data(m: int, n_iterations: int) -> float:
    """Return the megabytes that a run on `m` constraints adds to its data.

    What the run loads or compiles for itself is in it.
    """
    command = [sys.executable, "-m", "dszog_bench.memory", str(m), str(n_iterations)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def _main(m: int, n_iterations: int) -> None:
    problem = rotated_problem(m)
    before = resident_megabytes()
    dszog.minimize(problem, max_iterations=n_iterations, seed=0)
    sys.stdout.write(json.dumps(peak_megabytes() - before))


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
