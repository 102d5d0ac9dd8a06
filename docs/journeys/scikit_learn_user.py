"""Somebody who thinks in fit and predict."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from steps import Journey

journey = Journey("A user of scikit-learn")

rng = np.random.default_rng(0)
n = 600
group = rng.choice(["north", "south"], size=n)
merit, noise = rng.normal(size=(2, n))
hired = np.where(merit + (group == "north") + 0.5 * noise > 0.5, "yes", "no")
X = np.column_stack([merit, group == "north", rng.normal(size=n)]).astype(float)
train, test = np.arange(400), np.arange(400, n)

with journey.step("from dszog.learn import FairClassifier, PairwiseClassifier"):
    import dszog
    from dszog.learn import FairClassifier, PairwiseClassifier, load

with journey.mistake(
    "fit(X, y), as always, with no word about groups",
    UserWarning,
    "no sensitive features",
    "sensitive_features=Z",
):
    FairClassifier(max_iterations=100).fit(X[train], hired[train])

with journey.mistake("the groups as a third argument", TypeError, "positional"):
    FairClassifier().fit(X[train], hired[train], group[train])  # type: ignore[call-arg]

with journey.mistake("an unknown parameter", TypeError, "argument 'n_jobs'"):
    FairClassifier(n_jobs=2)

with journey.step("with sensitive_features: it fits, with text for labels and groups"):
    plain = LogisticRegression().fit(X[train], hired[train])
    fair = FairClassifier(constraint="demographic_parity", random_state=0)
    fair.fit(X[train], hired[train], sensitive_features=group[train])
    assert set(fair.predict(X[test])) == {"yes", "no"}
    assert fair.result_.success

with journey.step("is it fair, and what did it cost?"):
    report = fair.fairness_report(X[test], hired[test], group[test])
    print(report)
    shares = [
        np.mean(plain.predict(X[test])[group[test] == g] == "yes") for g in set(group)
    ]
    gap = report.gap("demographic_parity")
    print(f"    gap {gap:.2f}, of logistic regression {np.ptp(shares):.2f}")
    assert gap < 0.5 * np.ptp(shares)
    assert fair.score(X[test], hired[test]) > 0.6

with journey.step("clone, get_params, repr: an estimator like others"):
    assert clone(fair).get_params() == fair.get_params()
    assert "demographic_parity" in repr(fair)

with journey.step("the other one in a pipeline, cross-validated"):
    ranker = make_pipeline(
        StandardScaler(), PairwiseClassifier(max_iterations=100, random_state=0)
    )
    scores = cross_val_score(ranker, X, hired, cv=3)
    print(f"    accuracy {scores.mean():.3f}")
    assert scores.mean() > 0.7

with journey.step("and in a search over its parameters, by their names"):
    search = GridSearchCV(
        ranker, {"pairwiseclassifier__penalty": [0.001, "usual"]}, cv=2
    ).fit(X, hired)
    assert search.best_params_["pairwiseclassifier__penalty"] in (0.001, "usual")

with journey.mistake("three classes", ValueError, "Only binary classification"):
    PairwiseClassifier().fit(X[:9], np.arange(9) % 3)

with journey.mistake(
    "a loss by a name of scikit-learn's", ValueError, "'loss' parameter", "logistic"
):
    PairwiseClassifier(loss="log_loss").fit(X, hired)

with journey.mistake("predict before fit", ValueError, "not fitted yet", "Call 'fit'"):
    PairwiseClassifier().predict(X)

with journey.step("save the model, load it elsewhere: the same scores, and no pickle"):
    with tempfile.TemporaryDirectory() as folder:
        fair.save(Path(folder) / "model")
        again = load(Path(folder) / "model")
    assert (again.decision_function(X) == fair.decision_function(X)).all()

with journey.step("pickle, which joblib and searches use, works too"):
    assert (pickle.loads(pickle.dumps(fair)).predict(X) == fair.predict(X)).all()

with journey.step("a tiny budget: a warning says that the constraints are not kept"):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        hurried = FairClassifier(tolerance=0.0, max_iterations=3, random_state=0)
        hurried.fit(X[train], hired[train], sensitive_features=group[train])
    said = str(caught[-1].message)
    print(f"    {said}")
    assert not hurried.result_.success
    assert "Raise `max_iterations`, `penalty` or `tolerance`" in said

assert dszog.__version__
journey.arrive()
