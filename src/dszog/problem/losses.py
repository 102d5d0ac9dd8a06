"""The terms of the objective."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray, handed_out
from dszog.contract.validation import check_callable
from dszog.errors import InputError
from dszog.problem.data_rows import DataRows
from dszog.problem.family import (
    Family,
    Grain,
    Indexed,
    as_vector,
    call_number,
    call_vector,
)


class Losses(Family):
    """The terms of the objective, which is their mean.

    Parameters
    ----------
    values : callable
        ``values(points, indices)`` with `points` of shape ``(k, dim)`` and `indices` of
        shape ``(b,)``, returning an array of shape ``(k, b)``.
    n : int
        The number of terms.
    gradient : callable, optional
        ``gradient(point, indices)`` of shape ``(b, dim)``: the gradients at one point.
        Given, the losses are a white box and methods that can use it do.
    one_point : bool
        Whether `values` is for one point at a time: ``values(x, indices)`` with `x` of
        shape ``(dim,)``, returning ``(b,)``.

    Examples
    --------
    >>> import numpy as np
    >>> data = np.array([1.0, 2.0, 6.0])
    >>> losses = Losses(lambda points, i: (points - data[i]) ** 2, n=3)
    >>> losses.values(np.array([[2.0]]), np.array([0, 2]))
    array([[ 1., 16.]])
    """

    _family, _count_word, _slopes_word = "Losses", "n", "gradient"

    def __init__(
        self,
        values: Indexed,
        n: int | float,
        *,
        gradient: Indexed | None = None,
        one_point: bool = False,
    ) -> None:
        super().__init__(values, n, gradient, one_point)
        self.dim: int | None = None  # number of variables, where it is known

    @classmethod
    def from_function(
        cls,
        function: Callable[[FloatArray], Any],
        *,
        gradient: Callable[[FloatArray], Any] | Literal[True] | None = None,
    ) -> Losses:
        """Return the single loss ``function(x) -> float``.

        `gradient` is ``gradient(x)`` of shape ``(dim,)``; or True if the function
        returns both, value and gradient.

        Examples
        --------
        >>> import numpy as np
        >>> Losses.from_function(lambda x: x @ x).values(np.eye(2), np.array([0]))
        array([[1.],
               [1.]])
        """
        owner = "Losses.from_function"
        check_callable(owner, "function", function, "fun(x) -> float", 1)
        if gradient is True:
            pair = _LossAndSlope(function)
            losses = cls(pair.values, 1, gradient=pair.slopes)
        elif gradient is not None:
            check_callable(owner, "gradient", gradient, "gradient(x) -> array", 1)
            slope = partial(_one_slope, gradient)
            losses = cls(partial(_one_loss, function), 1, gradient=slope)
        else:
            losses = cls(partial(_one_loss, function), 1)
        losses.grain = Grain(each=True)
        return losses

    @classmethod
    def linear(cls, X: Any, y: Any, loss: Callable[[FloatArray, Any], Any]) -> Losses:
        r"""Return :math:`\text{loss}(x_i \cdot w, y_i)` for each row, a linear model.

        The scores of all points are found together, and from a sparse `X` (or a dense
        one that is mostly zeros) without touching the zeros.

        Parameters
        ----------
        X : array_like or SciPy sparse matrix of shape (n, dim)
            Rows of data; or of kernels with chosen rows, for a kernel model.
        y : array_like of shape (n,)
            What the loss wants to know of each row, such as its label.
        loss : callable
            ``loss(scores, y)`` with `scores` of shape ``(k, b)`` and `y` of shape
            ``(b,)``, returning ``(k, b)`` values. A black box: it need not be smooth.

        Examples
        --------
        >>> import numpy as np
        >>> X, y = np.eye(2), np.array([1.0, -1.0])
        >>> losses = Losses.linear(
        ...     X, y, lambda scores, y: np.maximum(1 - y * scores, 0)
        ... )
        >>> losses.values(np.array([[2.0, 0.5]]), np.arange(2))
        array([[0. , 1.5]])
        """
        rows = DataRows("Losses.linear", "X", X)
        try:
            labels = np.array(y)
        except ValueError:  # ragged
            labels = np.array(None)
        if labels.shape != (len(rows),):
            raise InputError(
                f"Losses.linear: `y` must have an entry per row of X, got shape "
                f"{labels.shape} for {len(rows)} rows. Pass a vector."
            )
        labels.flags.writeable = False
        check_callable("Losses.linear", "loss", loss, "loss(scores, y) -> (k, b)", 2)

        def values(points: FloatArray, indices: IntArray) -> Any:
            return loss(rows.scores(points, indices), labels[indices])

        losses = cls(values, len(rows))
        losses.dim = rows.shape[1]
        return losses

    @property
    def has_gradient(self) -> bool:
        """Whether gradients of the losses can be asked for."""
        return self._slopes is not None

    def gradient(self, point: FloatArray, indices: IntArray) -> Any:
        """Return the gradients of the indexed losses at one point, as rows."""
        return self._slopes_at(point, indices)


# Functions of a module, and no closures: they can be sent to workers.
def _one_loss(
    function: Callable[[FloatArray], float], points: FloatArray, indices: IntArray
) -> FloatArray:
    once = np.array([call_number(function, x) for x in points])
    return np.repeat(once[:, np.newaxis], len(indices), axis=1)


def _one_slope(
    gradient: Callable[[FloatArray], Any], point: FloatArray, indices: IntArray
) -> FloatArray:
    slope = as_vector(gradient(handed_out(point)), len(point))
    return np.repeat(slope[np.newaxis], len(indices), axis=0)


@dataclass(frozen=True)
class _LossAndSlope:
    """A function that returns a single loss and its gradient with one call."""

    function: Callable[[FloatArray], Any]

    def values(self, points: FloatArray, indices: IntArray) -> FloatArray:
        once = np.array([self._at(x)[0] for x in points])
        return np.repeat(once[:, np.newaxis], len(indices), axis=1)

    def slopes(self, point: FloatArray, indices: IntArray) -> FloatArray:
        return np.repeat(self._at(point)[np.newaxis, 1:], len(indices), axis=0)

    def _at(self, x: FloatArray) -> FloatArray:
        return call_vector(self, self._joined, x, width=1 + len(x))

    def _joined(self, x: FloatArray) -> Any:
        value, slope = self.function(x)
        return np.append(value, slope)
