"""The list of guards fits the source: nothing in it has moved away."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.listed import MUTANTS, Mutant

ROOT = Path(__file__).parents[2]


@cache
def source_of(file: str) -> str:
    return (ROOT / "src" / "dszog" / file).read_text(encoding="utf-8")


@cache
def names_in(file: str) -> set[str]:
    tree = ast.parse((ROOT / "tests" / file).read_text(encoding="utf-8"))
    names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            names |= {
                f"{node.name}::{one.name}"
                for one in node.body
                if isinstance(one, ast.FunctionDef)
            }
    return names


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_guard_is_where_the_list_says_and_its_tests_are_there(mutant: Mutant) -> None:
    source = source_of(mutant.file)
    assert source.count(mutant.old) == 1
    ast.parse(source.replace(mutant.old, mutant.new))
    assert mutant.test in names_in(mutant.node.split("::")[0])


def test_there_are_enough_of_them_and_none_stands_twice() -> None:
    places = [(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS]
    assert len(set(places)) == len(places) >= 40
    assert len({mutant.file for mutant in MUTANTS}) >= 15
