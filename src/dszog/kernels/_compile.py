"""How a kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R], reorders: bool = False) -> Callable[P, R]:
    """Compile at the first call, keep the result on disk, release the lock in it."""
    # Where no folder can be written to, every process compiles for itself. A kernel
    # that reorders may add up in another order on another machine, as matrix products
    # do.
    kernel: Callable[P, R]
    options = {"nogil": True, "fastmath": {"reassoc", "nsz"} if reorders else False}
    try:
        kernel = numba.njit(cache=True, **options)(function)
    except RuntimeError:
        kernel = numba.njit(**options)(function)
    return kernel
