"""Conditional gradient sliding, and the two measures of stationarity."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from dszog.contract import NO_INDICES
from dszog.maths.subproblems import (
    Box,
    Domain,
    L1Ball,
    L2Ball,
    Polyhedron,
    Simplex,
    slide,
)

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


slid = partial(slide, hint=NO_INDICES)


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
        end = slid(domain, gradient, x, step_size=0.3, gap=gap, max_inner=20_000)
        exact = domain.project(x - 0.3 * gradient).point
        assert end.is_exact
        assert np.square(end.point - exact).sum() / 0.6 <= gap + 1e-9


def test_the_cap_is_respected_and_reported() -> None:
    ball = DOMAINS["l1 ball"]
    x, gradient = np.zeros(DIM), np.array([-1.0, -1.1, -1.2, 0.3])
    for cap in (1, 2, 7):
        end = slid(ball, gradient, x, step_size=0.3, gap=1e-14, max_inner=cap)
        assert end.n_inner == cap
        assert not end.is_exact
        assert ball.contains(end.point)
