"""What every distribution over the constraints promises, over the registry."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, fields
from itertools import product
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from dszog.contract.arrays import FloatArray
from dszog.errors import DszogError
from dszog.maths.distribution import DISTRIBUTIONS, Distribution, DualStep
from dszog.maths.random_stream import distinct_indices, stream
from tests.runs import learned

FALSE_ALARM = 1e-6  # how often a chi-square test may be red by chance, were seeds fresh
NONE = np.empty(0, dtype=np.int64)
STEP = DualStep(
    step_size=0.05, averaging=0.5, mixing=0.5, penalty=1.0, ridge=1e-6, step_eps=1e-8
)

NAMES = list(DISTRIBUTIONS)
STARTS = ["equal", "one violated", "all violated", "given weights", "all weights given"]
SIZES = [1, 2, 50]
CELLS = [(name, start, m) for name, start, m in product(NAMES, STARTS, SIZES)]

each_learning = pytest.mark.parametrize("name", [n for n in NAMES if n != "uniform"])
each_distribution = pytest.mark.parametrize("name", NAMES)
each_cell = pytest.mark.parametrize(("name", "start", "m"), CELLS)


def make(name: str, start: str, m: int) -> Distribution:
    kind = DISTRIBUTIONS[name]
    rng = np.random.default_rng(m)
    some = np.arange(0, m, 2)
    everything = np.arange(m)
    match start:
        case "equal":
            return kind.from_penalties(m, NONE, np.empty(0), 30.0)
        case "one violated":
            return kind.from_penalties(m, np.array([m - 1]), np.array([1e-2]), 30.0)
        case "all violated":
            return kind.from_penalties(m, everything, 1 + rng.random(m) / m, 1.0)
        case "given weights":
            return kind.from_weights(m, some, np.full(len(some), 0.5 / len(some)))
        case "all weights given":
            weights = rng.random(m)
            return kind.from_weights(m, everything, weights / weights.sum())
    raise AssertionError(start)


def learnt(name: str, start: str, m: int, n_updates: int = 20) -> Distribution:
    """Return a distribution that was told of violations in its upper half."""
    distribution = make(name, start, m)
    for i in range(n_updates):
        indices = distinct_indices(stream(1, i), m, max(m // 4, 1))
        penalties = np.where(indices >= m // 2, 1.0 + indices / m, 0.0)
        distribution = learned(distribution, indices, penalties, STEP, i == 0)
    return distribution


def assert_in_simplex(weights: FloatArray, m: int) -> None:
    assert weights.shape == (m,)
    assert weights.min() >= 0.0
    assert weights.sum() == pytest.approx(1.0, rel=0, abs=1e-12)


@each_cell
def test_the_weights_lie_in_the_simplex(name: str, start: str, m: int) -> None:
    distribution = make(name, start, m)
    assert distribution.n_constraints == m
    assert_in_simplex(distribution.dense(), m)
    assert_in_simplex(learnt(name, start, m).dense(), m)


@each_distribution
@given(data=st.data(), m=st.integers(1, 40))
def test_given_weights_of_any_sum_up_to_one_start_in_the_simplex(
    name: str, data: st.DataObject, m: int
) -> None:
    indices = np.array(sorted(data.draw(st.sets(st.integers(0, m - 1), min_size=1))))
    shares = np.random.default_rng(data.draw(st.integers(0, 99))).random(len(indices))
    shares += 1e-3
    mass = data.draw(st.one_of(st.just(1.0), st.floats(0.01, 1.0)))
    weights = mass * shares / shares.sum()
    distribution = DISTRIBUTIONS[name].from_weights(m, indices, weights)
    assert_in_simplex(distribution.dense(), m)


@each_cell
def test_weights_of_a_run_start_another(name: str, start: str, m: int) -> None:
    earlier = learnt(name, start, m)
    again = DISTRIBUTIONS[name].from_weights(m, *earlier.touched())
    assert_in_simplex(again.dense(), m)
    np.testing.assert_allclose(again.dense(), earlier.dense(), rtol=0, atol=1e-15)


@each_distribution
@pytest.mark.parametrize("m", SIZES)
def test_without_a_violation_equal_weights_stay_equal(name: str, m: int) -> None:
    distribution = make(name, "equal", m)
    for i in range(20):
        indices = distinct_indices(stream(2, i), m, max(m // 4, 1))
        distribution = learned(
            distribution, indices, np.zeros(len(indices)), STEP, i == 0
        )
    np.testing.assert_allclose(distribution.dense(), 1 / m, rtol=1e-13)


@each_cell
def test_a_step_lowers_no_weighted_penalty(name: str, start: str, m: int) -> None:
    penalties = np.random.default_rng(4).random(m)
    before = make(name, start, m)
    after = learned(before, np.arange(m), penalties, STEP, True)
    ridge = STEP.ridge / 2
    assert (
        after.dense() @ penalties - ridge * after.dense() @ after.dense()
        >= before.dense() @ penalties - ridge * before.dense() @ before.dense() - 1e-15
    )


@each_cell
def test_touched_ascend_and_others_share_a_weight(
    name: str, start: str, m: int
) -> None:
    for distribution in (make(name, start, m), learnt(name, start, m)):
        indices, weights = distribution.touched()
        assert indices.dtype == np.int64
        assert (np.diff(indices) > 0).all()
        dense = distribution.dense()
        np.testing.assert_array_equal(dense[indices], weights)
        assert len(np.unique(np.delete(dense, indices))) <= 1


@each_cell
def test_draws_are_int64_and_of_the_generator(name: str, start: str, m: int) -> None:
    distribution = learnt(name, start, m)
    drawn = distribution.sample(stream(0, 0), 10 * m)
    assert drawn.shape == (10 * m,)
    assert drawn.dtype == np.int64
    assert drawn.min() >= 0
    assert drawn.max() < m
    np.testing.assert_array_equal(distribution.sample(stream(0, 0), 10 * m), drawn)


@each_cell
def test_draws_are_in_proportion_to_weights(name: str, start: str, m: int) -> None:
    for distribution in (make(name, start, m), learnt(name, start, m, 3)):
        weights = distribution.dense()
        drawn = distribution.sample(stream(5, m), 50_000)
        counts = np.bincount(drawn, minlength=m)
        assert not counts[weights == 0.0].any()
        rare = weights * len(drawn) < 10  # too few for a chi-square: taken together
        expected = np.append(weights[~rare], weights[rare].sum()) * len(drawn)
        found = np.append(counts[~rare], counts[rare].sum())
        if expected[-1] < 10:
            assert found[-1] <= 40
            expected, found = expected[:-1], found[:-1]
            expected *= found.sum() / expected.sum()
        if len(found) > 1:  # one alone is drawn each time
            assert stats.chisquare(found, expected).pvalue > FALSE_ALARM


class Edges:
    """A generator that draws the smallest and the largest number it can, in turn."""

    def random(self, size: int) -> FloatArray:
        return np.resize([0.0, 1.0 - 2.0**-53], size)


@each_learning
def test_a_constraint_without_weight_is_not_drawn_even_at_the_edges(name: str) -> None:
    weights = np.array([0.0, 0.0, 0.1, 0.0, 0.7, 0.2, 0.0])
    distribution = DISTRIBUTIONS[name].from_weights(7, np.arange(7), weights)
    drawn = distribution.sample(cast("np.random.Generator", Edges()), 4)
    np.testing.assert_array_equal(drawn, [2, 2, 5, 5])


@each_distribution
def test_draws_are_independent_of_each_other(name: str) -> None:
    distribution, rng = learnt(name, "equal", 4), stream(6, 0)
    drawn = np.array([distribution.sample(rng, 2) for _ in range(20_000)])
    assert (drawn[:, 0] <= drawn[:, 1]).all()
    turned = rng.random(len(drawn)) < 0.5  # draws ascend: bring back a random order
    drawn[turned] = drawn[turned, ::-1]
    table = np.zeros((4, 4))
    np.add.at(table, (drawn[:, 0], drawn[:, 1]), 1)
    table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
    assert stats.chi2_contingency(table).pvalue > FALSE_ALARM


@each_cell
def test_nothing_is_changed_in_place(name: str, start: str, m: int) -> None:
    distribution = learnt(name, start, m)
    before = distribution.dense().copy()
    distribution.sample(stream(0, 1), 10)
    learned(distribution, np.arange(m), np.ones(m), STEP, False)
    np.testing.assert_array_equal(distribution.dense(), before)


@each_distribution
def test_no_field_can_be_set_and_no_array_in_it_written_to(name: str) -> None:
    distribution = learnt(name, "equal", 50)
    for field in fields(distribution):  # type: ignore[arg-type]
        with pytest.raises(FrozenInstanceError):
            setattr(distribution, field.name, None)
        value = getattr(distribution, field.name)
        if isinstance(value, np.ndarray):
            with pytest.raises(ValueError, match="read-only"):
                value[...] = 0


@each_distribution
@pytest.mark.parametrize("start", ["penalties", "weights"])
def test_arrays_that_change_later_change_nothing(name: str, start: str) -> None:
    kind = DISTRIBUTIONS[name]
    indices, values = np.array([3, 7]), np.array([0.25, 0.5])
    if start == "penalties":
        distribution = kind.from_penalties(10, indices, values, 0.5)
    else:
        distribution = kind.from_weights(10, indices, values)
    before = distribution.dense().copy()
    indices[:], values[:] = [0, 1], 0.0
    np.testing.assert_array_equal(distribution.dense(), before)
    indices, values = np.array([3, 7]), np.array([0.25, 0.5])
    after = learned(distribution, indices, values, STEP, True)
    before = after.dense().copy()
    indices[:], values[:] = [0, 1], 0.0
    np.testing.assert_array_equal(after.dense(), before)


@each_learning
def test_weights_that_are_not_numbers_are_never_drawn_from(name: str) -> None:
    kind = DISTRIBUTIONS[name]
    with pytest.raises(DszogError, match="finite"):
        kind.from_weights(4, np.array([1, 2]), np.array([0.5, math.nan])).sample(
            stream(0, 0), 8
        )
