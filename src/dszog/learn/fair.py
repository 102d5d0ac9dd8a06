"""A classifier whose decisions depend little on sensitive features."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_consistent_length
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import column_or_1d

from dszog.contract.arrays import FloatArray
from dszog.contract.validation import shown
from dszog.errors import InputError
from dszog.learn.base import COUNT, NOT_NEGATIVE, POSITIVE, ConstrainedClassifier
from dszog.learn.features import with_ones
from dszog.learn.group_constraints import RATES, GroupConstraints, functionals
from dszog.learn.report import FairnessReport, counted
from dszog.learn.samples import TrainingSet
from dszog.learn.sensitive import N_BINS, SensitiveColumn, sensitive_columns
from dszog.methods.auto import MOST_VARIABLES
from dszog.problem import Problem
from dszog.problem.constraints import Constraints
from dszog.status import Status

SELDOM = 0.1  # of the rarer class: a model that answers so less often says little
ONE_SIDED = ("equal_opportunity",)  # kinds that change where the classes are swapped


@dataclass(kw_only=True, eq=False, repr=False)
class FairClassifier(ConstrainedClassifier):
    r"""Minimise a loss while decisions depend little on sensitive features.

    .. math:: \min_{w, b} \; \frac1n \sum_i \ell(s(x_i), y_i) + \frac\alpha2 \|w\|^2
              \quad \text{with} \quad |F_j(w, b)| \le \text{tolerance for all } j

    where :math:`F_j` compares one group with everybody, in one of the ways below.
    Sensitive features are given to ``fit`` alone. **The model does not see them unless
    they are also columns of** `X`. With them it can treat groups differently in order
    to be fair, and is then both fairer and more accurate; whether it may is for the
    user to decide.

    The method is the one that :func:`dszog.minimize` would choose, up to 1000 weights.
    It is :class:`dszog.DSZOG` where one of its settings is given, from `penalty` to
    `batch_size` and `options`, or a loss that is a function, which may have steps.

    Parameters
    ----------
    constraint : str
        ``"equalized_odds"``: true and false positive rates of each group are those of
        everybody. ``"equal_opportunity"``: true positive rates.
        ``"demographic_parity"``: the share called positive. Rates are of soft decisions
        :math:`1 / (1 + e^{-\text{sharpness} \cdot s})`.
    tolerance : float
        A difference of rates. Two groups may differ by twice as much.
    sharpness : float
        The larger, the nearer soft decisions are to decisions, and the harder the
        problem.
    n_bins : int
        Bins, of equally many rows, that make groups of a column of numbers. A column of
        at most ten different numbers is always one of groups.
    min_group_size : int
        A rate of fewer (different) rows is not constrained; ``unconstrained_groups_``
        lists them.
    {parameters}

    Attributes
    ----------
    {attributes}
    sensitive_ : tuple
        How each sensitive column is read.
    constraint_names_, unconstrained_groups_ : tuple of str
        What each constraint is on; and what was left out, too small.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_blobs
    >>> from dszog.learn import FairClassifier
    >>> X, y = make_blobs(400, centers=[(0, 0), (3, 3)], random_state=0)
    >>> group = np.where(X[:, 0] > 1.0, "a", "b")
    >>> model = FairClassifier(random_state=0, max_iterations=300)
    >>> model = model.fit(X, y, sensitive_features=group)
    >>> bool(model.fairness_report(X, y, group).gap() < 0.2)
    True
    """

    constraint: str = "equalized_odds"
    tolerance: float = 0.02
    sharpness: float = 8.0
    n_bins: int | float = N_BINS
    min_group_size: int | float = 20

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ConstrainedClassifier._parameter_constraints,
        "constraint": [StrOptions(set(RATES))],
        "tolerance": [NOT_NEGATIVE],
        "sharpness": [POSITIVE],
        "n_bins": [COUNT],
        "min_group_size": [COUNT],
    }

    _many_classes = (
        "Rates of groups are those of one class: fit one against the rest, such as "
        "y == 'hired'."
    )

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
            found = sensitive_columns(sensitive_features, used, X, y)
            n_bins = int(self.n_bins)
            self.sensitive_ = tuple(
                SensitiveColumn.of(name, values, used, n_bins) for name, values in found
            )
            pairs = zip(self.sensitive_, found, strict=True)
            return np.column_stack([one.encode(values) for one, (_, values) in pairs])

        self._fit(X, y, sample_weight, extra)
        is_text = self.classes_.dtype.kind not in "biuf"
        if self.pos_label is None and is_text and self.constraint in ONE_SIDED:
            first, last = map(str, self.classes_)
            warnings.warn(
                f"FairClassifier: {self.constraint} is of the class {last!r}, the last "
                f"in order. If people want {first!r}, say so: pos_label={first!r}.",
                UserWarning,
                stacklevel=2,
            )
        if self.result_.maxcv > self.constraint_tol:
            is_late = self.result_.status == Status.MAX_TIME
            more = "`max_time`" if is_late else "`max_iterations`, `penalty`"
            worst = self.certificate_.feasibility.worst_index
            warnings.warn(
                f"FairClassifier: the worst constraint is off its tolerance by "
                f"{self.result_.maxcv:.3g} ({self.constraint_names_[worst]}). Raise "
                f"{more} or `tolerance`.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._warn_if_useless(X, column_or_1d(y), sample_weight)
        return self

    def _warn_if_useless(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Say so where decisions are nearly all the same: that is fair, too."""
        said = self.predict(X)
        right, share, called = (
            np.average(held, weights=sample_weight)
            for held in (said == y, y == self.pos_label_, said == self.pos_label_)
        )
        frequent, same = max(share, 1.0 - share), max(called, 1.0 - called)
        if right <= frequent:
            told = (
                f"{right:.3f} of the training rows are classified right, and the "
                f"frequent class alone is {frequent:.3f} of them: the model is of no "
                "use. Raise `max_iterations` or `tolerance`; or let the model see "
                "the sensitive features, as columns of X too."
            )
        elif 1.0 - same < SELDOM * (1.0 - frequent):
            told = (
                f"{same:.3f} of the training rows are given one class, though "
                f"{1.0 - frequent:.3f} are of the rarer one: that is fair, and of "
                "little use. Raise `tolerance`; or let the model see the sensitive "
                "features, as columns of X too."
            )
        else:
            return
        warnings.warn(f"FairClassifier: {told}", ConvergenceWarning, stacklevel=3)

    def fairness_report(
        self, X: Any, y: Any, sensitive_features: Any
    ) -> FairnessReport:
        """Return accuracy and error rates of every group, on any data.

        Parameters
        ----------
        X, y, sensitive_features
            As in ``fit``. Columns of numbers are shown in the bins of the fit; groups
            that it did not have are shown as well.

        Returns
        -------
        FairnessReport
            Print it; ``gap()`` is the largest difference of rates. For predictions of
            another model: :func:`dszog.learn.fairness_report`.
        """
        called, given = self.predict(X) == self.pos_label_, y
        y = column_or_1d(y)
        check_consistent_length(called, y)
        unknown = np.setdiff1d(y, self.classes_)
        if len(unknown):
            raise InputError(
                f"fairness_report: `y` must have the classes "
                f"{shown(self.classes_.tolist())}, got {shown(unknown.tolist())}. Use "
                "the labels the model was fitted with."
            )
        columns = sensitive_columns(sensitive_features, called, X, given)
        positive = y == self.pos_label_
        return counted(positive, called, columns, self.pos_label_, self.sensitive_)

    def _method(self, problem: Problem, options: dict[str, Any]) -> str:
        has_slopes = isinstance(self.loss, str)  # a function may be one of steps
        few = problem.size.dim <= MOST_VARIABLES
        return "auto" if has_slopes and few and not options else "dszog"

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
            found,
            float(self.tolerance),
            float(self.sharpness),
        )
        self.constraint_names_ = constraints.names
        return constraints
