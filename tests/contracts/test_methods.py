"""What every method promises, over all methods, settings and kinds of problem."""

from __future__ import annotations

import copy
import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from dszog import METHODS, DszogError, InputError, InputTypeError
from dszog.contract import NO_INDICES, ProblemSize, Query, Reply, cost
from dszog.contract.arrays import FloatArray
from dszog.maths.subproblems import Box
from dszog.methods import FeasibleMethod
from dszog.methods.linearised import LinearisedMethod, LinearisedState
from tests.contracts.helpers import (
    CELLS,
    FEASIBLE_METHODS,
    LOWER,
    PROBLEMS,
    UPPER,
    Cell,
    advance,
    arrays_in,
    box,
    digest,
    dszog_variants,
    evaluate,
    feasible_variants,
    is_for,
    make_problem,
    rebuilt,
    trip,
    walk,
)

# Cells of one setting are looked at together: there are too many for a test of each.
SETTINGS: dict[str, list[Cell]] = {}
for _cell in CELLS:
    SETTINGS.setdefault(f"{_cell.method_name}-{_cell.variant}", []).append(_cell)


def each_of(settings: dict[str, list[Cell]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("cells", settings.values(), ids=settings)


def those(is_wanted: Callable[[Cell], bool]) -> pytest.MarkDecorator:
    """Have a test look at the cells that are wanted, and at settings that have some."""
    chosen = {name: list(filter(is_wanted, cells)) for name, cells in SETTINGS.items()}
    return each_of({name: cells for name, cells in chosen.items() if cells})


every_setting = each_of(SETTINGS)


# ----------------------------------------------------------------------- the matrix
def test_every_method_meets_every_problem() -> None:
    per_method = Counter(cell.method_name for cell in CELLS)
    assert set(per_method) == set(METHODS)
    assert per_method["dszog"] == 23 * 11 + 7  # slopes: only of black boxes
    assert len({str(cell) for cell in CELLS}) == len(CELLS)
    for name, kind in METHODS.items():
        met = {cell.problem_name for cell in SETTINGS[f"{name}-defaults"]}
        assert met == {p for p in PROBLEMS if is_for(kind, PROBLEMS[p])}
    assert len(FEASIBLE_METHODS) == 8
    for name in FEASIBLE_METHODS:
        for variant in feasible_variants(name):
            assert f"{name}-{variant}" in SETTINGS


def test_every_two_settings_of_dszog_meet_in_some_cell() -> None:
    offered: dict[str, list[object]] = {
        "distribution": ["sparse", "dense", "uniform"],
        "directions": ["gaussian", "sphere", "orthogonal", "coordinate", "rademacher"],
        "antithetic": [False, True],
        "adaptive": [False, True],
    }
    variants = list(dszog_variants().values())
    for one, other in combinations(offered, 2):
        met = {(getattr(v, one), getattr(v, other)) for v in variants}
        assert met == {(a, b) for a in offered[one] for b in offered[other]}


# -------------------------------------------------------------------------- settings
@pytest.mark.parametrize("kind", METHODS.values(), ids=METHODS)
def test_settings_are_known_ones_given_by_name_that_help_shows(kind: Any) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'step_sise'"):
        kind(step_sise=0.1)
    with pytest.raises(TypeError, match="positional argument"):
        kind(0.1)
    shown = list(inspect.signature(kind).parameters)
    assert shown == [field.name for field in fields(kind)]


@every_setting
def test_swapped_arguments_of_init_are_told_apart(cells: list[Cell]) -> None:
    method: Any = cells[0].method
    size = cells[0].problem().size
    x0 = np.zeros(size.dim)
    order = r"Call method\.init\(x0, problem\.size, seed\)"
    for given in [(size, x0, 0), (x0, 0, size), (0, x0, size)]:
        with pytest.raises(InputTypeError, match=rf"`size` must be the size.*{order}"):
            method.init(*given)
    with pytest.raises(InputTypeError, match="`seed` must be"):
        method.init(0, size, x0)


# ---------------------------------------------------------------------------- purity
@every_setting
def test_asking_twice_gives_the_same_queries(cells: list[Cell]) -> None:
    for cell in cells:
        for state, queries in zip(trip(cell).states, trip(cell).queries, strict=True):
            assert digest(cell.method.ask(state)) == digest(queries)


@every_setting
def test_nothing_that_was_passed_is_changed_and_no_array_of_it_kept(
    cells: list[Cell],
) -> None:
    for cell in cells:
        problem = cell.problem()
        x0 = np.array(problem.x0)
        state = cell.method.init(x0, problem.size, 0)
        for _ in range(3):
            before = digest(state)
            queries = cell.method.ask(state)
            replies = evaluate(problem, queries)
            told = digest([queries, replies])
            moved, _ = cell.method.tell(state, queries, replies)
            after = digest(moved)
            assert digest(state) == before != after
            assert digest([queries, replies]) == told
            for array in (x0, *(one for r in replies for _, one in arrays_in(r))):
                array[...] = 77.0
            assert digest([state, moved]) == [before, after]
            state = moved


@every_setting
def test_every_array_of_a_state_is_read_only(cells: list[Cell]) -> None:
    for cell in cells:
        for state in trip(cell).states:
            arrays = dict(arrays_in(state))
            assert "state.x" in arrays
            writeable = [name for name, a in arrays.items() if a.flags.writeable]
            assert writeable == []


# ----------------------------------------------------------------------- determinism
@every_setting
def test_the_same_seed_gives_the_same_bits_and_leaves_numpys_generator_alone(
    cells: list[Cell],
) -> None:
    before = digest(np.random.get_state())  # noqa: NPY002 - the very thing to watch
    for cell in cells:
        problem = cell.problem()
        again = walk(cell.method, problem, cell.start(problem, seed=0), iterations=6)
        assert digest(again) == digest(trip(cell).states)
    assert digest(np.random.get_state()) == before  # noqa: NPY002


def _draws_something(cell: Cell) -> bool:
    # One loss, one constraint and the one coordinate vector: nothing is left to chance.
    if not isinstance(cell.method, (FeasibleMethod, LinearisedMethod)):
        coordinates = getattr(cell.method, "directions", "") == "coordinate"
        return not (cell.problem_name == "one of everything" and coordinates)
    method = _stepper(cell.method)
    exact = method.needs_gradient or method.estimator in ("coordinate", "auto")
    return PROBLEMS[cell.problem_name].n > 1 or not exact


def _stepper(method: Any) -> FeasibleMethod:
    """Return the method that makes the steps."""
    found: FeasibleMethod = getattr(method, "method", method)
    return found


def _drawn(queries: Sequence[Query]) -> object:
    return digest([(query.steps, query.losses, query.constraints) for query in queries])


@those(_draws_something)
def test_another_seed_asks_other_questions(cells: list[Cell]) -> None:
    # Where a single sign is drawn per iteration two seeds may agree; eleven do not.
    for cell in cells:
        n = 3 if cell.method_name == "dszog" else 6  # others may have looks before
        own = [_drawn(queries) for queries in trip(cell).queries[: n + 1]]
        assert any(_asked(cell, seed, n) != own for seed in range(1, 11)), str(cell)


def _asked(cell: Cell, seed: int, n: int) -> list[object]:
    problem = cell.problem()
    states = walk(cell.method, problem, cell.start(problem, seed), iterations=n)
    return [_drawn(cell.method.ask(state)) for state in states]


# The sampled SQP draws by a permutation, in which its state knows the place.
@those(lambda c: _draws_something(c) and c.method_name != "sampled_sqp")
def test_another_iteration_asks_other_questions(cells: list[Cell]) -> None:
    # From the same place, so that nothing but the iteration can make a difference.
    for cell in cells:
        state = trip(cell).states[2]
        asked = [
            _drawn(cell.method.ask(_at_iteration(state, iteration)))
            for iteration in range(2, 12)
        ]
        assert any(questions != asked[0] for questions in asked), str(cell)


def _at_iteration(state: Any, iteration: int) -> Any:
    if not isinstance(state, LinearisedState):
        return replace(state, iteration=iteration)
    inner = replace(state.inner, iteration=iteration)
    return replace(state, iteration=iteration, inner=inner, phase="estimate")


@every_setting
@pytest.mark.parametrize("passed_through", [copy.deepcopy, rebuilt])
def test_a_run_that_is_cut_in_two_is_the_same_run(
    cells: list[Cell], passed_through: Callable[[Any], Any]
) -> None:
    for cell in cells:
        states = trip(cell).states
        resumed = advance(cell.method, cell.problem(), passed_through(states[2]), 4)
        assert digest(resumed) == digest(states[6])


# --------------------------------------------------------------------- what is asked
@every_setting
def test_every_point_asked_about_is_within_the_bounds(cells: list[Cell]) -> None:
    for cell in cells:
        size = trip(cell).problem.size
        points = [q.points(size) for queries in trip(cell).queries for q in queries]
        iterates = [state.x for state in trip(cell).states]
        visited = np.concatenate([*points, iterates, *trip(cell).tally.points])
        assert (visited >= size.lower).all()
        assert (visited <= size.upper).all()


@every_setting
def test_a_start_outside_of_the_bounds_is_moved_into_them(cells: list[Cell]) -> None:
    for cell in cells:
        size = trip(cell).problem.size
        far = np.full(size.dim, 1e3)
        moved = cell.method.init(far, size, 0).x
        nearest = _nearest_start(cell.method, far, size)
        np.testing.assert_allclose(moved, nearest, rtol=0.0, atol=1e-12)


def _nearest_start(method: Any, x: FloatArray, size: ProblemSize) -> FloatArray:
    """Return the point within the bounds, and of the feasible set if there is one."""
    within = size.clip(x)
    if isinstance(method, LinearisedMethod):  # its linear constraints are a box
        return np.clip(within, LOWER, UPPER)
    if isinstance(method, FeasibleMethod):
        assert method.domain is not None
        return method.domain.project(within).point
    return within


@every_setting
def test_iterations_are_counted_and_every_index_asked_for_exists(
    cells: list[Cell],
) -> None:
    for cell in cells:
        size = trip(cell).problem.size
        for i, (state, queries) in enumerate(
            zip(trip(cell).states, trip(cell).queries, strict=True)
        ):
            assert state.iteration == i
            for query in queries:
                assert query.iteration == i
                assert query.losses.dtype == query.constraints.dtype == np.int64
                assert set(query.losses.tolist()) <= set(range(size.n_losses))
                assert set(query.constraints.tolist()) <= set(range(size.n_constraints))


@every_setting
def test_gradients_are_asked_for_where_they_are_used(cells: list[Cell]) -> None:
    for cell in cells:
        size = trip(cell).problem.size
        queries = [query for asked in trip(cell).queries for query in asked]
        wanting = [query for query in queries if query.want == "gradients"]
        of_losses, of_constraints = _gradients_used(cell.method, size)
        assert any(len(query.losses) for query in wanting) == of_losses
        assert any(len(query.constraints) for query in wanting) == of_constraints


def _gradients_used(method: Any, size: ProblemSize) -> tuple[bool, bool]:
    """Return whether a method asks for gradients of losses, and of constraints."""
    if isinstance(method, LinearisedMethod):
        return method.method.needs_gradient, True
    if isinstance(method, FeasibleMethod):  # their papers know values alone
        return method.needs_gradient, False
    uses = getattr(method, "uses_gradients", True)
    return uses and size.has_gradient, uses and size.has_jacobian


@every_setting
def test_the_cost_of_queries_is_what_the_box_counts(cells: list[Cell]) -> None:
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


def _told(cell: Cell, replies: tuple[Reply, ...], at: int = HERE) -> None:
    here = trip(cell)
    cell.method.tell(here.states[at], here.queries[at], replies)


def _filled(cell: Cell) -> dict[str, tuple[int, int]]:
    """Return for each kind of values the first iteration and reply that hold some."""
    found: dict[str, tuple[int, int]] = {}
    for at, replies in enumerate(trip(cell).replies):
        for place, reply in enumerate(replies):
            for name in ("losses", "constraints", "loss_gradients", "jacobian"):
                if getattr(reply, name).size:
                    found.setdefault(name, (at, place))
    return found


def _with_last(value: float) -> Callable[[Any], Any]:
    def change(array: Any) -> Any:
        array[-1, -1] = value
        return array

    return change


@every_setting
def test_tell_takes_the_replies_to_its_queries(cells: list[Cell]) -> None:
    for cell in cells:
        _told(cell, trip(cell).replies[HERE])


@every_setting
def test_tell_refuses_another_number_of_replies_than_queries(cells: list[Cell]) -> None:
    for cell in cells:
        replies = trip(cell).replies[HERE]
        n = len(replies)
        for wrong in (replies[:-1], (*replies, replies[0]), ()):
            match = (
                rf"{n} queries need {n} replies, got {len(wrong)}. Pass the replies in"
            )
            with pytest.raises(DszogError, match=match):
                _told(cell, wrong)
        part = trip(cell).queries[HERE][:-1]
        with pytest.raises(DszogError, match="quer"):
            cell.method.tell(trip(cell).states[HERE], part, replies[:-1])


REFUSED: dict[str, tuple[Callable[[Any], Any], ...]] = {
    SHAPE: (
        lambda array: array[:, :-1],
        lambda array: np.hstack([array, array[:, :1]]),
        lambda array: array[:-1],
        lambda array: np.vstack([array, array[:1]]),
    ),
    "not finite. Tell finite values only": tuple(
        _with_last(bad) for bad in (np.nan, np.inf, -np.inf)
    ),
    "must be a NumPy array of real num": (
        lambda array: np.ma.masked_array(array, mask=False),
        lambda array: array.astype(complex),
        lambda array: array.astype(str),
        lambda array: array.tolist(),
    ),
}


@every_setting
@pytest.mark.parametrize("said", REFUSED, ids=["shape", "not finite", "no numbers"])
def test_tell_refuses_replies_that_do_not_fit(cells: list[Cell], said: str) -> None:
    for cell in cells:
        for name, (at, place) in _filled(cell).items():
            replies = trip(cell).replies[at]
            for change in REFUSED[said]:
                array = change(getattr(replies[place], name).copy())
                changed = replies[place]._replace(**{name: array})
                wrong = (*replies[:place], changed, *replies[place + 1 :])
                with pytest.raises(DszogError, match=f"{name}.*{said}"):
                    _told(cell, wrong, at)


@every_setting
def test_tell_refuses_answers_of_another_iteration(cells: list[Cell]) -> None:
    for cell in cells:
        here = trip(cell)

        for other in (HERE - 1, HERE + 1):
            match = (
                rf"the state is at iteration {other}, the query was asked at {HERE}. "
                "Tell the answers to ask"
            )
            n = len(here.queries[other])
            if n != len(here.queries[HERE]):
                match += (
                    rf"|this state asks {n} queries, got .* Tell the answers to all"
                )
            with pytest.raises(DszogError, match=match):
                cell.method.tell(
                    here.states[other], here.queries[HERE], here.replies[HERE]
                )


# --------------------------------------------------------------------- what is told
@every_setting
def test_the_weights_are_a_part_of_a_distribution(cells: list[Cell]) -> None:
    for cell in cells:
        for state in trip(cell).states:
            indices, weights = cell.method.weights(state)
            assert len(indices) == len(weights)
            assert (np.diff(indices) > 0).all()
            assert set(indices.tolist()) <= set(range(state.size.n_constraints))
            assert (weights >= 0.0).all()
            assert weights.sum() <= 1.0 + 1e-12


@every_setting
def test_a_plan_settles_what_was_open_and_leaves_the_rest(cells: list[Cell]) -> None:
    for cell in cells:
        size = trip(cell).problem.size
        planned: Any = cell.method.planned(size, 10, 10_000)
        open_before = {"horizon", "horizon_queries", "start", "step_decay", "method"}
        for old, new in (
            (cell.method, planned),
            (_stepper(cell.method), _stepper(planned)),
        ):
            for item in fields(new):
                if item.name not in open_before:
                    assert getattr(new, item.name) == getattr(old, item.name)
        assert planned.planned(size, 99, 99_000) == planned


# --------------------------------------------------- what methods of feasible sets add

every_feasible = pytest.mark.parametrize("name", FEASIBLE_METHODS)


@those(lambda cell: isinstance(cell.method, FeasibleMethod))
def test_iterates_lie_in_the_feasible_set_and_hints_change_nothing_beyond_rounding(
    cells: list[Cell],
) -> None:
    for cell in cells:
        here, domain = trip(cell), _stepper(cell.method).domain
        assert domain is not None
        for state in here.states:
            assert domain.contains(state.x)
            assert domain.contains(getattr(state, "long_point", state.x))
        for i in range(1, 6):
            unaware = replace(here.states[i], active=NO_INDICES)
            moved, _ = cell.method.tell(unaware, here.queries[i], here.replies[i])
            np.testing.assert_allclose(moved.x, here.states[i + 1].x, rtol=0, atol=1e-7)


@those(lambda cell: cell.method_name in FEASIBLE_METHODS)
def test_two_points_are_compared_by_the_same_losses(cells: list[Cell]) -> None:
    for cell in cells:
        _check_pairs(cell)


def _check_pairs(cell: Cell) -> None:
    n_pairs = 0
    for state, queries in zip(trip(cell).states, trip(cell).queries, strict=True):
        inner = getattr(state, "inner", state)
        if getattr(state, "phase", "estimate") != "estimate" or inner.iteration == 0:
            continue
        half = len(queries) // 2
        if cell.method_name in ("zoscgd", "zopsgd") or _is_refresh(cell, inner):
            continue
        n_pairs += 1
        assert len(queries) == 2 * half
        for one, other in zip(queries[:half], queries[half:], strict=True):
            assert digest([one.steps, one.losses]) == digest(
                [other.steps, other.losses]
            )
            assert not len(one.constraints)
    one_only = cell.method_name in ("zoscgd", "zopsgd")
    one_loss = PROBLEMS[cell.problem_name].n == 1 and cell.variant == "defaults"
    # The start is corrected first, which takes all looks of so short a trip.
    corrected = cell.variant in ("linearised", "retracted")
    assert n_pairs > 0 or one_only or one_loss or corrected


def _is_refresh(cell: Cell, state: Any) -> bool:
    is_refresh = getattr(_stepper(cell.method), "_is_refresh", None)
    return is_refresh is not None and bool(is_refresh(state))


@those(lambda cell: isinstance(cell.method, LinearisedMethod))
def test_looks_ask_for_constraints_and_steps_for_losses(cells: list[Cell]) -> None:
    for cell in cells:
        phases = [state.phase for state in trip(cell).states]
        for phase, queries in zip(phases, trip(cell).queries, strict=True):
            for query in queries:
                assert (len(query.losses) > 0) == (phase == "estimate")
                assert (len(query.constraints) > 0) == (phase != "estimate")
        assert set(phases) >= {"look", "estimate"}
        method: Any = cell.method
        assert ("origin" in phases) == method.retract


@every_feasible
def test_a_method_of_feasible_sets_needs_one_that_fits(name: str) -> None:
    problem, _ = make_problem(PROBLEMS["white box"])
    kind = FEASIBLE_METHODS[name]
    with pytest.raises(InputError, match=r"a feasible set is needed, got none. Call"):
        kind().init(problem.x0, problem.size, 0)
    other = kind(domain=box(PROBLEMS["one variable"]))
    with pytest.raises(InputError, match=r"`domain` has 1 variables, .* has 3. Give"):
        other.init(problem.x0, problem.size, 0)


@every_feasible
def test_steps_towards_corners_need_a_bounded_set(name: str) -> None:
    problem, _ = make_problem(PROBLEMS["white box"])
    half_space = Box(lower=np.full(3, -np.inf), upper=np.full(3, 0.5))
    method = FEASIBLE_METHODS[name](domain=half_space)
    if name in ("zopsgd", "acczomda"):
        state = method.init(problem.x0, problem.size, 0)
        assert half_space.contains(advance(method, problem, state, 3).x)
        return
    with pytest.raises(InputError, match=r"need a bounded set, got Box.*finite bounds"):
        method.init(problem.x0, problem.size, 0)
