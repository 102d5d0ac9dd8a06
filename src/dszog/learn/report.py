"""How a classifier treats the groups of people: a table of rates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import column_or_1d

from dszog.contract.arrays import FloatArray
from dszog.contract.validation import check_choice, shown
from dszog.errors import InputError, MissingExtraError
from dszog.learn.sensitive import N_BINS, SensitiveColumn, in_order, sensitive_columns

if TYPE_CHECKING:
    from pandas import DataFrame

GAPS = {
    "demographic_parity": ("selection_rate",),
    "equal_opportunity": ("true_positive_rate",),
    "equalized_odds": ("true_positive_rate", "false_positive_rate"),
}

RATES = {  # that are printed, and what they are called there
    "selection_rate": "selected",
    "true_positive_rate": "true pos.",
    "false_positive_rate": "false pos.",
}


@dataclass(frozen=True, kw_only=True)
class GroupRates:
    """What a classifier does to one group; a rate of nobody is `nan`."""

    column: str
    group: str
    count: int
    accuracy: float
    selection_rate: float
    true_positive_rate: float
    false_positive_rate: float
    true_negative_rate: float
    false_negative_rate: float


@dataclass(frozen=True, kw_only=True)
class FairnessReport:
    """Rates of every group of every sensitive column, and of everybody.

    Print it for a table; :meth:`to_frame` is one for pandas, and a notebook shows
    :meth:`to_html`.
    """

    overall: GroupRates
    groups: tuple[GroupRates, ...]
    pos_label: str  # the class whose rates these are

    def to_frame(self) -> DataFrame:
        """Return all rates as a table of pandas, everybody first."""
        try:
            from pandas import DataFrame
        except ImportError as error:
            raise MissingExtraError.of("to_frame", "pandas", "pandas") from error
        rows = [asdict(row) for row in (self.overall, *self.groups)]
        return DataFrame(rows).set_index(["column", "group"])

    def to_html(self) -> str:
        """Return the table as HTML; names are escaped."""
        head, *others = self._cells()
        rows = ["".join(f"<th>{escape(cell)}</th>" for cell in head)]
        rows += ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in others]
        said = f"<p>{escape(self._remark)}</p>"
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>{said}"

    _repr_html_ = to_html

    def gap(self, kind: str = "equalized_odds", min_count: int = 1) -> float:
        """Return the largest difference of rates between two groups of one column.

        Parameters
        ----------
        kind : {"equalized_odds", "equal_opportunity", "demographic_parity"}
            Which rates: the larger gap of true and false positive rates, true positive
            rates alone, or shares that are called positive.
        min_count : int
            Groups with fewer rows are left out.
        """
        check_choice("FairnessReport.gap", "kind", kind, GAPS)
        largest = 0.0
        for column in dict.fromkeys(row.column for row in self.groups):
            for rate in GAPS[kind]:
                rates = [
                    getattr(row, rate)
                    for row in self.groups
                    if row.column == column and row.count >= min_count
                ]
                known = [value for value in rates if not np.isnan(value)]
                largest = max(largest, max(known, default=0) - min(known, default=0))
        return largest

    def __str__(self) -> str:
        cells = self._cells()
        first, *widths = (max(map(len, column)) for column in zip(*cells, strict=True))
        lines = [
            "  ".join([name.ljust(first), *map(str.rjust, figures, widths)])
            for name, *figures in cells
        ]
        return "\n".join([*lines, self._remark])

    def _cells(self) -> list[tuple[str, ...]]:
        """Return the table as texts, its head first."""
        rates = ("accuracy", *RATES)
        return [
            ("", "rows", "accuracy", *RATES.values()),
            *(
                (
                    f"{row.column}: {row.group}" if row.column else "all",
                    f"{row.count:,}",
                    *(f"{getattr(row, rate):.3f}" for rate in rates),
                )
                for row in (self.overall, *self.groups)
            ),
        ]

    @property
    def _remark(self) -> str:
        return f"The positive class is {self.pos_label}."


def fairness_report(
    y_true: Any, y_pred: Any, *, sensitive_features: Any, pos_label: Any = None
) -> FairnessReport:
    """Return accuracy and error rates of every group, for anybody's predictions.

    Parameters
    ----------
    y_true, y_pred : array_like of shape (n_samples,)
        Classes, and predicted ones. Of more than two, one is held against the rest.
    sensitive_features : array_like, Series, DataFrame or dict of columns
        A column of more than ten different numbers is shown in four bins.
    pos_label : optional
        The class that people want to get, or that is looked for. It may be left out if
        it is 1 or True.

    Examples
    --------
    >>> from dszog.learn import fairness_report
    >>> y_true, y_pred = ["yes", "no", "yes", "no"], ["yes", "yes", "no", "no"]
    >>> groups = {"team": ["a", "a", "b", "b"]}
    >>> print(
    ...     fairness_report(y_true, y_pred, sensitive_features=groups, pos_label="yes")
    ... )
             rows  accuracy  selected  true pos.  false pos.
    all         4     0.500     0.500      0.500       0.500
    team: a     2     0.500     1.000      1.000       1.000
    team: b     2     0.500     0.000      0.000       0.000
    The positive class is yes.
    """
    truth, called = column_or_1d(y_true), column_or_1d(y_pred)
    check_consistent_length(truth, called)
    label = _positive(set(truth.tolist()), set(called.tolist()), pos_label)
    columns = sensitive_columns(sensitive_features, truth, y_true, y_pred)
    return counted(truth == label, called == label, columns, label)


def _positive(truth: set[Any], called: set[Any], pos_label: Any) -> Any:
    """Return the positive class; refuse one that is not there, or not clear."""
    found = shown(sorted(truth | called, key=str))
    if truth and called and not truth & called:
        raise InputError(
            f"fairness_report: `y_true` and `y_pred` must have classes in common, got "
            f"{found}. Give both with the same names."
        )
    if pos_label is None and (truth | called <= {0, 1} or truth | called <= {-1, 1}):
        return 1
    if pos_label is None or pos_label not in truth | called:
        raise InputError(
            f"fairness_report: `pos_label` must be one of the classes {found}, got "
            f"{shown(pos_label)}. Name the class whose rates are compared."
        )
    return pos_label


def counted(
    is_positive: NDArray[np.bool_],
    called_positive: NDArray[np.bool_],
    columns: Iterable[tuple[str, NDArray[Any]]],
    pos_label: Any,
    fitted: Iterable[SensitiveColumn] = (),
) -> FairnessReport:
    """Count what happened to each group; columns are read as in a fit that had them."""
    known = {column.name: column for column in fitted}
    everybody = np.ones(len(is_positive), dtype=bool)

    def rates(column: str, group: str, member: NDArray[np.bool_]) -> GroupRates:
        truth, called = is_positive[member], called_positive[member]
        hit, alarm = _mean(called[truth]), _mean(called[~truth])
        return GroupRates(
            column=column,
            group=group,
            count=len(truth),
            accuracy=_mean(truth == called),
            selection_rate=_mean(called),
            true_positive_rate=hit,
            false_positive_rate=alarm,
            true_negative_rate=1.0 - alarm,
            false_negative_rate=1.0 - hit,
        )

    groups = []
    for name, values in columns:
        column = known.get(name) or SensitiveColumn.of(name, values, everybody, N_BINS)
        named = column.groups(values)
        for group in in_order(np.unique(named).tolist(), column.group_names):
            groups.append(rates(name, group, named == group))
    return FairnessReport(
        overall=rates("", "all", everybody),
        groups=tuple(groups),
        pos_label=str(pos_label),
    )


def _mean(values: NDArray[np.bool_]) -> float:
    shares: FloatArray = values.astype(float)
    return float(shares.mean()) if len(shares) else float("nan")
