"""Data sets that are generated: the paper's `gen` and `D1` to `D4`.

The paper does not say how its own were made. These follow its dimensions, numbers of
samples and of sensitive features (its Tables 4 and 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dszog._random import stream
from dszog._validation import check_choice, check_count, check_seed
from dszog.errors import InputError, MissingExtraError
from dszog_paper.data.samples import Samples

GENERATE = 2
"""Purpose of the draws that make data."""


@dataclass(frozen=True, kw_only=True)
class Linear:
    """Normal features, and labels that a hyperplane gives but for some noise."""

    n_features: int
    n_samples: int = 1000
    noise: float = 0.3

    def make(self, name: str, rng: np.random.Generator) -> Samples:
        """Draw the samples: the sign of x.w + noise e, both x and e normal."""
        direction = rng.standard_normal(self.n_features)
        direction /= np.linalg.norm(direction)  # uniform on the unit sphere
        X = rng.standard_normal((self.n_samples, self.n_features))
        score = X @ direction + self.noise * rng.standard_normal(self.n_samples)
        return Samples(name=name, X=X, y=np.where(score >= 0, 1.0, -1.0))


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """Clusters on the corners of a cube, and sensitive features picked at random.

    Half of the features carry information; 5 % of the labels are drawn anew. A
    sensitive feature becomes whether it is above its median, and the classifier does
    not see it.
    """

    n_features: int
    n_sensitive: int
    n_samples: int = 2000
    share_flipped: float = 0.05

    def make(
        self, name: str, rng: np.random.Generator, *, remove_sensitive: bool = True
    ) -> Samples:
        """Draw the samples with scikit-learn's ``make_classification``."""
        X, labels = _make_classification()(
            n_samples=self.n_samples,
            n_features=self.n_features,
            n_informative=self.n_features // 2,
            flip_y=self.share_flipped,
            random_state=int(rng.integers(2**32)),
        )
        # Not a function of the library, which may draw otherwise one day: then the data
        # of the same seed would change.
        chosen = np.sort(
            rng.choice(self.n_features, self.n_sensitive, replace=False, shuffle=False)
        )
        names = np.array([f"x{column + 1}" for column in range(self.n_features)])
        kept = np.arange(self.n_features)
        if remove_sensitive:
            kept = np.setdiff1d(kept, chosen)
        return Samples(
            name=name,
            X=X[:, kept],
            y=np.where(labels == 1, 1.0, -1.0),
            feature_names=tuple(names[kept].tolist()),
            sensitive=X[:, chosen] > np.median(X[:, chosen], axis=0),
            sensitive_names=tuple(f"{x} > median" for x in names[chosen]),
        )


GENERATED: dict[str, Linear | Clusters] = {
    "gen": Linear(n_features=50),
    "D1": Clusters(n_features=100, n_sensitive=10),
    "D2": Clusters(n_features=200, n_sensitive=20),
    "D3": Clusters(n_features=300, n_sensitive=20),
    "D4": Clusters(n_features=400, n_sensitive=20),
}
"""What each name stands for."""


def generate(
    name: str, *, seed: int, repetition: int = 0, remove_sensitive: bool = True
) -> Samples:
    """Make one of the generated data sets.

    Parameters
    ----------
    name : str
        ``"gen"``, or ``"D1"`` to ``"D4"`` (these need scikit-learn).
    seed, repetition : int
        The same pair always gives the same data.
    remove_sensitive : bool
        Whether the sensitive features of ``D1`` to ``D4`` are taken out of `X`.

    Examples
    --------
    >>> samples = generate("gen", seed=1)
    >>> samples.n_rows, samples.n_features
    (1000, 50)
    """
    check_choice("generate", "name", name, GENERATED)
    seed = check_seed("generate", seed)
    turn = check_count("generate", "repetition", repetition, least=0)
    rng = stream(seed, turn, purpose=GENERATE)
    made = GENERATED[name]
    if isinstance(made, Linear):
        if not remove_sensitive:
            raise InputError(
                f"generate: `remove_sensitive` is False, but {name!r} has no sensitive "
                "features. Leave it out."
            )
        return made.make(name, rng)
    return made.make(name, rng, remove_sensitive=remove_sensitive)


def _make_classification() -> Callable[..., Any]:
    try:
        from sklearn.datasets import make_classification
    except ImportError as missing:
        raise MissingExtraError.of(
            "Data set D1, D2, D3 or D4", "scikit-learn", "paper"
        ) from missing
    return make_classification  # type: ignore[no-any-return]
