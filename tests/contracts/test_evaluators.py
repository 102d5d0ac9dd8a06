"""What every evaluator promises about the user's functions it calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from dszog import (
    EVALUATORS,
    Constraints,
    DszogError,
    EvaluationError,
    Losses,
    Problem,
    Query,
    Reply,
)
from dszog.contract.arrays import FloatArray, IntArray
from dszog.run.failures import FailureHandler
from dszog.workers import Evaluator
from tests.contracts.helpers import PROBLEMS, Kind, digest, make_problem

X = np.array([0.1, -0.2, 0.3])
STEPS = np.array([[0.5, 0.0, 0.0], [0.0, -0.5, 0.25]])
FIELDS = {  # of a reply, by the function that fills it
    "losses": "losses",
    "constraints": "constraints",
    "gradient": "loss_gradients",
    "jacobian": "jacobian",
}
PARTS = tuple(FIELDS)


# Functions that note in a list how they are called must be called in this process. What
# evaluators elsewhere promise is in tests/workers.
WATCHED = ("serial", "threads")


@pytest.fixture(params=WATCHED)
def ask(request: pytest.FixtureRequest) -> Iterator[Callable[..., tuple[Reply, ...]]]:
    """Return ``ask(problem, *queries)``, which answers with the evaluator tested."""
    opened: list[Evaluator] = []

    def answers(problem: Problem, *queries: Query) -> tuple[Reply, ...]:
        opened.append(EVALUATORS[request.param](problem))
        replies = opened[-1](queries)
        FailureHandler("raise").count(replies)
        return replies

    yield answers
    for evaluator in opened:
        evaluator.close()


Ask = Callable[..., tuple[Reply, ...]]


def query(part: str, indices: Any = (4, 2)) -> Query:
    """Return a query that makes the evaluator call this one of the functions."""
    name = "losses" if part in ("losses", "gradient") else "constraints"
    wanted: dict[str, Any] = {name: np.array(indices)}
    if part == name:
        return Query(iteration=12, x=X, steps=STEPS, **wanted)
    return Query.at(X, iteration=12, want="gradients", **wanted)


def problem_with(part: str, function: Callable[[FloatArray, IntArray], Any]) -> Problem:
    """Return a problem of ones in which one of the four functions is this one."""

    def values(points: FloatArray, indices: IntArray) -> Any:
        return np.ones((len(points), len(indices)))

    def gradients(point: FloatArray, indices: IntArray) -> Any:
        return np.ones((len(indices), len(point)))

    functions: dict[str, Callable[[FloatArray, IntArray], Any]] = {
        "losses": values,
        "constraints": values,
        "gradient": gradients,
        "jacobian": gradients,
        part: function,
    }
    return Problem(
        Losses(functions["losses"], 9, gradient=functions["gradient"]),
        Constraints(functions["constraints"], 9, jacobian=functions["jacobian"]),
        3,
    )


def shape_of(part: str, where: FloatArray, indices: IntArray) -> tuple[int, int]:
    if part in ("losses", "constraints"):
        return len(where), len(indices)
    return len(indices), len(where)


# ----------------------------------------------------------------------- right answers
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_reply_holds_the_values_at_every_point(ask: Ask, name: str) -> None:
    problem, _ = make_problem(PROBLEMS[name])
    size, dim = problem.size, problem.dim
    steps = np.linspace(-2.0, 2.0, 4 * dim).reshape(4, dim)
    losses = np.arange(size.n_losses)[::-7]
    constraints = np.arange(size.n_constraints)[::-11]
    asked = Query(
        iteration=0, x=problem.x0, steps=steps, losses=losses, constraints=constraints
    )
    (reply,) = ask(problem, asked)
    points = np.vstack([problem.x0, problem.x0 + steps])
    points = np.clip(points, problem.lower, problem.upper)
    np.testing.assert_array_equal(reply.losses, problem.losses.values(points, losses))
    assert reply.constraints.shape == (5, len(constraints))
    if problem.constraints is not None:
        # Columns in ascending order: a matrix product may round each order differently.
        expected = problem.constraints.values(points, constraints[::-1])[:, ::-1]
        np.testing.assert_array_equal(reply.constraints, expected)


def test_a_query_for_gradients_is_answered_with_values_and_gradients(ask: Ask) -> None:
    problem, _ = make_problem(Kind(gradient=True, jacobian=True))
    losses, constraints = np.array([5, 1]), np.array([7, 9, 2])
    asked = Query.at(
        X, iteration=0, losses=losses, constraints=constraints, want="gradients"
    )
    (reply,) = ask(problem, asked)
    assert problem.constraints is not None
    expected = Reply(
        problem.losses.values(X[np.newaxis], losses),
        problem.constraints.values(X[np.newaxis], constraints),
        problem.losses.gradient(X, losses),
        problem.constraints.jacobian(X, constraints),
    )
    for name in FIELDS.values():
        np.testing.assert_allclose(
            getattr(reply, name), getattr(expected, name), rtol=1e-14
        )


def test_gradients_of_losses_alone_call_no_constraint(ask: Ask) -> None:
    problem, tally = make_problem(Kind(gradient=True, jacobian=True))
    asked = Query.at(X, iteration=0, losses=np.array([3, 4, 5]), want="gradients")
    (reply,) = ask(problem, asked)
    assert (tally.n_losses, tally.n_constraints, tally.n_calls) == (6, 0, 2)
    assert reply.loss_gradients.shape == (3, 3)
    assert reply.jacobian.size == 0


def test_replies_come_in_the_order_of_the_queries(ask: Ask) -> None:
    problem = problem_with("losses", lambda points, i: points[:, :1] * 0.0 + i)
    queries = [
        Query.at(X, iteration=0, losses=np.array([i])) for i in (5, 1, 8, 3, 3, 0)
    ]
    replies = ask(problem, *queries)
    assert [reply.losses.item() for reply in replies] == [5, 1, 8, 3, 3, 0]


def test_an_empty_query_calls_nothing(ask: Ask) -> None:
    problem, tally = make_problem(Kind())
    (reply,) = ask(problem, Query(iteration=0, x=X, steps=STEPS))
    assert tally.n_calls == 0
    assert reply.losses.shape == reply.constraints.shape == (3, 0)


# -------------------------------------------------------------------- how it is called
@pytest.mark.parametrize("part", PARTS)
def test_a_repeated_index_is_evaluated_only_once(ask: Ask, part: str) -> None:
    seen: list[list[int]] = []

    def function(where: FloatArray, indices: IntArray) -> Any:
        seen.append(indices.tolist())
        values = np.ones(shape_of(part, where, indices))
        return values * indices if where.ndim == 2 else values * indices[:, np.newaxis]

    repeated = np.array([6, 2, 6, 6, 0, 2])
    asked = query(part, repeated)
    (reply,) = ask(problem_with(part, function), asked)
    assert [sorted(indices) for indices in seen] == [[0, 2, 6]]
    is_values = part in ("losses", "constraints")
    assert asked.n_evaluations == (3 if is_values else 2)
    table = np.array([repeated] * 3)
    expected = table if is_values else table.T
    np.testing.assert_array_equal(getattr(reply, FIELDS[part]), expected)


@pytest.mark.parametrize("part", PARTS)
def test_functions_get_read_only_floats_and_int64(ask: Ask, part: str) -> None:
    seen: list[tuple[FloatArray, IntArray]] = []

    def function(where: FloatArray, indices: IntArray) -> Any:
        seen.append((where, indices))
        return np.ones(shape_of(part, where, indices))

    ask(problem_with(part, function), query(part))
    ((where, indices),) = seen
    assert where.shape == ((3, 3) if part in ("losses", "constraints") else (3,))
    assert (where.dtype.str, indices.dtype.str) == ("<f8", "<i8")
    assert not where.flags.writeable
    assert not indices.flags.writeable


@pytest.mark.parametrize("part", PARTS)
def test_a_function_that_writes_to_arguments_is_told(ask: Ask, part: str) -> None:
    def function(where: FloatArray, indices: IntArray) -> Any:
        where[...] = 0.0
        return np.ones(shape_of(part, where, indices))

    asked = query(part)
    before = digest(asked)
    with pytest.raises(EvaluationError, match=r"raised ValueError: .*read-only"):
        ask(problem_with(part, function), asked)
    assert digest(asked) == before


@pytest.mark.parametrize("part", PARTS)
def test_a_reply_can_not_be_changed(ask: Ask, part: str) -> None:
    (reply,) = ask(problem_with(part, _ones(part)), query(part))
    arrays = [array for array in reply if isinstance(array, np.ndarray)]
    filled = [array for array in arrays if array.size]
    assert len(filled) == (1 if part in ("losses", "constraints") else 2)
    assert not any(array.flags.writeable for array in filled)


def _ones(part: str) -> Callable[[FloatArray, IntArray], Any]:
    return lambda where, indices: np.ones(shape_of(part, where, indices))


def test_functions_that_return_one_buffer_again_mix_no_replies(ask: Ask) -> None:
    buffer = np.empty((3, 2))

    def filled(value: float) -> Callable[[FloatArray, IntArray], Any]:
        def function(points: FloatArray, indices: IntArray) -> Any:
            buffer[...] = value
            return buffer

        return function

    both = Query(
        iteration=0,
        x=X,
        steps=STEPS,
        losses=np.array([0, 1]),
        constraints=np.array([0, 1]),
    )
    problem = Problem(Losses(filled(1.0), 9), Constraints(filled(-7.0), 9), 3)
    first, second = ask(problem, both, both)
    for reply in (first, second):
        np.testing.assert_array_equal(reply.losses, np.full((3, 2), 1.0))
        np.testing.assert_array_equal(reply.constraints, np.full((3, 2), -7.0))


# ------------------------------------------------------------------ what may come back

TABLE = np.arange(1.0, 7.0).reshape(3, 2)

ACCEPTED: dict[str, Callable[[Any], Any]] = {
    "lists": lambda table: table.tolist(),
    "tuples": lambda table: tuple(map(tuple, table)),
    "float32": lambda table: table.astype(np.float32),
    "float16": lambda table: table.astype(np.float16),
    "int": lambda table: table.astype(int),
    "uint8": lambda table: table.astype(np.uint8),
    "big-endian": lambda table: table.astype(">f8"),
    "Fortran order": np.asfortranarray,
    "strided": lambda table: np.repeat(np.repeat(table, 2, 0), 3, 1)[::2, ::3],
    "reversed in memory": lambda table: table[::-1, ::-1].copy()[::-1, ::-1],
    "read-only": lambda table: np.frombuffer(table.tobytes()).reshape(table.shape),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("form", ACCEPTED)
def test_values_are_taken_in_any_real_form(ask: Ask, part: str, form: str) -> None:
    def function(where: FloatArray, indices: IntArray) -> Any:
        shape = shape_of(part, where, indices)
        return ACCEPTED[form](np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape))

    # Ascending indices, so that the reply has the order in which values are returned.
    (reply,) = ask(problem_with(part, function), query(part, (2, 4)))
    got = getattr(reply, FIELDS[part])
    expected = TABLE if part in ("losses", "constraints") else TABLE.reshape(2, 3)
    np.testing.assert_array_equal(got, expected)
    assert got.dtype == np.float64
    assert got.flags.c_contiguous


@pytest.mark.parametrize("part", ["losses", "constraints"])
def test_bools_are_taken_as_zero_and_one(ask: Ask, part: str) -> None:
    problem = problem_with(part, lambda points, i: (points[:, :1] > 0.2) | (i > 3))
    (reply,) = ask(problem, query(part))
    assert getattr(reply, part).tolist() == [[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]]


@pytest.mark.parametrize("part", ["losses", "constraints"])
@pytest.mark.parametrize(
    "single", [7.0, 7, True + 6, np.float32(7), np.array(7.0), np.array([7.0]), [7.0]]
)
def test_one_value_may_come_as_a_bare_number(ask: Ask, part: str, single: Any) -> None:
    wanted: dict[str, Any] = {part: np.array([3])}
    problem = problem_with(part, lambda points, indices: single)
    (reply,) = ask(problem, Query.at(X, iteration=0, **wanted))
    assert getattr(reply, part).tolist() == [[7.0]]


# -------------------------------------------------------------- what may not come back

WHAT = {
    "losses": "Loss",
    "constraints": "Constraint",
    "gradient": "Gradient of loss",
    "jacobian": "Gradient of constraint",
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e400])
@pytest.mark.parametrize("place", [(0, 1), (1, 0)])
def test_a_value_that_is_not_finite_is_named_with_its_index(
    ask: Ask, part: str, bad: float, place: tuple[int, int]
) -> None:
    def function(where: FloatArray, indices: IntArray) -> Any:
        values = np.ones(shape_of(part, where, indices))
        values[place] = bad
        return values

    # The distinct indices are asked for in ascending order: 2, then 4; of values they
    # are the columns, of gradients the rows.
    index = (2, 4)[place[1] if part in ("losses", "constraints") else place[0]]
    match = (
        rf"^{WHAT[part]} {index} returned {bad} at iteration 12, x = .*\. "
        r"Values must be finite: clip the function, or give bounds"
    )
    with pytest.raises(EvaluationError, match=match):
        ask(problem_with(part, function), query(part))


NOT_NUMBERS: dict[str, Any] = {
    "None": lambda shape: None,
    "table of None": lambda shape: np.full(shape, None),
    "complex": lambda shape: np.full(shape, 1j),
    "text": lambda shape: np.full(shape, "1.0"),
    "bytes": lambda shape: b"1.0",
    "ragged": lambda shape: [[1.0, 2.0], [3.0]],
    "date": lambda shape: np.full(shape, np.datetime64("2022-07-17")),
    "integers beyond 64 bits": lambda shape: [[10**400] * shape[1]] * shape[0],
    "function": lambda shape: len,
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kind", NOT_NUMBERS)
def test_what_is_not_a_real_number_is_refused_with_the_shape_that_is_wanted(
    ask: Ask, part: str, kind: str
) -> None:
    def function(where: FloatArray, indices: IntArray) -> Any:
        return NOT_NUMBERS[kind](shape_of(part, where, indices))

    wanted = r"\(3, 2\)" if part in ("losses", "constraints") else r"\(2, 3\)"
    match = (
        rf"{WHAT[part]}.* \[2, 4\] returned .+ at iteration 12, x = .*\. "
        rf"Return an array of real numbers of shape {wanted}"
    )
    with pytest.raises(EvaluationError, match=match):
        ask(problem_with(part, function), query(part))


WRONG_SHAPES: dict[str, Callable[[tuple[int, int]], tuple[int, ...]]] = {
    "a number for many": lambda shape: (),
    "flat": lambda shape: (shape[0] * shape[1],),
    "a row missing": lambda shape: (shape[0] - 1, shape[1]),
    "a column too many": lambda shape: (shape[0], shape[1] + 1),
    "turned": lambda shape: (shape[1], shape[0]),
    "one dimension too many": lambda shape: (*shape, 1),
    "nothing": lambda shape: (0,),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("wrong", WRONG_SHAPES)
def test_another_shape_is_told_with_both(ask: Ask, part: str, wrong: str) -> None:
    returned: list[tuple[int, ...]] = []

    def function(where: FloatArray, indices: IntArray) -> Any:
        returned.append(WRONG_SHAPES[wrong](shape_of(part, where, indices)))
        return np.ones(returned[-1])

    with pytest.raises(EvaluationError) as caught:
        ask(problem_with(part, function), query(part))
    is_values = part in ("losses", "constraints")
    message = str(caught.value)
    assert message.startswith(WHAT[part])
    assert f"returned shape {returned[0]} at iteration 12" in message
    assert f"Expected {(3, 2) if is_values else (2, 3)}: return one" in message


class _OwnError(Exception):
    """An exception the library has never heard of."""


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "kind",
    [
        *(ValueError, TypeError, KeyError, IndexError, ZeroDivisionError),
        *(OverflowError, RecursionError, AttributeError, AssertionError, OSError),
        *(TimeoutError, MemoryError, StopIteration, DszogError, _OwnError),
    ],
)
def test_an_exception_comes_out_wrapped_with_the_query_and_its_cause(
    ask: Ask, part: str, kind: type[Exception]
) -> None:
    error = kind("bad x")

    def function(where: FloatArray, indices: IntArray) -> Any:
        raise error

    plural = WHAT[part] + ("es" if part in ("losses", "gradient") else "s")
    match = (
        rf"{plural} \[2, 4\] raised {kind.__name__}: .*bad x.* at "
        r"iteration 12, x = array\(\[ 0.1, -0.2,  ?0.3\]\). Call your function at this"
    )
    with pytest.raises(EvaluationError, match=match) as caught:
        ask(problem_with(part, function), query(part))
    assert caught.value.__cause__ is error
