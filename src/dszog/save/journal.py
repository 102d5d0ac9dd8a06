"""A file of records that only grows; each is whole or counts as never written.

A record is its length, a CRC-32 of its content and of its place in the file, and the
content. The first record that is not whole ends the journal: it is cut off on opening,
so that nothing is ever appended behind a torn one. Records are questions with their
price, and the answers to them.
"""

from __future__ import annotations

import math
import os
import struct
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dszog.contract import Cost, Failure, Query, Reply
from dszog.contract.arrays import FloatArray, frozen_floats
from dszog.errors import CheckpointError, CheckpointWriteError
from dszog.save.container import dump_json, load_json
from dszog.save.files import create, open_existing, read_whole, sync_folder, write_whole

MAGIC = b"DSZOGJN\n"
FORMAT = 1
SYNC_EVERY = 1.0  # seconds; a reply that took longer is synced at once
SYNC_SHARE = 0.005  # of the time may go into syncing
CHUNK = 2**20  # bytes that are looked at together
MAX_COPY = 2**30  # bytes of a journal that has other names

_HEAD = struct.Struct("<8sI16sqI")  # magic, format, run, generation, CRC
_RECORD = struct.Struct("<II")  # length, CRC


class Scan(NamedTuple):
    """The whole records of a journal, and what follows them."""

    places: list[tuple[int, int]]  # offset and length of each record's content
    end: int  # of the last whole one
    n_cut: int  # bytes after it


class Journal:
    """The journal of one generation, open for reading and for appending.

    A record is handed to the system at once, so it survives the death of the process.
    Surviving a loss of power takes a sync, which costs milliseconds: there is one a
    second at most, and no more than half a percent of the time goes into it.
    """

    def __init__(self, handle: int, places: list[tuple[int, int]], end: int) -> None:
        self._handle = handle
        self.places = places
        self.n_bytes = end
        self._is_torn = False  # whether something may lie behind the last whole record
        self._due = time.perf_counter() + SYNC_EVERY

    @classmethod
    def new(cls, path: Path, run: bytes, generation: int) -> Journal:
        head = _head(run, generation)
        try:
            handle = create(path)
            os.pwrite(handle, head, 0)
            sync_folder(path.parent)
        except OSError as error:
            raise _failed(error) from error
        return cls(handle, [], len(head))

    @classmethod
    def open(cls, path: Path, run: bytes, generation: int) -> tuple[Journal, int]:
        """Open a journal; cut off what is not whole, and return how many bytes."""
        handle = open_existing(path, write=True)
        if os.fstat(handle).st_nlink > 1:  # under its other names it is not ours
            os.close(handle)
            write_whole(path, [read_whole(path, _check_copy)])
            handle = open_existing(path, write=True)
        try:
            size = os.fstat(handle).st_size
            head = os.pread(handle, _HEAD.size, 0)
            expected = _head(run, generation)
            if head == expected:
                found = scan(handle, size)
            elif expected.startswith(head):  # torn while it was begun: nothing in it
                os.pwrite(handle, expected, 0)
                found = Scan([], len(expected), 0)
            else:
                raise CheckpointError("it belongs to another run, or is damaged")
            if found.n_cut:
                os.ftruncate(handle, found.end)
                os.fsync(handle)
        except OSError as error:
            os.close(handle)
            raise _failed(error) from error
        except CheckpointError:
            os.close(handle)
            raise
        return cls(handle, found.places, found.end), found.n_cut

    def content(self, number: int) -> bytes:
        offset, length = self.places[number]
        try:
            return os.pread(self._handle, length, offset)
        except MemoryError as error:
            raise CheckpointError(
                f"A record of the journal has {length} bytes, more than fit into the "
                "memory. Resume on a machine with more, or start again."
            ) from error

    def append(self, content: bytes) -> None:
        """Write a record behind the last whole one."""
        crc = _crc(content, self.n_bytes)
        record = _RECORD.pack(len(content), crc) + content
        try:
            if self._is_torn:  # Ctrl-C came while a record was written
                os.ftruncate(self._handle, self.n_bytes)
            self._is_torn = True
            n_written = os.pwrite(self._handle, record, self.n_bytes)
            while n_written < len(record):
                rest = record[n_written:]
                n_written += os.pwrite(self._handle, rest, self.n_bytes + n_written)
            self.n_bytes += len(record)
            self._is_torn = False
            if time.perf_counter() >= self._due:
                self.sync()
        except OSError as error:
            raise _failed(error) from error

    def sync(self) -> None:
        """Have everything survive a loss of power."""
        before = time.perf_counter()
        try:
            os.fsync(self._handle)
        except OSError as error:
            raise _failed(error) from error
        took = time.perf_counter() - before
        self._due = before + max(SYNC_EVERY, took / SYNC_SHARE)

    def close(self) -> None:
        os.close(self._handle)


def scan(handle: int, size: int) -> Scan:
    """Find the whole records; no length is believed before it is seen to fit."""
    places: list[tuple[int, int]] = []
    end = _HEAD.size
    while size - end >= _RECORD.size:
        length, crc = _RECORD.unpack(os.pread(handle, _RECORD.size, end))
        start = end + _RECORD.size
        if not 0 < length <= size - start:
            break
        if _crc_on_disk(handle, start, length, end) != crc:
            break
        places.append((start, length))
        end = start + length
    return Scan(places, end, size - end)


def _check_copy(first: bytes, size: int) -> None:
    if size > MAX_COPY:
        raise CheckpointError(
            f"it has other names (hard links) and {size} bytes, too many to copy it"
        )


def _head(run: bytes, generation: int) -> bytes:
    crc = zlib.crc32(run, generation & 0xFFFFFFFF)
    return _HEAD.pack(MAGIC, FORMAT, run, generation, crc)


def _crc(content: bytes, offset: int) -> int:
    """Return a checksum that a record has at this place only."""
    return zlib.crc32(content, offset & 0xFFFFFFFF)


def _crc_on_disk(handle: int, start: int, length: int, offset: int) -> int:
    """Return the checksum of a record that may be larger than the memory."""
    crc = _crc(b"", offset)
    for place in range(start, start + length, CHUNK):
        n_bytes = min(CHUNK, start + length - place)
        crc = zlib.crc32(os.pread(handle, n_bytes, place), crc)
    return crc


def _failed(error: OSError) -> CheckpointWriteError:
    return CheckpointWriteError(
        f"The journal of the checkpoints could not be written ({error.strerror}). What "
        "was written before is whole. Make room or fix the disk, then go on with "
        "resume=True."
    )


ASKED, ANSWERED, LOST = 1, 2, 3

_ASKED = struct.Struct("<Bqqqd")  # kind, losses, constraints, print of queries, elapsed
_ANSWERED = struct.Struct("<BddI")  # kind, elapsed, spent, number of replies
_LOST = struct.Struct("<Bq")  # kind, queries
_REPLY = struct.Struct("<8II")  # rows and columns of each array, length of failures


@dataclass(frozen=True, slots=True)
class Asked:
    """Queries were about to be answered."""

    losses: int
    constraints: int
    question: int  # a print of the queries, negative in the check of a result
    elapsed: float

    @property
    def n_queries(self) -> int:
        return self.losses + self.constraints

    @property
    def in_check(self) -> bool:
        """Whether a result was looked at."""
        return self.question < 0


@dataclass(frozen=True, slots=True)
class Answered:
    elapsed: float
    spent: float
    replies: tuple[Reply, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """Queries that are used up and belong to no question."""

    n_queries: int


Record: TypeAlias = Asked | Answered | Lost


def question(queries: Sequence[Query]) -> int:
    """Return a print of queries: the same for the same, negative in a check."""
    crc = 0
    for query in queries:
        crc = zlib.crc32(query.x.data, crc)
        crc = zlib.crc32(query.losses.data, crc)
        crc = zlib.crc32(query.constraints.data, crc)
    if queries and queries[0].purpose == "final check":
        return -1 - crc
    iteration = queries[0].iteration if queries else 0
    return (iteration << 32 | crc) & (2**63 - 1)


def pack_asked(charged: Cost, asked: int, elapsed: float) -> bytes:
    return _ASKED.pack(ASKED, charged.losses, charged.constraints, asked, elapsed)


def pack_answered(replies: Sequence[Reply], spent: float, elapsed: float) -> bytes:
    pieces = [_ANSWERED.pack(ANSWERED, elapsed, spent, len(replies))]
    for reply in replies:
        failures = b""
        if reply.failures:
            failures = dump_json([failure_to_json(one) for one in reply.failures])
        arrays = reply[:4]
        shapes = [extent for array in arrays for extent in array.shape]
        pieces.append(_REPLY.pack(*shapes, len(failures)))
        pieces += [one.astype("<f8", copy=False).tobytes() for one in arrays]
        pieces.append(failures)
    return b"".join(pieces)


def pack_lost(n_queries: int) -> bytes:
    return _LOST.pack(LOST, n_queries)


def unpack(content: bytes) -> Record:
    """Return a record, or raise if it cannot have been written by this module."""
    kind = content[0] if content else 0
    if kind == ASKED and len(content) == _ASKED.size:
        _, losses, constraints, asked, elapsed = _ASKED.unpack(content)
        if losses >= 0 and constraints >= 0 and elapsed >= 0.0:
            return Asked(losses, constraints, asked, elapsed)
    elif kind == LOST and len(content) == _LOST.size:
        (_, n_queries) = _LOST.unpack(content)
        if n_queries >= 0:
            return Lost(n_queries)
    elif kind == ANSWERED and len(content) >= _ANSWERED.size:
        return _Reader(content).answered()
    raise CheckpointError("a record of the journal makes no sense")


class _Reader:
    """Reads an answer from front to back, never further than it goes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0

    def answered(self) -> Answered:
        _, elapsed, spent, n_replies = self._take(_ANSWERED)
        if not (0.0 <= elapsed < math.inf and 0.0 <= spent < math.inf):
            raise CheckpointError("a record of the journal makes no sense")
        replies: list[Reply] = []
        while len(replies) < n_replies:
            *shapes, length = self._take(_REPLY)
            arrays = [self._array(shapes[i : i + 2]) for i in range(0, 8, 2)]
            text = self._bytes(length)
            failures = load_json(text) if length else []
            if not isinstance(failures, list):
                raise CheckpointError("a record of the journal makes no sense")
            made = tuple(failure_from_json(one) for one in failures)
            replies.append(Reply._make((*arrays, made)))
        if self._place != len(self._content):
            raise CheckpointError("a record of the journal is too long")
        return Answered(elapsed, spent, tuple(replies))

    def _take(self, form: struct.Struct) -> tuple[Any, ...]:
        return form.unpack(self._bytes(form.size))

    def _bytes(self, length: int) -> bytes:
        piece = self._content[self._place : self._place + length]
        if len(piece) != length:
            raise CheckpointError("a record of the journal is too short")
        self._place += length
        return piece

    def _array(self, shape: list[int]) -> FloatArray:
        piece = self._bytes(8 * math.prod(shape))
        return frozen_floats(np.frombuffer(piece, dtype="<f8").reshape(shape))


# ----------------------------------------------------------------------- failed values


def failure_to_json(failure: Failure) -> dict[str, Any]:
    """Return a failure without the exception itself, which cannot be kept."""
    return {
        "kind": failure.kind,
        "what": failure.what,
        "index": int(failure.index),
        "iteration": int(failure.iteration),
        "x": [float(entry).hex() for entry in failure.x],
        "message": failure.message,
    }


def failure_from_json(found: Any) -> Failure:
    try:
        texts = {name: found[name] for name in ("kind", "what", "message")}
        numbers = {name: found[name] for name in ("index", "iteration")}
        x = frozen_floats([float.fromhex(entry) for entry in found["x"]])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError("a failure in it makes no sense") from error
    if not all(isinstance(text, str) for text in texts.values()) or not all(
        type(number) is int for number in numbers.values()
    ):
        raise CheckpointError("a failure in it makes no sense")
    return Failure(x=x, **texts, **numbers)
