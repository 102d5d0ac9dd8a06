"""Files and folders that others prepared do not lead anywhere else."""

from __future__ import annotations

import gzip
import lzma
import os
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import dszog
from dszog import CheckpointError, InputError
from dszog.checkpoint.container import pack
from dszog.readers import read_csv, read_libsvm
from tests.checkpoint.cells import CELLS

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
    "name",
    [
        "checkpoint-00000001.dszog",
        "checkpoint-00000001.dszog.part",
        "journal-00000001.dszog",
        "lock",
    ],
)
def test_a_planted_link_is_never_written_through(
    name: str, precious: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    (folder / name).symlink_to(precious)
    if name.endswith(".part"):
        CELL.run(folder, resume=False, max_iterations=3)
    else:
        with pytest.raises(CheckpointError):
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


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_folder_that_anybody_may_write_to_is_refused(
    mode: int, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(CheckpointError, match=r"by anybody.*chmod o-w"):
        CELL.run(folder, max_iterations=3)

    assert list(folder.iterdir()) == []


def test_what_is_saved_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        CELL.run(tmp_path / "run", max_iterations=3)
    finally:
        os.umask(before)

    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "run").iterdir()}
    assert modes == {0o600}


def test_names_in_a_checkpoint_lead_nowhere(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    facts = {
        "generation": 1,
        "run": "../" * 5 + "00" * 8,
        "about": {"seed": "../../precious", "fingerprint": {"../../a": "../b"}},
    }
    pieces = pack(facts, [np.zeros(1)], "../../..")
    (folder / "checkpoint-00000001.dszog").write_bytes(b"".join(pieces))
    for name in ("checkpoint-../../x.dszog".replace("/", "%"), "..dszog", "journal-"):
        (folder / name).write_bytes(b"x")
    before = tree(tmp_path)
    with pytest.raises(CheckpointError):
        CELL.run(folder, max_iterations=3)

    after = tree(tmp_path)
    after.pop("run/lock")
    assert after == before


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
@pytest.mark.parametrize("read", [read_libsvm, read_csv])
def test_a_bomb_is_refused_before_it_goes_off(
    pack: Callable[[bytes], bytes], read: Callable[[Path], object], tmp_path: Path
) -> None:
    path = tmp_path / "data.gz"
    path.write_bytes(pack(b"1 1:1\n" * 2**23))  # 48 MiB in some kB
    with pytest.raises(InputError, match="larger than 16777216 bytes"):
        read(path)


def test_a_gzip_that_lies_about_its_size_is_no_exception(tmp_path: Path) -> None:
    packed = gzip.compress(bytes(2**25))
    path = tmp_path / "data.gz"
    path.write_bytes(packed[:-4] + struct.pack("<I", 10))
    with pytest.raises(InputError, match="larger than 16777216 bytes"):
        read_libsvm(path)


def test_a_link_that_the_user_names_is_read_and_one_in_a_circle_is_an_error(
    tmp_path: Path,
) -> None:
    (tmp_path / "data").write_text("1 1:1\n")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    assert read_libsvm(tmp_path / "link").y.tolist() == [1.0]

    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    with pytest.raises(InputError, match="cannot be read"):
        read_libsvm(tmp_path / "circle")


def test_two_hard_dependencies() -> None:
    from importlib.metadata import PackageNotFoundError, requires

    try:
        needed = requires("dszog") or []
    except PackageNotFoundError:
        import tomllib

        project = Path(dszog.__file__).parents[2] / "pyproject.toml"
        needed = tomllib.loads(project.read_text())["project"]["dependencies"]
    hard = [one for one in needed if "extra ==" not in one]
    assert sorted(one.split(">")[0] for one in hard) == ["numpy", "scipy"]
