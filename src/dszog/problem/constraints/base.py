r"""A family of constraints :math:`f_j(x) \le 0`, known by its values alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from dszog.contract import Calls
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import (
    check_callable,
    check_count,
    check_indices,
    check_not_overridden,
)
from dszog.errors import InputError
from dszog.problem.calls import Grain

if TYPE_CHECKING:
    from dszog.problem.constraints.blocks import BlockConstraints
    from dszog.problem.constraints.callables import (
        CallableConstraints,
        FunctionConstraints,
    )
    from dszog.problem.constraints.concat import ConcatConstraints
    from dszog.problem.constraints.linear import LinearConstraints
    from dszog.problem.constraints.pairwise import PairwiseConstraints

Values: TypeAlias = Callable[[FloatArray, IntArray], Any]

LARGEST_COUNT = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """What all constraints of a family say about one point, exactly."""

    n_constraints: int
    n_violated: int  # how many have a value > 0
    worst_value: float  # the largest value; negative if every constraint holds
    worst_index: int  # a constraint that has it
    sum_squares: float  # the sum of max(f_j, 0)^2


class Constraints:
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

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse a class whose values nobody would ask for."""
        super().__init_subclass__(**more)
        check_not_overridden(cls, Constraints, "values, m")

    def __init__(
        self,
        values: Values,
        m: int | float,
        *,
        jacobian: Callable[[FloatArray, IntArray], Any] | None = None,
    ) -> None:
        check_callable(
            "Constraints",
            "values",
            values,
            "values(points, indices) -> (k, b) array",
            2,
        )
        self._m = check_constraint_count("Constraints", m)
        if jacobian is not None:
            check_callable(
                "Constraints",
                "jacobian",
                jacobian,
                "jacobian(point, indices) -> (b, dim) array",
                2,
            )
        self.values_at = values  # of indices known to be good; evaluators call it
        self._jacobian = jacobian
        self._grain = Grain()

    def __len__(self) -> int:
        return self._m

    def __repr__(self) -> str:
        return f"{type(self).__name__}(m={self._m:_})"

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
        return ((0, self._grain),)

    def in_pieces(self, size: int) -> Constraints:
        """Return the same constraints, evaluated in pieces of at most `size` calls.

        Pieces are what workers share. A family that is called for one point and index
        at a time is cut by itself; one that is called with many is called with all of
        them at once unless this says how many values one call shall give. The answer
        is the same for every evaluator and any number of workers.

        Examples
        --------
        >>> import numpy as np
        >>> slow = Constraints(lambda points, j: points @ np.ones((2, len(j))), 9)
        >>> slow.in_pieces(4).grains[0][1].size
        4
        """
        other = copy(self)
        other._grain = replace(self._grain, size=check_count("in_pieces", "size", size))
        return other

    @property
    def has_jacobian(self) -> bool:
        """Whether gradients of the constraints can be asked for."""
        return self._jacobian is not None

    def values(self, points: FloatArray, indices: IntArray) -> Any:
        """Return ``f_j(x)`` for each point (row) and each index (column)."""
        return self.values_at(points, check_indices(self, indices, self._m))

    def jacobian(self, point: FloatArray, indices: IntArray) -> Any:
        """Return the gradients of the indexed constraints at one point, as rows."""
        if self._jacobian is None:
            raise InputError(
                f"{type(self).__name__}: there is no jacobian, got asked for it. Give "
                "one: Constraints(values, m, jacobian=...)."
            )
        return self._jacobian(point, check_indices(self, indices, self._m))

    def summary(self, x: FloatArray) -> Summary | None:
        """Return what all `m` constraints say about `x` where structure makes it cheap.

        None where only a pass over all `m` values could tell.
        """
        return None

    def black_box(self) -> Constraints:
        """Return the same constraints with their gradients hidden.

        A method then uses values alone; the exact summary of a point stays known.
        """
        return BlackBoxConstraints(self)

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
        from dszog.problem.constraints.blocks import BlockConstraints

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


class BlackBoxConstraints(Constraints):
    """Constraints whose gradients are not to be used."""

    def __init__(self, inner: Constraints) -> None:
        super().__init__(inner.values_at, len(inner))
        self._inner = inner

    @property
    def dim(self) -> int | None:
        """Number of variables, where the kind of constraint knows it."""
        return self._inner.dim

    @property
    def calls(self) -> Calls | None:
        """Which constraints share a call of the user's function."""
        return self._inner.calls

    @property
    def grains(self) -> tuple[tuple[int, Grain], ...]:
        """How values may be cut into pieces, from which constraint on."""
        return self._inner.grains

    def in_pieces(self, size: int) -> Constraints:
        """Return the same constraints, evaluated in pieces of at most `size` calls."""
        return BlackBoxConstraints(self._inner.in_pieces(size))

    def summary(self, x: FloatArray) -> Summary | None:
        """Return what all constraints say about `x`, where structure tells."""
        return self._inner.summary(x)


def check_constraint_count(owner: str, m: Any) -> int:
    """Return `m` as an int; refuse none, and more than 64-bit indices can name."""
    count = check_count(
        owner,
        "m",
        m,
        advice="Pass an int. Leave the constraints out if there are none.",
    )
    if count > LARGEST_COUNT:
        raise InputError(
            f"{owner}: `m` must be below 2**63, got {m}. Indices are 64-bit integers; "
            "group constraints so that one index stands for several."
        )
    return count


def summarise(values: FloatArray, first_index: int = 0) -> Summary:
    """Return the summary of constraints whose values are all at hand."""
    worst = int(np.argmax(values))
    violations = np.maximum(values, 0.0)
    with np.errstate(over="ignore"):  # inf is what the squares of such values are
        sum_squares = float(np.square(violations).sum())
    return Summary(
        n_constraints=len(values),
        n_violated=int(np.count_nonzero(values > 0.0)),
        worst_value=float(values[worst]),
        worst_index=first_index + worst,
        sum_squares=sum_squares,
    )
