"""What losses and constraints have in common: functions that are known by an index.

Kinds that call a function for each point and index do it through :func:`call_number`
and :func:`call_vector`. Within a :class:`Session`, which an evaluator opens for the
queries of one iteration, a call for a vector is never made twice at the same point; and
a call that raises, or returns something else than numbers, is noted and counts as a
value that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dszog.contract.arrays import FloatArray, IntArray, handed_out
from dszog.contract.validation import (
    Names,
    check_callable,
    check_count,
    check_flag,
    check_indices,
    check_naming,
    name_in,
    shown,
)
from dszog.errors import EvaluationError, InputError, InputTypeError


@dataclass(frozen=True, slots=True)
class Grain:
    """How the values of a function may be asked for in pieces.

    A function that is called for `each` point and index alone gives the same bits
    however the values are cut. One of many points and indices may not: a matrix product
    rounds differently in another shape.
    """

    each: bool = False
    size: int | None = None  # the most calls in one piece, if somebody said so


@dataclass
class Session:
    """What is remembered while the queries of one iteration are answered."""

    results: dict[Hashable, tuple[FloatArray, list[BaseException]]] = field(
        default_factory=dict
    )
    errors: list[BaseException] = field(default_factory=list)  # of the latest function


SESSION: ContextVar[Session | None] = ContextVar("dszog_session", default=None)
"""The one that is open. Who opens one puts back what was there, in a ``finally``."""


def call_number(function: Callable[..., Any], x: FloatArray, *index: int) -> float:
    """Return ``function(x, *index)`` as a float; `nan` if it fails in a session."""
    return float(_vector(function, x, index, 1)[0])


def call_vector(
    owner: object, function: Callable[..., Any], x: FloatArray, *index: int, width: int
) -> FloatArray:
    """Return ``function(x, *index)`` as a vector of `width`, `nan` if it fails."""
    # Called at most once in a session for each owner, point and index.
    current = SESSION.get()
    if current is None:
        return _vector(function, x, index, width)
    key = (id(owner), x.tobytes(), index)
    if key in current.results:
        vector, errors = current.results[key]
        current.errors += errors
        return vector
    n_before = len(current.errors)
    vector = _vector(function, x, index, width)
    current.results[key] = vector, current.errors[n_before:]
    return vector


def _vector(
    function: Callable[..., Any], x: FloatArray, index: tuple[int, ...], width: int
) -> FloatArray:
    current, x = SESSION.get(), handed_out(x)
    try:
        return as_vector(function(x, *index), width, index)
    except (Exception, SystemExit) as error:
        if current is None:
            raise
        current.errors.append(error)
        return np.full(width, np.nan)


def as_vector(values: Any, width: int, index: tuple[int, ...] = ()) -> FloatArray:
    """Return real numbers as a vector of `width`; refuse anything else."""
    array = real_array(values)
    if array is None or array.size != width:
        wanted = "a real number" if width == 1 else f"{width} real numbers"
        for_index = f" for index {index[0]}" if index else ""
        if array is not None and array.size > 1:
            for_index = f" ({array.size:,} numbers){for_index}"
        raise EvaluationError(
            f"A function returned {shown(values)}{for_index}, expected {wanted}. "
            f"Return {'a float' if width == 1 else 'one array of that length'}."
        )
    vector: FloatArray = array.astype(float).reshape(width)
    return vector


def real_array(values: Any) -> NDArray[Any] | None:
    """Return what a function returned as an array of real numbers, None if it is none.

    What is masked is not known: a masked array is none.
    """
    if np.ma.isMaskedArray(values):
        return None
    try:
        array = np.asarray(values)
    except ValueError:  # ragged
        return None
    return array if array.dtype.kind in "fiub" else None


Indexed: TypeAlias = Callable[[FloatArray, IntArray], Any]


class Family:
    """Functions of a point, each with an index; the base of losses and constraints."""

    _family: ClassVar[str]  # "Losses"
    _count_word: ClassVar[str]  # what their number is called, "n"
    _slopes_word: ClassVar[str]  # what their gradients are called, "gradient"
    _names: Names = ()

    def __init_subclass__(cls, **more: Any) -> None:
        """Refuse a class whose values nobody would ask for."""
        # Evaluators call the function that was given to ``__init__``: a method of that
        # name would be passed over in silence, also one of a class that is mixed in.
        super().__init_subclass__(**more)
        before = cls.__mro__[: cls.__mro__.index(Family)]
        for name in ("values", "values_at"):
            if any(name in vars(other) for other in before):
                raise InputTypeError(
                    f"{cls.__name__}: `{name}` of a subclass of {cls._family} is not "
                    "what is called, got it overridden. Give the method another name "
                    "and pass it on: super().__init__(self._values, ...), as "
                    f"{cls._family}(values, {cls._count_word})."
                )

    def __init__(
        self,
        values: Indexed,
        count: Any,
        slopes: Indexed | None,
        one_point: bool = False,
    ) -> None:
        name = self._slopes_word
        expected = "values(points, indices) -> (k, b) array"
        check_callable(self._family, "values", values, expected, 2)
        check_flag(self._family, "one_point", one_point)
        self._n_functions = check_family_size(self._family, self._count_word, count)
        if slopes is not None:
            expected = f"{name}(point, indices) -> (b, dim) array"
            check_callable(self._family, name, slopes, expected, 2)
        # Of indices known to be good; evaluators call it.
        self.values_at = partial(_at_each_point, values) if one_point else values
        self._slopes = slopes
        self.grain = Grain()

    def __len__(self) -> int:
        return self._n_functions

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._count_word}={self._n_functions:_})"

    def values(self, points: FloatArray, indices: IntArray) -> Any:
        """Return the value at each point (row) for each index (column)."""
        return self.values_at(points, check_indices(self, indices, self._n_functions))

    def _slopes_at(self, point: FloatArray, indices: IntArray) -> Any:
        if self._slopes is None:
            name = self._slopes_word
            raise InputError(
                f"{type(self).__name__}: there is no {name}, got asked for it. Give "
                f"one: {self._family}(values, {self._count_word}, {name}=...)."
            )
        return self._slopes(point, check_indices(self, indices, self._n_functions))

    def named(self, names: Names) -> Self:
        """Return the same functions with names, which are shown where an index would.

        Parameters
        ----------
        names : sequence of str, or callable
            One for each function, or ``names(index) -> str`` where they are too many.

        Examples
        --------
        >>> from dszog import Constraints
        >>> limits = Constraints.from_function(lambda x, j: x[j] - 1.0, 2)
        >>> limits.named(["heat", "load"]).name(1)
        'load'
        """
        other = copy(self)
        other._names = check_naming(f"{type(self).__name__}.named", names, len(self))
        return other

    def name(self, index: int) -> str:
        """Return the name of one function; empty if it has none."""
        return name_in(self._names, index)

    def in_pieces(self, size: int) -> Self:
        """Return the same functions, evaluated in pieces of at most `size` calls.

        Pieces are what workers share. Functions that are called for one point and index
        at a time are cut by themselves; one that is called with many is called with all
        of them at once unless this says how many values one call shall give. The answer
        is the same for every evaluator and any number of workers.

        Examples
        --------
        >>> import numpy as np
        >>> from dszog import Constraints
        >>> slow = Constraints(lambda points, j: points @ np.ones((2, len(j))), 9)
        >>> slow.in_pieces(4).grains[0][1].size
        4
        """
        other = copy(self)
        size = check_count(f"{type(self).__name__}.in_pieces", "size", size)
        other.grain = replace(self.grain, size=size)
        return other


def _at_each_point(
    function: Indexed, points: FloatArray, indices: IntArray
) -> FloatArray:
    """Return the values of a function of one point and many indices."""

    def at(x: FloatArray) -> Any:
        return function(x, indices)

    rows = [_vector(at, x, (), len(indices)) for x in points]
    return np.array(rows).reshape(len(points), len(indices))


def check_family_size(owner: str, name: str, count: Any) -> int:
    """Return a number of functions; refuse none, and more than 64 bits can name."""
    advice = "Pass an int. Leave the constraints out if there are none."
    size = check_count(owner, name, count, advice=advice if name == "m" else "")
    if size >= 2**63:
        raise InputError(
            f"{owner}: `{name}` must be below 2**63, got {count}. Indices have 64 "
            "bits: group them so that one index stands for several."
        )
    return size
