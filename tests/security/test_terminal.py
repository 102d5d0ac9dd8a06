"""Names and data of others do not steer the terminal of who reads a message."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dszog import CheckpointError, CheckpointWarning, InputError
from dszog.contract.validation import printable
from dszog.readers import read_csv, read_libsvm
from dszog.save.store import Store
from tests.save.cells import CELLS, change_headers

EVIL = "\x1b]0;owned\x07\x1b[2J\u202egnp\x9b31m"
BAD_FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "libsvm label": (read_libsvm, f"{EVIL} 1:1\n"),
    "libsvm index": (read_libsvm, f"1 {EVIL}:1\n"),
    "libsvm value": (read_libsvm, f"1 1:{EVIL}\n"),
    "libsvm nul": (read_libsvm, "1 1:1\x00\n"),
    "libsvm unfinished": (read_libsvm, "1 1:1"),
    "libsvm empty": (read_libsvm, ""),
    "libsvm comments": (read_libsvm, "# x\n"),
    "libsvm bare": (read_libsvm, "1\n"),
    "csv names": (read_csv, f"{EVIL},{EVIL}\n1,2\n"),
    "csv width": (read_csv, f"{EVIL},b\n1\n"),
    "csv quote": (read_csv, f'a\n"{EVIL}\n'),
    "csv number": (lambda path: read_csv(path).numbers("a"), f"a\n{EVIL}\n"),
    "csv no column": (lambda path: read_csv(path).texts(EVIL), f"{EVIL}b\n1\n"),
    "zip": (read_csv, "PK\x03\x04"),
    "empty": (read_csv, ""),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_errors_of_readers_are_plain_text(name: str, tmp_path: Path) -> None:
    read, content = BAD_FILES[name]
    path = tmp_path / f"data{EVIL}"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read(path)
    assert str(caught.value).isprintable()
    assert "\\x1b]0;owned" in str(caught.value)  # shown, not left out


def test_a_missing_file_and_a_folder_are_told_plainly(tmp_path: Path) -> None:
    (tmp_path / EVIL).mkdir()
    for path in (tmp_path / EVIL, tmp_path / f"missing{EVIL}"):
        with pytest.raises(InputError) as caught:
            read_csv(path)
        assert str(caught.value).isprintable()


def test_the_owner_of_a_lock_is_named_plainly(tmp_path: Path) -> None:
    store = Store(tmp_path, resume=True)
    who = {"pid": 1, "host": EVIL, "started": EVIL}
    (tmp_path / "lock").write_text(json.dumps(who))
    with pytest.raises(CheckpointError) as caught:
        Store(tmp_path, resume=True)
    store.close()
    assert "process 1 on \\x1b]0;owned" in str(caught.value)
    assert str(caught.value).isprintable()


def make_evil(folder: Path, part: str) -> None:
    """Put evil words into a part of what the checkpoints say of themselves."""
    change_headers(folder, lambda facts: facts["about"][part].update({EVIL: EVIL}))


def test_a_foreign_checkpoint_is_described_plainly(tmp_path: Path) -> None:
    CELLS[0].run(tmp_path / "run", max_iterations=3)
    make_evil(tmp_path / "run", "fingerprint")
    with pytest.raises(CheckpointError, match="differs in") as caught:
        CELLS[0].run(tmp_path / "run", max_iterations=3)
    assert str(caught.value).isprintable()


def test_a_warning_about_a_checkpoint_is_plain(tmp_path: Path) -> None:
    folder = tmp_path / f"run{EVIL}"
    CELLS[0].run(folder, max_iterations=3)
    make_evil(folder, "surroundings")
    newest = sorted(folder.glob("checkpoint-*"))[-1]
    os.truncate(newest, 100)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        CELLS[0].run(folder, max_iterations=3)
    said = [str(one.message) for one in caught if one.category is CheckpointWarning]
    assert len(said) == 2
    assert all(text.isprintable() for text in said)


@given(st.text())
def test_printable_text_is_printable_and_the_same_where_it_was(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert (shown == text) == text.isprintable()
    kept = printable(text, keep="\n")
    assert kept.replace("\n", "").isprintable()
    assert kept.count("\n") == text.count("\n")
