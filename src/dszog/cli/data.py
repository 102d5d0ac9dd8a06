"""Rows of a LIBSVM or CSV file as a classifier takes them, and the way back by name.

A column of numbers becomes a feature of its name. A column of words becomes a feature
``name=word`` for each word, 1 where it stands. So the names of a model's features say
all that is needed to read other files in the same way.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from cyclopts import Parameter
from numpy.typing import NDArray
from scipy import sparse

from dszog.cli.options import Flag, Many
from dszog.contract.arrays import FloatArray
from dszog.contract.validation import did_you_mean, printable, shown
from dszog.errors import InputError
from dszog.readers import Table, read_csv, read_libsvm

MOST_WORDS = 200  # different words in one column
PACKED = (".gz", ".bz2", ".xz")
NO_LABEL = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "?")
MISSING = (*NO_LABEL, "-")  # of numbers; a label may be + or -
REMEMBERED = ("delimiter", "decimal", "thousands", "encoding", "missing")  # by a model
CURE = "Correct it, or say how numbers are written, as in --decimal , --thousands ."
SIGN = "="  # between the name of a column and a word in it
_LIKE_NUMBER = re.compile(  # or missing
    rf"[+-]?[\d.,' ]*\d[\d.,' ]*|{'|'.join(map(re.escape, MISSING))}"
)
_AT_MOST_999 = re.compile(r"[+-]?[0-9]{1,3}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,15}")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file of rows is read."""

    format: Literal["auto", "csv", "libsvm"] = "auto"
    """auto goes by the name: .csv and .tsv are CSV, all others LIBSVM."""
    delimiter: str | None = None
    """What separates the fields of a CSV file; found in its first line if not given,
    and a tab in .tsv."""
    decimal: Literal[".", ","] | None = None
    """What a CSV file has before the fraction of a number; a point if not given."""
    thousands: Literal[",", ".", "'", " "] | None = None
    """What groups the digits of numbers in a CSV file, as the comma in 1,234."""
    encoding: Literal["utf-8", "latin-1", "cp1252", "utf-16"] | None = None
    """How the text of a CSV file is written: utf-8 if not given, cp1252 on Windows."""
    missing: Literal["refuse", "drop", "fill"] | None = None
    """What to do about numbers that are missing in a CSV file (empty, NA, NaN, null,
    None, ?): refuse the file (if not given), drop such rows, or fill in the mean of
    the column."""

    @property
    def given(self) -> dict[str, str]:
        """What was typed, for a model to remember."""
        return {name: getattr(self, name) for name in REMEMBERED if getattr(self, name)}

    def after(self, remembered: dict[str, str]) -> Reading:
        """Return the same, and what a model remembers where nothing was typed."""
        known = {name: remembered[name] for name in REMEMBERED if name in remembered}
        return replace(self, **(known | self.given))  # type: ignore[arg-type]

    def is_csv(self, path: Path) -> bool:
        """Whether a file has named columns."""
        if self.format != "auto":
            return self.format == "csv"
        return _ending(path) in (".csv", ".tsv")

    def table(self, path: Path) -> Table:
        """Return the columns of a CSV file."""
        usual = "\t" if _ending(path) == ".tsv" else None
        try:
            return read_csv(
                path,
                delimiter=self.delimiter or usual,
                decimal=self.decimal or ".",
                thousands=self.thousands or "",
                encoding=self.encoding or "utf-8",
            ).stripped()
        except InputError as error:
            option = r"--encoding \1 or \2"
            said = re.sub("encoding='(.*?)' or '(.*?)'", option, str(error))
            raise InputError(said) from None


BY_NAME = Reading()


def _ending(path: Path) -> str:
    ends = [end.lower() for end in path.suffixes]
    while ends and ends[-1] in PACKED:
        ends.pop()
    return ends[-1] if ends else ""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """What a model is fitted on, or looked at with."""

    X: Any  # (n, d), dense or sparse
    y: NDArray[Any]  # (n,)
    sensitive: dict[str, NDArray[Any]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.y)

    def take(self, places: NDArray[np.intp]) -> Samples:
        sensitive = {name: column[places] for name, column in self.sensitive.items()}
        return Samples(X=self.X[places], y=self.y[places], sensitive=sensitive)


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Which columns of a CSV file are features, and what each becomes."""

    words: dict[str, tuple[str, ...]]  # by column; empty for a column of numbers
    means: dict[str, float]  # of columns of numbers, for those that are missing

    @classmethod
    def of(cls, table: Table, used: Sequence[str], categorical: Iterable[str]) -> Self:
        """Decide what the columns of a table are; refuse those that are mixed."""
        as_words = set(categorical)
        found: dict[str, tuple[str, ...]] = {}
        means: dict[str, float] = {}
        for name in used:
            if SIGN in name:
                raise InputError(
                    f"{printable(table.file)}: the name of a feature must not have "
                    f"{SIGN!r} in it, got {shown(name)}. Rename the column, or leave "
                    "it out: --drop."
                )
            if name not in as_words and has_numbers(table, name):
                found[name] = ()
                numbers = map(table.plain, _present(table, name))
                means[name] = float(np.mean(list(map(float, numbers))))
                continue
            if name not in as_words:
                _refuse_mixed(table, name)
            found[name] = tuple(sorted(set(table.texts(name).tolist())))
        many = {n: len(words) for n, words in found.items() if len(words) > MOST_WORDS}
        if many:
            listed = ", ".join(f"{shown(n)} has {k:,}" for n, k in many.items())
            dropped = " ".join(f"--drop {_typed(name)}" for name in many)
            raise InputError(
                f"{printable(table.file)}: column {listed} different words, the most "
                f"is {MOST_WORDS}. Leave it out: {dropped}."
            )
        if not found:
            raise InputError(
                f"{printable(table.file)}: no column is left to learn from. Drop fewer."
            )
        return cls(words=found, means=means)

    @classmethod
    def named(cls, features: Sequence[str], means: Iterable[float]) -> Self:
        """Return the columns that the features of a model were made of."""
        words: dict[str, list[str]] = {}
        for feature in features:
            name, sign, word = feature.partition(SIGN)
            listed = words.setdefault(name, [])
            if sign:
                listed.append(word)
        return cls(
            words={name: tuple(listed) for name, listed in words.items()},
            means=dict(zip(features, means, strict=True)),
        )

    @property
    def features(self) -> list[str]:
        """The names of the features, in order."""
        return [
            feature
            for name, words in self.words.items()
            for feature in ([f"{name}{SIGN}{word}" for word in words] or [name])
        ]

    def matrix(self, table: Table) -> tuple[FloatArray, dict[str, int]]:
        """Return the features of a table, and how many words in each column are new."""
        missing = [name for name in self.words if name not in table.names]
        if missing:
            raise InputError(
                f"{printable(table.file)}: the model needs the columns "
                f"{shown(', '.join(self.words), 200)}, got a file without "
                f"{shown(', '.join(missing), 100)}."
                f"{did_you_mean(missing[0], table.names)} Give them all."
            )
        parts: list[FloatArray] = []
        new: dict[str, int] = {}
        for name, words in self.words.items():
            texts = table.texts(name)
            if not words:
                known = ~np.isin(texts, MISSING)
                for row in np.flatnonzero(known).tolist():
                    if not table.plain(texts[row]):
                        raise table.error(row, name, "a number belongs here", CURE)
                numbers = np.full(len(texts), self.means[name])
                numbers[known] = table.take(known).numbers(name)
                parts.append(numbers[:, np.newaxis])
                continue
            part = (texts[:, np.newaxis] == np.array(words)).astype(np.float64)
            n_new = int((part.sum(axis=1) == 0.0).sum())
            if n_new:
                new[name] = n_new
            parts.append(part)
        return np.concatenate(parts, axis=1), new


def traps(table: Table, columns: Columns, reading: Reading) -> list[str]:
    """Return what may be meant otherwise, of the columns that become features."""
    notes = []
    mark, other = (",", ".") if reading.decimal == "," else (".", ",")
    grouped = re.compile(rf"[+-]?[1-9]\d{{0,2}}{re.escape(mark)}\d{{3}}")
    for name, words in columns.words.items():
        texts = _present(table, name)
        drop = f"Leave it out: --drop {_typed(name)}."
        if len(set(texts)) == 1:
            notes.append(f"Column {shown(name)} is the same in all rows. {drop}")
        elif words:
            continue
        elif _numbers_rows(texts):
            notes.append(f"Column {shown(name)} only numbers the rows. {drop}")
        elif not reading.thousands and any(map(grouped.fullmatch, texts)):
            others = [text for text in texts if not grouped.fullmatch(text)]
            if all(_AT_MOST_999.fullmatch(text) for text in others):
                first = next(filter(grouped.fullmatch, texts))
                notes.append(
                    f"Column {shown(name)}: {first} is read as a number below 1000. "
                    f"If the {'comma' if mark == ',' else 'point'} groups digits: "
                    f"--thousands {mark} --decimal {other}."
                )
    said = "".join((*table.names, *columns.features))
    if reading.encoding in ("latin-1", "cp1252") and _is_utf8(said, reading.encoding):
        notes.append(
            f"The text looks like utf-8 read as {reading.encoding}: leave --encoding "
            "out."
        )
    return notes


def _numbers_rows(texts: list[str]) -> bool:
    """Whether a column counts up by one, from row to row."""
    if len(texts) < 3 or not _WHOLE.fullmatch(texts[0]):
        return False
    return texts == [str(int(texts[0]) + row) for row in range(len(texts))]


def _is_utf8(text: str, encoding: str) -> bool:
    """Whether text that was read in this encoding was written as UTF-8."""
    try:
        return text.encode(encoding).decode("utf-8") != text
    except UnicodeError:
        return False


# ---------------------------------------------------------------------- labelled rows


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What the columns of a file are used for."""

    target: str | None = None
    """The column to predict, of a CSV file; it must have two different values."""
    positive: str | None = None
    """The class that counts as positive, such as hire; the last in order if not
    given."""
    sensitive: Many = ()
    """A column whose groups are treated alike, for --task fair; may be given several
    times. In a LIBSVM file, the number of a feature."""
    use_sensitive: Flag = False
    """Let the model use the sensitive columns as well."""
    drop: Many = ()
    """A column to leave out; may be given several times."""
    categorical: Many = ()
    """A column of numbers to take as categories; may be given several times."""


def read_csv_rows(
    table: Table,
    wanted: Wanted,
    columns: Columns | None = None,
    classes: NDArray[Any] | None = None,
    missing: str = "refuse",
) -> tuple[Samples, Columns, dict[str, int]]:
    """Return the rows of a table; decide about its columns if that is not done yet."""
    # For the rows of a test, `columns` and `classes` are those of the training rows.
    if wanted.target is None:
        raise InputError(
            "a CSV file needs --target, got none. Name the column to be predicted: one "
            f"of {shown(', '.join(table.names), 200)}."
        )
    for name in (*wanted.drop, *wanted.categorical):
        table.texts(name)  # refused if it is not there
    left_out = {wanted.target, *wanted.drop}
    if not wanted.use_sensitive:
        left_out |= set(wanted.sensitive)
    used = [name for name in table.names if name not in left_out]
    numbers = [name for name in used if name not in wanted.categorical]
    if columns is not None:
        numbers = [name for name, words in columns.words.items() if not words]
    needed = [n for n in wanted.sensitive if n not in wanted.categorical]
    if len(set(table.texts(wanted.target).tolist())) > 2:
        needed.append(wanted.target)
    table = without_gaps(table, numbers, needed, missing)
    labels = _labels(table, wanted.target, classes)
    sensitive = {}
    for name in wanted.sensitive:
        texts = table.texts(name)
        are_numbers = name not in wanted.categorical and all(map(table.plain, texts))
        sensitive[name] = table.numbers(name) if are_numbers else texts
    if columns is None:
        columns = Columns.of(table, used, wanted.categorical)
    X, new = columns.matrix(table)
    return Samples(X=X, y=labels, sensitive=sensitive), columns, new


def _typed(name: str) -> str:
    return shlex.quote(printable(name))  # a name with a blank is one word of a command


def _refuse_mixed(table: Table, name: str) -> None:
    """Refuse a column that is neither of words nor of numbers as they are read."""
    texts = table.texts(name).tolist()
    known = [row for row, text in enumerate(texts) if text not in MISSING]
    if not known:
        raise InputError(
            f"{printable(table.file)}: column {shown(name)} has no values. Leave it "
            f"out: --drop {_typed(name)}."
        )
    numbers = [row for row in known if table.plain(texts[row])]
    others = [row for row in known if not table.plain(texts[row])]
    like = [row for row in others if _LIKE_NUMBER.fullmatch(texts[row])]
    cure = f"--categorical {_typed(name)}, or leave it out: --drop {_typed(name)}."
    if 2 * len(like) > len(others):  # a mark for what is missing may be among them
        raise table.error(
            like[0],
            name,
            "the column looks like numbers in another form",
            "Say how they are written, as in --decimal , --thousands . or take "
            f"it as words: {cure}",
        )
    if numbers:  # what there is less of is out of place
        raise table.error(
            min(numbers, others, key=len)[0],
            name,
            "the column has numbers and words",
            "Correct it, leave it empty if the value is missing, or take all of it as "
            f"words: {cure}",
        )


def has_numbers(table: Table, name: str) -> bool:
    """Whether all that is in a column are numbers, where something is."""
    present = _present(table, name)
    return bool(present) and all(map(table.plain, present))


def _present(table: Table, name: str) -> list[str]:
    return [text for text in table.texts(name).tolist() if text not in MISSING]


def without_gaps(
    table: Table, numbers: Iterable[str], needed: Iterable[str], missing: str
) -> Table:
    """Return the rows that can be used, as `missing` says, or refuse the table.

    Of columns that are needed no value can be filled in: their rows are left out.
    """
    gaps = {
        name: np.isin(table.texts(name), NO_LABEL if name in needed else MISSING)
        for name in dict.fromkeys((*needed, *numbers))
        if name in needed or (name in table.names and has_numbers(table, name))
    }
    found = {name: rows for name, rows in gaps.items() if rows.any()}
    if found and missing == "refuse":
        listed = ", ".join(
            f"{shown(name)} in {rows.sum():,} rows (line {table.lines[rows.argmax()]})"
            for name, rows in found.items()
        )
        raise InputError(
            f"{printable(table.file)}: values are missing, got none of {listed}. "
            "Say what to do: --missing drop leaves these rows out, --missing fill "
            "takes the mean of the column."
        )
    gone = np.zeros(table.n_rows, dtype=bool)
    for name, rows in found.items():
        if missing == "drop" or name in needed:
            gone |= rows
    if gone.all():
        raise InputError(
            f"{printable(table.file)}: every row lacks a value, got {len(gone):,} "
            "rows. Use --missing fill, or --drop the column that is empty."
        )
    return table.take(~gone)


def read_libsvm_rows(path: Path, wanted: Wanted) -> Samples:
    """Return the rows of a LIBSVM file; sensitive columns are numbers of features."""
    X, y = read_libsvm(path)
    sensitive = {}
    for name in wanted.sensitive:
        place = int(name) if name.isascii() and name.isdigit() else 0
        if not 1 <= place <= X.shape[1]:
            raise InputError(
                f"{printable(str(path))}: --sensitive names a feature of a LIBSVM file "
                f"by its number, 1 to {X.shape[1]}, got {shown(name)}. Give a number, "
                "or a CSV file with names."
            )
        sensitive[f"feature {place}"] = X[:, [place - 1]].toarray()[:, 0]
    whole = y.astype(np.int64)
    return Samples(X=X, y=whole if (whole == y).all() else y, sensitive=sensitive)


def widened(X: Any, width: int) -> Any:
    """Return sparse rows with zeros for the features that the file did not name."""
    if X.shape[1] >= width:
        return X
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))


def _labels(table: Table, target: str, classes: NDArray[Any] | None) -> NDArray[Any]:
    """Return labels as whole numbers where all are, else as the words they are.

    `classes` are those of the training rows, whose kind they are to have.
    """
    texts = table.texts(target)
    others = [row for row, text in enumerate(texts) if not _WHOLE.fullmatch(text)]
    if classes is None:
        return texts if others else texts.astype(np.int64)
    if classes.dtype.kind not in "iu":
        return texts
    if others:
        raise table.error(
            others[0],
            target,
            "labels are whole numbers in the rows to train on",
            "Write them alike in both files.",
        )
    return texts.astype(np.int64)
