r"""Directions by name: random signs that anybody can make again, and nobody keeps.

Entry ``i`` of direction ``k`` of an iteration is bit ``i % 32`` of word
``i // 32 % 4`` of block ``i // 128``, as a sign: 1 is +1, 0 is -1. A block is what
Philox 4x32-10 [1]_ makes of the counter ``(block, k, iteration % 2**32,
iteration // 2**32)`` and the key ``(seed % 2**32, seed // 2**32)``. So NumPy, PyTorch
and a GPU make the same directions, any part of them alone.

References
----------
.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers:
   as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dszog.contract.arrays import FloatArray, freeze

BLOCK = 128  # signs in a block of random bits
GROUP = 8  # directions whose sum is looked up at once
PART = 2**16  # entries at a time, which fit into a cache
ROUNDS = 10
MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
INCREMENTS = 0x9E3779B9, 0xBB67AE85
WORD = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Signs:
    """Steps of one length along random signs; as many as there are `numbers`."""

    seed: int
    iteration: int
    numbers: tuple[int, ...]  # which directions of the iteration; ~k is opposite to k
    dim: int
    radius: float

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Signs:
        """Return some of the steps, as an array would."""
        chosen = np.array(self.numbers, dtype=np.int64)[rows]
        return replace(self, numbers=tuple(np.atleast_1d(chosen).tolist()))

    def along(self, x: FloatArray, amounts: Sequence[float]) -> FloatArray:
        """Return `x` moved along the directions, by an amount along each."""
        moved = np.array(x)
        turned = [
            a if k >= 0 else -a for k, a in zip(self.numbers, amounts, strict=True)
        ]
        for first in range(0, len(self), GROUP):
            bits = [self.bits(number) for number in self.numbers[first:][:GROUP]]
            sums = sums_of_signs(np.array(turned[first:][:GROUP], dtype=float))
            for start in range(0, self.dim, PART):
                part = slice(start, min(start + PART, self.dim))
                moved[part] += sums.take(which_signs(bits, part))
        return freeze(moved)

    def points(self, x: FloatArray) -> Iterator[FloatArray]:
        """Yield the ends of the steps from `x`."""
        for k in range(len(self)):
            yield self[k].along(x, (self.radius,))

    def dense(self) -> FloatArray:
        """Return the steps as rows: for small problems and tests."""
        steps = np.empty((len(self), self.dim))
        for k in range(len(self)):
            steps[k] = self[k].along(np.zeros(self.dim), (self.radius,))
        return freeze(steps)

    def bits(self, number: int) -> NDArray[np.uint8]:
        """Return the random bits of a direction, packed; those of ``~k`` are k's."""
        n_blocks = -(-self.dim // BLOCK)
        blocks = np.arange(n_blocks, dtype=np.uint64)
        low, high = self.iteration & WORD, self.iteration >> 32
        words = philox((blocks, max(number, ~number), low, high), self.seed)
        return np.stack(words, axis=1).astype("<u4").view(np.uint8).ravel()


def philox(counter: Sequence[Any], seed: int) -> list[NDArray[np.uint64]]:
    """Return the four words that Philox 4x32-10 makes of each counter."""
    word, shift = np.uint64(WORD), np.uint64(32)
    c = [np.asarray(one, dtype=np.uint64) for one in counter]
    keys = seed & WORD, seed >> 32
    for n in range(ROUNDS):
        k0, k1 = (
            np.uint64((key + n * increment) & WORD)
            for key, increment in zip(keys, INCREMENTS, strict=True)
        )
        first, second = (
            np.uint64(factor) * one
            for factor, one in zip(MULTIPLIERS, (c[0], c[2]), strict=True)
        )
        c = [
            (second >> shift) ^ c[1] ^ k0,
            second & word,
            (first >> shift) ^ c[3] ^ k1,
            first & word,
        ]
    return list(np.broadcast_arrays(*c))


def sums_of_signs(amounts: Any) -> Any:
    """Return the sum of all amounts with signs, for each choice of them.

    Bit ``k`` of the place is the sign of amount ``k``. They are added in their order,
    in the precision in which they come: who looks sums up gets the same bits.

    Examples
    --------
    >>> sums_of_signs(np.array([1.0, 10.0]))
    array([-11.,  -9.,   9.,  11.])
    """
    sums = np.zeros(2 ** len(amounts), dtype=amounts.dtype)
    places = np.arange(len(sums))
    for k, amount in enumerate(amounts):
        sums += np.where(places >> k & 1, amount, -amount)
    return sums


def which_signs(bits: list[NDArray[np.uint8]], part: slice) -> NDArray[np.uint8]:
    """Return the place of each entry in the sums of signs of up to 8 directions."""
    which = _unpacked(bits[0], part)
    for k, packed in enumerate(bits[1:], 1):
        which |= _unpacked(packed, part) << np.uint8(k)
    return which


def _unpacked(packed: NDArray[np.uint8], part: slice) -> NDArray[np.uint8]:
    """Return bits, one to a byte, of a part that begins with a byte."""
    chosen = packed[part.start // 8 : -(-part.stop // 8)]
    return np.unpackbits(chosen, count=part.stop - part.start, bitorder="little")
