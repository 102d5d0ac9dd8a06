"""The two array types of the library, and how an array is made read-only."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]


def frozen_floats(values: Any) -> FloatArray:
    """Return a read-only, C-contiguous float64 array; the argument stays as it is."""
    array = np.asarray(values, dtype=np.float64, order="C").view()
    array.flags.writeable = False
    return array


def frozen_ints(values: Any) -> IntArray:
    """Return a read-only, C-contiguous int64 array; the argument stays as it is."""
    array = np.asarray(values, dtype=np.int64, order="C").view()
    array.flags.writeable = False
    return array
