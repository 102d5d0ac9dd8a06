"""Both classifiers are scikit-learn estimators in every respect."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

import dszog
from dszog.learn import LOSSES, FairClassifier, PairwiseClassifier
from dszog.learn.base import COUNT

KINDS: list[Any] = [PairwiseClassifier, FairClassifier]
NO_SENSITIVE = "ignore:FairClassifier. no sensitive features"

pytestmark = pytest.mark.filterwarnings(NO_SENSITIVE)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return request.param


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [kind(max_iterations=20) for kind in KINDS]
)
def test_scikit_learn_has_no_objection(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.filterwarnings("ignore:.* the model is the start")  # of random labels
@pytest.mark.parametrize("changes", [{}, {"kernel": "rbf", "max_iterations": 100}])
def test_scikit_learn_has_no_objection_to_defaults_and_kernels(
    kind: Any, changes: dict[str, Any]
) -> None:
    found = check_estimator(kind(**changes), on_skip=None, on_fail=None)
    assert [one for one in found if one["status"] in ("failed", "xfail")] == []
    assert len(found) > 50


def quick(kind: Any, **changes: Any) -> Any:
    return kind(random_state=0, **({"max_iterations": 200} | changes))


@pytest.mark.parametrize("loss", list(LOSSES))
def test_every_loss_learns(kind: Any, loss: str, two_classes: Any) -> None:
    X, y = two_classes
    assert quick(kind, loss=loss).fit(X, y).score(X, y) > 0.9


def test_a_black_box_loss_sees_scores_and_signs(kind: Any, two_classes: Any) -> None:
    X, y = two_classes
    seen = []

    def loss(scores: Any, labels: Any) -> Any:
        seen.append((scores.shape[1] == len(labels), set(labels.tolist())))
        return np.abs(scores - labels)

    model = quick(kind, loss=loss, max_iterations=20).fit(X, y)
    assert model.score(X, y) > 0.9
    assert all(fits and labels <= {-1.0, 1.0} for fits, labels in seen)


@pytest.mark.parametrize("gamma", ["scale", "median", 0.5])
def test_a_kernel_learns_what_is_not_linear(kind: Any, gamma: Any) -> None:
    X = np.random.default_rng(0).normal(size=(300, 2))
    y = (np.square(X).sum(axis=1) > 1.2).astype(int)
    model = quick(kind, kernel="rbf", gamma=gamma, n_centres=100).fit(X, y)
    assert quick(kind).fit(X, y).score(X, y) < 0.75
    assert model.score(X, y) > 0.9
    assert model.dual_coef_.shape == (1, 100)
    assert model.centres_.shape == (100, 2)
    assert not hasattr(model, "coef_")


def test_units_of_the_features_do_not_matter(kind: Any, two_classes: Any) -> None:
    X, y = two_classes
    scales, shifts = np.array([1e-3, 1.0, 1e4, 7.0]), np.array([5.0, 0.0, -1e4, 3.0])
    model = quick(kind, max_iterations=50)
    scores = clone(model).fit(X, y).decision_function(X)
    other = X * scales + shifts
    found = clone(model).fit(other, y).decision_function(other)
    np.testing.assert_array_equal(found > 0, scores > 0)


def test_classes_may_have_any_names(kind: Any, two_classes: Any) -> None:
    X, y = two_classes
    model = quick(kind, max_iterations=30)
    scores = clone(model).fit(X, y).decision_function(X)
    for classes in (
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([False, True]),
        np.array([-1, 1]),
    ):
        found = clone(model).fit(X, classes[y])
        np.testing.assert_array_equal(found.classes_, classes)
        np.testing.assert_array_equal(found.decision_function(X), scores)
        assert set(found.predict(X)) <= set(classes)
    with pytest.raises(ValueError, match="continuous"):
        clone(model).fit(X, np.array([0.5, 2.5])[y])

    swapped = clone(model).fit(X, np.array(["yes", "no"])[y])
    assert (swapped.predict(X) == np.array(["yes", "no"])[y]).mean() > 0.9


def test_the_order_of_the_samples_does_not_matter(kind: Any, two_classes: Any) -> None:
    X, y = two_classes
    order = np.random.default_rng(5).permutation(len(y))
    model = quick(kind, max_iterations=30)
    scores = clone(model).fit(X[order], y[order]).decision_function(X)
    np.testing.assert_array_equal(scores, clone(model).fit(X, y).decision_function(X))


def test_sparse_rows_are_taken_as_they_are(kind: Any, two_classes: Any) -> None:
    X, y = two_classes
    X = np.where(np.abs(X) < 0.8, 0.0, X)
    plain = quick(kind, standardize=False)
    scores = plain.fit(X, y).decision_function(X)
    found = clone(plain).fit(sparse.csr_array(X), y)
    again = clone(plain).fit(sparse.coo_matrix(X), y)
    assert np.mean((found.decision_function(X) > 0) == (scores > 0)) > 0.97
    np.testing.assert_array_equal(found.coef_, again.coef_)
    assert quick(kind).fit(sparse.csc_array(X), y).score(sparse.csr_array(X), y) > 0.85
    kernel = quick(kind, kernel="rbf", max_iterations=100).fit(sparse.csr_array(X), y)
    assert sparse.issparse(kernel.centres_)
    np.testing.assert_allclose(
        kernel.decision_function(sparse.csr_array(X)), kernel.decision_function(X)
    )


def test_a_search_hands_sensitive_features_on(unfair: Any) -> None:
    X, y, group = unfair
    model = quick(FairClassifier, max_iterations=20, constraint_tol=1.0)
    search = GridSearchCV(model, {"tolerance": [0.05, 0.5]}, cv=2, error_score="raise")
    search.fit(X, y, sensitive_features=group)
    assert search.best_estimator_.constraint_names_


@pytest.mark.parametrize(
    "wrong",
    [
        {"loss": "logistics"},
        {"kernel": "poly"},
        {"gamma": -1.0},
        {"penalty": 0.0},
        {"alpha": -1e-3},
        {"step_size": 0},
        {"max_iterations": 0},
        {"max_time": -1.0},
        {"n_centres": 2.5},
        {"standardize": "yes"},
        {"random_state": "today"},
        {"options": [1]},
    ],
)
def test_a_wrong_parameter_is_named(
    kind: Any, wrong: dict[str, Any], two_classes: Any
) -> None:
    (name,) = wrong
    with pytest.raises(ValueError, match=f"'{name}' parameter of {kind.__name__}"):
        kind(**wrong).fit(*two_classes)


def test_data_that_scikit_learn_does_not_try_are_refused(
    kind: Any, two_classes: Any
) -> None:
    X, y = two_classes
    model = quick(kind, max_iterations=5)

    with pytest.raises(NotFittedError):
        model.save("model")
    for labels, weights, match in (
        (np.zeros(200), None, "two classes, got one class"),
        (y, 1 - y, "two classes, got one class"),
        (y, -np.ones(200), "Negative values"),
    ):
        with pytest.raises(ValueError, match=match):
            model.fit(X, labels, sample_weight=weights)
    with pytest.raises(dszog.InputError, match="no option 'stepsize'"):
        quick(kind, options={"stepsize": 1.0}).fit(X, y)


# ------------------------------------------------------------- counts that are floats

COUNTS = {
    name
    for kind in KINDS
    for name, allowed in kind._parameter_constraints.items()
    if COUNT in allowed
}


def test_a_count_may_be_a_whole_float(kind: Any, two_classes: Any) -> None:
    X, y = two_classes
    known = [name for name in COUNTS if name in kind._get_param_names()]
    counts = dict.fromkeys(known, 30) | {"max_queries": 10**6}
    others: dict[str, Any] = {"kernel": "rbf", "random_state": 0}
    for as_float in (float, np.float64, np.float32):
        floats = {name: as_float(n) for name, n in counts.items()}
        model = kind(**others, **floats).fit(X, y)
        assert model.get_params()["max_queries"] is floats["max_queries"]
        np.testing.assert_array_equal(
            model.decision_function(X),
            kind(**others, **counts).fit(X, y).decision_function(X),
        )


@pytest.mark.parametrize("wrong", [2.5, 0.0, -1.0, np.nan, np.inf, "30"])
def test_a_count_that_is_not_whole_is_refused(
    kind: Any, wrong: Any, two_classes: Any
) -> None:
    for name in COUNTS & set(kind._get_param_names()):
        with pytest.raises(ValueError, match=rf"'{name}' parameter .* must be an int"):
            kind(**{name: wrong}).fit(*two_classes)


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_probabilities_follow_the_scores_and_fit_the_rows(
    kind: Any, loss: str, two_classes: Any
) -> None:
    X, y = two_classes
    model = kind(loss=loss, max_iterations=200, random_state=0).fit(X, y)
    shares = model.predict_proba(X)
    assert shares.shape == (len(y), 2)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    np.testing.assert_array_equal(
        model.classes_[shares.argmax(axis=1)], model.predict(X)
    )
    order = np.argsort(model.decision_function(X))
    assert (np.diff(shares[order, 1]) >= 0).all()
    # The best of all slopes for Platt's targets, of 100 rows in each class.
    odds, positive = model.decision_function(X), y == model.classes_[1]
    target = np.where(positive, 101 / 102, 1 / 102)

    def loss_of(slope: float) -> float:
        return float((np.logaddexp(0, slope * odds) - target * slope * odds).mean())

    best = loss_of(model.probability_slope_)
    for factor in (0.5, 0.95, 1.05, 2.0):
        assert best < loss_of(factor * model.probability_slope_)


def test_more_classes_are_refused_with_a_way_out(two_classes: Any) -> None:
    from sklearn.datasets import make_blobs
    from sklearn.multiclass import OneVsRestClassifier

    X, y = make_blobs(150, centers=[(0, 0), (6, 0), (0, 6)], random_state=0)
    for kind, way in (
        (PairwiseClassifier, "OneVsRestClassifier"),
        (FairClassifier, "one"),
    ):
        with pytest.raises(ValueError, match=f"is multiclass. .*{way}"):
            kind(max_iterations=2).fit(X, y)
    each = OneVsRestClassifier(PairwiseClassifier(max_iterations=100, random_state=0))
    assert each.fit(X, y).score(X, y) > 0.95
    assert each.predict_proba(X).shape == (150, 3)
