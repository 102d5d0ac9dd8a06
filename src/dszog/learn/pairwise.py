"""A classifier that ranks every positive row above every negative one."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

from sklearn.utils._param_validation import Interval

from dszog.learn.base import ConstrainedClassifier
from dszog.learn.features import with_ones
from dszog.learn.losses import Loss
from dszog.learn.samples import TrainingSet
from dszog.problem.constraints import Constraints


class PairwiseClassifier(ConstrainedClassifier):
    r"""Minimise a loss while every positive row outscores every negative one.

    .. math:: \min_{w, b} \; \frac1n \sum_i \ell(s(x_i), y_i) + \frac\alpha2 \|w\|^2
              \quad \text{with} \quad s(x_b) - s(x_a) + \text{margin} \le 0
              \text{ for all } y_a = +1, y_b = -1

    The number of pairs may be in the billions: no list of them is made. Where the
    classes overlap, not all pairs can be kept, and `penalty` weighs the worst of them
    against the loss; ``certificate_`` says how many pairs are out of order.

    Parameters
    ----------
    loss : str or callable
        ``"logistic"``, ``"hinge"``, ``"squared"``, ``"sigmoid"``, ``"ramp"``,
        ``"zero_one"`` (smoothed) or ``"welsch"``; or a black box
        ``loss(scores, labels)`` of `scores` of shape ``(k, b)`` and `labels` (-1 or +1)
        of shape ``(b,)`` that returns ``(k, b)`` values.
    margin : float
        By how much a positive row has to outscore a negative one; below 0 relaxes. The
        intercept plays no part.
    kernel : {"linear", "rbf"}
        What scores are linear in: the features, or kernels with rows that are kept.
    gamma : {"scale", "median"} or float
        Of the kernel :math:`\exp(-\gamma \|x - x'\|^2)` of standardised rows:
        ``"scale"`` is one over the number of features times their variance,
        ``"median"`` one over the median squared distance.
    n_centres, n_components : int
        Rows that a kernel model keeps, drawn if there are more; and the directions, the
        most important ones, in which it may move.
    alpha : float
        Weight of the squared length of the weights, which are those of standardised
        features.
    fit_intercept, standardize : bool
        Whether there is an intercept, which is not in `alpha`; whether features are
        brought to mean 0 and standard deviation 1 first (sparse ones keep their mean).
    penalty : float, optional
        Weight of the worst squared violation against the loss. The larger,
        the more the worst pair counts; None lets it grow during the run until all pairs
        are kept, for classes that can be separated.
    step_size, n_directions, batch_size
        Of the method :class:`dszog.DSZOG`: its step, directions an iteration, and rows
        whose loss it looks at.
    max_iterations, max_queries, max_time : optional
        Budgets as in :func:`dszog.minimize`; without any, 2000 iterations.
    constraint_tol : float
        How large a violation may remain for ``result_.success``.
    options : dict, optional
        Further fields of the method by name.
    random_state : int, RandomState or None
        The same integer gives the same model.
    verbose : bool
        Show progress.

    Attributes
    ----------
    coef_, intercept_ : ndarray of shape (1, n_features), ndarray of shape (1,)
        The linear model, in the units of the features as given.
    dual_coef_, centres_, gamma_ : ndarray of shape (1, n_centres), rows, float
        The kernel model; there is no ``coef_`` then. ``centres_`` are scaled by
        ``mean_`` and ``scale_``.
    mean_, scale_ : ndarray of shape (n_features,)
    classes_ : ndarray of shape (2,)
        The second one is the positive class.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `X` has column names that are all text.
    result_ : scipy.optimize.OptimizeResult
        Of :func:`dszog.minimize`.
    certificate_ : dszog.Certificate
        The evidence: print it.
    n_iter_ : int

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from dszog.learn import PairwiseClassifier
    >>> X, y = make_blobs(200, centers=[(0, 0), (4, 4)], random_state=0)
    >>> model = PairwiseClassifier(margin=0.1, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99, len(model.coef_[0])
    (True, 2)
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
        n_centres: int | float = 1000,
        n_components: int | float = 100,
        alpha: float = 1e-4,
        fit_intercept: bool = True,
        standardize: bool = True,
        penalty: float | None = 0.03,
        step_size: float = 0.02,
        n_directions: int | float = 8,
        batch_size: int | float = 256,
        max_iterations: int | float | None = None,
        max_queries: int | float | None = None,
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

    def _constraints(self, rows: Any, train: TrainingSet) -> Constraints:
        # Zeros in place of the ones: an intercept cancels in every pair.
        table, positive = with_ones(rows, ones=False), train.labels > 0.0
        return Constraints.pairwise(
            table[positive], table[~positive], margin=float(self.margin)
        ).black_box()
