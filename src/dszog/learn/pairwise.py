"""A classifier that ranks every positive row above every negative one."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval

from dszog.constraints import Constraints
from dszog.learn.base import ConstrainedClassifier
from dszog.learn.features import with_ones
from dszog.learn.losses import Loss
from dszog.learn.samples import TrainingSet


class PairwiseClassifier(ConstrainedClassifier):
    r"""Minimise a loss while every positive row outscores every negative one.

    .. math:: \min_{w, b} \; \frac1n \sum_i \ell(s(x_i), y_i) + \frac\alpha2 \|w\|^2
              \quad \text{with} \quad s(x_b) - s(x_a) + \text{margin} \le 0
              \text{ for all } y_a = +1, y_b = -1
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **ConstrainedClassifier._parameter_constraints,
        "margin": [Interval(Real, None, None, closed="neither")],
    }

    def __init__(
        self,
        *,
        loss: str | Loss = "logistic",
        margin: float = 0.0,
        kernel: str = "linear",
        gamma: str | float = "scale",
        n_centres: int = 1000,
        n_components: int = 100,
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        standardize: bool = True,
        penalty: float | None = 0.1,
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
        self.loss = loss
        self.margin = margin
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model."""
        return self._fit(X, y, sample_weight)

    def _constraints(self, rows: Any, train: TrainingSet) -> Constraints:
        # Zeros in place of the ones: an intercept cancels in every pair.
        table, positive = with_ones(rows, ones=False), train.labels > 0.0
        return Constraints.pairwise(
            table[positive], table[~positive], margin=float(self.margin)
        ).black_box()
