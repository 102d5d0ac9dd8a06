"""Cutting queries into pieces: same bits, same cost, no call twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from dszog import Constraints, Losses, Problem, Query
from dszog.contract import Reply, cost
from dszog.contract.arrays import FloatArray
from dszog.workers import Serial
from dszog.workers._chunks import (
    LARGE,
    MANY,
    Assembly,
    cut,
    needs_cut,
    whole_limits,
)
from dszog.workers._messages import (
    pack_answer,
    pack_parts,
    unpack_answer,
    unpack_parts,
)
from dszog.workers._supervisor import _bundle_size
from dszog.workers.base import answer
from tests.workers.helpers import PROBLEMS, limit, limits_at

TABLES = ("losses", "constraints", "loss_gradients", "jacobian")


def queries_of(problem: Problem) -> list[Query]:
    """Return queries with repeated indices and, twice, the same point."""
    size = problem.size
    steps = np.cos(np.arange(4.0 * problem.dim)).reshape(4, problem.dim)
    around = Query(
        iteration=3,
        x=np.full(problem.dim, 0.2),
        steps=steps,
        losses=np.arange(size.n_losses)[::-3],
        constraints=np.arange(size.n_constraints)[::-2].repeat(2),
    )
    at = Query.at(
        around.x, iteration=3, constraints=np.arange(size.n_constraints)[1::4]
    )
    return [around, at, Query.at(around.x, iteration=3)]


def assembled(problem: Problem, queries: list[Query]) -> tuple[Reply, ...]:
    """Answer each piece by itself, through bytes, the last one first."""
    assembly = Assembly(queries)
    for piece in reversed(cut(problem, queries)):
        parts = unpack_parts(pack_parts(piece.parts))
        message = pack_answer(answer(problem, parts), seconds=0.25)
        replies, seconds = unpack_answer(message)
        assert seconds == 0.25
        assembly.put(piece, replies)
    return assembly.replies()


@pytest.mark.parametrize("name", PROBLEMS)
def test_pieces_give_the_bits_of_the_serial_evaluator(name: str) -> None:
    problem = PROBLEMS[name]()
    queries = queries_of(problem)
    expected = Serial(problem)(queries)
    for reply, wanted in zip(assembled(problem, queries), expected, strict=True):
        for table in TABLES:
            assert getattr(reply, table).tobytes() == getattr(wanted, table).tobytes()
            assert getattr(reply, table).shape == getattr(wanted, table).shape


@pytest.mark.parametrize("name", PROBLEMS)
def test_pieces_cost_what_the_queries_cost(name: str) -> None:
    problem = PROBLEMS[name]()
    queries = queries_of(problem)
    pieces = cut(problem, queries)
    costs = [cost(piece.parts, problem.size) for piece in pieces]

    whole = cost(queries, problem.size)
    assert sum(one.losses + one.constraints for one in costs) == whole.total
    assert len(pieces) > 2


def test_a_call_of_a_simulator_is_made_in_one_piece() -> None:
    problem = PROBLEMS["simulator"]()
    calls = Counter(
        (row.tobytes(), int(call))
        for piece in cut(problem, queries_of(problem))
        for row, call in {
            (row.tobytes(), call): (row, call)
            for part in piece.parts
            for row in part.points(problem.size)
            for call in {*part.losses.tolist(), *(part.constraints // 3).tolist()}
        }.values()
    )
    assert calls.total() == len(calls) > 20


def test_a_vectorised_function_is_called_as_it_would_be_without_workers() -> None:
    problem = PROBLEMS["vectorised"]()
    queries = queries_of(problem)
    shapes = [
        (len(part.steps) + 1, len(part.losses), len(part.constraints))
        for piece in cut(problem, queries)
        for part in piece.parts
    ]
    assert shapes == [(5, 7, 0), (5, 0, 10), (1, 0, 5)]
    assert not needs_cut(whole_limits(problem), queries)


def test_a_function_of_one_point_and_index_is_cut_into_some_dozens_of_pieces() -> None:
    problem = Problem(np.sum, Constraints.from_function(limit, 30), 3)
    steps = np.ones((99, 3))
    query = Query(iteration=0, x=np.zeros(3), steps=steps, constraints=np.arange(30))
    pieces = cut(problem, [query])
    assert MANY / 2 < len(pieces) <= 2 * MANY

    one_by_one = Constraints.from_function(limit, 30).in_pieces(1)
    pieces = cut(Problem(np.sum, one_by_one, 3), [query])
    assert len(pieces) == 3000


@pytest.mark.parametrize("size", [1, 3, 7, 50, 1000])
def test_every_evaluator_cuts_a_vectorised_function_as_it_is_told(size: int) -> None:
    seen: list[tuple[int, int]] = []

    def values(points: FloatArray, indices: Any) -> FloatArray:
        seen.append((len(points), len(indices)))
        return limits_at(points, indices)

    problem = Problem(np.sum, Constraints(values, 20).in_pieces(size), 3)
    query = Query(
        iteration=0, x=np.zeros(3), steps=np.ones((6, 3)), constraints=np.arange(20)
    )
    Serial(problem)([query])
    assert sum(a * b for a, b in seen) == 140
    assert max(a * b for a, b in seen) == min(140, max(size // 20 * 20, min(size, 20)))
    serial = seen.copy()
    seen.clear()
    assembled(problem, [query])
    assert sorted(seen) == sorted(serial)


def test_a_very_large_table_is_cut_for_everyone() -> None:
    n = LARGE // 2 + 1
    problem = Problem(Losses(lambda p, i: p[:, :1] + i, n), None, 1, bounds=[(-9, 9)])
    one = np.ones((1, 1))
    query = Query(iteration=0, x=np.zeros(1), steps=one, losses=np.arange(n))
    assert needs_cut(whole_limits(problem), [query])
    assert [len(piece.parts[0].steps) + 1 for piece in cut(problem, [query])] == [1, 1]
    (reply,) = Serial(problem)([query])
    np.testing.assert_array_equal(reply.losses[1], np.arange(n) + 1.0)


def test_gradients_and_values_at_a_point_are_in_one_piece_with_its_calls() -> None:
    from scipy.optimize import NonlinearConstraint

    calls = []

    def vector(x: FloatArray) -> FloatArray:
        calls.append(x.tobytes())
        return x**2

    constraint = NonlinearConstraint(vector, -1.0, 1.0, jac=lambda x: np.diag(2 * x))
    problem = Problem(np.sum, constraint, 3, x0=np.full(3, 0.3))
    calls.clear()
    around, at, _ = queries_of(problem)
    white = Query.at(at.x, iteration=3, constraints=at.constraints, want="gradients")
    queries = [around, white, at]
    replies = assembled(problem, queries)
    assert Counter(calls).total() == len(set(calls)) == 5
    expected = Serial(problem)(queries)
    np.testing.assert_array_equal(replies[1].jacobian, expected[1].jacobian)
    np.testing.assert_array_equal(replies[0].constraints, expected[0].constraints)


def test_the_first_failure_of_a_query_is_the_one_that_serial_names() -> None:
    def bad(x: FloatArray, j: int) -> float:
        if j in (7, 9):
            raise ZeroDivisionError(f"at {j}")
        return 1.0

    problem = Problem(np.sum, Constraints.from_function(bad, 30), 3)
    queries = queries_of(problem)[:1]
    wanted = [failure.message for failure in Serial(problem)(queries)[0].failures]
    found = [failure.message for failure in assembled(problem, queries)[0].failures]
    assert found == wanted
    assert "Constraint 7 raised ZeroDivisionError: at 7" in found[0]


def test_a_part_travels_to_the_bit() -> None:
    rows = np.array([[0.1, -0.0, 5e-324], [1.7976931348623157e308, np.pi, 1.0]])
    part = Query.at_points(rows, iteration=7, losses=np.array([2**62]))
    (back,) = unpack_parts(pack_parts([part]))
    assert back.points(PROBLEMS["vectorised"]().size).tobytes() == rows.tobytes()
    assert back.losses.tolist() == [2**62]
    assert (back.iteration, back.want, len(back.constraints)) == (7, "values", 0)


@pytest.mark.parametrize(
    ("n_pieces", "n_slots", "seconds", "size"),
    [
        (20, 2, None, 1),  # not known yet
        (20, 2, 0.2, 1),  # slow: alone
        (20, 2, 0.01, 10),  # quick: one message for each worker
        (1000, 2, 0.01, 20),  # quick but many: messages of a fifth of a second
        (3, 8, 0.01, 1),
        (20, 2, 0.0, 10),
    ],
)
def test_messages_are_few_and_workers_have_as_many_each(
    n_pieces: int, n_slots: int, seconds: float | None, size: int
) -> None:
    assert _bundle_size(n_pieces, n_slots, seconds, 0.05) == size
