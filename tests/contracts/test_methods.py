"""What every method promises, over all methods, settings and kinds of problem."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dszog import METHODS, DszogError
from dszog.query import Query, Reply, cost
from tests.contracts.helpers import (
    CELLS,
    PROBLEMS,
    Cell,
    advance,
    arrays_in,
    digest,
    dszog_variants,
    evaluate,
    rebuilt,
    trip,
    variants_of,
    walk,
)

every_cell = pytest.mark.parametrize("cell", CELLS, ids=str)

# The same cells, those of one setting together: for what is quickly looked at.
SETTINGS: dict[str, list[Cell]] = {}
for _cell in CELLS:
    SETTINGS.setdefault(f"{_cell.method_name}-{_cell.variant}", []).append(_cell)
every_setting = pytest.mark.parametrize("cells", SETTINGS.values(), ids=list(SETTINGS))

# ----------------------------------------------------------------------- the matrix


def test_every_method_meets_every_problem() -> None:
    per_method = Counter(cell.method_name for cell in CELLS)

    assert set(per_method) == set(METHODS)
    assert per_method["dszog"] == 19 * 11
    for name, n_cells in per_method.items():
        assert n_cells == len(variants_of(name)) * len(PROBLEMS)
    assert len({str(cell) for cell in CELLS}) == len(CELLS)
    assert all(len(cells) == len(PROBLEMS) for cells in SETTINGS.values())


def test_every_two_settings_of_dszog_meet_in_some_cell() -> None:
    offered: dict[str, list[object]] = {
        "distribution": ["sparse", "dense", "uniform"],
        "directions": ["gaussian", "sphere", "orthogonal", "coordinate"],
        "antithetic": [False, True],
        "adaptive": [False, True],
    }
    variants = list(dszog_variants().values())

    for one, other in combinations(offered, 2):
        met = {(getattr(v, one), getattr(v, other)) for v in variants}
        assert met == {(a, b) for a in offered[one] for b in offered[other]}


# ---------------------------------------------------------------------------- purity


@every_cell
def test_asking_twice_gives_the_same_queries(cell: Cell) -> None:
    for state, queries in zip(trip(cell).states, trip(cell).queries, strict=True):
        assert digest(cell.method.ask(state)) == digest(queries)


@every_cell
def test_asking_and_telling_change_nothing_that_was_passed(cell: Cell) -> None:
    problem = cell.problem()
    state = cell.start(problem)

    for _ in range(3):
        before = digest(state)
        queries = cell.method.ask(state)
        replies = evaluate(problem, queries)
        told = digest([queries, replies])
        moved, _ = cell.method.tell(state, queries, replies)

        assert digest(state) == before
        assert digest([queries, replies]) == told
        assert digest(moved) != before
        state = moved


@every_cell
def test_a_state_keeps_nothing_of_the_arrays_it_was_given(cell: Cell) -> None:
    problem = cell.problem()
    x0 = np.array(problem.x0)
    state = cell.method.init(x0, problem.size, 0)
    for _ in range(3):
        queries = cell.method.ask(state)
        replies = evaluate(problem, queries)
        moved, _ = cell.method.tell(state, queries, replies)
        before = digest([state, moved])
        for _, array in [("x0", x0), *(pair for r in replies for pair in arrays_in(r))]:
            array[...] = 77.0

        assert digest([state, moved]) == before
        state = moved


@every_setting
def test_every_array_of_a_state_is_read_only(cells: list[Cell]) -> None:
    for cell in cells:
        for state in trip(cell).states:
            arrays = dict(arrays_in(state))

            assert "state.x" in arrays
            assert [
                path for path, array in arrays.items() if array.flags.writeable
            ] == []


@every_cell
def test_the_global_generator_of_numpy_is_untouched(cell: Cell) -> None:
    problem = cell.problem()
    before = digest(np.random.get_state())  # noqa: NPY002 - the very thing to watch
    advance(cell.method, problem, cell.start(problem), iterations=2)

    assert digest(np.random.get_state()) == before  # noqa: NPY002


# ----------------------------------------------------------------------- determinism


@every_cell
def test_the_same_seed_gives_the_same_bits(cell: Cell) -> None:
    problem = cell.problem()
    again = walk(cell.method, problem, cell.start(problem, seed=0), iterations=6)

    assert digest(again) == digest(trip(cell).states)


def _draws_something(cell: Cell) -> bool:
    # One loss, one constraint and the one coordinate vector: nothing is left to chance.
    coordinates = getattr(cell.method, "directions", "") == "coordinate"
    return not (cell.problem_name == "one of everything" and coordinates)


every_cell_with_draws = pytest.mark.parametrize(
    "cell", [cell for cell in CELLS if _draws_something(cell)], ids=str
)


def _drawn(queries: Sequence[Query]) -> object:
    return digest([(query.steps, query.losses, query.constraints) for query in queries])


@every_cell_with_draws
def test_another_seed_asks_other_questions(cell: Cell) -> None:
    # Where a single sign is drawn per iteration two seeds may agree; eleven do not.
    for seed in range(1, 11):
        problem = cell.problem()
        states = walk(cell.method, problem, cell.start(problem, seed), iterations=3)
        asked = [_drawn(cell.method.ask(state)) for state in states]
        if asked != [_drawn(queries) for queries in trip(cell).queries[:4]]:
            return

    pytest.fail("eleven seeds asked the same questions")


@every_cell_with_draws
def test_another_iteration_asks_other_questions(cell: Cell) -> None:
    # From the same place, so that nothing but the iteration can make a difference.
    state = trip(cell).states[2]
    asked = [
        _drawn(cell.method.ask(replace(state, iteration=iteration)))
        for iteration in range(2, 12)
    ]

    assert any(questions != asked[0] for questions in asked)


@every_cell
@pytest.mark.parametrize("passed_through", [copy.deepcopy, rebuilt])
def test_a_run_that_is_cut_in_two_is_the_same_run(
    cell: Cell, passed_through: Callable[[Any], Any]
) -> None:
    states = trip(cell).states
    resumed = advance(cell.method, cell.problem(), passed_through(states[2]), 4)

    assert digest(resumed) == digest(states[6])


@every_setting
def test_each_iteration_counts_one(cells: list[Cell]) -> None:
    for cell in cells:
        for i, (state, queries) in enumerate(
            zip(trip(cell).states, trip(cell).queries, strict=True)
        ):
            assert state.iteration == i
            assert {query.iteration for query in queries} == {i}


# --------------------------------------------------------------------- what is asked


@every_cell
def test_every_point_asked_about_and_every_iterate_is_within_the_bounds(
    cell: Cell,
) -> None:
    size = trip(cell).problem.size
    points = [q.points(size) for queries in trip(cell).queries for q in queries]
    iterates = [state.x for state in trip(cell).states]

    for visited in np.concatenate([*points, iterates, *trip(cell).tally.points]):
        assert (visited >= size.lower).all()
        assert (visited <= size.upper).all()


@every_setting
def test_a_start_outside_of_the_bounds_is_moved_into_them(
    cells: list[Cell],
) -> None:
    for cell in cells:
        size = trip(cell).problem.size
        far = np.full(size.dim, 1e3)
        moved = cell.method.init(far, size, 0).x

        np.testing.assert_array_equal(moved, np.minimum(far, size.upper))


@every_setting
def test_every_index_asked_for_exists(cells: list[Cell]) -> None:
    for cell in cells:
        size = trip(cell).problem.size

        for query in (query for queries in trip(cell).queries for query in queries):
            assert query.losses.dtype == query.constraints.dtype == np.int64
            assert set(query.losses.tolist()) <= set(range(size.n_losses))
            assert set(query.constraints.tolist()) <= set(range(size.n_constraints))


@every_setting
def test_gradients_are_asked_for_exactly_where_there_are_some(
    cells: list[Cell],
) -> None:
    for cell in cells:
        size = trip(cell).problem.size
        queries = [query for asked in trip(cell).queries for query in asked]
        wanting = [query for query in queries if query.want == "gradients"]

        assert any(len(query.losses) for query in wanting) == size.has_gradient
        assert any(len(query.constraints) for query in wanting) == size.has_jacobian


@every_setting
def test_the_cost_of_the_queries_is_what_the_black_box_counts(
    cells: list[Cell],
) -> None:
    for cell in cells:
        problem, tally = cell.counted()

        for queries in trip(cell).queries:
            before = (tally.n_losses, tally.n_constraints)
            evaluate(problem, queries)
            counted = (tally.n_losses - before[0], tally.n_constraints - before[1])

            charged = cost(queries, problem.size)
            assert counted == (charged.losses, charged.constraints)
            assert sum(counted) == charged.total > 0


# ------------------------------------------------------------------- what is refused

HERE = 3  # the iteration at which a cell is told what does not fit
SHAPE = r"must have shape \(\d+, \d+\), got \(\d+, \d+\). One row per point"


def _told(cell: Cell, replies: tuple[Reply, ...]) -> None:
    here = trip(cell)
    cell.method.tell(here.states[HERE], here.queries[HERE], replies)


def _changed(cell: Cell, change: Callable[[Any], Any]) -> tuple[Reply, ...]:
    """Return the replies with the first array that holds something changed."""
    replies = trip(cell).replies[HERE]
    for i, reply in enumerate(replies):
        for name in ("losses", "constraints"):
            if getattr(reply, name).size:
                changed = replace(reply, **{name: change(getattr(reply, name).copy())})
                return (*replies[:i], changed, *replies[i + 1 :])
    raise AssertionError("no reply holds anything")


def _with_last(value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[-1, -1] = value
        return array

    return change


@every_setting
def test_tell_takes_the_replies_to_its_queries(cells: list[Cell]) -> None:
    for cell in cells:
        _told(cell, trip(cell).replies[HERE])
        _told(cell, _changed(cell, lambda array: array))


@every_setting
def test_tell_refuses_another_number_of_replies_than_queries(
    cells: list[Cell],
) -> None:
    for cell in cells:
        replies = trip(cell).replies[HERE]
        n = len(replies)

        for wrong in (replies[:-1], (*replies, replies[0]), ()):
            match = (
                rf"{n} queries need {n} replies, got {len(wrong)}. Pass the replies in"
            )
            with pytest.raises(DszogError, match=match):
                _told(cell, wrong)


@pytest.mark.parametrize("method_name", METHODS)
def test_tell_refuses_a_part_of_its_queries_with_the_replies_to_them(
    method_name: str,
) -> None:
    cell = next(cell for cell in CELLS if cell.method_name == method_name)
    here = trip(cell)

    with pytest.raises(DszogError, match="quer"):
        cell.method.tell(
            here.states[HERE], here.queries[HERE][:-1], here.replies[HERE][:-1]
        )


@every_setting
def test_tell_refuses_replies_of_another_shape(cells: list[Cell]) -> None:
    for cell in cells:
        for change in (
            lambda array: array[:, :-1],
            lambda array: np.hstack([array, array[:, :1]]),
            lambda array: array[:-1],
            lambda array: np.vstack([array, array[:1]]),
        ):
            with pytest.raises(DszogError, match=SHAPE):
                _told(cell, _changed(cell, change))


@every_setting
def test_tell_refuses_values_that_are_not_finite(cells: list[Cell]) -> None:
    for cell in cells:
        for bad in (np.nan, np.inf, -np.inf):
            with pytest.raises(
                DszogError, match=r"not finite. Tell finite values only"
            ):
                _told(cell, _changed(cell, _with_last(bad)))


@every_setting
def test_tell_refuses_answers_to_the_questions_of_another_iteration(
    cells: list[Cell],
) -> None:
    for cell in cells:
        here = trip(cell)

        for other in (HERE - 1, HERE + 1):
            match = (
                rf"the state is at iteration {other}, the query was asked at {HERE}. "
                "Tell the answers to ask"
            )
            with pytest.raises(DszogError, match=match):
                cell.method.tell(
                    here.states[other], here.queries[HERE], here.replies[HERE]
                )


WHITE_CELLS = [cell for cell in CELLS if cell.problem_name == "white box"]


@pytest.mark.parametrize("cell", WHITE_CELLS, ids=str)
@pytest.mark.parametrize("name", ["loss_gradients", "jacobian"])
def test_tell_refuses_gradients_that_do_not_fit(cell: Cell, name: str) -> None:
    replies = trip(cell).replies[HERE]
    place = next(i for i, reply in enumerate(replies) if getattr(reply, name).size)
    right = getattr(replies[place], name)

    def told(array: Any) -> None:
        changed = replace(replies[place], **{name: array})
        _told(cell, (*replies[:place], changed, *replies[place + 1 :]))

    for wrong in (right[:, :-1], right[:-1], np.vstack([right, right[:1]])):
        with pytest.raises(DszogError, match=rf"{name} must have shape .*, got .*One"):
            told(wrong)
    with pytest.raises(DszogError, match=rf"{name} holds a value that is not finite"):
        told(np.where(np.arange(right.size).reshape(right.shape) == 0, np.nan, right))


# --------------------------------------------------------------------- what is told


@every_setting
def test_the_weights_are_a_part_of_a_distribution_over_the_constraints(
    cells: list[Cell],
) -> None:
    for cell in cells:
        for state in trip(cell).states:
            indices, weights = cell.method.weights(state)

            assert len(indices) == len(weights)
            assert (np.diff(indices) > 0).all()
            assert set(indices.tolist()) <= set(range(state.size.n_constraints))
            assert (weights >= 0.0).all()
            assert weights.sum() <= 1.0 + 1e-12


@every_setting
def test_a_plan_settles_what_was_open_and_leaves_the_rest(
    cells: list[Cell],
) -> None:
    for cell in cells:
        size = trip(cell).problem.size
        planned: Any = cell.method.planned(size, 10, 10_000)

        open_before = {"horizon", "horizon_queries", "start", "step_decay"}
        for item in fields(planned):
            if item.name not in open_before:
                assert getattr(planned, item.name) == getattr(cell.method, item.name)
        assert planned.planned(size, 99, 99_000) == planned
