"""DSZOG against Algorithm 1, written down once more from the paper, and its settings.

The letters are those of the paper: w, p, u, mu, q, beta, lambda, a, b, c, eta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pytest

import dszog.methods.start as start
from dszog import DSZOG, Constraints, InputError, Losses, Problem, certify, minimize
from dszog.contract import Calls, ProblemSize, Query, Reply
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import DszogError
from dszog.methods import DSZOGState
from tests.contracts.helpers import Kind, advance, after, evaluate, make_problem, walk
from tests.runs import size_of


# ------------------------------------------------- Algorithm 1, as the paper prints it
def simplex(v: FloatArray) -> FloatArray:
    """Project onto the simplex by bisection on the shift, not by sorting."""
    low, high = v.max() - 1.0, v.max()
    for _ in range(70):  # until the interval of length 1 is below rounding
        middle = 0.5 * (low + high)
        if np.maximum(v - middle, 0.0).sum() > 1.0:
            low = middle
        else:
            high = middle
    p = np.maximum(v - high, 0.0)
    return np.asarray(p / p.sum())


@dataclass(kw_only=True)
class Paper:
    """Section 3 and 4 of the paper with dense p and one loop per sum."""

    losses: Any  # (points, indices) -> (k, b)
    constraints: Any
    m: int
    eta_w: float
    eta_p: float
    beta: float
    mu: float
    a: float
    b: float
    lam: float = 1e-6
    c: float = 1e-8
    adaptive: bool = True

    def phi(self, w: FloatArray, j: int) -> float:
        value = float(self.constraints(w[np.newaxis], np.array([j]))[0, 0])
        return max(value, 0.0) ** 2

    def loss(self, w: FloatArray, i: int) -> float:
        return float(self.losses(w[np.newaxis], np.array([i]))[0, 0])

    def best_p(self, w: FloatArray) -> FloatArray:
        """Return the maximiser of L(w, .) over the simplex."""
        phi = np.array([self.phi(w, j) for j in range(self.m)])
        return simplex(self.beta * phi / self.lam)

    def gradient_w(
        self, w: FloatArray, us: FloatArray, M1: IntArray, M2: IntArray
    ) -> FloatArray:
        q = len(us)
        G = np.zeros(len(w))
        for u in us:
            for i in M1:
                slope = (self.loss(w + self.mu * u, i) - self.loss(w, i)) / self.mu
                G += slope * u / (q * len(M1))
            for j in M2:
                slope = (self.phi(w + self.mu * u, j) - self.phi(w, j)) / self.mu
                G += self.beta * slope * u / (q * len(M2))
        return G

    def gradient_p(self, w: FloatArray, p: FloatArray, M3: IntArray) -> FloatArray:
        H = -self.lam * p
        for j in M3:
            H[j] += self.beta * self.m / len(M3) * self.phi(w, j)
        return H

    def scale(self, z: FloatArray) -> float:
        return 1.0 / (math.sqrt(np.linalg.norm(z)) + self.c) if self.adaptive else 1.0

    def step(
        self, w: FloatArray, p: FloatArray, z_w: FloatArray, z_p: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Lines 5 to 7."""
        w = w - self.eta_w * self.scale(z_w) * z_w
        target = simplex(p + self.eta_p * self.scale(z_p) * z_p)
        return w, (1 - self.a) * p + self.a * target


def replay(
    paper: Paper, method: DSZOG, problem: Problem, seed: int, iterations: int
) -> tuple[float, float]:
    """Run both on the draws of the library; return how far w and p ever differ."""
    state: Any = after(method, problem, 1, seed)  # the look at all constraints
    w = np.array(problem.x0)
    p = paper.best_p(w)
    z_w = z_p = np.zeros(0)
    worst_w, worst_p = 0.0, float(np.abs(state.distribution.dense() - p).max())
    for t in range(iterations):
        around, dual = queries = method.ask(state)
        us, M1, M2 = around.steps / paper.mu, around.losses, around.constraints
        G = paper.gradient_w(w, us, M1, M2)
        H = paper.gradient_p(w, p, dual.constraints)
        if t == 0:  # line 3
            z_w, z_p = G, H
        else:  # lines 14 and 15
            z_w = (1 - paper.b) * z_w + paper.b * G
            z_p = (1 - paper.b) * z_p + paper.b * H
        w, p = paper.step(w, p, z_w, z_p)
        state, _ = method.tell(state, queries, evaluate(problem, queries))
        worst_w = max(worst_w, float(np.abs(state.x - w).max()))
        worst_p = max(worst_p, float(np.abs(state.distribution.dense() - p).max()))
    return worst_w, worst_p


def _paper_for(problem: Problem, method: DSZOG) -> Paper:
    assert problem.constraints is not None
    return Paper(
        losses=problem.losses.values,
        constraints=problem.constraints.values,
        m=len(problem.constraints),
        eta_w=method.step_size,
        eta_p=method.dual_step_size,
        beta=method.penalty,
        mu=method.radius,
        a=method.dual_averaging,
        b=method.averaging,
        adaptive=method.adaptive,
    )


SMALL: dict[str, Any] = {"n_directions": 3, "loss_batch": 3}
SMALL |= {"constraint_batch": 4, "dual_batch": 5}


@pytest.mark.parametrize("distribution", ["dense", "sparse"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"penalty": 10.0, "averaging": 0.1, "dual_averaging": 0.5},
        {"penalty": 0.1, "averaging": 0.5, "dual_averaging": 0.1, "step_size": 0.05},
        {"averaging": 1.0, "dual_averaging": 1.0},
        {"averaging": 1.0, "dual_averaging": 1.0, "adaptive": False},
    ],
    ids=["as printed", "stiff and slow", "soft and fast", "no averages", "plain"],
)
def test_two_hundred_iterations_follow_algorithm_1_to_1e_12(
    distribution: str, changes: dict[str, Any]
) -> None:
    problem, _ = make_problem(Kind(dim=4, n=8, m=12))
    settings = {"distribution": distribution} | SMALL | changes
    method = DSZOG.as_published(**settings)
    worst = replay(_paper_for(problem, method), method, problem, 5, iterations=200)
    assert max(worst) < 1e-12


def test_the_reference_would_notice_a_missing_penalty() -> None:
    problem, _ = make_problem(Kind(dim=4, n=8, m=12))
    method = DSZOG.as_published(**SMALL)
    paper = replace(_paper_for(problem, method), beta=1.01)
    assert max(replay(paper, method, problem, 5, iterations=20)) > 1e-6


# ----------------------------------------------------------------------- the first p
def _first_weights(method: DSZOG, problem: Problem, iterations: int) -> FloatArray:
    state = method.init(problem.x0, problem.size, 0)
    for looks in walk(method, problem, state, iterations)[:-1]:
        assert looks.distribution is None
        np.testing.assert_array_equal(looks.x, problem.x0)
    state = advance(method, problem, state, iterations)
    assert state.first_iteration == iterations
    dense: FloatArray = state.distribution.dense()
    return dense


@pytest.mark.parametrize("distribution", ["dense", "sparse"])
@pytest.mark.parametrize("block", [1, 7, 12, 2**17])
@pytest.mark.parametrize(
    ("ridge", "n_positive"), [(1e-6, 1), (1.0, 2), (2.0, 4), (1e3, 12)]
)
def test_the_exact_start_is_the_best_p_at_the_first_point(
    monkeypatch: pytest.MonkeyPatch,
    distribution: Any,
    block: int,
    ridge: float,
    n_positive: int,
) -> None:
    monkeypatch.setattr(start, "BLOCK", block)
    problem, _ = make_problem(Kind(dim=4, n=8, m=12))
    method = DSZOG(
        start="exact", distribution=distribution, dual_ridge=ridge, penalty=2.0
    )
    weights = _first_weights(method, problem, iterations=math.ceil(12 / block))
    paper = replace(_paper_for(problem, method), lam=ridge)
    np.testing.assert_allclose(weights, paper.best_p(problem.x0), rtol=0, atol=1e-12)
    assert np.count_nonzero(weights) == n_positive


def _look_at_all(method: DSZOG, size: ProblemSize) -> list[IntArray]:
    """Return what the start asks for, of constraints that all hold."""
    state, asked = method.init(np.zeros(2), size, 0), []
    while state.start is not None:
        (query,) = method.ask(state)
        asked.append(query.constraints)
        values = np.full((1, len(query.constraints)), -1.0)
        reply = Reply(losses=np.empty((1, 0)), constraints=values)
        state, _ = method.tell(state, [query], [reply])
    assert state.first_iteration == state.iteration == len(asked)
    return asked


def test_the_blocks_of_the_exact_start_double_from_256_to_131072() -> None:
    asked = _look_at_all(DSZOG(start="exact"), size_of(2, m=10**6))
    assert np.array_equal(np.concatenate(asked), np.arange(10**6))
    lengths = [len(block) for block in asked]
    assert lengths[:10] == [256, *(2**k for k in range(8, 17))]
    assert lengths[10:16] == [2**17] * 6
    assert lengths[16:] == [10**6 - 7 * 2**17]


@pytest.mark.parametrize("distribution", ["dense", "sparse"])
def test_the_sampled_start_is_the_best_p_of_the_drawn_constraints(
    monkeypatch: pytest.MonkeyPatch, distribution: Any
) -> None:
    monkeypatch.setattr(start, "SAMPLE", 6)
    problem, _ = make_problem(Kind(m=40))
    drawn_first: dict[str, Any] = {"start": "sampled", "distribution": distribution}
    method = DSZOG(dual_ridge=0.05, penalty=1.0, **drawn_first)
    (query,) = method.ask(method.init(problem.x0, problem.size, 0))
    weights = _first_weights(method, problem, iterations=1)
    paper = replace(_paper_for(problem, method), lam=0.05)
    drawn = set(query.constraints.tolist())
    phi = [paper.phi(problem.x0, j) if j in drawn else 0.0 for j in range(40)]
    expected = simplex(np.array(phi) / 0.05)
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-12)
    assert len(drawn) == 6
    assert np.ptp(weights) > 0.1


def test_the_automatic_start_draws_only_where_looking_at_all_costs_too_much() -> None:
    def looks_at(m: int, queries: int | None = None) -> int:
        size = size_of(2, m=m)
        method = DSZOG().planned(size, None, queries)
        (query,) = method.ask(method.init(np.zeros(2), size, 0))
        return len(query.constraints)

    first_of_all, draw = 2**8, 2**14
    assert looks_at(100_000) == first_of_all
    assert looks_at(10**7) == first_of_all
    assert looks_at(10**7 + 1) == draw
    assert looks_at(10**12) == draw
    assert looks_at(100_000, queries=1_000_000) == first_of_all
    assert looks_at(100_000, queries=999_999) == draw


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
@pytest.mark.parametrize("distribution", ["dense", "sparse"])
def test_weights_replace_the_first_look(distribution: Any, order: list[int]) -> None:
    method = DSZOG(distribution=distribution)
    indices, weights = np.array([3, 70])[order], np.array([0.25, 0.5])[order]
    state = method.init(np.zeros(2), size_of(2, m=100), 0, weights=(indices, weights))
    weights[:], indices[:] = 9.0, 1  # they stay the caller's
    assert state.start is None
    assert state.distribution is not None
    expected = np.full(100, 0.25 / 98)
    expected[[3, 70]] = 0.25, 0.5
    np.testing.assert_allclose(state.distribution.dense(), expected, rtol=1e-14)
    assert len(method.ask(state)) == 2  # not the one of a look at the constraints


# ---------------------------------------------------------------------- the gradient
def _penalised(problem: Problem, query: Query, penalty: float, x: FloatArray) -> float:
    """Return the mean loss and the penalised mean of a query's batch at a point."""
    assert problem.constraints is not None
    losses = problem.losses.values(x[np.newaxis], query.losses)[0]
    values = problem.constraints.values(x[np.newaxis], query.constraints)[0]
    return float(losses.mean() + penalty * np.square(np.maximum(values, 0.0)).mean())


def _by_differences(problem: Problem, batch: Query, penalty: float) -> FloatArray:
    """Return the gradient of the penalised batch; the error, f''' h^2 / 6, is small."""
    h, at = 1e-5, partial(_penalised, problem, batch, penalty)
    around = h * np.eye(len(batch.x))
    return np.array([(at(batch.x + e) - at(batch.x - e)) / (2 * h) for e in around])


def test_a_white_box_gives_the_exact_gradient_of_the_penalised_batch() -> None:
    problem, _ = make_problem(Kind(dim=4, n=8, m=12, gradient=True, jacobian=True))
    assert problem.constraints is not None
    settings = SMALL | {"constraint_batch": 9}
    method = DSZOG(averaging=1.0, penalty=3.0, dual_ridge=10.0, **settings)
    state = after(method, problem, 4, seed=1)
    around, at, _ = queries = method.ask(state)
    moved, _ = method.tell(state, queries, evaluate(problem, queries))

    values = problem.constraints.values(at.x[np.newaxis], at.constraints)[0]
    slopes = 2.0 * np.maximum(values, 0.0)
    rows = problem.constraints.jacobian(at.x, at.constraints)
    expected = problem.losses.gradient(at.x, at.losses).mean(axis=0)
    expected = expected + 3.0 * (slopes[:, np.newaxis] * rows).mean(axis=0)
    np.testing.assert_allclose(moved.velocity, expected, rtol=1e-13)
    by_differences = _by_differences(problem, at, 3.0)
    np.testing.assert_allclose(moved.velocity, by_differences, rtol=0, atol=1e-8)
    n_different = len(set(at.constraints.tolist()))
    assert 1 < n_different < 9  # a repeat counts double
    assert len(around.steps) == len(around.losses) == len(around.constraints) == 0


@pytest.mark.parametrize("known", ["nothing", "gradient", "jacobian"])
@pytest.mark.parametrize("distribution", ["sparse", "uniform"])
def test_central_differences_along_all_coordinates_give_the_same_gradient(
    known: str, distribution: Any
) -> None:
    slopes = {"gradient": known == "gradient", "jacobian": known == "jacobian"}
    problem, _ = make_problem(Kind(dim=4, n=8, m=12, **slopes))
    settings = SMALL | {"n_directions": 4, "directions": "coordinate"}
    settings |= {"averaging": 1.0, "antithetic": True, "distribution": distribution}
    method = DSZOG(**settings)
    state = after(method, problem, 4, seed=1)
    queries = method.ask(state)
    around, at = queries[0], queries[1]
    moved, _ = method.tell(state, queries, evaluate(problem, queries))

    losses = at.losses if known == "gradient" else around.losses
    rows = at.constraints if known == "jacobian" else around.constraints
    batch = Query.at(state.x, iteration=0, losses=losses, constraints=rows)
    expected = _by_differences(problem, batch, method.penalty)
    # The library's own differences reach 2e-4 far: their error is f''' 4e-8 / 6.
    np.testing.assert_allclose(moved.velocity, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("directions", ["orthogonal", "coordinate"])
@pytest.mark.parametrize(("dim", "n_directions"), [(1, 1), (3, 3), (5, 5), (8, 5)])
def test_of_a_basis_no_more_directions_are_taken_than_there_are_variables(
    directions: Any, dim: int, n_directions: int
) -> None:
    problem, _ = make_problem(Kind(dim=dim))
    cases: list[tuple[Any, int]] = [(directions, n_directions), ("gaussian", 5)]
    for chosen, expected in cases:
        method = DSZOG(directions=chosen)
        state = after(method, problem, 2)
        assert len(method.ask(state)[0].steps) == expected


@pytest.mark.parametrize("antithetic", [False, True])
@pytest.mark.parametrize("directions", ["gaussian", "sphere", "orthogonal"])
@pytest.mark.parametrize("at", ["lower", "upper", "both"])
def test_at_a_bound_no_direction_is_cut_short(
    antithetic: bool, directions: Any, at: str
) -> None:
    corner = {"lower": [-1.0] * 3, "upper": [0.5] * 3, "both": [-1.0, 0.5, 0.1]}[at]
    problem, _ = make_problem(Kind(bounded=True))
    size = problem.size
    method = DSZOG(antithetic=antithetic, directions=directions)
    state = method.init(np.array(corner), size, 0)
    state = replace(advance(method, problem, state, 2), x=np.array(corner))
    around = method.ask(state)[0]
    points = around.points(size)
    np.testing.assert_allclose(points[1:] - points[0], around.steps, rtol=0, atol=1e-15)
    assert np.abs(points[0] - corner).max() < np.abs(around.steps).max() + 1e-15


def test_a_variable_without_room_is_looked_at_where_it_is() -> None:
    size = size_of(2, lower=np.array([1.0, -1.0]), upper=np.array([1.0, 1.0]))
    method = DSZOG()
    points = method.ask(method.init(np.ones(2), size, 0))[0].points(size)
    np.testing.assert_array_equal(points[:, 0], 1.0)
    assert np.ptp(points[:, 1]) > 0.0
    assert (points[:, 1] <= 1.0).all()


# ------------------------------------------------------------------- the step's decay
def _steps(method: DSZOG, iterations: int) -> FloatArray:
    """Return the lengths of the steps down a slope of 1, in units of the step size."""
    slope: Any = {"gradient": lambda point, i: np.ones((len(i), 1))}
    losses = Losses(lambda points, i: points[:, :1] * np.ones(len(i)), 1, **slope)
    problem = Problem(losses, None, 1, bounds=[(-1e6, 1e6)])
    first = method.init(np.zeros(1), problem.size, 0)
    states = walk(method, problem, first, iterations)
    steps = -np.diff([float(state.x[0]) for state in states])
    return np.asarray(steps / method.step_size)


def _plain(**settings: Any) -> DSZOG:
    return DSZOG(adaptive=False, averaging=1.0, step_size=0.5, **settings)


LINEAR: dict[str, Any] = {"step_decay": "linear"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"step_decay": "constant"}, np.ones(50)),
        ({"step_decay": "sqrt"}, 1.0 / np.sqrt(1.0 + np.arange(301) / 100)),
        (LINEAR, 1.0 - np.arange(20) / 2000),
        (LINEAR | {"horizon": 40}, [*(1.0 - np.arange(40) / 40), *[1e-3] * 10]),
        # Two queries an iteration: a value and a gradient of the one loss.
        (LINEAR | {"horizon_queries": 80}, 1.0 - np.arange(40) / 40),
        (LINEAR | {"horizon_queries": 80, "horizon": 20}, 1.0 - np.arange(20) / 20),
        (LINEAR | {"horizon_queries": 40, "horizon": 50}, 1.0 - np.arange(20) / 20),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_the_step_decays_as_the_settings_say(
    settings: dict[str, Any], expected: FloatArray
) -> None:
    steps = _steps(_plain(**settings), len(expected))
    np.testing.assert_allclose(steps, expected, rtol=1e-9)


def test_a_plan_fits_the_horizon_to_the_run() -> None:
    size = size_of(2, m=1000)
    assert DSZOG().planned(size, 50, None).horizon == 50
    assert DSZOG().planned(size, 50, None).horizon_queries is None
    assert DSZOG().planned(size, None, 90_000).horizon_queries == 90_000
    assert DSZOG(horizon=7).planned(size, 50, 90_000).horizon == 7
    assert DSZOG(horizon=7).planned(size, 50, 90_000).horizon_queries is None
    assert DSZOG().planned(size, None, None).step_decay == "sqrt"
    assert DSZOG().planned(size, 50, None).step_decay == "linear"
    assert DSZOG(horizon=7).planned(size, None, None).step_decay == "linear"


@pytest.mark.parametrize("limit", [{"horizon": 5}, {"horizon_queries": 2500}], ids=str)
def test_a_new_round_keeps_the_iterate_alone(limit: dict[str, Any]) -> None:
    problem, _ = make_problem(Kind())
    method = DSZOG(step_decay="linear", averaging=0.1, **limit)
    looks, steps = 2, 5  # 256 of 300 constraints, the others, and then it moves
    state = after(method, problem, looks + steps)
    assert state.iteration - state.first_iteration == steps
    anew = method.new_round(state)

    np.testing.assert_array_equal(anew.x, state.x)
    assert anew.distribution is state.distribution
    queries = method.ask(anew)
    replies = evaluate(problem, queries)
    first, _ = replace(method, averaging=1.0).tell(anew, queries, replies)
    again, _ = method.tell(anew, queries, replies)
    np.testing.assert_array_equal(again.velocity, first.velocity)
    z = np.sqrt(np.square(again.velocity).sum())
    step = 0.02 * again.velocity / (np.sqrt(z) + 1e-8)
    np.testing.assert_allclose(again.x, state.x - step, rtol=0, atol=1e-15)
    late, _ = method.tell(state, queries, replies)
    assert np.abs(late.x - state.x).max() < 0.3 * np.abs(again.x - state.x).max()


# ----------------------------------------------------------------- what a person sees
@pytest.mark.parametrize("white", [False, True])
@pytest.mark.parametrize("distribution", ["sparse", "dense", "uniform"])
def test_the_info_is_that_of_the_sampled_batch(white: bool, distribution: Any) -> None:
    problem, _ = make_problem(Kind(gradient=white, jacobian=white))
    method = DSZOG(distribution=distribution)
    state = after(method, problem, 3)
    queries = method.ask(state)
    replies = evaluate(problem, queries)
    moved, info = method.tell(state, queries, replies)

    batch, dual = replies[1 if white else 0], replies[-1].constraints[0]
    drawn = batch.constraints[0]
    uniform = drawn if distribution == "uniform" else dual
    assert info.sampled_objective == pytest.approx(batch.losses[0].mean(), rel=1e-14)
    assert info.sampled_violation == max(drawn.max(), dual.max(initial=0.0))
    assert info.sampled_share == (uniform > 0.0).mean()
    mean = np.maximum(drawn, 0.0).mean()  # of sums in another order
    assert info.weighted_violation == pytest.approx(mean, rel=1e-14)
    assert info.n_touched == len(method.weights(moved)[0])
    assert info.sampled_violation > 0.0


# --------------------------------------------------------------------------- settings
def test_as_published_are_the_settings_of_the_paper() -> None:
    method = DSZOG.as_published(step_size=0.001)
    assert (method.step_size, method.dual_step_size, method.penalty) == (0.001, 0.01, 1)
    assert (method.radius, method.n_directions) == (1e-3, 10)
    assert (method.averaging, method.dual_averaging) == (0.9, 0.9)
    assert (method.dual_ridge, method.step_eps) == (1e-6, 1e-8)
    assert (method.step_decay, method.directions) == ("constant", "gaussian")
    assert (method.antithetic, method.adaptive) == (False, True)
    assert (method.dual_estimate, method.start) == ("plain", "exact")


@pytest.mark.parametrize(("dim", "seed"), [(3, 0), (2, -1), (2, 2**64)])
def test_a_start_or_a_seed_that_does_not_fit_is_refused(dim: int, seed: int) -> None:
    match = r"x0.*3.*2" if dim == 3 else rf"seed.*got {seed}"
    with pytest.raises(InputError, match=match):
        DSZOG().init(np.zeros(dim), size_of(2, m=10), seed)


def test_whole_numbers_are_the_floats_that_kernels_are_compiled_for() -> None:
    method = DSZOG(step_size=1, penalty=10, averaging=1, radius=np.float64(0.5))
    numbers = (method.step_size, method.penalty, method.averaging, method.radius)
    assert [type(number) for number in numbers] == [float] * 4
    assert method == DSZOG(step_size=1.0, penalty=10.0, averaging=1.0, radius=0.5)


# ------------------------------------------------------------------- who holds the loop
def test_a_step_needs_as_many_queries_as_there_are_calls_to_make() -> None:
    plain = size_of(2, m=50)
    shared = replace(plain, calls=Calls.of_width(25, 50))
    method = DSZOG(n_directions=2, constraint_batch=10, dual_batch=20)
    assert method.least_queries(plain) == 50 + 4 * (1 + 10) + 20
    assert method.least_queries(shared) == 2 + 4 * (1 + 2) + 2


def test_tell_refuses_queries_in_another_order_though_each_has_its_reply() -> None:
    problem, _ = make_problem(Kind(dim=4, n=8, m=12))
    method = DSZOG()
    state = after(method, problem, 1, seed=1)
    queries = method.ask(state)
    with pytest.raises(DszogError, match=r"in the order of ask\(state\)"):
        method.tell(state, queries[::-1], evaluate(problem, queries)[::-1])


# ------------------------------------------------------- values that no square holds
@pytest.mark.parametrize("estimate", ["plain", "centred", "combined"])
@pytest.mark.parametrize("value", [1e70, 1e100, 1e152, 1e200, 1.7e308])
@pytest.mark.parametrize("when", ["at the start", "later"])
def test_a_violation_whose_square_is_no_number_draws_the_weight_to_itself(
    value: float, when: str, estimate: Any
) -> None:
    def told(distribution: Any) -> DSZOGState:
        how: dict[str, Any] = {"distribution": distribution, "dual_estimate": estimate}
        method = DSZOG(constraint_batch=4, dual_batch=5, **how)
        state = method.init(np.zeros(2), size_of(2, m=20), seed=0)
        for iteration in range(6):
            queries = method.ask(state)
            is_huge = when == "at the start" or iteration > 2
            replies = []
            for query in queries:
                shape = len(query.steps) + 1, len(query.constraints)
                values = np.full(shape, -1.0)
                if not len(query.steps) and is_huge:
                    values[:, 1] = value
                losses = np.zeros((shape[0], len(query.losses)))
                replies.append(Reply(losses=losses, constraints=values))
            state, info = method.tell(state, queries, replies)
            if is_huge:
                assert info.sampled_violation == value
        return state

    dense, sparse = told("dense"), told("sparse")
    assert dense.distribution is not None
    assert sparse.distribution is not None
    weights = dense.distribution.dense()
    assert weights.sum() == pytest.approx(1.0)
    assert weights.max() > 0.4
    np.testing.assert_allclose(sparse.distribution.dense(), weights, atol=1e-12)


@pytest.mark.parametrize("value", [1e100, 1e160, 1e300])
def test_a_run_among_such_values_ends_in_words(value: float) -> None:
    walls = Constraints(lambda p, j: p[:, :1] - 1.0 + np.where(j == 3, value, 0.0), 20)
    result = minimize(lambda x: float(x @ x), np.ones(2), walls, max_iterations=9)
    assert not result.success
    assert result.maxcv == value


@pytest.mark.parametrize("value", [1e60, 1e120, 1e154, 1e200, 1e307, 1.7e308])
def test_the_evidence_on_such_values_is_what_is_known(value: float) -> None:
    walls = Constraints(lambda p, j: p[:, :1] * value + 0.0 * j, 20)
    problem = Problem(lambda x: float(x @ x), walls, 2)
    evidence = certify(problem, np.array([-1.0, 0.5]))
    assert evidence.stationarity is not None  # where nothing is squared
    evidence = certify(problem, np.array([1.0, 0.5]))
    assert evidence.feasibility.maxcv == value
    assert (evidence.stationarity is None) == (value > 1e60)
    if evidence.stationarity is None:
        assert "not known: " in str(evidence)
