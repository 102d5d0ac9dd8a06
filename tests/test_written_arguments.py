"""Functions that write into their arguments from C, where read-only stops nobody."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import dszog
from dszog import Constraints, Losses, Problem, Simulator, certify, minimize
from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.subproblems import Box

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def overwrite(array: Any) -> None:
    """Fill an array with sevens as compiled code does: by its address."""
    sevens = np.full_like(array, 7)
    ctypes.memmove(array.ctypes.data, sevens.ctypes.data, array.nbytes)


def writing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that overwrites all arrays it is given once it is done."""

    def called(*arguments: Any, **named: Any) -> Any:
        returned = function(*arguments, **named)
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                overwrite(argument)
        return returned

    return called


def as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def test_what_compiled_code_writes_gets_past_a_read_only_array() -> None:
    kept = dszog.contract.arrays.frozen_floats([1.0, 2.0])
    overwrite(kept)
    assert kept.tolist() == [7.0, 7.0]


# Minimise the squared distance to (2, 3) where x0 <= 1, in many ways to write it.


def objective(x: FloatArray) -> float:
    return float(np.square(x - [2.0, 3.0]).sum())


def gradient(x: FloatArray) -> FloatArray:
    return 2.0 * (x - [2.0, 3.0])


def losses(points: FloatArray, i: IntArray) -> FloatArray:
    each: FloatArray = np.array([[objective(x)] for x in points]) + 0.01 * (i - 4.5)
    return each


def limits(points: FloatArray, j: IntArray) -> FloatArray:
    values: FloatArray = points[:, :1] - 1.0 - 0.01 * j
    return values


def limit(x: FloatArray, j: int) -> float:
    return float(x[0] - 1.0 - 0.01 * j)


def block(x: FloatArray, b: int) -> FloatArray:
    return np.array([x[0] - 1.0 - 0.01 * b, x[1] - 50.0])


def slopes(x: FloatArray, j: IntArray) -> FloatArray:
    return np.tile([1.0, 0.0], (len(j), 1))


def many(wrap: Wrap, m: int = 10) -> Constraints:
    return Constraints(wrap(limits), m)


def sloped(wrap: Wrap) -> Losses:
    slopes = wrap(lambda x, i: np.tile(gradient(x), (len(i), 1)))
    return Losses(losses, 10, gradient=slopes)


FORMS: dict[str, Callable[[Wrap], Problem]] = {
    "fun": lambda wrap: Problem(wrap(objective), many(as_it_is), 2),
    "losses": lambda wrap: Problem(Losses(wrap(losses), 10), many(as_it_is), 2),
    "constraints": lambda wrap: Problem(objective, many(wrap), 2),
    "both": lambda wrap: Problem(Losses(wrap(losses), 10), many(wrap), 2),
    "too many to look at all": lambda wrap: Problem(objective, many(wrap, 10**6), 2),
    "from_function": lambda wrap: Problem(
        objective, Constraints.from_function(wrap(limit), 10), 2
    ),
    "from_callables": lambda wrap: Problem(
        objective,
        Constraints.from_callables([wrap(lambda x: x[0] - 1.0), lambda x: -x[1]]),
        2,
    ),
    "blocks": lambda wrap: Problem(
        objective, Constraints.blocks(wrap(block), 10, width=2), 2
    ),
    "simulator": lambda wrap: Problem(
        Simulator(wrap(lambda x, i: (objective(x), block(x, i))), 10, 2), None, 2
    ),
    "concat": lambda wrap: Problem(
        objective, [many(wrap), Constraints.from_function(limit, 3)], 2
    ),
    "scipy": lambda wrap: Problem(
        objective, NonlinearConstraint(wrap(lambda x: 1.0 * x[:1]), -np.inf, 1.0), 2
    ),
    "two of scipy": lambda wrap: Problem(
        objective,
        [
            {"type": "ineq", "fun": wrap(lambda x: 1.0 - x[0])},
            {"type": "ineq", "fun": lambda x: 9.0 - x},
        ],
        2,
    ),
    "gradients": lambda wrap: Problem(
        sloped(wrap),
        Constraints(limits, 10, jacobian=wrap(slopes)),
        2,
    ),
    "gradients of two": lambda wrap: Problem(
        sloped(wrap),
        [
            Constraints(limits, 10, jacobian=wrap(slopes)),
            NonlinearConstraint(
                lambda x: x[1:] ** 2,
                [-np.inf],
                [20.0],
                wrap(lambda x: [[0.0, 2 * x[1]]]),
            ),
        ],
        2,
    ),
    "scaled": lambda wrap: Problem(
        wrap(objective), many(wrap), 2, x_scale=[0.5, 2.0], bounds=[(-9.0, 9.0)] * 2
    ),
}


@pytest.mark.parametrize("evaluator", ["serial", "threads"])
@pytest.mark.parametrize("form", FORMS)
def test_a_function_that_writes_into_its_arguments_changes_no_bit_of_a_run(
    form: str, evaluator: str
) -> None:
    def run(wrap: Wrap) -> Any:
        problem = FORMS[form](wrap)
        return minimize(problem, max_queries=3000, seed=0, evaluator=evaluator)

    plain, written = run(as_it_is), run(writing)
    assert written.digest == plain.digest
    np.testing.assert_array_equal(written.x, plain.x)
    assert (written.fun, written.maxcv) == (plain.fun, plain.maxcv)
    assert written.message == plain.message
    assert str(written.certificate) == str(plain.certificate)


@pytest.mark.parametrize("form", FORMS)
def test_a_function_that_writes_changes_no_certificate(form: str) -> None:
    x = np.array([1.0, 2.5])
    plain = certify(FORMS[form](as_it_is), x)
    written = certify(FORMS[form](writing), x)
    np.testing.assert_array_equal(written.x, x)
    assert str(written) == str(plain)
    assert x.tolist() == [1.0, 2.5]


@pytest.mark.parametrize("x_scale", [1.0, [0.5, 2.0]], ids=str)
def test_a_callback_that_writes_into_x_spoils_nothing(x_scale: Any) -> None:
    seen: list[list[float]] = []

    def look(progress: dszog.Progress) -> None:
        seen.append(progress.x.tolist())

    def spoil(progress: dszog.Progress) -> None:
        overwrite(progress.x)

    def run(*callbacks: Any) -> Any:
        problem = Problem(objective, many(as_it_is), 2, x_scale=x_scale)
        return minimize(problem, max_queries=1000, seed=0, callback=list(callbacks))

    plain = run(look)
    seen_plainly = seen.copy()
    seen.clear()
    spoiled = run(spoil, look)
    assert spoiled.digest == plain.digest
    assert seen == seen_plainly


def test_to_write_into_a_result_changes_no_problem_and_no_other_run() -> None:
    problem = Problem(lambda x: 0.0, many(as_it_is), 2, x0=[0.25, 0.5])
    first = minimize(problem, max_queries=1000, seed=0)
    assert first.is_start
    overwrite(first.certificate.x)
    overwrite(first.x)
    assert problem.x0.tolist() == [0.25, 0.5]
    assert minimize(problem, max_queries=1000, seed=0).x.tolist() == [0.25, 0.5]


class WritingBox(Box):
    """A feasible set whose compiled code works in place."""

    def project(self, *arguments: Any, **named: Any) -> Any:
        return writing(super().project)(*arguments, **named)

    def lmo(self, *arguments: Any, **named: Any) -> Any:
        return writing(super().lmo)(*arguments, **named)


@pytest.mark.parametrize("method", ["zopsgd", "acczomda", "fzfw"])
def test_a_feasible_set_that_writes_changes_no_bit(method: str) -> None:
    def run(kind: type[Box]) -> Any:
        problem = Problem(Losses(losses, 10), None, 2, unconstrained=True)
        box = kind(lower=[0.0, 0.0], upper=[1.0, 1.0])
        return minimize(
            problem, method=method, options={"domain": box}, max_queries=1000, seed=0
        )

    assert run(WritingBox).digest == run(Box).digest
