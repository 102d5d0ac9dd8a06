"""What the classifiers have in common: everything but their constraints."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from dszog.contract.arrays import FloatArray, IntArray
from dszog.learn.features import (
    Kernel,
    Scaling,
    least_squares,
    likeliest_slope,
    with_ones,
)
from dszog.learn.losses import LOSSES, Loss
from dszog.learn.samples import TrainingSet, training_set
from dszog.minimize import minimize
from dszog.problem import Losses, Problem
from dszog.problem.constraints import Constraints
from dszog.problem.data_rows import DataRows
from dszog.status import Status

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")
_BUDGETS = {
    Status.MAX_TIME: "max_time",
    Status.MAX_QUERIES: "max_queries",
    Status.MAX_ITERATIONS: "max_iterations",
}


class Count(Interval):
    """A whole number of at least 1; a float that is one will do, as in 1e6."""

    def __init__(self) -> None:
        super().__init__(Integral, 1, None, closed="left")

    def is_satisfied_by(self, val: Any) -> bool:
        if isinstance(val, (float, np.floating)) and val.is_integer():
            val = int(val)
        return bool(super().is_satisfied_by(val))


COUNT = Count()
PARAMETERS = r"""loss : str or callable
        ``"logistic"``, ``"hinge"``, ``"squared"``, ``"sigmoid"``, ``"ramp"``,
        ``"zero_one"`` (smoothed) or ``"welsch"``; or a black box
        ``loss(scores, labels)`` of `scores` of shape ``(k, b)`` and `labels` (-1 or +1)
        of shape ``(b,)`` that returns ``(k, b)`` values.
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
        Weight of the worst squared violation against the loss: the larger, the more it
        counts. None lets it grow during the run until all constraints are kept.
    step_size, n_directions, batch_size : optional
        Of the method :class:`dszog.DSZOG`: its step (0.02), directions an iteration
        (8), and rows whose loss it looks at (256).
    max_iterations, max_queries, max_time : optional
        Budgets as in :func:`dszog.minimize`; without any, 2000 iterations.
    constraint_tol : float
        How large a violation may remain. A model may keep the constraints and not be
        shown to be the best one: ``result_.maxcv`` and ``result_.success`` tell.
    options : dict, optional
        Further fields of the method by name.
    pos_label : optional
        The class that counts as positive; the second of ``classes_`` if not given.
    random_state : int, RandomState or None
        The same integer gives the same model.
    verbose : bool
        Show progress."""
ATTRIBUTES = """\
coef_, intercept_ : ndarray of shape (1, n_features), ndarray of shape (1,)
        The linear model, in the units of the features as given.
    dual_coef_, centres_, gamma_ : ndarray of shape (1, n_centres), rows, float
        The kernel model; there is no ``coef_`` then. ``centres_`` are scaled by
        ``mean_`` and ``scale_``.
    mean_, scale_ : ndarray of shape (n_features,)
    classes_ : ndarray of shape (2,)
    pos_label_
        The positive class, whose rates a fairness constraint is on.
    probability_slope_ : float
        What scores are multiplied by in :meth:`predict_proba`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Where `X` has column names that are all text.
    result_ : scipy.optimize.OptimizeResult
        Of :func:`dszog.minimize`.
    certificate_ : dszog.Certificate
        The evidence: print it.
    n_iter_ : int"""


@dataclass(kw_only=True, eq=False, repr=False)
class ConstrainedClassifier(ClassifierMixin, BaseEstimator):
    """A binary classifier whose scores keep to constraints.

    A subclass adds its parameters as fields, says what is constrained, and documents
    both. ``{parameters}`` and ``{attributes}`` in its docstring are those of all.
    """

    loss: str | Loss = "logistic"
    kernel: str = "linear"
    gamma: str | float = "scale"
    n_centres: int | float = 1000
    n_components: int | float = 100
    alpha: float = 1e-4
    fit_intercept: bool = True
    standardize: bool = True
    penalty: float | str | None = None
    step_size: float | None = None
    n_directions: int | float | None = None
    batch_size: int | float | None = None
    max_iterations: int | float | None = None
    max_queries: int | float | None = None
    max_time: float | None = None
    constraint_tol: float = 1e-2
    options: dict[str, Any] | None = None
    pos_label: Any = None
    random_state: Any = None
    verbose: bool = False

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "loss": [StrOptions(set(LOSSES)), callable],
        "kernel": [StrOptions({"linear", "rbf"})],
        "gamma": [StrOptions({"scale", "median"}), POSITIVE],
        "n_centres": [COUNT],
        "n_components": [COUNT],
        "alpha": [NOT_NEGATIVE],
        "fit_intercept": ["boolean"],
        "standardize": ["boolean"],
        "penalty": [POSITIVE, None],
        "step_size": [POSITIVE, None],
        "n_directions": [COUNT, None],
        "batch_size": [COUNT, None],
        "max_iterations": [COUNT, None],
        "max_queries": [COUNT, None],
        "max_time": [POSITIVE, None],
        "constraint_tol": [NOT_NEGATIVE],
        "options": [dict, None],
        "pos_label": [str, Real, "boolean", None],
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    _many_classes: ClassVar[str]  # what to do about more than two

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for word, text in (("parameters", PARAMETERS), ("attributes", ATTRIBUTES)):
            cls.__doc__ = (cls.__doc__ or "").replace(f"{{{word}}}", text)

    # ------------------------------------------------------------------- using it

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of each row; above 0 it is of the class ``classes_[1]``.

        Parameters
        ----------
        X : array_like or SciPy sparse matrix of shape (n_samples, n_features)
        """
        check_is_fitted(self, "intercept_")  # a fit that failed has none
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        if hasattr(self, "dual_coef_"):
            scaled = Scaling(mean=self.mean_, scale=self.scale_)(X)
            X = rbf_kernel(scaled, self.centres_, gamma=self.gamma_)
            weights = self.dual_coef_[0]
        else:
            weights = self.coef_[0]
        scores: FloatArray = X @ weights + float(self.intercept_[0])
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row of `X`, as in :meth:`decision_function`."""
        is_positive = self.decision_function(X) > 0.0
        predicted: NDArray[Any] = self.classes_[is_positive.astype(np.intp)]
        return predicted

    def predict_proba(self, X: Any) -> FloatArray:
        r"""Return the probability of each class, a column for each of ``classes_``.

        The one of ``classes_[1]`` is :math:`1 / (1 + e^{-a s})` of the score :math:`s`,
        with the slope :math:`a` that makes the training rows likeliest. It is 1/2 where
        the decision changes: constraints that move the decision move it too.
        """
        scores = self.decision_function(X) * self.probability_slope_
        return np.column_stack([expit(-scores), expit(scores)])

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`dszog.learn.load` reads."""
        # The file holds numbers and names, never code, and says if it was damaged. A
        # `loss` that is a function, `options` and the ``result_`` of the run are not
        # saved: a loaded model predicts, and needs a loss by name to be fitted again.
        from dszog.learn.model_file import save

        check_is_fitted(self, "intercept_")
        save(self, path)

    # ----------------------------------------------------------------- fitting it

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        extra: Callable[[NDArray[np.bool_]], FloatArray] | None = None,
    ) -> Self:
        """Fit the model; `extra` gives the columns that only the constraints see."""
        self._validate_params()
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        weights: FloatArray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        labels = self._checked_labels(y, weights)
        beside = extra(weights > 0.0) if extra else np.empty((len(labels), 0))
        train = training_set(X, labels, weights, beside)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))

        scaling = Scaling.of(train, self.standardize)
        rows = scaling(train.X)
        kernel = None
        if self.kernel == "rbf":
            sizes = int(self.n_centres), int(self.n_components)
            kernel = Kernel.of(train, rows, self.gamma, *sizes, seed)
            rows = kernel(rows)
        model = with_ones(rows, self.fit_intercept)
        problem = Problem(
            self._losses(model, train),
            self._constraints(rows, train),
            model.shape[1],
            x0=least_squares(model, train),
            unconstrained=True,
        )
        result = self._minimize(problem, seed)
        scores = model @ result.x
        self.probability_slope_ = likeliest_slope(scores, train.labels, train.weights)
        self._keep(result, scaling, kernel)
        return self

    @abstractmethod
    def _constraints(self, rows: Any, train: TrainingSet) -> Constraints | None:
        """Return the constraints on the weights of the rows and the intercept."""

    def _minimize(self, problem: Problem, seed: int) -> Any:
        return self._minimized(problem, seed, self.penalty)

    def _minimized(
        self,
        problem: Problem,
        seed: int,
        penalty: Any,
        max_queries: int | None = None,
        max_time: float | None = None,
    ) -> Any:
        """Return the result with this penalty, within budgets or those of the model."""
        self.penalty_, n_losses = penalty, problem.size.n_losses
        asked = {
            "penalty": penalty,
            "step_size": self.step_size,
            "n_directions": self.n_directions,
            "loss_batch": self.batch_size and min(self.batch_size, n_losses),
        }
        options = {name: one for name, one in asked.items() if one is not None}
        options |= self.options or {}
        method = self._method(problem, options)
        if method == "dszog":  # its penalty allows for rows that contradict each other
            usual = {"step_size": 0.02, "n_directions": 8}
            options = usual | {"loss_batch": min(256, n_losses)} | options
        return minimize(
            problem,
            method=method,
            options=options,
            max_iterations=self.max_iterations,
            max_queries=max_queries or self.max_queries,
            max_time=max_time or self.max_time,
            constraint_tol=self.constraint_tol,
            seed=seed,
            progress=bool(self.verbose),
        )

    def _method(self, problem: Problem, options: dict[str, Any]) -> str:
        """Return the name of the method for a problem and options that were given."""
        return "dszog"

    def _losses(self, model: Any, train: TrainingSet) -> Losses:
        loss = LOSSES[self.loss] if isinstance(self.loss, str) else self.loss
        rows = DataRows(type(self).__name__, "X", model)
        half, weights, labels = 0.5 * float(self.alpha), train.weights, train.labels

        def values(points: FloatArray, indices: IntArray) -> Any:
            table = loss(rows.scores(points, indices), labels[indices])
            ridge = half * np.square(points[:, :-1]).sum(axis=1, keepdims=True)
            return np.asarray(table) * weights[indices] + ridge

        return Losses(values, len(rows))

    def _keep(self, result: Any, scaling: Scaling, kernel: Kernel | None) -> None:
        for name in ("coef_", "dual_coef_", "centres_", "gamma_"):
            self.__dict__.pop(name, None)  # of an earlier fit, of another kernel
        # Scores are of classes_[1], as everywhere in scikit-learn.
        x = result.x if self.pos_label_ == self.classes_[1] else -result.x
        weights, intercept = x[:-1], x[-1] if self.fit_intercept else 0.0
        if kernel is None:
            weights = weights / scaling.scale
            self.coef_ = weights[np.newaxis]
            intercept = intercept - scaling.mean @ weights
        else:
            self.dual_coef_ = (kernel.basis @ weights)[np.newaxis]
            self.centres_, self.gamma_ = kernel.centres, kernel.gamma
        self.mean_, self.scale_ = scaling.mean, scaling.scale
        self.intercept_ = np.array([float(intercept)])
        self.result_, self.certificate_ = result, result.certificate
        self.n_iter_ = int(result.nit)
        said = ""
        if not result.status.is_planned:
            said = result.message
        elif result.is_start and result.status != Status.CONVERGED:
            said = "the model is the start, a fit by least squares: nothing better was "
            said += f"found. {self._against_start(result)}"
        if said:
            said = f"{type(self).__name__}: {said}"
            warnings.warn(said, ConvergenceWarning, stacklevel=4)

    def _against_start(self, result: Any) -> str:
        """Return what may help where a run returns its start."""
        budget = _BUDGETS.get(result.status)
        if budget and not result.nit:
            return f"The budget ended before the first iteration: raise `{budget}`."
        if self.penalty_ is not None:
            return (
                f"With `penalty`={self.penalty_:g} the worst violation outweighs what "
                f"the loss gains: try {self.penalty_ / 30:.1g}."
            )
        return f"Raise `{budget or 'max_iterations'}`, or give a `penalty`."

    # ------------------------------------------------------------- checking input

    def _checked_labels(self, y: NDArray[Any], weights: FloatArray) -> FloatArray:
        """Return the labels as -1 and +1, and keep the names of the classes."""
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        classes, places = np.unique(y, return_inverse=True)
        if kind != "binary" or len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}. {self._many_classes}"
            )
        if len(np.unique(places[weights > 0.0])) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two classes, got one class "
                f"({classes[0]!r}) among those with a positive weight. Give rows of "
                "the other one."
            )
        if self.pos_label is not None and self.pos_label not in classes.tolist():
            raise ValueError(
                f"{type(self).__name__}: pos_label must be one of the classes "
                f"{classes.tolist()}, got {self.pos_label!r}."
            )
        self.classes_ = classes
        first = self.pos_label is not None and self.pos_label == classes[0]
        self.pos_label_ = classes[0 if first else 1]
        labels: FloatArray = np.where(places == (0 if first else 1), 1.0, -1.0)
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags
