"""What a run cost: queries, subproblems, and where the time went."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray, handed_out
from dszog.errors import OutOfTimeError
from dszog.maths.subproblems import Domain, Solution
from dszog.maths.subproblems.base import FEASIBLE
from dszog.methods import FeasibleMethod
from dszog.methods.linearised import LinearisedMethod
from dszog.run.history import SubproblemCounts


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """What went between a run and its workers."""

    n_pieces: int = 0  # that were answered
    n_retried: int = 0  # attempts made because a worker was lost
    n_lost: int = 0  # attempts that were lost with their worker
    n_timeouts: int = 0  # attempts that were ended because they took too long
    n_duplicate: int = 0  # second answers to a piece; unused
    n_late: int = 0  # answers to what nobody waited for any more; unused
    bytes_sent: int = 0  # pieces of work, without the problem
    bytes_received: int = 0
    bytes_problem: int = 0  # the problem, sent once to each worker


@dataclass(frozen=True, kw_only=True)
class Costs:
    """What a run cost.

    Parameters
    ----------
    n_loss_queries, n_constraint_queries : int
        Values handed out by the user's functions: ``nfev`` and ``ncev``.
    n_oracle_calls, n_projections : int
        Linear minimisations over the feasible set and projections on it.
    n_inner : int
        Of the former, those of an inner loop (conditional gradient sliding).
    n_solver_rounds : int
        Small problems that were solved for them.
    n_rows : int
        Constraints that these had to respect, all calls together: what the comparison
        of the paper would count as constraint queries.
    time_estimate, time_subproblem, time_other : float
        Seconds in the user's functions, in subproblems, and in the rest.
    events : dict
        What should not have happened, and how often.
    n_lost : int
        Queries beside these whose answers were lost when the run was interrupted.
    n_retried : int
        Queries made again because a worker was lost or a call failed. They are charged
        to ``max_queries``, and not in ``nfev`` and ``ncev``.
    n_failed_saves : int
        Writes to the checkpoint that failed, of this process.
    traffic : Traffic, optional
        What went between the run and its workers, where it has any.
    """

    n_loss_queries: int
    n_constraint_queries: int
    n_oracle_calls: int
    n_projections: int
    n_inner: int
    n_solver_rounds: int
    n_rows: int
    time_estimate: float
    time_subproblem: float
    time_other: float
    events: dict[str, int]
    n_lost: int = 0
    n_retried: int = 0
    n_failed_saves: int = 0
    traffic: Traffic | None = None

    @property
    def time(self) -> float:
        """Seconds in all."""
        return self.time_estimate + self.time_subproblem + self.time_other


class Ledger(SubproblemCounts):
    """Counts what is asked of feasible sets, and the time that takes."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self.until = math.inf  # after that nothing more is solved

    def watched(self, method: Any) -> Any:
        """Return the method with a feasible set that is counted, if it has one."""
        if isinstance(method, LinearisedMethod):
            counted = replace(method.constraints, watch=self.watch)
            return replace(method, constraints=counted)
        if isinstance(method, FeasibleMethod) and method.domain is not None:
            return replace(method, domain=self.watch(method.domain))
        return method

    def watch(self, domain: Domain) -> Domain:
        return CountedDomain(domain, self)

    def run(self, solve: Callable[[], Solution], n_rows: int) -> Solution:
        before = self._clock()
        if before >= self.until:
            raise OutOfTimeError("the time for subproblems is over")
        try:
            solution = solve()
        finally:
            self.seconds += self._clock() - before
        self.n_solver_rounds += solution.n_rounds
        self.n_rows += n_rows
        self.events.update(solution.events)
        return solution


class CountedDomain:
    """A feasible set that notes in a ledger what is asked of it."""

    def __init__(self, domain: Domain, ledger: Ledger) -> None:
        self._domain = domain
        self._ledger = ledger

    def __repr__(self) -> str:
        return repr(self._domain)

    @property
    def dim(self) -> int:
        return self._domain.dim

    @property
    def n_rows(self) -> int:
        return self._domain.n_rows

    @property
    def is_bounded(self) -> bool:
        return self._domain.is_bounded

    def project(self, point: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        self._ledger.n_projections += 1
        return self._ledger.run(
            lambda: self._domain.project(handed_out(point), hint), self._domain.n_rows
        )

    def lmo(self, gradient: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        self._ledger.n_oracle_calls += 1
        return self._ledger.run(
            lambda: self._domain.lmo(handed_out(gradient), hint), self._domain.n_rows
        )

    def violation(self, x: FloatArray) -> float:
        return self._domain.violation(handed_out(x))

    def contains(self, x: FloatArray, tol: float = FEASIBLE) -> bool:
        return self._domain.contains(handed_out(x), tol)

    def diameter(self) -> float:
        return self._domain.diameter()

    def feasible_start(self) -> FloatArray:
        return self._domain.feasible_start()
