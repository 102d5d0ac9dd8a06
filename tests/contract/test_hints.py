"""Words of other libraries and of the paper are answered with ours."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import dszog
from dszog.contract.hints import ELSEWHERE, LETTERS, RENAMED
from dszog.run.scipy_call import OPTIONS


def never(x: Any) -> float:
    raise AssertionError("called although the call was wrong")


def call(**wrong: Any) -> None:
    constraints = dszog.Constraints.from_function(lambda x, j: never(x), 5)
    dszog.minimize(never, np.zeros(2), constraints, **wrong)


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_an_argument_of_others_is_answered_with_what_takes_its_place(name: str) -> None:
    with pytest.raises(dszog.InputTypeError) as error:
        call(**{name: 1})
    assert f"no argument {name!r}. {ELSEWHERE[name]}" in str(error.value)


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_an_argument_with_another_name_is_answered_with_ours(name: str) -> None:
    ours = RENAMED[name]
    with pytest.raises(dszog.InputTypeError, match=f"Did you mean '{ours}'"):
        call(**{name: 1})
    if name in OPTIONS:  # which is taken
        return
    with pytest.raises(dszog.InputError, match=f"Give it to minimize itself: {ours}="):
        call(options={name: 1})


def test_an_argument_among_the_options_is_sent_to_its_place() -> None:
    with pytest.raises(dszog.InputError, match="to minimize itself: max_queries="):
        call(options={"max_queries": 1})
    with pytest.raises(dszog.InputError, match="to minimize itself: jac="):
        call(options={"jac": 1})


@pytest.mark.parametrize("letter", sorted(LETTERS))
def test_a_letter_of_the_paper_is_answered_with_a_word(letter: str) -> None:
    assert LETTERS[letter] in {field.name for field in fields(dszog.DSZOG)}
    with pytest.raises(dszog.InputError, match=f"letter for '{LETTERS[letter]}'"):
        call(options={letter: 1})


@pytest.mark.parametrize("returned", [1.0, (1.0,), (1.0, [0.0], 2), np.zeros(3), None])
def test_a_simulator_that_returns_no_pair_is_told_so(returned: Any) -> None:
    plant = dszog.Simulator(lambda x, i: returned, n=3, width=2)
    with pytest.raises(dszog.EvaluationError, match="expected a pair: the loss and 2"):
        dszog.minimize(plant, np.zeros(2), max_iterations=2, seed=0)


def test_an_answer_that_is_no_reply_is_refused() -> None:
    constraints = dszog.Constraints.linear(np.eye(2), 1.0)
    problem = dszog.Problem(never, constraints, 2)
    method = dszog.DSZOG()
    state = method.init(np.zeros(2), problem.size, 0)
    wrong: list[Any] = [np.zeros(3)]
    with pytest.raises(dszog.DszogError, match=r"must be a dszog\.Reply, got ndarray"):
        method.tell(state, method.ask(state), wrong)
