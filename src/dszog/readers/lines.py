"""The lines of a text file, and errors that name a place in it."""

from __future__ import annotations

import re

from dszog.errors import InputError
from dszog.readers.content import FilePath, file_error, file_name, read_content

ENCODINGS = ("utf-8", "latin-1", "cp1252", "utf-16")
"""How the text of a CSV file may be written: cp1252 is that of Windows."""

MAX_LINE = 2**24
"""A line may have this many characters."""

NUMBER = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
"""A decimal number as C writes it: no blanks, no ``1_0``, no ``0x1p3``, no ``nan``."""

_NUMBER = re.compile(NUMBER)
_FORBIDDEN = re.compile(r"[\x00\r]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def is_number(text: str) -> bool:
    """Whether all of a text is a `NUMBER`."""
    return _NUMBER.fullmatch(text) is not None


def place_error(
    path: FilePath, line: int, column: int | str, what: str, advice: str
) -> InputError:
    """Return an error that names a place: ``data.csv, line 3, column 7: ...``."""
    where = f"{file_name(path)}, line {line}, column {column}"
    return file_error(where, what, advice)


def quoted(text: str, width: int = 40) -> str:
    """Return text for a message: quoted, control characters shown, cut if long."""
    return repr(text if len(text) <= width else text[: width - 3] + "...")


def read_lines(
    path: FilePath,
    *,
    max_bytes: int,
    may_end: str | None = None,
    encoding: str = "",
) -> list[str]:
    r"""Return the lines of a text file without their ends, ``\n`` or ``\r\n``.

    Empty lines at the end are left out; they are all that is. The last line has to end,
    but with `may_end` unless it stops at one of these characters. It is UTF-8 unless an
    `encoding` was chosen.
    """
    content = read_content(path, max_bytes=max_bytes).removeprefix(_BYTE_ORDER_MARK)
    text = _decoded(path, content, encoding).replace("\r\n", "\n")
    forbidden = _FORBIDDEN.search(text)
    if forbidden:
        raise _error_at(
            path,
            text,
            forbidden.start(),
            f"unexpected character {forbidden[0]!r}",
            "A text file has none: it is damaged, or not text. Get it again, or "
            "convert it to lines that end in a line feed.",
        )
    is_whole = may_end is not None and text[-1:] not in may_end
    if text and not text.endswith("\n") and not is_whole:
        raise _error_at(
            path,
            text,
            len(text),
            "the last line does not end, so the file may be cut off",
            "Get it again, or end the line if it is whole.",
        )
    lines = text.split("\n")
    while lines and not lines[-1]:
        lines.pop()
    if not lines:
        raise file_error(path, "the file has no lines", "Get it again.")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            what = f"the line has {len(line)} characters, the most is {MAX_LINE}"
            advice = "Is it the right file? If so, store it with fewer columns."
            raise place_error(path, number, MAX_LINE + 1, what, advice)
    return lines


def _decoded(path: FilePath, content: bytes, encoding: str) -> str:
    chosen = encoding or "utf-8"
    try:
        return content.decode(chosen)
    except UnicodeDecodeError as error:
        before = content[: error.start].decode(chosen)
        say = ", say encoding='latin-1' or 'cp1252' if it is" if encoding else ""
        raise _error_at(
            path,
            before,
            len(before),
            f"byte {content[error.start : error.start + 1]!r} is not {chosen.upper()}",
            f"Convert the file to UTF-8{say}, or get it again if it is damaged.",
        ) from None


def _error_at(
    path: FilePath, text: str, position: int, what: str, advice: str
) -> InputError:
    before = text[:position]
    line = before.count("\n") + 1
    return place_error(path, line, position - before.rfind("\n"), what, advice)
