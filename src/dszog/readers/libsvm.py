"""Files in the LIBSVM format: ``label index:value index:value ...``.

By hand: other readers let NaN, indices out of order and a wrong base pass.
"""

from __future__ import annotations

import re
from array import array
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import check_count, check_flag
from dszog.errors import InputError
from dszog.readers.content import MAX_BYTES, FilePath, file_error
from dszog.readers.lines import NUMBER, is_number, place_error, quoted, read_lines

MAX_FEATURES = 2**24
"""The largest index that is taken without being told `n_features`."""
_MOST_FEATURES = 2**31 - 1
_INDEX = r"[0-9]{1,10}"
_ROW = re.compile(rf"[ \t]*({NUMBER})((?:[ \t]+{_INDEX}:{NUMBER})*)[ \t]*")


class LabelledRows(NamedTuple):
    """The rows of a file and their labels.

    Attributes
    ----------
    X : scipy.sparse.csr_array
        One row for each line, shape (n_rows, n_features). Entries that the file writes
        as 0 are stored.
    y : ndarray
        The label of each row.
    """

    X: Any
    y: FloatArray


def read_libsvm(
    path: FilePath,
    n_features: int | None = None,
    *,
    zero_based: bool = False,
    max_bytes: int = MAX_BYTES,
) -> LabelledRows:
    r"""Read a file in the LIBSVM (SVMlight) format, plain or gzip, bzip2 or xz.

    Each line is ``label index:value index:value ...`` with one number for a label,
    ascending indices and finite values. What follows a ``#`` is a comment. Anything
    else is an error that names the line and the column.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    n_features : int, optional
        Number of columns of `X`. Without it, the largest index decides: give it when
        several files belong together, and for more than 16,777,216 columns.
    zero_based : bool
        Whether indices count from 0. This is never guessed.
    max_bytes : int
        Refuse files with more bytes than this, packed or unpacked.

    Returns
    -------
    LabelledRows
        The pair ``(X, y)``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from dszog.readers import read_libsvm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "two_rows")
    ...     written = path.write_text("+1 1:0.5 3:2\n-1 2:1\n")
    ...     X, y = read_libsvm(path)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1., -1.])
    """
    check_flag("read_libsvm", "zero_based", zero_based)
    most = MAX_FEATURES if n_features is None else _checked_width(n_features)
    first = 0 if zero_based else 1
    last = most + first - 1  # largest index allowed
    labels, values = array("d"), array("d")
    columns, ends = array("q"), array("q", [0])
    for number, line in enumerate(read_lines(path, max_bytes=max_bytes), 1):
        data = line.partition("#")[0]
        if data != line and not data.strip(" \t"):
            continue  # a comment on a line of its own
        row = _ROW.fullmatch(data)
        fields = row[2].replace(":", " ").split() if row else []
        indices = list(map(int, fields[::2]))
        entries = list(map(float, fields[1::2]))
        label = float(row[1]) if row else np.nan
        if (
            not _in_order(indices, first, last)
            or not np.isfinite(label)
            or not _all_finite(entries)
        ):
            place, what, advice = _fault(data, first, last, n_features is not None)
            raise place_error(path, number, place, what, advice)
        labels.append(label)
        columns.extend(indices)
        values.extend(entries)
        ends.append(len(values))
    if not labels:
        raise file_error(path, "the file has comments and no rows", "Get it again.")
    places: IntArray = np.frombuffer(columns, dtype=np.int64) - first
    width = n_features or (int(places.max()) + 1 if len(places) else 0)
    if not width:
        what = "no line has an index:value entry, so the number of columns is open"
        raise file_error(path, what, "Pass `n_features`.")
    # 32 bits where they do: not everything that takes a matrix takes 64.
    kind = np.int32 if len(values) < 2**31 else np.int64
    parts = (np.array(values), places.astype(kind), np.array(ends, dtype=kind))
    X = csr_array(parts, shape=(len(labels), width))
    return LabelledRows(X, np.array(labels))


def _checked_width(n_features: Any) -> int:
    width = check_count("read_libsvm", "n_features", n_features)
    if width > _MOST_FEATURES:
        raise InputError(
            f"read_libsvm: `n_features` must be at most {_MOST_FEATURES}, got {width}. "
            "Renumber the columns."
        )
    return width


def _in_order(indices: list[int], first: int, last: int) -> bool:
    return not indices or (
        indices[0] >= first
        and indices[-1] <= last
        and all(map(int.__lt__, indices, indices[1:]))
    )


def _all_finite(values: list[float]) -> bool:
    total = sum(values)  # infinite if one of them is; seldom otherwise
    return total - total == 0 or bool(np.isfinite(values).all())


_ADVICE_EMPTY = "Delete it if it is empty, else begin it with the label."
_ADVICE_ENTRY = "Write entries as index:value, such as 3:0.5, separated by blanks."


def _fault(line: str, first: int, last: int, is_told: bool) -> tuple[int, str, str]:
    """Return the first thing that is wrong in a line: its column, it, and a cure."""
    previous = first - 1
    for place, field in enumerate(re.finditer(r"[^ \t]+", line)):
        if place == 0:
            fault = _fault_of_label(field[0])
        else:
            fault = _fault_of_entry(field[0], previous, first, last, is_told)
        if fault:
            return field.start() + 1, *fault
        if place:
            previous = int(field[0].partition(":")[0])
    return 1, "the line has no label", _ADVICE_EMPTY


def _fault_of_entry(
    field: str, previous: int, first: int, last: int, is_told: bool
) -> tuple[str, str] | None:
    index, colon, value = field.partition(":")
    if not colon:
        return f"{quoted(field)} is not index:value", _ADVICE_ENTRY
    if index == "qid":
        return "a query id (qid) is not read", "Delete the qid fields."
    if not re.fullmatch(r"[0-9]+", index):
        return f"the index {quoted(index)} is not a plain number", _ADVICE_ENTRY
    if len(index) > 10:
        return f"the index {quoted(index)} is longer than 10 digits", _ADVICE_ENTRY
    column = int(index)
    if column > last:
        advice = "Pass a larger `n_features`, or correct the index."
        if not is_told:
            advice = "If it is right, pass `n_features`."
        return f"the index {column} is above {last}", advice
    if column < first:
        return f"the index is {column}, the first is 1", (
            "If the indices of this file count from 0, pass zero_based=True."
        )
    if column <= previous:
        return (
            f"the index {column} does not come after {previous}",
            "Sort the entries of each line, and write each index once.",
        )
    return _fault_of_number(f"the value of index {column}", value)


def _fault_of_label(field: str) -> tuple[str, str] | None:
    if ":" in field:
        return f"the line starts with {quoted(field)}, not with a label", _ADVICE_EMPTY
    if "," in field:
        return f"the label is {quoted(field)}", (
            "Write one number; several labels for one row are not read."
        )
    return _fault_of_number("the label", field)


def _fault_of_number(name: str, field: str) -> tuple[str, str] | None:
    if field and not is_number(field):
        return f"{name} is {quoted(field)}", (
            "Write a finite decimal number, such as 1, -0.5 or 2e-3."
        )
    if not field:
        return f"{name} is missing", "Write a number after the colon, without blanks."
    if not np.isfinite(float(field)):
        return f"{name} is {quoted(field)}, too large for a float64", (
            "Write a number below 1.8e308."
        )
    return None
