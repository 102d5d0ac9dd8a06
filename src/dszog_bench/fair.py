"""Incomes of the Adult census, predicted so that errors fall on all groups alike.

The models have sex, race and age group among their inputs: they need them to treat the
groups alike. A generated look-alike of 600 rows stands in where the data are missing.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from dszog.errors import MissingExtraError
from dszog_bench.records import Effort, Row
from dszog_paper.data import Samples, load_or_stand_in

COLUMNS = ("sex", "race", "age")
MIN_ROWS = 500  # of a group in the test part, for its rates to mean something


def fair(effort: Effort) -> Iterator[Row]:
    """Fit FairClassifier to Adult: largest gap between groups, accuracy, time."""
    try:
        from dszog.learn.report import fairness_report
    except ImportError as error:
        raise MissingExtraError.of("The measure 'fair'", "sklearn", "bench") from error
    train, test = (
        load_or_stand_in("adult", part, effort.data) for part in ("train", "test")
    )
    groups = _groups(test)
    min_rows = MIN_ROWS if len(test.y) > 10 * MIN_ROWS else 50
    for name, fit in _models(effort.n_seeds).items():
        started = time.perf_counter()
        called = fit(_features(train), train.y, _groups(train), _features(test))
        report = fairness_report(test.y > 0, called > 0, sensitive_features=groups)
        yield Row(
            what=f"{name}, {train.name}: largest gap between groups",
            figure=report.gap("equalized_odds", min_count=min_rows),
            details={
                "accuracy": report.overall.accuracy,
                "seconds": time.perf_counter() - started,
            },
        )


def _groups(samples: Samples) -> dict[str, Any]:
    """Return a column of groups for each of sex, race and age."""
    found = {}
    for column in COLUMNS:
        places = _places(samples, [column])
        names = [samples.sensitive_names[place].split(" = ")[1] for place in places]
        table = samples.sensitive[:, places]
        if names == ["Female"]:  # one column tells both apart
            names, table = ["Female", "Male"], np.hstack([table, 1 - table])
        found[column] = np.array(names)[table.argmax(axis=1)]
    return found


def _features(samples: Samples) -> Any:
    """Return the features with sex, race and age group among them."""
    return np.hstack([samples.dense, samples.sensitive[:, _places(samples, COLUMNS)]])


def _places(samples: Samples, columns: Any) -> list[int]:
    names = enumerate(samples.sensitive_names)
    return [place for place, name in names if name.split(" = ")[0] in columns]


def _models(n_seeds: int) -> dict[str, Callable[..., Any]]:
    """Return functions that fit to rows, labels and groups and predict other rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from dszog.learn import FairClassifier

    def plain(X: Any, y: Any, groups: Any, X_test: Any) -> Any:
        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        return model.fit(X, y).predict(X_test)

    def ours(seed: int, X: Any, y: Any, groups: Any, X_test: Any) -> Any:
        model = FairClassifier(random_state=seed)
        return model.fit(X, y, sensitive_features=groups).predict(X_test)

    def reduced(bound: float, X: Any, y: Any, groups: Any, X_test: Any) -> Any:
        import pandas as pd
        from fairlearn.reductions import EqualizedOdds, ExponentiatedGradient

        model = ExponentiatedGradient(
            LogisticRegression(max_iter=1000), EqualizedOdds(difference_bound=bound)
        )
        scale, groups = StandardScaler().fit(X), pd.DataFrame(groups)
        model.fit(scale.transform(X), (y > 0).astype(int), sensitive_features=groups)
        return model.predict(scale.transform(X_test), random_state=0)

    models: dict[str, Callable[..., Any]] = {"LogisticRegression": plain}
    models |= {f"FairClassifier, seed {k}": partial(ours, k) for k in range(n_seeds)}
    if importlib.util.find_spec("fairlearn") is not None:
        models |= {f"Fairlearn, bound {b}": partial(reduced, b) for b in (0.02, 0.1)}
    return models
