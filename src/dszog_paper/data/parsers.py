"""From the files of the real data sets to samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dszog.contract.validation import check_choice
from dszog.errors import InputError
from dszog.readers import read_libsvm
from dszog.readers.content import FilePath, file_name
from dszog_paper.data.fetch import Folder, fetch
from dszog_paper.data.samples import Samples
from dszog_paper.data.sources import DATA_SETS

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


# ------------------------------------------------------------------------- by name

PARSERS: dict[tuple[str, str], Callable[[FilePath], Samples]] = {
    ("a9a", "train"): partial(parse_libsvm, "a9a"),
    ("a9a", "test"): partial(parse_libsvm, "a9a"),
    ("w8a", "train"): partial(parse_libsvm, "w8a"),
    ("w8a", "test"): partial(parse_libsvm, "w8a"),
    ("svmguide3", "train"): partial(parse_libsvm, "svmguide3"),
    # All 41 rows are positive.
    ("svmguide3", "test"): partial(parse_libsvm, "svmguide3", one_class=True),
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
