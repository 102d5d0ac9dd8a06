"""A classifier whose decisions depend little on sensitive features."""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils.validation import check_is_fitted, column_or_1d

from dszog._arrays import FloatArray
from dszog._validation import shown
from dszog.constraints import Constraints
from dszog.errors import InputError
from dszog.learn.base import (
    COUNT,
    NOT_NEGATIVE,
    POSITIVE,
    ConstrainedClassifier,
    one_of,
)
from dszog.learn.features import with_ones
from dszog.learn.group_constraints import KINDS, GroupConstraints, functionals
from dszog.learn.losses import Loss
from dszog.learn.report import FairnessReport, fairness_report
from dszog.learn.samples import TrainingSet
from dszog.learn.sensitive import SensitiveColumn, encoded, sensitive_columns


class FairClassifier(ConstrainedClassifier):
    r"""Minimise a loss while decisions depend little on sensitive features."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ConstrainedClassifier._parameter_constraints,
        "constraint": [one_of(*KINDS)],
        "tolerance": [NOT_NEGATIVE],
        "sharpness": [POSITIVE],
        "n_bins": [COUNT, None],
        "min_group_size": [COUNT],
    }

    def __init__(
        self,
        *,
        constraint: str = "equalized_odds",
        tolerance: float = 0.03,
        sharpness: float = 6.0,
        n_bins: int | None = None,
        min_group_size: int = 20,
        loss: str | Loss = "logistic",
        kernel: str = "linear",
        gamma: str | float = "scale",
        n_centres: int = 1000,
        n_components: int = 100,
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        standardize: bool = True,
        penalty: float | None = None,
        step_size: float = 0.05,
        n_directions: int = 8,
        batch_size: int = 256,
        max_iterations: int | None = None,
        max_queries: int | None = None,
        max_time: float | None = None,
        constraint_tol: float = 1e-2,
        options: dict[str, Any] | None = None,
        random_state: Any = None,
        verbose: bool = False,
    ) -> None:
        self.constraint = constraint
        self.tolerance = tolerance
        self.sharpness = sharpness
        self.n_bins = n_bins
        self.min_group_size = min_group_size
        self.loss = loss
        self.kernel = kernel
        self.gamma = gamma
        self.n_centres = n_centres
        self.n_components = n_components
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.penalty = penalty
        self.step_size = step_size
        self.n_directions = n_directions
        self.batch_size = batch_size
        self.max_iterations = max_iterations
        self.max_queries = max_queries
        self.max_time = max_time
        self.constraint_tol = constraint_tol
        self.options = options
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
    ) -> Self:
        """Fit the model."""
        self.sensitive_: tuple[SensitiveColumn, ...] = ()
        self.constraint_names_: tuple[str, ...] = ()
        self.unconstrained_groups_: tuple[str, ...] = ()
        if sensitive_features is None:
            warnings.warn(
                "FairClassifier: no sensitive features, so there are no fairness "
                "constraints. Pass fit(X, y, sensitive_features=Z).",
                UserWarning,
                stacklevel=2,
            )
            return self._fit(X, y, sample_weight)

        def extra(used: NDArray[np.bool_]) -> FloatArray:
            found = sensitive_columns(sensitive_features, used)
            n_bins = int(self.n_bins or 0)
            self.sensitive_ = tuple(
                SensitiveColumn.of(name, values, used, n_bins) for name, values in found
            )
            return encoded(self.sensitive_, found)

        self._fit(X, y, sample_weight, extra)
        if self.result_.maxcv > self.constraint_tol:
            worst = self.certificate_.feasibility.worst_index
            warnings.warn(
                f"FairClassifier: the worst constraint is off its tolerance by "
                f"{self.result_.maxcv:.3g} ({self.constraint_names_[worst]}). Raise "
                "max_iterations, penalty or tolerance.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self

    def fairness_report(
        self, X: Any, y: Any, sensitive_features: Any
    ) -> FairnessReport:
        """Return accuracy and error rates of every group, on any data."""
        check_is_fitted(self)
        called = self.decision_function(X) > 0.0
        y = column_or_1d(y)
        check_consistent_length(called, y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise InputError(
                f"fairness_report: `y` must have the classes "
                f"{shown(self.classes_.tolist())}, got {shown(unknown.tolist())}. Use "
                "the labels the model was fitted with."
            )
        known = {column.name: column for column in self.sensitive_}
        columns = []
        for name, values in sensitive_columns(sensitive_features, called):
            everyone = np.ones(len(values), dtype=bool)
            column = known.get(name) or SensitiveColumn.of(name, values, everyone, 0)
            columns.append((name, column.groups(values)))
        return fairness_report(y == self.classes_[1], called, columns)

    def _constraints(self, rows: Any, train: TrainingSet) -> Constraints | None:
        if not self.sensitive_:
            return None
        found, too_small = functionals(
            train, self.sensitive_, self.constraint, float(self.min_group_size)
        )
        self.unconstrained_groups_ = tuple(too_small)
        if not found:
            raise InputError(
                "FairClassifier: no two groups are large enough to be compared, got "
                f"{shown(too_small)}. Give columns with at least two groups of "
                f"min_group_size={self.min_group_size} rows in each class, or lower it."
            )
        constraints = GroupConstraints(
            with_ones(rows, self.fit_intercept),
            train.labels,
            found,
            self.constraint,
            float(self.tolerance),
            float(self.sharpness),
        )
        self.constraint_names_ = constraints.names
        return constraints
