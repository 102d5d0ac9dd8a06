"""Which settings are tried, in how many rungs, and whether there is room for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dszog.errors import InputError
from dszog.run.meter import Limits
from dszog.tuning.settings import Tuning

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
MOST_OPTUNA = 16


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
        """Return the first so many factors that differ in what is tuned."""
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
        """Return how many settings are tried, and with which share of the budget.

        Refused if there is no room for two trials and the run.
        """
        wanted = self.tuning.n_settings
        if self.tuning.sampler == "optuna":
            most = MOST_OPTUNA if wanted is None else wanted
            plans = [[Rung(size, 1.0 / size)] for size in range(most, 1, -1)]
        else:
            most = min(len(self.factors(len(FACTORS))), wanted or len(FACTORS))
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
