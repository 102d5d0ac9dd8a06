"""``method="auto"``: which method is chosen, and what is said of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import rosen

import dszog
from dszog import DSZOG, Constraints, InputError, Problem, SampledSQP, Status
from dszog.contract import ProblemSize
from dszog.methods.auto import MOST_VARIABLES, Choice
from dszog.methods.slopes import SlopesDSZOG
from tests.runs import size_of

SIZE = size_of(30, 1000, 10**6)
WHITE = replace(SIZE, has_gradient=True, has_jacobian=True)


def problem(dim: int = 2) -> Problem:
    def rows(points: Any, j: Any) -> Any:
        return points[:, :2] @ [np.cos(j), np.sin(j)] - 1.0

    return Problem(lambda x: float(((x - 2.0) ** 2).sum()), Constraints(rows, 500), dim)


def solve(dim: int = 2, **more: Any) -> Any:
    more = {"max_queries": 20_000, "seed": 0} | more
    return dszog.minimize(problem(dim), method="auto", **more)


@pytest.mark.parametrize(
    ("size", "iterations", "queries", "chosen"),
    [
        (SIZE, None, None, "sampled_sqp"),
        (SIZE, 2000, None, "sampled_sqp"),
        (SIZE, 10, None, "dszog"),
        (SIZE, None, 10**5, "sampled_sqp"),
        (SIZE, None, 3000, "dszog"),
        (WHITE, None, 3000, "sampled_sqp"),
        (replace(SIZE, n_losses=1, n_constraints=2), None, 300, "sampled_sqp"),
        (replace(SIZE, dim=2, n_losses=1), None, 900, "dszog"),  # less than a step
    ],
)
def test_the_budget_decides(
    size: ProblemSize, iterations: int | None, queries: int | None, chosen: str
) -> None:
    choice = Choice("sampled_sqp").for_problem(size, iterations, queries)
    assert choice.name == chosen
    assert choice.sentence.startswith(f"The method is {chosen}: ")
    assert choice.for_problem(size, 1, 1) is choice  # it stays


def test_many_variables_are_for_dszog() -> None:
    result = solve(dim=MOST_VARIABLES + 1, max_queries=100_000, max_iterations=40)
    assert isinstance(result.method, DSZOG)
    said = "The method is dszog: sampled_sqp is for at most 1,000 variables"
    assert said in result.message


@pytest.mark.parametrize(
    ("more", "kind", "why"),
    [
        ({}, SampledSQP, "there is room to learn slopes along 2 variables"),
        ({"options": {"loss_batch": 8}}, SampledSQP, "there is room"),
        ({"options": {"tol": 1e-3}}, SampledSQP, "'tol' is an option of it"),
        ({"tol": 1e-3}, SampledSQP, "'tol' is an option of it"),
        ({"options": {"step_size": 0.1}}, DSZOG, "'step_size' is an option of it"),
        (
            {"weights": (np.array([3]), np.array([1.0]))},
            SlopesDSZOG,
            "start from weights",
        ),
        ({"max_queries": 1700, "options": {"loss_batch": 1}}, SampledSQP, "there is"),
    ],
)
def test_the_message_says_which_and_why(more: Any, kind: type, why: str) -> None:
    result = solve(**more)
    assert type(result.method) is kind
    assert why in result.message
    assert result.message.count("The method is") == 1


def test_it_is_the_default() -> None:
    result = dszog.minimize(problem(), max_queries=20_000, seed=0)
    assert result.digest == solve().digest


def test_options_of_neither_or_of_both_are_refused() -> None:
    with pytest.raises(InputError, match=r"'auto' has no option 'step_sice'. Did you"):
        solve(options={"step_sice": 3})
    with pytest.raises(InputError, match="has no option 'unheard'") as error:
        solve(options={"unheard": 3})
    assert "noise_share" in str(error.value)
    assert "penalty" in str(error.value)
    with pytest.raises(InputError, match="'penalty' is no option of sampled_sqp"):
        solve(options={"penalty": 3.0, "tol": 1e-3})


def test_nothing_has_to_be_kept() -> None:
    # SciPy's first example: the Rosenbrock function, without constraints and bounds.
    result = dszog.minimize(rosen, [1.3, 0.7, 0.8, 1.9, 1.2], seed=0)
    assert (result.status, result.success) == (Status.CONVERGED, True)
    np.testing.assert_allclose(result.x, np.ones(5), atol=1e-3)


def saved(folder: Path, **more: Any) -> Any:
    planes = Constraints(lambda w, j: w @ [np.cos(j), np.sin(j)] - 0.5, 5000)
    more |= {"seed": 0, "checkpoint": folder, "resume": True}
    return dszog.minimize(lambda x: ((x - 1.0) ** 2).sum(), np.zeros(2), planes, **more)


def test_a_saved_run_goes_on_with_its_method(tmp_path: Path) -> None:
    first = saved(tmp_path, max_queries=1000)
    again = saved(tmp_path, max_queries=5000)
    assert isinstance(first.method, DSZOG)
    assert isinstance(again.method, DSZOG)
    assert "sampled_sqp would be chosen now, in an empty folder" in again.message
    assert "would be chosen now" not in first.message
