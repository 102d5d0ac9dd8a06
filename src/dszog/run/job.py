"""All that one call of a front door asks for, as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.interrupts import Interrupts
from dszog.problem import Problem
from dszog.run.failures import OnFailure
from dszog.run.history import Callback
from dszog.run.meter import Answer, Limits
from dszog.run.run import Saver

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
    answer: Answer  # the evaluator
    callbacks: Sequence[Callback] = ()
    on_failure: OnFailure = "raise"
    weights: tuple[IntArray, FloatArray] | None = None
    notes: tuple[str, ...] = ()
    saver: Saver | None = None
    on_interrupt: OnInterrupt = "return"
    interrupts: Interrupts = field(default_factory=Interrupts)
