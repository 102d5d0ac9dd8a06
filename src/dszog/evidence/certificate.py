"""Evidence for a point: fresh values, and how many constraints were looked at.

A check is like a method that asks but does not move: it is made of queries, so any
evaluator can answer it and its cost is known before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from scipy.special import betaincinv

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply
from dszog.contract.arrays import BoolArray, FloatArray, IntArray
from dszog.evidence.stationarity import Stationarity
from dszog.maths.random_stream import CHECK, distinct_indices, stream
from dszog.methods.base import FirstOrder

Answer: TypeAlias = Callable[[Sequence[Query]], Sequence[Reply]]

BLOCK = 2**10  # calls asked for at a time
MANY_VALUES = 2**16  # about as many values at a time, where a call gives many
CONFIDENCE = 0.95
SELECTION, CONFIRMATION = 1, 2  # the draws: for all candidates, and for the chosen one
CERTIFICATION = 3  # for a point that somebody has chosen
N_WORST = 100  # constraints of largest value that are kept by name
N_NAMED = 3  # cases without a value that are named


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckPlan:
    """How closely a point is looked at.

    Constraints are looked at in calls of the user's function: one for each constraint,
    or one for all that a block or a scenario returns. All are made, or a uniform draw.
    """

    n_losses: int
    n_calls: int
    suspects: IntArray  # calls beside a draw: with constraints found violated before
    n_queries: int  # that the check costs at most
    n_fresh: int = 0  # calls drawn afresh for the point that is chosen among several
    confidence: float = CONFIDENCE  # of the bound on the share that is violated
    block: int = BLOCK  # calls asked for at a time


@dataclass(frozen=True, kw_only=True)
class CallCounts:
    """How many calls a sampled check made, where one call gives many constraints."""

    n_calls: int  # that a look at all constraints would take
    n_drawn: int
    n_violated: int  # of these: with a value above 0, or one that is not known
    n_suspects: int  # made in addition, as those of a Feasibility


@dataclass(frozen=True, eq=False, kw_only=True)
class Feasibility:
    """What is known about the constraints at a point, and from how many of them.

    ``worst_value`` is the largest constraint value *among those checked*, negative if
    all of these hold. ``share_bound`` is an upper bound on the share of all constraints
    that are violated: the share itself where all were checked, otherwise a one-sided
    95 % bound from the uniform draw, in which a value that is not known counts as a
    violation. Where one call of a function gives many constraints, calls are drawn and
    all their values looked at; the bound is then on the share of calls with a violation
    (``calls`` has their numbers).
    """

    kind: Literal["structure", "all", "sampled", "none", "unchecked"]
    n_constraints: int
    n_checked: int = 0  # uniformly drawn ones, or all
    n_violated: int = 0  # of these
    n_suspects: int = 0  # in addition: suspects, and a draw that chose the point
    n_unknown: int = 0  # of all that were checked, those that gave no value
    worst_value: float = math.nan
    worst_index: int = -1
    sum_squares: float = math.nan  # of max(f_j, 0) over the checked ones
    share_bound: float = 1.0
    worst_indices: IntArray = field(repr=False, default_factory=lambda: NO_INDICES)
    worst_values: FloatArray = field(repr=False, default_factory=lambda: np.empty(0))
    calls: CallCounts | None = None  # of a sample in which a call gives many
    worst_names: tuple[str, ...] = ()  # of the first `worst_indices`, if they have any
    # Where a call gives many: how many were made, and which gave no value.
    n_calls_made: int = 0
    lost_calls: IntArray = field(repr=False, default_factory=lambda: NO_INDICES)
    lost_names: tuple[str, ...] = ()  # of the first of these, if they are cases

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
        return max(self.worst_value, 0.0) + 0.0 if self.n_constraints else 0.0

    @property
    def simulated(self) -> str:
        """How many cases of a simulator gave values, and the names of others."""
        n, n_lost = self.n_calls_made, len(self.lost_calls)
        named = ", ".join(self.lost_names[:N_NAMED])
        more = max(n_lost - N_NAMED, 0)
        named += f" and {more:,} more" if more else ""
        return f"{n - n_lost:,} of {n:,} cases could be simulated, not {named}"

    def __str__(self) -> str:
        if self.kind == "unchecked":
            return "the constraints were not checked"
        if not self.n_constraints:
            return "there are no constraints but the bounds"
        name = f" ({self.worst_names[0]})" if any(self.worst_names[:1]) else ""
        worst = f"the worst{name} by {max(self.worst_value, 0.0) + 0.0:.3g}"  # never -0
        unknown = f", {self.n_unknown:,} gave no value" if self.n_unknown else ""
        unknown = f"; {self.simulated}" if self.lost_names else unknown
        if self.kind != "sampled":
            n = self.n_constraints
            all_of = "the constraint" if n == 1 else f"all {n:,} constraints"
            return f"{all_of} checked: {self.n_violated:,} above 0, {worst}{unknown}"
        bound = f"at most {rounded_up(100 * self.share_bound)} % of all"
        end = f"with 95 % confidence; among those checked, {worst}{unknown}"
        if self.calls is None:
            return (
                f"{self.n_checked:,} of {self.n_constraints:,} constraints drawn and "
                f"{self.n_suspects:,} others checked: {self.n_violated:,} of the "
                f"draw above 0, so {bound} {end}"
            )
        n_values = self.n_checked + self.n_suspects
        return (
            f"{self.calls.n_drawn:,} of {self.calls.n_calls:,} calls drawn and "
            f"{self.calls.n_suspects:,} others made, all their {n_values:,} of "
            f"{self.n_constraints:,} constraints checked: {self.calls.n_violated:,} "
            f"of the draw with one above 0, so {bound} calls {end}"
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
    first_order: FirstOrder | None = None  # of a method that knows it, at its iterate

    @property
    def is_known(self) -> bool:
        """Whether objective and constraints gave values throughout."""
        return bool(np.isfinite(self.objective)) and self.feasibility.is_known

    @property
    def multipliers(self) -> tuple[IntArray, FloatArray] | None:
        """Constraints that hold the point where it is, and the force of each."""
        if self.stationarity is not None:
            return self.stationarity.multipliers
        if self.first_order is not None:
            return self.first_order.indices, self.first_order.multipliers
        return None

    def __str__(self) -> str:
        feasibility = str(self.feasibility)
        stationarity = self.stationarity or self.first_order
        error = f" +- {self.objective_error:.2g}" if self.objective_error else ""
        losses = "loss" if self.n_losses_checked == 1 else "losses"
        lines = [
            f"objective     {self.objective:.6g}{error} "
            f"({self.n_losses_checked:,} {losses} evaluated)",
            f"constraints   {feasibility}",
            f"stationarity  {stationarity or self.note or 'not computed'}",
        ]
        return "\n".join(lines)


def check_objective(
    x: FloatArray, size: ProblemSize, plan: CheckPlan, seed: int, answer: Answer
) -> tuple[float, float]:
    """Return the objective at `x` and its standard error, 0 if all losses were used."""
    drawn = _drawn(size.n_losses, plan.n_losses, seed, 0)
    values = np.concatenate(
        [
            answer((Query.to_check(x, losses=block),))[0].losses[0]
            for block in _cut(drawn, plan.block)
        ]
    )
    return mean_and_error(values, size.n_losses)


def mean_and_error(values: FloatArray, n_losses: int) -> tuple[float, float]:
    """Return the mean of some losses and its standard error, 0 if these are all."""
    if len(values) == n_losses:
        return float(values.mean()), 0.0
    if len(values) < 2:  # of one loss the error is not known
        return float(values.sum()) if len(values) else math.nan, math.nan
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def check_together(
    x: FloatArray, size: ProblemSize, plan: CheckPlan, seed: int, answer: Answer
) -> tuple[FloatArray, Feasibility]:
    """Return losses and the feasibility at `x` where one call serves both."""
    losses: list[FloatArray] = [np.empty(0)]
    found = check_constraints(x, size, plan, seed, answer, losses)
    return np.concatenate(losses), found


def check_constraints(
    x: FloatArray,
    size: ProblemSize,
    plan: CheckPlan,
    seed: int,
    answer: Answer,
    losses: list[FloatArray] | None = None,
) -> Feasibility:
    """Look at all constraints at `x`, or at a uniform draw and the suspects."""
    # The losses that the calls of the draw serve are added to `losses`, if given.
    n_calls = size.n_constraint_calls
    look = _Look(x, size, plan.block, answer)
    if plan.n_calls == n_calls:
        kind: Literal["all", "none"] = "all" if n_calls else "none"
        return _feasibility(kind, size, look.at(range(n_calls), losses), _Tally())
    drawn = _drawn(n_calls, plan.n_calls, seed, SELECTION)
    named = np.unique(plan.suspects)
    suspects = look.at(named[~_are_in(drawn, named)])
    found = look.at(drawn, losses)
    return _feasibility("sampled", size, found, suspects, plan.confidence)


def confirm_constraints(
    x: FloatArray,
    size: ProblemSize,
    plan: CheckPlan,
    seed: int,
    answer: Answer,
    first: Feasibility,
) -> Feasibility:
    """Draw afresh at a point that was chosen for what `first` found there."""
    # To be chosen among several is to have had luck with the draw, so that draw bounds
    # nothing at the level it would have for one point. What it found still counts for
    # the worst value.
    if plan.n_fresh >= size.n_constraint_calls:
        everything = replace(plan, n_calls=size.n_constraint_calls)
        return check_constraints(x, size, everything, seed, answer)
    seen = _drawn(size.n_constraint_calls, plan.n_calls, seed, SELECTION)
    seen = np.union1d(seen, plan.suspects)
    drawn = _drawn(size.n_constraint_calls, plan.n_fresh, seed, CONFIRMATION)
    look = _Look(x, size, plan.block, answer)
    is_seen = _are_in(seen, drawn)
    again, new = look.at(drawn[is_seen]), look.at(drawn[~is_seen])
    before = _Tally(
        n_values=first.n_checked + first.n_suspects - again.n_values,
        n_calls=len(seen) - again.n_calls,
        n_unknown=first.n_unknown,
        sum_squares=max(first.sum_squares, again.sum_squares),
        lost=first.lost_calls,
    )
    # Of what was asked twice the worse answer counts, if they differ.
    known = dict(zip(first.worst_indices.tolist(), first.worst_values, strict=True))
    is_worse = np.array(
        [
            value > known.get(index, -np.inf)
            for index, value in zip(again.indices.tolist(), again.values, strict=True)
        ],
        dtype=bool,
    )
    is_kept = ~np.isin(first.worst_indices, again.indices[is_worse])
    before.keep_worst(first.worst_indices[is_kept], first.worst_values[is_kept])
    before.keep_worst(again.indices[is_worse], again.values[is_worse])
    new.count(again)
    return _feasibility("sampled", size, new, before)


def known_feasibility(summary: Any) -> Feasibility:
    """Return what a family of constraints knows about a point by its structure."""
    return Feasibility(
        kind="structure",
        n_constraints=summary.n_constraints,
        n_checked=summary.n_constraints,
        n_violated=summary.n_violated,
        worst_value=summary.worst_value,
        worst_index=summary.worst_index,
        sum_squares=summary.sum_squares,
        share_bound=summary.n_violated / summary.n_constraints,
        worst_indices=np.array([summary.worst_index]),
        worst_values=np.array([summary.worst_value]),
    )


def violated_share_bound(
    n_violated: int, n_drawn: int, confidence: float = CONFIDENCE
) -> float:
    """Return the one-sided upper bound of Clopper and Pearson on a share."""
    # Drawing without repeats makes it conservative. For none of `k` it is about ``3/k``
    # at 95 %.
    if n_violated >= n_drawn:
        return 1.0
    return float(betaincinv(n_violated + 1, n_drawn - n_violated, confidence))


@dataclass
class _Tally:
    """Counts of values that go by in blocks; only the worst ones are kept."""

    n_values: int = 0
    n_violated: int = 0
    n_unknown: int = 0
    n_calls: int = 0
    n_bad_calls: int = 0  # with a value that is violated or not known
    sum_squares: float = 0.0
    indices: IntArray = field(default_factory=lambda: NO_INDICES)
    values: FloatArray = field(default_factory=lambda: np.empty(0))
    lost: IntArray = field(default_factory=lambda: NO_INDICES)  # calls without a value

    def add(self, calls: IntArray, n_bad: int, indices: IntArray, values: Any) -> None:
        """Take in all values of some calls, of which so many have a bad one."""
        unknown = np.isnan(values)
        self.n_values += len(values)
        self.n_unknown += int(np.count_nonzero(unknown))
        self.n_violated += int(np.count_nonzero(values > 0.0))
        self.n_calls += len(calls)
        self.n_bad_calls += n_bad
        with np.errstate(over="ignore"):  # inf is what the squares of such values are
            self.sum_squares += float(
                np.square(np.maximum(values[~unknown], 0.0)).sum()
            )
        self.keep_worst(indices[~unknown], values[~unknown])

    def keep_worst(self, indices: IntArray, values: FloatArray) -> None:
        """Keep these by name, or others that are worse."""
        indices = np.concatenate([self.indices, indices])
        values = np.concatenate([self.values, values])
        worst = np.argsort(-values, kind="stable")[:N_WORST]
        self.indices, self.values = indices[worst], values[worst]

    def count(self, other: _Tally) -> None:
        """Count what another one has, but for the values themselves."""
        self.n_values += other.n_values
        self.n_violated += other.n_violated
        self.n_unknown += other.n_unknown
        self.n_calls += other.n_calls
        self.n_bad_calls += other.n_bad_calls
        self.lost = np.union1d(self.lost, other.lost)


class _Look:
    """Asks for all values of calls at a point, block by block."""

    def __init__(
        self, x: FloatArray, size: ProblemSize, block: int, answer: Answer
    ) -> None:
        self._x = x
        self._size = size
        self._answer = answer
        self._block = block
        if size.calls is not None:
            per_call = size.n_constraints / size.n_constraint_calls
            self._block = max(min(block, int(MANY_VALUES / per_call)), 1)

    def at(
        self, calls: IntArray | range, losses: list[FloatArray] | None = None
    ) -> _Tally:
        """Return what these calls give; the losses among it are added to `losses`."""
        tally, shared = _Tally(), self._size.calls
        for first in range(0, len(calls), self._block):
            block = np.asarray(calls[first : first + self._block], dtype=np.int64)
            served = NO_INDICES
            if losses is not None and shared is not None:
                served = block[block < shared.n_shared]
            indices = block if shared is None else shared.served_by(block)
            query = Query.to_check(self._x, losses=served, constraints=indices)
            reply = self._answer((query,))[0]
            values = reply.constraints[0]
            bad = indices[~(values <= 0.0)]
            n_bad = len(bad if shared is None else np.unique(shared.of(bad)))
            tally.add(block, n_bad, indices, values)
            if shared is not None and np.isnan(values).any():
                lost = shared.of(indices[np.isnan(values)])
                tally.lost = np.union1d(tally.lost, lost)
            if losses is not None:
                losses.append(reply.losses[0])
        return tally


def _feasibility(
    kind: Literal["all", "sampled", "none"],
    size: ProblemSize,
    drawn: _Tally,
    others: _Tally,
    confidence: float = CONFIDENCE,
) -> Feasibility:
    """Return what a draw, or all, and others beside it amount to."""
    m, counts = size.n_constraints, None
    bound = (drawn.n_violated + drawn.n_unknown) / m if m else 0.0
    if kind == "sampled":
        bound = violated_share_bound(drawn.n_bad_calls, drawn.n_calls, confidence)
        if size.calls is not None:
            counts = CallCounts(
                n_calls=size.n_constraint_calls,
                n_drawn=drawn.n_calls,
                n_violated=drawn.n_bad_calls,
                n_suspects=others.n_calls,
            )
    worst = _Tally()
    worst.keep_worst(drawn.indices, drawn.values)
    worst.keep_worst(others.indices, others.values)
    return Feasibility(
        kind=kind,
        n_constraints=m,
        n_checked=drawn.n_values,
        n_violated=drawn.n_violated,
        n_suspects=others.n_values,
        n_unknown=drawn.n_unknown + others.n_unknown,
        worst_value=float(worst.values[0]) if len(worst.values) else float("-inf"),
        worst_index=int(worst.indices[0]) if len(worst.indices) else -1,
        sum_squares=drawn.sum_squares + others.sum_squares,
        share_bound=bound,
        worst_indices=worst.indices,
        worst_values=worst.values,
        calls=counts,
        n_calls_made=drawn.n_calls + others.n_calls if size.calls is not None else 0,
        lost_calls=np.union1d(drawn.lost, others.lost),
    )


def _drawn(n: int, size: int, seed: int, iteration: int) -> IntArray:
    if size == n:
        return np.arange(n)
    return distinct_indices(stream(seed, iteration, CHECK), n, size)


def _are_in(ascending: IntArray, indices: IntArray) -> BoolArray:
    """Return which of the indices are in a list of some, which may be very long."""
    if not len(ascending):
        return np.zeros(len(indices), dtype=bool)
    places = np.searchsorted(ascending, indices)
    found: BoolArray = ascending.take(places, mode="clip") == indices
    return found


def _cut(indices: IntArray, block: int) -> list[IntArray]:
    return [indices[i : i + block] for i in range(0, len(indices), block)]
