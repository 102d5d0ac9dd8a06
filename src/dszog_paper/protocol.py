"""How much is run: grids, repetitions and limits, quick or in full."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any, Literal, TypeAlias

from dszog_paper.units import Setting

Limit: TypeAlias = Literal["time", "queries"]
Stage: TypeAlias = tuple[Setting, ...]

STEPS = (1e-2, 1e-3, 1e-4)  # the paper's grid of learning rates
PENALTIES = (0.1, 1.0, 10.0)
AVERAGINGS = (0.1, 0.5, 0.9)
PUBLISHED: Setting = (
    ("averaging", 0.5),
    ("dual_averaging", 0.5),
    ("dual_step_size", 1e-2),
    ("penalty", 1.0),
    ("step_size", 1e-2),
)
"""Where the choice of DSZOG's settings begins."""
KERNEL: Setting = (
    ("averaging", 0.9),
    ("dual_averaging", 0.9),
    ("dual_step_size", 0.1),
    ("penalty", 0.1),
    ("step_size", 1e-3),
)
"""DSZOG's settings in Tables 10 to 12."""


def grid(**values: tuple[float, ...]) -> Stage:
    """Return every combination of the values, as settings."""
    names = sorted(values)
    return tuple(
        tuple(zip(names, choice, strict=True))
        for choice in product(*(values[name] for name in names))
    )


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Grids, repetitions and limits.

    DSZOG's settings are chosen stage by stage, each on top of the choice before: the
    two step sizes, the penalty, the two averagings. (All 243 combinations at once would
    take ten times as long.) Always by the mean accuracy on the validation part.

    Parameters
    ----------
    name : str
    n_selection, n_repetitions : int
        Repetitions that settings are chosen on, and that are reported.
    iterations, kernel_iterations : int
        Of DSZOG, for linear and for kernel models.
    seconds : float
        Of every run of another method, if time is the limit.
    queries : int
        Of every run of another method, if queries are the limit.
    limit : {"time", "queries"}
    stages : tuple of stages
        Settings of DSZOG to choose from.
    ours : stage
        Settings of this library's own variant to choose from.
    steps : tuple of float
        Learning rates of the other methods.
    sensitivity : tuple of float
        Values in the tables that vary a step size.
    """

    name: str
    n_selection: int = 2
    n_repetitions: int = 10
    kernel_repetitions: int = 1
    iterations: int = 2000
    kernel_iterations: int = 10_000
    seconds: float = 10.0
    queries: int = 2_000_000
    limit: Limit = "time"
    stages: tuple[Stage, ...] = field(
        default_factory=lambda: (
            grid(step_size=STEPS, dual_step_size=STEPS),
            grid(penalty=PENALTIES),
            grid(averaging=AVERAGINGS, dual_averaging=AVERAGINGS),
        )
    )
    ours: Stage = (
        (("penalty", 3.0), ("step_size", 0.01)),
        (("penalty", 30.0), ("step_size", 0.005)),
        (("penalty", 100.0), ("step_size", 0.002)),
    )
    steps: tuple[float, ...] = STEPS

    def ends(self, *, kernel: bool = False) -> dict[str, Any]:
        """Return the limits of a run of another method than DSZOG."""
        if self.limit == "queries":
            return {"queries": self.queries}
        return {"seconds": self.seconds}


FULL = Protocol(name="full")

QUICK = Protocol(
    name="quick",
    n_selection=1,
    n_repetitions=2,
    iterations=600,
    kernel_iterations=600,
    seconds=1.5,
    queries=300_000,
    stages=(grid(step_size=(1e-2, 1e-3)), grid(penalty=(0.1, 1.0))),
    ours=((("penalty", 30.0), ("step_size", 0.01)),),
    steps=(1e-2, 1e-3),
)
