"""The look at candidates when a run is over: what it may cost, and which is best."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray, all_finite
from dszog.errors import OutOfTimeError
from dszog.evidence.certificate import Certificate
from dszog.methods.policy import penalty_of
from dszog.problem import Problem
from dszog.run.checker import Checker, certificate_merit, suspects_of
from dszog.run.loop import Outcome
from dszog.run.meter import Limits, Meter
from dszog.status import Status

CHECK_SHARE = 0.1  # of the budget may go into looking at the result
CHECK_LEAST = 3000  # queries for that, where no number is given
STATIONARITY_SHARE = 0.05  # of the queries may go into gradients at the result
WHOLE_SHARE = 1.0  # of the queries so far: what a look at all may cost at one point
N_CANDIDATES = 3  # last iterate, average, start
N_HALVED = 6  # times that the way to an iterate with missing values is halved
ON_THE_WAY = (
    "values are missing at the last iterate, see result.failures: this is a point "
    "between it and the start where they are known"
)
GRACE = 1.0  # seconds for looking at the result after an interrupt
MERIT_PENALTY = 30.0  # compares points for methods that have no penalty


@dataclass(frozen=True)
class FinalCheck:
    """Looks at the last iterate, the average and the start, within its allowance."""

    problem: Problem
    meter: Meter
    limits: Limits
    seed: int
    constraint_tol: float

    def reserved(self, max_queries: int) -> int:
        """Return how many of so many queries are set aside for the check."""
        checker = self._checker(int(CHECK_SHARE * max_queries))
        each = checker.plan.n_queries
        reserve = N_CANDIDATES * each
        if self.problem.size.by_case and reserve + each <= CHECK_SHARE * max_queries:
            reserve += each  # for a point that may not hold
        if checker.stationarity_cost() <= STATIONARITY_SHARE * max_queries:
            reserve += checker.stationarity_cost()
        return reserve

    def set_aside(self, limits: Limits) -> Limits:
        if limits.queries is not None:
            n_left = max(limits.queries - self.meter.kept, 0)
            limits = replace(limits, queries=n_left)
        if limits.time is not None:
            limits = replace(limits, time=(1.0 - CHECK_SHARE) * limits.time)
        return limits

    def blank(self, x: FloatArray) -> Certificate:
        return self._checker(N_CANDIDATES).blank(x)

    def best(
        self, outcome: Outcome, method: Any, start: FloatArray, in_subproblems: float
    ) -> tuple[Status, Certificate]:
        """Check the candidates; return the evidence for the one of least merit.

        With the status, as Ctrl-C may come now. A run that spent seconds in
        subproblems, which are not cut short, may be late: the check gets its time.
        """
        status, until = outcome.status, self.limits.time
        position, last = outcome.position, outcome.position.state.x
        if status == Status.INTERRUPTED:
            until = self.meter.elapsed + GRACE
        elif until is not None and in_subproblems:
            until = max(until, self.meter.elapsed + CHECK_SHARE * until)
        checker = self._checker(self._allowance(), until)
        penalty = self._penalty(method, position.state)
        weights = method.weights(position.state)
        suspects = suspects_of(weights, position.worst_seen)
        best: Certificate | None = None
        chosen, knows_last = last, True
        # By value: one that is resumed has copies where another has the same array.
        others = [x for x in (position.average, start) if not (x == last).all()]
        if hasattr(method, "doubted"):
            doubted = [
                x
                for x in method.doubted(position.state)
                if not any((x == other).all() for other in (last, *others))
            ]
            n_most = self._needed(checker, len(others) + 1 + len(doubted))
            is_whole = checker.plan.n_calls == self.problem.size.n_constraint_calls
            if is_whole and self.meter.affords(n_most):
                others = [*doubted, *others]
        held = method.held(position.state) if hasattr(method, "held") else NO_INDICES
        needed = self._needed(checker, len(others) + 1)
        self.meter.kept = max(self.meter.kept, needed)  # not for asking again
        try:
            for x in filter(all_finite, (last, *others)):
                bar = math.inf if best is None else certificate_merit(best, penalty)
                found = checker.check(
                    x,
                    suspects,
                    penalty=penalty,
                    better_than=bar,
                    held=held if x is last else NO_INDICES,
                )
                if x is last:
                    knows_last = found is None or found.is_known
                if best is None or (
                    found is not None and checker.is_better(found, best, penalty)
                ):
                    best, chosen = found, x
                holds = (
                    best is not None
                    and best.is_known
                    and best.feasibility.maxcv <= self.constraint_tol
                )
                if status == Status.CONVERGED and holds:
                    break  # what a run has converged to is its answer
            from_start = chosen is not last and (chosen == start).all()
            if best is not None and best.is_known and from_start and not knows_last:
                best, chosen = self._on_the_way(
                    checker, best, start, last, suspects, penalty
                )
            if best is not None:
                best = checker.confirm(best, chosen, suspects)
            if status == Status.CONVERGED and chosen is not last:
                status = Status.STALLED  # it has not converged to this point
            if best is not None and best.is_known and status != Status.INTERRUPTED:
                best = self._with_stationarity(
                    checker, best, weights, method, position.state
                )
        except OutOfTimeError:
            pass
        except KeyboardInterrupt:
            if status == Status.INTERRUPTED:  # the second one: leave at once
                raise
            status = Status.INTERRUPTED
        return status, checker.blank(last) if best is None else best

    def _on_the_way(
        self,
        checker: Checker,
        best: Certificate,
        start: FloatArray,
        last: FloatArray,
        suspects: IntArray,
        penalty: float,
    ) -> tuple[Certificate, FloatArray]:
        """Return a better point towards an iterate at which values are missing."""
        known, unknown, chosen = start, last, start
        rest = self._needed(checker, 3)
        for _ in range(N_HALVED):
            if not self.meter.affords(rest):
                break
            x = (known + unknown) / 2
            self.meter.kept = max(self.meter.kept, rest)
            found = checker.check(x, suspects, penalty=penalty)
            if found is None or not found.is_known:
                unknown = x
                continue
            known = x
            if certificate_merit(found, penalty) < certificate_merit(best, penalty):
                best, chosen = found, x
        if chosen is not start:
            self.meter.events[ON_THE_WAY] += 1
        return best, chosen

    def _penalty(self, method: Any, state: Any) -> float:
        """Return what weighs violations against the objective where points compete.

        For a method that knows multipliers: a violation of the size that is allowed
        costs ten times what it gains, whatever the units of the functions are.
        """
        known = method.first_order(state) if hasattr(method, "first_order") else None
        pull = 0.0 if known is None else float(known.multipliers.sum())
        if not pull > 0:
            return penalty_of(method, state, MERIT_PENALTY)
        return 10.0 * pull / max(self.constraint_tol, 1e-300)

    def _with_stationarity(
        self,
        checker: Checker,
        best: Certificate,
        weights: tuple[IntArray, FloatArray],
        method: Any,
        state: Any,
    ) -> Certificate:
        n = checker.stationarity_cost()
        if self.problem.by_name:
            return best
        if self._costs_too_much(n):
            certify = _certify_call(self.problem)
            note = f"not computed; {certify} does it for {n:,} queries"
            return replace(best, note=note)
        return checker.with_stationarity(
            best,
            weights,
            penalty=penalty_of(method, state, MERIT_PENALTY),
            ridge=float(getattr(method, "dual_ridge", 1e-6)),
            active_tol=self.constraint_tol,
        )

    def _costs_too_much(self, n_slopes: int) -> bool:
        total = self.limits.queries or self.meter.n_queries
        return n_slopes > STATIONARITY_SHARE * total

    def _allowance(self) -> int:
        """Return the queries that may go into the check of the result."""
        size, used = self.problem.size, self.meter.n_queries
        whole = size.n_losses + size.n_constraint_calls
        if self.limits.queries is not None:
            allowance = int(CHECK_SHARE * self.limits.queries)
            needed = self._needed(self._checker(N_CANDIDATES * whole), N_CANDIDATES)
            fits = size.by_case and N_CANDIDATES * whole <= int(WHOLE_SHARE * used)
            if fits and self.meter.affords(needed):
                return max(allowance, N_CANDIDATES * whole)
            return allowance
        allowance = max(CHECK_LEAST, int(CHECK_SHARE * used))
        if whole <= WHOLE_SHARE * used:
            allowance = max(allowance, N_CANDIDATES * whole)
        if self.limits.time is None:
            return allowance
        left = max(self.limits.time - self.meter.elapsed, 0.0)
        return min(allowance, int(left / max(self.meter.time_for(1), 1e-9)))

    def _needed(self, checker: Checker, n_points: int) -> int:
        """Return the queries for so many points, and for slopes at one of them."""
        n_slopes = checker.stationarity_cost()
        most = 0 if self._costs_too_much(n_slopes) else n_slopes
        return n_points * checker.plan.n_queries + most

    def _checker(self, allowance: int, until: float | None = None) -> Checker:
        each = max(allowance // N_CANDIDATES, 3)
        return Checker(self.problem, self.meter, self.seed, each, until, N_CANDIDATES)


def _certify_call(problem: Problem) -> str:
    """Return what to write for a look at the result, a simulator being one as it is."""
    simulator, size = problem.simulator, problem.size
    limits = 0 if simulator is None else simulator.n * simulator.n_limits
    if limits and size.n_constraints == limits:
        bounds = ", bounds=bounds" if size.has_bounds else ""
        return f"dszog.certify(simulator, result.x{bounds})"
    return "dszog.certify(dszog.Problem(fun, constraints, dim), result.x)"
