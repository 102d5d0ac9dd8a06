"""Directions and differences: exact where an exact answer exists."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dszog.contract.arrays import FloatArray
from dszog.maths.gradients import (
    DIRECTIONS,
    Directions,
    central_difference,
    draw_directions,
    forward_difference,
)
from dszog.maths.random_stream import stream

KINDS: tuple[Directions, ...] = get_args(Directions)
COMPLETE: tuple[Directions, ...] = ("orthogonal", "coordinate")

each_kind = pytest.mark.parametrize("kind", KINDS)


def test_there_are_five_kinds_of_directions() -> None:
    independent = "gaussian", "sphere"
    assert KINDS == DIRECTIONS == (*independent, *COMPLETE, "rademacher")


@each_kind
@pytest.mark.parametrize("n_directions", [1, 2, 5, 7, 12])
def test_as_many_are_drawn_as_asked_for(kind: Directions, n_directions: int) -> None:
    directions = draw_directions(stream(0, 0), kind, n_directions, 5)
    assert directions.shape == (n_directions, 5)
    assert np.isfinite(directions).all()


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("dim", [1, 2, 9])
def test_directions_have_the_length_root_dim(kind: Directions, dim: int) -> None:
    directions = draw_directions(stream(0, 1), kind, 11, dim)
    lengths = np.linalg.norm(directions, axis=1)
    np.testing.assert_allclose(lengths, math.sqrt(dim), rtol=1e-14)


@pytest.mark.parametrize("kind", COMPLETE)
@pytest.mark.parametrize("n_directions", [3, 5, 8, 15])
def test_directions_of_one_set_are_orthogonal_and_a_new_set_starts_every_dim(
    kind: Directions, n_directions: int
) -> None:
    directions = draw_directions(stream(0, 2), kind, n_directions, 5)
    for first in range(0, n_directions, 5):
        block = directions[first : first + 5]
        np.testing.assert_allclose(
            block @ block.T, 5 * np.eye(len(block)), rtol=0, atol=1e-13
        )


def test_coordinate_directions_are_positive_multiples_of_unit_vectors() -> None:
    directions = draw_directions(stream(0, 3), "coordinate", 6, 6)
    np.testing.assert_array_equal(directions.max(axis=1), math.sqrt(6))
    np.testing.assert_array_equal(np.sort(directions.argmax(axis=1)), np.arange(6))
    assert np.count_nonzero(directions) == 6


numbers = st.floats(-100, 100, allow_subnormal=False)
radii = st.sampled_from([1e-3, 0.1, 1.0, 10.0])


def values_around(
    coefficients: FloatArray, matrix: FloatArray, x: FloatArray, steps: FloatArray
) -> FloatArray:
    """Return ``c x + x A x / 2`` at `x` and at ``x + steps``."""
    points = np.concatenate([x[np.newaxis], x + steps])
    quadratic = np.einsum("ki,ij,kj->k", points, matrix, points) / 2
    values: FloatArray = points @ coefficients + quadratic
    return values


@given(
    kind=st.sampled_from(COMPLETE),
    dim=st.integers(1, 8),
    n_sets=st.integers(1, 3),
    seed=st.integers(0, 2**32 - 1),
    radius=radii,
    curved=st.booleans(),
)
def test_complete_sets_are_exact_for_linear_functions_and_both_ways_for_quadratics(
    kind: Directions, dim: int, n_sets: int, seed: int, radius: float, curved: bool
) -> None:
    rng = np.random.default_rng(seed)
    coefficients, x = rng.standard_normal((2, dim))
    half = rng.standard_normal((dim, dim))
    matrix = curved * (half + half.T)
    directions = draw_directions(rng, kind, n_sets * dim, dim)
    both = radius * np.concatenate([directions, -directions])
    values = values_around(coefficients, matrix, x, both)
    gradient, atol = coefficients + matrix @ x, 1e-9 if curved else 1e-11
    central = central_difference(values, directions, radius)
    np.testing.assert_allclose(central, gradient, rtol=0, atol=atol)
    if not curved:
        forward = forward_difference(values[: 1 + n_sets * dim], directions, radius)
        np.testing.assert_allclose(forward, gradient, rtol=0, atol=atol)
