"""The sparse weights are the dense ones, at a cost that ignores the number of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from itertools import product
from typing import cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.distribution import DenseDistribution, DualStep, SparseDistribution
from dszog.maths.random_stream import distinct_indices, stream
from tests.runs import Record, learned

AGREEMENT = 1e-12  # the largest difference of a weight that is allowed
NONE = np.empty(0, dtype=np.int64)
SHARES = (0.1, 0.5, 0.9)  # the paper's choices of a and of b
PAIRS = list(product(SHARES, SHARES))


def published_step(*, mixing: float = 0.9, averaging: float = 0.9) -> DualStep:
    return DualStep(
        step_size=0.01, averaging=averaging, mixing=mixing, penalty=30.0, ridge=1e-6,
        step_eps=1e-8,
    )  # fmt: skip


def total(weights: SparseDistribution) -> float:
    rest = weights.n_background * weights.background_weight
    return float(weights.weights.sum() + rest)


def difference(sparse: SparseDistribution, dense: DenseDistribution) -> float:
    return float(np.abs(sparse.dense() - dense.dense()).max())


# ----------------------------------------------------------- dense and sparse: programs
@dataclass(frozen=True)
class Phase:
    """Some updates in which one part of the constraints is violated, or none is."""

    n_updates: int
    first: float  # where the violated part begins, and how long it is, in shares of m
    length: float
    penalty: float  # the size of the violated ones' penalties


@dataclass(frozen=True)
class Program:
    n_constraints: int
    batch: int
    seed: int
    start: str
    step: DualStep
    phases: tuple[Phase, ...]

    def starts(self) -> tuple[SparseDistribution, DenseDistribution]:
        m = self.n_constraints
        rng = np.random.default_rng(self.seed)
        indices = distinct_indices(rng, m, 1 + m // 4)
        values = rng.random(len(indices))
        if self.start == "weights":
            values *= (1.0 if len(values) == m else rng.random()) / values.sum()
            return (
                SparseDistribution.from_weights(m, indices, values),
                DenseDistribution.from_weights(m, indices, values),
            )
        if self.start == "equal":
            indices, values = NONE, np.empty(0)
        # A few penalties within 1 / scale of the largest share the first weights.
        scale = 10.0 ** rng.uniform(-2, 8)
        return (
            SparseDistribution.from_penalties(m, indices, values, scale),
            DenseDistribution.from_penalties(m, indices, values, scale),
        )

    def updates(self) -> Iterator[tuple[IntArray, FloatArray]]:
        rng = np.random.default_rng([self.seed, 1])
        m = self.n_constraints
        for phase in self.phases:
            for _ in range(phase.n_updates):
                indices = distinct_indices(rng, m, min(self.batch, m))
                inside = (indices / m - phase.first) % 1.0 < phase.length
                yield indices, inside * phase.penalty * rng.random(len(indices))


phases = st.builds(
    Phase,
    n_updates=st.integers(1, 40),
    first=st.floats(0, 1),
    length=st.sampled_from([0.0, 0.01, 0.1, 0.5, 1.0]),
    penalty=st.sampled_from([1e-12, 1e-6, 1e-3, 1.0, 100.0]),
)
steps = st.builds(
    DualStep,
    # Steps are kept to lengths (below about 1e3) at which a rounding of the values
    # that are projected is not itself larger than the agreement asked for.
    step_size=st.sampled_from([1e-4, 1e-2, 0.1]),
    averaging=st.sampled_from([*SHARES, 1.0]),
    mixing=st.sampled_from([*SHARES, 1.0]),
    penalty=st.sampled_from([0.1, 1.0]),
    ridge=st.sampled_from([1e-6, 1e-2]),
    step_eps=st.just(1e-8),
    adaptive=st.booleans(),
    centred=st.booleans(),
)
programs = st.builds(
    Program, n_constraints=st.integers(1, 2_000),
    batch=st.sampled_from([1, 7, 32, 128]), seed=st.integers(0, 2**32 - 1),
    start=st.sampled_from(["penalties", "weights", "equal"]), step=steps,
    phases=st.lists(phases, min_size=1, max_size=5).map(tuple),
)  # fmt: skip


@given(programs)
def test_sparse_equals_dense_whatever_is_learnt(program: Program) -> None:
    sparse, dense = program.starts()
    assert difference(sparse, dense) <= AGREEMENT
    for i, (indices, penalties) in enumerate(program.updates()):
        sparse = learned(sparse, indices, penalties, program.step, i == 0)
        dense = learned(dense, indices, penalties, program.step, i == 0)
        assert difference(sparse, dense) <= AGREEMENT
        assert total(sparse) == pytest.approx(1.0, abs=1e-12)


# ------------------------------------------------- dense and sparse: the acceptance run
@dataclass(frozen=True)
class Landscape:
    """Violations that wander through the constraints, swell, shrink and vanish."""

    n_constraints: int
    batch: int
    period: int  # iterations from one quiet time to the next

    def draw(self, iteration: int) -> tuple[IntArray, FloatArray]:
        m = self.n_constraints
        indices = distinct_indices(stream(7, iteration), m, self.batch)
        # 193 is prime to every m used here: neighbours on the circle lie far apart.
        places = indices * 193 % m / m
        level = 0.6 + 0.7 * np.sin(2 * np.pi * iteration / self.period)
        values = np.cos(2 * np.pi * (places - 0.3 * iteration / self.period)) - level
        violations = np.maximum(values, 0.0)  # none while the level is above 1
        return indices, violations * violations


@dataclass(frozen=True)
class Agreement:
    largest: float  # difference of a weight, over all iterations
    quiet: int  # iterations in which nothing was violated
    bare: int  # iterations in which the background had no weight worth the name
    returns: int  # how often the background had weight again after that
    stores: list[int]  # touched constraints, by iteration


def run_both(landscape: Landscape, step: DualStep, n_iterations: int) -> Agreement:
    m = landscape.n_constraints
    sparse = SparseDistribution.from_penalties(m, NONE, np.empty(0), 1.0)
    dense = DenseDistribution.from_penalties(m, NONE, np.empty(0), 1.0)
    largest, quiet, bare, returns, stores = 0.0, 0, 0, 0, []
    was_bare = False
    for iteration in range(n_iterations):
        indices, penalties = landscape.draw(iteration)
        sparse = learned(sparse, indices, penalties, step, iteration == 0)
        dense = learned(dense, indices, penalties, step, iteration == 0)
        largest = max(largest, difference(sparse, dense))
        is_bare = sparse.background_weight * m < 1e-9
        quiet += not penalties.any()
        bare += is_bare
        returns += was_bare and not is_bare
        was_bare = is_bare
        stores.append(len(sparse.indices))
    return Agreement(largest, quiet, bare, returns, stores)


LONG = Landscape(n_constraints=12_007, batch=256, period=2_500), 10_000
SHORT = Landscape(n_constraints=5_003, batch=128, period=400), 1_000


@pytest.mark.parametrize(("a", "b"), PAIRS)
@pytest.mark.parametrize(
    ("landscape", "n"),
    [SHORT, pytest.param(*LONG, marks=pytest.mark.slow)],
    ids=["short", "long"],
)
def test_sparse_equals_dense_over_thousands_of_iterations(
    landscape: Landscape, n: int, a: float, b: float, record_property: Record
) -> None:
    run = run_both(landscape, published_step(mixing=a, averaging=b), n)
    record_property("largest difference", run.largest)
    assert run.largest <= AGREEMENT
    assert run.quiet > n / 10
    assert max(run.stores) > (500 if n == 1_000 else 1_000)
    # The background regains the weight that it had lost, as the dense weights do.
    if a == 0.9 and (n == 10_000 or b == 0.5):
        assert run.bare > n / 10
        assert run.returns >= (2 if n == 1_000 else 3)


# ---------------------------------------------------- against fifty digits, at 10^12
@dataclass
class FiftyDigits:
    """Lines 13, 15, 6 and 7 of Algorithm 1 as printed, in decimal arithmetic.

    The weights of `n_constraints`, of which all but `touched` share one value.
    """

    n_constraints: int
    touched: list[int]
    step: DualStep

    def __post_init__(self) -> None:
        # The last entry stands for all others.
        self.counts = [1] * len(self.touched)
        self.counts.append(self.n_constraints - len(self.touched))
        self.weights = [Decimal(1) / self.n_constraints] * len(self.counts)
        self.gradient = [Decimal(0)] * len(self.counts)

    def sum(self, values: list[Decimal]) -> Decimal:
        return sum(
            (n * value for n, value in zip(self.counts, values, strict=True)),
            Decimal(0),
        )

    def learn(self, indices: IntArray, penalties: FloatArray, first: bool) -> None:
        step = self.step
        a, b = Decimal(step.mixing), Decimal(1.0 if first else step.averaging)
        spread = Decimal(step.penalty) * self.n_constraints / len(indices)
        seen = dict(zip(indices.tolist(), penalties.tolist(), strict=True))
        for place, index in enumerate([*self.touched, -1]):
            estimate = spread * Decimal(seen.get(index, 0.0))
            estimate -= Decimal(step.ridge) * self.weights[place]
            self.gradient[place] = (1 - b) * self.gradient[place] + b * estimate
        scale = Decimal(step.step_size)
        if step.adaptive:
            norm = self.sum([z * z for z in self.gradient]).sqrt()
            scale /= norm.sqrt() + Decimal(step.step_eps)
        moved = [
            p + scale * z for p, z in zip(self.weights, self.gradient, strict=True)
        ]
        target = self.project(moved)
        self.weights = [
            (1 - a) * p + a * q for p, q in zip(self.weights, target, strict=True)
        ]

    def project(self, values: list[Decimal]) -> list[Decimal]:
        mass, count, threshold = Decimal(-1), 0, Decimal(0)
        for value, n in sorted(zip(values, self.counts, strict=True), reverse=True):
            if count and value <= threshold:
                break
            mass, count = mass + n * value, count + n
            threshold = mass / count
        return [max(value - threshold, Decimal(0)) for value in values]


@pytest.mark.parametrize("adaptive", [True, False])
@pytest.mark.parametrize("m", [2**31 - 1, 2**31 + 1, 10**12])
def test_a_trillion_weights_are_right_to_fifty_digits(m: int, adaptive: bool) -> None:
    touched = [0, 5, 1_000, m // 2, m - 2, m - 1]
    rng = np.random.default_rng(3)
    # Steps so short that the background keeps most of its weight, 1e-12 apiece: its
    # digits are what is at stake.
    step = DualStep(
        step_size=0.01, averaging=0.5, mixing=0.5, penalty=10.0 / m, ridge=1e-6,
        step_eps=1e-8, adaptive=adaptive,
    )  # fmt: skip
    sparse = SparseDistribution.from_penalties(m, NONE, np.empty(0), 1.0)
    with localcontext() as context:
        context.prec = 50
        exact = FiftyDigits(m, touched, step)
        for i in range(60):
            known = rng.choice(touched, size=3, replace=False)
            indices = np.unique(np.append(known, rng.integers(10, 900, size=5)))
            violated = np.isin(indices, touched) & (rng.random(len(indices)) < 0.6)
            penalties = violated * rng.random(len(indices)) * (i % 20 < 15)
            sparse = learned(sparse, indices, penalties, step, i == 0)
            exact.learn(indices, penalties, i == 0)
            found = dict(
                zip(*(part.tolist() for part in sparse.touched()), strict=True)
            )
            rest = Decimal(sparse.background_weight)
            assert abs(rest - exact.weights[-1]) * m < Decimal("1e-12")
            for index, weight in zip(touched, exact.weights, strict=False):
                assert abs(Decimal(found.get(index, float(rest))) - weight) < AGREEMENT
    assert 0.01 < float(exact.weights[-1]) * m < 0.99


# ------------------------------------------------------------------------- the store
def test_constraints_that_are_not_violated_are_never_stored() -> None:
    weights = SparseDistribution.from_penalties(10**6, NONE, np.empty(0), 1.0)
    for i in range(50):
        indices = distinct_indices(stream(0, i), 10**6, 256)
        weights = learned(weights, indices, np.zeros(256), published_step(), i == 0)
    assert len(weights.indices) == 0
    assert weights.background_weight == pytest.approx(1e-6, rel=1e-14)


@pytest.mark.parametrize(("a", "b"), [(0.5, 0.5), (0.9, 0.9)])
def test_the_store_holds_a_few_memory_lengths_of_draws(a: float, b: float) -> None:
    step = published_step(mixing=a, averaging=b)
    m, batch, share = 10**12, 64, 0.25
    weights = SparseDistribution.from_penalties(m, NONE, np.empty(0), 1.0)
    sizes = []
    for i in range(2_000):
        indices = distinct_indices(stream(1, i), m, batch)
        violated = (indices / m - i / 500) % 1.0 < share
        weights = learned(weights, indices, np.where(violated, 0.5, 0.0), step, i == 0)
        sizes.append(len(weights.indices))
    # What was drawn violated in 2,000 iterations is far more than is ever stored: an
    # average has forgotten all but 1e-18 of a value after log(1e-18)/log(1 - b) steps.
    memory = np.log(1e-18) / np.log(1 - min(a, b))
    bound = 3 * memory * batch * share
    assert bound < 0.25 * 2_000 * batch * share
    assert max(sizes) < bound
    assert max(sizes[1_000:]) < 1.5 * max(sizes[:1_000])


def test_constraints_that_are_no_longer_violated_rejoin_the_background() -> None:
    step = published_step(mixing=0.9, averaging=0.9)
    m = 10**6
    once, later = np.arange(100), np.arange(500, 600)
    weights = SparseDistribution.from_penalties(m, NONE, np.empty(0), 1.0)
    weights = learned(weights, once, np.ones(100), step, True)
    np.testing.assert_array_equal(weights.indices, once)
    for _ in range(200):
        weights = learned(weights, later, np.ones(100), step, False)
    np.testing.assert_array_equal(weights.indices, later)


# ------------------------------------------------------------------------ sum and drift
@pytest.mark.parametrize(
    "n_updates", [3_000, pytest.param(100_000, marks=pytest.mark.slow)]
)
def test_weights_sum_to_one_always(n_updates: int, record_property: Record) -> None:
    m = 1_009
    landscape = Landscape(n_constraints=m, batch=16, period=500)
    step = published_step(mixing=0.5, averaging=0.5)
    weights = SparseDistribution.from_penalties(m, NONE, np.empty(0), 1.0)
    worst = 0.0
    for i in range(n_updates):
        weights = learned(weights, *landscape.draw(i), step, i == 0)
        worst = max(worst, abs(total(weights) - 1.0))
    record_property("largest drift of the sum", worst)
    assert worst <= 1e-14


def test_an_error_in_the_sum_is_gone_after_one_update() -> None:
    m = 1_009
    step = published_step(mixing=0.5, averaging=0.5)
    start = SparseDistribution.from_penalties(m, NONE, np.empty(0), 1.0)
    wrong = replace(start, background_weight=start.background_weight * (1 + 1e-6))
    assert abs(total(wrong) - 1.0) > 9e-7
    moved = learned(wrong, np.arange(5), np.ones(5), step, True)
    assert abs(total(moved) - 1.0) <= 1e-14


# ----------------------------------------------------------------------------- sampling
class EveryRank:
    """A generator that draws the background only, and each of its ranks once."""

    def __init__(self) -> None:
        self.n_asked = 0

    def random(self, size: int) -> FloatArray:
        self.n_asked += 1
        if self.n_asked == 1:  # which weight
            return np.full(size, 1.0 - 2.0**-53)
        return np.arange(size, dtype=np.float64) * 2.0**-53


@given(m=st.integers(1, 60), data=st.data())
def test_each_rank_of_the_background_is_a_different_untouched_constraint(
    m: int, data: st.DataObject
) -> None:
    touched = sorted(data.draw(st.sets(st.integers(0, m - 1), max_size=m - 1)))
    weights = SparseDistribution.from_weights(
        m, np.array(touched, dtype=np.int64), np.full(len(touched), 1e-3)
    )
    n_untouched = m - len(weights.indices)
    drawn = weights.sample(cast("np.random.Generator", EveryRank()), n_untouched)
    np.testing.assert_array_equal(drawn, np.setdiff1d(np.arange(m), weights.indices))
