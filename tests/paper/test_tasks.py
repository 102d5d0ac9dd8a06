from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dszog.errors import InputError
from dszog_paper.data import Split, generate, paper_split
from dszog_paper.tasks import fairness_task, pairwise_task

RNG = np.random.Generator(np.random.Philox(key=5))


def gen_split() -> Split:
    return paper_split(generate("gen", seed=3), seed=3, n_samples=120)


def fair_split() -> Split:
    return paper_split(generate("D1", seed=1), seed=1, n_samples=200)


def slopes(values: Any, point: Any, step: float = 1e-6) -> Any:
    """Return the gradients of some values by central differences, as rows."""
    steps = step * np.eye(len(point))
    return ((values(point + steps) - values(point - steps)) / (2 * step)).T


def test_the_pairwise_task_is_the_papers() -> None:
    split = gen_split()
    task = pairwise_task(split)
    w = 0.1 * RNG.standard_normal(50)
    gap = split.train.y[7] - split.train.dense[7] @ w
    found = task.losses.values(w[np.newaxis], np.array([7]))
    np.testing.assert_allclose(found, [[1.0 - np.exp(-(gap**2))]])
    n_positive = int((split.train.y > 0).sum())
    assert len(task.constraints) == n_positive * (60 - n_positive)


@pytest.mark.parametrize("make", [pairwise_task, fairness_task])
def test_gradients_are_those_of_the_losses(make: Any) -> None:
    task = make(gen_split() if make is pairwise_task else fair_split())
    w, some = 0.1 * RNG.standard_normal(task.dim), np.arange(10)
    by_hand = slopes(lambda points: task.losses.values(points, some), w)
    np.testing.assert_allclose(task.losses.gradient(w, some), by_hand, atol=1e-6)


def test_a_method_is_shown_no_more_than_it_is_given() -> None:
    task = pairwise_task(gen_split())
    black = task.problem(white_constraints=False).size
    white = task.problem(white_constraints=True, gradient=True).size
    assert (black.has_gradient, black.has_jacobian) == (False, False)
    assert (white.has_gradient, white.has_jacobian) == (True, True)


def covariances_by_hand(split: Split, w: Any) -> list[float]:
    train = split.train
    mean = train.sensitive.mean(axis=0)
    found = []
    for function in (1, 2):
        for feature in range(train.sensitive.shape[1]):
            total = 0.0
            for x, y, z in zip(train.dense, train.y, train.sensitive, strict=True):
                score = x @ w
                share = (1 + y) / 2 if function == 1 else (1 - y) / 2
                g = min(0.0, share * y * score)
                total += (z[feature] - mean[feature]) * g
            found.append(total / train.n_rows)
    return found


def test_the_constraints_are_bounds_on_the_covariances() -> None:
    split = fair_split()
    task = fairness_task(split)
    w = 0.1 * RNG.standard_normal(task.dim)
    covariances = np.array(covariances_by_hand(split, w))
    expected = np.concatenate([covariances, -covariances]) - 0.01
    assert len(task.constraints) == 4 * split.train.sensitive.shape[1]
    every = np.arange(len(task.constraints))
    found = task.constraints.values(w[np.newaxis], every)
    np.testing.assert_allclose(found[0], expected, atol=1e-12)
    by_hand = slopes(lambda points: task.constraints.values(points, every[:4]), w)
    found = task.constraints.jacobian(w, every[:4])
    np.testing.assert_allclose(found, by_hand, atol=1e-7)


def test_data_without_sensitive_columns_are_refused() -> None:
    with pytest.raises(InputError, match="no sensitive columns"):
        fairness_task(gen_split())
