"""How a kernel is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

import numba

P = ParamSpec("P")
R = TypeVar("R")


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Compile at the first call, keep the result on disk, release the lock in it."""
    kernel: Callable[P, R] = numba.njit(cache=True, nogil=True)(function)
    return kernel
