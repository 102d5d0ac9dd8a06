"""The hot loops as compiled kernels, where Numba is installed.

Each kernel does in one pass what plain NumPy does in many small calls, and has its
plain form as the reference, which the kernel's file names: ``_philox`` are the random
numbers of an iteration, ``_draws`` is what it asks, ``_steps`` what it learns from the
answers, ``_rows`` the scores of data. Numbers and draws are the same to the bit,
results agree to rounding. Kernels are compiled at their first call and kept on disk.
``DSZOG_KERNELS=numpy`` in the environment does without them.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dszog.contract.interrupts import held_interrupts

if TYPE_CHECKING:
    from types import ModuleType

SWITCH = "DSZOG_KERNELS"
"""The environment variable that chooses "numba" (the default) or "numpy"."""


@cache
def draws() -> ModuleType | None:
    """Return the kernels that draw; None where plain NumPy has to do."""
    if not is_on():
        return None
    from dszog.kernels import _draws

    return _explained(_draws)


@cache
def philox() -> ModuleType | None:
    """Return the kernels of random numbers; None where plain NumPy has to do."""
    if not is_on():
        return None
    try:
        from dszog.kernels import _philox
    except ImportError:  # a Numba that keeps its tables elsewhere
        return None
    return _explained(_philox)


@cache
def steps() -> ModuleType | None:
    """Return the kernels of steps; None where plain NumPy has to do."""
    if not is_on():
        return None
    from dszog.kernels import _steps

    return _explained(_steps)


@cache
def rows() -> ModuleType | None:
    """Return the kernels of scores of rows; None where plain NumPy has to do."""
    if not is_on():
        return None
    from dszog.kernels import _rows

    return _explained(_rows)


@cache
def is_on() -> bool:
    """Whether kernels are used: Numba is installed and was not switched off."""
    if os.environ.get(SWITCH, "numba") == "numpy":
        return False
    try:
        with held_interrupts():
            import numba
    except ImportError:
        return False
    return not numba.config.DISABLE_JIT


def _explained(kernels: ModuleType) -> ModuleType:
    """Say why the first call takes seconds, if nothing is kept on disk yet."""
    kept = kernels.FIRST.stats.cache_path  # None where nothing can be kept
    name = kernels.__name__.rsplit(".", 1)[-1]
    if kept is None or not any(Path(kept).glob(f"{name}.*.nbi")):
        logging.getLogger("dszog").warning(
            "Compiling the kernels of %s, once; later runs find them on disk. "
            "%s=numpy does without them.",
            kernels.__name__,
            SWITCH,
        )
    return kernels
