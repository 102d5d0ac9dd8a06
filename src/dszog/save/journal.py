"""A file of records that only grows; each is whole or counts as never written.

A record is its length, a CRC-32 of its content and of its place in the file, and the
content. The first record that is not whole ends the journal: it is cut off on opening,
so that nothing is ever appended behind a torn one.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from pathlib import Path
from typing import NamedTuple

from dszog.errors import CheckpointError, CheckpointWriteError
from dszog.save.files import (
    create,
    open_existing,
    read_whole,
    sync_folder,
    write_whole,
)

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
    return zlib.crc32(content, _crc_before(offset))


def _crc_before(offset: int) -> int:
    """Return what the checksum of a record at this place begins with."""
    return offset & 0xFFFFFFFF


def _crc_on_disk(handle: int, start: int, length: int, offset: int) -> int:
    """Return the checksum of a record that may be larger than the memory."""
    crc = _crc_before(offset)
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
