"""What the classifiers have in common: everything but their constraints."""

from __future__ import annotations

import inspect
import warnings
from abc import abstractmethod
from collections.abc import Callable
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, Options, StrOptions
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import (
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import did_you_mean, shown
from dszog.errors import InputTypeError
from dszog.learn.features import Kernel, Scaling, dot, least_squares, with_ones
from dszog.learn.losses import LOSSES, Loss
from dszog.learn.samples import TrainingSet, training_set
from dszog.minimize import minimize
from dszog.problem import Losses, Problem
from dszog.problem.constraints import Constraints
from dszog.problem.data_rows import DataRows

POSITIVE = Interval(Real, 0, None, closed="neither")
NOT_NEGATIVE = Interval(Real, 0, None, closed="left")


class Count(Interval):
    """A whole number of at least 1; a float that is one will do, as in 1e6."""

    def __init__(self) -> None:
        super().__init__(Integral, 1, None, closed="left")

    def is_satisfied_by(self, val: Any) -> bool:
        """Whether `val` is such a number."""
        if isinstance(val, (float, np.floating)) and val.is_integer():
            val = int(val)
        return bool(super().is_satisfied_by(val))


COUNT = Count()
TO_FIT = {  # what fit takes, and the constructor does not
    "sensitive_features": "Z",
    "sample_weight": "weights",
}


class ConstrainedClassifier(ClassifierMixin, BaseEstimator):
    """A binary classifier whose scores keep to constraints.

    A subclass lists its parameters, says what is constrained, and documents both.
    """

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
        "step_size": [POSITIVE],
        "n_directions": [COUNT],
        "batch_size": [COUNT],
        "max_iterations": [COUNT, None],
        "max_queries": [COUNT, None],
        "max_time": [POSITIVE, None],
        "constraint_tol": [NOT_NEGATIVE],
        "options": [dict, None],
        "random_state": ["random_state"],
        "verbose": ["boolean"],
    }

    loss: str | Loss
    kernel: str
    gamma: str | float
    n_centres: int | float
    n_components: int | float
    alpha: float
    fit_intercept: bool
    standardize: bool
    penalty: float | None
    step_size: float
    n_directions: int | float
    batch_size: int | float
    max_iterations: int | float | None
    max_queries: int | float | None
    max_time: float | None
    constraint_tol: float
    options: dict[str, Any] | None
    random_state: Any
    verbose: bool

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        _, *parameters = inspect.signature(cls.__init__).parameters.values()
        cls.__signature__ = inspect.Signature(parameters)  # not that of __new__

    def __new__(cls, *given: Any, **named: Any) -> Self:
        """Refuse a parameter that there is not, with a word on where it belongs.

        Here, since scikit-learn wants an ``__init__`` that takes what it lists.
        """
        known = cls._get_param_names()
        for word in named:
            if word in known:
                continue
            hint = did_you_mean(word, known)
            if word in TO_FIT:
                hint = f" Give it to fit: model.fit(X, y, {word}={TO_FIT[word]})."
            raise InputTypeError(
                f"{cls.__name__}: there is no parameter {word!r}, got "
                f"{shown(named[word])}.{hint or f' See help({cls.__name__}).'}"
            )
        made: Self = super().__new__(cls)
        return made

    # ------------------------------------------------------------------- using it

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of each row; above 0 it is of the class ``classes_[1]``.

        Parameters
        ----------
        X : array_like or SciPy sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "intercept_")  # set last: a fit that failed is none
        X = self._checked(X, reset=False)
        intercept = float(self.intercept_[0])
        if hasattr(self, "dual_coef_"):
            kernels = self._kernel_map(self._scaling(X))
            return dot(kernels, self.dual_coef_[0]) + intercept
        return dot(X, self.coef_[0]) + intercept

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row.

        Parameters
        ----------
        X : array_like or SciPy sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        is_positive = self.decision_function(X) > 0.0
        predicted: NDArray[Any] = self.classes_[is_positive.astype(np.intp)]
        return predicted

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`dszog.learn.load` reads.

        The file holds numbers and names, never code, and says if it was damaged. A
        `loss` that is a function, `options` and the ``result_`` of the run are not
        saved: a loaded model predicts, and needs a loss by name to be fitted again.
        """
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
        weights = self._checked_weights(sample_weight, X)
        labels = self._checked_labels(y, weights)
        beside = None if extra is None else extra(weights > 0.0)
        train = training_set(X, labels, weights, beside)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))

        scaling = Scaling.of(train, self.standardize)
        rows = scaling(train.X)
        kernel = None
        if self.kernel == "rbf":
            kernel = Kernel.of(
                train,
                rows,
                self.gamma,
                int(self.n_centres),
                int(self.n_components),
                seed,
            )
            rows = kernel(rows) @ kernel.basis
        model = with_ones(rows, self.fit_intercept)
        problem = Problem(
            self._losses(model, train),
            self._constraints(rows, train),
            model.shape[1],
            x0=least_squares(model, train),
            unconstrained=True,
        )
        result = self._minimize(problem, seed)
        self._keep(result, scaling, kernel)
        return self

    @abstractmethod
    def _constraints(self, rows: Any, train: TrainingSet) -> Constraints | None:
        """Return the constraints on the weights of the rows and the intercept."""

    def _minimize(self, problem: Problem, seed: int) -> Any:
        n_losses = problem.size.n_losses
        options: dict[str, Any] = {
            "step_size": float(self.step_size),
            "n_directions": int(self.n_directions),
            "loss_batch": min(int(self.batch_size), n_losses),
        }
        if self.penalty is not None:
            options["penalty"] = float(self.penalty)
        options |= self.options or {}
        return minimize(
            problem,
            options=options,
            max_iterations=_whole(self.max_iterations),
            max_queries=_whole(self.max_queries),
            max_time=None if self.max_time is None else float(self.max_time),
            constraint_tol=float(self.constraint_tol),
            seed=seed,
            progress=bool(self.verbose),
        )

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
        weights, intercept = result.x[:-1], result.x[-1] if self.fit_intercept else 0.0
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
        if not result.status.is_planned:
            warnings.warn(
                f"{type(self).__name__}: {result.message}",
                ConvergenceWarning,
                stacklevel=4,
            )

    @property
    def _scaling(self) -> Scaling:
        return Scaling(mean=self.mean_, scale=self.scale_)

    @property
    def _kernel_map(self) -> Kernel:
        return Kernel(centres=self.centres_, gamma=self.gamma_, basis=np.empty((0, 0)))

    # ------------------------------------------------------------- checking input

    def _checked(self, X: Any, *, reset: bool) -> Any:
        return validate_data(
            self, X, accept_sparse="csr", dtype=np.float64, reset=reset
        )

    def _checked_weights(self, sample_weight: Any, X: Any) -> FloatArray:
        weights: FloatArray = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        return weights

    def _checked_labels(self, y: NDArray[Any], weights: FloatArray) -> FloatArray:
        """Return the labels as -1 and +1, and keep the names of the classes."""
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        classes, places = np.unique(y, return_inverse=True)
        if kind != "binary" or len(classes) > 2:
            raise ValueError(
                "Only binary classification is supported. The type of the target is "
                f"{kind}."
            )
        if len(np.unique(places[weights > 0.0])) < 2:
            raise ValueError(
                f"{type(self).__name__} needs samples of two classes, got one class "
                f"({classes[0]!r}) among those with a positive weight. Give rows of "
                "the other one."
            )
        self.classes_ = classes
        labels: FloatArray = 2.0 * places.astype(np.float64) - 1.0
        return labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.sparse = True
        return tags


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def one_of(*names: str) -> Any:
    """Return scikit-learn's check that a parameter has one of these values."""
    return Options(str, set(names))
