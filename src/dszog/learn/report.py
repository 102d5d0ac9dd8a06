"""How a classifier treats the groups of people: a table of rates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dszog.contract.arrays import FloatArray
from dszog.contract.validation import check_choice

GAPS = {
    "demographic_parity": ("selection_rate",),
    "equal_opportunity": ("true_positive_rate",),
    "equalized_odds": ("true_positive_rate", "false_positive_rate"),
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

    Print it for a table; ``pandas.DataFrame(report.groups)`` is one for pandas.
    """

    overall: GroupRates
    groups: tuple[GroupRates, ...]

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
                if known:
                    largest = max(largest, max(known) - min(known))
        return largest

    def __str__(self) -> str:
        rows = [self.overall, *self.groups]
        titles = [f"{row.column}: {row.group}" if row.column else "all" for row in rows]
        width = max(map(len, titles))
        lines = [
            f"{'':{width}}  {'rows':>7}  {'accuracy':>8}  {'selected':>8}  "
            f"{'true pos.':>9}  {'false pos.':>10}"
        ]
        for title, row in zip(titles, rows, strict=True):
            lines.append(
                f"{title:{width}}  {row.count:7,}  {row.accuracy:8.3f}  "
                f"{row.selection_rate:8.3f}  {row.true_positive_rate:9.3f}  "
                f"{row.false_positive_rate:10.3f}"
            )
        return "\n".join(lines)


def fairness_report(
    is_positive: NDArray[np.bool_],
    called_positive: NDArray[np.bool_],
    columns: Sequence[tuple[str, NDArray[Any]]],
) -> FairnessReport:
    """Count what happened to each group of each column."""

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

    everybody = np.ones(len(is_positive), dtype=bool)
    return FairnessReport(
        overall=rates("", "all", everybody),
        groups=tuple(
            rates(column, str(group), values == group)
            for column, values in columns
            for group in np.unique(values)
        ),
    )


def _mean(values: NDArray[np.bool_]) -> float:
    shares: FloatArray = values.astype(float)
    return float(shares.mean()) if len(shares) else float("nan")
