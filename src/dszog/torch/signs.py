"""Random signs in PyTorch: those of :mod:`dszog.contract.signs`, wherever weights are.

Sums over directions are looked up, in the precision of the weights or in float32 where
that is coarser: the CPU and a GPU give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import numpy as np
import torch

from dszog.contract.signs import (
    BLOCK,
    INCREMENTS,
    MULTIPLIERS,
    ROUNDS,
    WORD,
    Signs,
    sums_of_signs,
    which_signs,
)

Launch: Any = None
with suppress(ImportError):  # without Triton PyTorch makes the signs, slowly on a GPU
    from dszog.torch.on_gpu import Launch

PART = 2**18  # entries at a time; a multiple of a block
CACHED = 2**27  # entries of a direction whose bits are kept for its next use


class Mover:
    """Writes tensors, moved along directions, to others or to themselves.

    `places` are those of their first entries in the directions, multiples of a block.
    With Triton on a GPU `words` are the seed and the iteration, read there: what was
    recorded can be replayed for another iteration.
    """

    def __init__(
        self,
        bases: Sequence[Any],
        outs: Sequence[Any],
        places: Sequence[int],
        words: Any,
    ) -> None:
        flat = [one if one.is_contiguous() else one.contiguous() for one in outs]
        self._through = [
            (one, new) for one, new in zip(outs, flat, strict=True) if one is not new
        ]
        self._bases, self._outs = (
            [one.view(-1) for one in them] for them in (bases, flat)
        )
        self._places, self._words = places, words
        self._launch: Any = None
        exact = all(one.dtype == torch.float32 for one in bases)
        if Launch is not None and bases and exact and words.device.type == "cuda":
            self._launch = Launch(self._bases, self._outs, places)

    @property
    def is_launched(self) -> bool:
        """Whether one kernel does it, which can be recorded."""
        return self._launch is not None

    def __call__(self, signs: Signs | None = None, amounts: Any = ()) -> None:
        """Move along up to 8 directions in a row; without any, copy."""
        if self._launch is not None:
            if signs is not None and not torch.cuda.is_current_stream_capturing():
                self._words[1] = signs.iteration
            first = 0 if signs is None else signs.numbers[0]
            if not isinstance(amounts, torch.Tensor):
                amounts = tuple(amounts)
            self._launch(self._words, first, amounts)
        elif signs is None:
            for base, out in zip(self._bases, self._outs, strict=True):
                out.copy_(base)
        elif self._bases:
            self._add(signs, amounts)
        for one, new in self._through:
            one.copy_(new)

    def _add(self, signs: Signs, amounts: Sequence[float]) -> None:
        exact = np.float64 if self._bases[0].dtype == torch.float64 else np.float32
        sums = sums_of_signs(np.array(amounts, dtype=exact))
        device = self._bases[0].device
        look_up = (_on_cpu if device.type == "cpu" else _elsewhere)(signs, sums, device)
        for base, out, place in zip(self._bases, self._outs, self._places, strict=True):
            for start in range(0, base.numel(), PART):
                stop = min(start + PART, base.numel())
                moved = look_up(place + start, place + stop)
                torch.add(base[start:stop], moved, out=moved)
                out[start:stop] = moved


def _on_cpu(group: Signs, sums: Any, device: Any) -> Callable[[int, int], Any]:
    make = _packed if group.dim <= CACHED else _packed.__wrapped__
    bits = [make(group.seed, group.iteration, k, group.dim) for k in group.numbers]

    def look_up(start: int, stop: int) -> Any:
        return torch.from_numpy(sums.take(which_signs(bits, slice(start, stop))))

    return look_up


@lru_cache(maxsize=16)  # a direction is perturbed along, then moved along
def _packed(seed: int, iteration: int, number: int, dim: int) -> Any:
    return Signs(seed, iteration, (number,), dim, 1.0).bits(number)


def _elsewhere(group: Signs, sums: Any, device: Any) -> Callable[[int, int], Any]:
    table = torch.from_numpy(sums).to(device)

    def look_up(start: int, stop: int) -> Any:
        n_blocks, which = -(-(stop - start) // BLOCK), None
        for k, number in enumerate(group.numbers):
            bits = _bits(group, number, start // BLOCK, n_blocks, device)
            which = bits if which is None else which | bits << k
        return table[which[: stop - start]]  # type: ignore[index]

    return look_up


def _bits(signs: Signs, number: int, first: int, n_blocks: int, device: Any) -> Any:
    """Return the bits of some blocks of a direction, one to an integer."""
    low, high = signs.iteration & WORD, signs.iteration >> 32
    blocks = torch.arange(first, first + n_blocks, device=device)
    counter = [blocks, *(torch.full_like(blocks, c) for c in (number, low, high))]
    words = torch.stack(_philox(counter, signs.seed), dim=1).reshape(-1, 1)
    shifts = torch.arange(32, device=device)
    return (words >> shifts & 1).reshape(-1).to(torch.int32)


def _philox(c: list[Any], seed: int) -> list[Any]:
    """Do what `dszog.contract.signs.philox` does, on any device, in int64."""
    keys = seed & WORD, seed >> 32
    for n in range(ROUNDS):
        k0, k1 = (
            (key + n * more) & WORD for key, more in zip(keys, INCREMENTS, strict=True)
        )
        first, second = _product(MULTIPLIERS[0], c[0]), _product(MULTIPLIERS[1], c[2])
        c = [second[0] ^ c[1] ^ k0, second[1], first[0] ^ c[3] ^ k1, first[1]]
    return c


def _product(a: int, b: Any) -> tuple[Any, Any]:
    """Return the high and the low word of a product; int64 has no room for it at once.

    The words are cut into halves: no part of the sum exceeds 49 bits.
    """
    low, high = a * (b & 0xFFFF), a * (b >> 16)
    rest = (low >> 16) + (high & 0xFFFF)
    return (high >> 16) + (rest >> 16), (rest & 0xFFFF) << 16 | low & 0xFFFF
