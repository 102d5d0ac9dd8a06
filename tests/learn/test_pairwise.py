from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score

from dszog.learn import PairwiseClassifier


@pytest.fixture
def ranked() -> tuple[Any, Any]:
    """Return rows whose classes can be separated, by one direction of three."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(150, 3))
    score = X @ [1.0, -1.0, 0.5]
    X = X[np.abs(score) > 0.3]
    return X, (X @ [1.0, -1.0, 0.5] > 0).astype(int)


def test_every_pair_is_kept_where_that_can_be(ranked: Any) -> None:
    X, y = ranked
    model = PairwiseClassifier(margin=0.05, penalty=None, random_state=0).fit(X, y)
    scores = model.decision_function(X)
    assert scores[y == 1].min() >= scores[y == 0].max()
    assert model.certificate_.feasibility.kind == "structure"
    n_pairs = int(y.sum() * (1 - y).sum())
    assert model.certificate_.feasibility.n_constraints == n_pairs


def test_the_certificate_counts_the_pairs_out_of_order() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 80)
    X = rng.normal(size=(160, 2)) + y[:, np.newaxis]
    model = PairwiseClassifier(random_state=0, max_iterations=100).fit(X, y)
    feasibility = model.certificate_.feasibility
    share = feasibility.n_violated / feasibility.n_constraints
    auc = roc_auc_score(y, model.decision_function(X))
    assert 0.0 < share < 0.5
    assert share == pytest.approx(1.0 - auc, abs=1e-12)


def test_the_intercept_plays_no_part_in_a_pair(ranked: Any) -> None:
    X, y = ranked
    y = np.where(np.arange(len(y)) % 7, y, 0)  # most rows are negative
    model = PairwiseClassifier(random_state=0, max_iterations=50, penalty=0.001)
    model.fit(X, y)
    scores = model.decision_function(X)
    worst = (scores[y == 0].max() - scores[y == 1].min()).item()
    assert model.intercept_[0] != 0.0
    assert model.certificate_.feasibility.worst_value == pytest.approx(worst)


@pytest.mark.parametrize(
    ("settings", "advice"),
    [
        (
            {"max_iterations": 50, "penalty": 0.03},
            r"With `penalty`=0\.03 .* try 0\.001",
        ),
        ({"max_time": 1e-9}, "before the first iteration: raise `max_time`"),
    ],
)
def test_a_model_that_is_the_start_is_said_to_be(
    ranked: Any, settings: Any, advice: str
) -> None:
    X, y = ranked
    y = np.where(np.arange(len(y)) % 7, y, 0)  # some pairs contradict each other
    with pytest.warns(ConvergenceWarning, match=f"the model is the start, .*{advice}"):
        PairwiseClassifier(random_state=0, **settings).fit(X, y)


def test_a_usual_penalty_under_which_nothing_is_learned_is_lowered(ranked: Any) -> None:
    X, y = ranked
    y = np.where(np.arange(len(y)) % 7, y, 0)
    model = PairwiseClassifier(random_state=0, max_iterations=50).fit(X, y)
    told = PairwiseClassifier(random_state=0, max_iterations=50, penalty=0.001)
    assert model.penalty_ == 0.001
    assert not model.result_.is_start
    np.testing.assert_array_equal(model.coef_, told.fit(X, y).coef_)


def test_equal_rows_make_one_pair(ranked: Any) -> None:
    X, y = ranked
    model = PairwiseClassifier(random_state=0, max_iterations=5)
    once = model.fit(X, y).certificate_.feasibility.n_constraints
    twice = model.fit(np.vstack([X, X]), np.tile(y, 2))
    assert twice.certificate_.feasibility.n_constraints == once
