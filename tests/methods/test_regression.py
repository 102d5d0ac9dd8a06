"""Answers do not get worse: 51 seeds on six problems, against those that were kept.

A figure is worse if its median is more than a tenth larger and a paired Wilcoxon test
says so at 1e-4. `python -m tests.methods.test_regression` keeps the present ones; the
commit that does so says why.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import wilcoxon

import dszog
from dszog.contract.arrays import FloatArray, IntArray

KEPT = Path(__file__).with_name("regression.json")
N_SEEDS, N_QUERIES = 51, 4000
LEAST = 1e-4  # what is smaller counts as so much
METHODS = ("dszog", "sampled_sqp")
ROWS = np.random.default_rng(3).normal(size=(500, 8)) / np.sqrt(8)
CENTRES = np.random.default_rng(4).normal(1.0, 0.5, size=(40, 8))


def bowl(x: FloatArray) -> float:
    return float(((x - 1.0) ** 2).sum())


def planes(points: FloatArray, j: IntArray) -> FloatArray:
    return np.asarray(points @ ROWS[j].T - 0.5)


def circle(points: FloatArray, j: IntArray) -> FloatArray:
    angles = 2.0 * np.pi * j / 300
    return np.asarray(points @ [np.cos(angles), np.sin(angles)] - 1.0)


def losses(points: FloatArray, i: IntArray) -> FloatArray:
    return np.asarray(((points[:, np.newaxis] - CENTRES[i]) ** 2).mean(axis=2))


def outside(points: FloatArray, j: IntArray) -> FloatArray:
    return np.asarray(1.0 - (points**2).sum(axis=1, keepdims=True) + 0.0 * j)


Made = tuple[Any, FloatArray, Any, dict[str, Any]]
PROBLEMS: dict[str, Callable[[], Made]] = {
    "planes": lambda: (bowl, np.zeros(8), dszog.Constraints(planes, 500), {}),
    "disc": lambda: (bowl, np.zeros(2), dszog.Constraints(circle, 300), {}),
    "sampled losses": lambda: (
        *(dszog.Losses(losses, 40), np.zeros(8), dszog.Constraints(planes, 500), {}),
    ),
    "bounds": lambda: (bowl, np.zeros(5), None, {"bounds": [(-1.0, 0.5)] * 5}),
    "not convex": lambda: (
        *(lambda x: float(x @ x + x[0] + 1.0), np.full(3, 0.4)),
        *(dszog.Constraints(outside, 3), {}),
    ),
    "scaled": lambda: (
        *(lambda x: bowl(x / [1.0, 100.0]), np.zeros(2)),
        *(dszog.Constraints(lambda p, j: circle(p / [1.0, 100.0], j), 300), {}),
    ),
}


def figures(problem: str, method: str) -> FloatArray:
    """Return objective and violation of each seed after as many queries."""
    fun, x0, constraints, more = PROBLEMS[problem]()
    call: dict[str, Any] = {"method": method, "max_queries": N_QUERIES} | more
    seeds = range(N_SEEDS)
    ends = [dszog.minimize(fun, x0, constraints, seed=k, **call) for k in seeds]
    return np.array([[end.fun, end.maxcv] for end in ends])


def is_worse(kept: FloatArray, now: FloatArray) -> bool:
    """Whether figures of the same seeds are larger, and not by chance."""
    kept, now = np.maximum(kept, LEAST), np.maximum(now, LEAST)
    if np.median(now) <= 1.1 * np.median(kept):
        return False
    return bool(wilcoxon(now - kept, alternative="greater").pvalue < 1e-4)


def test_what_is_worse_is_seen_and_chance_is_not() -> None:
    rng = np.random.default_rng(0)
    kept = np.exp(rng.normal(size=N_SEEDS))
    assert is_worse(kept, 1.2 * kept)
    assert not is_worse(kept, 1.05 * kept)
    assert not any(is_worse(kept, rng.permutation(kept)) for _ in range(200))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_no_answer_is_worse_than_those_kept(problem: str, method: str) -> None:
    kept = np.array(json.loads(KEPT.read_text())[f"{problem}, {method}"])
    now = figures(problem, method)
    assert not is_worse(kept[:, 0], now[:, 0])
    assert not is_worse(kept[:, 1], now[:, 1])


if __name__ == "__main__":
    found = {f"{p}, {m}": figures(p, m).tolist() for p in PROBLEMS for m in METHODS}
    KEPT.write_text(json.dumps(found) + "\n")
