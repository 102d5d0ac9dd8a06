r"""DSZOG for many variables, of any size: it learns the sizes of a problem first.

1. A look at the constraints gives first weights, as in ``methods/dszog.py``.
2. *Sizes.* Values at points :math:`x_0 \pm t u` along random signs :math:`u` show how
   fast the objective and the constraints change, and how the objective bends; `t` grows
   until two estimates agree. A step of Newton's method with the mean curvature is the
   length of the problem, unless the median constraint is nearer. Objective and
   constraints are then measured by what they change over that length: nothing below
   depends on the units of variables or functions.
3. *Steps* have a length that is known beforehand, whatever the slope, and shrink to 0
   over the run. All in one direction would reach 1.5 lengths; at random they wander
   no further than 0.3 of it. So they cannot run away.
4. *A margin in the place of ever larger penalties.* The weights make all constraints
   that matter exceed their limits by the same amount, the sum of the multipliers over
   twice the penalty. One number, added to all of them, takes it back: the multiplier
   of an augmented Lagrangian. It follows the worst value that is seen, up or down, ever
   more slowly, and is at most 0.3 of the size of a constraint.
5. Directions and batches shrink until there are 200 iterations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply, check_replies, cost
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.signs import Signs
from dszog.maths.gradients import Directions, row_means
from dszog.maths.random_stream import distinct_indices, lent_stream, uniform_constraints
from dszog.methods.base import Info
from dszog.methods.dszog import DSZOG, DSZOGState

FIRST_LOOK, FARTHER = 1e-4, 4.0  # of the size of x0, and how it grows
LOOK = (0, 1, 2, ~0, ~1, ~2)  # directions, and their opposites
LOOK_BATCH = 64  # constraints of a look
BENDS = 0.1  # of the slope: a bend that is seen
AGREE = 2.0  # estimates differ by less
FROM_OUTSIDE = 4.0  # times as long, where a quarter of the constraints is violated
NEAR = 2.0  # times the distance of the median constraint: no longer is the length
REACH, WANDER = 1.5, 0.3
RATE, SETTLED, MOST_MARGIN = 3.0, 20, 0.3
LEAST_STEPS, UNKNOWN_LENGTH = 200, 2000
LEAST_BATCH = 8


class Units(NamedTuple):
    """Sizes of a problem: of its variables, its objective and a constraint."""

    length: float = 1.0
    loss: float = 1.0
    constraint: float = 1.0

    def of(self, reply: Reply, margin: float) -> Reply:
        """Return values of order one, each constraint less its margin."""
        return reply._replace(
            losses=reply.losses / self.loss,
            constraints=reply.constraints / self.constraint + margin,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class SizedState(DSZOGState):
    """Where a run stands that knows the sizes of its problem, or learns them."""

    look: float  # how far the next look at sizes goes; 0 when they are known
    length: float  # that the last look showed
    units: Units
    margin: float  # in units, by which constraints are to be kept more than asked for


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedDSZOG(DSZOG):
    """DSZOG in the units of the problem; `step_size` is a factor of the steps."""

    step_size: float = 1.0
    radius: float = 1e-3
    n_directions: int = 20
    directions: Directions = "rademacher"
    normalised: bool = True

    def init(
        self,
        x0: FloatArray,
        size: ProblemSize,
        seed: int,
        weights: tuple[IntArray, FloatArray] | None = None,
    ) -> SizedState:
        """Return the state before the first look."""
        first = DSZOG.init(self, x0, size, seed, weights)
        look = FIRST_LOOK * _size_of(first.x) if size.is_black_box else 0.0
        return SizedState(
            **_parts(first), look=look, length=math.inf, units=Units(), margin=0.0
        )

    def ask(self, state: Any) -> tuple[Query, ...]:
        """Return the queries of the next iteration."""
        if state.start is not None or not state.look:
            return DSZOG.ask(self, state)
        size, rng = state.size, lent_stream(state.seed, state.iteration)
        n_losses, _, n_duals = self.batches(size)
        losses, constraints = distinct_indices(rng, size.n_losses, n_losses), NO_INDICES
        if size.n_constraints:
            constraints = uniform_constraints(rng, size, min(n_duals, LOOK_BATCH))
        query = Query.drawn(
            iteration=state.iteration,
            x=frozen_floats(size.inside(state.x, np.array(state.look))),
            steps=Signs(state.seed, state.iteration, LOOK, size.dim, state.look),
            losses=losses,
            constraints=constraints,
            paired=True,
        )
        return (query,)

    def tell(
        self, state: Any, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> tuple[SizedState, Info]:
        """Return the state after a look, or after a step and one of the margin."""
        if state.start is not None:
            return DSZOG.tell(self, state, queries, replies)  # type: ignore[return-value]
        if state.look:
            check_replies(state.iteration, queries, replies, 1)
            return self._looked(state, queries[0], replies[0])
        n_expected = 2 if state.size.is_black_box else 3
        check_replies(state.iteration, queries, replies, n_expected)
        units, margin = state.units, state.margin
        inner = [units.of(reply, margin) for reply in replies]
        moved, info = DSZOG.tell(self, state, queries, inner)
        drawn = [r.constraints[0] for r in inner if r.constraints.size]
        if drawn:
            n_steps = max(state.iteration - state.first_iteration + 1, SETTLED)
            worst = max(float(values.max()) for values in drawn) - margin
            after = min(max(margin + RATE / n_steps * worst, 0.0), MOST_MARGIN)
            info = info._replace(
                sampled_violation=max(worst, 0.0) * units.constraint,
                sampled_share=float((replies[-1].constraints[0] > 0.0).mean()),
                weighted_violation=max(info.weighted_violation - margin, 0.0)
                * units.constraint,
            )
            margin = after
        info = info._replace(sampled_objective=info.sampled_objective * units.loss)
        kept = SizedState(
            **_parts(moved), look=0.0, length=state.length, units=units, margin=margin
        )
        return kept, info

    def _looked(
        self, state: SizedState, query: Query, reply: Reply
    ) -> tuple[SizedState, Info]:
        """Take in one look at sizes: go on farther out, or be content."""
        t, n, size = state.look, len(query.steps) // 2, state.size
        means, values = row_means(reply.losses), reply.constraints
        slope, bend = _odd(means[:, np.newaxis], n), _bend(means, n)
        slopes = _odd(values, n)
        length = math.inf
        if bend > 1e-3 * slope:
            length = math.sqrt(size.dim) * t * slope / (2.0 * bend)
        nearest = math.inf
        if slopes > 0.0:
            nearest = t * float(np.median(np.abs(values[0]))) / slopes
        room = size.upper - size.lower
        farthest = min(max(_size_of(state.x), nearest / 10), float(room.min()) / 8)
        agree = max(length, state.length) < AGREE * min(length, state.length)
        if (bend < BENDS * slope or not agree) and FARTHER * t <= farthest:
            units, look = state.units, FARTHER * t
        else:
            found = min(length, NEAR * nearest)
            if values.size and (values[0] > 0.0).mean() > 0.25:
                found *= FROM_OUTSIDE
            if not (0.0 < found < math.inf):
                found = _size_of(state.x)
            # What has no slope here is measured as it is.
            units = Units(found, found * slope / t or 1.0, found * slopes / t or 1.0)
            look = 0.0
        moved = replace(
            state,
            iteration=state.iteration + 1,
            first_iteration=state.iteration + 1,
            n_queries=state.n_queries + cost([query], size).total,
            look=look,
            length=length,
            units=units,
        )
        seen = float(np.maximum(values[0], 0.0).max(initial=0.0))
        info = Info(
            sampled_objective=float(means[0]), sampled_violation=seen, is_step=False
        )
        return moved, info

    def batches(self, size: ProblemSize) -> tuple[int, int, int]:
        """Return the batches, of which those left open allow 200 iterations."""
        sizes = list(DSZOG.batches(self, size))
        given = self.loss_batch, self.constraint_batch, self.dual_batch
        opened = [k for k, batch in enumerate(given) if batch is None]
        most = math.inf if self.horizon_queries is None else self.horizon_queries
        while self._cost(sizes) * LEAST_STEPS > most:
            larger = [k for k in opened if sizes[k] > LEAST_BATCH]
            if not larger:
                break
            for k in larger:
                sizes[k] = max(sizes[k] // 2, LEAST_BATCH)
        return sizes[0], sizes[1], sizes[2]

    def step_size_at(self, state: DSZOGState) -> float:
        """Return the step size of this iteration, in the units of the variables."""
        n, queries = self.horizon, self.horizon_queries
        if queries is not None:
            most = max(queries // self._cost(self.batches(state.size)), 1)
            n = most if n is None else min(n, most)
        n = n or UNKNOWN_LENGTH
        straight = REACH * math.sqrt(state.size.dim / self.n_directions) / n
        share = min(straight, WANDER / math.sqrt(n))
        return share * DSZOG.step_size_at(self, state) * _units_of(state).length

    def _cost(self, batches: Sequence[int]) -> int:
        """Return what an iteration costs."""
        n_losses, n_drawn, n_duals = batches
        return (1 + self.n_directions) * (n_losses + n_drawn) + n_duals

    def penalty_at(self, state: DSZOGState) -> float:
        """Return the penalty in the units of the functions."""
        units = _units_of(state)
        return self.penalty * units.loss / units.constraint**2

    def _named(self, state: DSZOGState, dim: int) -> Signs:
        named = DSZOG._named(self, state, dim)
        return replace(named, radius=self.radius * _units_of(state).length)


def _size_of(x: FloatArray) -> float:
    """Return the root mean square, or 1 where all is 0."""
    with np.errstate(over="ignore"):
        found = float(np.sqrt(np.square(x).mean()))
    return found if 0.0 < found < math.inf else 1.0


def _odd(table: FloatArray, n: int) -> float:
    """Return the root mean square of half the differences of opposite points."""
    if not (n and table.size):
        return 0.0
    with np.errstate(over="ignore"):
        found = np.sqrt(np.square((table[1 : n + 1] - table[n + 1 :]) / 2.0).mean())
    return float(found)


def _bend(means: FloatArray, n: int) -> float:
    """Return by how much opposite points lie above the one between them."""
    return float(means[1:].mean() - means[0]) if n else 0.0


def _units_of(state: DSZOGState) -> Units:
    return state.units if isinstance(state, SizedState) else Units()


def _parts(state: DSZOGState) -> dict[str, Any]:
    return {item.name: getattr(state, item.name) for item in fields(DSZOGState)}
