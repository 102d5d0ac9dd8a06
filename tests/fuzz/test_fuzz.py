"""Whatever the bytes: a value or our error, in bounded time and memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog.save.store
from tests.fuzz import mutate
from tests.fuzz.campaign import campaign
from tests.fuzz.targets import LIBSVM, Target, targets
from tests.runs import Record, said_by

NAMES = ("libsvm", "csv", "checkpoint", "journal", "sizes")
MOST_MB = 512
BAR = 95.0  # percent of the statements and branches of a reader


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Target]]:
    store = dszog.save.store
    before = store.SAVE_EVERY, store.SAVE_SHARE
    yield {one.name: one for one in targets(tmp_path_factory.mktemp("saved"))}
    store.SAVE_EVERY, store.SAVE_SHARE = before


@pytest.mark.parametrize("name", NAMES)
def test_no_other_error_escapes(
    name: str, readers: dict[str, Target], tmp_path: Path, record_property: Record
) -> None:
    found = campaign(readers[name], 200, 0, tmp_path)
    record_property("cases", found["cases"])
    assert found["first escaped"] == []
    assert 0 < found["accepted"] < found["cases"]  # it sees good ones and bad ones


def test_every_reader_is_among_the_targets(readers: dict[str, Target]) -> None:
    assert tuple(readers) == NAMES


def test_a_reader_that_lets_an_error_escape_is_found_out(tmp_path: Path) -> None:
    def read(folder: Path, case: Any) -> bool:
        return float(case[0].split()[0]) > 0  # fails on most of what is not a number

    target = Target(
        "naive", lambda rng: (mutate.text(rng, LIBSVM[0], " "), 0), read, ()
    )
    found = campaign(target, 100, 0, tmp_path)
    assert found["escaped"] > 5
    assert any("Error at test_fuzz.py" in one for one in found["first escaped"])


def test_the_same_seed_makes_the_same_files(readers: dict[str, Target]) -> None:
    for target in readers.values():
        one, same, other = (
            [target.case(np.random.Generator(np.random.Philox(key=seed)))]
            for seed in (3, 3, 4)
        )
        assert one == same
        assert one != other


def run_campaign(*words: str) -> list[dict[str, Any]]:
    said = said_by("-m", "tests.fuzz.campaign", *words, DSZOG_KERNELS="numpy")
    return [json.loads(line) for line in said.splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", NAMES)
def test_thousands_of_files_take_little(name: str, record_property: Record) -> None:
    (found,) = run_campaign("5000", "11", name)
    for figure in ("cases", "accepted", "escaped", "slowest", "peak MB"):
        record_property(figure, found[figure])
    assert found["first escaped"] == []
    assert found["peak MB"] <= MOST_MB


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nearly_every_branch_of_the_readers_is_reached(record_property: Record) -> None:
    pytest.importorskip("coverage")
    found = run_campaign("3000", "7", "coverage")
    shares = {file: share for one in found for file, share in one["coverage"].items()}
    missed = {
        file: lines for one in found for file, lines in one["missed lines"].items()
    }
    for file, share in shares.items():
        record_property(f"coverage of {file}", share)
    assert {file for file, share in shares.items() if share < BAR} == set(), missed
    assert len(shares) == 9
