"""One call of a front door: run the method, check the candidates, report."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np

from dszog._log import LOGGER
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.interrupts import Interrupts
from dszog.errors import (
    CheckpointWriteError,
    EvaluationError,
    InputError,
    PrecisionWarning,
)
from dszog.evidence.certificate import Certificate
from dszog.methods.dszog import HIGHEST_PENALTY
from dszog.methods.policy import RAN_AWAY, RoundReport, policy_of
from dszog.problem import Problem
from dszog.run.accounting import Costs, Ledger
from dszog.run.failures import FailureHandler, Policy
from dszog.run.final_check import FinalCheck
from dszog.run.history import Callback, History
from dszog.run.loop import Outcome, Position, advance
from dszog.run.meter import Answer, Limits, Meter
from dszog.run.remarks import on_events, on_set, on_signs, on_start
from dszog.run.repeats import Repeats
from dszog.run.result import Result
from dszog.run.stage import Stage
from dszog.run.verdict import Way, advice, is_success
from dszog.save import Recorder, ReplayOverError, Store
from dszog.save.snapshot import Contract, load_run, run_content
from dszog.status import Status

ROUND_OVER = (Status.MAX_ITERATIONS, Status.MAX_QUERIES, Status.MAX_TIME)

OnInterrupt: TypeAlias = Literal["return", "raise"]


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
        answer: Answer,
        callbacks: Sequence[Callback],
        on_failure: Policy,
        weights: tuple[IntArray, FloatArray] | None,
        notes: Sequence[str] = (),
        store: Store | None = None,
        contract: Contract | None = None,
        on_interrupt: OnInterrupt = "return",
        interrupts: Interrupts | None = None,
        start: FloatArray | None = None,
    ) -> None:
        self._problem = problem
        self._size = problem.size
        self._method = method
        self._fixed = fixed  # fields of the method that the user set
        self._policy = policy_of(method, fixed)
        self._limits = limits
        self._constraint_tol = constraint_tol
        self._seed = seed
        self._answer = answer
        self._meter = Meter(
            answer, self._size, limits.queries, FailureHandler(on_failure)
        )
        self._meter.compare = Repeats(problem).compare
        self._meter.n_constraint_queries += problem.n_calls_made
        if contract is not None:  # those of processes that died before it was saved
            self._meter.lose(contract.n_noted - problem.n_calls_made)
        self._check = FinalCheck(problem, self._meter, limits, seed, constraint_tol)
        self._callbacks = callbacks
        self._history = History()
        self._weights = weights
        if limits.queries is not None:
            self._meter.kept = self._check.reserved(limits.queries)
        self._notes = list(notes)
        self._is_warm = start is not None  # begun where another run ended
        self._wanted = problem.scaled(problem.x0) if start is None else start
        self._start = self._wanted  # where iterates begin
        self._ledger = Ledger(lambda: self._meter.elapsed)
        self._stage: Stage | None = None
        self._store = store
        self._contract = contract
        self._recorder: Recorder | None = None
        self._is_resumed = False
        self._on_interrupt = on_interrupt
        self._interrupts = Interrupts() if interrupts is None else interrupts

    @property
    def meter(self) -> Meter:
        """What counts the queries of this call."""
        return self._meter

    def solve(self) -> Result:
        """Run, again with a smaller step if need be; check and report."""
        self._warn_if_radius_is_lost()
        try:
            outcome = self._all_rounds()
            self._sync()
            status, certificate = self._checked(outcome)
        except (EvaluationError, CheckpointWriteError) as error:
            error.result = self._so_far()
            LOGGER.info("Broke off at iteration %d.", self._meter.n_iterations)
            raise
        if status == Status.INTERRUPTED and self._on_interrupt == "raise":
            raise KeyboardInterrupt
        result = self._result(status, outcome, certificate)
        LOGGER.info("Stop after %.1f s: %s", self._meter.elapsed, result.in_short)
        return result

    def _checked(self, outcome: Outcome) -> tuple[Status, Certificate]:
        """Look at the candidates; Ctrl-C ends that too."""
        if self._interrupts.interrupted():  # in a save
            if outcome.status == Status.INTERRUPTED:  # by two of them
                raise KeyboardInterrupt
            outcome = replace(outcome, status=Status.INTERRUPTED)
        if outcome.status == Status.INTERRUPTED and self._on_interrupt == "raise":
            raise KeyboardInterrupt
        try:
            self._interrupts.let_in()
            status, certificate = self._check.best(
                outcome, self._method, self._start, self._ledger.seconds
            )
            if status == Status.INTERRUPTED:
                self._interrupts.stop()
            self._interrupts.hold()
        except KeyboardInterrupt:
            if outcome.status == Status.INTERRUPTED:  # the second: leave at once
                raise
            status, certificate = Status.INTERRUPTED, self._check.blank(outcome.state.x)
        return status, certificate

    def _so_far(self) -> Result | None:
        """Return what there is to report of a run that broke off, without a look."""
        if self._stage is None:
            return None
        outcome = Outcome.of(self._stage.position, Status.INTERRUPTED)
        blank = self._check.blank(outcome.state.x)
        return self._result(Status.INTERRUPTED, outcome, blank)

    def _warn_if_radius_is_lost(self) -> None:
        radius = getattr(self._method, "radius", None)
        if radius is None:
            return
        x = self._problem.scaled(self._problem.x0)
        least = 1e4 * float(np.spacing(np.abs(x).max()))
        if radius < least:
            warnings.warn(
                f"radius={radius:g} is lost in the rounding of x0: points around it "
                f"would hardly differ from it. Use at least {least:.1g}, or x_scale.",
                PrecisionWarning,
                stacklevel=4,
            )

    # ----------------------------------------------------------------------- running

    def _all_rounds(self) -> Outcome:
        """Run round after round, from where an earlier process stopped if one did."""
        try:
            stage = self._resumed() or self._first_stage(0)
        except KeyboardInterrupt:
            if self._stage is None:
                raise
            return Outcome.of(self._stage.position, Status.INTERRUPTED)
        while True:
            self._interrupts.hold()  # there is something to lose from here on
            self._stage = stage
            self._save()
            try:
                outcome = self._run(stage)
            except ReplayOverError:  # of a journal that others wrote: save, and go on
                if self._recorder is not None:
                    self._recorder.stops_after_replay = False
                continue
            if outcome.status in ROUND_OVER and stage.round + 1 < len(stage.ends):
                stage = self._next_round(stage, outcome)
            elif self._starts_again(stage, outcome):
                stage = self._first_stage(stage.attempt + 1, stage.position.digest)
            else:
                if outcome.status in ROUND_OVER:
                    self._save()
                return outcome

    def _first_stage(self, attempt: int, digest: bytes = b"") -> Stage:
        """Return the beginning of a run from the start."""
        ends = self._round_ends()
        method = self._planned(ends[0])
        self._log_start(attempt)
        wanted = self._wanted
        more = {} if self._weights is None else {"weights": self._weights}
        state = method.init(wanted, self._size, self._seed, **more)
        self._check_affordable()
        self._start = state.x
        if not np.array_equal(wanted, state.x):
            self._note("The start was moved to the nearest feasible point.")
        position = Position.at(state, digest=digest)
        return Stage(
            attempt=attempt, round=0, ends=ends, method=method, position=position
        )

    def _log_start(self, attempt: int) -> None:
        size, limits = self._size, self._limits
        LOGGER.info(
            "Start%s: %s; variables %d, losses %d, constraints %d; seed %d; limits: "
            "iterations %s, queries %s, seconds %s.",
            f" again ({attempt})" if attempt else "",
            type(self._method).__name__,
            size.dim,
            size.n_losses,
            size.n_constraints,
            self._seed,
            limits.iterations,
            limits.queries,
            limits.time,
        )

    def _next_round(self, stage: Stage, outcome: Outcome) -> Stage:
        """Return the beginning of the next round, with the method as it then is."""
        report = self._round_report(stage, outcome)
        self._method, said = self._policy.after_round(self._method, report)
        if said:
            self._add(said)
        LOGGER.info(
            "Round %d of %d begins at iteration %d.",
            stage.round + 2,
            len(stage.ends),
            self._meter.n_iterations,
        )
        return self._round_from(stage, stage.round + 1, stage.ends)

    def _round_from(self, stage: Stage, number: int, ends: list[Limits]) -> Stage:
        method, last = self._planned(ends[number]), stage.position
        state = method.new_round(last.state)
        position = Position.at(state, last.last_good, last.digest)
        position.seen = last.seen
        return Stage(
            attempt=stage.attempt,
            round=number,
            ends=ends,
            method=method,
            position=position,
        )

    # -------------------------------------------------------------- saved and resumed

    def _resumed(self) -> Stage | None:
        """Return where an earlier process was, if there was one; else begin to keep."""
        if self._store is None or self._contract is None:
            return None
        loaded = load_run(self._store, self._contract, self._size)
        if loaded is None:
            return None
        self._is_resumed = True
        self._start, self._notes = loaded.start, loaded.notes
        self._method = loaded.with_settings(self._method)
        loaded.restore(self._meter, self._history, self._ledger)
        LOGGER.info(
            "Resume from %s, saved at iteration %d after %d queries.",
            self._store.folder,
            self._meter.n_iterations,
            self._meter.n_queries,
        )
        self._meter.lose(max(self._contract.n_noted - loaded.n_noted, 0))
        self._check_not_used_up(self._store)
        self._listen(self._store, loaded.is_elsewhere)
        stage = loaded.stage
        if loaded.limits == self._limits:
            return stage
        return self._with_other_limits(stage)

    def _check_not_used_up(self, store: Store) -> None:
        """Refuse to go on with fewer queries than were used: nothing could be said."""
        limit, used = self._limits.queries, self._meter.n_charged + self._meter.n_lost
        if limit is not None and used > limit:
            raise InputError(
                f"minimize: the run in {store.folder} has used {used:,} queries, got "
                f"max_queries={limit}, which counts all processes together. Give at "
                "least as many to see its result, more to go on, or an empty folder to "
                "begin anew."
            )

    def _listen(self, store: Store, is_elsewhere: bool = False) -> None:
        """Hear what the journal holds, then write on."""
        is_timed = self._limits.time is not None
        self._recorder = Recorder(store, is_timed=is_timed, is_elsewhere=is_elsewhere)
        self._meter.keep_on(self._recorder)

    def _with_other_limits(self, stage: Stage) -> Stage:
        """Go as far as the earlier process went, then begin a round to the new end."""
        recorder = self._recorder
        if recorder is not None:
            recorder.stops_after_replay = True
            self._stage = stage
            try:
                while True:
                    outcome = self._run(stage)
                    if outcome.status == Status.INTERRUPTED:
                        raise KeyboardInterrupt
                    more = stage.round + 1 < len(stage.ends)
                    if outcome.status not in ROUND_OVER or not more:
                        break
                    self._stage = stage = self._next_round(stage, outcome)
            except ReplayOverError:
                pass
            recorder.stops_after_replay = False
            recorder.drop()
        end = self._check.set_aside(self._limits)
        return self._round_from(stage, 0, [end])

    def _save(self, due: bool = True) -> None:
        """Write a checkpoint, unless an older one and its journal are being heard."""
        store, stage, contract = self._store, self._stage, self._contract
        if store is None or stage is None or contract is None or not due:
            return
        if self._recorder is not None and self._recorder.is_replaying:
            return
        content = run_content(
            stage,
            limits=self._limits,
            method=self._method,
            start=self._start,
            notes=self._notes,
            meter=self._meter,
            history=self._history,
            ledger=self._ledger,
        )
        with self._interrupts.held():
            store.save(contract.about(self._seed), content)
        LOGGER.info(
            "Saved to %s at iteration %d.", store.folder, self._meter.n_iterations
        )
        if self._recorder is None:
            self._listen(store)

    def _sync(self) -> None:
        if self._store is not None:
            self._store.sync()

    def _round_ends(self) -> list[Limits]:
        """Return where each round ends; the check of the result is set aside."""
        now, limits = self._meter.used, self._check.set_aside(self._limits)
        return [limits.part_way(now, share) for share in self._policy.shares]

    def _planned(self, end: Limits) -> Any:
        """Return the method, told how far this round goes."""
        meter = self._meter
        return self._method.planned(
            self._size,
            None if end.iterations is None else end.iterations - meter.n_iterations,
            None if end.queries is None else end.queries - meter.n_queries,
        )

    def _note(self, sentence: str) -> None:
        if sentence not in self._notes:
            self._add(sentence)

    def _add(self, sentence: str) -> None:
        self._notes.append(sentence)
        LOGGER.info("%s", sentence)

    def _run(self, stage: Stage) -> Outcome:
        """Run a round; Ctrl-C that came since the last one, in a save, ends it."""
        end, store = stage.end, self._store
        self._ledger.until = math.inf if end.time is None else end.time
        try:
            self._interrupts.let_in()
            outcome = advance(
                self._ledger.watched(stage.method),
                self._policy,
                stage.position,
                self._meter,
                end=end,
                history=self._history,
                callbacks=self._callbacks,
                between=None if store is None else lambda: self._save(due=store.is_due),
            )
            if outcome.status == Status.INTERRUPTED:
                self._interrupts.stop()
            self._interrupts.hold()
        except KeyboardInterrupt:
            self._interrupts.stop()
            outcome = Outcome.of(stage.position, Status.INTERRUPTED)
        return outcome

    def _check_affordable(self) -> None:
        """Refuse a number of queries that is not enough for one step and the check."""
        has_begun = self._meter.n_iterations or self._recorder is not None
        if has_begun or self._limits.queries is None:
            return
        needed = self.needed_queries()
        if needed <= self._limits.queries:
            return
        raise InputError(
            f"minimize: one iteration and the check of the result need {needed} "
            f"queries, got max_queries={self._limits.queries}. Raise max_queries, "
            "or lower n_directions and the batch sizes, such as loss_batch."
        )

    def needed_queries(self) -> int:
        """Return what one step and the check need; the allowed number if it does."""
        limit = self._limits.queries
        needed = self._needed(limit or 1)
        if limit is not None and needed <= limit:
            return limit
        while (more := self._needed(needed)) > needed:
            needed = more  # the check and the first look grow with the budget
        return needed

    def _needed(self, max_queries: int) -> int:
        """Return what one step and the check need if so many queries are allowed."""
        reserve = self._check.reserved(max_queries)
        n_first = max(round(self._policy.shares[0] * (max_queries - reserve)), 1)
        method = self._method.planned(self._size, self._limits.iterations, n_first)
        made: int = self._problem.n_calls_made + self._meter.n_lost
        return made + reserve + int(method.least_queries(self._size))

    def _starts_again(self, stage: Stage, outcome: Outcome) -> bool:
        """Whether a run that ran away starts again; with another method, and a note."""
        if outcome.status != Status.DIVERGED:
            return False
        report = self._round_report(stage, outcome)
        again = self._policy.after_runaway(self._method, report)
        if again is None:
            return False
        self._method, said = again
        self._notes = [note for note in self._notes if not note.startswith(RAN_AWAY)]
        self._add(said)  # one sentence, however often it is
        return True

    def _round_report(self, stage: Stage, outcome: Outcome) -> RoundReport:
        return RoundReport(
            constraint_tol=self._constraint_tol,
            weighted_violation=outcome.weighted_violation,
            objectives=self._history.known("sampled_objective"),
            n_restarts=stage.attempt,
            fell=outcome.fell,
        )

    def _way(self, outcome: Outcome, certificate: Certificate) -> Way:
        """Return what advice needs to know of how the run went."""
        start, objective = self._problem.unscaled(self._start), math.nan
        known = self._history.known("sampled_objective")
        if len(known):
            objective = float(known[0])
        with np.errstate(over="ignore", invalid="ignore"):
            distance = float(np.linalg.norm(certificate.x - start))
        return Way(
            distance=distance,
            gain=abs(certificate.objective - objective),
            is_falling=self._history.is_falling,
            penalty=getattr(self._method, "penalty", None),
            highest=HIGHEST_PENALTY,
            responds=self._history.responds_to_penalty,
            has_own_step="step_size" in self._fixed,
            fell=outcome.fell,
        )

    def _costs(self) -> Costs:
        meter, ledger = self._meter, self._ledger
        spent = meter.evaluation_time + ledger.seconds
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
            n_failed_saves=0 if self._store is None else self._store.n_failed,
            traffic=getattr(self._answer, "traffic", None),
        )

    @property
    def _knows_set(self) -> bool:
        """Whether all that the iterates keep to are the problem's own constraints."""
        domain = getattr(self._method, "domain", None)
        return domain is None or getattr(domain, "n_named", 0) > 0

    # --------------------------------------------------------------------- reporting

    def _what_is_old(self) -> list[str]:
        """Say so if all of it was in the folder: the functions may be others by now."""
        if self._store is None or self._recorder is None or not self._is_resumed:
            return []
        if self._recorder.has_asked:
            return []
        return [
            f"This is the result of the run in {str(self._store.folder)!r}, which had "
            "ended: no function was called. If your functions have changed since, it "
            "is not theirs: use an empty folder."
        ]

    def _is_start(self, certificate: Certificate) -> bool:
        start = self._problem.unscaled(self._start)
        return bool(np.array_equal(certificate.x, start))

    def _result(
        self, status: Status, outcome: Outcome, certificate: Certificate
    ) -> Result:
        feasibility, stationarity = certificate.feasibility, certificate.stationarity
        tolerance = self._constraint_tol
        way = self._way(outcome, certificate)
        return Result(
            x=np.array(certificate.x),
            fun=certificate.objective,
            maxcv=feasibility.maxcv,
            success=is_success(status, certificate, tolerance),
            status=status,
            message=" ".join(
                [
                    status.sentence,
                    *self._what_is_old(),
                    *([outcome.problem] if outcome.problem else []),
                    *self._notes,
                    *on_events(self._ledger.events + self._meter.events),
                    *on_set(self._problem, self._method, self._meter, certificate),
                    *(
                        on_start(status, is_warm=self._is_warm)
                        if self._is_start(certificate)
                        else []
                    ),
                    f"Of the result, {feasibility}.",
                    *on_signs(self._problem, certificate, way),
                    *advice(
                        status,
                        certificate,
                        way,
                        tolerance,
                        knows_set=self._knows_set,
                    ),
                ]
            ),
            nit=self._meter.n_iterations,
            nfev=self._meter.n_loss_queries,
            ncev=self._meter.n_constraint_queries,
            seed=self._seed,
            history=self._history.columns(),
            failures=self._meter.failures.report,
            certificate=certificate,
            multipliers=None if stationarity is None else stationarity.multipliers,
            weights=self._method.weights(outcome.state),
            noise=getattr(self._method, "noise", lambda _: None)(outcome.state),
            method=self._method,
            costs=self._costs(),
            digest=self._digest(),
            constraint_tol=tolerance,
            is_start=self._is_start(certificate) and not self._is_warm,
        )

    def _digest(self) -> str:
        """Return a hash of the whole way, in which every bit of it counts."""
        if self._stage is None:
            return ""
        return self._stage.position.digest_now(self._method).hex()
