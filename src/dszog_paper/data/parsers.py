"""From the files of the real data sets to samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dszog.contract.arrays import IntArray
from dszog.contract.validation import check_choice
from dszog.errors import InputError
from dszog.readers import Table, read_csv, read_libsvm
from dszog.readers.content import FilePath, file_name
from dszog_paper.data.fetch import Folder, fetch
from dszog_paper.data.samples import Samples
from dszog_paper.data.sources import COLUMNS, DATA_SETS

_Columns: TypeAlias = dict[str, NDArray[Any]]  # numbers, or whether something holds

N_FEATURES = {"a9a": 123, "w8a": 300, "svmguide3": 22}
"""Columns of the LIBSVM files. No test part has all of them, so they are told."""


def parse_libsvm(name: str, path: FilePath, *, one_class: bool = False) -> Samples:
    """Read a9a, w8a or svmguide3. The labels in the file are -1 and +1."""
    X, y = read_libsvm(path, N_FEATURES[name])
    wrong = np.flatnonzero(np.abs(y) != 1)
    if len(wrong):
        raise InputError(
            f"{file_name(path)}: the labels must be -1 and +1, got {y[wrong[0]]:g} in "
            f"row {wrong[0] + 1}. Get the file again."
        )
    return Samples(name=name, X=X, y=y, one_class=one_class)


def parse_adult(path: FilePath, *, is_test: bool = False) -> Samples:
    """Read Adult: whether an income is above 50,000 dollars."""
    # Features are the four numbers and, for each category of a person's work and
    # family, whether it applies; an unknown one applies nowhere. ``fnlwgt`` is a weight
    # of the census and ``education`` says what ``education-num`` does: both are left
    # out. Sensitive are sex, race, age group (those of a9a) and whether the native
    # country is the United States (an unknown one is not); ``relationship`` still tells
    # husbands from wives.
    columns = COLUMNS["adult"]
    table = read_csv(
        path,
        names=columns["all"],
        skip_lines=int(is_test),
        skip_blanks=True,
        must_end=True,
    )
    features = _numbers(table, columns["numbers"])
    for name, values in columns["choices"].items():
        features |= _indicators(name, values, table.choices(name, values, missing="?"))
    ages = table.numbers("age")
    starts = np.array(columns["ages"])
    groups = [f"{first}-{past - 1}" for first, past in pairwise(starts)]
    groups.append(f"{starts[-1]} and over")
    races = columns["races"]
    country = table.texts("native-country")
    stop = "." if is_test else ""
    return _samples(
        "adult",
        features,
        table.choices("income", [f"<=50K{stop}", f">50K{stop}"]),
        {"sex = Female": table.choices("sex", ["Male", "Female"])}
        | _indicators("race", races, table.choices("race", races))
        | _indicators("age", groups, np.searchsorted(starts, ages, "right") - 1)
        | {"native-country = United-States": country == "United-States"},
    )


def _numbers(table: Table, names: Iterable[str]) -> _Columns:
    return {name: table.numbers(name) for name in names}


def _indicators(name: str, values: Sequence[str], choices: IntArray) -> _Columns:
    """Return one column for each value: whether it is the one of a row."""
    return {f"{name} = {value}": choices == place for place, value in enumerate(values)}


def _samples(
    name: str,
    features: _Columns,
    positive: NDArray[Any],
    sensitive: _Columns,
) -> Samples:
    return Samples(
        name=name,
        X=np.column_stack(list(features.values())),
        y=np.where(positive, 1.0, -1.0),
        feature_names=tuple(features),
        sensitive=np.column_stack(list(sensitive.values())).astype(np.float64),
        sensitive_names=tuple(sensitive),
    )


# ------------------------------------------------------------------------- by name

PARSERS: dict[tuple[str, str], Callable[[FilePath], Samples]] = {
    ("a9a", "train"): partial(parse_libsvm, "a9a"),
    ("a9a", "test"): partial(parse_libsvm, "a9a"),
    ("w8a", "train"): partial(parse_libsvm, "w8a"),
    ("w8a", "test"): partial(parse_libsvm, "w8a"),
    ("svmguide3", "train"): partial(parse_libsvm, "svmguide3"),
    # All 41 rows are positive.
    ("svmguide3", "test"): partial(parse_libsvm, "svmguide3", one_class=True),
    ("adult", "train"): parse_adult,
    ("adult", "test"): partial(parse_adult, is_test=True),
}
"""How each part of each data set is read."""


def load(
    name: str,
    part: str = "train",
    *,
    data: Folder | None = None,
    allow_download: bool = True,
) -> Samples:
    """Read one part of a real data set, wherever its file is (see `fetch`)."""
    check_choice("load", "name", name, DATA_SETS)
    files = DATA_SETS[name].files
    check_choice("load", "part", part, files)
    path = fetch(files[part], data=data, allow_download=allow_download)
    return PARSERS[name, part](path)
