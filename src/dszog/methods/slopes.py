r"""DSZOG that remembers slopes, in the units of its problem.

Doubly stochastic as the paper's method: a few losses and constraints at a time, values
alone. An estimate along `q` of `d` directions that is used once is noise but for a part
``q / d``; so what differences have shown is kept. At an iterate :math:`x` there are
models of the objective, :math:`f + g^T s`, and of constraints that matter, :math:`c + A
s`. An iteration does this (``methods/slope_models.py`` has the formulas):

1. *Values* are asked for: losses along `q` directions, half way back to the iterate
   before, and there; constraints that bind and are not well known along the same
   directions; all that matter, and a look at others, at `x` (``ask``).
2. *Judge*: a trust radius follows what came of the last steps. It begins at a
   thousandth of the size of `x0` and grows two- to fourfold: no unit matters. A step
   that made things worse than noise explains is taken back.
3. *Learn*: slopes change as little as new differences ask for, and by a part of that
   where values are noisy or losses sampled.
4. *Look*: all constraints are gone through in turn. The violated ones join, and the
   nearest of the others; values at earlier iterates give a first idea of their slopes.
5. *Step* to the minimum of the models. Multipliers come from the dual; their norm is
   bounded, which makes the constraints elastic: no penalty is ever raised.

At the end the radius shrinks to 0, most queries are looks, and constraints are kept by
a margin: the worst violation that a look has found, which fades. Directions, losses and
slopes that are held are so many as budget and memory allow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply, check_replies, cost
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.maths.gradients import Directions, draw_directions
from dszog.maths.random_stream import distinct_indices, lent_stream, uniform_constraints
from dszog.methods.base import Info
from dszog.methods.dszog import DSZOG, DSZOGState
from dszog.methods.policy import Guarded, Policy, Runaway
from dszog.methods.slope_models import (
    Around,
    SlopesState,
    joined,
    judged,
    learned,
    learned_rows,
    looked,
    n_held,
    stepped,
    valued,
)

FIRST_RADIUS = 1e-3  # of the size of x0
STEPS, FEW_STEPS = 150, 25  # of a run; where losses are sampled, and queries are few
LEAST, USUAL = 64, 832  # queries of an iteration
ALONG, AT_END = 0.6, 0.2  # of its queries, for directions; also in the last part
FEWEST, SOME = 4, 32  # directions; also where constraints are looked at along them
EXTRA = 5  # points beside those along directions
FEW = 16  # queries of an iteration to one direction, at most
POINTS = 2**21  # numbers of all directions of an iteration, but for the fewest
JOIN, NEAR_BY = 64, 32  # join at most at a time; of so many, one that is not violated
SURE = 0.1  # of a slope that is not known: it is known well enough
SEEN, FARTHEST = 10.0, 10.0  # times the noise that differences are; times the radius
NEAREST = 1e-6  # of the size of x: points nearer to it are alike, or all fail
SLOWLY = 0.25  # times as fast as margins, the way back is forgotten
LARGEST = 1e60  # what is larger counts as so much: squares are finite
FALL = 1e12  # times the first objective: it falls without end
ENDING = 0.2  # part of the budget: the last one


@dataclass(frozen=True, slots=True, kw_only=True)
class SlopesDSZOG(DSZOG):
    """DSZOG of values alone; `step_size` is a factor of the first trust radius.

    `radius` is a part of the trust radius, over the root of the number of variables.
    There are at most `n_directions`, and `constraint_batch` constraints along them;
    `dual_batch` is the size of a look.
    """

    step_size: float = 1.0
    radius: float = 1e-2
    n_directions: int = 256

    def _begun(
        self, first: DSZOGState, weights: tuple[IntArray, FloatArray] | None
    ) -> SlopesState:
        """Return the state before the first look."""
        x, none = first.x, frozen_floats(np.empty(0))
        trust = self.step_size * FIRST_RADIUS * _size_of(x) * math.sqrt(len(x))
        first = replace(first, start=None, velocity=0.0 * x, distribution=None)
        return SlopesState(
            **vars(first),
            before=x,
            rows=NO_INDICES,
            values=none,
            guessed=NO_INDICES,
            slopes=frozen_floats(np.empty((0, len(x)))),
            pulls=none,
            doubts=none,
            found=NO_INDICES if weights is None else frozen_ints(weights[0][:JOIN]),
            anchors=frozen_floats(x[np.newaxis]),
            trust=trust,
            reach=trust,
        )

    def ask(self, state: Any) -> tuple[Query, ...]:
        """Ask for the *values* above, and for those that join at earlier iterates."""
        size, x = state.size, state.x
        rng = lent_stream(state.seed, state.iteration)
        n, binding = self._along(state)
        kind: Directions = "orthogonal" if 8 * n > size.dim else "gaussian"
        steps = draw_directions(rng, kind, n, size.dim)
        steps *= self._radius(state) / math.sqrt(size.dim)
        n_losses = self.batches(size)[0]
        losses = distinct_indices(rng, size.n_losses, n_losses)
        look = self._look(state, rng, n * (len(binding) + n_losses))
        back = np.outer([0.5, 1.0], state.before - x)
        back = back[: 2 * back.any()]  # half of the way, and all of it
        steps = np.vstack([back, 3.0 * steps[0], 2.0 * steps[0], steps])
        steps.flags.writeable = False
        line = steps[len(back) :]
        if not len(binding):  # one of them, three times: how noisy are they?
            line = line[:3]
            binding = state.rows[[*np.argsort(-state.values)[:1]]]
        every = np.concatenate([state.rows[state.is_asked], state.found, look])
        asks: dict[str, Any] = {"iteration": state.iteration}
        line = line[: len(line) * len(binding)]
        earlier = state.anchors[: len(state.anchors) * (len(state.found) > 0)]
        there, away = state.before, earlier - state.before
        return (
            Query(x=x, steps=steps, losses=losses, **asks),
            Query(x=x, steps=line, constraints=binding, **asks),
            Query.at(x, constraints=np.unique(every), **asks),
            Query(x=there, steps=away, constraints=state.found, **asks),
        )

    @np.errstate(over="ignore", invalid="ignore")
    def tell(
        self, state: Any, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> tuple[Any, Info]:
        """Return the state after a step was judged, slopes learned, and one taken."""
        check_replies(state.iteration, queries, replies, 4)
        replies = [
            reply._replace(
                losses=reply.losses.clip(-LARGEST, LARGEST),
                constraints=reply.constraints.clip(-LARGEST, LARGEST),
            )
            for reply in replies
        ]
        size, (here,) = state.size, replies[2].constraints
        seen = dict(zip(queries[2].constraints.tolist(), here, strict=True))
        state = joined(state, seen, queries[3], replies[3])
        state, values, is_guess = valued(state, seen)
        around = Around.of(state, queries[0], replies[0])
        state, is_worse = judged(state, around, values, is_guess)
        state = learned(state, around)
        state = learned_rows(state, queries[1], replies[1])
        others = sorted(set(seen) - set(state.rows.tolist()), key=seen.__getitem__)
        over = np.maximum([seen[j] for j in others] or [0.0], 0.0)
        n_broken, most = int((over > 0.0).sum()), min(JOIN, n_held(size.dim))
        state, level, is_crowded = looked(state, over)
        if not (is_worse or is_crowded):
            state = replace(
                state,
                before=state.x,
                values=frozen_floats(values),
                guessed=frozen_ints(state.rows[is_guess]),
                level=level,
            )
        n_joins = min(max(n_broken, min(len(others) // NEAR_BY, most // 4), 1), most)
        share = len(others) / max(size.n_constraints, 1)
        margin = (1.0 - share) * state.margin
        if self._gone(state) > 1.0 - ENDING:
            margin = max(margin, float(over[-1]))
        state = replace(
            state,
            margin=margin,
            retreat=(1.0 - SLOWLY * share) * state.retreat,
            iteration=state.iteration + 1,
            n_queries=state.n_queries + cost(queries, size).total,
            found=frozen_ints(np.sort(np.array(others[-n_joins:], int))),
            n_looked=state.n_looked + len(others),
        )
        shares = state.pulls / max(state.pulls.sum(), 1e-300)
        info = Info(
            sampled_objective=float(replies[0].losses[0].mean()),
            sampled_violation=max(float(here.max(initial=0.0)), 0.0),
            sampled_share=n_broken / max(len(others), 1),
            weighted_violation=float(shares @ np.maximum(state.values, 0.0)),
            n_touched=len(state.rows),
        )
        return stepped(state, left=(1.0 - self._gone(state)) / ENDING), info

    # --------------------------------------------------------------- how much is asked

    def batches(self, size: ProblemSize) -> tuple[int, int, int]:
        """Return losses, constraints along directions at most, and all queries."""
        queries, n_losses = USUAL, DSZOG.batches(self, size)[0]
        if self.horizon_queries is not None:
            few = FEW * max(POINTS // size.dim, FEWEST) * n_losses
            queries, each = self.horizon_queries // STEPS, 2 * (FEWEST + EXTRA)
            if n_losses < size.n_losses:  # few steps rather than few losses
                enough = 2 * each * n_losses
                queries = max(queries, min(self.horizon_queries // FEW_STEPS, enough))
            queries = max(min(queries, few), LEAST)
            if self.loss_batch is None:  # half of the queries, with fewest directions
                n_losses = min(n_losses, max(queries // each, 1))
        return n_losses, self.constraint_batch or queries, queries

    def least_queries(self, size: ProblemSize) -> int:
        """Return what one step costs at most."""
        n_losses, _, queries = self.batches(size)
        look = min(self.dual_batch or queries, size.n_constraint_calls)
        return (FEWEST + EXTRA) * n_losses + look

    def _gone(self, state: DSZOGState) -> float:
        """Return the part of the run that is over; 0 where that is not known."""
        parts = [state.iteration / (self.horizon or math.inf)]
        parts += [state.n_queries / (self.horizon_queries or math.inf)]
        return min(max(parts), 1.0)

    def _along(self, state: SlopesState) -> tuple[int, IntArray]:
        """Return how many directions to take, and which constraints along them."""
        n_losses, n_drawn, queries = self.batches(state.size)
        dim = state.size.dim
        room = queries * (AT_END if self._gone(state) > 1.0 - ENDING else ALONG)
        unsure = np.where(state.doubts > SURE, state.pulls, 0.0)
        most = min(max(int(room / SOME) - n_losses, n_losses // 2, 1), n_drawn)
        heavy = np.argsort(-unsure)[: min(most, np.count_nonzero(unsure))]
        known = float(state.velocity @ state.velocity)
        if not len(heavy) and state.error * dim < SURE**2 * known:
            room = FEWEST * n_losses
        n = max(int(room / (len(heavy) + n_losses)), FEWEST)
        n = min(n, self.n_directions, dim, max(POINTS // dim, FEWEST))
        return n, frozen_ints(np.sort(state.rows[heavy]))

    def _look(
        self, state: SlopesState, rng: np.random.Generator, used: int
    ) -> IntArray:
        """Return constraints to look at: the next ones, with a stride."""
        m, queries = state.size.n_constraints, self.batches(state.size)[2]
        n = max(queries - used - int(state.is_asked.sum()), queries // 4)
        if not state.iteration and self.horizon is self.horizon_queries is None:
            n = min(n, LEAST)  # nobody knows how long it takes
        n = min(self.dual_batch or n, m)
        if not m or state.size.calls is not None:
            return uniform_constraints(rng, state.size, n) if m else NO_INDICES
        stride = max(round(0.618034 * m), 1)
        while math.gcd(stride, m) > 1:
            stride += 1
        first = (state.n_looked * stride + state.seed) % m
        return (first + np.arange(n) * stride) % m

    def _radius(self, state: SlopesState) -> float:
        """Return how far points lie from the iterate: farther where there is noise."""
        root = math.sqrt(state.size.dim)
        far, slope = self.radius / root * state.reach, np.linalg.norm(state.velocity)
        if slope > 0.0:
            far = max(far, SEEN * math.sqrt(state.noise) * root / float(slope))
        far = max(far, SEEN * math.sqrt(state.rough) * root)
        far = min(far, FARTHEST * state.reach)
        return max(far, NEAREST * float(np.linalg.norm(state.x)))

    # -------------------------------------------------------------------------- a run

    def policy(self, fixed: frozenset[str]) -> Policy:  # type: ignore[override]
        """Return how to use the method: in one round; the last iterate is the best."""
        return Remembering()

    def weights(self, state: Any) -> tuple[IntArray, FloatArray]:
        """Return the constraints that bind and their shares of the multipliers."""
        order = np.argsort(state.rows)
        order = order[state.pulls[order] > 0.0]
        pulls = state.pulls[order]
        return state.rows[order], pulls / max(pulls.sum(), 1e-300)

    def penalty_at(self, state: Any) -> float:
        """Return what weighs violations, in the units of the functions."""
        penalty: float = state.penalty
        return penalty


class Remembering(Guarded):
    """The last iterate is the best; an objective that falls without end ends a run."""

    def runaway(self, first: dict[str, float], info: Info) -> Runaway:
        """Return whether the objective fell that far."""
        now = info.sampled_objective
        if not math.isfinite(now):
            return ""
        at_first = first.setdefault("objective", now)
        return "fell" if at_first - now > FALL * max(abs(at_first), 1.0) else ""


def _size_of(x: FloatArray) -> float:
    """Return the root mean square, or 1 where all is 0."""
    with np.errstate(over="ignore"):
        found = float(np.sqrt(np.square(x).mean()))
    return found if 0.0 < found < math.inf else 1.0
