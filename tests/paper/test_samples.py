"""Samples are checked when they are made, and divided as in the paper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from dszog.errors import InputError
from dszog_paper.data import GENERATED, Samples, generate, paper_split, stand_in


def _samples(**changes: Any) -> Samples:
    given: dict[str, Any] = {
        "name": "mine",
        "X": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
        "y": [-1, 1, 1],
        "sensitive": [[0], [1], [1]],
    }
    return Samples(**(given | changes))


def test_rows_are_taken_with_all_that_belongs_to_them() -> None:
    taken = _samples().take(np.array([2, 0]), "part")
    assert taken.name == "part"
    np.testing.assert_array_equal(taken.X, [[5, 6], [1, 2]])
    np.testing.assert_array_equal(taken.y, [1, -1])
    np.testing.assert_array_equal(taken.sensitive, [[1], [0]])
    assert not any(one.flags.writeable for one in (taken.X, taken.y, taken.sensitive))
    sparse = _samples(X=csr_array(np.eye(3, 2)))
    assert sparse.take(np.array([0, 1])).X.nnz == 2
    np.testing.assert_array_equal(sparse.dense, np.eye(3, 2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [1, 1, 1]}, r"labels must be -1 and \+1, each at least once, got 1\. "),
        ({"y": [0, 1, 1]}, r"labels must be -1 and \+1, .*got 0, 1\. "),
        ({"y": [1, 2, 3]}, r"labels must be -1 and \+1, .*got 1, 2, 3\. "),
        ({"y": [1, -1, np.nan]}, r"labels must be -1 and \+1, .*got -1, 1, nan"),
    ],
)
def test_wrong_samples_are_told_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"mine: .*{message}"):
        _samples(**changes)


@pytest.mark.parametrize("n", [13, 99, 101, 1000])
def test_a_split_is_half_three_tenths_two_tenths_and_uses_each_row_once(n: int) -> None:
    rows = np.arange(float(n))
    samples = Samples(name="s", X=rows[:, None], y=np.where(rows % 2, 1, -1))
    split = paper_split(samples, seed=3)
    parts = [part.dense[:, 0] for part in (split.train, split.test, split.validation)]
    sizes = [len(part) for part in parts]
    np.testing.assert_allclose(sizes, [0.5 * n, 0.3 * n, 0.2 * n], atol=2)
    np.testing.assert_array_equal(np.sort(np.concatenate(parts)), rows)


def test_seed_and_repetition_decide_the_split() -> None:
    samples = stand_in("svmguide3")

    def first(**key: int) -> Any:
        return paper_split(samples, n_samples=300, **key).train.dense

    np.testing.assert_array_equal(first(seed=1), first(seed=1))
    assert not np.array_equal(first(seed=1), first(seed=2))
    assert not np.array_equal(first(seed=1), first(seed=1, repetition=1))


def test_a_split_without_a_class_is_refused_by_name() -> None:
    once = np.arange(100) == 0
    samples = Samples(name="rare", X=np.ones((100, 1)), y=np.where(once, 1, -1))
    match = r"rare, \w+ split \(seed 0, repetition 0\): the labels must be .* got -1"
    with pytest.raises(InputError, match=match):
        paper_split(samples, seed=0)


@pytest.mark.parametrize("name", GENERATED)
def test_seed_and_repetition_decide_the_data(name: str) -> None:
    if name != "gen":
        pytest.importorskip("sklearn")
    first = generate(name, seed=1)
    np.testing.assert_array_equal(first.X, generate(name, seed=1).X)
    assert not np.array_equal(first.X, generate(name, seed=2).X)
    assert not np.array_equal(first.X, generate(name, seed=1, repetition=1).X)
