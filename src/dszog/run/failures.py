"""What to do about values that are not known: raise, leave out, or penalise.

A value that a user's function did not give is never used as a number. The policy says
what happens instead:

``raise``
    The run ends with an error that names the function, the index and the point.
``resample``
    What the value belongs to is left out of the estimate: the direction (with its
    opposite), or, where the base point itself is concerned, the loss or constraint. The
    estimate then is conditional on success; the rate is reported.
``penalise``
    A perturbed point gets a bad value instead, no worse than the spread of the others;
    the base point is treated as with ``resample``.

Where most of what was asked at the base point is unknown, the step that led there is
taken back by half. So is one that was only tried and led to ``inf``, whatever the
policy: only if shorter ones all lead there, too, ``raise`` raises. A step that was only
tried and is taken back went too far: it says nothing about how often functions fail.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from dszog._log import LOGGER, is_turn
from dszog.contract import Failure, Query, Reply
from dszog.contract.arrays import BoolArray, FloatArray
from dszog.contract.validation import printable
from dszog.errors import EvaluationError
from dszog.problem import Problem
from dszog.run.history import FailureCounts, counts_of

OnFailure: TypeAlias = Literal["raise", "resample", "penalise"]
POLICIES: tuple[str, ...] = get_args(OnFailure)

N_SHOWN = 3  # failures kept with their messages
WINDOW = 200  # points over which the rate of failures is watched
MAX_RATE = 0.1  # of these may fail
MAX_IN_A_ROW = 20
# Of a simulator's calls: those that fail however often they are made again, if that is
# to be done; and some more at first.
STILL_LOST, FIRST_LOST = 0.05, 20
FAR_SHARE = 1e-2  # of the range of a variable: designs that are that far apart differ


class RejectedPointError(EvaluationError):
    """Most of what was asked for at a base point is not known."""


@dataclass(frozen=True, kw_only=True)
class FailureReport:
    """How many points failed in a run, of how many, and why.

    A point counts as failed if any value asked for there is not known. Its text names
    a few of the cases; `cases` and `never` have all of them.
    """

    policy: str
    n_failed: int
    n_points: int
    n_rejected: int  # steps taken back because their end could not be evaluated
    kinds: dict[str, int]
    first: tuple[Failure, ...]
    # Of a simulator: calls that gave no value, by case, and cases that never gave one.
    cases: dict[str, int]
    never: tuple[str, ...]

    def __repr__(self) -> str:
        said = [f"{self.n_failed:,} of {self.n_points:,} points ({self.policy})"]
        kinds = ", ".join(f"{n:,} {kind}" for kind, n in self.kinds.items())
        said += [f"why: {kinds}"] if kinds else []
        for name, listed in (
            ("failed calls", [f"{case} ({n:,})" for case, n in self.cases.items()]),
            ("never gave a value", list(self.never)),
        ):
            n_more = max(len(listed) - N_SHOWN, 0)
            more = f" and {n_more:,} more" if n_more else ""
            said += [f"{name}: {', '.join(listed[:N_SHOWN])}{more}"] if listed else []
        said += [f"first: {self.first[0].message}"] if self.first else []
        return f"FailureReport({'; '.join(said)})"

    @property
    def rate(self) -> float:
        """The share of points that failed."""
        return self.n_failed / max(self.n_points, 1)


class FailureHandler(FailureCounts):
    """Applies the policy to replies, counts, and knows when it is enough."""

    def __init__(self, policy: OnFailure, problem: Problem | None = None) -> None:
        super().__init__()
        self.policy = policy
        # Whose cases are counted; those that raise are not.
        is_raised = policy == "raise"
        self._simulator = None if problem is None or is_raised else problem.simulator
        self._calls = None if problem is None else problem.size.calls
        self._problem = problem
        self._n_good = 0  # points since the last failure; not in `recent` yet

    def counts(self) -> FailureCounts:
        self._settle()
        return counts_of(FailureCounts, self)

    @property
    def report(self) -> FailureReport:
        cases = {self._name(case): n for case, n in self.lost_calls.most_common()}
        return FailureReport(
            policy=self.policy,
            n_failed=self.n_failed,
            n_points=self.n_points,
            n_rejected=self.n_rejected,
            kinds=dict(self.kinds),
            first=self.first,
            cases=cases,
            never=tuple(map(self._name, sorted(self._never))),
        )

    @property
    def _never(self) -> list[int]:
        return [case for case in self.lost_calls if case not in self.good_calls]

    def _name(self, case: int) -> str:
        return str(case) if self._simulator is None else self._simulator.case_name(case)

    @property
    def is_enough(self) -> bool:
        """Whether so much failed that going on makes no sense."""
        if not self.n_failed:
            return False
        self._settle()
        full = len(self.recent) == WINDOW
        return self.in_a_row >= MAX_IN_A_ROW or (
            full and sum(self.recent) > MAX_RATE * WINDOW
        )

    @property
    def retries_help(self) -> bool:
        """Whether hardly a call of a simulator has failed again each time."""
        n_lost, n_good = self.lost_calls.total(), self.good_calls.total()
        may_fail = self.policy != "raise"
        return may_fail and n_lost <= STILL_LOST * n_good + FIRST_LOST

    def count(self, replies: Sequence[Reply], queries: Sequence[Query] = ()) -> None:
        """Take note of all points; raise for a failure if that is the policy."""
        if self._simulator is not None:
            for query, reply in zip(queries, replies, strict=True):
                self._count_cases(query, reply, self._simulator.n)
        is_trial = bool(queries) and all(query.purpose == "trial" for query in queries)
        for at, reply in enumerate(replies):
            if not reply.failures:  # then every value is known
                if reply.losses.size or reply.constraints.size:
                    self.n_points += len(reply.losses)
                    self._n_good += len(reply.losses)
                continue
            is_far = is_trial and all(failure.is_overflow for failure in reply.failures)
            is_taken_back = is_trial and _is_lost(reply)
            self._count_points(reply, is_too_far=is_far or is_taken_back)
            for failure in reply.failures:
                self.kinds[failure.kind] += 1
                self._warn(failure)
                if len(self.first) < N_SHOWN:
                    self.first = (*self.first, failure)
                is_wrong = failure.kind == "wrong count"
                if is_wrong or (self.policy == "raise" and not is_far):
                    asked = queries[at] if queries else None
                    raised = EvaluationError(self._with_way_out(failure, asked, reply))
                    raised.x = failure.x
                    raise raised from failure.error

    def _count_cases(self, query: Query, reply: Reply, n_cases: int) -> None:
        """Count the calls of a simulator by case, those that gave no value apart."""
        if self._calls is None:
            return
        numbers, tables = [self._calls.of(query.constraints)], [reply.constraints]
        if self._calls.n_shared:
            numbers, tables = [*numbers, query.losses], [*tables, reply.losses]
        calls = np.concatenate(numbers)
        if not len(calls):
            return
        order = np.argsort(calls, kind="stable")
        cases, first = np.unique(calls[order], return_index=True)
        unknown = np.isnan(np.concatenate(tables, axis=1))[:, order]
        are_lost = np.logical_or.reduceat(unknown, first, axis=1)
        lost = are_lost.sum(axis=0)
        if lost.any():
            far = (are_lost & self._are_far(query)[:, np.newaxis]).sum(axis=0)
            self.far_calls.update(
                {c: n for c, n in zip(cases.tolist(), far.tolist(), strict=True) if n}
            )
        for case, n in zip(cases.tolist(), lost.tolist(), strict=True):
            if case < n_cases and n:
                self.lost_calls[case] += n
            if case < n_cases and n < len(unknown):
                self.good_calls[case] += len(unknown) - n

    def _are_far(self, query: Query) -> BoolArray:
        """Return which points are far from the one where the first call failed."""
        if self._problem is None or not self.first:
            return np.zeros(len(query.steps) + 1, dtype=bool)
        problem, first = self._problem, self.first[0].x
        span = problem.upper - problem.lower
        span = np.where(np.isfinite(span), span, np.maximum(np.abs(first), 1.0))
        apart = np.abs(problem.unscaled(query.points(problem.size)) - first)
        far: BoolArray = np.any(apart > FAR_SHARE * span, axis=1)
        return far

    @property
    def never_spread(self) -> bool:
        """Whether cases that never gave a value were asked at designs far apart."""
        return all(0 < self.far_calls[c] < self.lost_calls[c] for c in self._never)

    def _with_way_out(self, failure: Failure, query: Query | None, reply: Reply) -> str:
        """Return the message, and what to set where failures are to be expected."""
        # A mistake is fixed by no setting.
        if failure.kind in ("wrong shape", "wrong count"):
            return failure.message
        if self._calls is not None and query is not None and len(query.constraints):
            cases = self._calls.of(query.constraints)
            failed = np.unique(cases[np.isnan(reply.constraints[0])])
            share = len(failed) / len(np.unique(cases))
            if share == 1.0 and failure.iteration == 0:  # nothing would be left
                return (
                    "All cases that were asked for fail at the start: see why, or "
                    f"start where most can be simulated. {failure.message}"
                )
            if share > 0.0:
                return (
                    f"{share:.1%} of the cases that were asked for fail here: "
                    f"on_failure='resample' leaves them out. {failure.message}"
                )
        return (
            f"{failure.message} If failures are to be expected: on_failure='resample' "
            "leaves them out."
        )

    def _warn(self, failure: Failure) -> None:
        n_failures = self.kinds.total()
        if is_turn(n_failures):
            LOGGER.warning(
                "Failure %d (%s): %s",
                n_failures,
                self.policy,
                printable(failure.message),
            )

    def _count_points(self, reply: Reply, *, is_too_far: bool) -> None:
        """Count the points of a reply; a step too far says nothing of the others."""
        self._settle()
        failed = np.any(_unknown(reply), axis=1)
        self.n_points += len(failed)
        self.n_failed += int(failed.sum())
        if is_too_far:
            return
        for one in failed.tolist():
            self.in_a_row = self.in_a_row + 1 if one else 0
        self.recent = [*self.recent, *failed.tolist()][-WINDOW:]

    def _settle(self) -> None:
        """Take the good points into the window: nobody looks there while all are."""
        if self._n_good:
            self.in_a_row = 0
            good = [False] * min(self._n_good, WINDOW)
            self.recent = [*self.recent, *good][-WINDOW:]
            self._n_good = 0

    def repair(
        self, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> tuple[tuple[Query, ...], tuple[Reply, ...]]:
        """Return queries and replies without unknown values.

        RejectedPointError if what is left says nothing about the base point, or was
        only tried.
        """
        lost = [failure for reply in replies for failure in reply.failures]
        if lost and self.policy == "raise":
            raise RejectedPointError(self._with_way_out(lost[0], None, replies[0]))
        repaired = [
            self._repair(query, reply)
            for query, reply in zip(queries, replies, strict=True)
        ]
        return tuple(query for query, _ in repaired), tuple(r for _, r in repaired)

    def _repair(self, query: Query, reply: Reply) -> tuple[Query, Reply]:
        if not reply.failures:
            return query, reply
        query, reply = _without_columns(query, reply)
        if self.policy == "penalise":
            losses = penalised(reply.losses)
            constraints = penalised(reply.constraints)
            return query, reply._replace(losses=losses, constraints=constraints)
        return _without_rows(query, reply)


def penalised(table: FloatArray) -> FloatArray:
    """Return the table with each unknown value replaced by a bad one of its column.

    It lies above the largest known value of the column by the spread of the known ones:
    bad enough to be avoided, too small to drown what the other points say.

    Examples
    --------
    >>> penalised(np.array([[1.0], [2.0], [np.nan]])).ravel()
    array([1., 2., 3.])
    """
    if not np.isnan(table).any():
        return table
    largest, least = np.nanmax(table, axis=0), np.nanmin(table, axis=0)
    filled: FloatArray = np.where(np.isnan(table), 2 * largest - least, table)
    return filled


def _unknown(reply: Reply) -> BoolArray:
    values = np.concatenate([reply.losses, reply.constraints], axis=1)
    unknown: BoolArray = np.isnan(values)
    for gradients, first in (
        (reply.loss_gradients, 0),
        (reply.jacobian, reply.losses.shape[1]),
    ):
        if gradients.size:
            lost = np.any(np.isnan(gradients), axis=1)
            unknown[0, first : first + len(lost)] |= lost
    return unknown


def _known(reply: Reply) -> tuple[BoolArray, BoolArray]:
    """Return which losses and which constraints are known at the base point."""
    known = ~_unknown(reply)[0]
    n_losses = reply.losses.shape[1]
    return known[:n_losses], known[n_losses:]


def _is_lost(reply: Reply) -> bool:
    """Whether most of what was asked at the base point is not known."""
    return any(len(kept) and 2 * kept.sum() <= len(kept) for kept in _known(reply))


def _without_columns(query: Query, reply: Reply) -> tuple[Query, Reply]:
    """Leave out the losses and constraints that are not known at the base point."""
    if _is_lost(reply):
        raise RejectedPointError(reply.failures[0].message)
    losses, constraints = _known(reply)
    reply = reply._replace(
        losses=reply.losses[:, losses],
        constraints=reply.constraints[:, constraints],
    )
    if reply.loss_gradients.size:
        reply = reply._replace(loss_gradients=reply.loss_gradients[losses])
    if reply.jacobian.size:
        reply = reply._replace(jacobian=reply.jacobian[constraints])
    query = query._replace(
        losses=query.losses[losses],
        constraints=query.constraints[constraints],
    )
    return query, reply


def _without_rows(query: Query, reply: Reply) -> tuple[Query, Reply]:
    """Leave out the directions at whose points something is not known."""
    known = ~np.any(_unknown(reply), axis=1)[1:]
    if query.paired:
        half = len(known) // 2
        known = np.tile(known[:half] & known[half:], 2)
    if len(known) and not known.any():
        raise RejectedPointError(reply.failures[0].message)
    rows = np.concatenate([[True], known])
    reply = reply._replace(
        losses=reply.losses[rows], constraints=reply.constraints[rows]
    )
    return query._replace(steps=query.steps[known]), reply
