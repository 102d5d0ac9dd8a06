"""Random signs in one kernel, on a GPU with Triton: those of `dszog.contract.signs`.

A launch moves any number of tensors. What it is told lies on the device too, so that a
recorded launch can be replayed for the directions of another iteration.
"""

# mypy: ignore-errors

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
import triton.language as tl

from dszog.contract.signs import BLOCK

ROWS = 8  # blocks of a direction that one program makes: more would not fit
TILE = ROWS * BLOCK
OUTPUTS = {
    torch.float32: tl.float32,
    torch.bfloat16: tl.bfloat16,
    torch.float16: tl.float16,
}


@triton.jit(do_not_specialize=["first"])
def _add(
    table,
    words,
    amounts,
    first,
    N: tl.constexpr,
    OUT: tl.constexpr,
    ROWS: tl.constexpr,
):
    """Write a tile of the bases, moved along N directions, to where it belongs."""
    about = table + 4 * tl.program_id(0).to(tl.int64)
    base = tl.load(about).to(tl.pointer_type(tl.float32))
    out = tl.load(about + 1).to(tl.pointer_type(OUT))
    rows, lanes = tl.arange(0, ROWS), tl.arange(0, 128)
    where = rows[:, None] * 128 + lanes[None, :]
    inside = where < tl.load(about + 2)
    moved = tl.load(base + where, inside, 0.0)
    if N > 0:
        block = (tl.load(about + 3) + rows).to(tl.uint32)
        seed, iteration = tl.load(words), tl.load(words + 1)
        low = tl.zeros_like(block) + (iteration & 0xFFFFFFFF).to(tl.uint32)
        high = tl.zeros_like(block) + (iteration >> 32).to(tl.uint32)
        total = tl.zeros_like(moved)
        for k in tl.static_range(N):
            number = tl.zeros_like(block) + (first + k).to(tl.uint32)
            a, b, c, d = tl.philox(seed, block, number, low, high)
            left = tl.where(lanes[None, :] < 32, a[:, None], b[:, None])
            right = tl.where(lanes[None, :] < 96, c[:, None], d[:, None])
            word = tl.where(lanes[None, :] < 64, left, right)
            bit = (word >> (lanes[None, :] % 32).to(tl.uint32)) & 1
            amount = tl.load(amounts + k)
            total += tl.where(bit != 0, amount, -amount)
        moved += total
    tl.store(out + where, moved.to(OUT), inside)


class Launch:
    """Moves the same tensors along any directions: one launch, if of one kind."""

    def __init__(
        self, bases: Sequence[Any], outs: Sequence[Any], places: Sequence[int]
    ) -> None:
        self._held = bases, outs  # the table has their addresses
        self._device = bases[0].device
        self._amounts: dict[tuple[float, ...], Any] = {}
        tiles: dict[Any, list[Any]] = {}
        for base, out, place in zip(bases, outs, places, strict=True):
            starts = torch.arange(0, base.numel(), TILE)
            columns = (
                base.data_ptr() + starts * base.element_size(),
                out.data_ptr() + starts * out.element_size(),
                (base.numel() - starts).clamp(max=TILE),
                (place + starts) // BLOCK,
            )
            tiles.setdefault(out.dtype, []).append(torch.stack(columns, 1))
        self._tables = [
            (OUTPUTS[kind], torch.cat(them).to(self._device))
            for kind, them in tiles.items()
        ]

    def __call__(self, words: Any, first: int, amounts: Any) -> None:
        """Move along as many directions as there are amounts, from the first on."""
        known = amounts
        if not isinstance(amounts, torch.Tensor):
            known = self._amounts.get(amounts)
        if known is None:
            known = torch.tensor(amounts, dtype=torch.float32, device=self._device)
            if len(amounts) < 2:  # it comes again, perhaps in a recording
                self._amounts[amounts] = known
        n = len(amounts)
        for kind, table in self._tables:
            _add[(len(table),)](table, words, known, first, N=n, OUT=kind, ROWS=ROWS)


class RecordedMove:
    """A move along some directions as a CUDA graph: launches take longer than moves.

    `move(signs, amounts)` is what is recorded, with amounts that lie on the device.
    """

    def __init__(
        self, move: Callable[[Any, Any], None], signs: Any, words: Any
    ) -> None:
        n, device = len(signs), words.device
        self._given = torch.zeros(1 + n, dtype=torch.float64).pin_memory()
        self._told = torch.zeros(1 + n, dtype=torch.float64, device=device)
        self._amounts = torch.zeros(n, dtype=torch.float32, device=device)
        self._read = torch.cuda.Event()
        torch.cuda.synchronize()
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            words[1:].copy_(self._told[:1])
            self._amounts.copy_(self._told[1:])
            move(signs, self._amounts)

    def __call__(self, iteration: int, amounts: Sequence[float]) -> None:
        """Move by other amounts along the directions of another iteration."""
        self._read.synchronize()  # what was given before
        self._given.numpy()[:] = iteration, *amounts
        self._told.copy_(self._given, non_blocking=True)
        self._read.record()
        self._graph.replay()
