r"""Bounds on how much decisions depend on sensitive features.

Every bound has the form :math:`|\sum_i a_i \varphi(s_i)| \le` tolerance with weights
:math:`a_i` that sum to 0: a difference of two rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.learn.samples import TrainingSet
from dszog.learn.sensitive import SensitiveColumn
from dszog.problem.constraints import Constraints
from dszog.problem.constraints.base import Summary, summarise

RATES = {  # which labels each kind of constraint looks at; None is all of them
    "demographic_parity": (None,),
    "equal_opportunity": (1.0,),
    "equalized_odds": (1.0, -1.0),
}
RATE_NAMES = {None: "selection rate", 1.0: "true positive rate"}
RATE_NAMES |= {-1.0: "false positive rate"}


class GroupConstraints(Constraints):
    r"""Two constraints for each functional: it is neither above nor below the bounds.

    Constraint :math:`j` of :math:`2r` is :math:`F_j - c \le 0` for :math:`j < r` and
    :math:`-F_{j-r} - c \le 0` beyond, where :math:`c` is the tolerance. The scores are
    linear in the rows of `model`.
    """

    def __init__(
        self,
        model: Any,
        functionals: Sequence[tuple[str, FloatArray]],
        tolerance: float,
        sharpness: float,
    ) -> None:
        self._model = model
        self._tolerance, self._sharpness = tolerance, sharpness
        names, weights = zip(*functionals, strict=True)
        self._weights = frozen_floats(np.column_stack(weights))
        self.names = tuple(
            f"{name}, {side}" for side in ("above", "below") for name in names
        )
        super().__init__(self._values_at, 2 * len(functionals))
        self._names = self.names

    @property
    def dim(self) -> int:
        return int(self._model.shape[1])

    def summary(self, x: FloatArray) -> Summary:
        """Return what all constraints say about `x`: one pass over the rows."""
        every = np.arange(len(self))
        return summarise(self._values_at(x[np.newaxis], every)[0])

    def _values_at(self, points: FloatArray, indices: IntArray) -> FloatArray:
        n_half = len(self) // 2
        called = expit(self._sharpness * (points @ self._model.T))
        table = (called @ self._weights)[:, indices % n_half]
        values: FloatArray = table * np.where(indices < n_half, 1.0, -1.0)
        return values - self._tolerance


def functionals(
    train: TrainingSet,
    columns: Sequence[SensitiveColumn],
    kind: str,
    min_group_size: float,
) -> tuple[list[tuple[str, FloatArray]], list[str]]:
    """Return the name and the weights of each sum over the rows that is to be near 0.

    And the names of groups that are too small to be held to, or are everybody.
    """
    found: list[tuple[str, FloatArray]] = []
    too_small: list[str] = []
    for labels in RATES[kind]:
        inside = train.weights * (
            1.0 if labels is None else (train.labels == labels).astype(float)
        )
        for column, codes in zip(columns, train.extra.T, strict=True):
            for place, group in enumerate(column.group_names):
                name = f"{column.name} = {group}, {RATE_NAMES[labels]}"
                member = (codes == place).astype(float)
                within, others = inside * member, inside * (1.0 - member)
                if within.sum() >= min_group_size and others.any():
                    weights = within / within.sum() - inside / inside.sum()
                    found.append((name, weights))
                else:
                    too_small.append(name)
    return found, too_small
