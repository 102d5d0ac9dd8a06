"""How much memory a run takes above its data: measured in a process of its own."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path
from typing import Literal

import dszog
from dszog_bench.rotated import rotated_problem

UNIT = 1024 if sys.platform != "darwin" else 1  # bytes in a unit of ru_maxrss


def megabytes(field: Literal["VmHWM", "VmRSS"]) -> float:
    """Return the largest resident set of this process so far, or that of now."""
    # On Linux from the kernel's status of the process: ``ru_maxrss`` there begins at
    # what the parent held when it started this one. Elsewhere the largest one stands
    # for both.
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT / 2**20
    return int(status.split(f"{field}:")[1].split()[0]) / 1024  # from kB


def memory_above_data(m: int, n_iterations: int) -> float:
    """Return the megabytes that a run on `m` constraints adds to its data."""
    # What the run loads or compiles for itself is in it.
    command = [sys.executable, "-m", "dszog_bench.memory", str(m), str(n_iterations)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout))


def _main(m: int, n_iterations: int) -> None:
    problem = rotated_problem(m)
    before = megabytes("VmRSS")
    dszog.minimize(problem, method="dszog", max_iterations=n_iterations, seed=0)
    sys.stdout.write(json.dumps(megabytes("VmHWM") - before))


if __name__ == "__main__":
    _main(int(sys.argv[1]), int(sys.argv[2]))
