"""Randomness as a function: the same key always gives the same draws."""

from __future__ import annotations

import secrets
import threading
from typing import Any, cast

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from dszog.contract.arrays import FloatArray, IntArray, freeze
from dszog.kernels import draws, philox

STEP = 0
"""Purpose of the draws a method makes in ``ask``."""
CHECK = 1
"""Purpose of the draws that verify a point."""
EXACT = 2**53
"""A random float is a multiple of the inverse of this."""
SPARE = 8
"""Uniform numbers drawn at the least beyond those needed."""
SPARE_WORDS = 64
"""Words of random bits at the least beyond one for each number."""


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


def lent_stream(seed: int, iteration: int) -> np.random.Generator:
    """Return what :func:`stream` returns, to be used up before the next call.

    One generator a thread is set anew each time, which takes a third of the time of
    making one: an iteration of a cheap problem notices.
    """
    _kept.key[:] = seed, iteration
    _kept.bits.state = _kept.state
    return _kept.generator


def normals_and_uniforms(
    seed: int, iteration: int, shape: tuple[int, int], n_uniforms: int
) -> tuple[FloatArray, FloatArray]:
    """Return normal numbers, then uniform ones, as :func:`stream` would draw them."""
    kernels, n_normals = philox(), shape[0] * shape[1]
    if kernels is not None and seed < 2**63:  # an int64, as the compiled ones
        # One normal number in forty takes more words than one.
        n_words = n_normals + n_normals // 32 + n_uniforms + SPARE_WORDS
        words = np.empty(n_words - n_words % 4, np.uint64)
        normals, uniforms = np.empty(shape), np.empty(n_uniforms)
        if kernels.numbers(seed, iteration, words, normals, uniforms):
            return normals, uniforms
    rng = stream(seed, iteration)
    return rng.standard_normal(shape), rng.random(n_uniforms)


class _Kept(threading.local):
    """A generator, and the state that it is set to: fresh, with a key to fill in."""

    def __init__(self) -> None:
        self.bits = np.random.Philox(key=0)
        self.generator = np.random.Generator(self.bits)
        self.state = self.bits.state
        self.key = self.state["state"]["key"]


_kept = _Kept()


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
    n_numbers = numbers_needed(n, size)
    if n_numbers < 0:
        drawn: IntArray = rng.choice(n, size=size, replace=False, shuffle=False)
        drawn.sort()
        return freeze(drawn)
    uniforms, kernels = rng.random(n_numbers), draws()
    drawn = np.empty(size, dtype=np.int64)
    if kernels is None or not kernels.distinct_indices(uniforms, n, drawn):
        drawn = _draw_plainly(rng, n, size, uniforms)
    return freeze(drawn)


def numbers_needed(n: int, size: int) -> int:
    """Return how many uniform numbers nearly always hold `size` different indices.

    Some to spare, as about ``size**2 / (2 * n)`` are repeats; -1 where most would be.
    """
    if size == n:
        return 0
    if 2 * size > n or n > EXACT:
        return -1
    return size + SPARE + 2 * size * size // n


def _draw_plainly(
    rng: np.random.Generator, n: int, size: int, uniforms: FloatArray
) -> IntArray:
    """Return the first `size` different indices of a sequence of random ones.

    The 53 random bits of a float are an integer; one beyond the last full multiple of n
    is left out, so that the rest of the division is uniform.
    """
    if size == n:
        return np.arange(n)
    while True:
        bits = (uniforms * EXACT).astype(np.int64)
        indices = bits[bits < EXACT - EXACT % n] % n
        _, firsts = np.unique(indices, return_index=True)
        if len(firsts) >= size:
            return np.sort(indices[np.sort(firsts)[:size]])
        uniforms = np.concatenate([uniforms, rng.random(size)])


def random_indices(rng: np.random.Generator, n: int, size: int) -> IntArray:
    """Draw `size` indices uniformly from ``range(n)``, with repeats.

    What ``rng.integers`` does, but from `size` uniform numbers, as long as none of them
    stands for no index: who knows them knows the draw.
    """
    if n > EXACT:
        return rng.integers(n, size=size)
    bits = (rng.random(size) * EXACT).astype(np.int64)
    beyond = bits >= EXACT - EXACT % n
    while np.logical_or.reduce(beyond):
        bits[beyond] = rng.random(int(np.count_nonzero(beyond))) * EXACT
        beyond = bits >= EXACT - EXACT % n
    indices: IntArray = bits % n
    return indices
