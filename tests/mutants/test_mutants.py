"""The list of guards fits the source: nothing in it has moved away."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutants.listed import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_guard_is_where_the_list_says_and_its_tests_are_there(mutant: Mutant) -> None:
    source = (ROOT / "src" / "dszog" / mutant.file).read_text(encoding="utf-8")
    assert source.count(mutant.old) == 1
    ast.parse(source.replace(mutant.old, mutant.new))
    file, *_, name = mutant.node.split("::")
    assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")


def test_there_are_enough_of_them_and_none_stands_twice() -> None:
    places = [(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS]
    assert len(set(places)) == len(places) >= 40
    assert len({mutant.file for mutant in MUTANTS}) >= 15
