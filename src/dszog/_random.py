"""Randomness as a function: the same key always gives the same draws."""

from __future__ import annotations

import secrets
from typing import Any, cast

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from dszog._arrays import IntArray

STEP = 0
"""Purpose of the draws a method makes in ``ask``."""
CHECK = 1
"""Purpose of the draws that verify a point."""
EXACT = 2**53
"""A random float is a multiple of the inverse of this."""


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
    if purpose == STEP:  # once an iteration, so worth a third of the time
        key = np.array((seed, iteration), dtype=np.uint64)
        return np.random.Generator(np.random.Philox(cast(Any, _Key(key))))
    return np.random.Generator(
        np.random.Philox(key=seed + (iteration << 64), counter=purpose << 192)
    )


class _Key(ISeedSequence):
    """Hands Philox its key as it is, where it would gather entropy to throw away."""

    def __init__(self, key: NDArray[np.uint64]) -> None:
        self._key = key

    def generate_state(self, n_words: int, dtype: Any = None) -> NDArray[np.uint64]:
        """Return the key; Philox asks for the two words that it is."""
        return self._key


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
    if size**2 > n or n > EXACT:  # repeats would be many
        drawn: IntArray = rng.choice(n, size=size, replace=False, shuffle=False)
        drawn.sort()
        return drawn
    drawn = uniform_indices(rng, n, size)
    while True:  # each further draw is uniform over those that are not there yet
        drawn.sort()
        is_new = drawn[1:] != drawn[:-1]
        n_missing = len(is_new) - int(np.count_nonzero(is_new))
        if not n_missing:
            return drawn
        kept = np.concatenate([drawn[:1], drawn[1:][is_new]])
        drawn = np.concatenate([kept, uniform_indices(rng, n, n_missing)])


def uniform_indices(rng: np.random.Generator, n: int, size: int) -> IntArray:
    """Draw `size` indices uniformly from ``range(n)``, with repeats, for `n` <= 2^53.

    What ``rng.integers`` does, in a fraction of its time: the 53 random bits of a float
    are taken as an integer, one beyond the last full multiple of `n` is drawn anew.
    """
    bits = (rng.random(size) * EXACT).astype(np.int64)
    beyond = bits >= EXACT - EXACT % n
    while np.logical_or.reduce(beyond):
        bits[beyond] = rng.random(int(np.count_nonzero(beyond))) * EXACT
        beyond = bits >= EXACT - EXACT % n
    bits %= n
    return bits
