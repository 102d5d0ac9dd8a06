"""Looking at points afresh: which values to ask for, and what they amount to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply, cost
from dszog.contract.arrays import FloatArray, IntArray, handed_out
from dszog.contract.query import filled, unknown_parts
from dszog.errors import OutOfTimeError
from dszog.evidence.certificate import Certificate, Feasibility
from dszog.evidence.look import (
    BLOCK,
    CONFIDENCE,
    CheckPlan,
    FreshLook,
    known_feasibility,
    mean_and_error,
)
from dszog.evidence.stationarity import stationarity
from dszog.maths.penalties import merit
from dszog.problem import Problem
from dszog.run.meter import Meter

N_SUSPECTS = 1000  # calls in a sampled check for what the run found violated
N_SHARED = 32  # calls that give losses and constraints, at the least, to use both
BETWEEN_LOOKS = 0.1  # seconds between looks at the clock
N_AGAIN = 3  # times that a simulator is asked again for what it did not give
N_NAMED = 10  # of the worst constraints
FEW_LOST = 0.1  # of the cases: points where so many fail are judged by the others
N_EXAMINED = 200  # constraints whose gradients are looked at


class Checker:
    """Checks points of a problem, each within an allowance of queries.

    Of `n_points` that are checked one is chosen and then confirmed. After `until`
    seconds on the meter's clock nothing more is asked.
    """

    def __init__(
        self,
        problem: Problem,
        meter: Meter,
        seed: int,
        allowance: int,
        until: float | None = None,
        n_points: int = 1,
    ) -> None:
        self._problem = problem
        self._size = problem.size
        self._meter = meter
        self._seed = seed
        self._until = until
        self.plan = plan_check(problem, allowance, n_points)
        if until is not None:
            in_time = int(BETWEEN_LOOKS / max(meter.time_for(1), 1e-9))
            self.plan = replace(self.plan, block=min(max(in_time, 1), BLOCK))

    def check(
        self,
        x: FloatArray,
        suspects: IntArray = NO_INDICES,
        *,
        penalty: float = 1.0,
        better_than: float = math.inf,
        held: IntArray = NO_INDICES,
    ) -> Certificate | None:
        """Return the evidence for `x`, or None if its merit is not below a bar."""
        # Suspects are looked at in any case, the first ones first. A point whose
        # objective alone is not below the bar does not have its constraints looked at.
        plan, any_will_do = self._with_suspects(suspects), math.isinf(better_than)
        plan = replace(plan, held=held)
        look = FreshLook(x, self._size, plan, self._seed, self._ask)
        feasibility: Feasibility | None = None
        if uses_both(self._size, plan):
            losses, feasibility = look.together()
        else:
            losses = look.losses()
        n_lost = self._n_lost(losses)
        objective, error = self._mean(losses, n_lost)
        if not objective < better_than and not any_will_do:
            return None
        certificate = Certificate(
            x=handed_out(self._problem.unscaled(x)),
            objective=objective,
            objective_error=error,
            n_losses_checked=len(losses),
            feasibility=self._named(feasibility or self._feasibility(x, look)),
            n_losses_lost=n_lost,
        )
        if any_will_do or certificate_merit(certificate, penalty) < better_than:
            return certificate
        return None

    def _n_lost(self, losses: FloatArray) -> int:
        """Return how many cases gave no loss, if some did: these are left out."""
        simulator, unknown = self._problem.simulator, np.isnan(losses)
        if simulator is None or simulator.objective is not None or unknown.all():
            return 0
        return int(np.count_nonzero(unknown))

    def _mean(self, losses: FloatArray, n_lost: int) -> tuple[float, float]:
        """Return the mean of the losses that are known, and its standard error."""
        n, simulator = self._size.n_losses, self._problem.simulator
        if not n_lost or simulator is None:
            return mean_and_error(losses, n)
        known = losses[~np.isnan(losses)]
        if len(losses) < n:
            return mean_and_error(known, n)
        share = simulator.share_of(np.flatnonzero(~np.isnan(losses)))
        return float(known.sum()) / (n * share), 0.0

    def is_better(self, one: Certificate, other: Certificate, penalty: float) -> bool:
        """Whether a point is better than another.

        Where a few cases fail at one of them, judged by those that fail at neither; the
        one at which most give values where at the other most fail.
        """
        both, calls = (one.feasibility, other.feasibility), self._size.calls
        fail = [2 * len(found.lost_calls) > found.n_calls_made for found in both]
        if fail[0] != fail[1]:
            return fail[1]
        lost = np.union1d(both[0].lost_calls, both[1].lost_calls)
        few = FEW_LOST * min(found.n_calls_made for found in both)
        if calls is None or len(lost) > few or other.n_losses_lost or one.n_losses_lost:
            return certificate_merit(one, penalty) < certificate_merit(other, penalty)
        merits = []
        for point, found in zip((one, other), both, strict=True):
            known = found.worst_values[~np.isin(calls.of(found.worst_indices), lost)]
            worst = float(known[0]) if len(known) else found.worst_value
            merits.append(merit(point.objective, max(worst, 0.0), penalty))
        return merits[0] < merits[1]

    def confirm(
        self, certificate: Certificate, x: FloatArray, suspects: IntArray
    ) -> Certificate:
        """Return the evidence for the point that was chosen, from a draw of its own."""
        first = certificate.feasibility
        if first.kind != "sampled" or not (certificate.is_known and self.plan.n_fresh):
            return certificate
        plan = self._with_suspects(suspects)
        found = FreshLook(x, self._size, plan, self._seed, self._ask).confirmed(first)
        return replace(certificate, feasibility=self._named(found))

    def _named(self, found: Feasibility) -> Feasibility:
        """Return what was found with the names of the worst, if they have any."""
        worst, simulator = found.worst_indices[:N_NAMED], self._problem.simulator
        names = tuple(self._problem.name("constraint", j) for j in worst.tolist())
        if simulator is not None:
            lost = found.lost_calls[found.lost_calls < simulator.n][:N_NAMED].tolist()
            found = replace(found, lost_names=tuple(map(simulator.case_name, lost)))
        return replace(found, worst_names=names) if any(names) else found

    def _with_suspects(self, suspects: IntArray) -> CheckPlan:
        """Return the plan with the calls for the first of these constraints."""
        calls = self._size.calls
        if calls is not None:
            numbers = calls.of(suspects)
            suspects = numbers[np.sort(np.unique(numbers, return_index=True)[1])]
        chosen = np.sort(suspects[: len(self.plan.suspects)])
        return replace(self.plan, suspects=chosen)

    def blank(self, x: FloatArray) -> Certificate:
        """Return what can be said of a point that was not looked at."""
        return Certificate(
            x=handed_out(self._problem.unscaled(x)),
            objective=math.nan,
            objective_error=math.nan,
            n_losses_checked=0,
            feasibility=Feasibility(
                kind="unchecked", n_constraints=self._size.n_constraints
            ),
        )

    def with_stationarity(
        self,
        certificate: Certificate,
        weights: tuple[IntArray, FloatArray],
        *,
        penalty: float,
        ridge: float,
        active_tol: float,
    ) -> Certificate:
        """Return the evidence completed by the residuals of the paper's definitions."""
        heaviest = heaviest_first(weights)[: N_EXAMINED // 2]
        worst = certificate.feasibility.worst_indices[: N_EXAMINED // 2]
        try:
            found = stationarity(
                self._problem.scaled(certificate.x),
                self._size,
                losses=np.arange(self._size.n_losses),
                examined=np.union1d(worst, heaviest),
                weights=weights,
                sum_squares=certificate.feasibility.sum_squares,
                penalty=penalty,
                ridge=ridge,
                active_tol=active_tol,
                x_scale=self._problem.x_scale,
                answer=self._ask,
            )
        except FloatingPointError:
            return replace(certificate, note="not known: values are too large")
        if found is None:
            return replace(certificate, note="not known: a gradient gave no value")
        return replace(certificate, stationarity=found)

    def stationarity_cost(self) -> int:
        """Return what :meth:`with_stationarity` costs at most; too much of names."""
        if self._problem.by_name:
            return 2**62
        size = self._size
        at_loss = 2 if size.has_gradient else 2 * size.dim + 1
        at_constraint = 2 if size.has_jacobian else 2 * size.dim + 1
        n_calls = min(N_EXAMINED, size.n_constraints, size.n_constraint_calls)
        return size.n_losses * at_loss + n_calls * at_constraint

    def _feasibility(self, x: FloatArray, look: FreshLook) -> Feasibility:
        constraints = self._problem.constraints
        if constraints is not None:
            summary = constraints.summary(handed_out(self._problem.unscaled(x)))
            if summary is not None:
                return known_feasibility(summary)
        return look.constraints()

    def _ask(self, queries: Sequence[Query]) -> Sequence[Reply]:
        if self._until is not None and self._meter.elapsed > self._until:
            raise OutOfTimeError("the time for looking at the result is over")
        meter = self._meter
        if meter.n_lost and not meter.affords(cost(queries, self._size).total):
            raise OutOfTimeError("queries set aside for this were lost with a process")
        replies = meter(queries)
        if self._size.block_width > 1 and self._size.n_constraint_calls > 1:
            replies = [
                self._again(*pair) for pair in zip(queries, replies, strict=True)
            ]
        return replies

    def _again(self, query: Query, reply: Reply) -> Reply:
        """Ask a simulator again, a few times, for what it did not give at a point."""
        for _ in range(N_AGAIN):
            parts = unknown_parts([query], [reply], self._size)
            wanted = [part.query for part in parts]
            kept = self._meter.kept  # for the rest of the check, which comes first
            charged = cost(wanted, self._size).total
            if not wanted or not self._meter.affords(charged + kept):
                break
            self._meter.kept = kept + charged  # of which the meter takes this off
            (reply,) = filled([reply], parts, self._meter(wanted))
            self._meter.kept = kept
        return reply


def certificate_merit(certificate: Certificate, penalty: float) -> float:
    """Return the merit of a point, infinite if something about it is not known."""
    if not certificate.is_known:
        return math.inf
    return merit(certificate.objective, certificate.feasibility.maxcv, penalty)


def heaviest_first(weights: tuple[IntArray, FloatArray]) -> IntArray:
    """Return the constraints that have weights, those of largest weight first."""
    indices, values = weights
    heaviest: IntArray = indices[np.argsort(-values, kind="stable")]
    return heaviest


def suspects_of(
    weights: tuple[IntArray, FloatArray], seen: tuple[IntArray, FloatArray]
) -> IntArray:
    """Return the constraints to look at in any case, by turns from two lists."""
    # The ones of largest weight, and those that were worst when last seen in the run.
    heaviest, worst = heaviest_first(weights), heaviest_first(seen)
    n = min(len(heaviest), len(worst))
    turns = np.stack([worst[:n], heaviest[:n]], axis=1).ravel()
    listed = np.concatenate([turns, worst[n:], heaviest[n:]])
    suspects: IntArray = listed[np.sort(np.unique(listed, return_index=True)[1])]
    return suspects


def uses_both(size: ProblemSize, plan: CheckPlan) -> bool:
    """Whether the calls for the constraints give the losses that are wanted as well."""
    if size.calls is None or size.calls.n_shared != size.n_losses:
        return False
    n_calls, n_losses = size.n_constraint_calls, size.n_losses
    if plan.n_calls == n_calls:
        return plan.n_losses == n_losses
    # Of a draw from all calls a fair part has to be such that give a loss.
    return n_calls == n_losses or (n_calls <= 2 * n_losses and plan.n_calls >= N_SHARED)


def plan_check(problem: Problem, allowance: int, n_points: int = 1) -> CheckPlan:
    """Return how to spend an allowance of queries for each of some points."""
    # All losses and all constraints where that fits; otherwise neither may take more
    # than half, as both halves of the answer matter. Of several points one is chosen:
    # half of the draws are then kept for looking at that one afresh.
    size = problem.size
    n, n_calls = size.n_losses, size.n_constraint_calls
    allowance = max(allowance, 2)
    constraints = problem.constraints
    if constraints is None or constraints.summary(handed_out(problem.x0)) is not None:
        n_calls = 0  # their structure tells all about a point
    shares_calls = size.calls is not None and size.calls.n_shared == n
    if shares_calls and n_calls <= allowance:  # one look gives losses and constraints
        return CheckPlan(n_losses=n, n_calls=n_calls, n_queries=n_calls)
    shared = _sampled_plan(0, allowance, n_points)
    if uses_both(size, shared):
        return shared
    least = 2 if allowance > 2 else 1  # from two on there is a standard error
    n_losses = min(n, max(allowance // 2, allowance - n_calls, least))
    left = max(allowance - n_losses, 1)
    if n_calls <= left:
        n_queries = n_losses + n_calls
        return CheckPlan(n_losses=n_losses, n_calls=n_calls, n_queries=n_queries)
    return _sampled_plan(n_losses, left, n_points)


def _sampled_plan(n_losses: int, n_queries: int, n_points: int) -> CheckPlan:
    """Return how to spend queries on the constraints, beside those for losses."""
    # The bound holds for the best of the points without a fresh look, too: each point
    # has a part of the chance to be wrong.
    n_suspects = min(N_SUSPECTS, n_queries // 4)
    n_drawn = n_queries - n_suspects
    n_calls = n_drawn if n_points == 1 else max(n_drawn // 2, 1)
    return CheckPlan(
        n_losses=n_losses,
        n_calls=n_calls,
        suspects=np.zeros(n_suspects, dtype=np.int64),  # their number; which, later
        n_queries=n_losses + n_queries,
        n_fresh=n_points * (n_drawn - n_calls),
        confidence=1.0 - (1.0 - CONFIDENCE) / n_points,
    )
