"""Constraints are drawn in random order without a list, and seen ones by their risk."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dszog.contract import Calls, ProblemSize
from dszog.contract.arrays import FloatArray, IntArray
from dszog.methods.sampled_sqp import case_values, screening
from dszog.methods.sampled_sqp.case_values import CaseValues
from dszog.methods.sampled_sqp.ending import before_looks
from dszog.methods.sampled_sqp.looks import UNKNOWN, worst_of
from dszog.methods.sampled_sqp.screening import Seen, permuted
from tests.runs import size_of


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 8, 16, 17, 63, 64, 65, 1000, 4097])
def test_a_permutation_has_every_number_once(n: int) -> None:
    for key in (0, 1, 2**64 - 1, 2**65 + 1):
        found = np.sort(permuted(np.arange(n), n, key))
        np.testing.assert_array_equal(found, np.arange(n))


def test_a_permutation_of_very_many_repeats_nothing_and_keeps_the_range() -> None:
    n = 10**12
    found = permuted(np.arange(50_000), n, key=3)
    assert len(np.unique(found)) == 50_000
    assert found.min() >= 0
    assert found.max() < n
    # Uniform: the mean of 50,000 is 6 standard errors off once in 10^9.
    assert abs(found.mean() / n - 0.5) < 6 / np.sqrt(12 * 50_000)


@pytest.mark.parametrize("n", [1, 2, 100, 10**12])
def test_neighbours_are_close_and_on_all_scales(n: int) -> None:
    rng = np.random.Generator(np.random.Philox(key=1))
    found = screening.beside(np.array([n // 2]), 1000, n, rng)
    far = np.abs(found - n // 2)
    assert 0 <= found.min() <= found.max() < n
    assert far.max() <= np.sqrt(n)
    assert np.median(far) <= max(n**0.35, 10.0)
    assert not len(screening.beside(found[:0], 9, n, rng))


ORIGIN = np.zeros(2)


def table_of(table: FloatArray, shape: tuple[int, ...]) -> ProblemSize:
    n, width = table.shape
    calls = replace(Calls.of_width(width, n * width), shape=shape)
    return size_of(2, m=n * width, calls=calls)


def values_of(table: FloatArray, cases: IntArray, shape: tuple[int, ...]) -> CaseValues:
    size = table_of(table, shape)
    found = CaseValues.nothing(2).with_values(
        size.limits_of(cases), table[cases].ravel(), size, ORIGIN
    )
    assert found.fits(size)
    return found


def test_where_bad_rows_and_columns_cross_is_looked_at_first() -> None:
    rng = np.random.Generator(np.random.Philox(key=1))
    rows, columns = rng.normal(size=60), rng.normal(size=50)
    noise = 0.1 * rng.normal(size=(60, 50))
    table = (rows[:, np.newaxis] + columns + noise).reshape(3000, 1).repeat(2, axis=1)
    allowed = float(np.sort(table[:, 0])[-6])
    worst = np.flatnonzero(table[:, 0] > allowed)  # are not seen
    drawn = np.sort(rng.choice(np.setdiff1d(np.arange(3000), worst), 300, False))
    seen = values_of(table, drawn, (60, 50))
    found, below = seen.likely(40, (60, 50), drawn, allowed, ORIGIN)
    assert np.isin(worst, found).all()
    assert not np.isin(found, drawn).any()
    assert (np.diff(below) >= 0).all()
    assert below[0] < 1.0
    # One column that varies far more, about a mean like all others.
    table.reshape(60, 50, 2)[:, 7] += 8.0 * rng.normal(size=(60, 1))
    seen = values_of(table, drawn, (60, 50))
    found, _ = seen.likely(120, (60, 50), drawn, allowed, ORIGIN)
    assert (found % 50 == 7).sum() > 20


def test_a_limit_that_all_cases_share_does_not_hide_what_one_column_exceeds() -> None:
    rng = np.random.Generator(np.random.Philox(key=3))
    table = rng.normal(-4.0, 0.3, (3000, 9))
    table[:, 4] = -1e-7 * rng.uniform(size=3000)  # the worst of nearly every case
    outage = table.reshape(60, 50, 9)[:, 7, 2]
    outage[:] = rng.normal(-0.4, 0.3, 60)
    worst = np.flatnonzero(table.max(axis=1) > 1e-3)
    drawn = np.sort(rng.choice(np.setdiff1d(np.arange(3000), worst), 600, False))
    seen = values_of(table, drawn, (60, 50))
    found, below = seen.likely(100, (60, 50), drawn, 1e-3, ORIGIN)
    assert len(worst) > 2
    assert np.isin(worst, found[below < 3.0]).all()


def test_rows_that_were_not_met_are_looked_at_before_those_known_to_hold() -> None:
    rng = np.random.Generator(np.random.Philox(key=4))
    rows = rng.normal(size=(60, 1, 1))
    table = (rows - 5.0 + 0.01 * rng.normal(size=(60, 50, 3))).reshape(3000, 3)
    drawn = np.sort(rng.choice(np.arange(50, 3000), 600, False))  # none of the first
    seen = values_of(table, drawn, (60, 50))
    found, _ = seen.likely(20, (60, 50), drawn, 0.0, ORIGIN)
    assert (found < 50).all()


def test_nothing_is_likely_of_cases_that_all_failed() -> None:
    failed = values_of(np.full((20, 2), np.nan), np.arange(3), (4, 5))
    for seen in (CaseValues.nothing(2), failed):
        assert not len(seen.likely(5, (4, 5), np.arange(0), 0.0, ORIGIN)[0])


def test_the_values_seen_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(case_values, "MOST_NUMBERS", 6)
    seen = values_of(np.zeros((20, 2)), np.array([0, 2, 4, 1]), (4, 5))
    np.testing.assert_array_equal(seen.cases, [2, 4, 1])


def test_what_was_seen_elsewhere_tells_as_much_once_slopes_are_known() -> None:
    rng = np.random.Generator(np.random.Philox(key=5))
    noise = 0.01 * rng.normal(size=(60, 50, 3))
    table = rng.normal(size=(60, 1, 3)) + rng.normal(size=(1, 50, 3)) - 4.0 + noise
    table, slopes = table.reshape(3000, 3), rng.normal(size=(3, 2))
    size, seen = table_of(table, (60, 50)), CaseValues.nothing(2)
    told = seen.with_slopes(np.arange(6), np.vstack([slopes, slopes]), size)
    for _ in range(60):  # ten cases at each point
        z, cases = rng.normal(size=2), np.sort(rng.choice(3000, 10, False))
        values = (table[cases] + slopes @ z).ravel()
        told = told.with_values(size.limits_of(cases), values, size, z)
        seen = seen.with_values(size.limits_of(cases), values, size, z)
    assert told.fits(size)
    assert told.n_learned == 2
    z = np.array([2.0, -1.0])
    there = (table + slopes @ z).max(axis=1)
    allowed = float(np.sort(there)[-10])
    worst = np.setdiff1d(np.flatnonzero(there > allowed), told.cases)
    assert len(worst) > 4
    found, below = told.likely(50, (60, 50), seen.cases, allowed, z)
    assert np.isin(worst, found[below < 3.0]).all()
    assert (below < 3.0).sum() < 40
    found, below = seen.likely(3000, (60, 50), seen.cases, allowed, z)
    assert (below < 3.0).sum() > 60  # not knowing slopes


def test_cases_seen_again_tell_how_far_off_moved_values_are() -> None:
    rng, z = np.random.Generator(np.random.Philox(key=6)), np.array([3.0, 4.0])
    table = rng.normal(-9.0, 2.0, (3000, 2))
    table[:, 1] -= 90.0
    cases = np.arange(0, 3000, 10)
    size, seen = table_of(table, (60, 50)), values_of(table, cases, (60, 50))
    there = table[cases[:100]]
    there[:, 0] += np.tile([0.5, -0.5], 50)
    seen = seen.with_values(size.limits_of(cases[:100]), there.ravel(), size, z)
    np.testing.assert_allclose(np.sqrt(seen.misses / seen.lengths), [0.1, 0.0])
    assert seen.fits(size)
    assert len(seen.points) == 2
    found, below = seen.likely(3000, (60, 50), np.arange(0), 0.0, z)
    room = dict(zip(found.tolist(), below.tolist(), strict=True))
    assert room[0] > 1e6  # seen there
    assert room[2000] == pytest.approx(-table[2000, 0] / 0.5, rel=0.1)  # 5 away
    # What is seen again later counts more.
    again = size.limits_of(cases[:100])
    for _ in range(4):
        seen = seen.with_values(again, table[cases[:100]].ravel(), size, ORIGIN)
        seen = seen.with_values(again, table[cases[:100]].ravel(), size, z)
    assert np.sqrt(seen.misses / seen.lengths)[0] < 0.02


def test_what_values_from_one_point_miss_in_common_is_taken_off() -> None:
    rng, far = np.random.Generator(np.random.Philox(key=8)), np.array([3.0, 4.0])
    table = rng.normal(size=(60, 1, 2)) + rng.normal(size=(1, 50, 2)) - 8.0
    table = (table + 0.01 * rng.normal(size=(60, 50, 2))).reshape(3000, 2)
    size, seen = table_of(table, (60, 50)), CaseValues.nothing(2)
    cases = rng.permutation(3000)
    for z, some, off in ((far, cases[:1000], 5.0), (ORIGIN, cases[950:1050], 0.0)):
        values = table[some] + off + 0.01 * rng.normal(size=(len(some), 2))
        seen = seen.with_values(size.limits_of(some), values.ravel(), size, z)
    assert seen.fits(size)
    np.testing.assert_allclose(np.sqrt(seen.misses / seen.lengths), 1.0, rtol=0.01)
    assert np.sqrt(seen.own_misses / seen.own_lengths).max() < 0.01
    allowed = float(np.sort(table.max(axis=1))[-6])
    worst = np.setdiff1d(np.flatnonzero(table.max(axis=1) > allowed), cases[950:1050])
    found, below = seen.likely(3000, (60, 50), cases[950:1050], allowed, ORIGIN)
    assert np.isin(worst, found[below < 4.0]).all()
    assert (below < 4.0).sum() < 30


def test_values_seen_far_away_do_not_blur_what_is_known_near_by() -> None:
    rng, far = np.random.Generator(np.random.Philox(key=7)), np.array([30.0, 40.0])
    table = rng.normal(size=(60, 1, 2)) + rng.normal(size=(1, 50, 2)) - 8.0
    table = (table + 0.01 * rng.normal(size=(60, 50, 2))).reshape(3000, 2)
    there = table + 5.0 * rng.normal(size=table.shape)
    size, seen = table_of(table, (60, 50)), CaseValues.nothing(2)
    cases = rng.permutation(3000)
    for z, some, values in (
        (far, cases[:150], there),
        (ORIGIN, cases[100:1100], table),
    ):
        seen = seen.with_values(size.limits_of(some), values[some].ravel(), size, z)
    allowed = float(table.max()) + 0.1
    found, below = seen.likely(3000, (60, 50), cases[100:1100], allowed, ORIGIN)
    assert (below[np.isin(found, cases[1100:])] > 4.0).mean() > 0.95


def test_of_a_table_that_does_not_fit_memory_the_top_is_compared() -> None:
    shape, rng = (10**6, 10**6), np.random.Generator(np.random.Philox(key=2))
    places = rng.integers(10**6, size=(2, 400))
    cases = np.unique(np.ravel_multi_index((places[0], places[1]), shape))
    values = -1.0 * np.divmod(cases, 10**6)[0][:, np.newaxis].repeat(2, axis=1)
    known: Any = {"cases": cases, "values": values, "places": 0 * cases}
    known |= {"points": ORIGIN[np.newaxis], "misses": np.zeros(2)}
    seen = replace(CaseValues.nothing(2), **known)
    found, _ = seen.likely(1000, shape, cases, 0.0, ORIGIN)
    assert len(found) == 1000
    assert (found // 10**6).max() < np.median(places[0])


def test_draws_meet_every_constraint_once_a_pass() -> None:
    size, seen = size_of(2, m=1000), Seen.nothing(2)
    met = []
    while not seen.all_drawn(size):
        drawn, seen = seen.draw(300, size, seed=5)
        met.append(drawn)
    np.testing.assert_array_equal(np.sort(np.concatenate(met)), np.arange(1000))
    again, seen = seen.draw(300, size, seed=5)
    assert seen.n_passes == 1
    assert not np.array_equal(again, met[0])


def test_whole_calls_are_drawn() -> None:
    size = size_of(2, m=60, calls=Calls.of_width(6, 60))
    drawn, _ = Seen.nothing(2).draw(12, size, seed=0)
    assert len(drawn) == 12
    assert len(np.unique(drawn // 6)) == 2


def test_what_may_have_become_violated_is_at_risk() -> None:
    rng = np.random.Generator(np.random.Philox(key=2))
    slopes = rng.normal(size=(500, 2))
    slopes /= np.linalg.norm(slopes, axis=1)[:, np.newaxis]
    seen = replace(Seen.nothing(2), rate=1.0, first_rate=1.0)
    z = np.zeros(2)
    for _ in range(40):
        values = slopes @ z - 1.0
        some = rng.random(500) < 0.3
        seen = seen.with_values(np.flatnonzero(some), values[some], z)
        z = z + 0.1 * rng.normal(size=2)
        violated = np.flatnonzero(slopes @ z > 1.0)
        safe = seen.indices[replace(seen, rate=1.0).risks(z) <= 0]
        assert not np.isin(violated, safe).any()


def test_a_violation_that_was_overlooked_raises_the_rate() -> None:
    seen = replace(Seen.nothing(1), rate=0.1, first_rate=0.1)
    seen = seen.with_values(np.array([3]), np.array([-1.0]), np.zeros(1))
    seen = seen.with_values(np.array([3]), np.array([4.0]), np.ones(1))
    assert seen.rate >= 5.0


def test_what_is_kept_is_capped_by_safety(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screening, "MOST_SEEN", 64)
    seen = replace(Seen.nothing(1), rate=1.0, first_rate=1.0)
    values = -np.arange(100.0)
    seen = seen.with_values(np.arange(100), values, np.zeros(1))
    assert len(seen.indices) <= 64
    assert seen.values.min() >= -64.0
    assert 0 in seen.indices


def test_few_points_are_kept_and_nothing_looks_safer_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(screening, "MOST_POINTS", 8)
    full = few = replace(Seen.nothing(1), rate=1.0, first_rate=1.0)
    for i in range(30):
        z = np.array([float(i)])
        few = few.with_values(np.array([i]), np.array([-50.0]), z)
        monkeypatch.setattr(screening, "MOST_POINTS", 1000)
        full = full.with_values(np.array([i]), np.array([-50.0]), z)
        monkeypatch.setattr(screening, "MOST_POINTS", 8)
    assert len(few.points) <= 8
    assert len(full.points) == 30
    at = np.array([10.0])
    assert (few.risks(at) >= full.risks(at) - 1e-12).all()


def test_a_limit_that_is_the_same_in_all_cases_says_nothing_of_one() -> None:
    rng = np.random.Generator(np.random.Philox(key=3))
    size = size_of(2, m=60, calls=Calls.of_width(3, 60))
    table = rng.uniform(-2.0, -1.0, (20, 3))
    table[:, 1] = -1e-3
    cases, worst = worst_of(size, np.arange(60), table.ravel())
    np.testing.assert_array_equal(cases, np.arange(20))
    np.testing.assert_array_equal(worst, table[:, [0, 2]].max(axis=1))
    table[:, 1] = 1e-3  # violated in all of them
    np.testing.assert_array_equal(worst_of(size, np.arange(60), table.ravel())[1], 1e-3)
    table[4, 2] = np.nan
    assert worst_of(size, np.arange(60), table.ravel())[1][4] == UNKNOWN
    table[:] = -1.0
    np.testing.assert_array_equal(worst_of(size, np.arange(60), table.ravel())[1], -1.0)


@pytest.mark.parametrize(("n_cases", "share"), [(10, 1.0), (150, 1.0), (1500, 0.1)])
def test_a_stop_is_tighter_where_looks_cost_more_than_slopes(
    n_cases: int, share: float
) -> None:
    size = size_of(75, m=3 * n_cases, calls=Calls.of_width(3, 3 * n_cases))
    state: Any = SimpleNamespace(size=size)
    assert before_looks(state) == pytest.approx(share)
