"""Sensitive features as people hand them over, and as groups and numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length

from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import shown
from dszog.errors import InputError, InputTypeError

MOST_GROUPS = 10  # different numbers in a column of groups
N_BINS = 4  # of a column of numbers
_NUMBER = re.compile(r"((?<![\d.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)")


@dataclass(frozen=True, eq=False, kw_only=True)
class SensitiveColumn:
    """How one column was read when the model was fitted."""

    name: str
    categories: tuple[str, ...]  # the groups; empty for a column of numbers
    edges: FloatArray  # where bins of numbers end, without the outermost ones

    @classmethod
    def of(
        cls, name: str, values: NDArray[Any], used: NDArray[np.bool_], n_bins: int
    ) -> SensitiveColumn:
        """Decide how to read a column from the rows in use."""
        present = values[used]
        numbers = _as_numbers(present)
        if numbers is None or len(np.unique(numbers)) <= MOST_GROUPS:
            groups = tuple(in_order(set(_names(present).tolist())))
            return cls(name=name, categories=groups, edges=np.empty(0))
        cuts = np.quantile(numbers, np.arange(1, n_bins) / n_bins)
        return cls(name=name, categories=(), edges=np.unique(cuts))

    @property
    def group_names(self) -> tuple[str, ...]:
        """The groups that are known, in order."""
        return self.categories or tuple(
            _bin_name(self.edges, place) for place in range(len(self.edges) + 1)
        )

    def encode(self, values: NDArray[Any]) -> FloatArray:
        """Return the place of each row's group."""
        if self.categories:
            places = {name: place for place, name in enumerate(self.categories)}
            return np.array([places.get(name, -1) for name in _names(values)], float)
        return self._bins(values).astype(float)

    def groups(self, values: NDArray[Any]) -> NDArray[np.str_]:
        if self.categories:
            return _names(values)
        return np.array(self.group_names)[self._bins(values)]

    def _bins(self, values: NDArray[Any]) -> IntArray:
        numbers = _as_numbers(values)
        if numbers is None:
            raise InputError(
                f"sensitive_features: column {self.name!r} was numbers when the model "
                f"was fitted, got {shown(values[:3].tolist())}. Give numbers again."
            )
        return np.searchsorted(self.edges, numbers, side="right")


def in_order(names: Iterable[str], first: Sequence[str] = ()) -> list[str]:
    """Return names with `first` ahead in that order, then numbers in them by size."""

    def key(name: str) -> tuple[int, list[Any]]:
        known = first.index(name) if name in first else len(first)
        parts: list[Any] = _NUMBER.split(name)  # text and numbers by turns
        parts[1::2] = map(float, parts[1::2])
        return known, parts

    return sorted(names, key=key)


def sensitive_columns(
    features: Any, n_rows: Any, *beside: Any
) -> list[tuple[str, NDArray[Any]]]:
    """Return the columns of sensitive features by name, one value for each row."""
    # `features` is an array, a Series, a DataFrame or a dict of columns; `n_rows` is
    # something with as many rows as there should be, and `beside` has the same rows.
    if hasattr(features, "columns"):
        found = [(str(name), features[name]) for name in features.columns]
    elif isinstance(features, dict):
        found = [(str(name), column) for name, column in features.items()]
    elif hasattr(features, "name") and hasattr(features, "to_numpy"):
        found = [(str(features.name or "sensitive_feature_0"), features)]
    else:
        if isinstance(features, (str, bytes)):
            raise InputTypeError(
                "sensitive_features: must be the values, one a row, got the name "
                f"{shown(features)}. Pass the column itself, such as "
                f"X[{shown(features)}]."
            )
        table = np.asarray(features)
        if table.ndim == 1:
            table = table[:, np.newaxis]
        if table.ndim != 2:
            raise InputError(
                "sensitive_features: must be one column or a table, got "
                f"{shown(features)} with {table.ndim} dimensions. Pass a row per "
                "sample."
            )
        found = [(f"sensitive_feature_{j}", table[:, j]) for j in range(table.shape[1])]
    if not found:
        raise InputError(
            "sensitive_features: there must be at least one column, got none. Leave "
            "the argument out to fit without constraints."
        )
    columns = []
    for name, column in found:
        values = np.asarray(column)
        if values.ndim != 1:
            raise InputError(
                f"sensitive_features: column {name!r} must have one value a row, got "
                f"shape {values.shape}. Pass a table with a column for each feature."
            )
        check_consistent_length(n_rows, values)
        for other in beside:
            _refuse_other_order(name, column, other)
        _refuse_missing(name, values)
        columns.append((name, values))
    return columns


def _as_numbers(values: NDArray[Any]) -> FloatArray | None:
    if values.dtype.kind == "O" and all(
        isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
        for value in values
    ):
        return values.astype(float)
    return values.astype(float) if values.dtype.kind in "iuf" else None


def _names(values: NDArray[Any]) -> NDArray[np.str_]:
    """Return values as text; a whole number reads alike as int and as float."""
    numbers = _as_numbers(values)
    if numbers is not None:
        return np.array([_number(number) for number in numbers])
    return np.array([str(value) for value in values])


def _number(number: float) -> str:
    return f"{number:.15g}"


def _bin_name(edges: FloatArray, place: int) -> str:
    if not len(edges):
        return "all"
    if place == 0:
        return f"below {_number(edges[0])}"
    if place == len(edges):
        return f"{_number(edges[-1])} and above"
    return f"{_number(edges[place - 1])} to {_number(edges[place])}"


def _refuse_other_order(name: str, column: Any, other: Any) -> None:
    """Refuse rows that have the labels of others, in another order."""
    if not (hasattr(column, "iloc") and hasattr(other, "iloc")):  # pandas' own
        return
    mine, theirs = column.index, other.index
    if not mine.equals(theirs) and set(mine) == set(theirs):
        raise InputError(
            f"sensitive_features: column {name!r} must have its rows in the order of "
            "the others, got the same index in another order. Put them in order: "
            "sensitive_features.loc[X.index]."
        )


def _refuse_missing(name: str, values: NDArray[Any]) -> None:
    # pandas' own missing values are known by their type's name: it may not be there.
    missing = [
        row
        for row, value in enumerate(values.tolist())
        if value is None
        or (isinstance(value, float) and not np.isfinite(value))
        or type(value).__name__ in ("NAType", "NaTType")
    ]
    if missing:
        raise InputError(
            f"sensitive_features: column {name!r} has no value in row {missing[0]} "
            f"({len(missing)} in all). Leave these rows out, or make them a group of "
            "their own, such as 'unknown'."
        )
