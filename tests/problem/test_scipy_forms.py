"""Problems written for SciPy, and what `minimize` makes of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import dszog
from dszog import Constraints, Problem
from dszog.contract.arrays import FloatArray
from tests.runs import by_dszog


def _square(x: FloatArray) -> float:
    return float(x @ x)


def problem_of(constraints: Any, dim: int = 2, **more: Any) -> Problem:
    return Problem(_square, constraints, dim, **more)


def values_at(constraints: Any, x: Any, **more: Any) -> FloatArray:
    """Return all constraint values of a problem at a point; <= 0 where they hold."""
    point = np.asarray(x, dtype=float)
    family = problem_of(constraints, len(point), **more).constraints
    assert family is not None
    table = family.values(point[np.newaxis], np.arange(len(family)))
    values: FloatArray = np.asarray(table)[0]
    return values


@pytest.mark.parametrize("ask_width", [True, False], ids=["scalar", "array"])
@pytest.mark.parametrize("shape", ["vector", "list", "column"])
def test_a_nonlinear_one_holds_between_limits(ask_width: bool, shape: str) -> None:
    n_calls = 0

    def fun(x: FloatArray) -> Any:
        nonlocal n_calls
        n_calls += 1
        values = np.array([x[0] * x[1], x[0] ** 2])
        shaped = {"vector": values, "list": list(values), "column": values[:, None]}
        return shaped[shape]

    limits = (1.0, 4.0) if ask_width else (np.full(2, 1.0), np.full(2, 4.0))
    constraint = NonlinearConstraint(fun, *limits)
    problem = problem_of(constraint, x0=[1.0, 1.0])
    assert n_calls == problem.n_calls_made == ask_width  # one call tells the number
    np.testing.assert_allclose(
        values_at(constraint, [3.0, 2.0]), [6 - 4, 9 - 4, 1 - 6, 1 - 9]
    )


def test_a_jacobian_by_differences_is_not_a_given_one() -> None:
    for jac in ("2-point", "3-point", "cs"):
        constraint = NonlinearConstraint(lambda x: x, 0.0, 1.0, jac=jac)
        assert not problem_of(constraint).size.has_jacobian


def test_a_single_argument_need_not_be_a_tuple_of_one() -> None:
    # SciPy takes args=(5.0,); a list does as well.
    constraint = {"type": "ineq", "fun": lambda x, a: a - x[0], "args": [5.0]}
    np.testing.assert_allclose(values_at(constraint, [1.0, 1.0]), [-4.0])


def test_a_list_may_mix_all_forms_and_keeps_their_order_and_places() -> None:
    mixed = [
        LinearConstraint(np.eye(2), -np.inf, 1.0),
        Constraints.from_function(lambda x, j: x[j] - 10.0, 2),
        {"type": "ineq", "fun": lambda x: x[0]},
        NonlinearConstraint(lambda x: x @ x, -np.inf, 100.0),
        (Constraints.linear(np.ones((1, 2)), [0.0]), {"type": "eq", "fun": max}),
    ]
    named = Problem(lambda x: 0.0, mixed, dim=2)
    linear = ["constraints[0][0]", "constraints[0][1]"]
    single = ["", "", "constraints[2]", "constraints[3]", ""]
    pair = ["upper limit of constraints[5]", "lower limit of constraints[5]"]
    names = [named.name("constraint", j) for j in range(9)]
    assert names == [*linear, *single, *pair]
    np.testing.assert_allclose(
        values_at(mixed, [3.0, 4.0]), [2, 3, -7, -6, -3, -75, 7, 4, -4]
    )
    one_row = (LinearConstraint([1.0, -1.0], -2.0, 3.0),)
    np.testing.assert_allclose(values_at(one_row, [5.0, 0.0]), [2.0, -7.0])


def badly_scaled(x: FloatArray) -> float:
    """Return a bowl around (2e-3, 3e4): the variables differ by seven digits."""
    return float((x[0] / 1e-3 - 2.0) ** 2 + (x[1] / 1e4 - 3.0) ** 2)


BADLY_SCALED = {
    "type": "ineq",
    "fun": lambda x: 4.0 - x[0] / 1e-3 - x[1] / 1e4,  # the best is (1.5e-3, 2.5e4)
}


def test_a_badly_scaled_problem_is_solved_with_x_scale() -> None:
    settings: dict[str, Any] = {"seed": 0, "max_iterations": 800}
    x0 = [1e-3, 1e4]
    scaled = by_dszog(badly_scaled, x0, BADLY_SCALED, x_scale=[1e-3, 1e4], **settings)
    plain = by_dszog(badly_scaled, x0, BADLY_SCALED, **settings)
    assert scaled.success
    np.testing.assert_allclose(scaled.x / [1e-3, 1e4], [1.5, 2.5], atol=0.03)
    assert scaled.fun == pytest.approx(0.5, abs=0.03)
    assert not plain.success or plain.fun > 1.0


def test_scaling_by_powers_of_two_is_the_run_on_scaled_variables() -> None:
    scale = np.array([0.25, 1024.0])

    def fun(x: FloatArray) -> float:
        return float(((x - [1.0, 0.5]) ** 2).sum())

    def limit(x: FloatArray, j: int) -> float:
        return float(x[0] + x[1] - 1.0)

    settings: dict[str, Any] = {"seed": 4, "max_iterations": 30}
    plain = dszog.minimize(
        fun, [0.0, 0.0], Constraints.from_function(limit, 1), **settings
    )
    scaled = dszog.minimize(
        lambda x: fun(x / scale),
        [0.0, 0.0],
        Constraints.from_function(lambda x, j: limit(x / scale, j), 1),
        x_scale=scale,
        **settings,
    )
    np.testing.assert_array_equal(scaled.x / scale, plain.x)
    assert scaled.fun == plain.fun
    assert scaled.ncev == plain.ncev


@dataclass
class Points:
    """Functions that note every point they are called at."""

    seen: list[FloatArray] = field(default_factory=list)

    def fun(self, x: FloatArray) -> float:
        self.seen.append(x)
        return float(((x - 5.0) ** 2).sum())

    def constraints(self) -> list[Any]:
        def note(x: FloatArray) -> FloatArray:
            self.seen.append(x)
            return x[:2] - 1.5

        return [
            Constraints.from_function(lambda x, j: float(note(x)[j]), 2),
            Constraints.blocks(lambda x, b: note(x), 2, width=2),
            NonlinearConstraint(note, -9.0, 2.0),
            {"type": "ineq", "fun": lambda x: 2.0 - note(x)},
        ]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("auto", {}),
        ("dszog", {}),
        ("dszog", {"antithetic": True, "radius": 0.5}),
        ("dszog", {"directions": "gaussian", "radius": 0.3, "step_size": 0.5}),
        ("dszog", {"directions": "coordinate"}),
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", [1.0, 3.7, [0.1, 7.0, 1e3]], ids=str)
def test_no_function_is_called_outside_the_bounds(
    method: str, options: dict[str, Any], scale: Any
) -> None:
    lower, upper = np.array([-0.1, 0.3, -np.inf]), np.array([1 / 3, 0.7, 1.1])
    points = Points()
    result = dszog.minimize(
        points.fun, [0.2, 0.3, 1.1], points.constraints(), bounds=Bounds(lower, upper),
        x_scale=scale, method=method, options=options, max_iterations=120, seed=3,
    )  # fmt: skip
    seen = np.array(points.seen)
    assert (seen >= lower).all()
    assert (seen <= upper).all()
    assert (seen == upper).any()  # they were reached
    assert len(np.unique(seen, axis=0)) > 5
    assert (result.x >= lower).all()
    assert (result.x <= upper).all()
    is_short = method == "auto"  # too short a run for so many points
    assert is_short or result.certificate.stationarity is not None


SIGNS: dict[str, tuple[Any, float, Any, dict[str, Any]]] = {
    "its least value is inside": (
        *(lambda x: np.sum((x - 1) ** 2), 0.0, lambda x: 25 - x @ x, {}),
    ),
    "and the start is not": (
        *(lambda x: np.sum((x - 1) ** 2), 10.0, lambda x: 25 - x @ x, {}),
    ),
    "all hold by 98": (lambda x: np.sum((x - 2) ** 2), 0.0, lambda x: 100 - x, {}),
    "a local one": (lambda x: np.sin(x).sum(), 0.0, lambda x: 10 - x @ x, {}),
    "at the limit": (lambda x: x.sum(), 3.0, lambda x: x - 1, {}),
    "not yet at the limit": (
        *(lambda x: -x.sum(), 0.0, lambda x: 400 - x @ x, {"max_iterations": 300}),
    ),
    "nor here": (
        *(lambda x: x @ x, 30.0, lambda x: x.sum() - 1, {"max_iterations": 300}),
    ),
    "ended by bounds": (
        *(lambda x: -x.sum(), 0.0, lambda x: 5 + x, {"bounds": [(-1, 1)] * 2}),
    ),
    "not of SciPy": (
        *(lambda x: -x.sum(), 12.0, Constraints.linear(-np.eye(2), -10.0), {}),
    ),
    "wrong: at most 10": (lambda x: -x.sum(), 1.0, lambda x: x - 10, {}),
    "wrong: within the circle": (lambda x: -x.sum(), 2.0, lambda x: x @ x - 1, {}),
    "wrong: at least 5": (lambda x: x.sum(), 4.0, lambda x: 5 - x.sum(), {}),
    "wrong: at least 2": (lambda x: np.exp(x / 4).sum(), 3.0, lambda x: 2 - x, {}),
}


@pytest.mark.parametrize("name", SIGNS)
def test_an_objective_that_no_constraint_stops_brings_a_word_about_scipys_sign(
    name: str,
) -> None:
    fun, x0, limit, more = SIGNS[name]
    constraints = {"type": "ineq", "fun": limit} if callable(limit) else limit
    result = by_dszog(fun, np.full(2, x0), constraints, seed=0, **more)
    told = "SciPy's 'ineq' means fun(x) >= 0" in result.message
    assert told == name.startswith("wrong")
