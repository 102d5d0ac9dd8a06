"""Randomness as a function: the same key always gives the same draws."""

from __future__ import annotations

import secrets

import numpy as np

from dszog._arrays import IntArray

STEP = 0
"""Purpose of the draws a method makes in ``ask``."""
CHECK = 1
"""Purpose of the draws that verify a point."""


def stream(seed: int, iteration: int, purpose: int = STEP) -> np.random.Generator:
    """Return the generator that belongs to one iteration of one run.

    It is a Philox generator keyed by ``(seed, iteration)`` whose counter starts in a
    region of its own for each ``purpose``. No generator is ever kept or passed on: who
    asks twice draws the same numbers twice.

    Examples
    --------
    >>> bool(stream(1, 7).random() == stream(1, 7).random())
    True
    >>> bool(stream(1, 7).random() == stream(1, 8).random())
    False
    """
    return np.random.Generator(
        np.random.Philox(key=seed + (iteration << 64), counter=purpose << 192)
    )


def fresh_seed() -> int:
    """Draw a seed for a run whose caller gave none; it is reported in the result."""
    return secrets.randbits(32)


def distinct_indices(rng: np.random.Generator, n: int, size: int) -> IntArray:
    """Draw `size` different indices uniformly from ``range(n)``, in sorted order.

    Memory and time are those of `size`, also for ``n = 10**12``.

    Examples
    --------
    >>> distinct_indices(stream(0, 0), 3, 3)
    array([0, 1, 2])
    """
    drawn: IntArray = rng.choice(n, size=size, replace=False, shuffle=False)
    drawn.sort()
    return drawn
