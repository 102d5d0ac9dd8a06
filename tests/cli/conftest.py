from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import dszog as library

SOURCE = Path(library.__file__).parents[1]
COMMAND = "from dszog_start import main; main()"

Dszog: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dszog(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Dszog:
    """Return what runs `dszog ...` in this process: exit code, output, errors."""
    from dszog import cli

    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words: Any) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dszog", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def refused(dszog: Dszog, *words: Any) -> str:
    """Return the one line that was said, on standard error, of a wrong command."""
    code, said, told = dszog(*words)
    assert (code, said, told.count("\n")) == (2, "", 1), (words, said, told)
    assert told.startswith(f"dszog {words[0]}: ")
    return told


def start(*words: str, before: str = "", **more: str) -> subprocess.Popen[str]:
    """Begin `dszog ...` in a process of its own, after some lines of Python."""
    env = os.environ | {"PYTHONPATH": str(SOURCE), "DSZOG_KERNELS": "numpy"} | more
    return subprocess.Popen(
        [sys.executable, "-P", "-c", before + COMMAND, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def left_early(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Close what a command writes to; return its exit code and errors."""
    assert process.stdout is not None
    process.stdout.close()
    _, told = process.communicate(timeout=120)
    return process.returncode, told
