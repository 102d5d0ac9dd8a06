"""Whether the numbers of a state that was read are such as a method leaves behind.

Types and shapes are the affair of the decoding; this is what it cannot see.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from dszog.contract import ProblemSize
from dszog.errors import CheckpointError
from dszog.maths.distribution import SparseDistribution, UniformDistribution
from dszog.methods import DSZOGState, State

WEIGHT_ERROR = 1e-6  # of the sum of all weights, which is 1


def check_numbers(state: State) -> None:
    """Refuse a state whose numbers no method can have left behind."""
    for name, number in _floats_in("state", state):
        if not np.isfinite(number).all():
            raise CheckpointError(f"`{name}` in it is not finite")
    if isinstance(state, DSZOGState) and state.distribution is not None:
        total = _total_weight(state.distribution)
        if not abs(total - 1.0) <= WEIGHT_ERROR:
            raise CheckpointError(
                f"its weights are no distribution, their sum is {total:.6g}"
            )


def _floats_in(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of what was decoded, with the names of their fields."""
    if isinstance(value, ProblemSize):  # of the caller; bounds may be infinite
        return
    if is_dataclass(value):
        for item in fields(value):
            yield from _floats_in(item.name, getattr(value, item.name))
    elif isinstance(value, float) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ):
        yield name, value


def _total_weight(distribution: Any) -> float:
    """Return the sum of all weights, `nan` if one is negative."""
    if isinstance(distribution, UniformDistribution):
        return 1.0
    weights, rest = distribution.weights, 0.0
    if isinstance(distribution, SparseDistribution):
        rest = distribution.background_weight
        weights = np.append(weights, distribution.n_background * rest)
    return float(weights.sum()) if (weights >= 0.0).all() else math.nan
