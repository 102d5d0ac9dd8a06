"""What a call of `minimize` reports: its result, and the message in it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from dszog.evidence.certificate import Certificate
from dszog.methods.policy import penalty_of
from dszog.run import verdict
from dszog.run.accounting import Costs, Ledger
from dszog.run.checker import heaviest_first
from dszog.run.history import History
from dszog.run.loop import Outcome
from dszog.run.meter import OTHER_VALUE, Meter
from dszog.run.result import Result
from dszog.run.run import Job, Run
from dszog.status import Status

MOST_CASES_NAMED = 3  # of a limit; of more the worst and their number
N_NAMED = 100  # constraints of largest weight whose names are kept


@dataclass(frozen=True)
class Report:
    """Makes the result of a job, of what the run counted and kept."""

    job: Job
    meter: Meter
    history: History
    ledger: Ledger

    def result(
        self, run: Run, status: Status, outcome: Outcome, certificate: Certificate
    ) -> Result:
        """Return the result of a run that ended so, with this evidence."""
        position, tolerance = outcome.position, self.job.constraint_tol
        problem, method, meter = self.job.problem, run.method, self.meter
        last, slopes = problem.unscaled(position.state.x), None
        if hasattr(method, "first_order") and np.array_equal(certificate.x, last):
            known = method.first_order(position.state)
            certificate = replace(certificate, first_order=known)
            slopes = method.gradient(position.state)
        is_start = np.array_equal(certificate.x, problem.unscaled(run.start))
        weights, multipliers = method.weights(position.state), certificate.multipliers
        shown = [certificate.feasibility.worst_indices]
        shown += [heaviest_first(weights)[:N_NAMED], *(multipliers or ())[:1]]
        way = self._facts(run, outcome, certificate)
        success = verdict.is_success(status, certificate, tolerance, way)
        if status == Status.CONVERGED and not success:  # 0 stands for success in SciPy
            status = Status.UNCONFIRMED
        is_feasible = (
            certificate.is_known and certificate.feasibility.maxcv <= tolerance
        )
        if status == Status.LEAST_VIOLATION and is_feasible:  # the models were wrong
            status = Status.STALLED
        message = self._message(run, status, outcome, certificate, way, is_start)
        return Result(
            x=np.array(certificate.x),
            fun=certificate.objective,
            maxcv=certificate.feasibility.maxcv,
            success=success,
            status=status,
            message=message,
            nit=meter.n_iterations,
            nfev=meter.n_loss_queries,
            ncev=meter.n_constraint_queries,
            njev=meter.n_gradients,
            jac=None if slopes is None else slopes / problem.x_scale,
            seed=self.job.seed,
            history=self.history.columns(),
            failures=meter.failures.report,
            certificate=certificate,
            multipliers=multipliers,
            weights=weights,
            names=problem.names_of(*shown),
            variables=problem.names,
            noise=method.noise(position.state) if hasattr(method, "noise") else None,
            method=method,
            costs=self._costs(),
            digest=position.digest_now(method).hex(),
            constraint_tol=tolerance,
            is_start=is_start,
        )

    def _facts(
        self, run: Run, outcome: Outcome, certificate: Certificate
    ) -> verdict.Way:
        """Return what advice needs to know of how the run went."""
        start, objective = self.job.problem.unscaled(run.start), math.nan
        known = self.history.known("sampled_objective")
        if len(known):
            objective = float(known[0])
        with np.errstate(over="ignore", invalid="ignore"):
            distance = float(np.linalg.norm(certificate.x - start))
            if distance:  # perhaps only the smallest variables have moved
                distance = max(distance, float(np.linalg.norm(certificate.x)))
        penalty = penalty_of(run.method, outcome.position.state)
        if hasattr(run.method, "penalty_at"):  # nobody else is to set it
            penalty = math.nan
        domain = getattr(run.method, "domain", None)
        return verdict.Way(
            converges=hasattr(run.method, "first_order"),
            knows_set=domain is None or getattr(domain, "n_named", 0) > 0,
            distance=distance,
            gain=abs(certificate.objective - objective),
            is_falling=self.history.is_falling,
            penalty=None if math.isnan(penalty) else penalty,
            responds=self.history.responds_to_penalty,
            has_step=hasattr(run.method, "step_size"),
            has_own_step="step_size" in self.job.fixed,
            fell=outcome.fell,
            never=self.meter.failures.report.never,
            is_spread=self.meter.failures.never_spread,
            n_failed=self.meter.failures.n_failed,
            is_impure=self.meter.events[OTHER_VALUE] > 0,
            pulls=self._pulls(certificate),
            takes_options=self.job.problem.by_name,
        )

    def _pulls(self, certificate: Certificate) -> tuple[str, ...]:
        """Return the names of constraints with multipliers, the heaviest first.

        Of a simulator's limits first the heaviest case of each; one of many cases is
        named once, with their number.
        """
        known, name = certificate.first_order, self.job.problem.name
        if known is None:
            return ()
        heaviest = heaviest_first((known.indices, known.multipliers)).tolist()
        simulator = self.job.problem.simulator
        if simulator is None:
            return tuple(name("constraint", j) or f"constraint {j:,}" for j in heaviest)
        counts = Counter(j % simulator.n_limits for j in heaviest)
        first: dict[int, str] = {}  # of each limit
        others = []
        for j in heaviest:
            limit, text = j % simulator.n_limits, name("constraint", j)
            if counts[limit] > MOST_CASES_NAMED:
                text = f"{text} (and in {counts[limit] - 1:,} others)"
            elif limit in first:
                others.append(text)
            first.setdefault(limit, text)
        return (*first.values(), *others)

    def _costs(self) -> Costs:
        meter, ledger = self.meter, self.ledger
        spent = meter.evaluation_time + ledger.seconds
        saver = self.job.saver
        return Costs(
            n_loss_queries=meter.n_loss_queries,
            n_constraint_queries=meter.n_constraint_queries,
            n_oracle_calls=ledger.n_oracle_calls,
            n_projections=ledger.n_projections,
            n_inner=meter.n_inner,
            n_solver_rounds=ledger.n_solver_rounds,
            n_rows=ledger.n_rows,
            time_estimate=meter.evaluation_time,
            time_subproblem=ledger.seconds,
            time_other=max(meter.elapsed - spent, 0.0),
            events=dict(ledger.events + meter.events),
            n_lost=meter.n_lost,
            n_retried=meter.n_retried,
            n_failed_saves=0 if saver is None else saver.n_failed,
            traffic=getattr(self.job.answer, "traffic", None),
        )

    def _message(
        self,
        run: Run,
        status: Status,
        outcome: Outcome,
        certificate: Certificate,
        way: verdict.Way,
        is_start: bool,
    ) -> str:
        problem, tolerance = self.job.problem, self.job.constraint_tol
        sentences = [
            outcome.sentence or verdict.ending_sentence(status, way),
            *([outcome.problem] if outcome.problem else []),
            *run.notes,
            *verdict.on_events(self.ledger.events + self.meter.events),
            *verdict.on_set(problem, run.method, self.meter, certificate),
            *(verdict.on_start(status) if is_start else []),
            f"Of the result, {certificate.feasibility}.",
            *verdict.on_first_order(status, certificate),
            *verdict.on_signs(problem, certificate, way),
            *verdict.on_violations(problem, certificate.feasibility, tolerance),
            *verdict.advice(status, certificate, way, tolerance),
        ]
        return " ".join(sentences)
