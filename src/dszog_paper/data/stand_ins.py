"""Generated look-alikes of the real data sets, for tests and for work without them.

A stand-in has the format, the columns and roughly the shares of the real one, in a few
hundred rows. It says nothing about the real data; its name says that it is a stand-in.
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dszog.errors import InputError
from dszog.maths.random_stream import stream
from dszog_paper.data.fetch import Folder
from dszog_paper.data.parsers import file_of, load, parse
from dszog_paper.data.samples import Samples
from dszog_paper.data.sources import DATA_SETS

STAND_IN = 4
"""Purpose of the draws that make stand-ins."""
N_ROWS = 600


def stand_in(name: str, part: str = "train", *, seed: int = 0) -> Samples:
    """Return a generated look-alike of a part of a real data set."""
    # It is written as a file like the real one and read by the same code.
    with tempfile.TemporaryDirectory() as folder:
        path = write_stand_in(name, part, Path(folder), seed=seed)
        samples = parse(name, part, path)
    return dataclasses.replace(samples, name=f"{name} (stand-in)")


def load_or_stand_in(name: str, part: str, data: Folder | None = None) -> Samples:
    """Read a part of a data set, or return a stand-in if no folder is named."""
    try:
        return load(name, part, data=data, allow_download=False)
    except InputError:
        if data is not None:
            raise
        return stand_in(name, part)


def write_stand_in(name: str, part: str, folder: Path, *, seed: int = 0) -> Path:
    """Write a look-alike of a data file into a folder, and return its path."""
    file = file_of("stand_in", name, part)
    parts = [(name, part) for name, files in DATA_SETS.items() for part in files]
    turn = parts.index((name, part))  # each is drawn from a stream of its own
    rng = stream(seed, turn, purpose=STAND_IN)
    path = folder / file.name
    is_test = part == "test"
    text = _svmguide3(rng, is_test) if name == "svmguide3" else _binary(rng, name)
    path.write_text(text, encoding="utf-8", newline="\n")
    return path


# ------------------------------------------------------------------------ LIBSVM files


def _labels(rng: np.random.Generator, share: float, leaning: NDArray[Any]) -> list[str]:
    """Call the rows that lean most positive, so that there is something to learn."""
    noisy = leaning + 0.5 * leaning.std() * rng.standard_normal(len(leaning))
    cut = np.quantile(noisy, 1 - share)
    return ["+1" if each > cut else "-1" for each in noisy]


def _binary(rng: np.random.Generator, name: str) -> str:
    """Write a9a or w8a, of zeros and ones."""
    n_columns, n_ones, share = {"a9a": (123, 14, 0.24), "w8a": (300, 12, 0.03)}[name]
    X = rng.random((N_ROWS, n_columns)) < rng.dirichlet(np.ones(n_columns)) * n_ones
    if name == "w8a":
        X[rng.random(N_ROWS) < 0.084] = False  # pages without any keyword
    labels = _labels(rng, share, X @ rng.standard_normal(n_columns))
    rows = (np.flatnonzero(row) + 1 for row in X)
    return "".join(
        " ".join([label, *(f"{index}:1" for index in row)]) + " \n"
        for label, row in zip(labels, rows, strict=True)
    )


def _svmguide3(rng: np.random.Generator, is_test: bool) -> str:
    n = 41 if is_test else N_ROWS
    X = rng.standard_normal((n, 22)) * np.geomspace(1e-5, 1, 22)
    X[:, 21] = 0.0
    leaning = X @ np.geomspace(1e5, 1, 22)
    labels = ["+1"] * n if is_test else _labels(rng, 0.24, leaning)
    return "".join(
        f"{label} {' '.join(f'{i}:{value:.7g}' for i, value in enumerate(row, 1))}\n"
        for label, row in zip(labels, X, strict=True)
    )
