"""Choosing a method's step size and penalty by short runs, inside the budget.

Each trial is a run of the method with a small budget, checked like any other; the next
trial, and at last the run itself, goes on from where the better ones got to. So little
of what the trials cost is lost.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np

from dszog._arrays import FloatArray, IntArray
from dszog._random import stream
from dszog._validation import check_choice, check_count, check_share, shown
from dszog.accounting import Costs
from dszog.errors import EvaluationError, InputError, MissingExtraError
from dszog.failures import N_SHOWN, FailureReport
from dszog.penalties import merit
from dszog.problem import Problem
from dszog.result import Result
from dszog.run import Callback, Limits, Progress
from dszog.solver import MERIT_PENALTY, Solver
from dszog.status import Status

Sampler: TypeAlias = Literal["halving", "optuna"]
SAMPLERS = ("halving", "optuna")
TUNED = ("step_size", "penalty")

# Factors of the step size and the penalty, the likeliest to help first: any number of
# them, counted from the first, is a sensible choice.
FACTORS = (
    (1.0, 1.0),  # untuned: always tried, and kept to the last
    (10.0, 1.0),
    (0.1, 1.0),
    (100.0, 1.0),
    (0.01, 1.0),
    (1000.0, 1.0),
    (1.0, 10.0),
    (0.001, 1.0),
    (10.0, 10.0),
    (0.1, 10.0),
    (100.0, 10.0),
    (1000.0, 10.0),
)
GROWTH = 3  # of a trial's budget from one rung to the next, where a third is kept
SIZES = (12, 9, 6, 4, 3, 2)  # settings in the first rung, as many as there is room for
USEFUL_STEPS = 3  # a trial has room for that many first steps, with their check
USEFUL_ITERATIONS = 10
FIRST_OPTUNA = 4  # trials of fixed factors, before Optuna chooses
MOST_OPTUNA = 16
# Factors between which Optuna may choose. A penalty below the untuned one flatters
# short runs, and leaves the last one with violations.
SPAN = {"step_size": (1e-3, 1e3), "penalty": (1.0, 1e2)}
TUNE = 2  # purpose of the seeds of trials, beside those of steps and checks


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How to choose step size and penalty before a run; ``minimize(tune=Tuning())``.

    Parameters
    ----------
    share : float
        Of the budget, in (0, 1], that trials may use. With 1 there is no run after
        them, and the best trial is the result.
    sampler : {"halving", "optuna"}
        Successive halving over fixed factors of the defaults; or Optuna's TPE sampler,
        which needs ``pip install "dszog[tune]"``.
    n_settings : int, optional
        Settings to try at most, of which the untuned one is the first; as many as the
        share has room for, up to 12 (16 with Optuna), if not given.
    """

    share: float = 0.3
    sampler: Sampler = "halving"
    n_settings: int | None = None

    def __post_init__(self) -> None:
        check_share(self, share="Try 0.3.")
        check_choice(self, "sampler", self.sampler, SAMPLERS)
        if self.n_settings is not None:
            check_count(self, "n_settings", self.n_settings, least=2)


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One short run: its settings, what it cost, and what was found at its end.

    ``fun`` and ``maxcv`` are fresh evaluations at its best point, ``merit`` is made of
    them; all are `nan` or infinite where the trial failed.
    """

    settings: dict[str, float]
    rung: int  # 0 for the first, shortest ones
    nit: int
    nfev: int
    ncev: int
    fun: float
    maxcv: float
    merit: float
    status: Status | None  # None if a function failed
    note: str = ""

    @property
    def n_queries(self) -> int:
        """Values of losses and constraints that the trial evaluated."""
        return self.nfev + self.ncev


@dataclass(frozen=True, kw_only=True)
class TuningReport:
    """What was tried and what was chosen; print it for a table.

    ``merit`` of all trials is ``fun + penalty * maxcv**2`` with one `penalty`, that of
    the untuned method.

    Parameters
    ----------
    options : dict
        The chosen settings, as the chosen trial ended with them: for
        ``minimize(options=...)``.
    chosen : int
        The place of the chosen trial.
    trials : tuple of Trial
        In the order they were made.
    penalty : float
    sampler : str
    x, weights
        Where the chosen trial got to: ``minimize(x0=x, weights=weights)`` goes on.
    """

    options: dict[str, float]
    chosen: int
    trials: tuple[Trial, ...]
    penalty: float
    sampler: str
    x: FloatArray = field(repr=False)
    weights: tuple[IntArray, FloatArray] | None = field(repr=False)

    @property
    def nit(self) -> int:
        """Iterations of all trials."""
        return sum(trial.nit for trial in self.trials)

    @property
    def nfev(self) -> int:
        """Loss queries of all trials."""
        return sum(trial.nfev for trial in self.trials)

    @property
    def ncev(self) -> int:
        """Constraint queries of all trials."""
        return sum(trial.ncev for trial in self.trials)

    @property
    def n_queries(self) -> int:
        """Queries of all trials."""
        return self.nfev + self.ncev

    @property
    def best(self) -> Trial:
        """The chosen trial."""
        return self.trials[self.chosen]

    def __str__(self) -> str:
        names = list(self.trials[0].settings)
        heads = ["rung", *names, "queries", "objective", "violation", "merit", ""]
        rows = [heads]
        for place, trial in enumerate(self.trials):
            rows.append(
                [
                    str(trial.rung),
                    *(f"{trial.settings[name]:.4g}" for name in names),
                    f"{trial.n_queries:,}",
                    f"{trial.fun:.6g}",
                    f"{trial.maxcv:.3g}",
                    f"{trial.merit:.6g}",
                    "chosen" if place == self.chosen else trial.note,
                ]
            )
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell.rjust(width) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in rows
        )


class Build(Protocol):
    """Makes one run of the call that is tuned."""

    def __call__(
        self,
        *,
        problem: Problem,
        method: Any,
        limits: Limits,
        seed: int,
        callbacks: Sequence[Callback],
        weights: tuple[IntArray, FloatArray] | None,
        start: FloatArray | None,
    ) -> Solver:
        """Return the run."""
        ...


@dataclass(kw_only=True)
class _Runner:
    """One setting: where it stands, and what is known of it."""

    method: Any  # as its last trial ended
    settings: dict[str, float]
    result: Any = None  # of its last trial; None before, and after a failure
    trial: int = -1  # place of its last trial
    has_failed: bool = False

    @property
    def start(self) -> FloatArray | None:
        return None if self.result is None else self.result.x


class Tuner:
    """Makes the trials of one call, and the run after them.

    Parameters
    ----------
    build : Build
        Makes the runs.
    problem : Problem
    method : Method
        Untuned.
    fixed : frozenset of str
        Fields that the caller set; these stay.
    limits : Limits
        Of trials and run together.
    tuning : Tuning
    seed : int
    callbacks : sequence of callable
    weights : (indices, weights), optional
        First weights over the constraints.
    takes_weights : bool
        Whether the method can go on from weights.
    on_interrupt : {"return", "raise"}
    """

    def __init__(
        self,
        build: Build,
        problem: Problem,
        method: Any,
        fixed: frozenset[str],
        limits: Limits,
        tuning: Tuning,
        *,
        seed: int,
        callbacks: Sequence[Callback],
        weights: tuple[IntArray, FloatArray] | None,
        takes_weights: bool,
        on_interrupt: str,
    ) -> None:
        self._build = build
        self._problem = problem
        self._method = method
        self._names = tunable(method, fixed)
        self._limits = limits
        self._tuning = tuning
        self._seed = seed
        self._callbacks = callbacks
        self._weights = weights
        self._takes_weights = takes_weights
        self._on_interrupt = on_interrupt
        self._trials: list[Trial] = []
        self._results: list[Any] = []  # of each trial, None for one that failed
        self._digests: list[str] = []
        self._failures: list[FailureReport] = []
        self._costs: list[Costs] = []
        self._penalty = float(getattr(method, "penalty", MERIT_PENALTY))
        self._used = Limits(iterations=0, queries=0, time=0.0)
        self._evaluation_time = 0.0
        self._untuned = self._runner((1.0, 1.0))
        self._is_first = True
        self._error: EvaluationError | None = None

    # -------------------------------------------------------------------- the whole

    def solve(self) -> Result:
        """Make the trials, then run with the best settings; report both."""
        plan = self._plan()
        try:
            best = self._best(self._all_trials(plan))
        except _StoppedError as stopped:
            return self._stopped(stopped.status)
        except KeyboardInterrupt:  # between two trials, or it is to be raised
            known = any(result is not None for result in self._results)
            if self._on_interrupt == "raise" or not known:
                raise
            return self._stopped(Status.INTERRUPTED)
        if best.result is None:
            raise self._error or EvaluationError("No trial gave a value.")
        report, left = self._report(best), self._left()
        if self._tuning.share < 1.0 and not _is_nothing(left):
            solver = self._solver(best, left, self._seed)
            if left.queries is None or solver.needed_queries() <= left.queries:
                return self._run(solver, report)
        return self._joined(best.result, report, of_trial=True)

    def _run(self, solver: Solver, report: TuningReport) -> Result:
        """Make the run after the trials."""
        try:
            result = solver.solve()
        except EvaluationError as error:
            if error.result is not None:
                error.result = self._joined(error.result, report, of_trial=False)
            raise
        return self._joined(result, report, of_trial=False)

    def _all_trials(self, plan: list[tuple[int, float]]) -> list[_Runner]:
        """Make all trials; return the settings that took part to the end."""
        if self._tuning.sampler == "optuna":
            return self._optuna_trials(plan)
        runners = [self._runner(factors) for factors in self._factors(plan[0][0])]
        self._untuned = runners[0]
        for rung, (size, share) in enumerate(plan):
            if rung:
                runners = self._kept(runners, size)
            self._make_trials(runners, rung, share)
        return runners

    def _make_trials(self, runners: list[_Runner], rung: int, share: float) -> None:
        for runner in runners:
            self._make_trial(runner, rung, share)

    def _kept(self, runners: list[_Runner], size: int) -> list[_Runner]:
        """Return the best of them; the untuned setting stays whatever it reached."""
        able = [runner for runner in runners if not runner.has_failed]
        kept = sorted(able, key=self._rank)[:size]
        untuned = self._untuned
        if untuned in able and untuned not in kept:
            kept = [*kept[: size - 1], untuned]
        return kept

    def _best(self, runners: list[_Runner]) -> _Runner:
        """Return the best setting; of equals the untuned one, which comes first."""
        return min(runners, key=self._rank, default=self._untuned)

    # ---------------------------------------------------------------------- planning

    def _plan(self) -> list[tuple[int, float]]:
        """Return the rungs: how many settings, and the share of the budget of each.

        Raises
        ------
        InputError
            If there is no room for two trials and the run.
        """
        wanted = self._tuning.n_settings
        if self._tuning.sampler == "optuna":
            most = MOST_OPTUNA if wanted is None else wanted
            plans = [[(size, 1.0 / size)] for size in range(most, 1, -1)]
        else:
            most = min(len(self._factors(len(FACTORS))), wanted or len(FACTORS))
            sizes = dict.fromkeys([most, *(size for size in SIZES if size <= most)])
            plans = [_halving(size) for size in sizes]
        for plan in plans:
            scaled = [(size, share * self._tuning.share) for size, share in plan]
            if self._has_room(scaled):
                return scaled
        raise self._no_room(plans[-1])

    def _has_room(self, plan: list[tuple[int, float]]) -> bool:
        shortest = min(share for _, share in plan)
        limits = self._limits
        if limits.iterations is not None:
            left = limits.iterations - self._of_trials(plan, "iterations")
            short = int(shortest * limits.iterations) < USEFUL_ITERATIONS
            if short or (left < 1 and self._tuning.share < 1.0):
                return False
        if limits.queries is None:
            return True
        if int(shortest * limits.queries) < USEFUL_STEPS * self._least():
            return False
        return self._tuning.share == 1.0 or self._affords(
            limits.queries - self._of_trials(plan, "queries")
        )

    def _of_trials(self, plan: list[tuple[int, float]], name: str) -> int:
        total = getattr(self._limits, name)
        return sum(size * int(share * total) for size, share in plan)

    def _least(self) -> int:
        """Return what one step and its check need."""
        probe = replace(self._limits, queries=1)
        return self._solver(self._runner((1.0, 1.0)), probe, 0).needed_queries()

    def _affords(self, n_queries: int) -> bool:
        if n_queries < 1:
            return False
        probe = replace(self._limits, queries=n_queries)
        solver = self._solver(self._runner((1.0, 1.0)), probe, 0)
        return solver.needed_queries() <= n_queries

    def _no_room(self, plan: list[tuple[int, float]]) -> InputError:
        share = self._tuning.share
        each = min(part for _, part in plan) * share
        needs, got = [], []
        if self._limits.iterations is not None:
            needs.append(f"max_iterations={math.ceil(USEFUL_ITERATIONS / each)}")
            got.append(f"max_iterations={self._limits.iterations}")
        if self._limits.queries is not None:
            least = math.ceil(USEFUL_STEPS * self._least() / each)
            needs.append(f"max_queries={least}")
            got.append(f"max_queries={self._limits.queries}")
        return InputError(
            f"minimize: the smallest tuning, two trials in {share:g} of the budget, "
            f"needs about {' and '.join(needs)}, got {' and '.join(got)}. Give a "
            "larger budget or share, or leave `tune` out."
        )

    def _factors(self, n: int) -> list[tuple[float, float]]:
        """Return the first so many factors that differ in what is tuned."""
        found: dict[tuple[float, float], None] = {}
        for step, penalty in FACTORS:
            found[
                step if "step_size" in self._names else 1.0,
                penalty if "penalty" in self._names else 1.0,
            ] = None
        if self._names == ["penalty"]:
            more = (100.0, 0.1, 1000.0)
            found |= dict.fromkeys((1.0, factor) for factor in more)
        return list(found)[:n]

    def _runner(self, factors: tuple[float, float]) -> _Runner:
        settings = {
            name: float(getattr(self._method, name)) * factor
            for name, factor in zip(TUNED, factors, strict=True)
            if name in self._names
        }
        return _Runner(method=replace(self._method, **settings), settings=settings)

    # ------------------------------------------------------------------- one trial

    def _solver(self, runner: _Runner, limits: Limits, seed: int) -> Solver:
        problem, weights = self._problem, self._weights
        if not self._is_first:
            problem = copy(problem)
            problem.n_calls_made = 0  # made once, and counted by the first trial
        start = runner.start
        if start is not None:
            start = self._problem.scaled(start)
            touched = runner.result.weights
            weights = touched if self._takes_weights and len(touched[0]) else None
        return self._build(
            problem=problem,
            method=runner.method,
            limits=limits,
            seed=seed,
            callbacks=[self._counted_on(callback) for callback in self._callbacks],
            weights=weights,
            start=start,
        )

    def _make_trial(self, runner: _Runner, rung: int, share: float) -> None:
        limits = self._share_of(share)
        key = stream(self._seed, rung, TUNE).integers(2**63)
        solver = self._solver(runner, limits, int(key))
        self._is_first = False
        result, note = None, ""
        try:
            result = solver.solve()
        except EvaluationError as error:  # a bad setting, unless all of them do it
            self._error = error
            runner.has_failed = True
            note = "failed"
        meter = solver.meter
        self._add_used(
            Limits(
                iterations=meter.n_iterations,
                queries=meter.n_charged,
                time=meter.elapsed,
            )
        )
        self._evaluation_time += meter.evaluation_time
        self._failures.append(meter.failures.report)
        if result is not None:
            runner.trial = len(self._trials)
            runner.result, runner.method = result, result.method
            self._digests.append(result.digest)
            self._costs.append(result.costs)
        fun = math.nan if result is None else float(result.fun)
        maxcv = math.nan if result is None else float(result.maxcv)
        self._trials.append(
            Trial(
                settings=runner.settings,
                rung=rung,
                nit=meter.n_iterations,
                nfev=meter.n_loss_queries,
                ncev=meter.n_constraint_queries,
                fun=fun,
                maxcv=maxcv,
                merit=self._merit(fun, maxcv),
                status=None if result is None else result.status,
                note=note,
            )
        )
        self._results.append(result)  # last: Ctrl-C may come anywhere in between
        if result is not None and _ends_all(result.status):
            raise _StoppedError(result.status)

    def _share_of(self, share: float) -> Limits:
        """Return that share of the budget, or what is left of it if that is less."""
        total, used = self._limits, self._used
        iterations = queries = time = None
        if total.iterations is not None:
            iterations = max(int(share * total.iterations), 1)
        if total.queries is not None:
            queries = int(share * total.queries)
        if total.time is not None:
            time = min(share * total.time, max(total.time - (used.time or 0.0), 1e-3))
        return Limits(iterations=iterations, queries=queries, time=time)

    def _left(self) -> Limits:
        total, used = self._limits, self._used

        def less(all_of: Any, gone: Any) -> Any:
            return None if all_of is None else all_of - gone

        return Limits(
            iterations=less(total.iterations, used.iterations),
            queries=less(total.queries, used.queries),
            time=less(total.time, used.time),
        )

    def _add_used(self, more: Limits) -> None:
        used = self._used
        self._used = Limits(
            iterations=(used.iterations or 0) + (more.iterations or 0),
            queries=(used.queries or 0) + (more.queries or 0),
            time=(used.time or 0.0) + (more.time or 0.0),
        )

    def _counted_on(self, callback: Callback) -> Callback:
        """Return a callback that is told the counts of the whole call."""
        used = self._used
        n_losses = sum(trial.nfev for trial in self._trials)
        n_constraints = sum(trial.ncev for trial in self._trials)
        n_failed = sum(report.n_failed for report in self._failures)
        evaluation_time = self._evaluation_time

        def told(progress: Progress) -> Any:
            return callback(
                replace(
                    progress,
                    iteration=progress.iteration + (used.iterations or 0),
                    n_queries=progress.n_queries + (used.queries or 0),
                    elapsed=progress.elapsed + (used.time or 0.0),
                    n_loss_queries=progress.n_loss_queries + n_losses,
                    n_constraint_queries=progress.n_constraint_queries + n_constraints,
                    n_failed=progress.n_failed + n_failed,
                    evaluation_time=progress.evaluation_time + evaluation_time,
                )
            )

        return told

    # --------------------------------------------------------------------- comparing

    def _merit(self, fun: float, maxcv: float) -> float:
        """Return the merit of fresh values, by the penalty of the untuned method."""
        if not math.isfinite(fun + maxcv):
            return math.inf
        return merit(fun, maxcv, self._penalty)

    def _rank(self, runner: _Runner) -> tuple[float, float]:
        """Return what settings are sorted by: merit, then the size of the step.

        A step that is too large ends where it began, with the merit of the start; one
        that is too small gets a little below it. So of equals the smaller is better.
        """
        return self._merit_of(runner), runner.settings.get("step_size", 0.0)

    def _merit_of(self, runner: _Runner) -> float:
        return math.inf if runner.has_failed else self._trials[runner.trial].merit

    # ------------------------------------------------------------------------ Optuna

    def _optuna_trials(self, plan: list[tuple[int, float]]) -> list[_Runner]:
        ((n_trials, share),) = plan
        chooser = _Optuna(self._names, self._method, self._seed)
        runners = [self._runner(one) for one in self._factors(FIRST_OPTUNA)]
        runners = runners[:n_trials]
        self._untuned = runners[0]
        self._make_trials(runners, 0, share)
        for runner in runners:
            chooser.add(runner.settings, self._merit_of(runner))
        while len(runners) < n_trials:
            settings = chooser.ask()
            method = replace(self._method, **settings)
            runner = _Runner(method=method, settings=settings)
            self._make_trials([runner], 0, share)
            chooser.tell(self._merit_of(runner))
            runners.append(runner)
        return runners

    # --------------------------------------------------------------------- reporting

    def _report(self, best: _Runner) -> TuningReport:
        result = best.result
        return TuningReport(
            options={name: float(getattr(best.method, name)) for name in self._names},
            chosen=best.trial,
            trials=tuple(self._trials),
            penalty=self._penalty,
            sampler=self._tuning.sampler,
            x=np.array(result.x),
            weights=result.weights if self._takes_weights else None,
        )

    def _stopped(self, status: Status) -> Result:
        """Return the best of all trials so far, as the result of a call cut short."""
        known = [place for place, one in enumerate(self._results) if one is not None]
        place = min(known, key=lambda k: (self._trials[k].merit, k))
        result = self._results[place]
        best = _Runner(
            method=result.method,
            settings=self._trials[place].settings,
            result=result,
            trial=place,
        )
        joined = self._joined(result, self._report(best), of_trial=True)
        joined.status = status
        joined.success = bool(joined.success and status.is_planned)
        if status != result.status:
            joined.message = f"{status.sentence} {joined.message}"
        return joined

    def _joined(
        self, result: Result, report: TuningReport, *, of_trial: bool
    ) -> Result:
        """Return a result in which the trials are counted."""
        joined = Result(result)
        if not of_trial:
            self._digests.append(result.digest)
            self._failures.append(result.failures)
            self._costs.append(result.costs)
            used, history = self._used, dict(result.history)
            history["iteration"] = history["iteration"] + (used.iterations or 0)
            history["n_queries"] = history["n_queries"] + (used.queries or 0)
            history["elapsed"] = history["elapsed"] + (used.time or 0.0)
            n_asked, n_failed = (
                report.ncev,
                sum(f.n_failed for f in self._failures[:-1]),
            )
            history["n_constraint_queries"] = history["n_constraint_queries"] + n_asked
            history["n_failed"] = history["n_failed"] + n_failed
            joined.history = history
        extra = 0 if of_trial else 1
        joined.nit = report.nit + extra * result.nit
        joined.nfev = report.nfev + extra * result.nfev
        joined.ncev = report.ncev + extra * result.ncev
        joined.seed = self._seed
        joined.costs = _sum_of_costs(self._costs, joined.nfev, joined.ncev)
        joined.failures = _joined_failures(self._failures)
        text = "".join(self._digests).encode()
        joined.digest = hashlib.sha256(text).hexdigest()
        joined.tuning = report
        joined.message = f"{_said(report)} {result.message}"
        return joined


class _StoppedError(Exception):
    """A person or a callback ended the call in the middle of the trials."""

    def __init__(self, status: Status) -> None:
        self.status = status


class _Optuna:
    """Has Optuna's TPE sampler choose settings, one after the other."""

    def __init__(self, names: Sequence[str], method: Any, seed: int) -> None:
        try:
            import optuna
        except ImportError as missing:
            raise MissingExtraError(
                'Tuning with sampler="optuna" needs optuna: pip install "dszog[tune]".'
            ) from missing
        self._optuna = optuna
        self._ranges: dict[str, Any] = {}
        for name in names:
            untuned, (low, high) = float(getattr(method, name)), SPAN[name]
            self._ranges[name] = optuna.distributions.FloatDistribution(
                low * untuned, high * untuned, log=True
            )
        level = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            self._study = optuna.create_study(
                sampler=optuna.samplers.TPESampler(
                    seed=seed % 2**32, n_startup_trials=FIRST_OPTUNA
                )
            )
        finally:
            optuna.logging.set_verbosity(level)
        self._asked: Any = None

    def add(self, settings: dict[str, float], value: float) -> None:
        """Let Optuna know of a trial that it did not choose."""
        if math.isfinite(value):
            self._study.add_trial(
                self._optuna.trial.create_trial(
                    params=settings, distributions=self._ranges, value=value
                )
            )

    def ask(self) -> dict[str, float]:
        """Return the settings to try next."""
        self._asked = self._study.ask(self._ranges)
        return {name: float(value) for name, value in self._asked.params.items()}

    def tell(self, value: float) -> None:
        """Tell what came of them."""
        if math.isfinite(value):
            self._study.tell(self._asked, value)
        else:
            failed = self._optuna.trial.TrialState.FAIL
            self._study.tell(self._asked, state=failed)


def tunable(method: Any, fixed: frozenset[str]) -> list[str]:
    """Return the fields that can be tuned: numbers which the caller left open."""
    return [
        name
        for name in TUNED
        if name not in fixed
        and name in {item.name for item in fields(method)}
        and isinstance(getattr(method, name), (int, float))
    ]


def check_tuning(
    tune: Any, method: Any, fixed: frozenset[str], has_budget: bool, is_saved: bool
) -> Tuning | None:
    """Return how to tune, None for not at all; refuse what cannot work."""
    if isinstance(tune, (bool, np.bool_)):
        if not tune:
            return None
        tune = Tuning()
    if not isinstance(tune, Tuning):
        raise InputError(
            f"minimize: `tune` must be True, False or a dszog.Tuning, got "
            f"{shown(tune)}. For example tune=dszog.Tuning(share=0.2)."
        )
    if is_saved:
        raise InputError(
            "minimize: `tune` cannot be saved and resumed, got a checkpoint folder "
            "beside it. Tune first: found = dszog.tune(...); then give "
            "options=found.options with the checkpoint."
        )
    if not has_budget:
        raise InputError(
            "minimize: `tune` uses a share of the budget, got none. Give max_queries, "
            "max_iterations or max_time."
        )
    name = type(method).__name__
    if not tunable(method, fixed):
        given = [one for one in TUNED if one in fixed and hasattr(method, one)]
        got = f"{' and '.join(given)} set" if given else "no step size with a number"
        raise InputError(
            f"minimize: there is nothing to tune in {name}, got {got}. Give the method "
            "by name and leave step_size or penalty open, or leave `tune` out."
        )
    if tune.sampler == "optuna":
        _Optuna([], method, 0)  # refused here if it is not installed
    return tune


def _halving(size: int) -> list[tuple[int, float]]:
    """Return rungs of fewer and longer trials, which together take the whole share."""
    rungs = [(size, 1.0)]
    while rungs[-1][0] > 2:
        n, budget = rungs[-1]
        if len(rungs) == 1 and n <= GROWTH:
            break
        rungs.append((max(math.ceil(n / GROWTH), 2), GROWTH * budget))
    total = sum(n * budget for n, budget in rungs)
    return [(n, budget / total) for n, budget in rungs]


def _ends_all(status: Status) -> bool:
    return status in (Status.INTERRUPTED, Status.STOPPED_BY_CALLBACK)


def _is_nothing(left: Limits) -> bool:
    return any(
        amount is not None and amount <= 0
        for amount in (left.iterations, left.queries, left.time)
    )


def _said(report: TuningReport) -> str:
    settings = {tuple(trial.settings.items()) for trial in report.trials}
    chosen = " and ".join(f"{k}={v:.3g}" for k, v in report.best.settings.items())
    return (
        f"Of {len(settings)} settings, tried with {report.n_queries:,} queries, "
        f"{chosen} was the best."
    )


def _sum_of_costs(costs: Sequence[Costs], nfev: int, ncev: int) -> Costs:
    """Return what all runs cost together."""
    if not costs:
        raise InputError("There is nothing to add up, got no costs. Give some.")
    summed: dict[str, Any] = {}
    for item in fields(Costs):
        values = [getattr(one, item.name) for one in costs]
        if isinstance(values[0], (int, float)):
            summed[item.name] = sum(values)
    events: dict[str, int] = {}
    for one in costs:
        for event, n in one.events.items():
            events[event] = events.get(event, 0) + n
    return replace(
        costs[-1],
        **summed | {"n_loss_queries": nfev, "n_constraint_queries": ncev},
        events=events,
    )


def _joined_failures(reports: Sequence[FailureReport]) -> FailureReport:
    kinds: dict[str, int] = {}
    for report in reports:
        for kind, n in report.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + n
    first = [one for report in reports for one in report.first]
    return FailureReport(
        policy=reports[0].policy,
        n_failed=sum(report.n_failed for report in reports),
        n_points=sum(report.n_points for report in reports),
        n_rejected=sum(report.n_rejected for report in reports),
        kinds=kinds,
        first=tuple(first[:N_SHOWN]),
    )
