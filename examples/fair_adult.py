"""
Incomes of the Adult census, errors alike in all groups
=======================================================

Predict who earns more than 50,000 so that errors fall on all groups alike::

    DSZOG_DATA=folder python examples/fair_adult.py [--fairlearn]

The folder holds ``adult.data`` and ``adult.test`` (or ``.xz``, ``.gz``). Without it a
generated look-alike of 600 rows stands in, which shows the program, not the census.
The model has sex, race and age group among its inputs, as the logistic regression
beside it does: it needs them to treat the groups alike.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dszog.learn import FairClassifier
from dszog.learn.report import fairness_report
from dszog_paper.data import Samples, load, stand_in

COLUMNS = ("sex", "race", "age")
MIN_ROWS = 500  # of a group in the test part, for its rates to mean something


def read(part: str) -> Samples:
    """Return a part of Adult, or what stands in for it."""
    if os.environ.get("DSZOG_DATA"):
        return load("adult", part, allow_download=False)
    return stand_in("adult", part)


def groups(samples: Samples) -> dict[str, Any]:
    """Return a column of groups for each of sex, race and age."""
    found = {}
    for column in COLUMNS:
        places = [
            place
            for place, name in enumerate(samples.sensitive_names)
            if name.startswith(f"{column} = ")
        ]
        names = [samples.sensitive_names[place].split(" = ")[1] for place in places]
        table = samples.sensitive[:, places]
        if names == ["Female"]:  # one column tells both apart
            names, table = ["Female", "Male"], np.hstack([table, 1 - table])
        found[column] = np.array(names)[table.argmax(axis=1)]
    return found


def features(samples: Samples) -> Any:
    """Return the features with sex, race and age group among them."""
    places = [
        place
        for place, name in enumerate(samples.sensitive_names)
        if name.split(" = ")[0] in COLUMNS
    ]
    return np.hstack([samples.dense, samples.sensitive[:, places]])


def main() -> None:
    train, test = read("train"), read("test")
    print(f"{train.name}: {len(train.y):,} rows to learn from, {len(test.y):,} to test")
    X, X_test = features(train), features(test)
    sensitive, sensitive_test = groups(train), groups(test)
    min_rows = MIN_ROWS if len(test.y) > 10 * MIN_ROWS else 50

    def line(name: str, seconds: float, called: Any) -> None:
        report = fairness_report(test.y > 0, called > 0, list(sensitive_test.items()))
        gap = report.gap("equalized_odds", min_count=min_rows)
        print(
            f"{name:24}  accuracy {report.overall.accuracy:.4f}  largest gap {gap:.3f}"
            f"  {seconds:5.1f} s"
        )

    start = time.perf_counter()
    plain = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    plain.fit(X, train.y)
    line("LogisticRegression", time.perf_counter() - start, plain.predict(X_test))

    start = time.perf_counter()
    model = FairClassifier(random_state=0)
    model.fit(X, train.y, sensitive_features=sensitive)
    line("FairClassifier", time.perf_counter() - start, model.predict(X_test))

    if "--fairlearn" in sys.argv[1:]:
        import pandas as pd
        from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

        scale = StandardScaler().fit(X)
        for bound in (0.02, 0.1):
            start = time.perf_counter()
            reduction = ExponentiatedGradient(
                LogisticRegression(max_iter=1000), EqualizedOdds(difference_bound=bound)
            )
            reduction.fit(
                scale.transform(X),
                (train.y > 0).astype(int),
                sensitive_features=pd.DataFrame(sensitive),
            )
            called = reduction.predict(scale.transform(X_test), random_state=0)
            line(f"Fairlearn, bound {bound}", time.perf_counter() - start, called)

    print(f"(gaps of true and false positive rates, groups of {min_rows} rows or more)")
    print()
    print(model.fairness_report(X_test, test.y, sensitive_test))
    print()
    print(model.certificate_)


if __name__ == "__main__":
    main()
