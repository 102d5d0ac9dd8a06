"""Randomness as a function: the same key always gives the same draws.

Draws of losses and constraints never list them all.
"""

from __future__ import annotations

import secrets
import threading

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray, freeze
from dszog.kernels import chosen
from dszog.kernels.tables import EXACT, Draw

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
    key = seed + (iteration << 64)
    return np.random.Generator(np.random.Philox(key=key, counter=purpose << 192))


def lent_stream(seed: int, iteration: int) -> np.random.Generator:
    """Return what :func:`stream` returns, to be used up before the next call."""
    _kept.key[:] = seed, iteration
    _kept.bits.state = _kept.state
    return _kept.generator


def normals_and_uniforms(
    seed: int, iteration: int, shape: tuple[int, int], n_uniforms: int
) -> tuple[FloatArray, FloatArray]:
    """Return normal numbers, then uniform ones, as :func:`stream` would draw them."""
    found: tuple[FloatArray, FloatArray] = chosen().numbers(
        lent_stream, seed, iteration, shape, n_uniforms
    )
    return found


class _Kept(threading.local):
    """A generator, and the state that it is set to: fresh, with a key to fill in."""

    def __init__(self) -> None:
        self.bits = np.random.Philox(key=0)
        self.generator = np.random.Generator(self.bits)
        self.state = self.bits.state
        self.key = self.state["state"]["key"]


_kept = _Kept()


def fresh_seed() -> int:
    """Draw a seed for a run whose caller gave none; it is reported in the result."""
    return secrets.randbits(32)


def distinct_indices(rng: np.random.Generator, n: int, size: int) -> IntArray:
    """Draw `size` different indices uniformly from ``range(n)``, in sorted order."""
    # Memory and time are those of `size`, also for ``n = 10**12``.
    n_numbers = Draw.of(n, size).n_numbers
    if n_numbers < 0:
        drawn: IntArray = rng.choice(n, size=size, replace=False, shuffle=False)
        drawn.sort()
        return freeze(drawn)
    uniforms = rng.random(n_numbers)
    while (found := chosen().distinct_indices(uniforms, n, size)) is None:
        uniforms = np.concatenate([uniforms, rng.random(size)])
    drawn = found
    return freeze(drawn)


def random_indices(rng: np.random.Generator, n: int, size: int) -> IntArray:
    """Draw `size` indices uniformly from ``range(n)``, with repeats."""
    # What ``rng.integers`` does, but from `size` uniform numbers, as long as none of
    # them stands for no index: who knows them knows the draw.
    if n > EXACT:
        return rng.integers(n, size=size)
    bits = (rng.random(size) * EXACT).astype(np.int64)
    beyond = bits >= EXACT - EXACT % n
    while np.logical_or.reduce(beyond):
        bits[beyond] = rng.random(int(np.count_nonzero(beyond))) * EXACT
        beyond = bits >= EXACT - EXACT % n
    indices: IntArray = bits % n
    return indices


def uniform_constraints(
    rng: np.random.Generator, size: ProblemSize, n_wanted: int
) -> IntArray:
    """Draw constraints such that each has the same chance, in sorted order."""
    # Where a call of the user's function serves several constraints, calls are drawn
    # and all that they serve is taken: about as many as wanted, and from one call at
    # least.
    if size.calls is None:
        return distinct_indices(rng, size.n_constraints, n_wanted)
    n_calls = size.calls.n_calls
    per_call = size.n_constraints / n_calls
    n_drawn = min(max(round(n_wanted / per_call), 1), n_calls)
    return size.calls.served_by(distinct_indices(rng, n_calls, n_drawn))


def constraints_per_draw(drawn: IntArray, size: ProblemSize) -> float:
    """Return how many constraints each of a uniform draw stands for."""
    if size.calls is None:
        return size.n_constraints / len(drawn)
    return size.calls.n_calls / len(np.unique(size.calls.of(drawn)))


def constraint_block(first: int, n_wanted: int, size: ProblemSize) -> IntArray:
    """Return consecutive constraints from `first`, with whole calls."""
    end = min(first + n_wanted, size.n_constraints)
    if size.calls is not None and end < size.n_constraints:
        last_call = size.calls.of(np.array([end - 1]))
        end = int(size.calls.served_by(last_call)[-1]) + 1
    return np.arange(first, end)
