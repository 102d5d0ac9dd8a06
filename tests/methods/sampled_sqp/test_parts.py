"""Models, curvature, the table of losses, looks and sizes: exact answers."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dszog import Losses, SampledSQP, minimize
from dszog.contract import ProblemSize, Reply, cost
from dszog.methods.sampled_sqp import plans, trial
from dszog.methods.sampled_sqp.curvature import Pairs
from dszog.methods.sampled_sqp.looks import Look, inward, peaks
from dszog.methods.sampled_sqp.losses_table import LossTable
from dszog.methods.sampled_sqp.models import NOBODY, WorkingSet
from dszog.methods.sampled_sqp.noise import noise_level
from dszog.methods.sampled_sqp.scales import variable_scales
from tests.runs import size_of


def box(lower: float, upper: float) -> ProblemSize:
    return size_of(3, lower=np.full(3, lower), upper=np.full(3, upper))


RNG = np.random.Generator(np.random.Philox(key=8))
SLOPES = RNG.normal(size=(4, 3))
OFFSETS = RNG.normal(size=4)


def members_of(*indices: int, z: object = (0.0, 0.0, 0.0)) -> WorkingSet:
    chosen, at = np.array(indices), np.array(z, dtype=float)
    raw = OFFSETS[chosen] + SLOPES[chosen] @ at
    return WorkingSet.empty(3).joined(chosen, raw, SLOPES[chosen], at)


def test_a_linear_constraint_is_learned_for_good() -> None:
    members = members_of(0, 1, 2)
    for _ in range(5):
        z = RNG.normal(size=3)
        np.testing.assert_allclose(
            members.at(z) * members.sizes, OFFSETS[:3] + SLOPES[:3] @ z, atol=1e-12
        )
        values = (OFFSETS[:3] + SLOPES[:3] @ z) / members.sizes
        members = members.with_bends(np.arange(3), values, z)
        members = members.corrected(np.arange(3), values, z)
    assert not members.bent.any()


def test_a_corrected_model_agrees_with_the_last_two_values() -> None:
    members = members_of(0, 1)
    before, z = members.at(np.zeros(3)), np.array([1.0, -2.0, 0.5])
    values = np.array([3.0, -4.0])
    curved = members.with_bends(np.arange(2), values, z)
    corrected = members.corrected(np.arange(2), values, z)
    assert curved.bent.all()
    np.testing.assert_allclose(corrected.at(z), values)
    np.testing.assert_allclose(corrected.at(np.zeros(3)), before, atol=1e-12)
    kept = members.corrected(np.arange(2), values, z, np.zeros(3))
    again = kept.corrected(np.arange(2), values + 1.0, 2.0 * z[::-1], np.zeros(3))
    np.testing.assert_allclose(again.at(2.0 * z[::-1]), values + 1.0)
    np.testing.assert_allclose(again.at(np.zeros(3)), before, atol=1e-12)


def test_the_two_sides_of_an_equality_are_one_row() -> None:
    raw = np.array([0.5, -0.2, -0.5])
    slopes = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0], [-1.0, -2.0, 0.0]])
    members = WorkingSet.empty(3).joined(np.array([7, 1, 4]), raw, slopes, np.zeros(3))
    rows, who = members.rows(members.at(np.zeros(3)))
    assert members.opposites.tolist() == [4, NOBODY, 7]
    assert who.tolist() == [0, 1]
    assert rows.two_sided.tolist() == [True, False]
    for found in ([2.0, 0.0], [-2.0, 1.0]):
        back = members.with_multipliers(who, np.array(found))
        assert (back.multipliers >= 0).all()
        np.testing.assert_array_equal(back.signed_multipliers(who), found)


def test_the_curvature_explains_the_last_pair_and_is_semidefinite() -> None:
    rng = np.random.Generator(np.random.Philox(key=3))
    root = rng.normal(size=(6, 6))
    hessian = root @ root.T + np.eye(6)
    pairs, step, none = Pairs.none(6), np.ones(6), np.empty((0, 6))
    assert not pairs.matrix(none, np.empty((0, 0))).any()
    for _ in range(60):
        step = rng.normal(size=6)
        change = hessian @ step * rng.choice([1.0, 1.0, 1.0, -0.3])
        pairs = pairs.with_pair(step, change)
        assert np.linalg.eigvalsh(pairs.matrix(none, np.empty((0, 0)))).min() >= -1e-9
    pairs = pairs.with_pair(step, hessian @ step)
    np.testing.assert_allclose(
        pairs.matrix(none, np.empty((0, 0))) @ step, hessian @ step, rtol=1e-9
    )
    assert len(pairs.steps) == 30


def test_a_step_along_which_all_curves_downwards_takes_curvature_away() -> None:
    pairs, step = Pairs.none(2), np.array([1.0, 0.0])
    pairs = pairs.with_pair(step, 1e4 * step)
    for _ in range(5):
        pairs = pairs.with_pair(step, -step)
    matrix = pairs.matrix(np.empty((0, 2)), np.empty((0, 0)))
    assert 0 < step @ matrix @ step < 1.0
    estimated = pairs.matrix(np.eye(2), np.empty((0, 0)))  # a mean of two losses
    assert step @ estimated @ step > 1e3


def test_of_neighbours_that_are_alike_the_largest_stands_for_all() -> None:
    order = np.random.default_rng(0).permutation(200)
    wave, chance = np.sin(order / 15.0), np.random.default_rng(1).normal(size=200)
    assert np.sort(order[peaks(order, wave)]).tolist() == [24, 118, 199]
    assert peaks(order, chance).all()


def test_refreshing_the_whole_table_gives_the_mean_of_the_slopes() -> None:
    rng = np.random.Generator(np.random.Philox(key=5))
    table = LossTable.empty(3).grown(np.arange(8), np.zeros(8), rng.normal(size=(8, 3)))
    fresh, step = rng.normal(size=(8, 3)), rng.normal(size=3)
    table = table.followed(rng.normal(size=8), step).begun(rng.permutation(8))
    n_parts = 0
    while table.n_fresh < 8:
        rows = table.next_rows(2)
        table = table.refreshed(rows, fresh[rows])
        n_parts += 1
    np.testing.assert_allclose(table.gradient, fresh.mean(axis=0))
    assert table.noise_left(step) == 0.0
    assert n_parts == 3  # 2, then as many as were, twice
    assert table.noise_along(step, n_losses=8) == 0.0
    assert table.noise_along(step, n_losses=80) > 0.0


@pytest.mark.parametrize("is_linear", [True, False])
def test_values_tell_how_slopes_of_linear_forms_have_grown(is_linear: bool) -> None:
    rng = np.random.Generator(np.random.Philox(key=9))
    X, other, step = (
        rng.normal(size=(64, 3)),
        rng.normal(size=(64, 3)),
        0.3 * np.ones(3),
    )

    def slopes(x: Any) -> Any:
        return -X / (1 + np.exp(X @ x))[:, np.newaxis] + (1 - is_linear) * x * other**2

    values = np.logaddexp(0, -(X @ step)) + (1 - is_linear) * (other**2 @ step**2 / 2)
    table = LossTable.empty(3).grown(
        np.arange(64), np.full(64, np.log(2)), slopes(0 * step)
    )
    left, rows = [], np.arange(16)
    for begun in (table, table.followed(values, step)):
        new = begun.begun(np.arange(64)).refreshed(rows, slopes(step)[rows])
        left.append(np.linalg.norm(new.gradient - slopes(step).mean(axis=0)))
        assert new.noise_left(step) < (0.01 if left[1:] and is_linear else 0.1)
    assert left[1] < (0.2 if is_linear else 1.5) * left[0]


def quadratic(points: object) -> object:
    return np.stack([points[:, 0] + 2 * points[:, 1], points[:, 2] ** 2], axis=1)  # type: ignore[index]


def test_differences_cost_no_more_than_one_value_a_variable() -> None:
    size, at = size_of(3, m=9), np.array([1.0, 2.0, 3.0])
    look = Look(
        at=at,
        constraints=np.array([4, 6]),
        reach=np.full(3, 1e-6),
        constraint_values=np.array([5.0, 9.0]),
    )
    queries = look.queries(0, size)
    values = quadratic(queries[0].points(size))
    replies = (Reply(losses=np.empty((3, 0)), constraints=np.asarray(values)),)
    assert cost(queries, size).constraints == 6
    scale = np.array([1.0, 10.0, 1.0])
    found = look.read(queries, replies, size, scale)
    np.testing.assert_allclose(found.slopes, [[1, 20, 0], [0, 0, 6]], atol=1e-5)


def test_steps_of_differences_stay_within_the_bounds() -> None:
    size = box(0.0, 1.0)
    x = np.array([0.0, 1.0, 0.5])
    for reach in (1e-6, 0.4, 3.0):
        moved = x + inward(x, np.full(3, reach), size)
        assert (moved >= 0.0).all()
        assert (moved <= 1.0).all()
        assert (moved != x).all()
    assert not inward(np.zeros(3), np.ones(3), box(0.0, 0.0)).any()


def test_scales_follow_the_units_of_variables_and_not_those_of_functions() -> None:
    slopes, more = RNG.normal(size=(6, 3)), RNG.normal(size=(4, 3))
    units = np.array([1e-5, 1.0, 1e4])
    plain = variable_scales([slopes, more])
    # How much each kind counts may shift with the units, but not by much.
    other = variable_scales([1e8 * slopes / units, more / units]) / units
    np.testing.assert_allclose(other / other[0], plain / plain[0], rtol=0.5)
    flat = variable_scales([np.array([[1.0, 0.0, 3.0]])])
    assert np.isfinite(flat).all()
    assert (flat > 0).all()


@pytest.mark.parametrize("noise", [1e-9, 1e-5, 1e-1])
def test_the_noise_of_values_is_found(noise: float) -> None:
    # Measured over 1,000 draws: the median is between 0.79 and 1.02 of the noise.
    rng = np.random.Generator(np.random.Philox(key=6))
    t = 1e-6 * np.arange(7)[:, np.newaxis]
    smooth = np.sin(t + np.arange(300.0)) * 5.0
    found = noise_level(smooth + noise * rng.normal(size=(7, 300)))
    assert 0.5 * noise < np.median(found) < 2.0 * noise


def test_rows_that_join_during_a_refresh_keep_their_part_of_the_gradient() -> None:
    rng = np.random.Generator(np.random.Philox(key=6))
    slopes, fresh = rng.normal(size=(2, 6, 3))
    table = LossTable.empty(3).grown(np.arange(6), np.zeros(6), slopes)
    table = table.begun(np.arange(6)).refreshed(np.arange(2), fresh[:2])
    later = rng.normal(size=(4, 3))
    table = table.grown(np.arange(6, 10), np.zeros(4), later)
    table = table.refreshed(np.arange(2, 6), fresh[2:])
    np.testing.assert_allclose(table.gradient, np.vstack([fresh, later]).mean(axis=0))


def test_a_table_that_was_learned_by_heart_is_noticed() -> None:
    values, others = np.random.Generator(np.random.Philox(key=7)).normal(size=(2, 64))
    assert not trial._is_fitted(values, others, 0)
    assert trial._is_fitted(values, others + 1.0, 0)
    little = others + values.mean() - others.mean() + 0.35  # two standard errors
    assert not trial._is_fitted(values, little, 63)
    assert trial._is_fitted(values, little, 64)  # fewer rows than twice the variables


def test_rows_are_refreshed_until_the_next_step_is_sure() -> None:
    rng = np.random.Generator(np.random.Philox(key=8))
    slopes = rng.normal(size=(64, 3))
    table = LossTable.empty(3).grown(np.arange(64), np.zeros(64), slopes)
    changes = np.column_stack([np.ones(32), np.zeros(32), rng.normal(size=32)])
    rows = np.arange(32)
    table = table.begun(np.arange(64)).refreshed(rows, slopes[rows] + changes)
    # All rows agree on what changed along the first variable, not along the last.
    assert table.noise_left(np.array([1.0, 0.0, 0.0])) < 1e-12
    assert table.noise_left(np.array([0.0, 0.0, 1.0])) > 0.05


def test_who_pulls_and_equalities_stay_when_the_set_is_trimmed() -> None:
    members = members_of(0, 1, 2, 3).with_multipliers(
        np.arange(4), np.array([0.0, 3.0, 0.0, 0.0])
    )
    kept = members.trimmed(2, np.zeros(3))
    assert len(kept) == 2
    assert 1 in kept.indices


def test_no_step_is_tried_whose_gradient_is_stale_along_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, told, seen = np.random.default_rng(0).normal(size=(400, 10)), SampledSQP.tell, []

    def tell(self: SampledSQP, *args: Any) -> Any:
        state, info = told(self, *args)
        if state.phase == "trial" and not state.n_stale and not state.n_corrected:
            noise = state.table.noise_along(state.step, n_losses=400)
            most = plans.REFRESHED * max(self.noise_share * state.promise, noise)
            seen.append(state.table.noise_left(state.step) <= most)
        return state, info

    monkeypatch.setattr(SampledSQP, "tell", tell)
    losses = Losses(lambda x, i: np.logaddexp(0.0, -(x @ X[i].T)), 400)
    minimize(losses, np.ones(10), bounds=[(-2, 2)] * 10, max_queries=60_000, seed=0)
    assert seen.count(True) == len(seen) > 5


def test_of_many_curved_members_those_that_pull_most_are_learned_anew() -> None:
    dim, n = 2, 40  # 12 are
    rows = np.tile([[1.0, 0.0]], (n, 1))
    members = WorkingSet.empty(dim).joined(
        np.arange(n), np.ones(n), rows, np.zeros(dim)
    )
    pulls = np.arange(1.0, n + 1)  # the last ones pull most
    members = replace(members, multipliers=pulls, bent=np.ones(n, dtype=np.int64))
    state: Any = SimpleNamespace(
        members=members, length=1.0, step=np.ones(dim), size=size_of(dim, m=n)
    )
    nothing = np.zeros(n)
    tried = trial.Tried(np.arange(n), nothing, np.zeros(1), 0.0, 0.0, 0.0, 1.0)
    np.testing.assert_array_equal(trial._stale_members(state, tried), np.arange(28, 40))
