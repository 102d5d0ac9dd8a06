"""A classifier that ranks every positive row above every negative one."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval, StrOptions

from dszog.errors import InputError
from dszog.learn.base import ConstrainedClassifier
from dszog.learn.features import with_ones
from dszog.learn.samples import TrainingSet
from dszog.problem import Problem
from dszog.problem.constraints import Constraints

USUAL = 0.03  # penalty, in units of the loss


@dataclass(kw_only=True, eq=False, repr=False)
class PairwiseClassifier(ConstrainedClassifier):
    r"""Minimise a loss while every positive row outscores every negative one.

    .. math:: \min_{w, b} \; \frac1n \sum_i \ell(s(x_i), y_i) + \frac\alpha2 \|w\|^2
              \quad \text{with} \quad s(x_b) - s(x_a) + \text{margin} \le 0
              \text{ for all } y_a = +1, y_b = -1

    The number of pairs may be in the billions: no list of them is made. Where the
    classes overlap, not all pairs can be kept, and `penalty` weighs the worst of them
    against the loss; ``certificate_`` says how many pairs are out of order. It is 0.03
    by default (``"usual"``), and a thirtieth of that where no step pays with it, as far
    as budgets go; ``penalty_`` says which.

    Parameters
    ----------
    margin : float
        By how much a positive row has to outscore a negative one; below 0 relaxes. The
        intercept plays no part.
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dszog.learn import PairwiseClassifier
    >>> X, y = make_blobs(200, centers=[(0, 0), (4, 4)], random_state=0)
    >>> model = PairwiseClassifier(margin=0.1, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99, len(model.coef_[0])
    (True, 2)
    """

    margin: float = 0.0
    penalty: float | str | None = "usual"

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ConstrainedClassifier._parameter_constraints,
        "penalty": [
            *ConstrainedClassifier._parameter_constraints["penalty"],
            StrOptions({"usual"}),
        ],
        "margin": [Interval(Real, None, None, closed="neither")],
    }

    _many_classes = (
        "For each class above all others: sklearn.multiclass.OneVsRestClassifier("
        "PairwiseClassifier())."
    )

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array_like or SciPy sparse matrix of shape (n_samples, n_features)
        y : array_like of shape (n_samples,)
            Two classes, of any names.
        sample_weight : array_like of shape (n_samples,), optional
            Weights of the losses; a pair counts as one whatever its rows weigh, unless
            one of them weighs nothing.
        """
        return self._fit(X, y, sample_weight)

    def _minimize(self, problem: Problem, seed: int) -> Any:
        if self.penalty != "usual":
            return super()._minimize(problem, seed)
        result = self._minimized(problem, seed, USUAL)
        queries, time = self.max_queries, self.max_time
        if queries is not None:
            queries -= result.nfev + result.ncev + result.costs.n_retried
        if time is not None:
            time -= result.costs.time
        in_budget = min(queries or 1, time or 1) > 0 and result.status.is_planned
        if not (result.is_start and result.nit and in_budget):
            return result
        try:
            return self._minimized(problem, seed, USUAL / 30.0, queries, time)
        except InputError:  # what is left of the budget is not enough for a step
            self.penalty_ = USUAL
            return result

    def _constraints(self, rows: Any, train: TrainingSet) -> Constraints:
        # Zeros in place of the ones: an intercept cancels in every pair.
        table, positive = with_ones(rows, ones=False), train.labels > 0.0
        return Constraints.pairwise(
            table[positive], table[~positive], margin=float(self.margin)
        ).black_box()
