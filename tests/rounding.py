"""Run tests with other rounding: another BLAS kernel, and NumPy's plain loops.

    python -m tests.rounding PYTEST_ARGUMENTS

With another kernel of OpenBLAS sums differ in their last digits, as they do on another
machine, and what hangs on these digits alone shows. Where NumPy and SciPy were built
with another BLAS, or on a processor that is no x86, OPENBLAS_CORETYPE changes nothing.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import numpy as np

# The kernels, and what NumPy calls a processor that can run them (old names last); on
# another one they would end the process.
KERNELS = {
    "SkylakeX": {"X86_V4", "AVX512_SKX"},
    "Haswell": {"X86_V3", "AVX2"},
    "Zen": {"X86_V3", "AVX2"},
    "Sandybridge": {"X86_V3", "AVX"},
    "Prescott": {"X86_V2", "SSE3"},
}


def loops() -> tuple[set[str], list[str]]:
    """Return all sets of instructions NumPy uses here, and those it can do without."""
    config: Any = np.show_config(mode="dicts")
    known = config["SIMD Extensions"]
    found = list(known.get("found", []))
    return {*known.get("baseline", []), *found}, found


def kernels() -> list[str]:
    """Return the kernels that this processor can run, the newest first."""
    has, _ = loops()
    return [name for name, needed in KERNELS.items() if needed & has]


def other_rounding() -> dict[str, str]:
    """Return an environment with a kernel that OpenBLAS would not choose here."""
    _, found = loops()
    return {
        "OPENBLAS_CORETYPE": "Haswell" if "SkylakeX" in kernels() else "Prescott",
        "NPY_DISABLE_CPU_FEATURES": " ".join(found),
    }


def main() -> None:
    """Put pytest in the place of this process."""
    added = other_rounding()
    print(*(f"{name}={value}" for name, value in added.items()), flush=True)
    command = [sys.executable, "-m", "pytest", *sys.argv[1:]]
    os.execve(sys.executable, command, os.environ | added)


if __name__ == "__main__":
    main()
