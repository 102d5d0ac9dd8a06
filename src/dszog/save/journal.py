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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dszog.contract import Failure, Query, Reply
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


class Journal:
    """The journal of one generation, open for reading and for appending.

    A record is handed to the system at once, so it survives the death of the process.
    Surviving a loss of power takes a sync, which costs milliseconds: there is one a
    second at most, and no more than half a percent of the time goes into it.
    """

    n_cut = 0  # bytes that were not whole when it was opened

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._places: list[tuple[int, int]] = []  # where each record is, how long
        self.n_bytes = _HEAD.size
        self._is_torn = False  # whether something may lie behind the last whole record
        self._due = time.perf_counter() + SYNC_EVERY

    @classmethod
    def new(cls, path: Path, run: bytes, generation: int) -> Journal:
        with _loud():
            handle = create(path)
            os.pwrite(handle, _head(run, generation), 0)
            sync_folder(path.parent)
        return cls(handle)

    @classmethod
    def open(cls, path: Path, run: bytes, generation: int) -> Journal:
        """Open a journal, of which what is not whole is cut off."""
        handle = open_existing(path, write=True)
        if os.fstat(handle).st_nlink > 1:  # under its other names it is not ours
            os.close(handle)
            write_whole(path, [read_whole(path, _check_copy)])
            handle = open_existing(path, write=True)
        journal = cls(handle)
        try:
            with _loud():
                journal._check(_head(run, generation))
        except BaseException:
            journal.close()
            raise
        return journal

    def _check(self, expected: bytes) -> None:
        """Find the whole records behind the head that is expected; cut off the rest."""
        size = os.fstat(self._handle).st_size
        head = os.pread(self._handle, _HEAD.size, 0)
        if not expected.startswith(head):
            raise CheckpointError("it belongs to another run, or is damaged")
        if head != expected:  # torn while it was begun: nothing in it
            os.pwrite(self._handle, expected, 0)
            return
        # No length is believed before it is seen to fit.
        while size - self.n_bytes >= _RECORD.size:
            record = os.pread(self._handle, _RECORD.size, self.n_bytes)
            length, crc = _RECORD.unpack(record)
            start = self.n_bytes + _RECORD.size
            if not 0 < length <= size - start:
                break
            if self._crc_of(start, length) != crc:
                break
            self._places.append((start, length))
            self.n_bytes = start + length
        self.n_cut = size - self.n_bytes
        if self.n_cut:
            os.ftruncate(self._handle, self.n_bytes)
            os.fsync(self._handle)

    def _crc_of(self, start: int, length: int) -> int:
        """Return the checksum of a record that may be larger than the memory."""
        crc = self.n_bytes & 0xFFFFFFFF
        for place in range(start, start + length, CHUNK):
            n_bytes = min(CHUNK, start + length - place)
            crc = zlib.crc32(os.pread(self._handle, n_bytes, place), crc)
        return crc

    def records(self) -> Iterator[bytes]:
        """Yield what was in it when it was opened."""
        for offset, length in self._places:
            try:
                record = os.pread(self._handle, length, offset)
            except MemoryError as error:
                raise CheckpointError(
                    f"A record of the journal has {length} bytes, more than fit into "
                    "the memory. Resume on a machine with more, or start again."
                ) from error
            yield record

    def append(self, content: bytes) -> None:
        """Write a record behind the last whole one."""
        crc = zlib.crc32(content, self.n_bytes & 0xFFFFFFFF)
        record = _RECORD.pack(len(content), crc) + content
        with _loud():
            if self._is_torn:  # Ctrl-C came while a record was written
                os.ftruncate(self._handle, self.n_bytes)
            self._is_torn = True
            n_written = 0
            while n_written < len(record):
                rest = record[n_written:]
                n_written += os.pwrite(self._handle, rest, self.n_bytes + n_written)
            self.n_bytes += len(record)
            self._is_torn = False
        if time.perf_counter() >= self._due:
            self.sync()

    def sync(self) -> None:
        """Have everything survive a loss of power."""
        before = time.perf_counter()
        with _loud():
            os.fsync(self._handle)
        took = time.perf_counter() - before
        self._due = before + max(SYNC_EVERY, took / SYNC_SHARE)

    def close(self) -> None:
        os.close(self._handle)


def _check_copy(first: bytes, size: int) -> None:
    if size > MAX_COPY:
        raise CheckpointError(
            f"it has other names (hard links) and {size} bytes, too many to copy it"
        )


def _head(run: bytes, generation: int) -> bytes:
    crc = zlib.crc32(run, generation & 0xFFFFFFFF)
    return _HEAD.pack(MAGIC, FORMAT, run, generation, crc)


@contextmanager
def _loud() -> Iterator[None]:
    """Tell of an error of the disk in our words."""
    try:
        yield
    except OSError as error:
        raise CheckpointWriteError(
            f"The journal of the checkpoints could not be written ({error.strerror}). "
            "What was written before is whole. Make room or fix the disk, then go on "
            "with resume=True."
        ) from error


ASKED, ANSWERED, LOST = 1, 2, 3

_ASKED = struct.Struct("<Bqqqd")  # kind, losses, constraints, print of queries, elapsed
_ANSWERED = struct.Struct("<BddI")  # kind, elapsed, spent, number of replies
_LOST = struct.Struct("<Bq")  # kind, queries
_REPLY = struct.Struct("<8II")  # rows and columns of each array, length of failures


class Asked(NamedTuple):
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


class Answered(NamedTuple):
    """They were, before anybody used the answers."""

    elapsed: float
    spent: float
    replies: Sequence[Reply]


class Lost(NamedTuple):
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


def pack(record: Record) -> bytes:
    """Return a record as bytes."""
    if isinstance(record, Asked):
        return _ASKED.pack(ASKED, *record)
    if isinstance(record, Lost):
        return _LOST.pack(LOST, *record)
    elapsed, spent, replies = record
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


def unpack(content: bytes) -> Record:
    """Return a record, or raise if it cannot have been written by this module."""
    kind = content[0] if content else 0
    if kind == ASKED and len(content) == _ASKED.size:
        asked = Asked(*_ASKED.unpack(content)[1:])
        if asked.losses >= 0 and asked.constraints >= 0 and asked.elapsed >= 0.0:
            return asked
    elif kind == LOST and len(content) == _LOST.size:
        lost = Lost(*_LOST.unpack(content)[1:])
        if lost.n_queries >= 0:
            return lost
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
