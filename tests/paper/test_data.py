"""The data sets: read by the same code from real files and from their stand-ins."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from dszog.errors import InputError
from dszog_paper.data import DATA_SETS, load, stand_in, write_stand_in
from dszog_paper.data.parsers import parse

PARTS = [(name, part) for name, files in DATA_SETS.items() for part in files]
IDS = [f"{name}-{part}" for name, part in PARTS]

real = pytest.mark.skipif("DSZOG_DATA" not in os.environ, reason="DSZOG_DATA not set")


@pytest.mark.parametrize(("name", "part"), PARTS, ids=IDS)
def test_a_stand_in_is_like_the_real_one_by_name(name: str, part: str) -> None:
    samples = stand_in(name, part)
    assert samples.name == f"{name} (stand-in)"
    assert samples.n_features == REAL[name, part][1]
    if (name, part) != ("svmguide3", "test"):
        assert abs(100 * samples.positive_share - REAL[name, part][2]) < 15


@pytest.mark.parametrize(("name", "part"), PARTS, ids=IDS)
def test_a_stand_in_follows_its_seed(name: str, part: str, tmp_path: Path) -> None:
    first = write_stand_in(name, part, tmp_path, seed=1).read_bytes()
    assert write_stand_in(name, part, tmp_path, seed=1).read_bytes() == first
    assert write_stand_in(name, part, tmp_path, seed=2).read_bytes() != first


def test_stand_ins_have_the_oddities_of_the_real_ones() -> None:
    assert (np.diff(stand_in("w8a").X.indptr) == 0).any()
    assert not stand_in("svmguide3").dense[:, 21].any()
    assert stand_in("svmguide3", "test").positive_share == 1


def test_an_unknown_name_or_part_is_refused_with_the_nearest() -> None:
    with pytest.raises(
        InputError, match=r"`name` must be one of .* Did you mean 'a9a'"
    ):
        load("a9b")
    with pytest.raises(InputError, match="`part` must be one of 'train', 'test', got"):
        stand_in("a9a", "tests")


@pytest.mark.parametrize(
    ("name", "part", "line", "old", "new", "message"),
    [
        ("a9a", "train", 3, ":1", ":x", "a9a, line 3, column .*: the value .* is 'x'"),
        ("a9a", "train", 3, "1 ", "2 ", "a9a: the labels must be -1 and .*in row 3"),
        ("a9a", "test", 3, ":1", ":nan", "a9a.t, line 3, .* is 'nan'"),
        ("svmguide3", "train", 2, " 22:", " 23:", "line 2, .* index 23 is above 22"),
    ],
)
def test_an_altered_line_is_refused_by_place(
    tmp_path: Path, name: str, part: str, line: int, old: str, new: str, message: str
) -> None:
    path = write_stand_in(name, part, tmp_path)
    lines = path.read_text().split("\n")
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match=message):
        parse(name, part, path)


@pytest.mark.parametrize(("name", "part"), PARTS, ids=IDS)
def test_a_cut_off_file_is_refused(tmp_path: Path, name: str, part: str) -> None:
    path = write_stand_in(name, part, tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2 - (content[len(content) // 2] == 10)])
    with pytest.raises(InputError, match=r"line .*, column .* may be cut off"):
        parse(name, part, path)


REAL = {  # rows, columns, share of positives in %
    ("a9a", "train"): (32_561, 123, 24.081),
    ("a9a", "test"): (16_281, 123, 23.623),
    ("w8a", "train"): (49_749, 300, 2.973),
    ("w8a", "test"): (14_951, 300, 3.037),
    ("svmguide3", "train"): (1_243, 22, 23.813),
    ("svmguide3", "test"): (41, 22, 100.0),
}


@real
@pytest.mark.parametrize(("name", "part"), PARTS, ids=IDS)
def test_the_real_file_has_the_published_size_and_shares(name: str, part: str) -> None:
    samples = load(name, part, allow_download=False)
    n_rows, n_features, positives = REAL[name, part]
    assert samples.X.shape == (n_rows, n_features)
    assert 100 * samples.positive_share == pytest.approx(positives, abs=5e-4)
