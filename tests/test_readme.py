"""What the README shows, runs; what it claims, holds."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
PROSE = re.sub(r"```.*?```", "", README, flags=re.DOTALL)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """Return what the first block leaves behind."""
    namespace: dict[str, Any] = {}
    exec(compile(BLOCKS[0], "README.md", "exec"), namespace)
    return namespace


def test_the_other_blocks_run_after_it_and_succeed(names: dict[str, Any]) -> None:
    for block in BLOCKS[1:]:
        namespace = dict(names)
        exec(compile(block, "README.md", "exec"), namespace)
        assert namespace["result"].success


def test_the_example_has_the_result_it_claims(names: dict[str, Any]) -> None:
    claim = re.search(
        r"print\(result\.x, result\.maxcv, result\.success\)  "
        r"# close to \(([\d.]+), ([\d.]+)\), <= ([\d.]+), (True|False)",
        BLOCKS[0],
    )
    assert claim is not None, "the README makes other claims: check those"
    first, second, tolerance, success = claim.groups()
    result = names["result"]
    np.testing.assert_allclose(result.x, [float(first), float(second)], atol=0.01)
    assert result.maxcv <= float(tolerance)
    assert str(result.success) == success


def test_the_example_has_as_many_constraints_as_told(names: dict[str, Any]) -> None:
    assert "a million half-planes" in " ".join(README.split())
    assert len(names["constraints"]) == 1_000_000
    # All of them, at any point of the unit circle, hold to within rounding.
    on_circle = np.array([[np.sqrt(0.5), np.sqrt(0.5)]])
    values = names["constraints"].values(on_circle, np.arange(0, 1_000_000, 997))
    assert values.shape == (1, 1004)
    assert values.max() == pytest.approx(0.0, abs=1e-5)


def test_the_result_is_fresh_and_says_what_it_is_on(names: dict[str, Any]) -> None:
    result = names["result"]
    assert result.fun == pytest.approx(np.sum((result.x - 2) ** 2), rel=1e-12)
    assert str(result.certificate.feasibility) in result.message
    assert result.certificate.feasibility.n_constraints == 1_000_000


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`Constraints\.(\w+)\(", PROSE)))
)
def test_the_ready_kind_that_the_text_names_exists(name: str) -> None:
    assert callable(getattr(dszog.Constraints, name))


@pytest.mark.parametrize(
    "name", sorted(set(re.findall(r"`result\.(\w+)`", PROSE)) | {"x", "maxcv"})
)
def test_the_result_has_what_the_text_names(name: str, names: dict[str, Any]) -> None:
    assert name in names["result"]


def test_the_arguments_that_the_text_names_are_those_of_minimize() -> None:
    arguments = inspect.signature(dszog.minimize).parameters
    named = set(re.findall(r"`(\w+)=", PROSE))
    assert len(named) >= 5
    assert named <= set(arguments)


def test_the_picture_and_every_page_that_is_linked_are_there() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 10
    assert [link for link in links if not (ROOT / link).is_file()] == []


def test_the_python_that_the_text_names_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least = re.search(r"Python (\d\.\d+) or newer", README)
    assert least is not None
    assert project["requires-python"] == f">={least[1]}"
