"""The paper's theorem, seen: the average of |grad g|^2 falls as runs get longer.

Steps and averaging have the orders of the theorem for runs of T iterations. On a smooth
problem with a ridge of order one the gradient of g is known exactly.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dszog
from dszog.contract.arrays import FloatArray
from dszog.maths.distribution import project_onto_simplex
from dszog.workers import Serial

PENALTY, RIDGE = 2.0, 1.0


def average_square(n_iterations: int, seed: int) -> float:
    """Return the mean of ``|grad g|^2`` over the iterates of one run."""
    rng = np.random.default_rng(0)
    targets = rng.normal(1.0, 0.5, size=(40, 5))
    centres = rng.normal(0.0, 0.3, size=(30, 5))

    def losses(points: Any, i: Any) -> Any:
        return 0.5 * np.square(points[:, None] - targets[i]).mean(axis=2)

    def discs(points: Any, j: Any) -> Any:
        return np.square(points[:, None] - centres[j]).mean(axis=2) - 0.3

    def outer_gradient(w: FloatArray) -> FloatArray:
        violations = np.maximum(np.square(w - centres).mean(axis=1) - 0.3, 0.0)
        p = project_onto_simplex(PENALTY * violations**2 / RIDGE)
        inner = 2.0 * PENALTY * (p * violations) @ (2.0 * (w - centres) / 5)
        gradient: FloatArray = (w - targets).mean(axis=0) / 5 + inner
        return gradient

    rate = n_iterations**-0.5
    method = dszog.DSZOG.as_published(
        penalty=PENALTY, dual_ridge=RIDGE, step_size=rate, dual_step_size=rate,
        averaging=min(10.0 * rate, 1.0), dual_averaging=0.9, loss_batch=4,
        constraint_batch=4, dual_batch=4, n_directions=2, radius=1e-4,
    )  # fmt: skip
    problem = dszog.Problem(dszog.Losses(losses, 40), dszog.Constraints(discs, 30), 5)
    answer = Serial(problem)
    squares: list[float] = []
    state = method.init(np.full(5, 2.0), problem.size, seed)
    while len(squares) < n_iterations:
        queries = method.ask(state)
        state, _ = method.tell(state, queries, answer(queries))
        squares.append(np.square(outer_gradient(state.x)).sum())
    return float(np.mean(squares))


@pytest.mark.slow
def test_the_gradient_of_the_outer_function_vanishes_on_average() -> None:
    lengths = [100, 400, 1600]
    means = [np.mean([average_square(t, seed) for seed in range(8)]) for t in lengths]
    # The theorem promises -0.5, and -0.62 was seen. The means have standard errors of
    # 6 %, the slope one of 0.03: a false alarm is more than five of these away.
    slope = float(np.polyfit(np.log(lengths), np.log(means), 1)[0])
    assert -0.9 < slope < -0.45
