"""The random numbers of NumPy's Philox generator, those of an iteration in one call.

They are those of :func:`dszog.maths.random_stream.stream` to the bit. NumPy goes word
by word through pointers to functions; here blocks of words are made first, several at a
time [1]_, and turned into numbers by NumPy's own tables [2]_, which Numba keeps.

References
----------
.. [1] J. K. Salmon, M. A. Moraes, R. O. Dror and D. E. Shaw, "Parallel random numbers:
   as easy as 1, 2, 3", SC 2011.
.. [2] G. Marsaglia and W. W. Tsang, "The ziggurat method for generating random
   variables", Journal of Statistical Software 5(8), 2000.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.random._constants import (
    fi_double,
    ki_double,
    wi_double,
    ziggurat_nor_inv_r,
    ziggurat_nor_r,
)
from numpy.typing import NDArray

from dszog.contract.arrays import FloatArray
from dszog.kernels._compile import compiled

Words: TypeAlias = NDArray[np.uint64]

BLOCK = 4  # words that are made at a time
ROUNDS = 10
MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
INCREMENTS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)

HEIGHTS, LIMITS, WIDTHS = fi_double, ki_double, wi_double  # of the layers
TAIL, TAIL_INVERSE = ziggurat_nor_r, ziggurat_nor_inv_r  # where it begins
UNIT = 1.0 / 2**53


@compiled
def numbers(
    seed: int, iteration: int, words: Words, normals: FloatArray, uniforms: FloatArray
) -> bool:
    """Fill in normal numbers, then uniform ones, of the stream of an iteration."""
    # `words` is room for the random bits, a multiple of four; False if it is too small,
    # as some normal numbers take more than one.
    _fill(np.uint64(seed), np.uint64(iteration), words)
    n_used = _normals(words, len(words) - len(uniforms), normals.reshape(-1))
    if n_used < 0 or n_used + len(uniforms) > len(words):
        return False
    for i in range(len(uniforms)):
        uniforms[i] = _uniform(words[n_used + i])
    return True


@intrinsic  # type: ignore[untyped-decorator]
def _product(context: Any, a: Any, b: Any) -> Any:
    """Return the high and the low word of a product of two words."""

    def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word, double = ir.IntType(64), ir.IntType(128)
        product = builder.mul(*(builder.zext(value, double) for value in values))
        high = builder.lshr(product, ir.Constant(double, 64))
        halves = [builder.trunc(half, word) for half in (high, product)]
        return context.make_tuple(builder, signature.return_type, halves)

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


@compiled
def _fill(key: np.uint64, other_key: np.uint64, words: Words) -> None:
    """Fill in the words of Philox 4x64 of ten rounds; the counter starts at one."""
    for block in range(len(words) // BLOCK):
        a, b, c, d = np.uint64(block + 1), np.uint64(0), np.uint64(0), np.uint64(0)
        left, right = key, other_key
        for _ in range(ROUNDS):
            high, low = _product(MULTIPLIERS[0], a)
            other_high, other_low = _product(MULTIPLIERS[1], c)
            a, b, c, d = other_high ^ b ^ left, other_low, high ^ d ^ right, low
            left, right = left + INCREMENTS[0], right + INCREMENTS[1]
        first = BLOCK * block
        words[first], words[first + 1] = a, b
        words[first + 2], words[first + 3] = c, d


@compiled
def _normals(words: Words, n_words: int, normals: FloatArray) -> int:
    """Turn words into normal numbers by the ziggurat; return how many were used."""
    # Of a word, 8 bits are the layer, one the sign, and 52 the place within the layer.
    # -1 where the first `n_words` may not suffice.
    used, filled = 0, 0
    while filled < len(normals):
        if used + 2 > n_words:  # one for the layer, one for the height within it
            return -1
        word = words[used]
        used += 1
        layer = word & np.uint64(0xFF)
        place = (word >> np.uint64(9)) & np.uint64(0x000FFFFFFFFFFFFF)
        number = place * WIDTHS[layer]
        if word & np.uint64(0x100):
            number = -number
        if place >= LIMITS[layer]:
            if layer == 0:
                beyond, height = 0.0, 0.0
                while height + height <= beyond * beyond:
                    if used + 2 > n_words:
                        return -1
                    beyond = -TAIL_INVERSE * math.log1p(-_uniform(words[used]))
                    height = -math.log1p(-_uniform(words[used + 1]))
                    used += 2
                is_negative = (place >> np.uint64(8)) & np.uint64(1)
                number = -(TAIL + beyond) if is_negative else TAIL + beyond
            else:
                low, high = HEIGHTS[layer], HEIGHTS[layer - np.uint64(1)]
                height = (high - low) * _uniform(words[used]) + low
                used += 1
                if height >= math.exp(-0.5 * number * number):
                    continue
        normals[filled] = number
        filled += 1
    return used


@compiled
def _uniform(word: np.uint64) -> float:
    """Return the number from 0 to 1 that a word stands for."""
    return float(word >> np.uint64(11)) * UNIT
