"""The search: trials of several settings, then the run with the best of them."""

from __future__ import annotations

import hashlib
import math
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dszog.errors import EvaluationError
from dszog.maths.penalties import merit
from dszog.maths.random_stream import stream
from dszog.methods.policy import penalty_of
from dszog.run.accounting import Costs
from dszog.run.failures import FailureReport
from dszog.run.final_check import MERIT_PENALTY
from dszog.run.job import Job, takes_weights
from dszog.run.meter import Limits, Meter
from dszog.run.result import Result
from dszog.run.solver import Solver
from dszog.status import Status
from dszog.tuning.budget import Spent
from dszog.tuning.plan import TUNED, Planner, Rung, Tuning, tunable
from dszog.tuning.report import Trial, TuningReport

TUNE = 2  # purpose of the seeds of trials, beside those of steps and checks
UNTUNED = (1.0, 1.0)  # factors
ENDS_ALL = (Status.INTERRUPTED, Status.STOPPED_BY_CALLBACK)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Made:
    """A trial that was made: its line in the table, its result and what it spent."""

    trial: Trial
    result: Any  # a Result, None if a function failed
    failures: FailureReport
    spent: Spent


@dataclass(eq=False, kw_only=True)
class _Candidate:
    """One setting: where it stands, and what is known of it."""

    method: Any  # as its last trial ended
    settings: dict[str, float]
    last: _Made | None = None  # its last trial that did not fail
    has_failed: bool = False

    @property
    def merit(self) -> float:
        if self.has_failed or self.last is None:
            return math.inf
        return self.last.trial.merit


class Tuner:
    """Makes the trials of one call, and the run after them."""

    def __init__(self, job: Job, tuning: Tuning) -> None:
        self._job = job
        self._tuning = tuning
        self._names = tunable(job.method, job.fixed)
        self._takes_weights = takes_weights(job.method)
        self._penalty = penalty_of(job.method, MERIT_PENALTY)
        self._untuned = self._candidate(UNTUNED)
        self._planner = Planner(
            tuning=tuning, names=self._names, limits=job.limits, needed=self._needed
        )
        self._made: list[_Made] = []
        self._is_first = True
        self._error: EvaluationError | None = None

    # -------------------------------------------------------------------- the whole

    def solve(self) -> Result:
        """Make the trials, then run with the best settings; report both."""
        rungs = self._planner.rungs()
        try:
            best = self._best(self._all_trials(rungs))
        except _StoppedError as stopped:
            return self._stopped(stopped.status)
        except KeyboardInterrupt:  # between two trials, or it is to be raised
            known = any(one.result is not None for one in self._made)
            if self._job.on_interrupt == "raise" or not known:
                raise
            return self._stopped(Status.INTERRUPTED)
        if best.last is None:
            raise self._error or EvaluationError("No trial gave a value.")
        report, left = self._report(best.last), self._spent.left_of(self._job.limits)
        if self._tuning.share < 1.0 and left is not None:
            solver = self._solver(best, left, self._job.seed)
            if left.queries is None or solver.needed_queries() <= left.queries:
                return self._run(solver, report)
        return self._joined(best.last.result, report)

    def _run(self, solver: Solver, report: TuningReport) -> Result:
        """Make the run after the trials."""
        try:
            result = solver.solve()
        except EvaluationError as error:
            if error.result is not None:
                error.result = self._joined(error.result, report)
            raise
        return self._joined(result, report)

    def _all_trials(self, rungs: list[Rung]) -> list[_Candidate]:
        """Make all trials; return the settings that took part to the end."""
        _, *others = self._planner.factors(rungs[0].size)
        candidates = [self._untuned, *(self._candidate(factors) for factors in others)]
        for place, rung in enumerate(rungs):
            if place:
                candidates = self._kept(candidates, rung.size)
            for one in candidates:
                self._make_trial(one, place, rung.share)
        return candidates

    # ------------------------------------------------------------------- the settings

    def _candidate(self, factors: tuple[float, float]) -> _Candidate:
        settings = {
            name: float(getattr(self._job.method, name)) * factor
            for name, factor in zip(TUNED, factors, strict=True)
            if name in self._names
        }
        method = replace(self._job.method, **settings)
        return _Candidate(method=method, settings=settings)

    def _kept(self, candidates: list[_Candidate], size: int) -> list[_Candidate]:
        """Return the best of them; the untuned setting stays whatever it reached."""
        able = [one for one in candidates if not one.has_failed]
        kept = sorted(able, key=_rank)[:size]
        untuned = self._untuned
        if untuned in able and untuned not in kept:
            kept = [*kept[: size - 1], untuned]
        return kept

    def _best(self, candidates: list[_Candidate]) -> _Candidate:
        """Return the best setting; of equals the untuned one, which comes first."""
        return min(candidates, key=_rank, default=self._untuned)

    # ------------------------------------------------------------------- one trial

    @property
    def _spent(self) -> Spent:
        return Spent.total(one.spent for one in self._made)

    def _needed(self, n_queries: int) -> int:
        """Return what one step and its check need, if so many queries are allowed."""
        limits = replace(self._job.limits, queries=n_queries)
        return self._solver(self._untuned, limits, 0).needed_queries()

    def _solver(self, candidate: _Candidate, limits: Limits, seed: int) -> Solver:
        problem, weights, start = self._job.problem, self._job.weights, None
        if not self._is_first:
            problem = copy(problem)
            problem.n_calls_made = 0  # made once, and counted by the first trial
        if candidate.last is not None:
            before = candidate.last.result
            start = problem.scaled(before.x)
            has_weights = self._takes_weights and len(before.weights[0])
            weights = before.weights if has_weights else None
        spent = self._spent
        return Solver(
            replace(
                self._job,
                problem=problem,
                method=candidate.method,
                limits=limits,
                seed=seed,
                callbacks=[spent.counted_on(one) for one in self._job.callbacks],
                weights=weights,
                start=start,
            )
        )

    def _make_trial(self, candidate: _Candidate, rung: int, share: float) -> None:
        limits = self._spent.share_of(self._job.limits, share)
        key = stream(self._job.seed, rung, TUNE).integers(2**63)
        solver = self._solver(candidate, limits, int(key))
        self._is_first = False
        result = None
        try:
            result = solver.solve()
        except EvaluationError as error:  # a bad setting, unless all of them do it
            self._error = error
        made = self._record(candidate.settings, rung, result, solver.meter)
        self._made.append(made)  # at once: Ctrl-C may come before or after
        if result is None:
            candidate.has_failed = True
            return
        candidate.last, candidate.method = made, result.method
        if result.status in ENDS_ALL:
            raise _StoppedError(result.status)

    def _record(
        self,
        settings: dict[str, float],
        rung: int,
        result: Result | None,
        meter: Meter,
    ) -> _Made:
        """Return what is kept of a trial; merits of all are by the same penalty."""
        fun = math.nan if result is None else float(result.fun)
        maxcv = math.nan if result is None else float(result.maxcv)
        is_known = math.isfinite(fun + maxcv)
        spent = Spent.of(meter)
        trial = Trial(
            settings=settings,
            rung=rung,
            nit=spent.iteration,
            nfev=spent.n_loss_queries,
            ncev=spent.n_constraint_queries,
            fun=fun,
            maxcv=maxcv,
            merit=merit(fun, maxcv, self._penalty) if is_known else math.inf,
            status=None if result is None else result.status,
            note="failed" if result is None else "",
        )
        failures = meter.failures.report
        return _Made(trial=trial, result=result, failures=failures, spent=spent)

    # --------------------------------------------------------------------- reporting

    def _report(self, chosen: _Made) -> TuningReport:
        result = chosen.result
        return TuningReport(
            options={name: float(getattr(result.method, name)) for name in self._names},
            chosen=self._made.index(chosen),
            trials=tuple(one.trial for one in self._made),
            penalty=self._penalty,
            x=np.array(result.x),
            weights=result.weights if self._takes_weights else None,
        )

    def _joined(self, result: Result, report: TuningReport) -> Result:
        """Return a result, of a trial or of the run after them, with all counted."""
        of_trials = [one.result for one in self._made if one.result is not None]
        is_trial = any(result is one for one in of_trials)
        last = [] if is_trial else [result]
        runs = [*of_trials, *last]
        failures = [*(one.failures for one in self._made), *(r.failures for r in last)]
        digests = "".join(run.digest for run in runs)
        whole = Result(result)
        whole.nit = report.nit + sum(run.nit for run in last)
        whole.nfev = report.nfev + sum(run.nfev for run in last)
        whole.ncev = report.ncev + sum(run.ncev for run in last)
        whole.seed = self._job.seed
        whole.costs = replace(
            Costs.total([run.costs for run in runs]),
            n_loss_queries=whole.nfev,  # with those of trials that failed
            n_constraint_queries=whole.ncev,
        )
        whole.failures = FailureReport.total(failures)
        whole.digest = hashlib.sha256(digests.encode()).hexdigest()
        whole.tuning = report
        whole.message = f"{_said(report)} {result.message}"
        if not is_trial:
            whole.history = self._spent.history_on(result.history)
        return whole

    def _stopped(self, status: Status) -> Result:
        """Return the best of all trials so far, as the result of a call cut short."""
        known = [one for one in self._made if one.result is not None]
        best = min(known, key=lambda one: one.trial.merit)
        whole = self._joined(best.result, self._report(best))
        whole.status = status
        whole.success = bool(whole.success and status.is_planned)
        if status != best.result.status:
            whole.message = f"{status.sentence} {whole.message}"
        return whole


class _StoppedError(Exception):
    """A person or a callback ended the call in the middle of the trials."""

    def __init__(self, status: Status) -> None:
        self.status = status


def _rank(candidate: _Candidate) -> tuple[float, float]:
    """Return what settings are sorted by: merit, then the size of the step."""
    # A step that is too large ends where it began, with the merit of the start; one
    # that is too small gets a little below it. So of equals the smaller is better.
    return candidate.merit, candidate.settings.get("step_size", 0.0)


def _said(report: TuningReport) -> str:
    settings = {tuple(trial.settings.items()) for trial in report.trials}
    chosen = " and ".join(f"{k}={v:.3g}" for k, v in report.best.settings.items())
    return (
        f"Of {len(settings)} settings, tried with {report.n_queries:,} queries, "
        f"{chosen} was the best."
    )
