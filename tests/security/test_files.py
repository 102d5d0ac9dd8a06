"""Files and folders that others prepared do not lead anywhere else."""

from __future__ import annotations

import gzip
import json
import os
import struct
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog import CheckpointError, InputError
from dszog.readers import read_csv, read_libsvm
from dszog.save import container
from dszog.save.container import SMALL, pack, read
from dszog.save.files import create
from dszog.save.sizing import NAME
from tests.fuzz.mutate import opened, signed
from tests.runs import ROOT
from tests.save.cells import CELLS, Killed

CELL = CELLS[0]


def tree(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_bytes(b"keep")
    return path


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("checkpoint-00000001.dszog", "No checkpoint in .* can be used"),
        ("checkpoint-00000001.dszog.part", ""),
        ("journal-00000001.dszog", "only a journal"),
        ("lock", "cannot be locked"),
    ],
)
def test_a_planted_link_is_never_written_through(
    name: str, said: str, precious: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    (folder / name).symlink_to(precious)
    if name.endswith(".part"):
        with pytest.raises(FileExistsError):
            create(folder / name)
        CELL.run(folder, resume=False, max_iterations=3)
    else:
        with pytest.raises(CheckpointError, match=said):
            CELL.run(folder, max_iterations=3)
    assert precious.read_bytes() == b"keep"


def test_a_checkpoint_behind_a_link_is_not_read(tmp_path: Path) -> None:
    there, here = tmp_path / "there", tmp_path / "here"
    CELL.run(there, max_iterations=3)
    here.mkdir(mode=0o700)
    for path in there.glob("*.dszog"):
        (here / path.name).symlink_to(path)
    with pytest.raises(CheckpointError, match=r"No checkpoint in .* can be used"):
        CELL.run(here, max_iterations=3)


def test_a_lock_with_other_names_is_left_so(precious: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    (folder / "lock").hardlink_to(precious)
    with pytest.raises(CheckpointError, match=r"other names \(hard links\).*delete it"):
        CELL.run(folder, max_iterations=3)
    assert precious.read_bytes() == b"keep"
    (folder / "lock").unlink()
    assert CELL.run(folder, max_iterations=3).nit == 3


def test_a_journal_with_another_name_is_not_written_to(tmp_path: Path) -> None:
    folder, copy = tmp_path / "run", tmp_path / "copy"

    def killed(progress: dszog.Progress) -> None:
        if progress.iteration == 3:
            raise Killed

    with pytest.raises(Killed):
        CELL.run(folder, max_iterations=6, callback=killed)
    copy.mkdir(mode=0o700)
    for path in folder.glob("*.dszog"):  # as `cp -al` does
        (copy / path.name).hardlink_to(path)
    for path in folder.glob("journal-*"):
        os.truncate(path, 10)  # so that it is begun again
    before = tree(copy)
    straight = CELL.run(tmp_path / "straight", max_iterations=6)

    assert CELL.run(folder, max_iterations=6).digest == straight.digest
    assert {name: tree(copy)[name] for name in before} == before


@pytest.mark.parametrize("there", ["a link", "another folder", "nothing"])
def test_a_folder_that_is_swapped_in_mid_run_is_not_written_to(
    there: str, tmp_path: Path
) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)

    def swapped(progress: dszog.Progress) -> None:
        if progress.iteration == 3:
            folder.rename(tmp_path / "moved")
            if there == "a link":
                folder.symlink_to(elsewhere)
            elif there == "another folder":
                elsewhere.rename(folder)

    with pytest.raises(
        dszog.CheckpointWriteError, match=r"not the one any more.*Put it back"
    ) as caught:
        CELL.run(folder, max_iterations=6, callback=swapped)
    assert caught.value.result.nit >= 3
    target = folder if folder.exists() else elsewhere
    assert list(target.iterdir()) == []

    if folder.is_symlink():
        folder.unlink()
    elif folder.exists():
        folder.rmdir()
    (tmp_path / "moved").rename(folder)
    straight = CELL.run(tmp_path / "straight", max_iterations=6)
    assert CELL.run(folder, max_iterations=6).digest == straight.digest


@pytest.mark.parametrize("mode", [0o770, 0o775, 0o2770])
def test_a_folder_of_a_group_is_warned_of(mode: int, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.warns(dszog.CheckpointWarning, match=r"by its group.*chmod g-w"):
        result = CELL.run(folder, max_iterations=3)
    assert result.nit == 3
    folder.chmod(mode & ~0o020)
    assert CELL.run(folder, max_iterations=3).nit == 3  # without a word


@pytest.mark.parametrize("umask", [0, 0o002, 0o022, 0o077])
def test_folders_that_are_made_are_for_this_user_to_write_to_whatever_the_umask(
    umask: int, tmp_path: Path
) -> None:
    before = os.umask(umask)
    try:
        CELL.run(tmp_path / "of" / "mine" / "run", max_iterations=3)
    finally:
        os.umask(before)
    run = tmp_path / "of" / "mine" / "run"
    assert run.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in run.iterdir()} == {0o600}
    for above in (tmp_path / "of", tmp_path / "of" / "mine"):
        assert above.stat().st_mode & 0o022 == 0


TERABYTE = 2**40  # of a file without content, which takes no room on the disk


@pytest.mark.parametrize("kind", ["checkpoint-*.dszog", NAME])
@pytest.mark.parametrize("claims", [True, False])
def test_a_file_larger_than_the_memory_is_refused_before_it_is_read(
    kind: str, claims: bool, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    CELL.run(folder, max_iterations=3)
    if kind == NAME:
        (folder / NAME).touch()
    for path in folder.glob(kind):
        make_huge(path, claims)
    with pytest.raises(
        CheckpointError, match=r"it has \d{13} bytes, (too many|the most)"
    ):
        CELL.run(folder, max_iterations=3)


def make_huge(path: Path, claims: bool) -> None:
    """Make a file of a terabyte, which says so in its header or does not."""
    prefix, header, _ = opened(b"".join(pack({}, [np.zeros(8, np.uint8)])))
    if claims:
        header["arrays"] = [["|u1", [TERABYTE]]]
    text = json.dumps(header).encode()
    content = signed(prefix, len(text), text, [])
    path.write_bytes(content)
    os.truncate(path, len(content) + TERABYTE)


def test_a_large_file_is_read_only_if_its_header_accounts_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    whole = b"".join(pack({}, [np.zeros(SMALL, np.uint8)]))
    path.write_bytes(whole)
    assert read(path)[0] == {}
    monkeypatch.setattr(os, "fdopen", None)  # with which it would be read
    path.write_bytes(whole + bytes(1))
    with pytest.raises(
        CheckpointError, match="its arrays claim 16777216 bytes, it has"
    ):
        read(path)
    path.write_bytes(bytes(2 * SMALL))
    with pytest.raises(CheckpointError, match="no checkpoint of dszog"):
        read(path)


def test_too_little_memory_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"".join(pack({}, [np.zeros(8)])))

    def full(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(container, "unpack", full)
    with pytest.raises(CheckpointError, match="too little memory"):
        read(path)


@pytest.mark.parametrize("read", [read_libsvm, read_csv])
def test_any_limit_may_be_set_on_text_and_a_huge_file_is_refused(
    read: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "data"
    path.write_text("1 1:1\n2 1:1\n")
    read(path, max_bytes=2**70)
    os.truncate(path, TERABYTE)
    with pytest.raises(InputError, match="larger than 268435456 bytes"):
        read(path)


def test_names_in_a_checkpoint_lead_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    facts = {
        "generation": 1,
        "run": "../" * 5 + "00" * 8,
        "about": {"seed": "../../precious", "fingerprint": {"../../a": "../b"}},
    }
    monkeypatch.setattr(container, "VERSION", "../../..")
    pieces = pack(facts, [np.zeros(1)])
    (folder / "checkpoint-00000001.dszog").write_bytes(b"".join(pieces))
    for name in ("checkpoint-../../x.dszog".replace("/", "%"), "..dszog", "journal-"):
        (folder / name).write_bytes(b"x")
    before = tree(tmp_path)
    with pytest.raises(CheckpointError):
        CELL.run(folder, max_iterations=3)

    after = tree(tmp_path)
    after.pop("run/lock")
    assert after == before


def test_a_gzip_that_lies_about_its_size_is_no_exception(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(2**25))
    path = tmp_path / "data.gz"
    path.write_bytes(packed[:-4] + struct.pack("<I", 10))
    with pytest.raises(InputError, match="larger than 16777216 bytes"):
        read_libsvm(path)


def test_a_link_that_the_user_names_is_read_but_no_circle(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("1 1:1\n")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    assert read_libsvm(tmp_path / "link").y.tolist() == [1.0]
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(InputError, match="cannot be read"):
        read_libsvm(tmp_path / "circle")


def test_two_hard_dependencies() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = sorted(one.split(">")[0] for one in project["dependencies"])
    assert needed == ["numpy", "scipy"]
