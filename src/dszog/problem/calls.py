"""Calling a user's function one point at a time: once, and without losing the rest.

Kinds of constraints that call a function for each point and index do it through
:func:`call_number` and :func:`call_vector`. Within a :class:`Session`, which an
evaluator opens for the queries of one iteration, a call for a vector is never made
twice at the same point; and a call that raises, or returns something else than numbers,
is noted and counts as a value that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dszog.contract.arrays import FloatArray, IntArray, handed_out
from dszog.contract.validation import shown
from dszog.errors import EvaluationError


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


def call_many(
    function: Callable[..., Any], x: FloatArray, indices: IntArray
) -> FloatArray:
    """Return ``function(x, indices)``, a number for each, `nan` if it fails."""
    return _vector(lambda x: function(x, indices), x, (), len(indices))


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
