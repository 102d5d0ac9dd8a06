"""A CSV file is read as the standard library reads it, or refused by its place."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dszog.errors import InputError
from dszog.readers import Table, read_csv


def read(content: str | bytes, **options: Any) -> Table:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_csv(path, **options)


def test_columns_are_numbers_texts_or_choices_as_asked() -> None:
    table = read("age,sex,code\n39,Male,007\n50,Female,1e3\n")
    assert table.names == ("age", "sex", "code")
    assert table.n_rows == 2
    np.testing.assert_array_equal(table.numbers("age"), [39, 50])
    assert table.texts("code").tolist() == ["007", "1e3"]
    np.testing.assert_array_equal(table.numbers("code"), [7, 1000])


def test_a_field_that_is_no_number_is_refused_by_place() -> None:
    table = read("a,b\n1,?\n?,x\n")
    with pytest.raises(InputError, match="table, line 3, column 'a': a finite number"):
        table.numbers("a")


def test_quotes_may_hold_delimiters_quotes_and_line_ends() -> None:
    table = read('a;b\n"x;""y""";"1\r\n2"\nz;3\n', delimiter=";")
    assert table.texts("a").tolist() == ['x;"y"', "z"]
    assert table.texts("b").tolist() == ["1\n2", "3"]
    assert table.lines.tolist() == [2, 4]


fields = st.text(
    st.characters(codec="utf-8", exclude_characters="\0\r"), min_size=0, max_size=5
)


@given(st.lists(st.lists(fields, min_size=2, max_size=2), min_size=1, max_size=5))
def test_what_the_standard_library_writes_is_read_back(rows: list[list[str]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([["a", "b"], *rows])
    table = read(text.getvalue())
    # An array of text drops NULs at the end, of which there are none.
    assert table.texts("a").tolist() == [row[0] for row in rows]
    assert table.texts("b").tolist() == [row[1] for row in rows]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_numbers_are_read_back_to_the_bit(values: list[float]) -> None:
    table = read("x\n" + "".join(f"{value!r}\n" for value in values))
    assert table.numbers("x").tobytes() == np.array(values).tobytes()


snippets = st.sampled_from(
    ["a", "1", ",", '"', "\n", "\r\n", "\r", "\0", " ", ";", "é"]
)


@given(st.one_of(st.lists(snippets).map("".join).map(str.encode), st.binary()))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        table = read(content)
    except InputError:
        return
    text = content.removeprefix(b"\xef\xbb\xbf").decode().replace("\r\n", "\n")
    header, *rows = csv.reader(io.StringIO(text.rstrip("\n") + "\n", newline=""))
    rows = [row for row in rows if len(header) == 1 or row[1:] or "".join(row).strip()]
    assert table.names == tuple(header)
    for name, column in zip(header, zip(*rows, strict=True), strict=True):
        assert tuple(table.texts(name).tolist()) == column


def test_lines_of_blanks_are_left_out_and_lines_keep_their_numbers() -> None:
    table = read("a,b\n\n1,2\n  \n3,4\n")
    assert table.numbers("b").tolist() == [2.0, 4.0]
    assert table.lines.tolist() == [3, 5]


def test_the_last_line_need_not_end() -> None:
    assert read("a,b\n1,2\n3,4").numbers("b").tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1\n", "table, line 2, column 'b': the row has 1 fields, 2 belong"),
        ("a,b\n1,2\n1,2,3\n", "table, line 3, column 3: the row has 3 fields, 2 bel"),
        ("a\n1\n\n2\n", "table, line 3, column 'a': the row has 0 fields, 1 belong"),
        (
            "\na,b\n1,2\n",
            "table, line 1: the name of column 1 is '', which is empty or",
        ),
        ("a,b\n1,2\n1,", "table, line 3, column 3: the last line does not end"),
        ("a,b\n1,2\n1", "table, line 3, column 'b': the row has 1 fields, 2 belong"),
        ('a,b\n1,"2\n', "table, line 2, column 1: unexpected end of data. Close ever"),
        ('a,b\n1,"2"3\n', "table, line 2, column 1: ',' expected after '\"'. Close"),
        (f"a\n{'x' * 200_000}\n", "line 2, column 1: field larger than field limit"),
        ("a,b\n", "table: the file has no rows of data. Get it again; its first"),
        ("a,a\n1,2\n", "table, line 1: the name of column 2 is 'a', which is empty or"),
        ("a,\n1,2\n", "table, line 1: the name of column 2 is '', which is empty or t"),
        ("", "table: the file has no lines"),
    ],
)
def test_a_bad_file_is_refused_by_place(content: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        read(content)


@pytest.mark.parametrize(
    "text",
    ["", " ", "nan", "inf", "1e999", "1_0", "0x1", "1 ", " 1", "x", "1,5", "\u0661"],
)
def test_what_is_no_finite_number_is_refused(text: str) -> None:
    table = read(f'x,y\n1,2\n"{text}",3\n')
    place = "table, line 3, column 'x': a finite number belongs here, got "
    with pytest.raises(InputError, match=re.escape(place + repr(text))):
        table.numbers("x")


def test_an_unknown_column_is_refused_with_the_nearest_name() -> None:
    table = read("income,age\n1,2\n")
    with pytest.raises(InputError, match=r"no column 'incom'. Did you mean 'income'?"):
        table.numbers("incom")
    with pytest.raises(InputError, match="no column 3"):
        table.texts(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("delimiter", ["", ",,", "\n", '"', 3])
def test_a_wrong_delimiter_is_refused(delimiter: Any) -> None:
    with pytest.raises(InputError, match="`delimiter` must be one character"):
        read("a\n1\n", delimiter=delimiter)


@pytest.mark.parametrize(
    ("head", "delimiter"),
    [("a,b", ","), ("a;b", ";"), ("a\tb", "\t"), ("a|b", "|"), ('"a;;;x",b', ",")],
)
def test_the_delimiter_is_found(head: str, delimiter: str) -> None:
    table = read(f"{head}\n1{delimiter}2\n", delimiter=None)
    assert table.numbers(table.names[1]).tolist() == [2.0]


@pytest.mark.parametrize(
    ("decimal", "thousands", "text", "number"),
    [
        (".", ",", "1,234.5", "1234.5"),
        (",", ".", "-1.234.567,8", "-1234567.8"),
        (",", "", "0,5", "0.5"),
        (".", "'", "12'345", "12345"),
        (",", " ", "12\u202f345\xa0678,9", "12345678.9"),
        (".", ",", "12,34", ""),  # no group of three
        (".", ",", "1234,567", ""),
        (",", ".", "1.5", ""),  # neither a group nor a fraction
        (",", "", "1.5", ""),
        (".", "", "1,5", ""),
    ],
)
def test_numbers_are_read_as_they_are_said_to_be_written(
    decimal: str, thousands: str, text: str, number: str
) -> None:
    forms = {"delimiter": ";", "decimal": decimal, "thousands": thousands}
    table = read(f"a;b\n{text};1\n", **forms)
    assert table.plain(text) == number
    if number:
        assert table.numbers("a").tolist() == [float(number)]
    else:
        with pytest.raises(InputError, match="a finite number belongs here"):
            table.numbers("a")
