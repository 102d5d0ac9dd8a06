"""A LIBSVM file is read as scikit-learn reads it, or refused by line and column."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dszog.errors import InputError, InputTypeError
from dszog.readers import LabelledRows, read_libsvm
from dszog.readers.libsvm import MAX_FEATURES


def read(content: str | bytes, *args: Any, **options: Any) -> LabelledRows:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows")
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return read_libsvm(path, *args, **options)


def test_rows_and_labels_are_read() -> None:
    X, y = read("+1 1:0.5 3:-2e-1\n-1\n0.5 2:.5\t3:1. \n")
    np.testing.assert_array_equal(X.toarray(), [[0.5, 0, -0.2], [0, 0, 0], [0, 0.5, 1]])
    np.testing.assert_array_equal(y, [1, -1, 0.5])
    assert X.dtype == y.dtype == np.float64


def test_comments_are_left_out() -> None:
    X, y = read("# a header\n1 1:2 # a note: 7:x\n  # more\n-1 2:3#\n")
    np.testing.assert_array_equal(X.toarray(), [[2, 0], [0, 3]])
    np.testing.assert_array_equal(y, [1, -1])


def test_the_number_of_columns_is_told_or_the_largest_index() -> None:
    assert read("1 3:1\n").X.shape == (1, 3)
    assert read("1 3:1\n", 7).X.shape == (1, 7)
    assert read("1\n", n_features=7).X.shape == (1, 7)


def test_zero_based_is_taken_on_request_only() -> None:
    X, _ = read("1 0:5 2:6\n", zero_based=True)
    np.testing.assert_array_equal(X.toarray(), [[5, 0, 6]])
    X, _ = read("1 1:5\n", zero_based=True)  # never guessed from the indices
    np.testing.assert_array_equal(X.toarray(), [[0, 5]])


def test_a_large_index_takes_no_memory() -> None:
    assert read("1 2147483647:1\n", 2**31 - 1).X.shape == (1, 2**31 - 1)


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.from_regex(
        r"[+-]?[0-9]{1,5}\.?[0-9]{0,5}([eE][+-]?[0-9]{1,2})?", fullmatch=True
    ),
    st.from_regex(r"[+-]?\.[0-9]{1,25}", fullmatch=True),
).filter(str.isascii)


@st.composite
def files(draw: st.DrawFn) -> str:
    lines = []
    for _ in range(draw(st.integers(1, 6))):
        blank = st.sampled_from([" ", "  ", "\t", " \t "])
        indices = sorted(draw(st.sets(st.integers(1, 40), max_size=6)))
        entries = [f"{draw(blank)}{index}:{draw(numbers)}" for index in indices]
        tail = draw(st.sampled_from(["", " ", " # note", "\t"]))
        end = draw(st.sampled_from(["\n", "\r\n"]))
        lines.append(draw(numbers) + "".join(entries) + tail + end)
    return "".join(lines)


def by_scikit_learn(content: bytes, **options: Any) -> Any:
    datasets = pytest.importorskip("sklearn.datasets")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows")
        path.write_bytes(content)
        return datasets.load_svmlight_file(str(path), zero_based=False, **options)


@given(files())
def test_every_valid_file_is_read_as_scikit_learn_reads_it(content: str) -> None:
    X, y = read(content, 40)
    expected, labels = by_scikit_learn(content.encode(), n_features=40)
    np.testing.assert_array_equal(X.toarray(), expected.toarray())
    np.testing.assert_array_equal(y, labels)


def by_definition(content: bytes) -> tuple[list[dict[int, float]], list[float]]:
    """Read a file in as few words as possible, and ask no questions."""
    rows, labels = [], []
    for line in content.decode().split("\n"):
        label, *entries = line.split("#")[0].split() or [""]
        if label:
            labels.append(float(label))
            pairs = (entry.split(":") for entry in entries)
            rows.append({int(index): float(value) for index, value in pairs})
    return rows, labels


ALPHABET = b"+-.0123456789eEnaif:# \t\n\r_x,q\x00\xc3\xa9"
near_misses = st.builds(
    lambda text, place, byte, size: (
        text.encode()[: place % len(text)]
        + byte
        + text.encode()[place % len(text) + size :]
    ),
    files(),
    st.integers(0, 10_000),
    st.lists(st.sampled_from(list(ALPHABET)), max_size=3).map(bytes),
    st.integers(0, 3),
)


@given(st.one_of(near_misses, st.binary(max_size=60), st.text().map(str.encode)))
@example(b"\x1f\x8b")
@example(b"1 1:1\n" + b"\xef\xbb\xbf")
def test_any_bytes_are_read_rightly_or_refused(content: bytes) -> None:
    try:
        X, y = read(content)
    except InputError:
        return
    rows, labels = by_definition(content.removeprefix(b"\xef\xbb\xbf"))
    assert labels == y.tolist()
    for row, expected in zip(X.toarray(), rows, strict=True):
        assert {i: v for i, v in expected.items() if v} == {
            i + 1: row[i] for i in np.flatnonzero(row)
        }
    theirs, their_labels = by_scikit_learn(content.removeprefix(b"\xef\xbb\xbf"))
    np.testing.assert_array_equal(X.toarray()[:, : theirs.shape[1]], theirs.toarray())
    np.testing.assert_array_equal(y, their_labels)


BAD_LINES = [
    ("1 2:1 1:1", 7, "the index 1 does not come after 2"),
    ("1 0:1", 3, "the index is 0, the first is 1"),
    ("1 -1:1", 3, "the index '-1' is not a plain number"),
    ("1 \u0661:1", 3, "the index '\u0661' is not a plain number"),
    ("1 :1", 3, "the index '' is not a plain number"),
    ("1 00000000001:1", 3, "the index '00000000001' is longer than 10 digits"),
    ("1 16777217:1", 3, "the index 16777217 is above 16777216. If it is right, pass"),
    (f"1 {'9' * 5000}:1", 3, "is longer than 10 digits"),
    ("1 1:", 3, "the value of index 1 is missing"),
    ("1 1: 2", 3, "the value of index 1 is missing"),
    ("1 1 :2", 3, "'1' is not index:value"),
    ("1 1:nan", 3, "the value of index 1 is 'nan'"),
    ("1 1:inf", 3, "the value of index 1 is 'inf'"),
    ("1 1:1e999", 3, "the value of index 1 is '1e999', too large"),
    ("1 1:1_0", 3, "the value of index 1 is '1_0'"),
    ("1 1:1,5", 3, "the value of index 1 is '1,5'"),
    ("1 1:\u0661", 3, "the value of index 1 is '\u0661'"),
    ("1 1:1:1", 3, "the value of index 1 is '1:1'"),
    ("1 1:1e", 3, "the value of index 1 is '1e'"),
    ("1 1:.", 3, "the value of index 1 is '.'"),
    ("1 1:1 2", 7, "'2' is not index:value"),
    ("1 1:1\x0b2:1", 3, r"the value of index 1 is '1\x0b2:1'"),
    ("1 1:1\u00a02:1", 3, "the value of index 1 is"),
    ("1 qid:3 1:1", 3, "a query id (qid) is not read. Delete the qid fields"),
    ("1:1 2:1", 1, "the line starts with '1:1', not with a label"),
    ("  1:1", 3, "the line starts with '1:1', not with a label"),
    ("1,2 1:1", 1, "the label is '1,2'. Write one number; several labels"),
    ("yes 1:1", 1, "the label is 'yes'"),
    ("nan 1:1", 1, "the label is 'nan'"),
    ("1e400 1:1", 1, "the label is '1e400', too large"),
    ("", 1, "the line has no label. Delete it if it is empty"),
    ("   ", 1, "the line has no label"),
    ("<!DOCTYPE html>", 1, "the label is '<!DOCTYPE'"),
]


@pytest.mark.parametrize(("line", "column", "message"), BAD_LINES)
def test_a_bad_line_is_refused_by_place(line: str, column: int, message: str) -> None:
    place = re.escape(f"rows, line 2, column {column}: ")
    with pytest.raises(InputError, match=place + ".*" + re.escape(message)) as caught:
        read(f"1 1:1\n{line}\n1 1:1\n")
    assert len(str(caught.value).partition("rows, ")[2]) < 200


def test_a_cut_off_file_is_refused_wherever_it_is_cut() -> None:
    content = "+1 1:0.5 3:2\n-1 2:1 13:1\n"
    for size in range(len(content)):
        if content[:size].endswith("\n"):
            continue  # a whole line less: only a checksum can tell
        with pytest.raises(InputError, match=r"may be cut off|has no lines"):
            read(content[:size])


def test_a_file_without_rows_is_refused() -> None:
    with pytest.raises(InputError, match="comments and no rows"):
        read("# nothing\n")
    with pytest.raises(InputError, match=r"no line has an index:value.*`n_features`"):
        read("1\n-1\n")


def test_an_index_above_the_told_number_of_columns_is_refused() -> None:
    with pytest.raises(InputError, match=r"index 3 is above 2. Pass a larger `n_feat"):
        read("1 3:1\n", 2)
    with pytest.raises(InputError, match="index 2 is above 1"):
        read("1 2:1\n", 2, zero_based=True)


def test_many_columns_must_be_told() -> None:
    assert read(f"1 {MAX_FEATURES}:1\n").X.shape == (1, MAX_FEATURES)
    assert read("1 50000000:1\n", 50_000_000).X.shape == (1, 50_000_000)
    with pytest.raises(InputError, match=r"above 16777216. If it is right, pass `n_f"):
        read("1 50000000:1\n")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"n_features": 0}, InputError),
        ({"n_features": 2**31}, InputError),
        ({"n_features": 1.5}, InputTypeError),
        ({"zero_based": "auto"}, InputTypeError),
    ],
    ids=str,
)
def test_a_wrong_option_is_refused(options: dict[str, Any], error: type) -> None:
    with pytest.raises(error, match=f"`{next(iter(options))}` must be"):
        read("1 1:1\n", **options)
