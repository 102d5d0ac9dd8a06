"""Constraint generation, the field's own way to a secure dispatch.

Solve over a few cases, sweep through the others, take in those that are violated, and
again. The inner problems are solved by elastic linear programs within a trust region.
Slopes are learned by differences after every step that is taken, once for each case.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from dszog.contract.arrays import FloatArray
from dszog_bench.grid.network import Grid

STEP = 1e-4  # of differences
TOLERANCE = 5e-4  # of violations
PRICE = 5.0  # of the largest violation
# These two were the best of those tried from the starts 0 and 7.
NEW_CASES = 1  # taken in after a sweep
ENOUGH = 1e-3  # of the cost, promised by a step that is not worth taking
MOST_ROUNDS, MOST_STEPS = 20, 40


class Answer(NamedTuple):
    """Where constraint generation ended."""

    x: FloatArray
    cost: float
    n_calls: int


class _Point:
    """A dispatch with what is known there; nothing is asked twice."""

    def __init__(self, grid: Grid, x: FloatArray) -> None:
        self.grid, self.x = grid, x
        self.cost = grid.cost(x)
        self._limits: dict[int, FloatArray] = {}
        self._slopes: dict[int, FloatArray] = {}

    def limits(self, case: int) -> FloatArray:
        if case not in self._limits:
            found = self.grid.limits(self.x, case)
            self._limits[case] = np.nan_to_num(found, nan=9.0)
        return self._limits[case]

    def slopes(self, case: int) -> FloatArray:
        if case not in self._slopes:
            limits = self.limits(case)
            rises = [
                (np.nan_to_num(self.grid.limits(y, case), nan=9.0) - limits) / step
                for y, step in self._around()
            ]
            self._slopes[case] = np.array(rises).T
        return self._slopes[case]

    @cached_property
    def cost_slope(self) -> FloatArray:
        rises = [(self.grid.cost(y) - self.cost) / s for y, s in self._around()]
        return np.array(rises)

    def _around(self) -> Iterator[tuple[FloatArray, float]]:
        for k in range(self.grid.dim):
            y, step = self.x.copy(), STEP if self.x[k] + STEP <= 1.0 else -STEP
            y[k] += step
            yield y, step


def generate(grid: Grid, x: FloatArray, *, n_swept: int | None, seed: int) -> Answer:
    """Return the dispatch; `n_swept` cases are drawn for a sweep, all if None."""
    grid.n_calls = 0
    rng = np.random.default_rng(seed)
    cases: list[int] = []
    point, radius = _Point(grid, x), 0.2
    for _ in range(MOST_ROUNDS):
        swept = np.arange(grid.n_cases)
        if n_swept is not None:
            swept = rng.choice(swept, min(n_swept, grid.n_cases), replace=False)
        worst = {case: float(point.limits(case).max()) for case in swept.tolist()}
        order = sorted(worst, key=lambda case: -worst[case])
        new = [c for c in order if worst[c] > TOLERANCE and c not in cases][:NEW_CASES]
        if cases and not new:
            break
        cases += new or order[:1]
        point, radius = _solved(point, cases, max(radius, 0.05))
    return Answer(point.x, point.cost, grid.n_calls)


def _solved(point: _Point, cases: list[int], radius: float) -> tuple[_Point, float]:
    """Minimise the cost under the limits of some cases."""
    for _ in range(MOST_STEPS):
        step, left = _step(point, cases, radius)
        now = _violation(point, cases)
        promise = PRICE * (now - left) - float(point.cost_slope @ step)
        if promise < ENOUGH or radius < 1e-4:
            break
        there = _Point(point.grid, np.clip(point.x + step, 0.0, 1.0))
        kept = point.cost - there.cost + PRICE * (now - _violation(there, cases))
        if kept > 0.1 * promise:
            point = there
            radius = min(0.5, 1.5 * radius) if kept > 0.7 * promise else radius
        else:
            radius /= 2.5
    return point, radius


def _violation(point: _Point, cases: list[int]) -> float:
    return max(0.0, *(float(point.limits(case).max()) for case in cases))


def _step(point: _Point, cases: list[int], radius: float) -> tuple[FloatArray, float]:
    """Return the step, and the violation that it leaves."""
    x = point.x
    limits = np.concatenate([point.limits(case) for case in cases])
    rows = np.concatenate([point.slopes(case) for case in cases])
    lower, upper = np.maximum(-radius, -x), np.minimum(radius, 1.0 - x)
    near = limits + np.abs(rows).sum(axis=-1) * radius > 0
    A, b = rows[near], -limits[near]
    found = linprog(
        np.append(point.cost_slope, PRICE),
        A_ub=np.column_stack([A, -np.ones(len(b))]),
        b_ub=b,
        bounds=[*zip(lower, upper, strict=True), (0.0, None)],
        method="highs",
    )
    if found.status != 0:
        return np.zeros(len(x)), max(float(limits.max()), 0.0)
    return found.x[:-1], float(found.x[-1])
