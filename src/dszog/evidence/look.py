"""Looking at a point afresh: which values are asked for, and what they amount to.

A look is like a method that asks but does not move: it is made of queries, so any
evaluator can answer it and its cost is known before.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from scipy.special import betaincinv

from dszog.contract import NO_INDICES, Evaluate, ProblemSize, Query
from dszog.contract.arrays import FloatArray, IntArray, is_among
from dszog.evidence.certificate import CallCounts, Feasibility
from dszog.maths.random_stream import CHECK, distinct_indices, stream

BLOCK = 2**10  # calls asked for at a time
MANY_VALUES = 2**16  # about as many values at a time, where a call gives many
CONFIDENCE = 0.95
SELECTION, CONFIRMATION = 1, 2  # the draws: for all candidates, and for the chosen one
CERTIFICATION = 3  # for a point that somebody has chosen
N_WORST = 100  # constraints of largest value that are kept by name


@dataclass(frozen=True, eq=False, kw_only=True)
class CheckPlan:
    """How closely a point is looked at.

    Constraints are looked at in calls of the user's function: one for each constraint,
    or one for all that a block or a scenario returns. All are made, or a uniform draw.
    """

    n_losses: int
    n_calls: int
    n_queries: int  # that the check costs at most
    # Calls beside a draw: with constraints found violated before.
    suspects: IntArray = field(default_factory=lambda: NO_INDICES)
    n_fresh: int = 0  # calls drawn afresh for the point that is chosen among several
    confidence: float = CONFIDENCE  # of the bound on the share that is violated
    block: int = BLOCK  # calls asked for at a time
    # Calls that need not be made: the run saw that all they give holds at the point.
    held: IntArray = field(default_factory=lambda: NO_INDICES)


@dataclass(frozen=True, eq=False)
class FreshLook:
    """Looks at a point afresh, as a plan says, and asks in blocks."""

    x: FloatArray
    size: ProblemSize
    plan: CheckPlan
    seed: int
    answer: Evaluate

    def losses(self) -> FloatArray:
        """Return the losses at the point, all of them or a uniform draw."""
        drawn = self._drawn(self.size.n_losses, self.plan.n_losses, 0)
        block = self.plan.block
        queries = [
            Query.to_check(self.x, losses=drawn[first : first + block])
            for first in range(0, len(drawn), block)
        ]
        return np.concatenate([self.answer((one,))[0].losses[0] for one in queries])

    def constraints(self, losses: list[FloatArray] | None = None) -> Feasibility:
        """Look at all constraints, or at a uniform draw and the suspects."""
        # The losses that the calls of the draw serve are added to `losses`, if given.
        plan, n_calls = self.plan, self.size.n_constraint_calls
        if plan.n_calls == n_calls:
            kind: Literal["all", "none"] = "all" if n_calls else "none"
            calls: IntArray | range = range(n_calls)
            if len(plan.held) and losses is None:
                calls = np.setdiff1d(calls, plan.held)
            found = self._at(calls, losses)
            found.n_values += (n_calls - len(calls)) * self.size.block_width
            found.n_calls = n_calls
            return _feasibility(kind, self.size, found, _Tally())
        drawn = self._drawn(n_calls, plan.n_calls, SELECTION)
        named = np.unique(plan.suspects)
        suspects = self._at(named[~is_among(named, drawn)])
        found = self._at(drawn, losses)
        return _feasibility("sampled", self.size, found, suspects, plan.confidence)

    def together(self) -> tuple[FloatArray, Feasibility]:
        """Return losses and the feasibility where one call serves both."""
        losses: list[FloatArray] = [np.empty(0)]
        found = self.constraints(losses)
        return np.concatenate(losses), found

    def confirmed(self, first: Feasibility) -> Feasibility:
        """Draw afresh at a point that was chosen for what `first` found there."""
        # To be chosen among several is to have had luck with the draw, so that draw
        # bounds nothing at the level it would have for one point. What it found still
        # counts for the worst value.
        plan, n_calls = self.plan, self.size.n_constraint_calls
        if plan.n_fresh >= n_calls:
            return _feasibility("all", self.size, self._at(range(n_calls)), _Tally())
        seen = self._drawn(n_calls, plan.n_calls, SELECTION)
        seen = np.union1d(seen, plan.suspects)
        drawn = self._drawn(n_calls, plan.n_fresh, CONFIRMATION)
        is_seen = is_among(drawn, seen)
        again, new = self._at(drawn[is_seen]), self._at(drawn[~is_seen])
        before = _Tally(
            n_values=first.n_checked + first.n_suspects - again.n_values,
            n_calls=len(seen) - again.n_calls,
            n_unknown=first.n_unknown,
            sum_squares=max(first.sum_squares, again.sum_squares),
            lost=first.lost_calls,
        )
        # Of what was asked twice the worse answer counts, if they differ.
        indices = np.concatenate([first.worst_indices, again.indices])
        values = np.concatenate([first.worst_values, again.values])
        order = np.argsort(-values, kind="stable")
        worse = order[np.sort(np.unique(indices[order], return_index=True)[1])]
        before.keep_worst(indices[worse], values[worse])
        new.count(again)
        return _feasibility("sampled", self.size, new, before)

    def _at(
        self, calls: IntArray | range, losses: list[FloatArray] | None = None
    ) -> _Tally:
        """Return what these calls give; the losses among it are added to `losses`."""
        tally, shared, n = _Tally(), self.size.calls, self.plan.block
        if shared is not None:
            per_call = self.size.n_constraints / shared.n_calls
            n = max(min(n, int(MANY_VALUES / per_call)), 1)
        for first in range(0, len(calls), n):
            block = np.asarray(calls[first : first + n], dtype=np.int64)
            served = NO_INDICES
            if losses is not None and shared is not None:
                served = block[block < shared.n_shared]
            indices = block if shared is None else shared.served_by(block)
            query = Query.to_check(self.x, losses=served, constraints=indices)
            reply = self.answer((query,))[0]
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

    def _drawn(self, n: int, size: int, draw: int) -> IntArray:
        if size == n:
            return np.arange(n)
        return distinct_indices(stream(self.seed, draw, CHECK), n, size)


def mean_and_error(values: FloatArray, n_losses: int) -> tuple[float, float]:
    """Return the mean of some losses and its standard error, 0 if these are all."""
    if len(values) == n_losses:
        return float(values.mean()), 0.0
    if len(values) < 2:  # of one loss the error is not known
        return float(values.sum()) if len(values) else math.nan, math.nan
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


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
