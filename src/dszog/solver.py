"""One call of a front door: run the method, check the candidates, report."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult

from dszog._arrays import FloatArray, IntArray, frozen_floats
from dszog.certificate import (
    CheckPlan,
    Evidence,
    Feasibility,
    check_constraints,
    check_objective,
    known_feasibility,
)
from dszog.errors import DszogError, InputError
from dszog.evaluators import Evaluator
from dszog.penalties import merit
from dszog.problem import Problem
from dszog.query import NO_INDICES
from dszog.run import Callback, History, Limits, Meter, Outcome, run
from dszog.status import Status

CHECK_SHARE = 0.1  # of a query budget, at most, is kept for looking at the result
CHECK_QUERIES = 10**6  # for looking at the result, where there is no query budget
N_CANDIDATES = 3  # last iterate, average, start
N_SUSPECTS = 1000  # touched constraints in a sampled check, those of largest weight
ROUNDS = (0.2, 0.4, 1.0)  # parts of the budget after which the penalty may be raised
ROUND_OVER = (Status.MAX_ITERATIONS, Status.MAX_QUERIES, Status.MAX_TIME)
VIOLATION_AIM = 0.25  # of the tolerance: the weighted violation that is aimed at
MAX_RAISE = 30.0  # the largest factor by which a penalty is raised at once
SMALLER_STEP = 0.25  # after iterates ran away, if the step size was not given
MAX_RESTARTS = 3
MERIT_PENALTY = 30.0  # compares points for methods that have no penalty


class Solver:
    """One call of `minimize`: runs the method, checks the candidates, reports."""

    def __init__(
        self,
        problem: Problem,
        method: Any,
        fixed: frozenset[str],
        limits: Limits,
        constraint_tol: float,
        seed: int,
        answer: Evaluator,
        callbacks: Sequence[Callback],
    ) -> None:
        self._problem = problem
        self._size = problem.size
        self._method = method
        self._fixed = fixed  # fields of the method that the user set
        self._limits = limits
        self._constraint_tol = constraint_tol
        self._seed = seed
        self._meter = Meter(answer, limits.queries)
        self._callbacks = callbacks
        self._history = History()
        self._plan = self._check_plan()
        self._notes: list[str] = []

    def solve(self) -> OptimizeResult:
        """Run, again with a smaller step if need be; check and report."""
        outcome = self._attempt()
        for _ in range(MAX_RESTARTS):
            if outcome.status != Status.DIVERGED or not self._may_change("step_size"):
                break
            self._shrink_step()
            outcome = self._attempt()
        return self._result(outcome, self._best(outcome))

    # ----------------------------------------------------------------------- running

    def _attempt(self) -> Outcome:
        """Run from the start, in rounds between which the penalty may be raised."""
        ends = self._round_ends()
        method = self._planned(ends[0])
        state = method.init(self._problem.x0, self._size, self._seed)
        self._check_affordable(sum(query.n_queries for query in method.ask(state)))
        outcome = self._run(method, state, ends[0])
        for end in ends[1:]:
            if outcome.status not in ROUND_OVER:
                break
            self._raise_penalty(outcome.weighted_violation)
            method = self._planned(end)
            outcome = self._run(method, method.new_round(outcome.state), end)
        return outcome

    def _round_ends(self) -> list[Limits]:
        """Return where each round ends; the check of the result is set aside."""
        now, limits = self._meter.used, self._limits
        if limits.queries is not None:
            limits = replace(limits, queries=max(limits.queries - self._reserve, 0))
        if not self._may_change("penalty"):
            return [limits]
        return [limits.part_way(now, share) for share in ROUNDS]

    def _planned(self, end: Limits) -> Any:
        """Return the method, told how far this round goes."""
        meter = self._meter
        return self._method.planned(
            self._size,
            None if end.iterations is None else end.iterations - meter.n_iterations,
            None if end.queries is None else end.queries - meter.n_queries,
        )

    def _run(self, method: Any, state: Any, end: Limits) -> Outcome:
        return run(
            method,
            state,
            self._meter,
            end=end,
            time_reserve=self._reserve,
            history=self._history,
            callbacks=self._callbacks,
        )

    def _check_affordable(self, first_cost: int) -> None:
        needed = first_cost + self._reserve
        if not self._meter.n_queries and not self._meter.affords(needed):
            raise InputError(
                f"minimize: one iteration and the check of the result need {needed} "
                f"queries, got max_queries={self._limits.queries}. Raise max_queries, "
                "or lower the batch sizes and n_directions."
            )

    def _may_change(self, name: str) -> bool:
        """Whether the method has such a field and the user left it to us."""
        return hasattr(self._method, name) and name not in self._fixed

    def _shrink_step(self) -> None:
        step_size = self._method.step_size
        smaller = SMALLER_STEP * step_size
        self._notes.append(
            f"The iterates ran away with step_size={step_size:g}; the run was started "
            f"again with {smaller:g}."
        )
        self._method = replace(self._method, step_size=smaller)

    def _raise_penalty(self, violation: float) -> None:
        r"""Raise the penalty so that the violation it leaves falls to the tolerance.

        At a minimum of the penalised objective the multipliers sum to
        :math:`2 \beta \sum_j p_j \max(f_j, 0)`, whatever the penalty; so this weighted
        violation is inversely proportional to it. A stiffer one needs smaller steps.
        """
        aim = VIOLATION_AIM * self._constraint_tol
        if not violation > aim:
            return
        factor = min(violation / aim, MAX_RAISE) if aim > 0 else MAX_RAISE
        penalty = factor * self._method.penalty
        self._notes.append(
            f"The penalty was raised from {self._method.penalty:.3g} to {penalty:.3g}."
        )
        self._method = replace(self._method, penalty=penalty)
        if self._may_change("step_size"):
            step_size = self._method.step_size / math.sqrt(factor)
            self._method = replace(self._method, step_size=step_size)

    @property
    def _penalty(self) -> float:
        return float(getattr(self._method, "penalty", MERIT_PENALTY))

    # ---------------------------------------------------------------------- checking

    def _check_plan(self) -> CheckPlan:
        n, m = self._size.n_losses, self._size.n_constraints
        allowance = CHECK_QUERIES
        if self._limits.queries is not None:
            allowance = int(CHECK_SHARE * self._limits.queries)
        each = max(allowance // N_CANDIDATES, 2)
        n_losses = min(n, each)
        if not m or self._knows_all():
            return CheckPlan(n_losses=n_losses, n_constraints=0, suspects=NO_INDICES)
        # Both halves of the answer matter: neither may take all of the allowance.
        n_losses = min(n, max(each // 2, each - m, 1))
        left = max(each - n_losses, 1)
        if m <= left:
            return CheckPlan(n_losses=n_losses, n_constraints=m, suspects=NO_INDICES)
        n_suspects = min(N_SUSPECTS, left // 4)
        suspects = np.zeros(n_suspects, dtype=np.int64)  # the number; known at the end
        return CheckPlan(
            n_losses=n_losses, n_constraints=left - n_suspects, suspects=suspects
        )

    def _knows_all(self) -> bool:
        constraints = self._problem.constraints
        return constraints is not None and (
            constraints.summary(self._problem.x0) is not None
        )

    @property
    def _reserve(self) -> int:
        return N_CANDIDATES * self._plan.n_queries

    def _best(self, outcome: Outcome) -> Evidence:
        """Check the candidates; return the evidence for the one of least merit."""
        plan = replace(self._plan, suspects=self._suspects(outcome))
        best: Evidence | None = None
        for x in (outcome.state.x, outcome.average, self._problem.x0):
            x = frozen_floats(x)
            if not np.isfinite(x).all():
                continue
            found = self._check(x, plan, best)
            if found is not None:
                best = found
        if best is None:
            raise DszogError("minimize: no candidate could be checked.")
        return best

    def _check(
        self, x: FloatArray, plan: CheckPlan, best: Evidence | None
    ) -> Evidence | None:
        """Return the evidence for `x` if it is better than the best so far."""
        objective, error = check_objective(x, self._size, plan, self._seed, self._meter)
        bar = math.inf if best is None else self._merit(best)
        if objective >= bar:  # the constraints could only make it worse
            return None
        evidence = Evidence(
            x=x,
            objective=objective,
            n_losses_checked=plan.n_losses,
            objective_error=error,
            feasibility=self._feasibility(x, plan),
        )
        return evidence if self._merit(evidence) < bar else None

    def _merit(self, evidence: Evidence) -> float:
        return merit(evidence.objective, evidence.feasibility.maxcv, self._penalty)

    def _feasibility(self, x: FloatArray, plan: CheckPlan) -> Feasibility:
        constraints = self._problem.constraints
        summary = None if constraints is None else constraints.summary(x)
        if summary is not None:
            return known_feasibility(summary)
        return check_constraints(x, self._size, plan, self._seed, self._meter)

    def _suspects(self, outcome: Outcome) -> IntArray:
        indices, weights = self._method.weights(outcome.state)
        heaviest = np.argsort(-weights, kind="stable")[: len(self._plan.suspects)]
        return np.sort(indices[heaviest])

    # --------------------------------------------------------------------- reporting

    def _result(self, outcome: Outcome, evidence: Evidence) -> OptimizeResult:
        feasibility = evidence.feasibility
        success = is_success(outcome.status, evidence, self._constraint_tol)
        return OptimizeResult(
            x=np.array(evidence.x),
            fun=evidence.objective,
            maxcv=feasibility.maxcv,
            success=success,
            status=outcome.status,
            message=" ".join(
                [
                    outcome.status.sentence,
                    *self._notes,
                    f"Of the result, {feasibility}.",
                    *advice(
                        outcome.status, evidence, self._penalty, self._constraint_tol
                    ),
                ]
            ),
            nit=outcome.state.iteration,
            nfev=self._meter.n_loss_queries,
            ncev=self._meter.n_constraint_queries,
            seed=self._seed,
            history=self._history.columns(),
            weights=self._method.weights(outcome.state),
            certificate=evidence,
            method=self._method,
        )


def is_success(status: Status, evidence: Evidence, constraint_tol: float) -> bool:
    """Decide, in this one place, whether a run was a success.

    It was if it ended as planned and fresh values at the returned point are finite and
    no checked constraint is violated by more than the tolerance.
    """
    return bool(
        status.is_planned
        and np.isfinite(evidence.x).all()
        and np.isfinite(evidence.objective)
        and evidence.feasibility.maxcv <= constraint_tol
    )


def advice(
    status: Status, evidence: Evidence, penalty: float, constraint_tol: float
) -> list[str]:
    """Return what to do about a run that was no success."""
    sentences = []
    if status == Status.DIVERGED:
        sentences.append(
            "Lower step_size by a factor of 4, use more n_directions, or scale the "
            "variables and functions to order one."
        )
    if not evidence.feasibility.maxcv <= constraint_tol:
        factor = min(max(2.0 * evidence.feasibility.maxcv / constraint_tol, 2.0), 100.0)
        sentences.append(
            f"The worst violation is above constraint_tol={constraint_tol:g}: raise "
            f"penalty from {penalty:g} to about {factor * penalty:.2g}, or give a "
            "larger budget."
        )
    return sentences
