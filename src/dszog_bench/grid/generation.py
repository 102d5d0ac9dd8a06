"""Constraint generation, the field's own way to a secure dispatch.

Solve over a few cases, sweep through the others, take in those that are violated, and
again. The inner problems are solved by elastic linear programs within a trust region,
with slopes by differences after every step that is taken.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from dszog.contract.arrays import FloatArray
from dszog_bench.grid.network import Grid

STEP = 1e-4  # of differences
TOLERANCE = 5e-4  # of violations
PRICE = 5.0  # of the largest violation
NEW_CASES = 5  # taken in after a sweep
MOST_ROUNDS, MOST_STEPS = 20, 40


class Answer(NamedTuple):
    """Where constraint generation ended."""

    x: FloatArray
    cost: float
    n_calls: int


def generate(grid: Grid, x: FloatArray, *, n_swept: int | None, seed: int) -> Answer:
    """Return the dispatch; `n_swept` cases are drawn for a sweep, all if None."""
    grid.n_calls = 0
    rng = np.random.default_rng(seed)
    cases: list[int] = []
    for _ in range(MOST_ROUNDS):
        swept = np.arange(grid.n_cases)
        if n_swept is not None:
            swept = rng.choice(swept, min(n_swept, grid.n_cases), replace=False)
        worst = np.array([grid.limits(x, int(i)).max() for i in swept])
        order = np.argsort(-np.nan_to_num(worst, nan=9.0))
        new = [
            int(swept[k])
            for k in order
            if not worst[k] <= TOLERANCE and int(swept[k]) not in cases
        ][:NEW_CASES]
        if cases and not new:
            break
        cases += new or [int(swept[order[0]])]
        x = _solved(grid, x, cases)
    return Answer(x, grid.cost(x), grid.n_calls)


def _solved(grid: Grid, x: FloatArray, cases: list[int]) -> FloatArray:
    """Minimise the cost under the limits of some cases."""
    radius = 0.2
    cost, limits = _values(grid, x, cases)
    slope, rows = _slopes(grid, x, cases, cost, limits)
    for _ in range(MOST_STEPS):
        step, left = _step(x, slope, limits, rows, radius)
        now = max(float(limits.max()), 0.0)
        promise = PRICE * (now - left) - float(slope @ step)
        if promise < 2e-5 or radius < 1e-4:
            break
        y = np.clip(x + step, 0.0, 1.0)
        new_cost, new_limits = _values(grid, y, cases)
        kept = cost - new_cost + PRICE * (now - max(float(new_limits.max()), 0.0))
        if kept > 0.1 * promise:
            x, cost, limits = y, new_cost, new_limits
            radius = min(0.5, 1.5 * radius) if kept > 0.7 * promise else radius
            slope, rows = _slopes(grid, x, cases, cost, limits)
        else:
            radius /= 2.5
    return x


def _values(grid: Grid, x: FloatArray, cases: list[int]) -> tuple[float, FloatArray]:
    limits = np.array([grid.limits(x, i) for i in cases])
    return grid.cost(x), np.nan_to_num(limits, nan=9.0)


def _slopes(
    grid: Grid, x: FloatArray, cases: list[int], cost: float, limits: FloatArray
) -> tuple[FloatArray, FloatArray]:
    slope, rows = np.empty(grid.dim), np.empty((*limits.shape, grid.dim))
    for k in range(grid.dim):
        y, step = x.copy(), STEP if x[k] + STEP <= 1.0 else -STEP
        y[k] += step
        there, values = _values(grid, y, cases)
        slope[k], rows[..., k] = (there - cost) / step, (values - limits) / step
    return slope, rows


def _step(
    x: FloatArray,
    slope: FloatArray,
    limits: FloatArray,
    rows: FloatArray,
    radius: float,
) -> tuple[FloatArray, float]:
    """Return the step, and the violation that it leaves."""
    lower, upper = np.maximum(-radius, -x), np.minimum(radius, 1.0 - x)
    near = limits + np.abs(rows).sum(axis=-1) * radius > 0
    A, b = rows[near], -limits[near]
    found = linprog(
        np.append(slope, PRICE),
        A_ub=np.column_stack([A, -np.ones(len(b))]),
        b_ub=b,
        bounds=[*zip(lower, upper, strict=True), (0.0, None)],
        method="highs",
    )
    if found.status != 0:
        return np.zeros(len(x)), max(float(limits.max()), 0.0)
    return found.x[:-1], float(found.x[-1])
