"""One call of a front door as values: what it asks for, and where it stands.

A `Job` holds its arguments, a `Run` what a checkpoint holds and what goes on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeAlias

from dszog._log import LOGGER
from dszog.contract import Evaluate, ProblemSize
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.interrupts import Interrupts
from dszog.problem import Problem
from dszog.run.failures import OnFailure
from dszog.run.history import Callback, Counts, FailureCounts, Rows, SubproblemCounts
from dszog.run.loop import Position
from dszog.run.meter import Limits, ReplyLog


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """One call of a front door: what was changed in it, and how far it is."""

    limits: Limits
    start: FloatArray  # (dim,), where iterates begin
    notes: tuple[str, ...]  # what to say of it at its end
    method: Any  # as the policy has changed it
    planned: Any  # the same, told how far this round goes
    attempt: int  # how often the run was started again
    round: int
    ends: tuple[Limits, ...]  # of the rounds
    position: Position
    counts: Counts
    failures: FailureCounts
    history: Rows
    subproblems: SubproblemCounts

    def noted(self, sentence: str) -> Run:
        """Return the run with more to say of it, once; the log hears it too."""
        if sentence in self.notes:
            return self
        LOGGER.info("%s", sentence)
        return replace(self, notes=(*self.notes, sentence))


@dataclass(frozen=True, eq=False, kw_only=True)
class Ending:
    """How a run ended, for those who look at its folder."""

    said: str  # the verdict, or what went wrong
    success: bool
    notes: tuple[str, ...]
    evidence: tuple[str, ...]
    objective: float  # at the result, evaluated afresh
    violation: float
    counts: Counts
    history: Rows
    indices: IntArray  # of the constraints that weigh most
    weights: FloatArray


@dataclass(frozen=True, kw_only=True)
class SizeNote:
    """What is known of calls that learn how many values functions return."""

    n_calls: int  # by all processes, each counted before it is made
    about: dict[str, str]  # the problem that they are of
    widths: tuple[int, ...]  # what they told; empty until they have


class Saver(Protocol):
    """Saves a run and brings it back: a folder of checkpoints."""

    @property
    def place(self) -> str: ...  # the folder
    @property
    def n_noted(self) -> int: ...  # calls that learned sizes, by all processes
    @property
    def n_failed(self) -> int: ...  # writes
    @property
    def is_due(self) -> bool: ...  # whether it is time for the next checkpoint
    @property
    def wants_stop(self) -> bool: ...  # whether somebody asked the run to end
    def load(self, size: ProblemSize) -> Run | None: ...
    def save(self, run: Run, seed: int) -> None: ...
    def log(self, *, is_timed: bool) -> ReplyLog: ...  # the replies since the last one
    def sync(self) -> None: ...


OnInterrupt: TypeAlias = Literal["return", "raise"]


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """The arguments of `minimize`, checked, and what was made of them."""

    problem: Problem
    method: Any
    fixed: frozenset[str]  # fields of the method that the caller set
    limits: Limits
    constraint_tol: float
    seed: int
    answer: Evaluate  # the evaluator
    callbacks: Sequence[Callback] = ()
    on_failure: OnFailure = "raise"
    weights: tuple[IntArray, FloatArray] | None = None
    notes: tuple[str, ...] = ()
    saver: Saver | None = None
    on_interrupt: OnInterrupt = "return"
    interrupts: Interrupts = field(default_factory=Interrupts)
