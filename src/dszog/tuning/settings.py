"""How to tune: what the caller may say about it, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from dszog.contract.validation import (
    check_choice,
    check_count_fields,
    check_share,
    shown,
)
from dszog.errors import InputError
from dszog.tuning.tpe import import_optuna

Sampler: TypeAlias = Literal["halving", "optuna"]
SAMPLERS: tuple[str, ...] = get_args(Sampler)
TUNED = ("step_size", "penalty")


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
        check_count_fields(self, "n_settings", least=2, optional=True)


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
        import_optuna()  # refused here if it is not installed
    return tune
