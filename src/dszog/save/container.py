"""The file format of a checkpoint: a header, raw arrays, and a hash over all of it.

====================  =================================================================
bytes                 content
====================  =================================================================
8                     magic
4                     format version, little-endian
24                    version of the library that wrote it, ASCII
4                     length of the header
header                strict JSON: facts, and the type and shape of each array
arrays                little-endian, in C order, without holes
32                    SHA-256 of everything before
====================  =================================================================

Nothing in a file is executed, and nothing is allocated on its word: the sizes that it
claims are compared with its own size first. Whatever is wrong, the error is a
:class:`~dszog.errors.CheckpointError`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dszog._version import VERSION
from dszog.errors import CheckpointError
from dszog.save.files import read_whole

FORMAT = 1
MAGIC = b"DSZOG\r\n\x1a"
MAX_HEADER = 2**16
MAX_DIMENSIONS = 4
SMALL = 2**24  # so many bytes are read whatever they are

_PREFIX = struct.Struct("<8sI24sI")
_HASH = 32
_KINDS = {"<f8": np.float64, "<i8": np.int64, "|u1": np.uint8}
_CODES = {np.dtype(kind): code for code, kind in _KINDS.items()}
_VERSION = frozenset("0123456789abcdefghijklmnopqrstuvwxyz.+-")


def pack(facts: dict[str, Any], arrays: Sequence[np.ndarray[Any, Any]]) -> list[bytes]:
    """Return the pieces of a file of facts (of JSON) and float64, int64 or uint8."""
    table = [[_CODES[array.dtype], list(array.shape)] for array in arrays]
    header = dump_json({"facts": facts, "arrays": table})
    if len(header) > MAX_HEADER:
        raise CheckpointError(
            f"A checkpoint's header may have {MAX_HEADER} bytes, got {len(header)}. "
            "This is a bug in dszog: please report it."
        )
    prefix = _PREFIX.pack(MAGIC, FORMAT, VERSION.encode("ascii"), len(header))
    pieces = [prefix, header]
    for array in arrays:
        code = _CODES[array.dtype]
        pieces.append(np.ascontiguousarray(array, dtype=code).tobytes())
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return [*pieces, digest.digest()]


def read(
    path: Path, *, most: int | None = None, own: bool = True
) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    """Return the facts and arrays of a file of at most so many bytes."""
    # What is too large for what it says it holds, or for the memory, is not read at
    # all; `own` refuses links and the files of other users.

    def check(first: bytes, size: int) -> None:
        if most is not None and size > most:
            raise CheckpointError(f"it has {size} bytes, the most is {most}")
        if 2 * size > _memory():  # the content, and the arrays in it
            raise CheckpointError(f"it has {size} bytes, too many for the memory here")
        if size > SMALL:
            _, table, start = _header(first, _length(first))
            _check_sizes(table, size - _HASH - start)

    try:
        return unpack(read_whole(path, check, own=own))
    except MemoryError as error:
        raise CheckpointError("there is too little memory to read it") from error


def _memory() -> int:
    """Return the bytes of memory of this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def unpack(content: bytes) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    """Return the facts and arrays of a file; raise if a single bit is not right."""
    if len(content) < _PREFIX.size + _HASH:
        raise CheckpointError(f"it has {len(content)} bytes, too few for a checkpoint")
    length = _length(content)
    body = memoryview(content)[:-_HASH]
    if hashlib.sha256(body).digest() != content[-_HASH:]:
        raise CheckpointError("its checksum is wrong: it was damaged or cut short")
    facts, table, start = _header(body, length)
    return facts, _arrays(body, start, table)


def _length(content: bytes) -> int:
    """Return how long the header of a file is."""
    magic, version, library, length = _PREFIX.unpack_from(content)
    if magic != MAGIC:
        raise CheckpointError("it is no checkpoint of dszog")
    if version > FORMAT:
        name = "".join(chr(c) for c in library if chr(c) in _VERSION)
        raise CheckpointError(
            f"it has format {version}, this dszog reads up to {FORMAT}. Install the "
            f"dszog that wrote it: pip install 'dszog>={name}'"
        )
    if version < 1:
        raise CheckpointError(f"it has format {version}, which never existed")
    return int(length)


def _header(
    content: bytes | memoryview[int], length: int
) -> tuple[dict[str, Any], list[Any], int]:
    """Return the facts, the rows on arrays, and where the arrays begin."""
    start = _PREFIX.size + length
    if length > MAX_HEADER or start > len(content):
        raise CheckpointError(f"its header claims {length} bytes")
    header = load_json(bytes(content[_PREFIX.size : start]))
    if not isinstance(header, dict) or set(header) != {"facts", "arrays"}:
        raise CheckpointError("its header has unknown parts")
    if not isinstance(header["facts"], dict):
        raise CheckpointError("its header has no facts")
    if not isinstance(header["arrays"], list):
        raise CheckpointError("its header lists no arrays")
    return header["facts"], header["arrays"], start


def _check_sizes(table: list[Any], n_bytes: int) -> list[int]:
    """Return the sizes of the arrays, which have to fill so many bytes."""
    sizes = [_size(row) for row in table]
    if sum(sizes) != n_bytes:
        raise CheckpointError(
            f"its arrays claim {sum(sizes)} bytes, it has {n_bytes} for them"
        )
    return sizes


def _arrays(
    body: memoryview[int], start: int, table: list[Any]
) -> list[np.ndarray[Any, Any]]:
    sizes = _check_sizes(table, len(body) - start)
    arrays = []
    for (code, shape), size in zip(table, sizes, strict=True):
        piece = body[start : start + size]
        start += size
        # A copy: in native byte order, aligned, and free of the file's buffer.
        array = np.frombuffer(piece, dtype=code).reshape(shape).astype(_KINDS[code])
        arrays.append(array)
    return arrays


def _size(row: Any) -> int:
    if not (isinstance(row, list) and len(row) == 2 and row[0] in list(_KINDS)):
        raise CheckpointError("it holds an array of an unknown type")
    code, shape = row
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS:
        raise CheckpointError("it holds an array of an unknown shape")
    for extent in shape:
        if type(extent) is not int or not 0 <= extent < 2**48:
            raise CheckpointError(f"an array in it has an extent of {extent!r:.20}")
    return math.prod(shape) * int(np.dtype(code).itemsize)


# ------------------------------------------------------------------------ strict JSON


def dump_json(value: Any) -> bytes:
    """Return JSON in which numbers are integers; no float ever passes through text."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")


def load_json(content: bytes) -> Any:
    """Read what :func:`dump_json` writes, and nothing else."""
    try:
        return json.loads(
            content.decode("ascii"),
            object_pairs_hook=_no_repeats,
            parse_float=_refuse,
            parse_constant=_refuse,
        )
    except (ValueError, RecursionError, MemoryError) as error:
        raise CheckpointError(f"its JSON cannot be read ({error!s:.80})") from error


def _no_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name stands twice")
    return made


def _refuse(text: str) -> Any:
    raise ValueError(f"{text:.20} is no integer")
