"""Data sets that are generated: the paper's `gen` and `D1` to `D4`.

The paper does not say how its own were made. These follow its dimensions, numbers of
samples and of sensitive features (its Tables 4 and 5).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dszog.contract.validation import check_choice
from dszog.errors import MissingExtraError
from dszog.maths.random_stream import stream
from dszog_paper.data.samples import Samples

GENERATE = 2
"""Purpose of the draws that make data."""


N_CLUSTERED = {"D1": (100, 10), "D2": (200, 20), "D3": (300, 20), "D4": (400, 20)}
"""Features of the clustered data sets, and how many of them are sensitive."""

GENERATED = ("gen", *N_CLUSTERED)


def generate(name: str, *, seed: int, repetition: int = 0) -> Samples:
    """Make ``"gen"``, or ``"D1"`` to ``"D4"``, which need scikit-learn."""
    # The same `seed` and `repetition` always give the same data.
    check_choice("generate", "name", name, GENERATED)
    rng = stream(seed, repetition, purpose=GENERATE)
    return _linear(name, rng) if name == "gen" else _clusters(name, rng)


def _linear(name: str, rng: np.random.Generator) -> Samples:
    """Draw normal features, and labels that a hyperplane gives but for some noise."""
    direction = rng.standard_normal(50)
    direction /= np.linalg.norm(direction)  # uniform on the unit sphere
    X = rng.standard_normal((1000, 50))
    score = X @ direction + 0.3 * rng.standard_normal(1000)
    return Samples(name=name, X=X, y=np.where(score >= 0, 1.0, -1.0))


def _clusters(name: str, rng: np.random.Generator) -> Samples:
    """Draw clusters on the corners of a cube, and pick sensitive features at random."""
    # Half of the features carry information; 5 % of the labels are drawn anew. A
    # sensitive feature becomes whether it is above its median, and the classifier does
    # not see it.
    n_features, n_sensitive = N_CLUSTERED[name]
    X, labels = _make_classification()(
        n_samples=2000,
        n_features=n_features,
        n_informative=n_features // 2,
        flip_y=0.05,
        random_state=int(rng.integers(2**32)),
    )
    # Not a function of the library, which may draw otherwise one day: then the data
    # of the same seed would change.
    chosen = np.sort(rng.choice(n_features, n_sensitive, replace=False, shuffle=False))
    kept = np.setdiff1d(np.arange(n_features), chosen)
    return Samples(
        name=name,
        X=X[:, kept],
        y=np.where(labels == 1, 1.0, -1.0),
        sensitive=X[:, chosen] > np.median(X[:, chosen], axis=0),
    )


def _make_classification() -> Callable[..., Any]:
    try:
        from sklearn.datasets import make_classification
    except ImportError as missing:
        raise MissingExtraError.of(
            "Data set D1, D2, D3 or D4", "scikit-learn", "paper"
        ) from missing
    return make_classification  # type: ignore[no-any-return]
