"""The projection onto the simplex: exact, at every scale and length."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from dszog.contract.arrays import FloatArray
from dszog.errors import InputError
from dszog.maths.distribution import project_onto_simplex, project_with_background
from tests.runs import Record

HUGE = 10**12

unit_vectors = hnp.arrays(
    np.float64, st.integers(1, 60), elements=st.floats(-1, 1, allow_subnormal=False)
)
scales = st.integers(-300, 300).map(lambda exponent: 10.0**exponent)
scaled_vectors = st.builds(lambda vector, scale: scale * vector, unit_vectors, scales)
any_vectors = hnp.arrays(
    np.float64,
    st.integers(1, 60),
    elements=st.floats(allow_nan=False, allow_infinity=False),
)


def kkt_residual(values: FloatArray, projected: FloatArray) -> float:
    """How far `projected` is from ``max(values - theta, 0)`` for every theta."""
    with np.errstate(over="ignore"):  # a gap of -inf is far enough below the top
        gaps = values - values.max()
    top = projected[np.argmax(values)]
    return float(np.abs(projected - np.maximum(gaps + top, 0.0)).max())


def is_projection(values: FloatArray, projected: FloatArray) -> bool:
    m = len(values)
    return bool(
        projected.shape == values.shape
        and (projected >= 0.0).all()
        and abs(projected.sum() - 1.0) <= min(1e-12 * math.sqrt(m), 1e-9)
        and kkt_residual(values, projected) <= 1e-9
    )


def exact_projection_with_background(
    values: Sequence[float], background: float, n_background: int
) -> tuple[list[Fraction], Fraction]:
    """Lower the threshold past one entry after the other until the sum is one."""
    entries = [(Fraction(value), 1) for value in values]
    if n_background:
        entries.append((Fraction(background), n_background))
    total, count, threshold = Fraction(-1), 0, Fraction(0)
    for value, multiplicity in sorted(entries, reverse=True):
        if count and value <= threshold:
            break
        total += value * multiplicity
        count += multiplicity
        threshold = total / count
    return (
        [max(Fraction(value) - threshold, Fraction(0)) for value in values],
        max(Fraction(background) - threshold, Fraction(0)),
    )


def vectors_of_all_scales(n_vectors: int) -> list[FloatArray]:
    rng = np.random.default_rng(20_000)
    sizes = rng.integers(1, 101, size=n_vectors)
    scales = 10.0 ** rng.uniform(-3, 18, size=n_vectors)
    return [
        scale * rng.standard_normal(size)
        for size, scale in zip(sizes, scales, strict=True)
    ]


def test_20_000_vectors_of_scale_1e_minus_3_to_1e18_are_projected_without_a_failure(
    record_property: Record,
) -> None:
    vectors = vectors_of_all_scales(20_000)
    n_failures = sum(not is_projection(v, project_onto_simplex(v)) for v in vectors)
    record_property("failures of 20,000", n_failures)
    assert n_failures == 0


@given(st.one_of(scaled_vectors, any_vectors))
def test_the_projection_is_that_of_rational_arithmetic(values: FloatArray) -> None:
    weights, _ = exact_projection_with_background(values.tolist(), 0.0, 0)
    exact = [float(weight) for weight in weights]
    projected = project_onto_simplex(values)
    np.testing.assert_allclose(projected, exact, rtol=0, atol=1e-13)
    assert is_projection(values, projected)


@pytest.mark.parametrize("m", [1, 2, 1_000, 10**6])
def test_equal_values_are_projected_to_equal_weights(m: int) -> None:
    weights = project_onto_simplex(np.full(m, 12.5))
    np.testing.assert_allclose(weights, np.full(m, 1 / m), rtol=1e-13)


def test_a_million_nearly_equal_values_keep_their_differences() -> None:
    m = 10**6
    differences = 1e-9 * np.random.default_rng(0).standard_normal(m)
    values = 1.0 + differences  # all stay positive: the projection is a shift
    weights = project_onto_simplex(values)
    assert is_projection(values, weights)
    shifted = values - 1.0
    np.testing.assert_allclose(
        weights, 1 / m + (shifted - math.fsum(shifted) / m), rtol=0, atol=1e-19
    )


@pytest.mark.parametrize("m", [100, 20_000, 10**6])
@pytest.mark.parametrize("top", [0.1, 0.5, 0.9])
def test_one_value_above_many_gets_its_exact_weight(m: int, top: float) -> None:
    # The many sit just above the threshold, and the rounding of a running sum over
    # them would fall on the one: 1e-9 of it at m = 20,000, and 1e-5 at a million.
    rest = (1.0 - top) / (m - 1) - top
    exact, exact_rest = exact_projection_with_background([0.0], rest, m - 1)
    weights = project_onto_simplex(np.append(0.0, np.full(m - 1, rest)))
    assert weights[0] == pytest.approx(float(exact[0]), rel=0, abs=1e-12)
    np.testing.assert_allclose(weights[1:], float(exact_rest), rtol=1e-9)


def test_single_precision_values_are_projected_in_double_precision() -> None:
    values = (-0.9 + 1e-6 * np.random.default_rng(0).random(10**5)).astype(np.float32)
    values[0] = 0.0
    single = project_onto_simplex(values)  # type: ignore[arg-type]
    assert single.dtype == np.float64
    double = project_onto_simplex(values.astype(np.float64))
    np.testing.assert_allclose(single, double, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    "values",
    [[], [math.nan], [0.0, math.nan, 1.0], [math.inf], [0.0, -math.inf]],
    ids=str,
)
def test_what_is_not_a_vector_of_finite_numbers_is_refused(values: list[float]) -> None:
    with pytest.raises(InputError, match="at least one finite number, got array"):
        project_onto_simplex(np.array(values))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_values_or_a_background_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(InputError, match="finite"):
        project_with_background(np.array([0.5, bad]), 0.0, 4)
    with pytest.raises(InputError, match="finite"):
        project_with_background(np.array([0.5]), bad, 4)
    with pytest.raises(InputError, match="at least one finite number"):
        project_with_background(np.empty(0), 0.0, 0)


def around(
    background: float, excess: FloatArray, mass: float
) -> tuple[FloatArray, float]:
    """Return values of which those above the background exceed it by `mass` in sum."""
    above = np.maximum(excess, 0.0).sum()
    return background + (mass / above if above > 1e-9 else 1.0) * excess, background


# The background keeps a part of the weight if this sum is below 1.
masses = st.one_of(
    st.sampled_from([1e-12, 1e-3, 1.0 - 1e-9, 1.0, 1.0 + 1e-9, 1e9]), st.floats(0.01, 2)
)
backgrounds = st.builds(
    around,
    st.one_of(st.just(0.0), st.floats(-2, 2)),
    hnp.arrays(np.float64, st.integers(0, 40), elements=st.floats(-1, 1)),
    masses,
)
backgrounds_of_every_scale = st.builds(
    lambda values, background, scale: (scale * values, scale * background),
    hnp.arrays(np.float64, st.integers(0, 40), elements=st.floats(-1, 1)),
    st.floats(-1, 1),
    scales,
)


@given(
    st.one_of(backgrounds, backgrounds_of_every_scale),
    st.one_of(st.integers(0, 5), st.integers(0, 2_000)),
)
def test_a_background_is_projected_like_the_long_vector_it_stands_for(
    entries: tuple[FloatArray, float], n_background: int
) -> None:
    values, background = entries
    if not len(values):
        n_background += 1
    weights, rest = project_with_background(values, background, n_background)
    long = project_onto_simplex(
        np.concatenate([values, np.full(n_background, background)])
    )
    np.testing.assert_allclose(weights, long[: len(values)], rtol=0, atol=1e-13)
    if n_background:
        np.testing.assert_allclose(rest, long[len(values) :], rtol=0, atol=1e-13)
    else:
        assert rest == 0.0


@given(backgrounds, st.sampled_from([2**31 - 1, 2**31 + 1, HUGE]))
def test_a_trillion_background_entries_are_projected_exactly(
    entries: tuple[FloatArray, float], n_background: int
) -> None:
    values, background = entries
    weights, rest = project_with_background(values, background, n_background)
    exact, exact_rest = exact_projection_with_background(
        values.tolist(), background, n_background
    )
    np.testing.assert_allclose(
        weights, [float(weight) for weight in exact], rtol=0, atol=1e-13
    )
    assert abs(float((Fraction(rest) - exact_rest) * n_background)) <= 1e-13
    assert weights.sum() + n_background * rest == pytest.approx(1.0, abs=1e-13)
