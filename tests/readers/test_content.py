"""Bytes come unpacked and bounded, or an error says why not."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from pathlib import Path
from typing import Any

import pytest

from dszog.errors import InputError, InputTypeError
from dszog.readers.content import read_content

TEXT = b"+1 1:0.5 3:2\n" * 100
PACKERS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.mark.parametrize("pack", PACKERS.values(), ids=PACKERS)
class TestPacked:
    def test_a_file_is_unpacked_by_content(self, path: Path, pack: Any) -> None:
        path.write_bytes(pack(TEXT))
        assert read_content(path) == TEXT

    def test_streams_in_a_row_are_one_file(self, path: Path, pack: Any) -> None:
        path.write_bytes(pack(TEXT) + pack(b"more"))
        assert read_content(path) == TEXT + b"more"

    def test_every_cut_is_an_error(self, path: Path, pack: Any) -> None:
        packed = pack(TEXT)
        for size in range(6, len(packed)):
            path.write_bytes(packed[:size])
            with pytest.raises(InputError, match=r"cut off after|damaged"):
                read_content(path)

    def test_altered_bytes_and_more_of_them_are_seen(
        self, path: Path, pack: Any
    ) -> None:
        packed = bytearray(pack(TEXT))
        packed[len(packed) // 2] ^= 0xFF
        for content in (packed, pack(TEXT) + b"garbage"):
            path.write_bytes(content)
            with pytest.raises(InputError, match=r"damaged|cut off"):
                read_content(path)

    def test_a_bomb_is_not_unpacked(self, path: Path, pack: Any) -> None:
        path.write_bytes(pack(bytes(2**25)))  # 32 MiB of zeros
        with pytest.raises(InputError, match="larger than 16777216 bytes"):
            read_content(path)

    def test_many_streams_are_refused(self, path: Path, pack: Any) -> None:
        path.write_bytes(pack(b"") * 1_001)
        with pytest.raises(InputError, match="more than 1000 compressed streams"):
            read_content(path)

    def test_the_limit_counts_unpacked_bytes(self, path: Path, pack: Any) -> None:
        path.write_bytes(pack(TEXT))
        assert read_content(path, max_bytes=len(TEXT)) == TEXT
        with pytest.raises(InputError, match=f"larger than {len(TEXT) - 1} bytes"):
            read_content(path, max_bytes=len(TEXT) - 1)


def test_a_stream_that_wants_much_memory_is_refused(path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**28}]
    packed = lzma.compress(TEXT, check=lzma.CHECK_NONE, filters=filters)
    path.write_bytes(packed)
    with pytest.raises(InputError, match=r"damaged .*[Mm]emory"):
        read_content(path)


@pytest.mark.parametrize(
    ("start", "what"),
    [(b"PK\x03\x04", "a zip archive"), (b"\x28\xb5\x2f\xfd", "compressed with zstd")],
)
def test_other_formats_are_named(path: Path, start: bytes, what: str) -> None:
    path.write_bytes(start + b"...")
    with pytest.raises(InputError, match=f"{what}, which is not read. Unpack"):
        read_content(path)


@pytest.mark.parametrize("wrong", [None, 3, b"data", 1.5, ["data"]])
def test_what_is_no_path_is_refused(wrong: Any) -> None:
    with pytest.raises(InputTypeError, match="must be the path of a file, got"):
        read_content(wrong)


def test_what_cannot_be_read_is_named(path: Path) -> None:
    with pytest.raises(InputError, match=r"data': the file cannot be read .No such"):
        read_content(path)
    with pytest.raises(InputError, match=r"cannot be read \(.*embedded null"):
        read_content("a\0b")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a regular file"):
        read_content(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_refused_and_does_not_block(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(InputError, match="not a regular file"):
        read_content(path)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(path: Path, limit: int) -> None:
    with pytest.raises(InputError, match="`max_bytes` must be at least 1"):
        read_content(path, max_bytes=limit)
