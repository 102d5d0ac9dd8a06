"""How a run uses a method: in which rounds, and what it changes between them.

A run knows rounds, budgets and restarts. What to do about them is the method's own:
``method.policy(fixed)`` returns one of these; a method without it gets :class:`Policy`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar

from dszog.contract.arrays import FloatArray, freeze
from dszog.methods.base import Info

Runaway: TypeAlias = Literal["", "rose", "fell"]
Mean = TypeVar("Mean", float, FloatArray)

AVERAGE_POWER = 8  # the average gives iterate t a weight that grows as t^8
RUNAWAY = 1e4  # sampled values this many times the scale of the start have run away
SMALLER_STEP = 0.25  # after iterates ran away
MAX_RESTARTS = 3  # where the objective fell: a smaller step only takes longer to do so
LEAST_STEP = 1e-15  # a step that is smaller moves nothing of order one
RAN_AWAY = "The iterates ran away"  # how the sentence about that begins


@dataclass(frozen=True, kw_only=True)
class RoundReport:
    """What a policy is told when a round is over, or has run away."""

    constraint_tol: float
    weighted_violation: float  # sum_j p_j max(f_j, 0), averaged over the last iterates
    objectives: FloatArray  # sampled in the run so far
    n_restarts: int  # before
    fell: bool  # whether the objective fell so far that the iterates ran away


class Policy:
    """One round, nothing changed; iterates are averaged and watched."""

    shares: tuple[float, ...] = (1.0,)  # of the budget, after which rounds end

    def averaged(self, average: FloatArray, state: Any, n: int) -> FloatArray:
        """Return the average of `n` iterates, of which the state has the last."""
        return freeze(decayed(average, state.x, n, AVERAGE_POWER))

    def runaway(self, first: dict[str, float], info: Info) -> Runaway:
        """Return how values left the scale of the first ones; empty if they did not."""
        # Values, not the size of ``x``: how large ``x`` may become is the problem's
        # affair. The first ones are put into `first`.
        for name, value in (
            ("objective", info.sampled_objective),
            ("violation", info.sampled_violation),
        ):
            at_first = first.get(name)
            if at_first is None:
                if math.isfinite(value):
                    first[name] = value
            elif math.isfinite(value):
                limit = RUNAWAY * max(abs(at_first), 1.0)
                if abs(value - at_first) > limit:
                    return "rose" if value > at_first else "fell"
        return ""

    def after_round(self, method: Any, report: RoundReport) -> tuple[Any, str]:
        """Return the method for the next round, and what to say of it."""
        return method, ""

    def after_runaway(self, method: Any, report: RoundReport) -> tuple[Any, str] | None:
        """Return the method to start again with, and what to say; None: give up."""
        return None


class Guarded(Policy):
    """For methods that take no step that makes things worse: the last is the best."""

    def averaged(self, average: FloatArray, state: Any, n: int) -> FloatArray:
        """Return what may be better than the last iterate if it is not feasible."""
        fallback: FloatArray = state.fallback
        return fallback

    def runaway(self, first: dict[str, float], info: Info) -> Runaway:
        """Return that values did not run away: the method itself sees to it."""
        return ""


class SlowsDown(Policy):
    """Start again with a smaller step after iterates ran away."""

    def after_runaway(self, method: Any, report: RoundReport) -> tuple[Any, str] | None:
        """Return the method with a quarter of its step."""
        # As often as need be: the budget ends it. Only an objective that fell is given
        # up after a few times.
        step_size, n = method.step_size, report.n_restarts
        if n >= MAX_RESTARTS and (report.fell or step_size < LEAST_STEP):
            return None
        smaller = SMALLER_STEP * step_size
        said = f"{RAN_AWAY} with step_size={step_size:g}; "
        said += f"the run was started again with {smaller:g}."
        if n:
            said = f"{RAN_AWAY}; the run was started again {n + 1} "
            said += f"times with smaller steps, the last time with {smaller:g}."
        return replace(method, step_size=smaller), said


ONE_ROUND, GUARDED, SLOWS_DOWN = Policy(), Guarded(), SlowsDown()


def policy_of(method: Any, fixed: frozenset[str] = frozenset()) -> Policy:
    """Return how to use a method, of which the caller has set the `fixed` fields."""
    if not hasattr(method, "policy"):
        return ONE_ROUND
    policy: Policy = method.policy(fixed)
    return policy


def penalty_of(method: Any, state: Any, default: float = math.nan) -> float:
    """Return the penalty of a method, or what to take where it has none."""
    if hasattr(method, "penalty_at"):  # in units that the state knows
        return float(method.penalty_at(state))
    return float(getattr(method, "penalty", default))


def decayed(mean: Mean, value: Mean, n: int, power: int) -> Mean:
    """Return the mean of `n` values, of which the t-th weighs about ``t**power``."""
    # No horizon is needed, and early values are forgotten.
    return mean + (power + 1) / (n + power) * (value - mean)
