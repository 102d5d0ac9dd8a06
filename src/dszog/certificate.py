"""Evidence for a point: fresh values, and how many constraints were looked at.

A check is like a method that asks but does not move: it is made of queries, so any
evaluator can answer it and its cost is known before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv

from dszog._arrays import FloatArray, IntArray
from dszog._random import CHECK, distinct_indices, stream
from dszog.query import NO_INDICES, ProblemSize, Query, Reply

BLOCK = 2**13  # values asked for at a time
CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class CheckPlan:
    """How closely a point is looked at.

    Parameters
    ----------
    n_losses : int
        Losses evaluated; all of them, or a uniform draw.
    n_constraints : int
        Constraints evaluated; all of them, or a uniform draw.
    suspects : ndarray of int64
        Constraints looked at beside a uniform draw: those found violated before.
    """

    n_losses: int
    n_constraints: int
    suspects: IntArray

    @property
    def n_queries(self) -> int:
        """What the check costs at most."""
        return self.n_losses + self.n_constraints + len(self.suspects)


@dataclass(frozen=True, kw_only=True)
class Feasibility:
    """What is known about the constraints at a point, and from how many of them.

    ``worst_value`` is the largest constraint value *among those checked*, negative if
    all of these hold. ``share_bound`` is an upper bound on the share of all constraints
    that are violated: the share itself where all were checked, otherwise a one-sided
    95 % bound from the uniform draw.
    """

    kind: Literal["structure", "all", "sampled", "none"]
    n_constraints: int
    n_checked: int  # uniformly drawn ones, or all
    n_violated: int  # of these
    n_suspects: int  # checked in addition, because they were violated before
    worst_value: float
    worst_index: int
    sum_squares: float  # of max(f_j, 0) over the checked ones
    share_bound: float

    @property
    def is_exact(self) -> bool:
        """Whether every constraint was looked at."""
        return self.kind != "sampled"

    @property
    def maxcv(self) -> float:
        """The largest violation among the checked constraints, 0 if there is none."""
        return max(self.worst_value, 0.0) if self.n_constraints else 0.0

    def __str__(self) -> str:
        if not self.n_constraints:
            return "there are no constraints but the bounds"
        if self.is_exact:
            return (
                f"all {self.n_constraints:,} constraints checked: {self.n_violated:,} "
                f"violated, the worst by {self.maxcv:.3g}"
            )
        return (
            f"{self.n_checked:,} of {self.n_constraints:,} constraints drawn and "
            f"{self.n_suspects:,} suspects checked: {self.n_violated:,} of the draw "
            f"violated, so at most {self.share_bound:.2g} of all with 95 % confidence; "
            f"the worst seen by {self.maxcv:.3g}"
        )


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Fresh values at a point."""

    x: FloatArray
    objective: float
    n_losses_checked: int
    objective_error: float  # standard error; 0 where all losses were evaluated
    feasibility: Feasibility


def check_objective(
    x: FloatArray,
    size: ProblemSize,
    plan: CheckPlan,
    seed: int,
    answer: Callable[[Sequence[Query]], Sequence[Reply]],
) -> tuple[float, float]:
    """Return the objective at `x` and its standard error, 0 if all losses were used."""
    values = _losses_at(x, _drawn(size.n_losses, plan.n_losses, seed, 0), answer)
    if plan.n_losses == size.n_losses:
        return float(values.mean()), 0.0
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def check_constraints(
    x: FloatArray,
    size: ProblemSize,
    plan: CheckPlan,
    seed: int,
    answer: Callable[[Sequence[Query]], Sequence[Reply]],
) -> Feasibility:
    """Look at all constraints at `x`, or at a uniform draw and the suspects."""
    m = size.n_constraints
    if not m:
        return _feasibility("none", m, NO_INDICES, np.empty(0), 0)
    drawn = _drawn(m, plan.n_constraints, seed, 1)
    if plan.n_constraints == m:
        return _feasibility("all", m, drawn, _constraints_at(x, drawn, answer), 0)
    suspects = np.setdiff1d(plan.suspects, drawn)
    indices = np.concatenate([drawn, suspects])
    values = _constraints_at(x, indices, answer)
    return _feasibility("sampled", m, indices, values, len(suspects))


def known_feasibility(summary: Any) -> Feasibility:
    """Return what a family of constraints knows about a point by its structure."""
    return Feasibility(
        kind="structure",
        n_constraints=summary.n_constraints,
        n_checked=summary.n_constraints,
        n_violated=summary.n_violated,
        n_suspects=0,
        worst_value=summary.worst_value,
        worst_index=summary.worst_index,
        sum_squares=summary.sum_squares,
        share_bound=summary.n_violated / summary.n_constraints,
    )


def violated_share_bound(n_violated: int, n_drawn: int) -> float:
    """Return the one-sided 95 % upper bound of Clopper and Pearson on a share.

    Drawing without repeats makes it conservative. For none of `k` it is about ``3/k``.

    Examples
    --------
    >>> round(violated_share_bound(0, 1000), 5)
    0.00299
    >>> violated_share_bound(10, 10)
    1.0
    """
    if n_violated >= n_drawn:
        return 1.0
    return float(betaincinv(n_violated + 1, n_drawn - n_violated, CONFIDENCE))


def _feasibility(
    kind: Literal["all", "sampled", "none"],
    m: int,
    indices: IntArray,
    values: FloatArray,
    n_suspects: int,
) -> Feasibility:
    n_drawn = len(values) - n_suspects
    n_violated = int(np.count_nonzero(values[:n_drawn] > 0.0))
    worst = int(np.argmax(values)) if len(values) else -1
    if kind == "sampled":
        bound = violated_share_bound(n_violated, n_drawn)
    else:
        bound = n_violated / m if m else 0.0
    return Feasibility(
        kind=kind,
        n_constraints=m,
        n_checked=n_drawn,
        n_violated=n_violated,
        n_suspects=n_suspects,
        worst_value=float(values[worst]) if len(values) else float("-inf"),
        worst_index=int(indices[worst]) if len(values) else -1,
        sum_squares=float(np.square(np.maximum(values, 0.0)).sum()),
        share_bound=bound,
    )


def _drawn(n: int, size: int, seed: int, iteration: int) -> IntArray:
    if size == n:
        return np.arange(n)
    return distinct_indices(stream(seed, iteration, CHECK), n, size)


def _losses_at(x: FloatArray, indices: IntArray, answer: Any) -> FloatArray:
    blocks = []
    for first in range(0, len(indices), BLOCK):
        query = Query.at(x, iteration=-1, losses=indices[first : first + BLOCK])
        blocks.append(answer((query,))[0].losses[0])
    return np.concatenate(blocks)


def _constraints_at(x: FloatArray, indices: IntArray, answer: Any) -> FloatArray:
    blocks = [np.empty(0)]
    for first in range(0, len(indices), BLOCK):
        query = Query.at(x, iteration=-1, constraints=indices[first : first + BLOCK])
        blocks.append(answer((query,))[0].constraints[0])
    return np.concatenate(blocks)
