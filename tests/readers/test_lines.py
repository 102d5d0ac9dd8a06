"""Lines come whole, or an error names the place."""

from __future__ import annotations

from pathlib import Path

import pytest

from dszog.errors import InputError
from dszog.readers import lines
from dszog.readers.lines import read_lines


def _read(folder: Path, content: bytes) -> list[str]:
    path = folder / "text"
    path.write_bytes(content)
    return read_lines(path, max_bytes=2**20)


@pytest.mark.parametrize(
    "content",
    [b"a\nb\n", b"a\r\nb\r\n", b"a\nb\r\n", b"\xef\xbb\xbfa\nb\n", b"a\nb\n\n\r\n"],
)
def test_line_ends_and_marks_do_not_matter(tmp_path: Path, content: bytes) -> None:
    assert _read(tmp_path, content) == ["a", "b"]


def test_only_a_line_feed_ends_a_line(tmp_path: Path) -> None:
    text = "a\x0bb\x0cc\x1cd\x85e\u2028f\n"
    assert _read(tmp_path, text.encode()) == [text[:-1]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file has no lines"),
        (b"\n\n", "the file has no lines"),
        (b"ab\ncd", "line 2, column 3: the last line does not end"),
        (b"ab\nc\0d\n", r"line 2, column 2: unexpected character '\\x00'"),
        (b"ab\nc\rd\n", r"line 2, column 2: unexpected character '\\r'"),
        (b"ab\r", r"line 1, column 3: unexpected character '\\r'"),
        (b"ab\nc\xffd\n", r"line 2, column 2: byte b'\\xff' is not UTF-8"),
        (b"a\xc3", r"line 1, column 2: byte b'\\xc3' is not UTF-8"),
        ("a\n".encode("utf-16"), "line 1, column 1: byte .* is not UTF-8"),
        ("a\n".encode("utf-16-le"), "line 1, column 2: unexpected character"),
    ],
)
def test_damage_is_told_by_place(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=f"text(, |: ){message}"):
        _read(tmp_path, content)


def test_too_long_a_line_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 3)
    assert _read(tmp_path, b"abc\n") == ["abc"]
    with pytest.raises(InputError, match="line 2, column 4: the line has 4 characters"):
        _read(tmp_path, b"abc\nabcd\n")
