"""A file is read back bit for bit, or refused with our error: nothing in between."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dszog._version import VERSION
from dszog.errors import CheckpointError
from dszog.save.container import FORMAT, MAGIC, MAX_HEADER, pack, unpack
from tests.fuzz.mutate import opened, signed

BITS = st.integers(0, 2**64 - 1)
FACTS = {"generation": 7, "about": {"seed": "12"}}


def small_file() -> bytes:
    numbers = np.array([1.0, -0.0, 5e-324, np.inf, np.nan])
    return b"".join(pack(FACTS, [numbers, np.arange(6).reshape(2, 3)]))


def with_header(header: Any, length: int | None = None) -> bytes:
    """Return a file with another header, which says that it has some length."""
    prefix, _, arrays = opened(small_file())
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return signed(prefix, len(text) if length is None else length, text, arrays)


@given(st.lists(BITS, max_size=50))
def test_every_pattern_of_64_bits_comes_back(patterns: list[int]) -> None:
    bits = np.array(patterns, dtype=np.uint64)
    _, (floats, ints) = unpack(
        b"".join(pack({}, [bits.view(np.float64), bits.view(np.int64)]))
    )
    np.testing.assert_array_equal(floats.view(np.uint64), bits)
    np.testing.assert_array_equal(ints.view(np.uint64), bits)


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0), (2, 3), (2, 3, 4)])
def test_shapes_and_facts_come_back_in_any_order(shape: tuple[int, ...]) -> None:
    array = np.arange(float(np.prod(shape))).reshape(shape)
    orders = (array, array.T, array[..., ::-1] if shape else array)
    facts, found = unpack(b"".join(pack(FACTS, orders)))
    assert facts == FACTS
    assert found[0].flags.c_contiguous
    assert found[0].dtype == np.float64
    for back, there in zip(found, orders, strict=True):
        np.testing.assert_array_equal(back, there)


def test_no_truncation_and_no_addition_goes_unnoticed() -> None:
    content = small_file()
    for length in range(len(content)):
        with pytest.raises(CheckpointError):
            unpack(content[:length])
    for more in (b"\0", b"x" * 100, content):
        with pytest.raises(CheckpointError):
            unpack(content + more)


def test_no_single_bit_flips_unnoticed() -> None:
    content = bytearray(small_file())
    for place in range(8 * len(content)):
        content[place // 8] ^= 1 << (place % 8)
        with pytest.raises(CheckpointError):
            unpack(bytes(content))
        content[place // 8] ^= 1 << (place % 8)


def test_a_newer_format_says_what_to_install() -> None:
    prefix, header, arrays = opened(small_file())
    prefix[1] = FORMAT + 1
    text = json.dumps(header).encode()
    with pytest.raises(CheckpointError, match=f"format 2.*'dszog>={VERSION}'"):
        unpack(signed(prefix, len(text), text, arrays))


WRONG_HEADERS: dict[str, Any] = {
    "no JSON": b"{",
    "not ASCII": b'{"facts": {}, "arrays": "\xff"}',
    "a list": [],
    "other parts": {"facts": {}, "arrays": [], "more": 1},
    "no facts": {"facts": [], "arrays": []},
    "no table": {"facts": {}, "arrays": 3},
    "a float": b'{"facts": {"x": 1.5}, "arrays": []}',
    "not a number": b'{"facts": {"x": NaN}, "arrays": []}',
    "a name twice": b'{"facts": {}, "facts": {}, "arrays": []}',
    "too deep": b"[" * 20_000,
    "too many digits": b'{"facts": {"x": ' + b"9" * 5000 + b'}, "arrays": []}',
    "unknown type": {"facts": {}, "arrays": [["|O", [5]], ["<i8", [6]]]},
    "type in a list": {"facts": {}, "arrays": [[["<f8"], [5]], ["<i8", [6]]]},
    "negative": {"facts": {}, "arrays": [["<f8", [-5]], ["<i8", [6]]]},
    "negative twice": {"facts": {}, "arrays": [["<f8", [-5, -1]], ["<i8", [6]]]},
    "text": {"facts": {}, "arrays": [["<f8", ["5"]], ["<i8", [6]]]},
    "huge": {"facts": {}, "arrays": [["<f8", [2**47]], ["<i8", [6]]]},
    "huge product": {"facts": {}, "arrays": [["<f8", [2**40, 2**40]]]},
    "true": {"facts": {}, "arrays": [["<f8", [True]], ["<i8", [6]]]},
    "too few": {"facts": {}, "arrays": [["<f8", [5]]]},
    "too many dimensions": {"facts": {}, "arrays": [["<f8", [1] * 5]]},
    "a hole": {"facts": {}, "arrays": [["<f8", [4]], ["<i8", [6]]]},
}


@pytest.mark.parametrize("header", WRONG_HEADERS.values(), ids=WRONG_HEADERS)
def test_a_hostile_header_with_a_right_checksum_is_refused(header: Any) -> None:
    with pytest.raises(CheckpointError):
        unpack(with_header(header))


def test_a_header_that_claims_more_than_there_is_is_refused() -> None:
    _, header, _ = opened(small_file())
    for length in (MAX_HEADER + 1, 2**32 - 1, MAX_HEADER):
        with pytest.raises(CheckpointError, match="claims"):
            unpack(with_header(header, length))


def test_a_header_that_would_be_too_long_is_not_written() -> None:
    with pytest.raises(CheckpointError, match="header"):
        pack({"text": "x" * MAX_HEADER}, [])


@given(st.binary(max_size=200))
def test_any_bytes_behind_the_magic_are_refused(content: bytes) -> None:
    for start in (b"", MAGIC, MAGIC + struct.pack("<I", FORMAT)):
        whole = start + content
        with pytest.raises(CheckpointError):
            unpack(whole + hashlib.sha256(whole).digest())
