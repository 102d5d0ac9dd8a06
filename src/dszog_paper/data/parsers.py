"""From the files of the real data sets to samples."""

from __future__ import annotations

import numpy as np

from dszog.contract.validation import check_choice
from dszog.errors import InputError
from dszog.readers import read_libsvm
from dszog.readers.content import FilePath, file_name
from dszog_paper.data.fetch import Folder, fetch
from dszog_paper.data.samples import Samples
from dszog_paper.data.sources import DATA_SETS, DataFile

N_FEATURES = {"a9a": 123, "w8a": 300, "svmguide3": 22}
"""Columns of the LIBSVM files. No test part has all of them, so they are told."""


def load(
    name: str,
    part: str = "train",
    *,
    data: Folder | None = None,
    allow_download: bool = True,
) -> Samples:
    """Read one part of a real data set, wherever its file is (see `fetch`)."""
    file = file_of("load", name, part)
    return parse(name, part, fetch(file, data=data, allow_download=allow_download))


def file_of(owner: str, name: str, part: str) -> DataFile:
    """Return the file of a part, if there is one."""
    check_choice(owner, "name", name, DATA_SETS)
    check_choice(owner, "part", part, DATA_SETS[name])
    return DATA_SETS[name][part]


def parse(name: str, part: str, path: FilePath) -> Samples:
    """Read the file of a part. Its labels are -1 and +1."""
    X, y = read_libsvm(path, N_FEATURES[name])
    wrong = np.flatnonzero(np.abs(y) != 1)
    if len(wrong):
        raise InputError(
            f"{file_name(path)}: the labels must be -1 and +1, got {y[wrong[0]]:g} in "
            f"row {wrong[0] + 1}. Get the file again."
        )
    # All 41 rows of svmguide3's test part are positive.
    one_class = (name, part) == ("svmguide3", "test")
    return Samples(name=name, X=X, y=y, one_class=one_class)
