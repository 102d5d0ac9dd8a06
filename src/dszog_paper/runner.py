"""Runs a unit: makes its data and its method, runs, judges the last iterate."""

from __future__ import annotations

import math
import time
from functools import lru_cache
from typing import Any

import dszog
from dszog.contract.arrays import FloatArray
from dszog.run.accounting import Ledger
from dszog.run.feasible_set import with_feasible_set
from dszog.run.history import Progress
from dszog.run.loop import Position, advance
from dszog.run.meter import Limits, Meter
from dszog.workers import EVALUATORS
from dszog_paper.data import (
    GENERATED,
    Samples,
    Split,
    generate,
    load,
    paper_split,
    stand_in,
)
from dszog_paper.protocol import DATA_SEED, OURS, Unit
from dszog_paper.tasks import Task, fairness_task, pairwise_task

FILES = {"svm": "svmguide3"}  # names of the paper that differ from ours
N_PAIRWISE = 1000  # rows that the paper draws from each data set
PAIRWISE_BATCH, FAIRNESS_BATCH = 128, 10  # |M2| = |M3|
LOSS_BATCH = 128
TRACE_STEP = 1.15  # looks at the iterate, each that much later than the one before
TRACED = ("test_accuracy", "unit_share_violated", "unit_worst_violation")


def run_unit(unit: Unit, data: str | None = None) -> dict[str, Any]:
    """Run a unit and return its record, which JSON can hold."""
    # What depends on the machine's speed is under ``"time"``, nothing else.
    # Nothing about the method: all methods that ask for a task get the same one.
    about_the_task = ("task", "data", "stand_in", "model", "repetition")
    where = {name: getattr(unit, name) for name in about_the_task}
    task = _task(Unit(method="", **where), data)
    judged = _run(unit, task)
    w = judged.pop("w")
    return {
        "unit": unit.as_json(),
        **judged,
        "n_constraints": len(task.constraints),
        "dim": task.dim,
        "objective": task.objective(w),
        "train_accuracy": task.accuracy(w, "train"),
        "validation_accuracy": task.accuracy(w, "validation"),
        "test_accuracy": task.accuracy(w, "test"),
        "majority_share": task.majority_share,
        "logistic_accuracy": task.logistic_accuracy,
        **task.violations(w),
    }


# ------------------------------------------------------------------------- the data


@lru_cache(maxsize=8)
def _samples(
    name: str, as_stand_in: bool, repetition: int, data: str | None
) -> Samples:
    if name in GENERATED:
        return generate(name, seed=DATA_SEED, repetition=repetition)
    file = FILES.get(name, name)
    if as_stand_in:
        return stand_in(file, seed=DATA_SEED)
    return load(file, data=data, allow_download=False)


def make_split(unit: Unit, data: str | None = None) -> Split:
    """Return the split of a unit; only generated data differ from run to run."""
    generated = unit.data in GENERATED
    turn = unit.repetition if generated else 0
    samples = _samples(unit.data, unit.stand_in, turn, data)
    n = samples.n_rows if generated else min(N_PAIRWISE, samples.n_rows)
    return paper_split(samples, seed=DATA_SEED, repetition=unit.repetition, n_samples=n)


@lru_cache(maxsize=12)
def _task(unit: Unit, data: str | None) -> Task:
    split = make_split(unit, data)
    if unit.task == "pairwise":
        return pairwise_task(split, unit.model)
    return fairness_task(split, unit.model)


# ------------------------------------------------------------------------ the method


def make_method(unit: Unit, n_losses: int, n_constraints: int) -> Any:
    """Return the method with the settings of the paper's comparison and the unit's."""
    setting: dict[str, Any] = dict(unit.setting)
    batch = PAIRWISE_BATCH if unit.task == "pairwise" else FAIRNESS_BATCH
    if unit.method == OURS:
        return dszog.DSZOG(**setting)
    if unit.method == "dszog":
        sizes = {
            "loss_batch": min(LOSS_BATCH, n_losses),
            "constraint_batch": batch,
            "dual_batch": min(batch, n_constraints),
        }
        return dszog.DSZOG.as_published(**(sizes | setting))
    kind: Any = dszog.METHODS[unit.method]
    setting |= {
        "form": "lifted" if unit.form == "none" else unit.form,
        "ball": "l2",
        "nonconvex": "retract",
    }
    if unit.method in ("fzfw", "fzcgs", "fcgs", "accszofw"):
        setting["n_losses"] = n_losses
    return kind.for_comparison(**setting)


def _run(unit: Unit, task: Task) -> dict[str, Any]:
    """Run a method as its paper has it; its answer is the last iterate."""
    plain = unit.method in ("dszog", OURS)
    problem = task.problem(white_constraints=not plain, gradient=unit.method == "fcgs")
    method = make_method(unit, len(task.losses), len(task.constraints))
    if not plain:
        method, _ = with_feasible_set(problem, method)
    end = Limits(iterations=unit.iterations, queries=unit.queries, time=unit.seconds)
    evaluator = EVALUATORS["serial"](problem)
    # CPU time: what else the machine does takes nothing from a run.
    meter = Meter(evaluator, problem.size, unit.queries, clock=time.process_time)
    ledger = Ledger(lambda: meter.elapsed)
    ledger.until = math.inf if unit.seconds is None else unit.seconds
    method = ledger.watched(method.planned(problem.size, unit.iterations, unit.queries))
    trace = _Trace(task, meter, ledger)
    state = method.init(problem.x0, problem.size, unit.repetition)
    trace.look(state.x)
    start = Position.at(state)
    outcome = advance(method, start, meter, end=end, callbacks=[trace])
    trace.look(outcome.position.state.x)
    return {
        "w": outcome.position.state.x,
        "ended_by": outcome.status.name,
        "iterations": meter.n_iterations,
        "loss_queries": meter.n_loss_queries,
        "constraint_queries": meter.n_constraint_queries,
        "rows_respected": ledger.n_rows,
        "oracle_calls": ledger.n_oracle_calls,
        "projections": ledger.n_projections,
        "events": dict(ledger.events + meter.events),
        "trace": trace.columns,
        "time": {
            "seconds": meter.elapsed - trace.seconds,
            "estimate": meter.evaluation_time,
            "subproblem": ledger.seconds,
            "trace": trace.elapsed,
        },
    }


class _Trace:
    """Looks at the iterates now and then; its own time is taken off."""

    def __init__(self, task: Task, meter: Meter, ledger: Ledger) -> None:
        self._task, self._meter, self._ledger = task, meter, ledger
        self._next = 1.0
        self.seconds = 0.0
        self.elapsed: list[float] = []
        self.columns: dict[str, list[float]] = {}

    def __call__(self, progress: Progress) -> None:
        if progress.iteration >= self._next:
            self._next = max(TRACE_STEP * self._next, self._next + 1.0)
            self.look(progress.x)

    def look(self, x: FloatArray) -> None:
        meter = self._meter
        before = meter.elapsed
        found = self._task.violations(x)
        found["test_accuracy"] = self._task.accuracy(x, "test")
        row = {
            "iteration": meter.n_iterations,
            "loss_queries": meter.n_loss_queries,
            "constraint_queries": meter.n_constraint_queries + self._ledger.n_rows,
            **{name: found[name] for name in TRACED},
        }
        for name, value in row.items():
            self.columns.setdefault(name, []).append(float(value))
        self.elapsed.append(before - self.seconds)
        self.seconds += meter.elapsed - before
