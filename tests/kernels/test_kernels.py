"""Every compiled kernel does what its plain form does."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import dszog
from dszog import kernels
from dszog.contract import Calls, ProblemSize, Query, Reply, cost
from dszog.contract.arrays import FloatArray, frozen_ints
from dszog.errors import DszogError
from dszog.kernels import plain
from dszog.kernels.projection import project_with_background
from dszog.kernels.tables import EXACT, Draw, DualStep
from dszog.maths.distribution import SparseDistribution
from dszog.maths.gradients import DIRECTIONS
from dszog.maths.penalties import violations
from dszog.maths.random_stream import (
    CHECK,
    distinct_indices,
    lent_stream,
    normals_and_uniforms,
    stream,
)
from dszog.problem.data_rows import DataRows

pytest.importorskip("numba")

from dszog.kernels import _draws, _philox, _steps, compiled
from dszog.methods.at_once import draw_at_once, step_at_once
from tests.runs import by_dszog, said_by, size_of

AGREEMENT = 1e-12  # of weights, which sum to 1

seeds = st.integers(0, 2**32 - 1)


@contextmanager
def without_compiled_ones() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kernels.SWITCH, "numpy")
        kernels.chosen.cache_clear()
        yield
    kernels.chosen.cache_clear()


def functions(module: Any) -> dict[str, inspect.Signature]:
    return {
        name: inspect.signature(found)
        for name, found in vars(module).items()
        if inspect.isfunction(found)
        and found.__module__ == module.__name__
        and not name.startswith("_")
    }


PARTS = {"combine", "weights_of", "background", "merged"}  # of plain ones
AT_ONCE = {"draw", "step"}  # of an iteration: the method makes them one by one


def test_both_implementations_have_the_same_functions() -> None:
    own = functions(compiled)
    del own["say_what_takes_time"]
    others = functions(plain)
    assert set(own) - set(others) == AT_ONCE
    assert {name: own[name] for name in own if name not in AT_ONCE} == {
        name: others[name] for name in others if name not in PARTS
    }
    every = [*own.values(), *map(inspect.signature, PYTHON_FORMS)]
    assert max(len(signature.parameters) for signature in every) <= 15


PYTHON_FORMS = [
    found.py_func
    for module in (_draws, _steps, _philox)
    for found in vars(module).values()
    if hasattr(found, "py_func")
]


def some_steps(centred: bool, adaptive: bool, share: float) -> DualStep:
    return DualStep(
        step_size=0.01, averaging=share, mixing=1.0 - share / 2, penalty=30.0,
        ridge=1e-6, step_eps=1e-8, adaptive=adaptive, centred=centred,
    )  # fmt: skip


def sparse_weights(n_constraints: int) -> SparseDistribution:
    nothing = np.empty(0, dtype=np.int64), np.empty(0)
    return SparseDistribution.from_weights(n_constraints, *nothing)


@given(
    seed=seeds,
    n_constraints=st.sampled_from([3, 40, 10**4, 10**12]),
    size=st.floats(1e-8, 1e6),
    share=st.floats(0.05, 1.0),
    centred=st.booleans(),
    adaptive=st.booleans(),
)
def test_the_compiled_dual_step_is_the_plain_one(
    seed: int,
    n_constraints: int,
    size: float,
    share: float,
    centred: bool,
    adaptive: bool,
) -> None:
    rng = np.random.default_rng(seed)
    step = some_steps(centred, adaptive, share)
    both = [sparse_weights(n_constraints)] * 2
    for i in range(25):
        indices = distinct_indices(rng, n_constraints, min(20, n_constraints))
        penalties = size * np.maximum(rng.standard_normal(len(indices)) - 0.5, 0.0)
        penalties *= i % 7 != 3  # now and then nothing is violated
        asked = indices, penalties, step, n_constraints / len(indices)
        for k, module in enumerate((compiled, plain)):
            both[k] = module.learn(both[k], *asked)
        assert_alike(*both)


def assert_alike(one: SparseDistribution, other: SparseDistribution) -> None:
    """Compare on the union of the touched: what merges when may differ by rounding."""
    union = np.union1d(one.indices, other.indices)
    weights = [plain.weights_of(each, union) for each in (one, other)]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-9, atol=AGREEMENT)
    rest = [each.n_background * each.background_weight for each in (one, other)]
    assert rest[0] == pytest.approx(rest[1], rel=1e-9, abs=AGREEMENT)
    total = float(one.weights.sum()) + rest[0]
    assert total == pytest.approx(1.0, abs=1e-12)
    assert (one.weights >= 0.0).all()
    assert not one.weights.flags.writeable


@given(
    seed=seeds,
    scale=st.sampled_from([1e-300, 1e-12, 1e-3, 1.0, 1e6, 1e17, 1e150, 1e300]),
    k=st.integers(0, 60),
    n_background=st.sampled_from([0, 1, 7, 10**12]),
)
def test_the_compiled_projection_is_the_plain_one(
    seed: int, scale: float, k: int, n_background: int
) -> None:
    if k + n_background == 0:
        return
    rng = np.random.default_rng(seed)
    values, background = scale * rng.standard_normal(k), scale * rng.standard_normal()
    expected, rest = project_with_background(values, background, n_background)
    found = values.copy()
    lifted = _steps._project(found, background, n_background)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=AGREEMENT)
    assert lifted == pytest.approx(rest, rel=1e-9, abs=AGREEMENT)
    assert found.sum() + n_background * lifted == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("module", [plain, compiled])
@pytest.mark.parametrize(
    ("penalty", "changes"),
    [(np.inf, {}), (1.0, {"step_size": 1e300, "penalty": 1e100})],
)
def test_a_step_that_is_not_finite_is_none(
    module: Any, penalty: float, changes: dict[str, Any]
) -> None:
    step = some_steps(centred=False, adaptive=False, share=1.0)._replace(**changes)
    drawn = np.array([1]), np.array([penalty])
    assert module.learn(sparse_weights(10), *drawn, step, 10.0) is None
    with pytest.raises(DszogError, match="finite"):
        sparse_weights(10).learn(*drawn, step, 10.0)


@given(seed=seeds, k=st.integers(0, 50), rest=st.sampled_from([0.0, 1e-9, 0.7]))
def test_compiled_places_are_the_plain_ones(seed: int, k: int, rest: float) -> None:
    rng = np.random.default_rng(seed)
    weights = rng.random(k) * (rng.random(k) > 0.3)
    uniforms = np.sort(np.append(rng.random(40), [0.0, np.nextafter(1.0, 0.0)]))
    found, expected = (m.places(weights, rest, uniforms) for m in (compiled, plain))
    if weights.sum() + rest == 0.0:
        assert found is expected is None
        return
    assert found is not None
    np.testing.assert_array_equal(found, expected)
    assert (np.append(weights, rest)[found] > 0.0).all()


@given(st.lists(st.integers(0, 30), max_size=60), st.booleans())
def test_repeats_are_found(indices: list[int], ascending: bool) -> None:
    given_indices = frozen_ints(sorted(indices) if ascending else indices)
    query = Query.at(np.zeros(1), iteration=0, constraints=given_indices)
    distinct, places = query.distinct_constraints
    np.testing.assert_array_equal(distinct, np.unique(given_indices))
    back = distinct if places is None else distinct[places]
    np.testing.assert_array_equal(back, given_indices)
    assert not distinct.flags.writeable


# ------------------------------------------------------- both halves of an iteration
def some_weights(rng: np.random.Generator, m: int, rest: float) -> Any:
    touched = distinct_indices(rng, m, min(m, 12))
    weights = rng.random(len(touched)) * (rng.random(len(touched)) > 0.3)
    weights[0] += 1e-3
    rest = rest if len(touched) < m else 0.0
    return touched, (1.0 - rest) * weights / weights.sum()


@given(
    seed=seeds,
    n_losses=st.sampled_from([1, 2, 81]),
    whole=st.booleans(),
    n_constraints=st.sampled_from([1, 30, 101, 10**5, 10**12]),
    batches=st.tuples(*[st.integers(1, 40)] * 3),
    rest=st.sampled_from([0.0, 1e-3, 0.6]),
    directions=st.sampled_from(DIRECTIONS[:4]),  # rademacher draws no arrays
)
def test_all_that_is_drawn_is_the_same_to_the_bit(
    seed: int,
    n_losses: int,
    whole: bool,
    n_constraints: int,
    batches: tuple[int, int, int],
    rest: float,
    directions: Any,
) -> None:
    rng = np.random.default_rng(seed)
    size = size_of(4, n_losses, n_constraints)
    method = dszog.DSZOG(
        loss_batch=n_losses if whole else min(batches[0], max(n_losses // 2, 1)),
        constraint_batch=batches[1],
        dual_batch=min(batches[2], max(n_constraints // 2, 1)),
        directions=directions,
    )
    weights = some_weights(rng, n_constraints, rest)
    state = method.init(rng.standard_normal(4), size, seed, weights)
    assert draw_at_once(method, state) is not None
    apart = replace(method)
    found = method.ask(state)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dszog.methods.dszog.draw_at_once", lambda *_: None)
        expected = apart.ask(state)
    with without_compiled_ones():
        plainly = apart.ask(state)
    for one, *others in zip(found, expected, plainly, strict=True):
        assert (one.iteration, one.want, one.paired) == (0, "values", False)
        distinct, places = one.distinct_constraints
        back = distinct if places is None else distinct[places]
        np.testing.assert_array_equal(back, one.constraints)
        for other in others:
            for name in ("x", "steps", "losses", "constraints"):
                if name == "steps" and directions == "rademacher":
                    continue  # named, not held: the points below tell
                array = getattr(one, name)
                if name != "steps" or directions != "orthogonal":  # to rounding
                    np.testing.assert_array_equal(array, getattr(other, name))
                assert not array.flags.writeable
            assert cost([one], size) == cost([other], size)
            np.testing.assert_array_equal(distinct, other.distinct_constraints[0])
        same = others[0].points(size)  # of the same directions
        np.testing.assert_array_equal(one.points(size), same)


@pytest.mark.parametrize(
    ("changes", "size"),
    [
        ({"distribution": "dense"}, size_of(3, 100, 100)),
        ({"distribution": "uniform"}, size_of(3, 100, 100)),
        ({"loss_batch": 51}, size_of(3, 100, 100)),
        ({"dual_batch": 51}, size_of(3, 100, 100)),
        ({}, replace(size_of(3, 100, 100), calls=Calls.of_width(2, 100))),
    ],
)
def test_what_cannot_be_drawn_at_once_is_drawn_apart(
    changes: dict[str, Any], size: ProblemSize
) -> None:
    settings = {"loss_batch": 10, "constraint_batch": 10, "dual_batch": 10}
    method = dszog.DSZOG(**(settings | changes))
    weights = np.array([3]), np.array([1.0])
    state = method.init(np.zeros(3), size, 1, weights)
    assert draw_at_once(method, state) is None
    assert len(method.ask(state)[0].losses) == changes.get("loss_batch", 10)


def test_weights_that_are_none_are_refused() -> None:
    method = dszog.DSZOG(loss_batch=2, dual_batch=2)
    weights = np.array([3]), np.array([1.0])
    state = method.init(np.zeros(2), size_of(2, 10, 10), 1, weights)
    assert isinstance(state.distribution, SparseDistribution)
    broken = replace(state.distribution, weights=np.array([np.nan]))
    with pytest.raises(DszogError, match="finite and not all 0"):
        method.ask(replace(state, distribution=broken))


@given(
    seed=seeds,
    shape=st.tuples(*[st.integers(1, 9)] * 4),
    adaptive=st.booleans(),
    first=st.booleans(),
    estimate=st.sampled_from(["plain", "centred", "combined"]),
    bounded=st.booleans(),
)
def test_both_compiled_steps_are_the_plain_ones(
    seed: int,
    shape: tuple[int, int, int, int],
    adaptive: bool,
    first: bool,
    estimate: Any,
    bounded: bool,
) -> None:
    n_directions, n_losses, n_constraints, dim = shape
    rng = np.random.default_rng(seed)
    method = dszog.DSZOG(
        n_directions=n_directions,
        directions="gaussian",
        adaptive=adaptive,
        radius=1e-2,
        dual_estimate=estimate,
        dual_batch=max(n_constraints // 3, 1),  # not all: chances would be 1
    )
    size = size_of(dim, n_losses, n_constraints)
    if bounded:
        size = replace(size, upper=np.full(dim, 0.1))
    weights = some_weights(rng, n_constraints, 0.2)
    state = method.init(rng.standard_normal(dim), size, 3, weights)
    if not first:
        velocity = rng.standard_normal(dim)
        state = replace(state, iteration=5, velocity=velocity)
    queries = method.ask(state)
    replies = []
    for query in queries:
        both = query.losses, query.constraints
        shapes = [(len(query.steps) + 1, len(asked)) for asked in both]
        losses, constraints = map(rng.standard_normal, shapes)
        replies.append(Reply(losses, constraints))
    at_once = step_at_once(method, state, queries, replies)
    assert at_once is not None
    with without_compiled_ones():
        assert step_at_once(method, state, queries, replies) is None
        other = method._step(state, queries, replies)
    for one, another in zip(at_once[:2], other[:2], strict=True):
        np.testing.assert_allclose(one, another, rtol=1e-9, atol=1e-8)
        assert not one.flags.writeable
    assert isinstance(at_once[2], SparseDistribution)
    assert isinstance(other[2], SparseDistribution)
    assert_alike(at_once[2], other[2])
    seen, others_seen = at_once[3][:4], other[3][:4]  # the sampled values
    np.testing.assert_allclose(seen, others_seen, rtol=1e-9, atol=1e-8)
    moved, info = method.tell(state, queries, replies)
    np.testing.assert_array_equal(moved.x, at_once[0])
    assert isinstance(moved.distribution, SparseDistribution)
    assert info.n_touched == len(moved.distribution.indices)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=20))
def test_violations_are_counted_alike(values: list[float]) -> None:
    array = np.array(values, dtype=float)
    found = violations(array)
    over = np.maximum(array, 0.0)
    assert found.worst == over.max(initial=0.0)
    assert found.share == (array > 0.0).mean()
    assert found.mean == pytest.approx(over.mean())
    np.testing.assert_array_equal(found.penalties, over * over)


@given(
    seed=seeds,
    n=st.one_of(st.integers(1, 400), st.integers(10**6, EXACT)),
    share=st.floats(0, 1),
    kept=st.sampled_from([1.0, 1.0, 0.5]),
)
def test_compiled_draws_are_the_plain_ones(
    seed: int, n: int, share: float, kept: float
) -> None:
    size = max(int(share * min(n, 150)), 1)
    n_numbers = max(int(kept * Draw.of(n, size).n_numbers), size)
    uniforms = stream(seed, 0).random(n_numbers)
    found = compiled.distinct_indices(uniforms, n, size)
    expected = plain.distinct_indices(uniforms, n, size)
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        np.testing.assert_array_equal(found, expected)
    drawn = distinct_indices(stream(seed, 0), n, size)
    assert (np.diff(drawn) > 0).all()
    assert len(drawn) == size
    assert 0 <= drawn[0] <= drawn[-1] < n


def test_a_lent_stream_draws_what_a_stream_draws() -> None:
    for seed, iteration in [(0, 0), (5, 3), (2**32, 10**6), (5, 3)]:
        lent = lent_stream(seed, iteration)
        assert lent.standard_normal() == stream(seed, iteration).standard_normal()
        lent.integers(3, size=5)  # leaves half a word behind


@given(
    seed=st.one_of(seeds, st.integers(2**63 - 3, 2**64 - 1)),
    iteration=st.integers(0, 2**40),
    shape=st.tuples(st.integers(0, 40), st.integers(1, 40)),
    n_uniforms=st.integers(0, 60),
)
def test_compiled_numbers_are_those_of_the_stream(
    seed: int, iteration: int, shape: tuple[int, int], n_uniforms: int
) -> None:
    numbers_of_the_stream(seed, iteration, shape, n_uniforms)


def numbers_of_the_stream(
    seed: int, iteration: int, shape: tuple[int, int], n_uniforms: int
) -> FloatArray:
    """Compare the numbers, and return the normal ones."""
    normals, uniforms = normals_and_uniforms(seed, iteration, shape, n_uniforms)
    rng = stream(seed, iteration)
    np.testing.assert_array_equal(normals, rng.standard_normal(shape))
    np.testing.assert_array_equal(uniforms, rng.random(n_uniforms))
    return normals


def test_two_million_numbers_are_those_of_the_stream() -> None:
    # Every layer, some 500 numbers of the tail, and places where words are rejected.
    normals = numbers_of_the_stream(3, 4, (1000, 2000), 1000)
    assert np.abs(normals).max() > 4.5  # beyond where the tail begins


def test_too_few_words_for_the_numbers_are_noticed() -> None:
    normals, uniforms = np.empty((10, 123)), np.empty(0)
    for n_words in (*range(0, 300, 4), 1228):
        words = np.empty(n_words, np.uint64)
        assert not _philox.numbers(0, 0, words, normals, uniforms)


def test_without_spare_words_draws_are_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dszog.kernels.compiled.SPARE_WORDS", -40)
    numbers_of_the_stream(1, 2, (10, 123), 7)


@given(seed=seeds, n=st.integers(0, 40), dim=st.integers(1, 30))
def test_compiled_directions_are_orthogonal(seed: int, n: int, dim: int) -> None:
    normals = np.random.default_rng(seed).standard_normal((n, dim))
    directions = np.empty((n, dim))
    _draws.orthogonal(normals.reshape(-1), directions)
    expected = plain.orthogonal(normals)
    for first in range(0, n, dim):
        own = directions[first : first + dim]
        gram = own @ own.T / dim
        np.testing.assert_allclose(gram, np.eye(len(own)), rtol=0, atol=1e-13)
        # Both are as far from the exact ones as the numbers are ill-conditioned.
        columns = normals[first : first + dim].reshape(dim, -1)
        rtol = 1e-14 * dim * np.linalg.cond(columns)
        error = np.abs(own - expected[first : first + dim]).max() / np.sqrt(dim)
        assert error <= rtol


# -------------------------------------------------------------------- scores of rows
def mostly_zeros(seed: int, n: int = 40, dim: int = 12) -> FloatArray:
    rng = np.random.default_rng(seed)
    matrix: FloatArray = rng.standard_normal((n, dim)) * (rng.random((n, dim)) < 0.15)
    return matrix


@given(seed=seeds, n_points=st.integers(1, 12))
def test_scores_of_sparse_rows_are_the_dense_ones(seed: int, n_points: int) -> None:
    X = mostly_zeros(seed)
    rng = np.random.default_rng(seed + 1)
    points, indices = rng.standard_normal((n_points, 12)), rng.integers(40, size=9)
    expected = points @ X[indices].T
    for matrix in (X, sparse.csr_array(X), sparse.coo_matrix(X)):
        rows = DataRows("test", "X", matrix)
        assert rows.sparse is not None
        np.testing.assert_allclose(rows.scores(points, indices), expected, atol=1e-12)
        np.testing.assert_allclose(rows.all_scores(points[0]), X @ points[0])
        np.testing.assert_array_equal(rows.dense(indices), X[indices])


def test_no_bit_of_a_score_depends_on_what_else_is_asked() -> None:
    X = mostly_zeros(3)
    rng = np.random.default_rng(0)
    points, indices = rng.standard_normal((11, 12)), np.arange(40)
    pairs = dszog.Constraints.pairwise(X[:15], X[15:], margin=0.1)
    rows = DataRows("test", "X", X)
    all_pairs = np.arange(len(pairs))
    together = rows.scores(points, indices), pairs.values(points, all_pairs)
    for k in range(11):
        alone = points[k : k + 1]
        np.testing.assert_array_equal(rows.scores(alone, indices)[0], together[0][k])
        found = pairs.values(alone, all_pairs[7:300])[0]
        np.testing.assert_array_equal(found, together[1][k, 7:300])


@given(seed=seeds, n_points=st.integers(1, 12), dim=st.integers(1, 40))
@pytest.mark.parametrize("is_sparse", [True, False])
def test_pairs_are_the_plain_ones(
    is_sparse: bool, seed: int, n_points: int, dim: int
) -> None:
    rng = np.random.default_rng(seed + 1)
    dense = np.asfortranarray(rng.standard_normal((40, dim)))
    dense = mostly_zeros(seed, dim=dim) if is_sparse else dense
    high = sparse.csr_array(dense[:15]) if is_sparse else dense[:15]
    points = rng.standard_normal((n_points, dim))
    pairs = dszog.Constraints.pairwise(high, dense[15:], margin=-0.1)
    indices = rng.integers(len(pairs), size=30)
    differences = dense[15:][indices % 25] - dense[:15][indices // 25]
    expected = points @ differences.T - 0.1
    found = pairs.values(points, indices)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(pairs.jacobian(points[0], indices), differences)
    worst = (dense[15:] @ points[0])[:, None] - dense[:15] @ points[0] - 0.1
    assert pairs.summary(points[0]).n_violated == int((worst > 0).sum())


# ------------------------------------------------------------------- the whole library
def test_a_run_with_kernels_is_the_run_without() -> None:
    X = mostly_zeros(5, n=60)
    y = np.where(X.sum(axis=1) > 0, 1.0, -1.0)

    def problem() -> dszog.Problem:
        losses = dszog.Losses.linear(X, y, lambda s, y: np.logaddexp(0.0, -y * s))
        pairs = dszog.Constraints.pairwise(X[y > 0], X[y < 0])
        return dszog.Problem(losses, pairs.black_box(), 12)

    found = by_dszog(problem(), seed=1, max_iterations=60)
    with without_compiled_ones():
        plain = by_dszog(problem(), seed=1, max_iterations=60)
    np.testing.assert_allclose(found.x, plain.x, atol=1e-7)
    assert found.nfev == plain.nfev


def test_importing_the_library_neither_loads_nor_compiles_anything() -> None:
    code = "import dszog, sys; sys.exit('numba' in sys.modules)"
    said_by("-c", code)


@pytest.mark.parametrize("seed", [0, 7, 2**63, 2**64 - 1])
@pytest.mark.parametrize("iteration", [0, 1, 2**40])
def test_a_stream_is_the_generator_with_that_key(seed: int, iteration: int) -> None:
    key = seed + (iteration << 64)
    reference = np.random.Generator(np.random.Philox(key=key))
    draws = stream(seed, iteration).standard_normal(50)
    np.testing.assert_array_equal(draws, reference.standard_normal(50))
    other = stream(seed, iteration, CHECK).standard_normal(50)
    assert not np.array_equal(draws, other)


# --------------------------------------------------------------- where it cannot work
def test_points_of_another_length_are_refused_not_read_beyond() -> None:
    X = mostly_zeros(0)
    losses = dszog.Losses.linear(sparse.csr_array(X), np.ones(40), lambda s, y: s * y)
    pairs = dszog.Constraints.pairwise(X[:15], X[15:])
    for dim in (2, 13):
        for values in (losses.values, pairs.values):
            with pytest.raises(dszog.InputError, match="must have 12 variables"):
                values(np.ones((3, dim)), np.arange(4))
    box = dszog.Constraints.linear(np.eye(2), 1.0)
    with pytest.raises(dszog.InputError, match="losses are in 12 variables"):
        dszog.Problem(losses, box, 2)


@pytest.mark.parametrize(
    "setting", [{"NUMBA_DISABLE_JIT": "1"}, {kernels.SWITCH: "numpy"}]
)
def test_without_compilation_the_plain_forms_are_used(setting: dict[str, str]) -> None:
    code = (
        "import dszog, numpy as np; from dszog import kernels\n"
        "assert kernels.chosen().NAME == 'plain'\n"
        "box = dszog.Constraints.linear(np.eye(2), 1.0).black_box()\n"
        "r = dszog.minimize(lambda x: x @ x, [3.0, 3.0], box, max_iterations=5)\n"
        "assert r.nit == 5\n"
    )
    said_by("-c", code, **setting)


def test_kernels_work_where_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    import numba

    from dszog.kernels import _compile

    right = numba.njit

    def njit(**options: Any) -> Any:
        if options.pop("cache", False):
            raise RuntimeError("cannot cache function: no locator available")
        return right(**options)

    monkeypatch.setattr(_compile, "numba", SimpleNamespace(njit=njit))

    def double(x: float) -> float:
        return 2.0 * x

    assert _compile.compiled(double)(3.0) == 6.0


@pytest.mark.parametrize("module", [plain, compiled])
def test_directions_that_are_kept_are_not_written_to(module: Any) -> None:
    x, signs = np.array([0.5, -1.0]), np.array([[1.0, -1.0], [-1.0, -1.0]])
    signs.setflags(write=False)
    steps, points = module.around(x, signs, 0.25)
    np.testing.assert_array_equal(signs, [[1.0, -1.0], [-1.0, -1.0]])
    np.testing.assert_array_equal(steps, 0.25 * signs)
    np.testing.assert_array_equal(points, np.vstack([x, x + 0.25 * signs]))
