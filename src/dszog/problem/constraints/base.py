r"""A family of constraints :math:`f_j(x) \le 0`, known by its values alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from dszog.contract import Calls
from dszog.contract.arrays import FloatArray, IntArray
from dszog.problem.family import Family, Grain, Indexed

if TYPE_CHECKING:
    from dszog.problem.constraints.callables import (
        BlockConstraints,
        CallableConstraints,
        FunctionConstraints,
    )
    from dszog.problem.constraints.concat import ConcatConstraints
    from dszog.problem.constraints.linear import LinearConstraints
    from dszog.problem.constraints.pairwise import PairwiseConstraints


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What all constraints of a family say about one point, exactly."""

    n_constraints: int
    n_violated: int  # how many have a value > 0
    worst_value: float  # the largest value; negative if every constraint holds
    worst_index: int  # a constraint that has it
    sum_squares: float  # the sum of max(f_j, 0)^2


class Constraints(Family):
    r"""Constraints :math:`f_j(x) \le 0` for :math:`j = 0, \dots, m - 1`.

    A constraint **holds where its value is at most 0**. The family is a function of the
    index, never a list, so `m` may be :math:`10^{12}`.

    Parameters
    ----------
    values : callable
        ``values(points, indices)`` with `points` of shape ``(k, dim)`` and `indices` of
        shape ``(b,)``, returning an array of shape ``(k, b)``.
    m : int
        The number of constraints.
    jacobian : callable, optional
        ``jacobian(point, indices)`` of shape ``(b, dim)``: the gradients at one point.
        Given, the constraints are a white box and methods that can use it do.
    one_point : bool
        Whether `values` is for one point at a time: ``values(x, indices)`` with `x` of
        shape ``(dim,)``, returning ``(b,)``.

    Examples
    --------
    A trillion half-planes, of which only those asked for are ever formed:

    >>> import numpy as np
    >>> def values(points, indices):
    ...     angles = 2 * np.pi * indices / 10**12
    ...     return points @ np.array([np.cos(angles), np.sin(angles)]) - 1.0
    >>> half_planes = Constraints(values, 10**12)
    >>> len(half_planes)
    1000000000000
    >>> half_planes.values(np.array([[2.0, 0.0]]), np.array([0, 5 * 10**11]))
    array([[ 1., -3.]])
    """

    _family, _count_word, _slopes_word = "Constraints", "m", "jacobian"

    def __init__(
        self,
        values: Indexed,
        m: int | float,
        *,
        jacobian: Indexed | None = None,
        one_point: bool = False,
    ) -> None:
        super().__init__(values, m, jacobian, one_point)

    @property
    def dim(self) -> int | None:
        """Number of variables, where the kind of constraint knows it."""
        return None

    @property
    def calls(self) -> Calls | None:
        """Which constraints share a call of the user's function; None if none do."""
        return None

    @property
    def grains(self) -> tuple[tuple[int, Grain], ...]:
        """How values may be cut into pieces, from which constraint on."""
        return ((0, self.grain),)

    @property
    def has_jacobian(self) -> bool:
        """Whether gradients of the constraints can be asked for."""
        return self._slopes is not None

    def jacobian(self, point: FloatArray, indices: IntArray) -> Any:
        """Return the gradients of the indexed constraints at one point, as rows."""
        return self._slopes_at(point, indices)

    def summary(self, x: FloatArray) -> Summary | None:
        """Return what all `m` constraints say about `x` where structure makes it cheap.

        None where only a pass over all `m` values could tell.
        """
        return None

    def black_box(self) -> Self:
        """Return the same constraints with their gradients hidden.

        A method then uses values alone; the exact summary of a point stays known.
        """
        other = copy(self)
        other._slopes = None
        return other

    # ------------------------------------------------------------------- ready kinds

    @classmethod
    def from_function(
        cls, function: Callable[[FloatArray, int], float], m: int | float
    ) -> FunctionConstraints:
        """Return constraints from one ``function(x, j) -> float``, the simplest way.

        Examples
        --------
        >>> import numpy as np
        >>> spheres = Constraints.from_function(lambda x, j: x @ x - (j + 1.0), 5)
        >>> spheres.values(np.array([[1.0, 1.0]]), np.array([0, 4]))
        array([[ 1., -3.]])
        """
        from dszog.problem.constraints.callables import FunctionConstraints

        return FunctionConstraints(function, m)

    @classmethod
    def from_callables(
        cls, functions: Sequence[Callable[[FloatArray], float]]
    ) -> CallableConstraints:
        """Return constraints from a list of functions, each ``f(x) -> float``.

        Examples
        --------
        >>> import numpy as np
        >>> box = Constraints.from_callables([lambda x: x[0] - 1, lambda x: -x[0]])
        >>> box.values(np.array([[3.0]]), np.array([0, 1]))
        array([[ 2., -3.]])
        """
        from dszog.problem.constraints.callables import CallableConstraints

        return CallableConstraints(functions)

    @classmethod
    def blocks(
        cls,
        values: Callable[[FloatArray, int], Any],
        n_blocks: int | float,
        width: int,
    ) -> BlockConstraints:
        """Return constraints of which one call ``values(x, block)`` gives `width`.

        Constraint ``j`` is entry ``j % width`` of block ``j // width``. A block is
        evaluated once at a point, and counts as one query, however many of its
        constraints are asked for.

        Examples
        --------
        >>> import numpy as np
        >>> limits = Constraints.blocks(lambda x, b: x[b] - np.arange(3.0), 2, width=3)
        >>> limits.values(np.array([[1.0, 5.0]]), np.array([0, 3, 5]))
        array([[1., 5., 3.]])
        """
        from dszog.problem.constraints.callables import BlockConstraints

        return BlockConstraints(values, n_blocks, width)

    @classmethod
    def concat(cls, *parts: Constraints) -> ConcatConstraints:
        """Return the constraints of all parts as one family, in their order.

        Examples
        --------
        >>> import numpy as np
        >>> first = Constraints.linear(np.eye(2), 1.0)
        >>> second = Constraints.from_function(lambda x, j: x @ x - 4.0, 1)
        >>> Constraints.concat(first, second).values(np.ones((1, 2)), np.array([2, 0]))
        array([[-2.,  0.]])
        """
        from dszog.problem.constraints.concat import ConcatConstraints

        return ConcatConstraints(parts)

    @classmethod
    def linear(cls, A: Any, b: Any) -> LinearConstraints:
        """Return the constraints ``A x <= b``, `A` dense or sparse.

        Examples
        --------
        >>> import numpy as np
        >>> box = Constraints.linear(np.vstack([np.eye(2), -np.eye(2)]), np.ones(4))
        >>> box.values(np.array([[3.0, 0.0]]), np.arange(4))
        array([[ 2., -1., -4., -1.]])
        """
        from dszog.problem.constraints.linear import LinearConstraints

        return LinearConstraints(A, b)

    @classmethod
    def pairwise(
        cls,
        X_pos: Any,
        X_neg: Any,
        margin: float = 0.0,
    ) -> PairwiseConstraints:
        r"""Return one constraint for each pair of a positive and a negative row.

        :math:`x_b^- \cdot w - x_a^+ \cdot w + \text{margin} \le 0`: every positive row
        scores at least `margin` above every negative one; a negative margin relaxes.

        Examples
        --------
        >>> import numpy as np
        >>> pairs = Constraints.pairwise(np.eye(2), np.zeros((3, 2)))
        >>> len(pairs)
        6
        >>> pairs.summary(np.array([1.0, -2.0])).worst_value
        2.0
        """
        from dszog.problem.constraints.pairwise import PairwiseConstraints

        return PairwiseConstraints(X_pos, X_neg, margin)


def summarise(values: FloatArray) -> Summary:
    """Return the summary of constraints whose values are all at hand."""
    worst = int(np.argmax(values))
    violations = np.maximum(values, 0.0)
    with np.errstate(over="ignore"):  # inf is what the squares of such values are
        sum_squares = float(np.square(violations).sum())
    return Summary(
        n_constraints=len(values),
        n_violated=int(np.count_nonzero(values > 0.0)),
        worst_value=float(values[worst]),
        worst_index=worst,
        sum_squares=sum_squares,
    )
