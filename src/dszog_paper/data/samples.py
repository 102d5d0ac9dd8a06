"""Labelled rows, checked once when they are made, and divided as the paper does."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.errors import InputError
from dszog.maths.random_stream import stream

SPLIT = 3
"""Purpose of the draws that divide data."""


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Rows with a label each, and sensitive columns where there are any."""

    name: str  # what errors call these data
    X: Any = field(repr=False)  # (n, d) what a classifier may look at; may be sparse
    y: FloatArray = field(repr=False)  # (n,) -1 or +1; both occur
    # (n, r) What a classifier must not look at: zeros and ones, no column constant.
    sensitive: FloatArray = field(default_factory=lambda: np.empty((0, 0)), repr=False)
    one_class: bool = False  # one label alone will do, as in the test part of svmguide3

    def __post_init__(self) -> None:
        X = csr_array(self.X) if issparse(self.X) else frozen_floats(self.X)
        sensitive = frozen_floats(self.sensitive)
        kept = {
            "X": X,
            "y": frozen_floats(self.y),
            "sensitive": sensitive if sensitive.size else np.empty((X.shape[0], 0)),
        }
        for name, value in kept.items():
            object.__setattr__(self, name, value)
        self._check_labels()

    def _check_labels(self) -> None:
        found = np.unique(self.y)
        known = bool(np.isin(found, (-1, 1)).all())
        if not known or len(found) < (1 if self.one_class else 2):
            listed = ", ".join(f"{value:g}" for value in found[:5])
            more = ", ..." if len(found) > 5 else ""
            raise InputError(
                f"{self.name}: the labels must be -1 and +1, each at least once, got "
                f"{listed}{more}. Pass two classes: np.where(y == positive, 1, -1)."
            )

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        return int(self.X.shape[1])

    @property
    def positive_share(self) -> float:
        return float((self.y > 0).mean())

    @property
    def is_stand_in(self) -> bool:
        """Whether these rows are generated, in place of the published ones."""
        return "stand-in" in self.name

    @property
    def dense(self) -> FloatArray:
        """`X` as an ordinary array."""
        return frozen_floats(self.X.toarray()) if issparse(self.X) else self.X

    def take(self, rows: IntArray, name: str = "") -> Samples:
        """Return some of the rows, in the order of `rows`."""
        return replace(
            self,
            name=name or self.name,
            X=self.X[rows],
            y=self.y[rows],
            sensitive=self.sensitive[rows],
        )


# ---------------------------------------------------------------------- the split


@dataclass(frozen=True, kw_only=True)
class Split:
    """The three parts of a data set. No row is in two of them."""

    train: Samples
    validation: Samples
    test: Samples


def paper_split(
    samples: Samples,
    *,
    seed: int,
    repetition: int = 0,
    n_samples: int | None = None,
) -> Split:
    """Divide data as the paper does: 50 % train, 30 % test, 20 % validation.

    Rows are drawn without replacement and not by class. Both classes must be in each
    part.

    The same `seed` and `repetition` always give the same split, whatever the method.
    Of many rows `n_samples` are used: the paper draws 1000 of a9a, w8a and svmguide3.
    """
    n = samples.n_rows if n_samples is None else n_samples
    order = stream(seed, repetition, purpose=SPLIT).permutation(samples.n_rows)[:n]
    # Whole numbers: 0.5 * n and 0.3 * n would round differently from n to n.
    train, test, validation = np.split(order, [n // 2, n // 2 + 3 * n // 10])
    suffix = f"split (seed {seed}, repetition {repetition})"
    return Split(
        train=samples.take(train, f"{samples.name}, training {suffix}"),
        validation=samples.take(validation, f"{samples.name}, validation {suffix}"),
        test=samples.take(test, f"{samples.name}, test {suffix}"),
    )
