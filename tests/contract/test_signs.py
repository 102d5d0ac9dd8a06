"""Directions by name: the same signs for everybody, and never all of them at once."""

from __future__ import annotations

import pickle
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dszog
from dszog.contract import Query, Signs
from dszog.contract.signs import philox
from tests.contracts.helpers import Kind, make_problem

FIRST = np.array([0]), np.ones(1)  # all weight on the first constraint
WORDS = [  # counter, key and words that the authors of Philox 4x32-10 publish
    ((0, 0, 0, 0), 0, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ((2**32 - 1,) * 4, 2**64 - 1, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        0x299F31D0A4093822,
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), WORDS)
def test_the_generator_is_the_published_one(
    counter: tuple[int, ...], key: int, words: str
) -> None:
    found = philox((np.array([counter[0]], np.uint64), *counter[1:]), key)
    assert " ".join(f"{int(word[0]):08x}" for word in found) == words


@given(
    seed=st.integers(0, 2**64 - 1),
    iteration=st.integers(0, 2**62),
    dim=st.integers(1, 400),
    rows=st.lists(st.integers(-9, 8), min_size=1, max_size=11),
)
def test_a_move_is_the_sum_of_its_directions(
    seed: int, iteration: int, dim: int, rows: list[int]
) -> None:
    signs = Signs(seed, iteration, tuple(rows), dim, 1.0)
    amounts = np.linspace(0.5, 1.5, len(rows))
    dense = signs.dense()
    assert set(np.unique(dense)) <= {-1.0, 1.0}
    moved = signs.along(np.zeros(dim), amounts.tolist())
    np.testing.assert_allclose(moved, amounts @ dense, rtol=0, atol=1e-13)
    opposite = Signs(seed, iteration, tuple(~k for k in rows), dim, 1.0)
    np.testing.assert_array_equal(opposite.dense(), -dense)


def test_a_part_of_a_direction_does_not_depend_on_how_long_it_is() -> None:
    long = Signs(3, 4, (0, 1), 70_000, 1.0).dense()
    np.testing.assert_array_equal(Signs(3, 4, (0, 1), 300, 1.0).dense(), long[:, :300])
    assert abs(long.mean()) < 5 / np.sqrt(140_000)
    assert abs((long[0] * long[1]).mean()) < 5 / np.sqrt(70_000)


def test_a_query_with_named_steps_is_small_and_comes_back_from_a_worker() -> None:
    query = Query(
        iteration=2,
        x=np.zeros(5),
        steps=Signs(1, 2, (0, 1, 2), 5, 0.1),
        losses=np.array([0]),
    )
    again = pickle.loads(pickle.dumps(query))
    size = make_problem(Kind(dim=5))[0].size
    np.testing.assert_array_equal(again.points(size), query.points(size))
    kept = query._replace(steps=query.steps[np.array([True, False, True])])
    np.testing.assert_array_equal(kept.points(size), query.points(size)[[0, 1, 3]])


def test_many_variables_are_held_a_few_times_only() -> None:
    dim = 300_000
    losses = dszog.Losses(lambda points, i: points[:, i] ** 2, 80)
    limits = dszog.Constraints(lambda points, j: points[:, j] - 1.0, 90)
    more: Any = {"max_iterations": 2, "options": {"directions": "rademacher"}}
    dszog.minimize(losses, np.ones(10_000), limits, **more)
    tracemalloc.start()
    result = dszog.minimize(losses, np.ones(dim), limits, **more)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert "random signs" in result.message
    assert peak / (8 * dim) < 14


def test_named_steps_keep_the_bounds_and_are_not_cut_short() -> None:
    problem, _ = make_problem(Kind(bounded=True))
    method = dszog.DSZOG(directions="rademacher")
    state = method.init(np.array([-1.0, 0.5, 0.1]), problem.size, 0, weights=FIRST)
    around = method.ask(state)[0]
    points = around.points(problem.size)
    np.testing.assert_allclose(points[1:] - points[0], around.steps.dense(), atol=1e-15)
    assert (np.abs(points[1:] - points[0]) > 0.9e-4).all()


def test_a_normalised_step_has_the_length_that_is_set_whatever_the_slope() -> None:
    def moved(factor: float, **settings: object) -> float:
        losses = dszog.Losses(lambda points, i: factor * points[:, i] ** 2, 80)
        limits = dszog.Constraints(lambda points, j: points[:, j] - 9.0, 90)
        method = dszog.DSZOG(step_size=0.01, step_decay="constant", **settings)  # type: ignore[arg-type]
        result = dszog.minimize(
            losses, np.ones(200), limits, method=method, max_iterations=1, seed=0
        )
        return float(np.sqrt(np.square(result.x - 1.0).mean()))

    for directions, rel in (("rademacher", 0.2), ("orthogonal", 1e-6)):
        lengths = [moved(f, directions=directions, normalised=True) for f in (1, 1e6)]
        np.testing.assert_allclose(lengths, 0.01, rtol=rel)
    assert moved(100.0) > 5 * moved(1.0)


class Tensor:
    """What a tensor that requires gradients does when NumPy reads it."""

    detach = cpu = None

    def __array__(self, *given: object, **named: object) -> object:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad.")


def test_a_tensor_is_refused_with_what_to_write_instead() -> None:
    limits = dszog.Constraints(lambda points, j: points[:, j], 2)
    with pytest.raises(TypeError, match=r"Pass x0.detach\(\).cpu\(\).numpy\(\)"):
        dszog.minimize(np.sum, Tensor(), limits)
    wrong = dszog.Constraints(lambda points, j: Tensor(), 2)
    with pytest.raises(dszog.EvaluationError, match="returned a tensor that has grad"):
        dszog.minimize(np.sum, np.zeros(2), wrong)
