"""The wheel is pure Python, holds the library alone, and is the same each time."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.runs import ROOT, Record

PACKAGES = {"dszog", "dszog_paper", "dszog_bench", "dszog_start"}


def built(folder: Path) -> Path:
    """Build the wheel from a fresh copy of the tree, so that no timestamp is shared."""
    tree = folder / "tree"
    tree.mkdir(parents=True)
    for name in ("src", "pyproject.toml", "README.md", "LICENSE"):
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "*.pyc", "*.nbi", "*.nbc")
            shutil.copytree(
                source, tree / name, ignore=ignored, copy_function=shutil.copyfile
            )
        else:
            shutil.copyfile(source, tree / name)
    words = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir"]
    subprocess.run(
        [*words, str(folder), str(tree)], check=True, capture_output=True, text=True
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def is_data(path: Path) -> bool:
    return path.is_file() and path.suffix not in (".py", ".pyc")


@pytest.mark.slow
def test_two_builds_give_the_same_pure_wheel(
    tmp_path: Path, record_property: Record
) -> None:
    pytest.importorskip("build")
    pytest.importorskip("hatchling")
    first, second = (built(tmp_path / name) for name in ("one", "two"))
    same = (
        hashlib.sha256(first.read_bytes()).digest()
        == hashlib.sha256(second.read_bytes()).digest()
    )
    record_property("wheels that differ", int(not same))

    assert first.name.endswith("-py3-none-any.whl")
    assert same
    with zipfile.ZipFile(first) as wheel:
        names = set(wheel.namelist())
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == PACKAGES
    data = {p for p in (ROOT / "src" / "dszog_paper").rglob("*.*") if is_data(p)}
    assert len(data) == 5  # templates of the report, printed numbers, sources
    assert {path.relative_to(ROOT / "src").as_posix() for path in data} <= names
