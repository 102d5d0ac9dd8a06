"""One run of one method on one repetition of one data set: the unit of all tables."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from dszog_paper.tasks.fairness import Variant
from dszog_paper.tasks.models import Model

TaskName: TypeAlias = Literal["pairwise", "fairness"]
Form: TypeAlias = Literal["none", "lifted", "full"]
Setting: TypeAlias = tuple[tuple[str, float], ...]

DATA_SEED = 2022  # of splits and generated data, the same for all methods
OURS = "ours"  # this library's settings of DSZOG, beside the published ones


@dataclass(frozen=True, kw_only=True)
class Unit:
    """What is run, down to the last number; two equal units give equal results.

    Parameters
    ----------
    task : {"pairwise", "fairness"}
    data : str
        A name of the paper: a9a, w8a, svm, gen, D1, ..., or of the real fairness data.
    stand_in : bool
        Whether generated look-alikes are used because the files are not at hand.
    method : str
        A name of `dszog.METHODS`, or ``"ours"``.
    form : {"none", "lifted", "full"}
        How pairs are handed to subproblems; ``"none"`` for methods without.
    setting : tuple of (name, value)
        Fields of the method that differ from its comparison settings.
    repetition : int
        Of the split and of the run, the same for all methods.
    iterations, queries, seconds : optional
        Where the run ends.
    """

    task: TaskName
    data: str
    stand_in: bool = False
    model: Model = "linear"
    width_factor: float = 1.0
    variant: Variant = "zafar"
    method: str
    form: Form = "none"
    setting: Setting = ()
    repetition: int = 0
    iterations: int | None = None
    queries: int | None = None
    seconds: float | None = None

    @property
    def key(self) -> str:
        """A name for files: the same for equal units only."""
        text = json.dumps(asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:24]

    def with_setting(self, **values: float) -> Unit:
        """Return the unit with some fields of the method changed."""
        merged = dict(self.setting) | values
        return replace(self, setting=tuple(sorted(merged.items())))

    def again(self, repetition: int) -> Unit:
        """Return the same run on another repetition."""
        return replace(self, repetition=repetition)

    def as_json(self) -> dict[str, Any]:
        """Return the fields as JSON has them."""
        return dict(json.loads(json.dumps(asdict(self))))
