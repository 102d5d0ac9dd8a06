"""The real data sets by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from dszog._validation import check_choice
from dszog.readers.content import FilePath
from dszog_paper.data import parsers
from dszog_paper.data.fetch import Folder, Progress, fetch
from dszog_paper.data.samples import Samples
from dszog_paper.data.sources import DATA_SETS

PARSERS: dict[tuple[str, str], Callable[[FilePath], Samples]] = {
    ("a9a", "train"): partial(parsers.parse_libsvm, "a9a"),
    ("a9a", "test"): partial(parsers.parse_libsvm, "a9a"),
    ("w8a", "train"): partial(parsers.parse_libsvm, "w8a"),
    ("w8a", "test"): partial(parsers.parse_libsvm, "w8a"),
    ("svmguide3", "train"): partial(parsers.parse_libsvm, "svmguide3"),
    # All 41 rows are positive.
    ("svmguide3", "test"): partial(parsers.parse_libsvm, "svmguide3", one_class=True),
    ("adult", "train"): parsers.parse_adult,
    ("adult", "test"): partial(parsers.parse_adult, is_test=True),
    ("compas", "train"): parsers.parse_compas,
    ("communities", "train"): parsers.parse_communities,
}
"""How each part of each data set is read."""


def load(
    name: str,
    part: str = "train",
    *,
    data: Folder | None = None,
    allow_download: bool = True,
    progress: Progress | None = None,
) -> Samples:
    """Read one part of a real data set, wherever its file is.

    Parameters
    ----------
    name : str
        ``"a9a"``, ``"w8a"``, ``"svmguide3"``, ``"adult"``, ``"compas"`` or
        ``"communities"``.
    part : str
        ``"train"``, or ``"test"`` where the source has one.
    data : str or os.PathLike, optional
        A folder with the files. Else ``DSZOG_DATA`` names it; then the user's cache is
        looked at; then the file is downloaded into the cache.
    allow_download : bool
        Whether the network may be used.
    progress : callable, optional
        Called as ``progress(file, bytes_so_far, bytes_expected)`` during a download.
    """
    check_choice("load", "name", name, DATA_SETS)
    files = DATA_SETS[name].files
    check_choice("load", "part", part, files)
    path = fetch(
        files[part], data=data, allow_download=allow_download, progress=progress
    )
    return PARSERS[name, part](path)
