from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

Dszog: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dszog(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Dszog:
    """Return what runs `dszog ...` in this process: exit code, output, errors."""
    pytest.importorskip("cyclopts")
    pytest.importorskip("rich")
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
