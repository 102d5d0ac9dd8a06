"""Labelled rows, checked once when they are made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from dszog._arrays import FloatArray, IntArray, frozen_floats
from dszog._validation import as_numbers
from dszog.errors import InputError


def _no_columns() -> FloatArray:
    return np.empty((0, 0))


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Rows with a label each, and sensitive columns where there are any.

    Attributes
    ----------
    name : str
        What errors call these data.
    X : ndarray or scipy.sparse.csr_array
        What a classifier may look at, shape (n, d).
    y : ndarray
        Labels, -1 or +1; both occur.
    feature_names : tuple of str
        A name for each column of `X`.
    sensitive : ndarray
        What a classifier must not look at: zeros and ones, shape (n, r). No column is
        constant.
    sensitive_names : tuple of str
        A name for each column of `sensitive`.
    one_class : bool
        Whether one label alone will do, as in the test part of svmguide3.

    Examples
    --------
    >>> samples = Samples(name="two", X=[[1.0, 2.0], [3.0, 4.0]], y=[-1, 1])
    >>> samples.n_rows, samples.n_features, samples.positive_share
    (2, 2, 0.5)
    """

    name: str
    X: Any = field(repr=False)
    y: FloatArray = field(repr=False)
    feature_names: tuple[str, ...] = ()
    sensitive: FloatArray = field(default_factory=_no_columns, repr=False)
    sensitive_names: tuple[str, ...] = ()
    one_class: bool = False

    def __post_init__(self) -> None:
        X = self.X if issparse(self.X) else as_numbers(self.name, "X", self.X)
        if X.ndim != 2 or 0 in X.shape:
            raise InputError(
                f"{self.name}: `X` must be a matrix with a sample per row, got shape "
                f"{X.shape}. Pass at least one row and one column."
            )
        names = self.feature_names or tuple(map(str, range(1, X.shape[1] + 1)))
        self._set(X=csr_array(X, dtype=np.float64) if issparse(X) else X)
        self._set(feature_names=tuple(names))
        self._set(y=as_numbers(self.name, "y", self.y))
        sensitive = as_numbers(self.name, "sensitive", self.sensitive)
        if not sensitive.size:
            sensitive = np.empty((X.shape[0], 0))
        self._set(sensitive=sensitive)
        self._check_shapes()
        self._check_features()
        self._check_labels()
        self._check_sensitive()

    def _set(self, **values: Any) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_shapes(self) -> None:
        n, d = self.X.shape
        for name, shape, expected in (
            ("y", self.y.shape, (n,)),
            ("feature_names", (len(self.feature_names),), (d,)),
            ("sensitive", self.sensitive.shape, (n, len(self.sensitive_names))),
        ):
            if shape != expected:
                raise InputError(
                    f"{self.name}: `{name}` has shape {shape}, {expected} belongs to "
                    f"`X` of shape {(n, d)}. Pass one entry for each row or column."
                )

    def _check_features(self) -> None:
        values = self.X.data if issparse(self.X) else self.X
        if np.isfinite(values).all():
            return
        dense = self.dense
        row, column = np.argwhere(~np.isfinite(dense))[0]
        raise InputError(
            f"{self.name}: column {self.feature_names[column]!r} of `X` must be "
            f"finite, got {dense[row, column]} in row {row}. Leave the row or the "
            "column out, or put a number there."
        )

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

    def _check_sensitive(self) -> None:
        for column, name in zip(self.sensitive.T, self.sensitive_names, strict=True):
            found = np.unique(column)
            if not np.isin(found, (0, 1)).all():
                raise InputError(
                    f"{self.name}: the sensitive column {name!r} must hold 0 and 1, "
                    f"got {found[~np.isin(found, (0, 1))][0]:g}. Pass "
                    "(column > np.median(column)) or one column for each value."
                )
            if len(found) == 1:
                raise InputError(
                    f"{self.name}: the sensitive column {name!r} is {found[0]:g} in "
                    f"all {self.n_rows} rows, so there is nothing to compare. Leave it "
                    "out, take more rows, or split with another seed."
                )

    @property
    def n_rows(self) -> int:
        """Number of samples."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of columns a classifier may look at."""
        return int(self.X.shape[1])

    @property
    def positive_share(self) -> float:
        """Share of samples with the label +1."""
        return float((self.y > 0).mean())

    @property
    def dense(self) -> FloatArray:
        """`X` as an ordinary array."""
        return frozen_floats(self.X.toarray()) if issparse(self.X) else self.X

    def take(self, rows: IntArray, name: str = "") -> Samples:
        """Return some of the rows, in the order of `rows`."""
        return Samples(
            name=name or self.name,
            X=self.X[rows],
            y=self.y[rows],
            feature_names=self.feature_names,
            sensitive=self.sensitive[rows],
            sensitive_names=self.sensitive_names,
            one_class=self.one_class,
        )
