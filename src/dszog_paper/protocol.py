"""What one run is, and how much is run: grids, repetitions and limits."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any, Literal, TypeAlias

from dszog_paper.tasks import Model

TaskName: TypeAlias = Literal["pairwise", "fairness"]
Form: TypeAlias = Literal["none", "lifted", "full"]
Limit: TypeAlias = Literal["time", "queries"]
Setting: TypeAlias = tuple[tuple[str, float], ...]
Stage: TypeAlias = tuple[Setting, ...]

DATA_SEED = 2022  # of splits and generated data, the same for all methods
OURS = "ours"  # this library's settings of DSZOG, beside the published ones

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


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One run of one method on one repetition of one data set, to the last number.

    Two equal units give equal results. The names of files of records are made from all
    fields: a new or renamed one would make every run again.
    """

    task: TaskName
    data: str  # a name of the paper: a9a, svm, gen, D1, ..., or of real fairness data
    stand_in: bool = False  # generated look-alikes, as the files are not at hand
    model: Model = "linear"
    method: str  # a name of `dszog.METHODS`, or `OURS`
    form: Form = "none"  # how pairs are handed to subproblems; "none" without any
    setting: Setting = ()  # fields of the method that differ from its comparison ones
    repetition: int = 0  # of the split and of the run, the same for all methods
    iterations: int | None = None  # where the run ends, as the next two
    queries: int | None = None
    seconds: float | None = None

    @property
    def key(self) -> str:
        """A name for files: the same for equal units only."""
        text = json.dumps(self.as_json(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def with_setting(self, **values: float) -> Unit:
        """Return the unit with some fields of the method changed."""
        merged = dict(self.setting) | values
        return replace(self, setting=tuple(sorted(merged.items())))

    def again(self, repetition: int) -> Unit:
        return replace(self, repetition=repetition)

    def as_json(self) -> dict[str, Any]:
        fixed = {"width_factor": 1.0, "variant": "zafar"}  # in all records ever made
        return dict(json.loads(json.dumps(asdict(self) | fixed)))


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
    """

    name: str
    n_selection: int = 2  # repetitions that settings are chosen on
    n_repetitions: int = 10  # repetitions that are reported
    kernel_repetitions: int = 1
    iterations: int = 2000  # of DSZOG, as the next
    kernel_iterations: int = 10_000
    seconds: float = 10.0  # of every run of another method, if time is the limit
    queries: int = 2_000_000  # of every run of another method, if queries are
    limit: Limit = "time"
    stages: tuple[Stage, ...] = (
        grid(step_size=STEPS, dual_step_size=STEPS),
        grid(penalty=PENALTIES),
        grid(averaging=AVERAGINGS, dual_averaging=AVERAGINGS),
    )
    ours: Stage = (  # settings of this library's own variant to choose from
        (("penalty", 3.0), ("step_size", 0.01)),
        (("penalty", 30.0), ("step_size", 0.005)),
        (("penalty", 100.0), ("step_size", 0.002)),
    )
    steps: tuple[float, ...] = STEPS  # learning rates of the other methods

    def ends(self) -> dict[str, Any]:
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
