"""Balls, boxes and simplices: closed forms against other ways to find the answer."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dszog import InputError
from dszog.contract.arrays import FloatArray
from dszog.maths.subproblems import Box, Domain, L1Ball, L2Ball, Polyhedron, Simplex

DIM = 4
DOMAINS: dict[str, Domain] = {
    "l2 ball": L2Ball(dim=DIM, radius=1.5),
    "l1 ball": L1Ball(dim=DIM, radius=1.5),
    "box": Box(lower=[-1.0, 0.0, -2.0, 0.5], upper=[1.0, 0.0, 3.0, 0.7]),
    "simplex": Simplex(dim=DIM, total=2.0),
}
every_domain = pytest.mark.parametrize("domain", DOMAINS.values(), ids=list(DOMAINS))

vectors = hnp.arrays(
    np.float64, DIM, elements=st.floats(-100, 100, allow_subnormal=False)
)


def corners(domain: Domain) -> FloatArray:
    """All corners of a set that has finitely many."""
    if isinstance(domain, Box):
        sides = zip(domain.lower, domain.upper, strict=True)
        return np.array(list(product(*sides)))
    eye = np.eye(domain.dim)
    if isinstance(domain, Simplex):
        return domain.total * eye
    assert isinstance(domain, L1Ball)
    return domain.radius * np.concatenate([eye, -eye])


def inside(domain: Domain, n: int) -> FloatArray:
    """Points of the set that fill it, made without any projection."""
    rng = np.random.default_rng(1)
    if isinstance(domain, L2Ball):
        normal = rng.standard_normal((n, domain.dim))
        lengths = np.sqrt(np.square(normal).sum(axis=1, keepdims=True))
        radii = domain.radius * rng.random((n, 1)) ** (1 / domain.dim)
        return np.asarray(radii * normal / lengths)
    shares = rng.dirichlet(np.full(len(corners(domain)), 0.3), size=n)
    return np.asarray(shares @ corners(domain))


@every_domain
@given(point=vectors)
def test_no_way_into_the_set_leads_nearer(domain: Domain, point: FloatArray) -> None:
    nearest = domain.project(point).point
    away = inside(domain, 200) - nearest
    assert domain.contains(nearest)
    assert (away @ (point - nearest)).max() <= 1e-9 * (1.0 + np.square(point).sum())


@every_domain
def test_a_point_of_the_set_stays_where_it_is(domain: Domain) -> None:
    for point in inside(domain, 50):
        np.testing.assert_allclose(domain.project(point).point, point, atol=1e-14)


@every_domain
@given(gradient=vectors)
def test_a_linear_minimiser_is_the_lowest(domain: Domain, gradient: FloatArray) -> None:
    lowest = domain.lmo(gradient).point
    if isinstance(domain, L2Ball):
        least = -domain.radius * np.linalg.norm(gradient)
    else:
        least = (corners(domain) @ gradient).min()
    assert domain.contains(lowest)
    assert gradient @ lowest == pytest.approx(least, abs=1e-12)


@every_domain
def test_no_two_points_are_farther_apart_than_the_diameter(domain: Domain) -> None:
    points = inside(domain, 300)
    apart = np.linalg.norm(points[:150] - points[150:], axis=1)
    assert apart.max() <= domain.diameter()
    if not isinstance(domain, L2Ball):
        ends = corners(domain)
        longest = np.linalg.norm(ends[:, np.newaxis] - ends, axis=2).max()
        assert domain.diameter() == pytest.approx(longest)


def test_a_violation_is_how_far_the_worst_constraint_is_exceeded() -> None:
    x = np.array([3.0, -4.0])
    assert L2Ball(dim=2, radius=2.0).violation(x) == 3.0
    assert L1Ball(dim=2, radius=2.0).violation(x) == 5.0
    assert Box(lower=[-1.0, -1.0], upper=[1.0, 1.0]).violation(x) == 3.0
    assert Simplex(dim=2).violation(x) == 4.0
    assert Simplex(dim=2).violation(np.array([3.0, 4.0])) == 6.0
    assert Box(lower=[-1.0, -np.inf], upper=[5.0, 1.0]).violation(x) == 0.0


@every_domain
def test_what_is_not_a_number_is_in_no_set(domain: Domain) -> None:
    assert not domain.contains(np.full(DIM, np.nan))
    polyhedron = Polyhedron.linear(np.eye(DIM), np.ones(DIM))
    assert not polyhedron.contains(np.full(DIM, np.nan))


def test_a_box_with_an_open_side_projects_but_has_no_lowest_point() -> None:
    box = Box(lower=[0.0, 0.0], upper=[1.0, np.inf])
    assert not box.is_bounded
    np.testing.assert_array_equal(box.project(np.array([-2.0, 9.0])).point, [0.0, 9.0])
    with pytest.raises(InputError, match="Box: a linear function has no least value"):
        box.lmo(np.array([1.0, 1.0]))


@pytest.mark.parametrize("scale", [1e-150, 1e-12, 1e-3, 1e3, 1e12, 1e150])
@every_domain
def test_a_linear_minimiser_does_not_depend_on_the_length_of_the_gradient(
    domain: Domain, scale: float
) -> None:
    gradient = np.array([3.0, -4.0, 1.0, 0.5])
    np.testing.assert_allclose(
        domain.lmo(scale * gradient).point, domain.lmo(gradient).point, rtol=1e-12
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e300])
def test_a_euclidean_ball_knows_vectors_of_any_length(scale: float) -> None:
    ball, far = L2Ball(dim=2, radius=10.0), scale * np.array([3.0, -4.0])
    np.testing.assert_allclose(ball.lmo(far).point, [-6.0, 8.0], rtol=1e-12)
    expected = [6.0, -8.0] if scale > 1.0 else far
    np.testing.assert_allclose(ball.project(far).point, expected, rtol=1e-12)


def test_the_sides_of_a_box_are_copies() -> None:
    lower = np.zeros(2)
    box = Box(lower=lower, upper=np.ones(2))
    lower[:] = -5.0
    np.testing.assert_array_equal(box.project(np.full(2, -9.0)).point, [0.0, 0.0])
