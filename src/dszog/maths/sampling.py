"""Which losses and constraints to look at: draws that never list them all."""

from __future__ import annotations

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import IntArray
from dszog.maths.random_stream import distinct_indices


def uniform_constraints(
    rng: np.random.Generator, size: ProblemSize, n_wanted: int
) -> IntArray:
    """Draw constraints such that each has the same chance, in sorted order."""
    # Where a call of the user's function serves several constraints, calls are drawn
    # and all that they serve is taken: about as many as wanted, and from one call at
    # least.
    if size.calls is None:
        return distinct_indices(rng, size.n_constraints, n_wanted)
    n_calls = size.calls.n_calls
    per_call = size.n_constraints / n_calls
    n_drawn = min(max(round(n_wanted / per_call), 1), n_calls)
    return size.calls.served_by(distinct_indices(rng, n_calls, n_drawn))


def constraints_per_draw(drawn: IntArray, size: ProblemSize) -> float:
    """Return how many constraints each of a uniform draw stands for."""
    if size.calls is None:
        return size.n_constraints / len(drawn)
    return size.calls.n_calls / len(np.unique(size.calls.of(drawn)))


def constraint_block(first: int, n_wanted: int, size: ProblemSize) -> IntArray:
    """Return consecutive constraints from `first`, with whole calls."""
    end = min(first + n_wanted, size.n_constraints)
    if size.calls is not None and end < size.n_constraints:
        last_call = size.calls.of(np.array([end - 1]))
        end = int(size.calls.served_by(last_call)[-1]) + 1
    return np.arange(first, end)
