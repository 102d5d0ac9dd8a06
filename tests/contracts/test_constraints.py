"""What every kind of constraint promises; a new kind is tested by being listed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import LinearConstraint, NonlinearConstraint

import dszog
from dszog import Constraints
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import DszogError
from dszog.problem import constraints as kinds_of_constraints
from dszog.problem.constraints import PairwiseConstraints, Summary

DIM = 3
LARGE_COUNTS = [2**31 - 1, 2**31, 2**31 + 1, 10**12, 2**63 - 1]


@dataclass(frozen=True)
class Kind:
    """Constraints, and all that is true of them, said in the plainest way."""

    constraints: Constraints
    m: int
    value: Callable[[FloatArray, int], float]  # f_j(x), by a loop over plain floats
    dim: int | None
    has_jacobian: bool
    has_summary: bool
    call_of: Callable[[int], int] | None = None  # which call of the user's serves j
    slack: float = 0.0  # of central differences, where values are not quadratic


def quarters(*shape: int, seed: int) -> FloatArray:
    """Return multiples of 1/4, whose sums and products are exact in any order."""
    rng = np.random.default_rng(seed)
    return rng.integers(-8, 9, size=shape) / 4.0


def dot(row: FloatArray, x: FloatArray) -> float:
    products = [float(a) * float(b) for a, b in zip(row, x, strict=True)]
    return sum(products)


# ------------------------------------------------------------------ the table of kinds
def bowl(x: FloatArray, j: int) -> float:
    return dot(x, x) - j


def bowls(points: FloatArray, indices: IntArray) -> FloatArray:
    values: FloatArray = np.square(points).sum(axis=1)[:, np.newaxis] - indices
    return values


def bowl_gradients(point: FloatArray, indices: IntArray) -> FloatArray:
    return np.tile(2.0 * point, (len(indices), 1))


def by_bowls(constraints: Constraints, has_jacobian: bool = False) -> Kind:
    return Kind(constraints, 7, bowl, None, has_jacobian, False)


def linear(form: Any, seed: int) -> Kind:
    A, b = quarters(7, DIM, seed=seed), quarters(7, seed=seed + 1)
    if form is not np.array:
        A[A < 0.5] = 0.0  # one row or the other may be empty, too
        A[2] = 0.0

    def value(x: FloatArray, j: int) -> float:
        return dot(A[j], x) - float(b[j])

    return Kind(Constraints.linear(form(A), b), 7, value, DIM, True, True)


linear_dense = partial(linear, np.array, 1)
linear_sparse = partial(linear, sparse.csr_array, 3)
from_values = by_bowls(Constraints(bowls, 7))
from_function = by_bowls(Constraints.from_function(bowl, 7))
from_callables = by_bowls(
    Constraints.from_callables([partial(bowl, j=j) for j in range(7)])
)


def pairwise(margin: float) -> Kind:
    positives, negatives = quarters(3, DIM, seed=5), quarters(4, DIM, seed=6)

    def value(x: FloatArray, j: int) -> float:
        a, b = j // 4, j % 4
        return dot(negatives[b], x) - dot(positives[a], x) + margin

    constraints = Constraints.pairwise(positives, negatives, margin)
    return Kind(constraints, 12, value, DIM, True, True)


def in_blocks(width: int, n_blocks: int) -> Kind:
    def block(x: FloatArray, b: int) -> list[float]:
        return [bowl(x, b * width + k) for k in range(width)]

    constraints = Constraints.blocks(block, n_blocks, width)
    m = n_blocks * width
    return Kind(constraints, m, bowl, None, False, False, lambda j: j // width)


def of_simulator() -> Kind:
    def run(x: FloatArray, i: int) -> tuple[float, list[float]]:
        return 99.0, [bowl(x, 4 * i + k) for k in range(4)]

    constraints = dszog.Simulator(run, n=3, width=4).constraints
    return Kind(constraints, 12, bowl, None, False, False, lambda j: j // 4)


def squares(x: FloatArray) -> FloatArray:
    """Return six values: the squares of the variables, and the variables."""
    return np.concatenate([x**2, x])


def slopes(x: FloatArray) -> FloatArray:
    return np.concatenate([np.diag(2.0 * x), np.eye(DIM)])


INF = np.inf
LOWER = np.array([-INF, -1.0, 0.25, -INF, -2.0, 0.5])
UPPER = np.array([1.5, INF, 0.25, INF, 2.0, 0.75])
# Which side of which value is kept, upper sides first; the fourth value has none.
SIDES = [(+1, 0), (+1, 2), (+1, 4), (+1, 5), (-1, 1), (-1, 2), (-1, 4), (-1, 5)]


def side(x: FloatArray, j: int) -> float:
    sign, i = SIDES[j]
    limit = UPPER[i] if sign > 0 else LOWER[i]
    return float(sign * (squares(x)[i] - limit))


def from_scipy(form: Any) -> Constraints:
    constraints = dszog.Problem(lambda x: dot(x, x), form, DIM).constraints
    assert constraints is not None
    return constraints


def nonlinear(jacobian: Any) -> Kind:
    form = NonlinearConstraint(squares, LOWER, UPPER, **jacobian)
    kind = from_scipy(form)
    return Kind(kind, 8, side, None, bool(jacobian), False, lambda j: 0)


def scipy_dictionary(equality: bool) -> Kind:
    def function(x: FloatArray, factor: float) -> FloatArray:
        return factor * np.append(squares(x), x.sum())

    def jacobian(x: FloatArray, factor: float) -> Any:
        return factor * np.concatenate([slopes(x), np.ones((1, DIM))])

    def value(x: FloatArray, j: int) -> float:
        sign = +1.0 if equality and j < 7 else -1.0
        return sign * float(function(x, 2.0)[j % 7])

    m, type_ = (14, "eq") if equality else (7, "ineq")
    form = {"type": type_, "fun": function, "jac": jacobian, "args": (2.0,)}
    return Kind(from_scipy(form), m, value, None, True, False, lambda j: 0)


def scipy_linear(form: Callable[[FloatArray], Any]) -> Kind:
    A = np.concatenate([np.eye(DIM), quarters(3, DIM, seed=18)])

    def value(x: FloatArray, j: int) -> float:
        sign, i = SIDES[j]
        return sign * (dot(A[i], x) - float(UPPER[i] if sign > 0 else LOWER[i]))

    constraints = from_scipy(LinearConstraint(form(A), LOWER, UPPER))
    return Kind(constraints, 8, value, DIM, True, True)


def joined(*kinds: Kind) -> Kind:
    """Return one family after the other."""
    owners = [(kind, j) for kind in kinds for j in range(kind.m)]
    numbered: dict[tuple[int, int], int] = {}
    for i, (kind, j) in enumerate(owners):
        call = i if kind.call_of is None else -1 - kind.call_of(j)
        numbered.setdefault((id(kind), call), len(numbered))

    def call_of(i: int) -> int:
        kind, j = owners[i]
        call = i if kind.call_of is None else -1 - kind.call_of(j)
        return numbered[id(kind), call]

    def value(x: FloatArray, i: int) -> float:
        kind, j = owners[i]
        return kind.value(x, j)

    return Kind(
        Constraints.concat(*(kind.constraints for kind in kinds)),
        len(owners),
        value,
        next((kind.dim for kind in kinds if kind.dim is not None), None),
        has_jacobian=all(kind.has_jacobian for kind in kinds),
        has_summary=all(kind.has_summary for kind in kinds),
        call_of=call_of if any(kind.call_of for kind in kinds) else None,
    )


def black_box_of(kind: Kind) -> Kind:
    return replace(kind, constraints=kind.constraints.black_box(), has_jacobian=False)


AS_MADE: dict[str, Kind] = {
    "values": from_values,
    "values and jacobian": by_bowls(
        Constraints(bowls, 7, jacobian=bowl_gradients), has_jacobian=True
    ),
    "function": from_function,
    "linear, dense": linear_dense(),
    "linear, sparse": linear_sparse(),
    "pairwise": pairwise(0.0),
    "pairwise, relaxed": pairwise(-1.5),
    "pairwise, demanding": pairwise(1.5),
    "callables": from_callables,
    "blocks": in_blocks(width=3, n_blocks=4),
    "blocks of one": in_blocks(width=1, n_blocks=8),
    "one block": in_blocks(width=8, n_blocks=1),
    "simulator": of_simulator(),
    "NonlinearConstraint": nonlinear({}),
    "NonlinearConstraint and jac": nonlinear({"jac": slopes}),
    "dictionary, ineq": scipy_dictionary(equality=False),
    "dictionary, eq": scipy_dictionary(equality=True),
    "LinearConstraint, dense": scipy_linear(np.array),
    "LinearConstraint, sparse": scipy_linear(sparse.coo_array),
    "joined, one": joined(linear_dense()),
    "joined, with structure": joined(linear_dense(), pairwise(1.5), linear_sparse()),
    "joined, white boxes": joined(linear_dense(), nonlinear({"jac": slopes})),
    "joined, black boxes": joined(from_function, linear_sparse(), from_values),
    "joined, sharing calls": joined(
        of_simulator(), from_values, nonlinear({}), in_blocks(3, 4), linear_dense()
    ),
    "joined twice": joined(
        joined(linear_dense(), in_blocks(3, 2)),
        joined(of_simulator(), from_callables),
    ),
}
KINDS = AS_MADE | {
    f"black box of {name}": black_box_of(kind) for name, kind in AS_MADE.items()
}

WHITE_BOXES = {name: kind for name, kind in KINDS.items() if kind.has_jacobian}
BLACK_BOXES = {name: kind for name, kind in KINDS.items() if not kind.has_jacobian}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def test_every_public_kind_is_in_the_table() -> None:
    public = {
        member
        for name in kinds_of_constraints.__all__
        if isinstance(member := getattr(kinds_of_constraints, name), type)
        and issubclass(member, Constraints)
    }
    assert public <= {type(kind.constraints) for kind in KINDS.values()}


# ------------------------------------------------------------------- what all promise
def test_numbers_of_constraints_and_variables_are_told(kind: Kind) -> None:
    assert len(kind.constraints) == kind.m
    assert f"m={kind.m}" in repr(kind.constraints)
    assert kind.constraints.dim == kind.dim
    assert kind.constraints.has_jacobian is kind.has_jacobian


def test_values_are_those_of_a_plain_loop(kind: Kind) -> None:
    last = kind.m - 1
    for n_points in (1, 2, 5):
        points = quarters(n_points, DIM, seed=7)
        for asked in ([], [6], [4, 1, 1, 0, 4], [*range(kind.m), 0, last, 3, 3]):
            indices = np.array(asked, np.int64)
            values = np.asarray(kind.constraints.values(points, indices))
            assert values.dtype == np.float64
            assert values.shape == (n_points, len(asked))
            expected = [[kind.value(x, j) for j in asked] for x in points]
            np.testing.assert_array_equal(values, expected)


def test_a_summary_is_that_of_all_values_where_there_is_structure(kind: Kind) -> None:
    for x in quarters(5, DIM, seed=9):
        summary = kind.constraints.summary(x)
        assert (summary is not None) is kind.has_summary
        if summary is not None:  # values are in quarters of quarters: sums are exact
            values = np.array([kind.value(x, j) for j in range(kind.m)])
            assert summary == brute_force(values, summary.worst_index)


def test_points_and_indices_are_left_as_they_were(kind: Kind) -> None:
    points, indices = quarters(2, DIM, seed=8), np.array([5, 0, 5])
    before = points.tobytes(), indices.tobytes()
    points.flags.writeable = indices.flags.writeable = False
    kind.constraints.values(points, indices)
    kind.constraints.summary(points[0])
    if kind.has_jacobian:
        kind.constraints.jacobian(points[0], indices)
    assert (points.tobytes(), indices.tobytes()) == before


def test_calls_say_which_constraints_one_of_them_serves(kind: Kind) -> None:
    calls, call_of = kind.constraints.calls, kind.call_of
    if call_of is None:
        assert calls is None
        return
    assert calls is not None
    expected = np.array([call_of(j) for j in range(kind.m)])
    assert calls.n_calls == expected.max() + 1
    np.testing.assert_array_equal(calls.of(np.arange(kind.m)), expected)
    for some in (
        np.arange(calls.n_calls),
        np.array([0]),
        np.array([calls.n_calls - 1]),
    ):
        np.testing.assert_array_equal(
            calls.served_by(some), np.flatnonzero(np.isin(expected, some))
        )


@pytest.mark.parametrize("kind", WHITE_BOXES.values(), ids=WHITE_BOXES)
def test_jacobian_equals_central_differences_of_values(kind: Kind) -> None:
    x, indices, h = quarters(DIM, seed=9), np.array([6, 0, 3, 3]), 2.0**-10
    steps = h * np.eye(DIM)
    ahead = np.asarray(kind.constraints.values(x + steps, indices))
    behind = np.asarray(kind.constraints.values(x - steps, indices))
    # Exact without slack: values at most quadratic, and h and the data dyadic.
    expected = (ahead - behind).T / (2 * h)
    found = kind.constraints.jacobian(x, indices)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=kind.slack)


@pytest.mark.parametrize("kind", WHITE_BOXES.values(), ids=WHITE_BOXES)
def test_changing_a_returned_jacobian_changes_nothing_else(kind: Kind) -> None:
    x, indices = quarters(DIM, seed=9), np.arange(kind.m)
    first = np.array(kind.constraints.jacobian(x, indices))
    np.asarray(kind.constraints.jacobian(x, indices))[...] = np.nan
    np.testing.assert_array_equal(kind.constraints.jacobian(x, indices), first)


@pytest.mark.parametrize("kind", BLACK_BOXES.values(), ids=BLACK_BOXES)
def test_a_black_box_says_that_it_has_no_jacobian(kind: Kind) -> None:
    with pytest.raises(DszogError, match="no jacobian"):
        kind.constraints.jacobian(quarters(DIM, seed=9), np.array([0]))


def test_black_box_differs_in_its_gradients_alone(kind: Kind) -> None:
    hidden = kind.constraints.black_box()
    points, indices = quarters(3, DIM, seed=11), np.arange(kind.m)
    np.testing.assert_array_equal(
        hidden.values(points, indices), kind.constraints.values(points, indices)
    )
    assert not hidden.has_jacobian
    assert kind.constraints.has_jacobian is kind.has_jacobian  # it is left as it was
    assert len(hidden) == len(kind.constraints)
    assert hidden.dim == kind.constraints.dim
    assert hidden.summary(points[0]) == kind.constraints.summary(points[0])
    assert (hidden.calls is None) == (kind.constraints.calls is None)


# --------------------------------------------------------- summaries, by brute force
@dataclass(frozen=True)
class Case:
    """Constraints with structure, a point, and the value of each constraint there."""

    constraints: Constraints
    x: FloatArray
    values: FloatArray  # (m,)
    scale: float  # the largest size of a number that is added up


def brute_force(values: FloatArray, worst_index: int) -> Summary:
    worst = float(max(values))
    assert values[worst_index] == worst  # which one of several does not matter
    return Summary(
        n_constraints=len(values),
        n_violated=sum(value > 0.0 for value in values.tolist()),
        worst_value=worst,
        worst_index=worst_index,
        sum_squares=sum(value**2 for value in values.tolist() if value > 0.0),
    )


whole_numbers = st.integers(-3, 3).map(float)  # few of them: many ties, exact sums
limits = st.integers(-40, 40).map(float)  # wide: all hold, or all are violated
real_numbers = st.floats(-100, 100, allow_subnormal=False)


def matrices(
    numbers: st.SearchStrategy[float], n_columns: int
) -> st.SearchStrategy[FloatArray]:
    row = st.lists(numbers, min_size=n_columns, max_size=n_columns)
    return st.lists(row, min_size=1, max_size=6).map(np.array)


PAIRS = "pairs"


@st.composite
def cases_of(
    draw: st.DrawFn,
    kinds: tuple[Any, ...],
    numbers: st.SearchStrategy[float],
    offsets: st.SearchStrategy[float],
) -> Case:
    """Draw families of the same variables: pairs, or matrices in a form, joined."""
    dim = draw(st.integers(1, 3))
    x = np.array([draw(numbers) for _ in range(dim)])
    parts: list[Constraints] = []
    values: list[float] = []
    scale = 0.0
    for kind in kinds:
        A = draw(matrices(numbers, dim))
        if kind == PAIRS:
            others, margin = draw(matrices(numbers, dim)), draw(offsets)
            parts.append(Constraints.pairwise(A, others, margin))
            values += [dot(n - p, x) + margin for p in A for n in others]
            largest = max(np.abs(A).max(), np.abs(others).max())
            size = 2 * largest * np.abs(x).sum() + abs(margin)
        else:
            b = np.array([draw(offsets) for _ in A])
            parts.append(Constraints.linear(kind(A), b))
            values += [dot(row, x) - b[j] for j, row in enumerate(A)]
            size = (np.abs(A) @ np.abs(x) + np.abs(b)).max()
        scale = max(scale, float(size))
    family = parts[0] if len(parts) == 1 else Constraints.concat(*parts)
    return Case(family, x, np.array(values), scale)


def structured(
    numbers: st.SearchStrategy[float], offsets: st.SearchStrategy[float]
) -> dict[str, st.SearchStrategy[Case]]:
    return {
        "linear, dense": cases_of((np.array,), numbers, offsets),
        "linear, sparse": cases_of((sparse.csr_array,), numbers, offsets),
        "pairwise": cases_of((PAIRS,), numbers, offsets),
        "joined": cases_of((np.array, PAIRS, sparse.csr_array), numbers, offsets),
    }


EXACT = structured(whole_numbers, limits)
ROUNDED = structured(real_numbers, real_numbers)


@pytest.mark.parametrize("cases", EXACT.values(), ids=EXACT)
@given(data=st.data())
def test_summary_equals_brute_force_over_all_values(
    cases: st.SearchStrategy[Case], data: st.DataObject
) -> None:
    case = data.draw(cases)
    summary = case.constraints.summary(case.x)
    assert summary is not None
    assert summary == brute_force(case.values, summary.worst_index)


@pytest.mark.parametrize("cases", ROUNDED.values(), ids=ROUNDED)
@given(data=st.data())
def test_summary_agrees_with_brute_force_to_the_last_digits(
    cases: st.SearchStrategy[Case], data: st.DataObject
) -> None:
    case = data.draw(cases)
    summary = case.constraints.summary(case.x)
    assert summary is not None
    rounding = 1e-14 * case.scale
    violations = np.maximum(case.values, 0.0)
    at_least = np.count_nonzero(case.values > rounding)
    at_most = np.count_nonzero(case.values > -rounding)
    assert at_least <= summary.n_violated <= at_most
    assert summary.worst_value == pytest.approx(max(case.values), abs=rounding)
    assert case.values[summary.worst_index] >= max(case.values) - rounding
    assert summary.sum_squares == pytest.approx(
        np.square(violations).sum(),
        rel=1e-12,
        abs=len(violations) * rounding * (violations.max() + case.scale),
    )


# ---------------------------------------------------------------------- large indices
@pytest.mark.parametrize("m", LARGE_COUNTS)
def test_a_run_asks_for_64_bit_indices_from_the_whole_range(m: int) -> None:
    asked: list[IntArray] = []

    def values(points: FloatArray, indices: IntArray) -> FloatArray:
        asked.append(indices.copy())
        return points[:, :1] - 1.0 + 0.0 * indices

    constraints = Constraints(values, m)
    assert len(constraints) == m
    dszog.minimize(
        lambda x: float(x @ x), [2.0], constraints, max_queries=25_000, seed=0
    )
    assert {indices.dtype for indices in asked} == {np.dtype(np.int64)}
    drawn = np.concatenate(asked)
    assert 0 <= drawn.min() <= m // 1000
    assert m - m // 1000 <= drawn.max() < m


@pytest.mark.parametrize("m", LARGE_COUNTS)
def test_a_function_receives_large_indices_as_exact_plain_ints(m: int) -> None:
    received: list[int] = []

    def function(x: FloatArray, j: int) -> float:
        received.append(j)
        return 0.0

    indices = np.array([0, m - 2, m - 1])
    Constraints.from_function(function, m).values(np.zeros((1, 2)), indices)
    assert received == [0, m - 2, m - 1]
    assert all(type(j) is int for j in received)


def test_pairs_beyond_32_bits_are_the_right_pairs() -> None:
    n_pos, n_neg = 46_342, 46_341
    m = n_pos * n_neg
    assert m > 2**31
    positives = np.arange(n_pos, 0, -1.0)[:, np.newaxis]  # the last is the lowest
    negatives = np.arange(n_neg, dtype=float)[:, np.newaxis] + 2.0 * n_pos
    pairs = Constraints.pairwise(positives, negatives)
    indices = np.array([0, 2**31 - 1, 2**31, 2**31 + 1, m - 1])
    expected = [divmod(j, n_neg) for j in indices.tolist()]
    assert isinstance(pairs, PairwiseConstraints)
    np.testing.assert_array_equal(np.transpose(pairs.pair(indices)), expected)
    np.testing.assert_array_equal(
        pairs.values(np.ones((1, 1)), indices),
        [[negatives[b, 0] - positives[a, 0] for a, b in expected]],
    )
    summary = pairs.summary(np.ones(1))
    assert (summary.n_violated, summary.worst_index) == (m, m - 1)


def test_a_trillion_pairs_are_summed_up_from_two_million_rows() -> None:
    n = 10**6
    scores = np.arange(n, dtype=float)[:, np.newaxis]
    pairs = Constraints.pairwise(scores[::-1], scores)
    summary = pairs.summary(np.ones(1))
    assert summary.n_constraints == len(pairs) == 10**12
    assert summary.n_violated == n * (n - 1) // 2
    assert summary.worst_value == n - 1
    assert summary.worst_index == 10**12 - 1
    assert summary.sum_squares == pytest.approx(n**2 * (n**2 - 1) / 12, rel=1e-9)


# ----------------------------------------------------------------- the caller's arrays
def given_matrix(form: Any) -> tuple[list[Any], Constraints]:
    A, b = form(quarters(5, DIM, seed=12)), quarters(5, seed=13)
    parts = ("data", "indices", "indptr", "row", "col")
    own = [getattr(A, part) for part in parts if hasattr(A, part)]
    return [*([A] if form is np.array else own), b], Constraints.linear(A, b)


def given_rows() -> tuple[list[Any], Constraints]:
    positives, negatives = quarters(3, DIM, seed=12), quarters(4, DIM, seed=13)
    return [positives, negatives], Constraints.pairwise(positives, negatives, 0.5)


def given_to_scipy() -> tuple[list[Any], Constraints]:
    A, b = quarters(5, DIM, seed=12), quarters(5, seed=13)
    return [A, b], from_scipy(LinearConstraint(A, b - 1.0, b))


GIVEN: dict[str, Callable[[], tuple[list[Any], Constraints]]] = {
    "linear, dense": partial(given_matrix, np.array),
    "linear, csr": partial(given_matrix, sparse.csr_array),
    "linear, coo": partial(given_matrix, sparse.coo_array),
    "pairwise": given_rows,
    "LinearConstraint": given_to_scipy,
}


@pytest.mark.parametrize("give", GIVEN.values(), ids=GIVEN)
def test_the_callers_arrays_are_neither_modified_nor_kept(
    give: Callable[[], tuple[list[Any], Constraints]],
) -> None:
    arrays, constraints = give()
    before = [array.tobytes() for array in arrays]
    points, indices = quarters(2, DIM, seed=14), np.arange(len(constraints))
    values = np.array(constraints.values(points, indices))
    jacobian = np.array(constraints.jacobian(points[0], indices))
    summary = constraints.summary(points[0])
    assert [array.tobytes() for array in arrays] == before
    for array in arrays:
        array[...] = 0
    np.testing.assert_array_equal(constraints.values(points, indices), values)
    np.testing.assert_array_equal(constraints.jacobian(points[0], indices), jacobian)
    assert constraints.summary(points[0]) == summary
    assert np.any(values != 0.0)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
def test_every_sparse_form_gives_the_values_of_the_dense_matrix(form: str) -> None:
    A, b = quarters(5, DIM, seed=15), quarters(5, seed=16)
    A[np.abs(A) < 1.0] = 0.0
    dense = Constraints.linear(A, b)
    thin = Constraints.linear(sparse.coo_array(A).asformat(form), b)
    points, indices = quarters(2, DIM, seed=17), np.array([4, 0, 4, 2])
    np.testing.assert_array_equal(
        thin.values(points, indices), dense.values(points, indices)
    )
    np.testing.assert_array_equal(
        thin.jacobian(points[0], indices), dense.jacobian(points[0], indices)
    )
    assert thin.summary(points[0]) == dense.summary(points[0])


def test_repeated_entries_of_a_sparse_matrix_add_up() -> None:
    A = sparse.coo_array(([1.0, 2.0, 4.0], ([0, 0, 1], [1, 1, 0])), shape=(2, 2))
    values = Constraints.linear(A, np.zeros(2)).values(np.ones((1, 2)), np.arange(2))
    np.testing.assert_array_equal(values, [[3.0, 4.0]])


@pytest.mark.parametrize(("margin", "total"), [(0.0, np.inf), (-3e300, 0.0)])
def test_pairs_whose_squares_are_no_numbers_have_a_sum(
    margin: float, total: float
) -> None:
    samples = 1e300 * quarters(3, DIM, seed=1), 1e300 * quarters(4, DIM, seed=2)
    pairs, x = Constraints.pairwise(*samples, margin=margin), np.eye(DIM)[0]
    summary = pairs.summary(x)
    assert summary is not None
    assert summary.worst_value == pairs.values(x[np.newaxis], np.arange(12)).max()
    assert summary.sum_squares == total


# ------------------------------------------------------------------------- subclasses
@pytest.mark.parametrize("base", [Constraints, dszog.Losses])
@pytest.mark.parametrize("name", ["values", "values_at"])
def test_values_that_a_subclass_hides_are_refused(base: type[Any], name: str) -> None:
    with pytest.raises(
        dszog.InputTypeError,
        match=rf"^Mine: `{name}` of a subclass of {base.__name__} is not what is "
        r"called, got it overridden\. .* pass it on: super\(\)\.__init__\(self\._va",
    ):
        type("Mine", (base,), {name: lambda self, points, indices: points})


def test_a_subclass_that_passes_its_values_on_is_asked() -> None:
    class Mine(Constraints):
        def __init__(self) -> None:
            super().__init__(self._values, 3)

        def _values(self, points: Any, indices: Any) -> Any:
            return points[:, :1] + indices

    found = Mine().values(np.ones((1, 2)), np.arange(2))
    np.testing.assert_array_equal(found, [[1.0, 2.0]])
