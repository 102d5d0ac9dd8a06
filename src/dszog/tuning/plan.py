"""How to tune: what the caller says, which settings are tried, what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np

from dszog.contract.validation import check_count_fields, check_share, shown
from dszog.errors import InputError
from dszog.run.meter import Limits

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
MORE_PENALTIES = (100.0, 0.1, 1000.0)  # where nothing else is tuned
GROWTH = 3  # of a trial's budget from one rung to the next, where a third is kept
SIZES = (12, 9, 6, 4, 3, 2)  # settings in the first rung, as many as there is room for
USEFUL_STEPS = 3  # a trial has room for that many first steps, with their check
USEFUL_ITERATIONS = 10
TUNED = ("step_size", "penalty")


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """How to choose step size and penalty before a run; ``minimize(tune=Tuning())``.

    Parameters
    ----------
    share : float
        Of the budget, in (0, 1], that trials may use. With 1 there is no run after
        them, and the best trial is the result.
    n_settings : int, optional
        Settings to try at most, of which the untuned one is the first; as many as the
        share has room for, up to 12, if not given.
    """

    share: float = 0.3
    n_settings: int | None = None

    def __post_init__(self) -> None:
        check_share(self, share="Try 0.3.")
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
    return tune


class Rung(NamedTuple):
    """Trials of the same length."""

    size: int  # settings
    share: float  # of the budget, each


@dataclass(frozen=True, kw_only=True)
class Planner:
    """Plans the trials of one call."""

    tuning: Tuning
    names: Sequence[str]  # of the fields that are tuned
    limits: Limits  # of trials and run together
    needed: Callable[[int], int]  # queries of a step and its check, if n are allowed

    def factors(self, n: int) -> list[tuple[float, float]]:
        found: dict[tuple[float, float], None] = {}
        for step, penalty in FACTORS:
            found[
                step if "step_size" in self.names else 1.0,
                penalty if "penalty" in self.names else 1.0,
            ] = None
        if list(self.names) == ["penalty"]:
            found |= dict.fromkeys((1.0, factor) for factor in MORE_PENALTIES)
        return list(found)[:n]

    def rungs(self) -> list[Rung]:
        """Return how many settings are tried, and with which share of the budget."""
        # Refused if there is no room for two trials and the run.
        wanted = self.tuning.n_settings or len(FACTORS)
        most = min(len(self.factors(len(FACTORS))), wanted)
        sizes = dict.fromkeys([most, *(size for size in SIZES if size <= most)])
        plans = [_halving(size) for size in sizes]
        for plan in plans:
            scaled = [Rung(size, share * self.tuning.share) for size, share in plan]
            if self._has_room(scaled):
                return scaled
        raise self._no_room(plans[-1])

    def _has_room(self, plan: list[Rung]) -> bool:
        shortest = min(rung.share for rung in plan)
        limits, has_run = self.limits, self.tuning.share < 1.0
        if limits.iterations is not None:
            left = limits.iterations - _in_all(plan, limits.iterations)
            short = int(shortest * limits.iterations) < USEFUL_ITERATIONS
            if short or (left < 1 and has_run):
                return False
        if limits.queries is None:
            return True
        if int(shortest * limits.queries) < USEFUL_STEPS * self.needed(1):
            return False
        left = limits.queries - _in_all(plan, limits.queries)
        return not has_run or (left >= 1 and self.needed(left) <= left)

    def _no_room(self, plan: list[Rung]) -> InputError:
        share = self.tuning.share
        each = min(rung.share for rung in plan) * share
        needs, got = [], []
        if self.limits.iterations is not None:
            needs.append(f"max_iterations={math.ceil(USEFUL_ITERATIONS / each)}")
            got.append(f"max_iterations={self.limits.iterations}")
        if self.limits.queries is not None:
            least = math.ceil(USEFUL_STEPS * self.needed(1) / each)
            needs.append(f"max_queries={least}")
            got.append(f"max_queries={self.limits.queries}")
        return InputError(
            f"minimize: the smallest tuning, two trials in {share:g} of the budget, "
            f"needs about {' and '.join(needs)}, got {' and '.join(got)}. Give a "
            "larger budget or share, or leave `tune` out."
        )


def _in_all(plan: list[Rung], total: int) -> int:
    """Return what all trials together may use of a budget."""
    return sum(rung.size * int(rung.share * total) for rung in plan)


def _halving(size: int) -> list[Rung]:
    """Return rungs of fewer and longer trials, which together take the whole share."""
    rungs = [Rung(size, 1.0)]
    while rungs[-1].size > 2:
        n, budget = rungs[-1]
        if len(rungs) == 1 and n <= GROWTH:
            break
        rungs.append(Rung(max(math.ceil(n / GROWTH), 2), GROWTH * budget))
    total = sum(n * budget for n, budget in rungs)
    return [Rung(n, budget / total) for n, budget in rungs]
