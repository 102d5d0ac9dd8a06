"""The bytes of a file, unpacked where it is compressed, and never more than a limit."""

from __future__ import annotations

import bz2
import lzma
import os
import stat
import zlib
from collections.abc import Callable
from typing import Any, TypeAlias

from dszog.contract.validation import check_count, printable, shown
from dszog.errors import InputError, InputTypeError

FilePath: TypeAlias = str | os.PathLike[str]

MAX_BYTES = 2**28
"""A file may have this many bytes, compressed or not, unless the caller allows more."""
_SMALL = 2**24  # so little is unpacked whatever the ratio
_MAX_RATIO = 200  # of the unpacked size to the packed one; text seldom exceeds 50
_MAX_MEMBERS = 1_000  # streams in one file, as `cat a.gz b.gz` makes them
_MAX_LZMA_MEMORY = 2**27  # `xz -9` needs half of it

_UNPACKERS: dict[bytes, Callable[[], Any]] = {
    b"\x1f\x8b": lambda: zlib.decompressobj(wbits=31),
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\x00": lambda: lzma.LZMADecompressor(
        lzma.FORMAT_XZ, memlimit=_MAX_LZMA_MEMORY
    ),
}
_REFUSED = {
    b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\x93NUMPY": "a NumPy file",
    b"\x89HDF": "an HDF5 file",
}


def read_content(path: FilePath, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Return the content of a file, unpacked if it is a gzip, bzip2 or xz file."""
    # What a file is shows in its first bytes; its name does not matter.
    limit = check_count(
        "read", "max_bytes", max_bytes, advice="Pass a number of bytes such as 2**28."
    )
    name = file_name(path)
    try:
        packed = _read(name, limit)
        for magic, what in _REFUSED.items():
            if packed.startswith(magic):
                raise file_error(
                    name,
                    f"the file is {what}, which is not read",
                    "Unpack or convert it to text, and pass that file.",
                )
        for magic, unpacker in _UNPACKERS.items():
            if packed.startswith(magic):
                return _unpacked(name, packed, unpacker, limit)
    except MemoryError:
        raise file_error(
            name,
            "the content does not fit into the memory. Is it the right file?",
            "If so, store it in parts, or read it on a machine with more.",
        ) from None
    return packed


def file_name(path: FilePath) -> str:
    """Return a path as text; refuse what is no path."""
    try:
        name = os.fspath(path)
    except TypeError:
        name = None
    if not isinstance(name, str):
        raise InputTypeError(
            f"read: `path` must be the path of a file, got {shown(path)}. Pass a str "
            "or a pathlib.Path."
        )
    return name


def file_error(path: FilePath, what: str, advice: str) -> InputError:
    """Return an error about a whole file; nothing in its name steers a terminal."""
    stop = "" if what.endswith("?") else "."
    return InputError(f"{printable(file_name(path))}: {what}{stop} {advice}")


def _read(name: str, limit: int) -> bytes:
    content = b""
    try:
        # A pipe or a device could block or go on forever: look before opening.
        found = os.stat(name)
        is_file = stat.S_ISREG(found.st_mode)
        if is_file and found.st_size <= limit:
            with open(name, "rb") as file:
                content = file.read(found.st_size + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"{name!r}: the file cannot be read ({reason}). Check the path and its "
            "permissions."
        ) from None
    if not is_file:
        raise file_error(
            name,
            "not a regular file",
            "Pass the path of a file, not of a folder, a pipe or a device.",
        )
    if max(found.st_size, len(content)) > limit:  # it may have grown since
        raise _too_large(name, limit)
    return content


def _unpacked(
    name: str, packed: bytes, unpacker: Callable[[], Any], max_bytes: int
) -> bytes:
    limit = min(max_bytes, max(_SMALL, _MAX_RATIO * len(packed)))
    members: list[bytes] = []
    size = 0
    while packed:
        if len(members) == _MAX_MEMBERS:
            what = f"the file holds more than {_MAX_MEMBERS} compressed streams"
            raise file_error(name, what, "Unpack it first, and pass that file.")
        stream = unpacker()
        try:
            member = stream.decompress(packed, limit - size + 1)
        except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
            what = f"the compressed file is damaged ({error})"
            raise file_error(name, what, "Get it again.") from None
        size += len(member)
        if size > limit:
            raise _too_large(name, limit)
        if not stream.eof:
            what = f"the compressed file is cut off after {size} unpacked bytes"
            raise file_error(name, what, "Get it again.")
        members.append(member)
        packed = stream.unused_data
    return b"".join(members)


def _too_large(name: str, limit: int) -> InputError:
    return file_error(
        name,
        f"the content is larger than {limit} bytes, the most that is read. Is it the "
        "right file?",
        "If so, unpack it and pass a larger `max_bytes`.",
    )
