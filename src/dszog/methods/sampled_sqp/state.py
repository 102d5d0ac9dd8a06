"""Where a run of the sampled SQP stands."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import (
    BoolArray,
    FloatArray,
    FrozenArrays,
    IntArray,
    frozen_floats,
)
from dszog.methods.base import State
from dszog.methods.sampled_sqp.bundle import OBJECTIVE, Bundle
from dszog.methods.sampled_sqp.case_values import CaseValues
from dszog.methods.sampled_sqp.curvature import Pairs
from dszog.methods.sampled_sqp.looks import Look, are_indices, places_of
from dszog.methods.sampled_sqp.losses_table import LossTable
from dszog.methods.sampled_sqp.models import WorkingSet
from dszog.methods.sampled_sqp.screening import Seen

SqpPhase: TypeAlias = Literal[
    "pilot",
    "slopes",
    "noise",
    "sizes",
    "trial",
    "learn",
    "verify",
    "confirm",
    "search",
    "near",
    "elsewhere",
    "again",
    "done",
]
KINKED_OBJECTIVE, KINKED_ROWS = 1, 2
HARDLY = 1e-3  # usual sizes: a variable that is no larger, and has not moved, has none
MOST_CONFIRMS = 12  # looks around, in a run
SHORTEST_PROBE = 1e-3  # steps of a look around, in usual ones
_VECTORS = (
    *("start", "home", "best", "doubted", "sizes", "origin", "scale", "step"),
    "anchor",
    "anchor_gradient",
)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SampledSQPState(FrozenArrays, State):
    """All that was learned, and the looks that come next.

    Slopes, lengths and the matrix of the subproblem are in scaled variables,
    ``z = x / scale``.
    """

    phase: SqpPhase
    looks: tuple[Look, ...]  # what is asked next
    members: WorkingSet
    table: LossTable
    seen: Seen
    case_values: CaseValues  # where cases are a table
    pairs: Pairs
    bundle: Bundle
    start: FloatArray  # (dim,), where the run began, or began again
    has_home: int = 0  # 1: all that was seen held somewhere
    home: FloatArray  # (dim,), the best such point; else the start
    home_objective: float = 0.0
    # The best point at which all cases that were looked at there held, if there is one.
    has_best: int = 0
    best: FloatArray  # (dim,), else the start
    best_losses: IntArray  # (b,), in the table then
    best_values: FloatArray  # (b,), of these at that point
    best_cases: IntArray  # that were looked at there
    has_doubted: int = 0
    doubted: FloatArray  # (dim,), such a point that gave way as it may not hold
    # By which steps are shorter and violations weigh more, after a return there.
    caution: float = 1.0
    sizes: FloatArray  # (dim,), of variables, as far as that and the bounds say
    # (dim,), from where variables are counted: 0, or the start, where it is far from 0
    # in their sizes, as a date is.
    origin: FloatArray
    shorter: float = 1.0  # by which steps were shortened to learn sizes
    n_shorter: int = 0  # times that they were
    # Sizes, found by the pilot.
    scale: FloatArray  # (dim,)
    length: float = 1.0  # of a usual step
    first_distance: float = 0.0  # of the start from the origin
    first_sigma: float = 1.0
    loss_reach: float = 1e-7  # of differences of losses
    row_reach: float = 1e-7  # of differences of constraints
    loss_noise: float = 0.0  # of a loss
    constraint_noise: float = 0.0  # of a constraint
    unit_noise: float = 0.0  # of a constraint of unit size
    is_rounded: int = 0  # 1: values of losses or constraints change in jumps
    pilot_steps: FloatArray  # (2, dim), of its differences: of losses, of constraints
    n_pilot: int = 0  # rounds of pilot differences
    # The step that is tried.
    step: FloatArray  # (dim,), to the trial point
    curved: float = 0.0  # step' B step
    promise: float = 0.0  # decrease of the merit that the step promises
    n_corrected: int = 0  # times that the step was bent back to rows that curve
    sigma: float = 1.0  # proximal weight
    price: float = 1.0  # of violations in the subproblem
    weight: float = 0.0  # of violations in the merit
    # How things go.
    objective: float = 0.0  # at the iterate, over the table
    first_objective: float = 0.0
    violation: float = 0.0  # the largest raw one seen at the iterate
    has_moved: int = 0  # 1: the last trial point was accepted
    n_trials: int = 0
    n_stale: int = 0  # steps since the gradient was learned
    n_rejected: int = 0  # trials in a row
    n_lost: int = 0  # points in a row that had no values
    n_null: int = 0  # null steps in a row: the point was kept for new constraints
    n_idle: int = 0  # times that all was learned anew without a step since
    n_tiny: int = 0  # steps in a row that promised less than rounding
    n_slow: int = 0  # steps in a row that gained next to nothing
    batch: int  # unseen constraints looked at
    wants_rows: int = 0  # 1: the table should grow
    n_found: int = 0  # violators among the constraints looked at last
    n_clean: int = 0  # unseen constraints looked at since one was violated
    n_kept: int = 0  # the same since one was by more than is allowed
    anchor: FloatArray  # (dim,), scaled point where the gradient was last learned
    anchor_gradient: FloatArray  # (dim,)
    residual: float = -1.0  # of the optimality conditions
    # What a look around has shown.
    measured: FloatArray  # (dim, dim), curvature; (0, 0): none
    confirmed: int = 0  # 1: the point is optimal; 2: it is not; 0: not known
    # Slopes differed on the two sides of a point: 1: of the objective, 2: of rows, 3
    is_kinked: int = 0
    probe_size: float = 1.0  # of steps, in usual ones
    n_probes: int = 0  # points that the look may ask for
    n_confirms: int = 0
    n_searches: int = 0  # looks farther out
    n_lower: int = 0  # of these, in a row, that have found a point far lower
    n_begun: int = 0  # times that the run began again where it had come to
    n_elsewhere: int = 0  # times that it began elsewhere, since a violation was left
    n_near: int = 0  # looks near by for a point where less is violated
    is_least: int = 0  # 1: the last of them has shown none
    kept: SampledSQPState | None = None  # the best end of these
    is_open: int = 0  # 1: the objective falls on, as far as was looked
    n_loss_queries: int = 0
    n_constraint_queries: int = 0

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes are those of a state of such a problem."""
        along = (getattr(self, name) for name in _VECTORS)
        return (
            all(vector.shape == (size.dim,) for vector in along)
            and self.pilot_steps.shape == (2, size.dim)
            and self.measured.shape in ((0, 0), (size.dim, size.dim))
            and are_indices(self.best_losses, size.n_losses)
            and are_indices(self.best_cases, size.n_constraints)
            and self.best_values.shape == self.best_losses.shape
            and all(look.fits(size) for look in self.looks)
            and self.case_values.fits(size)
        )

    @property
    def takes_unknown(self) -> bool:
        """Whether replies may hold nan: cases are left out, points not needed."""
        return self.phase in ("search", "near", "elsewhere") or self.size.by_case

    @property
    def keeps_planes(self) -> bool:
        """Whether functions have kinks, and values without noise to follow them."""
        usual = max(abs(self.first_objective), self.first_sigma * self.length**2)
        is_exact = self.loss_noise <= 2.0**-46 * usual
        if self.is_kinked > 1:
            is_exact = is_exact and self.unit_noise <= 2.0**-46 * self.farthest
        return self.is_kinked > 0 and self.size.n_losses == 1 and is_exact

    @property
    def bends(self) -> FloatArray:
        """The matrix of the subproblem; 0 where planes stand for the objective."""
        is_plain = self.keeps_planes and self.is_kinked != KINKED_ROWS
        dim = self.size.dim
        return np.zeros((dim, dim)) if is_plain else self.curvature

    def modelled(self, z: FloatArray) -> FloatArray:
        """Return what models say at a point: of kinks the largest plane."""
        found = np.array(self.members.at(z))
        planes, places, heights = self.row_planes()
        np.maximum.at(found, places, heights + planes.slopes @ (z - self.z))
        return found

    @property
    def matters(self) -> BoolArray:
        """Which members pull, or are violated at the iterate."""
        members = self.members
        return np.asarray((members.multipliers > 0) | (members.at(self.z) > 0))

    @property
    def objective_planes(self) -> Bundle:
        """Planes of the objective."""
        return self.bundle.among(np.array([OBJECTIVE]))

    def row_planes(self) -> tuple[Bundle, IntArray, FloatArray]:
        """Return planes of members, their places, and what they say at the iterate.

        That is no more than the member's own value there.
        """
        planes = self.bundle.among(self.members.indices)
        places = places_of(planes.owners, self.members.indices)
        here = self.members.at(self.z)[places]
        return planes, places, np.minimum(planes.heights(self.z), here)

    @property
    def curvature(self) -> FloatArray:
        """The matrix of the subproblem, without the proximal weight."""
        slopes = self.table.slopes if self.size.n_losses > 1 else self.table.slopes[:0]
        return self.pairs.matrix(slopes, self.measured)

    @property
    def z(self) -> FloatArray:
        """The iterate in scaled variables."""
        return self.x / self.scale

    @property
    def away(self) -> FloatArray:
        """How far variables are from where they are counted."""
        return np.abs(self.x - self.origin)

    @property
    def own_sizes(self) -> FloatArray:
        """The size of each variable: its own, what it moved by, or a usual one."""
        own = np.maximum(self.away, np.abs(self.x - self.start))
        return np.where(own > HARDLY * self.sizes, own, self.sizes)

    @property
    def farthest(self) -> float:
        """How far any scaled variable is from there; a usual step if that is longer."""
        return max(float((self.away / self.scale).max()), self.length)

    @property
    def change(self) -> float:
        """By how much the objective differs from what it was at first."""
        return abs(self.first_objective - self.objective)

    def n_functions(self, which: BoolArray) -> int:
        """Return how many calls a value of the table and of some members takes."""
        asked = self.size.cases_of(self.members.indices[which])
        return max(len(self.table) + len(asked), 1)

    @property
    def n_queries(self) -> int:
        """How many losses and constraints were asked for."""
        return self.n_loss_queries + self.n_constraint_queries

    @property
    def finest(self) -> FloatArray:
        """The least steps of differences, which rounding of the variables leaves."""
        found: FloatArray = np.maximum(
            1e-8 * self.away, 64 * np.spacing(np.abs(self.x))
        )
        return found

    @property
    def fallback(self) -> FloatArray:
        """The last point on the way from the start that the models find feasible.

        For a run that is cut short: of constraints that held at the start, none is
        violated for what is known. If the iterate violates none it is that, or where
        all held before with a smaller objective: later steps may have led away. Of
        cases the best point at which those that were looked at there held.
        """
        if self.has_best:
            return self.best
        if self.kept is not None and self.kept.violation <= self.violation:
            return self.kept.x
        first, last = self.members.at(self.start / self.scale), self.members.at(self.z)
        left = (first <= 0) & (last > 0)
        if not left.any():
            was_lower = self.has_home and self.home_objective < self.objective
            return self.home if was_lower else self.x
        if self.has_home and (self.home != self.start).any():
            return self.home
        share = float((first[left] / (first[left] - last[left])).min())
        point: FloatArray = self.start + share * (self.x - self.start)
        return frozen_floats(self.size.clip(point))

    @property
    def target(self) -> FloatArray:
        """The point that is asked about next."""
        look = self.looks[0]
        if not look.reach.any():
            return look.at
        return look.at + look.reach  # somewhere around the point

    def look_at_slopes(self, reach: FloatArray) -> Look:
        """Return a look at all slopes at the iterate, by differences over steps."""
        table, members = self.table, self.members
        return Look(
            at=self.x,
            losses=table.indices,
            constraints=members.indices,
            reach=reach,
            loss_values=table.values,
            constraint_values=members.raw_values,
        )

    @property
    def remembered(self) -> dict[str, Any]:
        """What stays known when a run begins again, or goes back to an earlier end."""
        names = (
            *("has_best", "best", "best_losses", "best_values", "best_cases"),
            *("has_doubted", "doubted", "n_elsewhere", "n_near"),
            *("n_loss_queries", "n_constraint_queries"),
        )
        return {name: getattr(self, name) for name in names}

    def back_to(self, good: Any) -> Self:
        """Return the state that looks half as far, and much less far each time."""
        if self.phase == "trial":
            share = 0.5 * 0.125**self.n_lost
            at = self.x + share * (self.looks[0].at - self.x)
            return replace(
                self,
                looks=(replace(self.looks[0], at=at),),
                step=share * self.step,
                curved=share**2 * self.curved,
                promise=share * self.promise,
                sigma=self.sigma / share**2,
                n_lost=self.n_lost + 1,
            )
        if self.phase == "pilot" and self.kept is not None:  # which has values
            x = (self.x + self.kept.x) / 2.0
            return replace(self, x=x, start=x, looks=(replace(self.looks[0], at=x),))
        if self.phase == "noise":  # go on without
            return replace(self, phase="slopes")
        if self.phase == "sizes":
            look = self.look_at_slopes(self.looks[0].reach)
            return replace(self, phase="slopes", looks=(look,))
        if self.phase == "confirm" and self.probe_size > SHORTEST_PROBE:
            return replace(self, probe_size=self.probe_size / 8.0)
        if self.phase == "confirm":  # end without
            losses, rows = self.table.indices, self.members.indices
            look = Look(at=self.x, losses=losses, constraints=rows)
            state = replace(self, n_confirms=MOST_CONFIRMS)
            return replace(state, phase="verify", looks=(look,))
        looks = tuple(look.shorter(self.size) for look in self.looks)
        return replace(self, looks=looks)


PARTS = (Look, WorkingSet, LossTable, Seen, CaseValues, Pairs, Bundle)
"""What a state is made of, for those who save it."""
