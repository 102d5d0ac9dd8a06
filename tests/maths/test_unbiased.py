r"""The estimates are right on average, and the tests that say so can tell.

Each p-value is that of Hotelling's :math:`T^2` (or :math:`\chi^2`) for the hypothesis
that the mean of independent estimates is the closed form. A cell is red below ALPHA.
The seeds are fixed, so that no cell is red by chance; with fresh ones, one run in
30,000 would have such a cell.

How many estimates are needed? An error of 2 % must be seen. In one direction out of
:math:`N` it shows as :math:`N \cdot 0.02^2 / 2` standard errors squared, which for
:math:`10^6` directions is 200, where ALPHA asks for about 40. Directions averaged in
one estimate count, too: 5,000 estimates of 200 directions are as good as :math:`10^6`,
and cheaper. Every cell shows that it has this power: the same estimates, made 2 % too
long, must be rejected.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dszog import kernels
from dszog.contract import ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.kernels.plain import combine
from dszog.maths import gradients
from dszog.maths.distribution import DISTRIBUTIONS, Distribution, DualStep
from dszog.maths.distribution.dense import DenseDistribution
from dszog.maths.random_stream import distinct_indices, stream
from dszog.methods import DSZOG
from tests.runs import Record, learned, size_of

ALPHA = 1e-6
N_DUAL = 3_000  # draws of the dual estimate
N_COMPOSED = 1_200  # steps of the method
LEARNING = [name for name in DISTRIBUTIONS if name != "uniform"]


def hotelling(estimates: FloatArray, expected: FloatArray) -> float:
    """Return the p-value of the hypothesis that the estimates have this mean.

    Where the estimates do not scatter at all (in a subspace: all of them are then
    equal there), the mean must be the expected one to nine digits.
    """
    n, _ = estimates.shape
    mean = estimates.mean(axis=0)
    centred = estimates - mean
    variances, axes = np.linalg.eigh(centred.T @ centred / (n - 1))
    deviations = (mean - expected) @ axes
    scale = 1e-9 * max(np.abs(expected).max(), math.sqrt(max(variances.max(), 0.0)))
    certain = variances <= scale**2
    if (np.abs(deviations[certain]) > scale).any():
        return 0.0
    rank = np.count_nonzero(~certain)
    if not rank:
        return 1.0
    t_squared = n * (deviations[~certain] ** 2 / variances[~certain]).sum()
    f = t_squared * (n - rank) / (rank * (n - 1))
    return float(stats.f.sf(f, rank, n - rank))


def assert_unbiased(estimates: FloatArray, expected: FloatArray, note: Record) -> None:
    p_value = hotelling(estimates, expected)
    too_long = hotelling(1.02 * estimates, expected)
    note("least p-value", p_value)
    note("largest p-value if 2 % too long", too_long)
    print(f"p = {p_value:.2g}; if 2 % too long, {too_long:.2g}")
    assert p_value > ALPHA
    assert too_long < ALPHA


def test_the_test_is_red_as_often_as_it_says() -> None:
    # 2,000 samples of 500 one-direction estimates, whose mean is right: p-values
    # below 1 % come in 0.4 to 2 % of them but for a chance of 1e-3.
    rng = np.random.default_rng(0)
    gradient = np.array([1.0, -2.0, 0.5])
    n_red = 0
    for _ in range(2_000):
        directions = rng.standard_normal((500, 3))
        estimates = (directions @ gradient)[:, np.newaxis] * directions
        n_red += hotelling(estimates, gradient) < 0.01
    assert 8 <= n_red <= 40


def test_the_test_needs_no_scatter_to_be_red() -> None:
    same = np.tile([1.0, 2.0], (100, 1))
    assert hotelling(same, np.array([1.0, 2.0])) == 1.0
    assert hotelling(same, np.array([1.0, 2.0 + 1e-6])) == 0.0


# -------------------------------------------------------- (a) which constraint is drawn
def unequal_weights(name: str, m: int) -> Distribution:
    rng = np.random.default_rng(2)
    own = distinct_indices(rng, m, m // 2)
    weights = rng.random(len(own)) ** 2 + 0.05
    return DISTRIBUTIONS[name].from_weights(m, own, 0.8 * weights / weights.sum())


def sampling_p_value(distribution: Distribution, n_batches: int, batch: int) -> float:
    """The p-value of all draws of many batches together, were each drawn from p."""
    counts = np.zeros(distribution.n_constraints)
    for i in range(n_batches):
        np.add.at(counts, distribution.sample(stream(12, i), batch), 1)
    return float(stats.chisquare(counts, distribution.dense() * counts.sum()).pvalue)


@pytest.mark.parametrize(("n", "size"), [(50, 1), (50, 10), (50, 49), (3, 3)])
def test_draws_without_repeats_take_each_index_as_often_as_any_other(
    n: int, size: int, record_property: Record
) -> None:
    taken = np.zeros((10_000, n))
    for i, row in enumerate(taken):
        row[distinct_indices(stream(13, i), n, size)] = 1.0
    p_value = hotelling(taken, np.full(n, size / n))
    record_property("least p-value", p_value)
    print(f"p = {p_value:.2g}")
    assert p_value > ALPHA


# --------------------------------------------------------------- (b) the dual gradient

DUAL_M, DUAL_BATCH = 8, 3
PENALTIES = np.array([0.0, 1.0, 0.25, 4.0, 0.0, 0.5, 2.0, 1.5])
FIRST_PENALTIES = np.array([1.0, 1.0, 0.0, 3.0, 0.5, 0.5, 0.0, 2.0])  # remembered
# Without averages and adaptive steps, and short enough to stay inside the simplex, the
# weights move by step_size times the estimate, less its mean.
DUAL_STEP = DualStep(
    step_size=1e-5, averaging=1.0, mixing=1.0, penalty=2.0, ridge=0.5, step_eps=1e-8,
    adaptive=False,
)  # fmt: skip


def dual_start(name: str, centred: bool) -> tuple[Distribution, DualStep]:
    weights = np.arange(1.0, DUAL_M + 1) / (DUAL_M * (DUAL_M + 1) / 2)
    step = DUAL_STEP._replace(centred=centred)
    start = DISTRIBUTIONS[name].from_weights(DUAL_M, np.arange(DUAL_M), weights)
    if centred:  # seen once before, when the penalties were others
        start = learned(start, np.arange(DUAL_M), FIRST_PENALTIES, step, True)
    return start, step


def dual_estimate(start: Distribution, step: DualStep, drawn: IntArray) -> FloatArray:
    after = learned(start, drawn, PENALTIES[drawn], step, False)
    estimate: FloatArray = (after.dense() - start.dense()) / step.step_size
    return estimate


def dual_gradient(start: Distribution, step: DualStep) -> FloatArray:
    r"""Return :math:`\nabla_p L = \beta \phi - \lambda p`, less its mean."""
    gradient = step.penalty * PENALTIES - step.ridge * start.dense()
    centred: FloatArray = gradient - gradient.mean()
    return centred


def dual_estimates(
    name: str, centred: bool, n_draws: int
) -> tuple[FloatArray, FloatArray]:
    start, step = dual_start(name, centred)
    estimates = np.array(
        [
            dual_estimate(
                start, step, distinct_indices(stream(14, i), DUAL_M, DUAL_BATCH)
            )
            for i in range(n_draws)
        ]
    )
    return estimates, dual_gradient(start, step)


@pytest.mark.parametrize("centred", [False, True], ids=["plain", "centred"])
@pytest.mark.parametrize("name", LEARNING)
def test_the_dual_estimate_averages_out(name: str, centred: bool) -> None:
    start, step = dual_start(name, centred)
    draws = list(combinations(range(DUAL_M), DUAL_BATCH))
    assert len(draws) == 56
    mean = np.mean([dual_estimate(start, step, np.array(d)) for d in draws], axis=0)
    np.testing.assert_allclose(mean, dual_gradient(start, step), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", LEARNING)
def test_the_combined_estimate_averages_to_the_gradient(name: str) -> None:
    # Every uniform draw with every pair drawn from the weights, each pair with its
    # probability.
    start, step = dual_start(name, False)
    chances, spread = start.dense(), DUAL_M / DUAL_BATCH
    mean, total = np.zeros(DUAL_M), 0.0
    for uniform in combinations(range(DUAL_M), DUAL_BATCH):
        duals = np.array(uniform)
        for pair in product(range(DUAL_M), repeat=2):
            drawn = np.sort(pair)
            indices, penalties = combine(
                *(drawn, PENALTIES[drawn], duals, PENALTIES[duals]),
                *(start.weights_of, spread),
            )
            after = start.learn(indices, penalties, step, spread)
            chance = chances[drawn].prod() / 56
            mean += chance * (after.dense() - start.dense()) / step.step_size
            total += chance
    assert total == pytest.approx(1.0)
    np.testing.assert_allclose(mean, dual_gradient(start, step), rtol=0, atol=1e-9)


# ------------------------------------------------------------ (c) the composed gradient
@dataclass(frozen=True)
class Small:
    """Quadratic losses and linear constraints, with every gradient in closed form."""

    linear: FloatArray  # (n, dim): loss i is linear[i] x + curvature[i] x^2 / 2
    curvature: FloatArray  # (n, dim)
    normals: FloatArray  # (m, dim): constraint j is normals[j] x - offsets[j] <= 0
    offsets: FloatArray  # (m,)
    x: FloatArray  # where the gradient is estimated
    probabilities: FloatArray  # (m,)

    def size(
        self, has_gradient: bool = False, has_jacobian: bool = False
    ) -> ProblemSize:
        given = {"has_gradient": has_gradient, "has_jacobian": has_jacobian}
        return size_of(len(self.x), len(self.linear), len(self.offsets), **given)

    def answer(self, query: Query) -> Reply:
        points = np.concatenate([query.x[np.newaxis], query.x + query.steps])
        losses = points @ self.linear.T + points**2 @ self.curvature.T / 2
        constraints = points @ self.normals.T - self.offsets
        reply = Reply(
            losses=losses[:, query.losses],
            constraints=constraints[:, query.constraints],
        )
        if query.want == "values":
            return reply
        slopes = self.linear + self.curvature * query.x
        return reply._replace(
            loss_gradients=slopes[query.losses],
            jacobian=self.normals[query.constraints],
        )

    def gradient(self, penalty: float, radius: float) -> FloatArray:
        r"""Return the gradient in `x` of :math:`L`, smoothed by normal steps.

        A quadratic keeps its gradient. A linear constraint of value :math:`s` becomes
        :math:`s + \tau \xi` with :math:`\tau = \mu |a|` and :math:`\xi` normal, and
        :math:`E \max(s + \tau \xi, 0)^2` has the slope
        :math:`2 (s \Phi(s / \tau) + \tau \varphi(s / \tau))` in :math:`s`.
        """
        values = self.normals @ self.x - self.offsets
        slopes = 2 * np.maximum(values, 0.0)
        if radius:
            spread = radius * np.linalg.norm(self.normals, axis=1)
            share, density = stats.norm.cdf(values / spread), stats.norm.pdf
            slopes = 2 * (values * share + spread * density(values / spread))
        loss = (self.linear + self.curvature * self.x).mean(axis=0)
        gradient: FloatArray = (
            loss + penalty * (self.probabilities * slopes) @ self.normals
        )
        return gradient


def small_problem(violated: bool) -> Small:
    """Return a problem at a point; `violated`: so deeply that no kink is near."""
    dim, n, m = 3, 4, 6
    rng = np.random.default_rng(5)
    x = np.array([0.3, -0.2, 0.1])
    normals = np.array([0.5, 0.2, -0.3]) + 0.2 * rng.standard_normal((m, dim))
    margins = np.linspace(1.5, 2.5, m) if violated else np.linspace(-0.2, 0.6, m)
    return Small(
        linear=np.array([1.0, -0.5, 0.7]) + 0.1 * rng.standard_normal((n, dim)),
        curvature=0.3 * rng.random((n, dim)),
        normals=normals,
        offsets=normals @ x - margins,
        x=x,
        probabilities=np.array([0.05, 0.3, 0.1, 0.25, 0.1, 0.2]),
    )


def composed_method(**changes: object) -> DSZOG:
    """Return the plain method, whose step is its gradient estimate."""
    settings: dict[str, object] = {
        "step_size": 0.5,
        "penalty": 0.8,
        "radius": 0.5,
        "n_directions": 400,
        "averaging": 1.0,
        "dual_averaging": 1.0,
        "loss_batch": 3,
        "constraint_batch": 50,
        "dual_batch": 1,
        "step_decay": "constant",
        "directions": "gaussian",
        "adaptive": False,
    }
    return DSZOG(**(settings | changes))  # type: ignore[arg-type]


def composed_estimates(
    method: DSZOG,
    problem: Small,
    n_draws: int,
    *,
    has_gradient: bool = False,
    has_jacobian: bool = False,
) -> FloatArray:
    """Read the gradient off the move of the first step, for many seeds."""
    size = problem.size(has_gradient, has_jacobian)
    weights = np.arange(len(problem.offsets)), problem.probabilities
    estimates = np.empty((n_draws, len(problem.x)))
    for seed in range(n_draws):
        state = method.init(problem.x, size, seed, weights=weights)
        queries = method.ask(state)
        replies = [problem.answer(query) for query in queries]
        after, _ = method.tell(state, queries, replies)
        estimates[seed] = (state.x - after.x) / method.step_size
    return estimates


@pytest.mark.parametrize(
    ("name", "antithetic"), [("sparse", False), ("dense", True), ("uniform", False)]
)
def test_the_composed_gradient_is_that_of_the_smoothed_lagrangian_on_average(
    name: str, antithetic: bool, record_property: Record
) -> None:
    problem = small_problem(violated=False)
    if name == "uniform":
        problem = replace(problem, probabilities=np.full(6, 1 / 6))
    method = composed_method(distribution=name, antithetic=antithetic)
    expected = problem.gradient(method.penalty, method.radius)
    # The kinks matter: without the smoothing the expectation would be another one.
    assert np.linalg.norm(problem.gradient(method.penalty, 0.0) / expected - 1) > 0.02
    assert_unbiased(
        composed_estimates(method, problem, N_COMPOSED), expected, record_property
    )


SHORT = {"n_directions": 20, "radius": 0.1}


@pytest.mark.parametrize(
    ("settings", "given"),
    [
        ({"directions": "sphere", "n_directions": 300, "radius": 0.1}, {}),
        ({"directions": "orthogonal"} | SHORT, {}),
        ({"directions": "coordinate", "antithetic": True} | SHORT, {}),
        *(
            ({"directions": "sphere", "n_directions": 300}, given)
            for given in (
                {"has_gradient": True, "has_jacobian": False},
                {"has_gradient": False, "has_jacobian": True},
                {"has_gradient": True, "has_jacobian": True},
            )
        ),
    ],
    ids=["sphere", "orthogonal", "coordinate", "gradient", "jacobian", "both"],
)
def test_the_composed_gradient_is_exact_on_average_for_every_kind_and_true_gradients(
    settings: dict[str, Any], given: dict[str, bool], record_property: Record
) -> None:
    # Deep in the violated part the kinks are far; true slopes may be taken anywhere.
    problem = small_problem(violated=not given.get("has_jacobian"))
    method = composed_method(**settings)
    estimates = composed_estimates(method, problem, N_COMPOSED, **given)
    assert_unbiased(estimates, problem.gradient(method.penalty, 0.0), record_property)


@pytest.mark.parametrize("white_box", [False, True], ids=["values", "gradients"])
def test_the_composed_gradient_averages_out(white_box: bool) -> None:
    # Opposite points along a complete set of directions make no error on quadratics,
    # so all that is left to chance is which losses and constraints are drawn.
    problem = small_problem(violated=True)
    method = composed_method(
        loss_batch=2,
        constraint_batch=2,
        directions="orthogonal",
        n_directions=3,
        antithetic=True,
    )
    weights = np.arange(6), problem.probabilities
    size = problem.size(has_gradient=white_box, has_jacobian=white_box)
    state = method.init(problem.x, size, 0, weights=weights)
    around, *others, dual = method.ask(state)
    mean, total = np.zeros(3), 0.0
    for taken, drawn in product(combinations(range(4), 2), product(range(6), repeat=2)):
        losses, constraints = np.array(taken), np.array(drawn)
        if white_box:
            others = [others[0]._replace(losses=losses, constraints=constraints)]
        else:
            around = around._replace(losses=losses, constraints=constraints)
        queries = (around, *others, dual)
        after, _ = method.tell(state, queries, [problem.answer(q) for q in queries])
        probability = problem.probabilities[list(drawn)].prod() / 6
        mean += probability * (state.x - after.x) / method.step_size
        total += probability
    assert total == pytest.approx(1.0)
    expected = problem.gradient(method.penalty, 0.0)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-12)


# ----------------------------------------------------------------------- eight mutants

METHOD = "dszog.methods.dszog"
AT_ONCE = "dszog.methods.dszog.{}_at_once"  # shortcuts


def composed_p_value(n_draws: int = 500, **changes: object) -> float:
    problem = small_problem(violated=False)
    method = composed_method(**changes)
    expected = problem.gradient(method.penalty, method.radius)
    return hotelling(composed_estimates(method, problem, n_draws), expected)


Mutate = Callable[[pytest.MonkeyPatch], float]  # returns the p-value then


def other_differences(difference: Callable[..., Any], **more: Any) -> Mutate:
    def p_value(patch: pytest.MonkeyPatch) -> float:
        patch.setattr(f"{METHOD}.forward_difference", difference)
        patch.setattr(AT_ONCE.format("step"), lambda *_: None)
        return composed_p_value(**more)

    return p_value


def other_directions(draw: Callable[..., FloatArray]) -> Mutate:
    def p_value(patch: pytest.MonkeyPatch) -> float:
        patch.setattr(f"{METHOD}.draw_directions", draw)
        patch.setattr(AT_ONCE.format("draw"), lambda *_: None)
        return composed_p_value()

    return p_value


def absolute(values: FloatArray, directions: FloatArray, radius: float) -> FloatArray:
    rises = np.append(values[0], values[0] + np.abs(values[1:] - values[0]))
    return gradients.forward_difference(rises, directions, radius)


def with_the_wrong_sign_in_the_kernel(patch: pytest.MonkeyPatch) -> float:
    right = kernels.chosen().step

    def uphill(values: Any, steps: FloatArray, *rest: Any) -> Any:
        return right(values, frozen_floats(-steps), *rest)

    patch.setattr(kernels.chosen(), "step", uphill)
    return composed_p_value()


def drawn_without_replacement(patch: pytest.MonkeyPatch) -> float:
    def sample(
        self: DenseDistribution, rng: np.random.Generator, size: int
    ) -> IntArray:
        m = self.n_constraints
        drawn: IntArray = rng.choice(m, size=size, replace=False, p=self.weights)
        return drawn

    patch.setattr(DenseDistribution, "sample", sample)
    return sampling_p_value(unequal_weights("dense", 50), n_batches=2_000, batch=10)


def with_repeats_counted_once(patch: pytest.MonkeyPatch) -> float:
    right = DenseDistribution.sample

    def sample(
        self: DenseDistribution, rng: np.random.Generator, size: int
    ) -> IntArray:
        return np.unique(right(self, rng, size))

    patch.setattr(DenseDistribution, "sample", sample)
    return composed_p_value(distribution="dense")


def with_the_wrong_m_over_b(patch: pytest.MonkeyPatch) -> float:
    right = DenseDistribution.learn

    def learn(
        self: DenseDistribution,
        indices: IntArray,
        penalties: FloatArray,
        step: DualStep,
        first: bool,
    ) -> DenseDistribution:
        # m / (b + 1) where m / b is due.
        short = len(indices) / (len(indices) + 1)
        return right(self, indices, short * penalties, step, first)

    patch.setattr(DenseDistribution, "learn", learn)
    return hotelling(*dual_estimates("dense", False, N_DUAL))


MUTANTS: dict[str, Mutate] = {
    "without the factor d": other_directions(
        lambda *drawn: gradients.draw_directions(*drawn) / math.sqrt(drawn[-1])
    ),
    "with the directions of the first iteration": other_directions(
        lambda rng, *drawn: gradients.draw_directions(stream(0, 0), *drawn)
    ),
    "with the wrong sign": other_differences(
        lambda *seen: -gradients.forward_difference(*seen)
    ),
    "with the wrong sign in the kernel": with_the_wrong_sign_in_the_kernel,
    "with absolute slopes": other_differences(absolute),
    "two percent too long": other_differences(
        lambda *seen: 1.02 * gradients.forward_difference(*seen), n_draws=N_COMPOSED
    ),
    "drawn without replacement": drawn_without_replacement,
    "with repeats counted once": with_repeats_counted_once,
    "with the wrong m / b": with_the_wrong_m_over_b,
}


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_broken_estimator_is_caught(
    mutant: Mutate, monkeypatch: pytest.MonkeyPatch, record_property: Record
) -> None:
    p_value = mutant(monkeypatch)
    record_property("largest p-value of a broken estimator", p_value)
    print(f"p = {p_value:.2g}")
    assert p_value < ALPHA


def test_the_same_tests_pass_what_is_not_broken() -> None:
    assert composed_p_value() > ALPHA
    assert composed_p_value(distribution="dense") > ALPHA
    assert sampling_p_value(unequal_weights("dense", 50), 2_000, 10) > ALPHA
