"""Files of values separated by commas.

By hand: other readers let NaN, text in numbers and shifted columns pass.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.validation import (
    check_choice,
    did_you_mean,
    printable,
    shown,
)
from dszog.errors import InputError
from dszog.readers.content import MAX_BYTES, FilePath, file_error, file_name
from dszog.readers.lines import ENCODINGS, is_number, place_error, quoted, read_lines

DELIMITERS = ",;|\t"
_ADVICE_QUOTES = (
    "Close every quote, and write a quote inside a quoted field twice. A field may "
    "have 131072 characters."
)


@dataclass(frozen=True, kw_only=True)
class Table:
    """The columns of a file, kept as text until asked for as numbers.

    A column never turns into another type because of what one of its fields holds:
    who reads says what a column is, and a field that does not fit is an error.

    Attributes
    ----------
    file : str
        Where the table was read from.
    names : tuple of str
        The names of the columns, in the order of the file.
    lines : ndarray
        The line of the file on which each row starts, counted from 1.
    """

    file: str
    names: tuple[str, ...]
    lines: IntArray = field(repr=False)
    _columns: dict[str, tuple[str, ...]] = field(repr=False)
    _decimal: str = field(default=".", repr=False)
    _thousands: str = field(default="", repr=False)

    @property
    def n_rows(self) -> int:
        """Number of rows, the header not counted."""
        return len(self.lines)

    def texts(self, name: str) -> NDArray[np.str_]:
        """Return a column as text, as it stands in the file."""
        return np.array(self._column(name), dtype=np.str_)

    def numbers(self, name: str) -> FloatArray:
        """Return a column as finite numbers."""
        plain = [self.plain(text) for text in self._column(name)]
        values = [float(text) if text else np.nan for text in plain]
        for row in np.flatnonzero(~np.isfinite(values)).tolist():
            what = "a finite number belongs here"
            raise self.error(row, name, what, "Correct the field.")
        return frozen_floats(values)

    def plain(self, text: str) -> str:
        """Return a number as Python writes it; empty if the text is none."""
        point, mark = re.escape(self._decimal), re.escape(self._thousands)
        if mark == r"\ ":  # French programs write blanks that do not end a line
            text = text.replace("\u202f", " ").replace("\xa0", " ")
        if mark and re.fullmatch(rf"[+-]?\d{{1,3}}({mark}\d{{3}})+({point}\d*)?", text):
            text = text.replace(self._thousands, "")
        if self._decimal != ".":
            text = "" if "." in text else text.replace(self._decimal, ".")
        return text if is_number(text) else ""

    def take(self, kept: NDArray[np.bool_]) -> Table:
        """Return some of the rows."""
        places = np.flatnonzero(kept).tolist()
        columns = {
            name: tuple(column[place] for place in places)
            for name, column in self._columns.items()
        }
        return replace(self, lines=self.lines[kept], _columns=columns)

    def stripped(self) -> Table:
        """Return the same without blanks around the fields and the names."""
        stripped = [name.strip(" ") for name in self.names]
        names = _checked_names(self.file, 1, stripped)
        columns = {
            name: tuple(text.strip(" ") for text in column)
            for name, column in zip(names, self._columns.values(), strict=True)
        }
        return replace(self, names=names, _columns=columns)

    def error(self, row: int, name: str, what: str, advice: str) -> InputError:
        """Return an error that names the file, the line and the column of a field."""
        got = quoted(self._column(name)[row])
        line = int(self.lines[row])
        return place_error(self.file, line, repr(name), f"{what}, got {got}", advice)

    def _column(self, name: str) -> tuple[str, ...]:
        if not isinstance(name, str) or name not in self._columns:
            hint = f"{did_you_mean(name, self.names)} The columns are ".lstrip()
            listed = shown(", ".join(self.names), 200)
            what = f"there is no column {shown(name)}"
            raise file_error(self.file, what, f"{hint}{listed}.")
        return self._columns[name]


def read_csv(
    path: FilePath,
    *,
    delimiter: str | None = ",",
    decimal: str = ".",
    thousands: str = "",
    encoding: str = "utf-8",
    max_bytes: int = MAX_BYTES,
) -> Table:
    r"""Read a file of values separated by commas, plain or gzip, bzip2 or xz.

    Every row must have as many fields as there are names. Fields may be quoted. Line
    ends inside quotes are read as a line feed. Where there are several columns, lines
    of nothing but blanks are left out.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    delimiter : str or None
        What separates the fields: one character. None takes the one of ``,;|`` and the
        tab that the first line has most of.
    decimal : {".", ","}
        What stands before the fraction of a number.
    thousands : {"", ",", ".", "'", " "}
        What groups the digits of a number, by threes.
    encoding : {"utf-8", "latin-1", "cp1252", "utf-16"}
        How the text is written.
    max_bytes : int
        Refuse files with more bytes than this, packed or unpacked.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dszog.readers import read_csv
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "people.csv")
    ...     written = path.write_text("age,sex\n39,Male\n50,Female\n")
    ...     table = read_csv(path)
    >>> table.numbers("age")
    array([39., 50.])
    """
    if delimiter is not None:
        _check_delimiter(delimiter)
    check_choice("read_csv", "decimal", decimal, (".", ","))
    check_choice("read_csv", "thousands", thousands, ("", ",", ".", "'", " "))
    check_choice("read_csv", "encoding", encoding, ENCODINGS)
    if decimal == thousands:
        raise InputError(
            f"read_csv: `decimal` and `thousands` must differ, got {decimal!r} for "
            "both. Leave `thousands` out, or give the other one."
        )
    open_ends = delimiter or DELIMITERS
    lines = read_lines(path, max_bytes=max_bytes, may_end=open_ends, encoding=encoding)
    if delimiter is None:
        first = re.sub('"[^"]*"', "", lines[0])
        delimiter = max(DELIMITERS, key=first.count)
    records = _records(path, lines, delimiter)
    checked = _checked_names(path, *next(records))
    numbers, rows = [], []
    for line, fields in records:
        if len(checked) > 1 and not (fields[1:] or "".join(fields).strip()):
            continue
        if len(fields) != len(checked):
            raise _wrong_width(path, line, fields, checked, delimiter)
        numbers.append(line)
        rows.append(fields)
    if not rows:
        advice = "Get it again; its first line has to be the names of the columns."
        raise file_error(path, "the file has no rows of data", advice)
    return Table(
        file=file_name(path),
        names=checked,
        lines=np.array(numbers, dtype=np.int64),
        _columns=dict(zip(checked, zip(*rows, strict=True), strict=True)),
        _decimal=decimal,
        _thousands=thousands,
    )


def _records(
    path: FilePath, lines: list[str], delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the line on which it starts."""
    ended = (line + "\n" for line in lines)
    reader = csv.reader(ended, delimiter=delimiter, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            said = printable(str(error))
            raise place_error(path, start, 1, said, _ADVICE_QUOTES) from None
        if fields is None:
            return
        yield start, fields


def _check_delimiter(delimiter: str) -> None:
    wrong = not isinstance(delimiter, str) or len(delimiter) != 1
    if wrong or delimiter in '\n\r" \x00':
        raise InputError(
            "read_csv: `delimiter` must be one character and no quote, blank or line "
            f"end, got {shown(delimiter)}. Pass ',', ';' or a tab."
        )


def _checked_names(path: FilePath, line: int, names: list[str]) -> tuple[str, ...]:
    where = f"{file_name(path)}, line {line}"
    for place, name in enumerate(names or [""]):
        if not name.strip() or name in names[:place]:
            raise file_error(
                where,
                f"the name of column {place + 1} is {quoted(name)}, which is empty or "
                "taken",
                "Give each column a name of its own.",
            )
    return tuple(names)


def _wrong_width(
    path: FilePath, line: int, fields: list[str], names: Sequence[str], delimiter: str
) -> InputError:
    place = min(len(fields), len(names))
    where: int | str = repr(names[place]) if place < len(names) else place + 1
    what = f"the row has {len(fields)} fields, {len(names)} belong there"
    advice = (
        f"Write one for each column, separated by {delimiter!r}; quote a field that "
        "contains it."
    )
    return place_error(path, line, where, what, advice)
