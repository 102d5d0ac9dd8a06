r"""The estimates of the baselines: right on average, exact where they should be.

A mean of 100,000 draws must lie within 3 standard errors of the gradient in each of
four variables: with fresh seeds that would be red in 1 % of the runs of a cell
(:math:`4 \cdot 0.0027`). The seeds are fixed, so that no run is red by chance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dszog import FZFW, AccSZOFW, AccSZOFWStorm, AccZOM, Problem
from dszog.contract import Query, Reply
from dszog.contract.arrays import FloatArray
from dszog.maths.subproblems import L2Ball
from dszog.methods import FeasibleMethod
from dszog.methods.estimates import Estimator, ask_around, draw_steps, estimate
from tests.contracts.helpers import Kind, evaluate, make_problem, told
from tests.runs import size_of

DIM = 4
N_DRAWS = 100_000
RADIUS = 1e-3
HESSIAN = np.diag([1.0, 2.0, -1.0, 0.5]) + 0.3
SLOPE = np.array([1.0, -2.0, 0.5, 0.0])
X = np.array([0.3, -0.2, 1.0, 0.7])
GRADIENT = HESSIAN @ X + SLOPE

SIZE = size_of(DIM, 3)


def quadratic(points: FloatArray) -> FloatArray:
    curved = 0.5 * np.einsum("kd,de,ke->k", points, HESSIAN, points)
    return np.asarray(curved + points @ SLOPE)


def answered(query: Query) -> Reply:
    """All losses are the quadratic."""
    values = quadratic(query.points(SIZE))
    losses = np.repeat(values[:, np.newaxis], len(query.losses), axis=1)
    return Reply(losses=losses, constraints=np.empty((len(losses), 0)))


def estimated(
    steps: FloatArray, estimator: Estimator, radius: float, per_sample: bool = False
) -> FloatArray:
    queries = ask_around(
        X, steps, np.arange(len(steps) if per_sample else 2) % 3, iteration=0,
        size=SIZE, estimator=estimator, per_sample=per_sample,
    )  # fmt: skip
    return estimate(queries, [answered(q) for q in queries], estimator, radius)


@pytest.mark.parametrize("estimator", ["gaussian", "sphere"])
def test_the_mean_of_many_draws_is_the_gradient(estimator: Estimator) -> None:
    # On a quadratic both smoothings leave the gradient as it is.
    rng = np.random.Generator(np.random.Philox(key=1))
    steps = draw_steps(rng, estimator, RADIUS, N_DRAWS, DIM)
    slopes = (quadratic(X + steps) - quadratic(X[np.newaxis])) / RADIUS
    factor = DIM if estimator == "sphere" else 1
    each = factor * slopes[:, np.newaxis] * steps / RADIUS
    error = each.std(axis=0, ddof=1) / np.sqrt(N_DRAWS)
    mean = estimated(steps, estimator, RADIUS)
    np.testing.assert_allclose(mean, each.mean(axis=0), rtol=1e-6)
    assert (np.abs(mean - GRADIENT) <= 3.0 * error).all()
    assert (np.abs(1.1 * mean - GRADIENT) > 3.0 * error).any()  # it can tell


@pytest.mark.parametrize("estimator", ["gaussian", "sphere"])
def test_one_direction_per_loss_averages_to_the_same(estimator: Estimator) -> None:
    rng = np.random.Generator(np.random.Philox(key=2))
    steps = draw_steps(rng, estimator, RADIUS, 500, DIM)
    np.testing.assert_allclose(
        estimated(steps, estimator, RADIUS, per_sample=True),
        estimated(steps, estimator, RADIUS),
        rtol=1e-9,
    )


def test_differences_along_the_coordinates_are_exact_on_a_quadratic() -> None:
    rng = np.random.Generator(np.random.Philox(key=3))
    for radius in (1e-3, 1e-1, 1.0):
        steps = draw_steps(rng, "coordinate", radius, 1, DIM)
        found = estimated(steps, "coordinate", radius)
        np.testing.assert_allclose(found, GRADIENT, atol=1e-8)


BALL = L2Ball(dim=DIM, radius=3.0)
CORRECTED: dict[str, FeasibleMethod] = {
    "spider, coordinates": FZFW(domain=BALL),
    "spider, sphere": AccSZOFW(domain=BALL, estimator="sphere"),
    "spider, per loss": AccSZOFW(
        domain=BALL, estimator="sphere", per_sample=True, loss_batch=5, period=100
    ),
    "storm, coordinates": AccSZOFWStorm(domain=BALL),
    "storm, gaussian": AccSZOFWStorm(domain=BALL, estimator="gaussian"),
    "storm, sphere": AccZOM(domain=BALL),
    "storm, per loss": AccZOM(domain=BALL, loss_batch=10, per_sample=True),
}
every_corrected = pytest.mark.parametrize(
    "method", CORRECTED.values(), ids=list(CORRECTED)
)


def second_step(method: Any) -> tuple[Problem, Any]:
    problem, _ = make_problem(Kind(dim=DIM, n=50))
    return problem, told(method, problem, method.init(X, problem.size, 0))[0]


@every_corrected
def test_where_nothing_moved_a_correction_is_exactly_nothing(method: Any) -> None:
    problem, state = second_step(method)
    state = replace(state, x=state.previous)
    queries = method.ask(state)
    moved, _ = method.tell(state, queries, evaluate(problem, queries))

    if hasattr(method, "period"):  # SPIDER: v + 0
        np.testing.assert_array_equal(moved.gradient, state.gradient)
        return
    half = len(queries) // 2
    here = method._gradient(
        queries[:half], evaluate(problem, queries[:half]), problem.size
    )
    # STORM: (1 - rho) v + rho g, whatever rho is.
    shift, full = moved.gradient - state.gradient, here - state.gradient
    share = shift @ full / (full @ full)
    assert 0.0 < share <= 1.0
    np.testing.assert_allclose(shift, share * full, atol=1e-12)
