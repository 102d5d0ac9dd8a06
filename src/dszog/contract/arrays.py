"""The two array types of the library, and how an array is made read-only."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]
ColumnArray: TypeAlias = NDArray[np.uint16 | np.int32]
Array = TypeVar("Array", bound=NDArray[Any])

_FLOAT, _INT = np.dtype(np.float64), np.dtype(np.int64)


def frozen_floats(values: Any) -> FloatArray:
    """Return a read-only, C-contiguous float64 array; the argument stays as it is."""
    return _frozen(values, _FLOAT)


def frozen_ints(values: Any) -> IntArray:
    """Return a read-only, C-contiguous int64 array; the argument stays as it is."""
    return _frozen(values, _INT)


_FROZEN = {"FloatArray": frozen_floats, "IntArray": frozen_ints}


class FrozenArrays:
    """Base of dataclasses whose arrays are made read-only, by the types they say."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]  # of a dataclass
            if field.type in _FROZEN:
                array = _FROZEN[field.type](getattr(self, field.name))
                object.__setattr__(self, field.name, array)


def freeze(array: Array) -> Array:
    """Make an array read-only that nobody else holds yet, and return it."""
    array.setflags(False)  # type: ignore[call-arg]  # by name takes thrice as long
    return array


def handed_out(array: Array) -> Array:
    """Return a read-only copy of an array, for code that is not ours.

    To be read-only stops NumPy, not compiled code that is given the address: what that
    writes must reach nothing that a run goes on with.
    """
    return freeze(array.copy())


def _frozen(values: Any, kind: np.dtype[Any]) -> NDArray[Any]:
    if type(values) is np.ndarray and values.dtype is kind:  # most are such already
        flags = values.flags
        if flags.c_contiguous and not flags.writeable:
            return values
    return freeze(np.asarray(values, dtype=kind, order="C").view())


def all_finite(array: FloatArray) -> bool:
    # The sum of squares says so in one pass, unless it overflows.
    return math.isfinite(np.vdot(array, array)) or bool(np.isfinite(array).all())


def is_among(numbers: IntArray, others: IntArray) -> BoolArray:
    """Return which numbers are among others; as `np.isin`, whatever their size.

    NumPy makes both distinct first, which takes ten times as long for a million numbers
    that are spread over a wide range.
    """
    if not len(others):
        return np.zeros(numbers.shape, dtype=bool)
    if (others[1:] < others[:-1]).any():
        others = np.sort(others)
    places = np.searchsorted(others, numbers)
    found: BoolArray = others[np.minimum(places, len(others) - 1)] == numbers
    return found
