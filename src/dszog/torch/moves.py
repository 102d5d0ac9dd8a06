"""The moves of a saved run, and snapshots of its weights: how a network comes back.

Moves are written down as they are taken, some fifty bytes each. Replaying them from the
last snapshot takes no forward pass. Weights are in safetensors files.
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file

from dszog.errors import CheckpointError
from dszog.methods.named import PointName
from dszog.save.journal import Journal

EVERY = 60.0  # seconds between snapshots, at the least
MOVES, OURS = "moves", b"dszog.torch/moves"[:16]


class MoveLog:
    """A folder with the moves since the start, and the latest snapshot."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._known: dict[int, PointName] = {}
        self._due = time.perf_counter() + EVERY
        if (folder / MOVES).exists():
            self._journal = Journal.open(folder / MOVES, OURS, 0)
            for record in self._journal.records():
                self._take(_unpack(record))
        else:
            self._journal = Journal.new(folder / MOVES, OURS, 0)

    @property
    def is_due(self) -> bool:
        """Whether it is time for the next snapshot."""
        return time.perf_counter() >= self._due

    def note(self, name: PointName) -> None:
        """Write a move down, unless it is known already."""
        if name.n_moves and self._known.get(name.n_moves) != name:
            self._take(name)
            self._journal.append(_pack(name))

    def moves(self, first: int, last: int) -> Iterator[PointName]:
        """Yield moves, by their numbers."""
        for number in range(first, last + 1):
            if number not in self._known:
                raise CheckpointError(
                    f"Move {number} is missing in {str(self._folder)!r}: it cannot "
                    "go on. Use an empty folder."
                )
            yield self._known[number]

    def snapshot_before(self, n_moves: int) -> tuple[int, dict[str, Any]] | None:
        """Return the latest snapshot that is not behind a move; None if none is."""
        numbers = [n for n in self._snapshots() if n <= n_moves]
        if not numbers:
            return None
        tensors, _ = load_tensors(self._folder / f"{max(numbers)}.safetensors")
        return max(numbers), tensors

    def write_snapshot(self, n_moves: int, tensors: dict[str, Any]) -> None:
        """Keep the weights as they are after a move; forget older ones."""
        self._journal.sync()
        before = self._snapshots()
        save_tensors(self._folder / f"{n_moves}.safetensors", tensors)
        for number in before:
            if number != n_moves:
                (self._folder / f"{number}.safetensors").unlink()
        self._due = time.perf_counter() + EVERY

    def close(self) -> None:
        """Write no more."""
        self._journal.sync()
        self._journal.close()

    def _take(self, name: PointName) -> None:
        """Know a move; those behind it belong to an attempt that was given up."""
        for number in range(name.n_moves + 1, name.n_moves + len(self._known) + 1):
            if self._known.pop(number, None) is None:
                break
        self._known[name.n_moves] = name

    def _snapshots(self) -> list[int]:
        found = self._folder.glob("*.safetensors")
        return [int(path.stem) for path in found if path.stem.isdigit()]


def _pack(name: PointName) -> bytes:
    head = struct.pack("<qqI", name.n_moves, name.iteration, len(name.amounts))
    return head + struct.pack(f"<{len(name.amounts)}d", *name.amounts)


def _unpack(content: bytes) -> PointName:
    n_moves, iteration, n = struct.unpack_from("<qqI", content)
    amounts = struct.unpack_from(f"<{n}d", content, 20)
    return PointName(n_moves, iteration, 0, 0, amounts)


def save_tensors(
    path: Path, tensors: dict[str, Any], facts: dict[str, Any] | None = None
) -> None:
    """Write a file that is there whole or not at all."""
    part = path.with_suffix(".part")
    save_file(tensors, part, {"facts": json.dumps(facts)})
    os.replace(part, path)


def load_tensors(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors and the facts of such a file."""
    try:
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            return tensors, json.loads(file.metadata()["facts"])
    except Exception as error:  # whatever a damaged file makes of it
        raise CheckpointError(f"{path.name} cannot be read: {error}") from error
