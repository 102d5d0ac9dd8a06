from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("sklearn")

from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import dszog
from dszog.learn import FairClassifier
from dszog.learn.report import fairness_report


def fitted(unfair: Any, **changes: Any) -> FairClassifier:
    X, y, group = unfair
    settings = {"random_state": 0, "max_iterations": 400} | changes
    return FairClassifier(**settings).fit(X, y, sensitive_features=group)


@pytest.mark.parametrize(
    "kind", ["equalized_odds", "equal_opportunity", "demographic_parity"]
)
def test_gaps_of_rates_shrink_to_the_tolerance(kind: str, unfair: Any) -> None:
    X, y, group = unfair
    free = LogisticRegression().fit(X, y)
    before = fairness_report(
        y, free.predict(X), sensitive_features=group, pos_label="yes"
    ).gap(kind)
    model = fitted(unfair, constraint=kind, tolerance=0.02, pos_label="yes")
    report = model.fairness_report(X, y, group)
    assert before > 0.25
    assert model.result_.maxcv <= 0.01
    assert report.gap(kind) < 0.1  # twice the tolerance, and decisions are not soft
    assert report.overall.accuracy > 0.65


def test_a_fit_ends_lower_than_with_a_fixed_step_and_shown_to_be_optimal(
    unfair: Any,
) -> None:
    found = fitted(unfair, max_iterations=None).result_
    other = fitted(unfair, step_size=0.02).result_
    assert found.success
    assert found.maxcv < 1e-6
    assert found.fun <= other.fun
    assert "DSZOG" in type(other.method).__name__


def test_the_worst_constraint_is_the_rate_it_names(unfair: Any) -> None:
    X, y, group = unfair
    model = fitted(unfair, tolerance=0.0, max_iterations=50, constraint_tol=1.0)

    soft = 1.0 / (1.0 + np.exp(-model.sharpness * model.decision_function(X)))
    values: dict[str, float] = {}
    for label, rate in (("yes", "true positive rate"), ("no", "false positive rate")):
        for name in ("few", "many"):
            mine = soft[(y == label) & (group == name)].mean()
            off = float(mine - soft[y == label].mean())
            title = f"sensitive_feature_0 = {name}, {rate}"
            values |= {f"{title}, above": off, f"{title}, below": -off}
    feasibility = model.certificate_.feasibility

    assert set(model.constraint_names_) == set(values)
    worst = model.constraint_names_[feasibility.worst_index]
    assert feasibility.worst_value == pytest.approx(values[worst])
    assert feasibility.worst_value == pytest.approx(max(values.values()))


def test_all_forms_of_sensitive_features_mean_the_same(unfair: Any) -> None:
    pd = pytest.importorskip("pandas")
    X, y, group = unfair
    forms = [
        group,
        group.tolist(),
        group[:, np.newaxis],
        group.astype(object),
        {"sensitive_feature_0": group},
        pd.Series(group),
        pd.DataFrame({"sensitive_feature_0": group}),
        pd.DataFrame({"sensitive_feature_0": pd.Categorical(group)}),
    ]
    short = {"max_iterations": 10, "constraint_tol": 1.0}
    models = [fitted((X, y, form), **short) for form in forms]
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
    worst = model.certificate_.feasibility
    assert worst.worst_names[0] == model.constraint_names_[worst.worst_index]
    turned = pd.Series(group)[::-1]
    for data in ((X, pd.Series(y)), (pd.DataFrame(X), y)):
        with pytest.raises(dszog.InputError, match="in the order of the others"):
            fitted((*data, turned), **short)
    fitted((X, pd.Series(y), turned.reset_index(drop=True)), **short)


def test_many_columns_are_each_held_to(unfair: Any) -> None:
    X, y, group = unfair
    rng = np.random.default_rng(0)
    table = {
        "group": group,
        "code": rng.integers(3, size=1500),
        "member": rng.random(1500) < 0.5,
        "age": rng.normal(40, 10, size=1500),
    }
    model = fitted((X, y, table), max_iterations=10, constraint_tol=1.0, n_bins=3)

    names = {name.split(",")[0] for name in model.constraint_names_}
    ages = {name for name in names if name.startswith("age")}
    assert names - ages == {
        *("group = few", "group = many", "code = 0", "code = 1", "code = 2"),
        *("member = False", "member = True"),
    }
    assert len(ages) == 3
    assert len(model.constraint_names_) == 2 * 2 * len(names)


def test_groups_that_are_too_small_are_listed(unfair: Any) -> None:
    X, y, group = unfair
    group = group.astype("<U8")
    group[:3] = "tiny"
    model = fitted((X, y, group), max_iterations=10, constraint_tol=1.0)
    assert {name.split(",")[0] for name in model.unconstrained_groups_} == {
        "sensitive_feature_0 = tiny"
    }
    assert not any("tiny" in name for name in model.constraint_names_)
    report = model.fairness_report(X, y, group)
    assert [row.count for row in report.groups if row.group == "tiny"] == [3]


def test_a_weight_is_a_number_of_copies_in_the_rates_too(unfair: Any) -> None:
    X, y, group = (part[:300] for part in unfair)
    weights = np.random.default_rng(3).integers(0, 4, size=300)
    model = FairClassifier(random_state=0, max_iterations=30, constraint_tol=1.0)
    model.fit(X, y, sensitive_features=group, sample_weight=weights)
    weighted = model.coef_
    rows = np.repeat(np.arange(300), weights)
    model.fit(X[rows], y[rows], sensitive_features=group[rows])
    np.testing.assert_allclose(weighted, model.coef_, rtol=1e-9)


def test_what_cannot_be_kept_is_said(unfair: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="off its tolerance by .*rate"):
        fitted(unfair, max_iterations=5, constraint_tol=1e-6)
    X, y, group = unfair
    with pytest.warns(UserWarning, match="no sensitive features"):
        FairClassifier(max_iterations=5, random_state=0).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="of no use. Raise `max_iter"):
        fitted(
            (X, np.arange(len(y)) % 8 < 1, group),
            max_iterations=5,
            constraint_tol=1,
        )


def test_a_model_that_answers_nearly_always_the_same_is_said_to() -> None:
    rng = np.random.default_rng(0)
    merit = rng.normal(size=600)  # which the group is seen by, and nothing else
    group = merit + 0.2 * rng.normal(size=600) > 0
    y = merit + rng.normal(size=600) > -0.2
    model = FairClassifier(
        constraint="demographic_parity", random_state=0, max_iterations=400
    )
    with pytest.warns(ConvergenceWarning, match=r"0\.99\d .* of little use\. Raise"):
        model.fit(merit[:, np.newaxis], y, sensitive_features=group)
    assert model.score(merit[:, np.newaxis], y) > max(y.mean(), 1 - y.mean())


def test_wrong_sensitive_features_are_refused_before_the_fit(unfair: Any) -> None:
    X, y, group = unfair
    calls = []

    def loss(scores: Any, labels: Any) -> Any:
        calls.append(1)
        return np.maximum(1 - scores * labels, 0)

    def attempt(features: Any, **changes: Any) -> None:
        FairClassifier(loss=loss, **changes).fit(X, y, sensitive_features=features)

    holes = np.where(np.arange(1500) == 7, np.nan, 1.0)
    for features, wrong in (
        (group[:-1], "inconsistent numbers of samples"),
        (holes, "no value in row 7 "),
        ([None, *group[1:].tolist()], "no value in row 0 "),
        (np.full(1500, "everybody"), "no two groups are large enough"),
        (np.empty((1500, 0)), "at least one column"),
        (np.zeros((1500, 1, 1)), "3 dimensions"),
        (3, "got 3 with 0 dimensions"),
        ("sex", r"got the name 'sex'.*X\['sex'\]"),
    ):
        with pytest.raises((ValueError, dszog.InputTypeError), match=wrong):
            attempt(features)
    with pytest.raises(ValueError, match="'constraint' parameter"):
        attempt(group, constraint="equalised_odds")
    with pytest.raises(ValueError, match="'tolerance' parameter"):
        attempt(group, tolerance=-0.1)
    assert not calls
    model = fitted(unfair, max_iterations=5, constraint_tol=1.0)
    with pytest.raises(dszog.InputError, match="must have the classes"):
        model.fairness_report(X, np.zeros(1500), group)


def test_the_report_agrees_with_fairlearn(unfair: Any) -> None:
    metrics = pytest.importorskip("fairlearn.metrics")
    pd = pytest.importorskip("pandas")
    from sklearn.metrics import accuracy_score

    X, y, group = unfair
    other = np.random.default_rng(0).integers(3, size=1500).astype(str)
    table = pd.DataFrame({"group": group, "other": other})
    model = fitted((X, y, table), max_iterations=20, constraint_tol=1.0)
    report = model.fairness_report(X, y, table)
    truth, called = (y == "yes").astype(int), (model.predict(X) == "yes").astype(int)

    rows = report.to_frame()
    for column in table:
        frame = metrics.MetricFrame(
            metrics={
                "count": metrics.count,
                "accuracy": accuracy_score,
                "selection_rate": metrics.selection_rate,
                "true_positive_rate": metrics.true_positive_rate,
                "false_positive_rate": metrics.false_positive_rate,
                "true_negative_rate": metrics.true_negative_rate,
                "false_negative_rate": metrics.false_negative_rate,
            },
            y_true=truth,
            y_pred=called,
            sensitive_features=table[column],
        )
        mine = rows.loc[column]
        np.testing.assert_allclose(mine[frame.by_group.columns], frame.by_group)
        overall = [getattr(report.overall, name) for name in frame.overall.index]
        np.testing.assert_allclose(overall, frame.overall)
    gap = max(
        metrics.equalized_odds_difference(
            truth, called, sensitive_features=table[column]
        )
        for column in table
    )
    assert report.gap() == pytest.approx(gap)


def test_the_positive_class_is_the_one_that_is_named(unfair: Any) -> None:
    X, y, group = unfair
    words = np.where(y == "yes", "hire", "reject")  # the wanted class comes first
    settings = {"constraint": "equal_opportunity", "max_iterations": 200}
    named = fitted((X, words, group), pos_label="hire", **settings)
    yes = fitted(unfair, pos_label="yes", **settings)
    with pytest.warns(
        UserWarning, match=r"of the class .*'reject'.*pos_label=.*'hire'"
    ):
        other = fitted((X, words, group), **settings)

    np.testing.assert_array_equal(named.coef_, -yes.coef_)
    np.testing.assert_array_equal(named.predict(X) == "hire", yes.predict(X) == "yes")
    assert named.classes_.tolist() == ["hire", "reject"]
    assert ((named.decision_function(X) > 0) == (named.predict(X) == "reject")).all()
    report = named.fairness_report(X, words, group)
    assert report.pos_label == "hire"
    assert report.groups == yes.fairness_report(X, y, group).groups
    assert report.gap("equal_opportunity") < 0.1
    assert other.fairness_report(X, words, group).pos_label == "reject"
    with pytest.raises(ValueError, match="pos_label must be one of the classes"):
        fitted((X, words, group), pos_label="Hire")


def test_a_report_of_any_predictions_names_its_classes_and_escapes_them() -> None:
    pd = pytest.importorskip("pandas")
    y_true = pd.Series(["yes", "no", "<b>", "yes"], dtype="category")
    y_pred = ["yes", "yes", "no", "no"]
    ages = pd.Series(["9-10", "10-20", "9-10", "<5>"], name="age")
    report = fairness_report(y_true, y_pred, sensitive_features=ages, pos_label="yes")
    assert [row.group for row in report.groups] == ["9-10", "10-20", "<5>"]
    frame = report.to_frame()
    assert frame.loc[("age", "9-10"), "true_positive_rate"] == 1.0
    assert frame.loc[("", "all"), "count"] == 4
    html = report._repr_html_()
    assert "<td>age: &lt;5&gt;</td>" in html
    assert "The positive class is yes." in html
    plain = fairness_report([0, 1], [True, False], sensitive_features=["a", "b"])
    assert plain.pos_label == "1"
    for wrong, words in (
        (((y_true, y_pred), None), "`pos_label` must be one of the classes"),
        (((y_true, y_pred), "Yes"), "got 'Yes'"),
        (((y_true, [1, 0, 0, 1]), "yes"), "must have classes in common"),
    ):
        with pytest.raises(dszog.InputError, match=words):
            fairness_report(*wrong[0], sensitive_features=ages, pos_label=wrong[1])
