"""Evidence for a point: fresh values, and how many constraints were looked at.

A check is like a method that asks but does not move: it is made of queries, so any
evaluator can answer it and its cost is known before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import betaincinv

from dszog._arrays import FloatArray, IntArray
from dszog._random import CHECK, distinct_indices, stream
from dszog.query import NO_INDICES, ProblemSize, Query, Reply
from dszog.sampling import constraint_block
from dszog.stationarity import Stationarity

Answer: TypeAlias = Callable[[Sequence[Query]], Sequence[Reply]]

BLOCK = 2**10  # values asked for at a time
CONFIDENCE = 0.95
N_WORST = 100  # constraints of largest value that are kept by name


@dataclass(frozen=True, eq=False, kw_only=True)
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
    n_queries : int
        What the check costs at most.
    block : int
        Values asked for at a time.
    """

    n_losses: int
    n_constraints: int
    suspects: IntArray
    n_queries: int
    block: int = BLOCK


@dataclass(frozen=True, eq=False, kw_only=True)
class Feasibility:
    """What is known about the constraints at a point, and from how many of them.

    ``worst_value`` is the largest constraint value *among those checked*, negative if
    all of these hold. ``share_bound`` is an upper bound on the share of all constraints
    that are violated: the share itself where all were checked, otherwise a one-sided
    95 % bound from the uniform draw, in which a value that is not known counts as a
    violation.
    """

    kind: Literal["structure", "all", "sampled", "none", "unchecked"]
    n_constraints: int
    n_checked: int  # uniformly drawn ones, or all
    n_violated: int  # of these
    n_suspects: int  # checked in addition, because they were violated before
    n_unknown: int  # of all that were checked, those that gave no value
    worst_value: float
    worst_index: int
    sum_squares: float  # of max(f_j, 0) over the checked ones
    share_bound: float
    worst_indices: IntArray = field(repr=False, default_factory=lambda: NO_INDICES)

    @property
    def is_exact(self) -> bool:
        """Whether every constraint was looked at."""
        return self.kind in ("structure", "all", "none") and not self.n_unknown

    @property
    def is_known(self) -> bool:
        """Whether all that was looked at gave a value."""
        return self.kind != "unchecked" and not self.n_unknown

    @property
    def maxcv(self) -> float:
        """The largest violation among the checked constraints; `nan` if not known."""
        if not self.is_known:
            return float("nan")
        return max(self.worst_value, 0.0) if self.n_constraints else 0.0

    def __str__(self) -> str:
        if self.kind == "unchecked":
            return "the constraints were not checked"
        if not self.n_constraints:
            return "there are no constraints but the bounds"
        worst = f"the worst by {max(self.worst_value, 0.0):.3g}"
        unknown = f", {self.n_unknown:,} gave no value" if self.n_unknown else ""
        if self.kind != "sampled":
            n = self.n_constraints
            all_of = "the constraint" if n == 1 else f"all {n:,} constraints"
            return f"{all_of} checked: {self.n_violated:,} above 0, {worst}{unknown}"
        return (
            f"{self.n_checked:,} of {self.n_constraints:,} constraints drawn and "
            f"{self.n_suspects:,} suspects checked: {self.n_violated:,} of the draw "
            f"above 0, so at most {rounded_up(100 * self.share_bound)} % of all with "
            f"95 % confidence; among those checked, {worst}{unknown}"
        )


def rounded_up(share: float) -> str:
    """Return a bound to two digits, never below itself."""
    if share <= 0.0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(share)) - 1)
    return f"{math.ceil(share / step - 1e-9) * step:.3g}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """The evidence for a point: fresh values, feasibility, and stationarity."""

    x: FloatArray
    objective: float  # `nan` if a loss gave no value
    objective_error: float  # standard error; 0 where all losses were evaluated
    n_losses_checked: int
    feasibility: Feasibility
    stationarity: Stationarity | None = None
    note: str = ""  # why there is no stationarity

    @property
    def is_known(self) -> bool:
        """Whether objective and constraints gave values throughout."""
        return bool(np.isfinite(self.objective)) and self.feasibility.is_known

    def __str__(self) -> str:
        feasibility = str(self.feasibility)
        error = f" +- {self.objective_error:.2g}" if self.objective_error else ""
        losses = "loss" if self.n_losses_checked == 1 else "losses"
        lines = [
            f"objective     {self.objective:.6g}{error} "
            f"({self.n_losses_checked:,} {losses} evaluated)",
            f"constraints   {feasibility}",
            f"stationarity  {self.stationarity or self.note or 'not computed'}",
        ]
        return "\n".join(lines)


def check_objective(
    x: FloatArray, size: ProblemSize, plan: CheckPlan, seed: int, answer: Answer
) -> tuple[float, float]:
    """Return the objective at `x` and its standard error, 0 if all losses were used."""
    drawn = _drawn(size.n_losses, plan.n_losses, seed, 0)
    values = np.concatenate(
        [
            answer((Query.at(x, iteration=-1, losses=block),))[0].losses[0]
            for block in _cut(drawn, plan.block)
        ]
    )
    error = 0.0
    if plan.n_losses < size.n_losses:
        error = math.nan  # of one loss it is not known
        if len(values) > 1:
            error = float(values.std(ddof=1) / np.sqrt(len(values)))
    return float(values.mean()), error


def check_together(
    x: FloatArray, size: ProblemSize, plan: CheckPlan, answer: Answer
) -> tuple[float, Feasibility]:
    """Return the objective and the feasibility where one call serves both.

    All losses and all constraints, in blocks within which no call is made twice.
    """
    losses: list[FloatArray] = [np.empty(0)]

    def blocks() -> Iterator[tuple[IntArray, FloatArray]]:
        n_losses = 0
        for block in _all_blocks(size, plan.block):
            n_served = size.n_losses
            if size.calls is not None and block[-1] + 1 < size.n_constraints:
                last_call = int(size.calls.of(block[-1:])[0])
                n_served = min(last_call + 1, size.n_losses)
            served = np.arange(n_losses, n_served)
            query = Query.at(x, iteration=-1, losses=served, constraints=block)
            reply = answer((query,))[0]
            losses.append(reply.losses[0])
            n_losses = n_served
            yield block, reply.constraints[0]

    feasibility = _feasibility("all", size.n_constraints, blocks(), 0)
    return float(np.concatenate(losses).mean()), feasibility


def check_constraints(
    x: FloatArray, size: ProblemSize, plan: CheckPlan, seed: int, answer: Answer
) -> Feasibility:
    """Look at all constraints at `x`, or at a uniform draw and the suspects."""
    m = size.n_constraints
    if not m:
        return _feasibility("none", m, [], 0)
    if plan.n_constraints == m:
        return _feasibility(
            "all", m, _each(x, _all_blocks(size, plan.block), answer), 0
        )
    drawn = _drawn(m, plan.n_constraints, seed, 1)
    suspects = np.setdiff1d(plan.suspects, drawn)
    blocks = [*_cut(suspects, plan.block), *_cut(drawn, plan.block)]
    return _feasibility("sampled", m, _each(x, blocks, answer), len(suspects))


def known_feasibility(summary: Any) -> Feasibility:
    """Return what a family of constraints knows about a point by its structure."""
    return Feasibility(
        kind="structure",
        n_constraints=summary.n_constraints,
        n_checked=summary.n_constraints,
        n_violated=summary.n_violated,
        n_suspects=0,
        n_unknown=0,
        worst_value=summary.worst_value,
        worst_index=summary.worst_index,
        sum_squares=summary.sum_squares,
        share_bound=summary.n_violated / summary.n_constraints,
        worst_indices=np.array([summary.worst_index]),
    )


def unchecked(n_constraints: int) -> Feasibility:
    """Return what is known of constraints at which nobody looked: nothing."""
    return Feasibility(
        kind="unchecked",
        n_constraints=n_constraints,
        n_checked=0,
        n_violated=0,
        n_suspects=0,
        n_unknown=0,
        worst_value=float("nan"),
        worst_index=-1,
        sum_squares=float("nan"),
        share_bound=1.0,
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


@dataclass
class _Tally:
    """Counts of values that go by in blocks; only the worst ones are kept."""

    n_values: int = 0
    n_violated: int = 0
    n_unknown: int = 0
    sum_squares: float = 0.0
    indices: IntArray = field(default_factory=lambda: NO_INDICES)
    values: FloatArray = field(default_factory=lambda: np.empty(0))

    def add(self, indices: IntArray, values: FloatArray) -> None:
        unknown = np.isnan(values)
        self.n_values += len(values)
        self.n_unknown += int(np.count_nonzero(unknown))
        self.n_violated += int(np.count_nonzero(values > 0.0))
        indices, values = indices[~unknown], values[~unknown]
        with np.errstate(over="ignore"):  # inf is what the squares of such values are
            self.sum_squares += float(np.square(np.maximum(values, 0.0)).sum())
        indices = np.concatenate([self.indices, indices])
        values = np.concatenate([self.values, values])
        worst = np.argsort(-values, kind="stable")[:N_WORST]
        self.indices, self.values = indices[worst], values[worst]


def _feasibility(
    kind: Literal["all", "sampled", "none"],
    m: int,
    blocks: Sequence[Any] | Iterator[tuple[IntArray, FloatArray]],
    n_suspects: int,
) -> Feasibility:
    """Count what the constraints say; of a sample, the suspects come first."""
    drawn, suspects = _Tally(), _Tally()
    for indices, values in blocks:
        n_first = max(n_suspects - suspects.n_values, 0)
        suspects.add(indices[:n_first], values[:n_first])
        drawn.add(indices[n_first:], values[n_first:])
    n_bad = drawn.n_violated + drawn.n_unknown
    if kind == "sampled":
        bound = violated_share_bound(n_bad, drawn.n_values)
    else:
        bound = n_bad / m if m else 0.0
    worst = _Tally()
    worst.add(drawn.indices, drawn.values)
    worst.add(suspects.indices, suspects.values)
    return Feasibility(
        kind=kind,
        n_constraints=m,
        n_checked=drawn.n_values,
        n_violated=drawn.n_violated,
        n_suspects=suspects.n_values,
        n_unknown=drawn.n_unknown + suspects.n_unknown,
        worst_value=float(worst.values[0]) if len(worst.values) else float("-inf"),
        worst_index=int(worst.indices[0]) if len(worst.indices) else -1,
        sum_squares=drawn.sum_squares + suspects.sum_squares,
        share_bound=bound,
        worst_indices=worst.indices,
    )


def _drawn(n: int, size: int, seed: int, iteration: int) -> IntArray:
    if size == n:
        return np.arange(n)
    return distinct_indices(stream(seed, iteration, CHECK), n, size)


def _cut(indices: IntArray, block: int) -> list[IntArray]:
    return [indices[i : i + block] for i in range(0, len(indices), block)]


def _all_blocks(size: ProblemSize, n_wanted: int) -> Iterator[IntArray]:
    """Yield all constraints in blocks that cut no call in two."""
    first = 0
    while first < size.n_constraints:
        block = constraint_block(first, n_wanted, size)
        yield block
        first = int(block[-1]) + 1


def _each(
    x: FloatArray, blocks: Sequence[IntArray] | Iterator[IntArray], answer: Answer
) -> Iterator[tuple[IntArray, FloatArray]]:
    for block in blocks:
        query = Query.at(x, iteration=-1, constraints=block)
        yield block, answer((query,))[0].constraints[0]
