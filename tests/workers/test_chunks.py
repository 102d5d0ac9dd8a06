"""Cutting queries into pieces: same bits, same cost, no call twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dszog import Constraints, Losses, Problem, Query
from dszog.contract import Reply, cost
from dszog.contract.arrays import FloatArray
from dszog.workers import Serial
from dszog.workers._chunks import LARGE, Assembly, cut, needs_cut, whole_limits
from dszog.workers._worker import pack_answer, pack_parts, unpack_answer, unpack_parts
from dszog.workers.base import answer
from tests.workers.helpers import PROBLEMS, limits_at

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
def test_pieces_give_the_bits_of_the_serial_evaluator_at_its_cost(name: str) -> None:
    problem = PROBLEMS[name]()
    queries = queries_of(problem)
    expected = Serial(problem)(queries)
    for reply, wanted in zip(assembled(problem, queries), expected, strict=True):
        for table in TABLES:
            assert getattr(reply, table).tobytes() == getattr(wanted, table).tobytes()
            assert getattr(reply, table).shape == getattr(wanted, table).shape
    costs = [cost(one.parts, problem.size) for one in cut(problem, queries)]
    whole = cost(queries, problem.size)
    assert sum(one.losses + one.constraints for one in costs) == whole.total
    assert len(costs) > 2


def test_a_failure_travels_with_its_message() -> None:
    problem = Problem(np.sum, Constraints.from_function(lambda x, j: 1 / 0, 30), 3)
    queries = queries_of(problem)[:1]
    (wanted,), (found,) = Serial(problem)(queries), assembled(problem, queries)
    assert found.failures[0].message == wanted.failures[0].message


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
