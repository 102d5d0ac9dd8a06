"""One call of `minimize`: run the method, check the candidates, save on the way."""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dszog._log import LOGGER
from dszog.contract.arrays import FloatArray
from dszog.errors import (
    CheckpointWriteError,
    EvaluationError,
    InputError,
    PrecisionWarning,
)
from dszog.evidence.certificate import Certificate
from dszog.methods.auto import OF_METHOD
from dszog.methods.policy import RAN_AWAY, RoundReport, policy_of
from dszog.run.accounting import Ledger
from dszog.run.failures import FailureHandler
from dszog.run.final_check import FinalCheck
from dszog.run.history import History, SubproblemCounts, count_on, counts_of
from dszog.run.loop import Outcome, Position, advance
from dszog.run.meter import Limits, Meter, Repeats, ReplayOverError, ReplyLog
from dszog.run.report import Report
from dszog.run.result import Result
from dszog.run.run import Job, Run, Saver
from dszog.run.verdict import on_sizes
from dszog.status import Status

ROUND_OVER = (Status.MAX_ITERATIONS, Status.MAX_QUERIES, Status.MAX_TIME)


class Solver:
    """Does a job: runs the method, and checks the candidates."""

    def __init__(self, job: Job) -> None:
        problem, limits = job.problem, job.limits
        self._job = job
        self._size = problem.size
        self._policy = policy_of(job.method, job.fixed)
        failures, repeats = FailureHandler(job.on_failure, problem), Repeats(problem)
        again = 0 if problem.simulator is None else problem.simulator.retries
        self.meter = Meter(
            job.answer, self._size, limits.queries, failures, repeats.compare, again
        )
        self.meter.n_constraint_queries += problem.n_calls_made
        if problem.simulator is not None:
            self.meter.asks_twice_at = problem.n_calls_made
            self.meter.on_first = partial(on_sizes, problem, job.constraint_tol)
        if job.saver is not None:  # calls of processes that died before a checkpoint
            self.meter.lost_before += job.saver.n_noted - problem.n_calls_made
        self._check = FinalCheck(
            problem, self.meter, limits, job.seed, job.constraint_tol
        )
        if limits.queries is not None:
            self.meter.kept = self._check.reserved(limits.queries)
        self._history = History()
        self._ledger = Ledger(lambda: self.meter.elapsed)
        self._report = Report(job, self.meter, self._history, self._ledger)
        self._journal: ReplyLog | None = None  # of replies, where the run is saved
        self._run: Run | None = None  # as its round began
        self._position: Position | None = None  # where in the round it is
        self._is_resumed = False

    def solve(self) -> Result:
        """Run all rounds, check what they found, and report."""
        self._warn_if_radius_is_lost()
        try:
            run, outcome = self._all_rounds()
            if self._job.saver is not None:
                self._job.saver.sync()
            status, certificate = self._checked(run, outcome)
            if self._journal is not None:  # what this check did not ask for again
                self._journal.drop()
        except (EvaluationError, CheckpointWriteError) as error:
            error.result = self._so_far()
            LOGGER.info("Broke off at iteration %d.", self.meter.n_iterations)
            raise
        if status == Status.INTERRUPTED and self._job.on_interrupt == "raise":
            raise KeyboardInterrupt
        result = self._result(run, status, outcome, certificate)
        if LOGGER.isEnabledFor(logging.INFO):
            LOGGER.info("Stop after %.1f s: %s", self.meter.elapsed, result.in_short)
        return result

    def _checked(self, run: Run, outcome: Outcome) -> tuple[Status, Certificate]:
        """Look at the candidates; Ctrl-C ends that too."""
        job, interrupts = self._job, self._job.interrupts
        if interrupts.interrupted():  # in a save
            if outcome.status == Status.INTERRUPTED:  # by two of them
                raise KeyboardInterrupt
            outcome = outcome._replace(status=Status.INTERRUPTED)
        if outcome.status == Status.INTERRUPTED and job.on_interrupt == "raise":
            raise KeyboardInterrupt
        try:
            interrupts.let_in()
            status, certificate = self._check.best(
                outcome, run.method, run.start, self._ledger.seconds
            )
            if status == Status.INTERRUPTED:
                interrupts.stop()
            interrupts.hold()
        except KeyboardInterrupt:
            if outcome.status == Status.INTERRUPTED:  # the second: leave at once
                raise
            status = Status.INTERRUPTED
            certificate = self._check.blank(outcome.position.state.x)
        return status, certificate

    def _so_far(self) -> Result | None:
        """Return what there is to report of a run that broke off, without a look."""
        if self._run is None or self._position is None:
            return None
        outcome = Outcome(self._position, Status.INTERRUPTED)
        blank = self._check.blank(self._position.state.x)
        return self._result(self._run, Status.INTERRUPTED, outcome, blank)

    def _result(
        self, run: Run, status: Status, outcome: Outcome, certificate: Certificate
    ) -> Result:
        """Report; if all of it was in the folder, functions may be others by now."""
        journal, saver = self._journal, self._job.saver
        if saver and journal and self._is_resumed and not journal.has_asked:
            said = (
                f"This is the result of the run in {saver.place!r}, which had "
                "ended: no function was called. If your functions have changed since, "
                f"it is not theirs: use an empty folder. {outcome.problem}"
            )
            outcome = outcome._replace(problem=said.rstrip())
        return self._report.result(run, status, outcome, certificate)

    def _warn_if_radius_is_lost(self) -> None:
        radius = getattr(self._job.method, "radius", None)
        if radius is None:
            return
        x = self._job.problem.scaled(self._job.problem.x0)
        least = 1e4 * float(np.spacing(np.abs(x).max()))
        if radius < least:
            warnings.warn(
                f"radius={radius:g} is lost in the rounding of x0: points around it "
                f"would hardly differ from it. Use at least {least:.1g}, or x_scale.",
                PrecisionWarning,
                stacklevel=5,
            )

    # ----------------------------------------------------------------------- running

    def _all_rounds(self) -> tuple[Run, Outcome]:
        """Run round after round, from where an earlier process stopped if one did."""
        try:
            run = self._resumed() or self._begun(self._job.method, self._job.notes)
        except KeyboardInterrupt:
            if self._run is None or self._position is None:
                raise
            return self._run, Outcome(self._position, Status.INTERRUPTED)
        while True:
            self._job.interrupts.hold()  # there is something to lose from here on
            self._run, self._position = run, run.position
            self._save()
            try:
                outcome = self._round(run)
            except ReplayOverError:  # the journal of another machine ends: save, go on
                if self._journal is not None:
                    self._journal.stops_after_replay = False
                run = self._now(run)
                continue
            if outcome.status in ROUND_OVER and run.round + 1 < len(run.ends):
                run = self._next_round(run, outcome)
            elif (restarted := self._restarted(run, outcome)) is not None:
                run = restarted
            else:
                if outcome.status in ROUND_OVER:
                    self._save()
                return run, outcome

    def _begun(
        self, method: Any, notes: tuple[str, ...], attempt: int = 0, digest: bytes = b""
    ) -> Run:
        job, size, limits = self._job, self._size, self._job.limits
        meter, most = self.meter, self._check.set_aside(limits)
        now = Limits(
            iterations=meter.n_iterations, queries=meter.n_charged, time=meter.elapsed
        )
        ends = tuple(most.part_way(now, share) for share in self._policy.shares)
        planned = self._planned(method, ends[0])
        LOGGER.info(
            "Start%s: %s; variables %d, losses %d, constraints %d; seed %d; limits: "
            "iterations %s, queries %s, seconds %s.",
            f" again ({attempt})" if attempt else "",
            type(method).__name__,
            *(size.dim, size.n_losses, size.n_constraints, job.seed),
            *(limits.iterations, limits.queries, limits.time),
        )
        wanted = job.problem.scaled(job.problem.x0)
        more = {} if job.weights is None else {"weights": job.weights}
        state = planned.init(wanted, size, job.seed, **more)
        self._check_affordable()
        run = Run(
            limits=limits,
            start=state.x,
            notes=notes,
            method=method,
            planned=planned,
            attempt=attempt,
            round=0,
            ends=ends,
            position=Position.at(state, digest=digest),
            **self._counts(),
        )
        if np.array_equal(wanted, state.x):
            return run
        return run.noted("The start was moved to the nearest feasible point.")

    def _next_round(self, run: Run, outcome: Outcome) -> Run:
        """Return the beginning of the next round, with the method as it then is."""
        report = self._round_report(run, outcome)
        method, said = self._policy.after_round(run.method, report)
        if said:
            run = run.noted(said)
        LOGGER.info(
            "Round %d of %d begins at iteration %d.",
            run.round + 2,
            len(run.ends),
            self.meter.n_iterations,
        )
        run = replace(run, method=method, position=outcome.position)
        return self._round_from(run, run.round + 1, run.ends)

    def _round_from(self, run: Run, number: int, ends: tuple[Limits, ...]) -> Run:
        planned, last = self._planned(run.method, ends[number]), run.position
        position = Position.at(
            planned.new_round(last.state), last.last_good, last.digest, last.seen
        )
        return replace(run, round=number, ends=ends, planned=planned, position=position)

    def _restarted(self, run: Run, outcome: Outcome) -> Run | None:
        """Return the beginning of another attempt, if a run ran away and may."""
        if outcome.status != Status.DIVERGED:
            return None
        report = self._round_report(run, outcome)
        changed = self._policy.after_runaway(run.method, report)
        if changed is None:
            return None
        method, said = changed
        LOGGER.info("%s", said)
        notes = [note for note in run.notes if not note.startswith(RAN_AWAY)]
        return self._begun(
            method, (*notes, said), run.attempt + 1, outcome.position.digest
        )

    def _round_report(self, run: Run, outcome: Outcome) -> RoundReport:
        return RoundReport(
            constraint_tol=self._job.constraint_tol,
            weighted_violation=outcome.position.weighted_violation,
            objectives=self._history.known("sampled_objective"),
            n_restarts=run.attempt,
            fell=outcome.fell,
        )

    def _planned(self, method: Any, end: Limits) -> Any:
        """Return a method, told how far a round goes and what it has to keep to."""
        meter = self.meter
        if getattr(method, "constraint_tol", 0.0) is None:
            method = replace(method, constraint_tol=self._job.constraint_tol)
        return method.planned(
            self._size,
            None if end.iterations is None else end.iterations - meter.n_iterations,
            None if end.queries is None else end.queries - meter.n_queries,
        )

    def _round(self, run: Run) -> Outcome:
        """Run a round; Ctrl-C that came since the last one, in a save, ends it."""
        interrupts, saver = self._job.interrupts, self._job.saver
        end = run.ends[run.round]
        self._ledger.until = math.inf if end.time is None else end.time

        def between(position: Position) -> None:
            self._position = position
            if saver is not None and saver.is_due:
                self._save()
            if saver is not None and saver.wants_stop:
                raise StopIteration

        try:
            interrupts.let_in()
            outcome = advance(
                self._ledger.watched(run.planned),
                self._position or run.position,
                self.meter,
                end=end,
                policy=self._policy,
                history=self._history,
                callbacks=self._job.callbacks,
                between=between,
            )
            if outcome.status == Status.INTERRUPTED:
                interrupts.stop()
            interrupts.hold()
        except KeyboardInterrupt:
            interrupts.stop()
            outcome = Outcome(self._position or run.position, Status.INTERRUPTED)
        self._position = outcome.position
        return outcome

    # -------------------------------------------------------------- saved and resumed

    def _resumed(self) -> Run | None:
        """Return where an earlier process was, if there was one."""
        saver = self._job.saver
        run = None if saver is None else saver.load(self._size)
        if saver is None or run is None:
            return None
        if not len(run.start):
            run = replace(run, start=self._x0())
        self._is_resumed = True
        self.meter.go_on_from(run.counts)
        count_on(self.meter.failures, run.failures)
        count_on(self._ledger, run.subproblems)
        self._history.go_on_from(run.history)
        LOGGER.info(
            "Resume from %s, saved at iteration %d after %d queries.",
            saver.place,
            self.meter.n_iterations,
            self.meter.n_queries,
        )
        self._check_not_used_up(saver.place)
        journal = self._open_journal(saver)
        if run.limits == self._job.limits:
            return run
        run = self._now(self._replay_rounds(run, journal))
        self._check_not_used_up(saver.place)
        return self._to_other_limits(run)

    def _check_not_used_up(self, place: str) -> None:
        """Refuse to go on with fewer queries than were used: nothing could be said."""
        limit, used = self._job.limits.queries, self.meter.n_charged + self.meter.n_lost
        if limit is not None and used > limit:
            raise InputError(
                f"minimize: the run in {place} has used {used:,} queries, got "
                f"max_queries={limit}, which counts all processes together. Give at "
                "least as many to see its result, more to go on, or an empty folder to "
                "begin anew."
            )

    def _open_journal(self, saver: Saver) -> ReplyLog:
        """Replay what the journal holds, then append to it."""
        self._journal = saver.log(is_timed=self._job.limits.time is not None)
        self.meter.keep_on(self._journal)
        return self._journal

    def _replay_rounds(self, run: Run, journal: ReplyLog) -> Run:
        """Go as far as the earlier process went, under its limits."""
        journal.stops_after_replay = True
        try:
            while True:
                self._run, self._position = run, run.position
                outcome = self._round(run)
                if outcome.status == Status.INTERRUPTED:
                    raise KeyboardInterrupt
                more = run.round + 1 < len(run.ends)
                if outcome.status not in ROUND_OVER or not more:
                    break
                run = self._next_round(run, outcome)
        except ReplayOverError:
            pass
        journal.stops_after_replay = False
        journal.drop()
        return run

    def _to_other_limits(self, run: Run) -> Run:
        """Return the beginning of a round from where a run is to the new end."""
        end = self._check.set_aside(self._job.limits)
        notes = list(self._job.notes)  # the method and why it was chosen, once
        is_told = any(note.startswith(OF_METHOD) for note in notes)
        for note in run.notes:
            if note not in notes and not (is_told and note.startswith(OF_METHOD)):
                notes.append(note)
        run = replace(run, limits=self._job.limits, notes=tuple(notes))
        return self._round_from(run, 0, (end,))

    def _now(self, run: Run) -> Run:
        position = self._position or run.position
        return replace(run, position=position, **self._counts())

    def _counts(self) -> dict[str, Any]:
        return {
            "counts": self.meter.counts(),
            "failures": self.meter.failures.counts(),
            "history": self._history.rows(),
            "subproblems": counts_of(SubproblemCounts, self._ledger),
        }

    def _save(self) -> None:
        saver, run = self._job.saver, self._run
        if saver is None or run is None:
            return
        if self._journal is not None and self._journal.is_replaying:
            return
        with self._job.interrupts.held():
            now = self._now(run)
            if np.array_equal(run.start, self._x0()):  # which is not kept twice
                now = replace(now, start=np.empty(0))
            saver.save(now, self._job.seed)
        n_done = self.meter.n_iterations
        LOGGER.info("Saved to %s at iteration %d.", saver.place, n_done)
        if self._journal is None:
            self._open_journal(saver)

    def _x0(self) -> FloatArray:
        return self._size.clip(self._job.problem.scaled(self._job.problem.x0))

    # ------------------------------------------------------------------- what it takes

    def _check_affordable(self) -> None:
        """Refuse a number of queries that is not enough for one step and the check."""
        limit = self._job.limits.queries
        has_begun = self.meter.n_iterations or self._journal is not None
        if has_begun or limit is None or (needed := self._needed(limit)) <= limit:
            return
        while (more := self._needed(needed)) > needed:
            needed = more  # the check and the first look grow with the budget
        sizes = ", or lower the batch sizes, such as loss_batch"
        if self._job.problem.simulator is not None:
            sizes = ""
        elif hasattr(self._job.method, "n_directions"):
            sizes = ", or lower n_directions and the batch sizes, such as loss_batch"
        raise InputError(
            f"minimize: one iteration and the check of the result need {needed} "
            f"queries, got max_queries={limit}. Raise max_queries{sizes}."
        )

    def _needed(self, max_queries: int) -> int:
        """Return what one step and the check need if so many queries are allowed."""
        job, reserve = self._job, self._check.reserved(max_queries)
        n_first = max(round(self._policy.shares[0] * (max_queries - reserve)), 1)
        method = job.method.planned(self._size, job.limits.iterations, n_first)
        made: int = job.problem.n_calls_made + self.meter.n_lost
        return made + reserve + int(method.least_queries(self._size))
