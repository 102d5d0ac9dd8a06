"""Evidence for a point: fresh values, and how many constraints were looked at."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray
from dszog.evidence.stationarity import Stationarity
from dszog.methods.base import FirstOrder

EXCEEDED = 1e-6  # a violation that is more than rounding
N_NAMED = 3  # cases without a value that are named


@dataclass(frozen=True, kw_only=True)
class CallCounts:
    """How many calls a sampled check made, where one call gives many constraints."""

    n_calls: int  # that a look at all constraints would take
    n_drawn: int
    n_violated: int  # of these: with a value above 0, or one that is not known
    n_suspects: int  # made in addition, as those of a Feasibility


@dataclass(frozen=True, eq=False, kw_only=True)
class Feasibility:
    """What is known about the constraints at a point, and from how many of them.

    ``worst_value`` is the largest constraint value *among those checked*, negative if
    all of these hold. ``share_bound`` is an upper bound on the share of all constraints
    that are violated: the share itself where all were checked, otherwise a one-sided
    95 % bound from the uniform draw, in which a value that is not known counts as a
    violation. Where one call of a function gives many constraints, calls are drawn and
    all their values looked at; the bound is then on the share of calls with a violation
    (``calls`` has their numbers).
    """

    kind: Literal["structure", "all", "sampled", "none", "unchecked"]
    n_constraints: int
    n_checked: int = 0  # uniformly drawn ones, or all
    n_violated: int = 0  # of these
    n_suspects: int = 0  # in addition: suspects, and a draw that chose the point
    n_unknown: int = 0  # of all that were checked, those that gave no value
    worst_value: float = math.nan
    worst_index: int = -1
    sum_squares: float = math.nan  # of max(f_j, 0) over the checked ones
    share_bound: float = 1.0
    worst_indices: IntArray = field(repr=False, default_factory=lambda: NO_INDICES)
    worst_values: FloatArray = field(repr=False, default_factory=lambda: np.empty(0))
    calls: CallCounts | None = None  # of a sample in which a call gives many
    worst_names: tuple[str, ...] = ()  # of the first `worst_indices`, if they have any
    # Where a call gives many: how many were made, and which gave no value.
    n_calls_made: int = 0
    lost_calls: IntArray = field(repr=False, default_factory=lambda: NO_INDICES)
    lost_names: tuple[str, ...] = ()  # of the first of these, if they are cases

    @property
    def is_exact(self) -> bool:
        """Whether every constraint was looked at."""
        return self.kind in ("structure", "all", "none") and not self.n_unknown

    @property
    def is_known(self) -> bool:
        """Whether all that was looked at gave a value."""
        return self.kind != "unchecked" and not self.n_unknown

    @property
    def maxcv(self) -> float:
        """The largest violation among the checked constraints; `nan` if not known.

        Of a simulator's cases among those that could be simulated.
        """
        some_cases = bool(self.lost_names) and math.isfinite(self.worst_value)
        if not self.is_known and not some_cases:
            return float("nan")
        return max(self.worst_value, 0.0) + 0.0 if self.n_constraints else 0.0

    @property
    def simulated(self) -> str:
        """How many cases of a simulator gave values, and the names of others."""
        n, n_lost = self.n_calls_made, len(self.lost_calls)
        if n_lost == n:
            return f"none of the {n:,} cases could be simulated"
        named = ", ".join(self.lost_names[:N_NAMED])
        more = max(n_lost - N_NAMED, 0)
        named += f" and {more:,} more" if more else ""
        return f"{n - n_lost:,} of {n:,} cases could be simulated, not {named}"

    def __str__(self) -> str:
        if self.kind == "unchecked":
            return "the constraints were not checked"
        if not self.n_constraints:
            return "there are no constraints but the bounds"
        name = f" ({self.worst_names[0]})" if any(self.worst_names[:1]) else ""
        worst = f"the worst{name} by {self.worst_value:.3g}"
        if not self.worst_value > 0.0:  # nor is it violated by 0
            named = f", closest to it{name}" if name else ""
            worst = f"none above 0{named}"
        unknown = f", {self.n_unknown:,} gave no value" if self.n_unknown else ""
        unknown = f"; {self.simulated}" if self.lost_names else unknown
        if self.kind != "sampled":
            n = self.n_constraints
            all_of = "the constraint" if n == 1 else f"all {n:,} constraints"
            if self.n_unknown == n:  # nothing to count
                return f"{all_of} asked for{unknown}"
            if self.n_unknown:
                all_of = f"{n - self.n_unknown:,} of {n:,} constraints"
            if self.n_violated:
                worst = f"{self.n_violated:,} above 0, {worst}"
            return f"{all_of} checked: {worst}{unknown}"
        bound = f"at most {rounded_up(100 * self.share_bound)} % of all"
        end = f"with 95 % confidence; among those checked, {worst}{unknown}"
        if self.calls is None:
            return (
                f"{self.n_checked:,} of {self.n_constraints:,} constraints drawn and "
                f"{self.n_suspects:,} others checked: {self.n_violated:,} of the "
                f"draw above 0, so {bound} {end}"
            )
        n_values = self.n_checked + self.n_suspects
        return (
            f"{self.calls.n_drawn:,} of {self.calls.n_calls:,} calls drawn and "
            f"{self.calls.n_suspects:,} others made, all their {n_values:,} of "
            f"{self.n_constraints:,} constraints checked: {self.calls.n_violated:,} "
            f"of the draw with one above 0, so {bound} calls {end}"
        )


def rounded_up(share: float) -> str:
    """Return a bound to two digits, never below itself."""
    if share <= 0.0:
        return "0"
    step = 10.0 ** (math.floor(math.log10(share)) - 1)
    return f"{math.ceil(share / step - 1e-9) * step:.3g}"


@dataclass(frozen=True, eq=False, kw_only=True)
class Certificate:
    """The evidence for a point: fresh values, feasibility, and stationarity."""

    x: FloatArray
    # `nan` if a loss gave no value; of a simulator's cases the mean of those that did
    objective: float
    objective_error: float  # standard error; 0 where all losses were evaluated
    n_losses_checked: int  # with those that gave no value
    feasibility: Feasibility
    stationarity: Stationarity | None = None
    note: str = ""  # why there is no stationarity
    first_order: FirstOrder | None = None  # of a method that knows it, at its iterate
    n_losses_lost: int = 0  # of a simulator, that gave no value

    @property
    def is_known(self) -> bool:
        """Whether objective and constraints gave values throughout."""
        has_all = bool(np.isfinite(self.objective)) and not self.n_losses_lost
        return has_all and self.feasibility.is_known

    @property
    def multipliers(self) -> tuple[IntArray, FloatArray] | None:
        """Constraints that hold the point where it is, and the force of each."""
        if self.stationarity is not None:
            return self.stationarity.multipliers
        if self.first_order is not None:
            return self.first_order.indices, self.first_order.multipliers
        return None

    def __str__(self) -> str:
        feasibility = str(self.feasibility)
        stationarity = self.stationarity or self.first_order
        error = f" +- {self.objective_error:.2g}" if self.objective_error else ""
        losses = "loss" if self.n_losses_checked == 1 else "losses"
        objective = f"{self.objective:.6g}{error}"
        if not self.n_losses_checked and math.isnan(self.objective):
            objective = "not known"
        rests_on = f" ({self.n_losses_checked:,} {losses} evaluated)"
        if self.n_losses_lost:
            n = self.n_losses_checked
            rests_on = f" over {n - self.n_losses_lost:,} of {n:,} cases"
        exceeded = ""
        if stationarity and self.feasibility.worst_value > EXCEEDED:
            exceeded = f"; a limit is exceeded by {self.feasibility.worst_value:.2g}"
        lines = [
            f"objective     {objective}{rests_on}",
            f"constraints   {feasibility}",
            f"stationarity  {stationarity or self.note or 'not computed'}{exceeded}",
        ]
        return "\n".join(lines)
