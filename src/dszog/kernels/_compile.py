"""How a kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call, keep the result on disk, release the lock in it.

    Where no folder can be written to, every process compiles for itself.
    """
    kernel: Callable[P, R]
    try:
        kernel = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:
        kernel = numba.njit(nogil=True)(function)
    return kernel
