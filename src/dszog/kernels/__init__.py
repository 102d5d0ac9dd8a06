"""The hot loops: one set of functions, written twice.

``plain`` says in plain NumPy what each function does; ``compiled`` does the same in
compiled loops, one pass where NumPy makes many small calls. Both have the same
functions with the same signatures, and :func:`chosen` returns the one that is used:
nothing outside this folder asks which. ``compiled`` alone makes all draws of an
iteration, and both of its steps, in one call each (``AT_ONCE``). Numbers and draws are
the same to the bit, results agree to rounding. Loops are compiled at their first call
and kept on disk. ``DSZOG_KERNELS=numpy`` in the environment does without them.
"""

from __future__ import annotations

import os
from functools import cache
from types import ModuleType

from dszog.contract.interrupts import held_interrupts
from dszog.kernels import plain

SWITCH = "DSZOG_KERNELS"
"""The environment variable that chooses "numba" (the default) or "numpy"."""


@cache
def chosen() -> ModuleType:
    """Return the functions that are used, compiled where Numba is installed."""
    if os.environ.get(SWITCH, "numba") == "numpy":
        return plain
    try:
        with held_interrupts():
            import numba
    except ImportError:
        return plain
    if numba.config.DISABLE_JIT:
        return plain
    from dszog.kernels import compiled

    compiled.say_what_takes_time()
    return compiled
