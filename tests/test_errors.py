"""Errors that are raised in many places say the same in each."""

from __future__ import annotations

import ast
import pickle
import tomllib
from pathlib import Path

from dszog import MissingExtraError

ROOT = Path(__file__).parents[1]


def calls_of_missing_extra() -> list[tuple[str, ast.Call]]:
    """Return each place in the source where the error is made."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                if name.startswith("MissingExtraError"):
                    found.append((f"{path.name}: {name}", node))
    return found


def test_a_missing_extra_is_told_by_one_function() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    found = calls_of_missing_extra()
    assert len(found) > 10
    for where, call in found:
        assert where.endswith("MissingExtraError.of")
        _, _, extra = call.args
        assert isinstance(extra, ast.Constant), where
        assert extra.value in extras, where


def test_a_missing_extra_says_who_needs_what_and_how_to_get_it() -> None:
    error = MissingExtraError.of("to_frame", "pandas", "pandas")
    assert str(error) == 'to_frame needs pandas: pip install "dszog[pandas]".'
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
