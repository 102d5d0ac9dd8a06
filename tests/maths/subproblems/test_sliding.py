"""Conditional gradient sliding, and the two measures of stationarity."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.subproblems import (
    Box,
    Domain,
    L1Ball,
    L2Ball,
    Polyhedron,
    Simplex,
    Solution,
    frank_wolfe_gap,
    gradient_mapping,
    slide,
)
from dszog.maths.subproblems.sliding import Slide

DIM = 4


def pairwise_cone() -> Polyhedron:
    rng = np.random.default_rng(3)
    centre = np.full(DIM, 0.8)
    return Polyhedron.pairwise(
        rng.normal(size=(8, DIM)) + centre,
        rng.normal(size=(9, DIM)) - centre,
        ball="l2",
        ball_radius=2.0,
    )


DOMAINS: dict[str, Domain] = {
    "l1 ball": L1Ball(dim=DIM, radius=1.0),
    "l2 ball": L2Ball(dim=DIM, radius=1.0),
    "box": Box(lower=[-1.0] * DIM, upper=[0.5] * DIM),
    "simplex": Simplex(dim=DIM),
    "pairwise cone": pairwise_cone(),
}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))


def slid(
    domain: Domain,
    gradient: FloatArray,
    x: FloatArray,
    *,
    gap: float,
    max_inner: int,
    step_size: float = 0.3,
) -> Slide:
    return slide(
        domain,
        gradient,
        x,
        step_size=step_size,
        gap=gap,
        max_inner=max_inner,
        hint=NO_INDICES,
    )


@every_domain
def test_with_a_small_gap_sliding_ends_at_the_projection(domain: Domain) -> None:
    # A gap of 1e-10 would bound the distance by 1e-5. On faces Frank-Wolfe is slow, and
    # the cap ends it before; so the step is long enough for the cone to be left through
    # the ball, where it is fast.
    rng = np.random.default_rng(0)
    step_size, cap = (5.0, 400) if isinstance(domain, Polyhedron) else (0.3, 30_000)
    for _ in range(2):
        x, gradient = domain.project(rng.normal(size=DIM)).point, rng.normal(size=DIM)
        end = slid(domain, gradient, x, gap=1e-10, max_inner=cap, step_size=step_size)

        exact = domain.project(x - step_size * gradient).point
        np.testing.assert_allclose(end.point, exact, atol=1e-4)
        assert domain.contains(end.point)


@every_domain
def test_the_gap_bounds_the_distance_from_the_projection(domain: Domain) -> None:
    rng = np.random.default_rng(1)
    for gap in (1e-1, 1e-2, 1e-3):
        x, gradient = domain.project(rng.normal(size=DIM)).point, rng.normal(size=DIM)
        end = slid(domain, gradient, x, gap=gap, max_inner=20_000)

        exact = domain.project(x - 0.3 * gradient).point
        assert end.is_exact
        assert np.square(end.point - exact).sum() / 0.6 <= gap + 1e-9


def test_the_cap_is_respected_and_reported() -> None:
    ball = DOMAINS["l1 ball"]
    x, gradient = np.zeros(DIM), np.array([-1.0, -1.1, -1.2, 0.3])

    for cap in (1, 2, 7):
        end = slid(ball, gradient, x, gap=1e-14, max_inner=cap)
        assert end.n_inner == cap
        assert not end.is_exact
        assert ball.contains(end.point)


def test_the_minimisations_that_were_made_are_counted() -> None:
    calls, ball = [], L1Ball(dim=DIM, radius=1.0)

    class Counted:
        def lmo(self, gradient: FloatArray, hint: IntArray) -> Solution:
            calls.append(gradient)
            return ball.lmo(gradient)

    counted: Any = Counted()
    gradient = np.array([-1.0, -1.1, 0.0, 0.0])
    end = slid(counted, gradient, np.zeros(DIM), gap=1e-3, max_inner=10_000)

    assert end.is_exact
    assert len(calls) == end.n_inner > 1
    # At the gradient of the inner problem where the loop is, not at the one it began.
    assert len({call.tobytes() for call in calls}) > 2


def test_a_point_that_is_optimal_already_stays_and_costs_one_minimisation() -> None:
    ball = DOMAINS["l2 ball"]
    x = np.array([1.0, 0.0, 0.0, 0.0])
    end = slid(ball, np.array([-5.0, 0.0, 0.0, 0.0]), x, gap=1e-12, max_inner=50)

    np.testing.assert_array_equal(end.point, x)
    assert (end.n_inner, end.is_exact) == (1, True)


def test_the_hint_is_handed_from_one_minimisation_to_the_next() -> None:
    cone = pairwise_cone()
    hints: list[object] = [NO_INDICES.tolist()]

    class Noted:
        def lmo(self, gradient: FloatArray, hint: IntArray) -> Solution:
            assert hint.tolist() == hints[-1]
            found = cone.lmo(gradient, hint)
            hints.append(found.active.tolist())
            return found

    noted: Any = Noted()
    end = slid(
        noted, np.array([1.0, -1.0, 0.5, 0.0]), np.zeros(DIM), gap=1e-6, max_inner=20
    )

    assert end.active.tolist() == hints[-1]
    assert len(hints) == 1 + end.n_inner
    assert any(hints)


# ------------------------------------------------------------------------- the measures


@every_domain
def test_both_measures_are_zero_at_the_optimum_and_positive_elsewhere(
    domain: Domain,
) -> None:
    target = np.array([2.0, -1.0, 0.4, 0.0])
    optimum = domain.project(target).point
    elsewhere = domain.feasible_start()

    assert abs(frank_wolfe_gap(domain, optimum, optimum - target)) < 1e-8
    assert gradient_mapping(domain, optimum, optimum - target, 0.1) < 1e-7
    assert frank_wolfe_gap(domain, elsewhere, elsewhere - target) > 1e-3
    assert gradient_mapping(domain, elsewhere, elsewhere - target, 0.1) > 1e-3


def test_inside_the_set_the_gradient_mapping_is_the_length_of_the_gradient() -> None:
    ball = L2Ball(dim=2, radius=10.0)
    gradient = np.array([3.0, 4.0])

    assert gradient_mapping(ball, np.zeros(2), gradient, 0.1) == pytest.approx(5.0)
    assert frank_wolfe_gap(ball, np.zeros(2), gradient) == pytest.approx(50.0)


def test_the_frank_wolfe_gap_bounds_what_can_be_gained() -> None:
    target, ball = np.array([2.0, 1.0, 0.0, 0.0]), DOMAINS["l1 ball"]
    best = 0.5 * np.square(ball.project(target).point - target).sum()

    for x in 0.2 * np.random.default_rng(5).normal(size=(20, DIM)):
        gained = 0.5 * np.square(x - target).sum() - best
        assert gained <= frank_wolfe_gap(ball, x, x - target) + 1e-12
