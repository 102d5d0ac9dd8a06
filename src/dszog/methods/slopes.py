r"""DSZOG that remembers slopes, in the units of its problem: for many variables.

Doubly stochastic as the paper's method: a few losses and constraints at a time, values
alone. An estimate along `q` of `d` directions that is used once is noise but for a part
``q / d``; so what differences have shown is kept.

1. *Slopes* of the objective, and of each constraint that binds, are learned along
   random directions and along the steps taken: what is known of a slope is corrected
   by as little as a new difference asks for (Broyden's update; for random directions
   [1]_), and by a part of that where values are noisy or losses sampled.
2. *A step* minimises the linear model with the curvature seen along the last steps,
   under the linear models of constraints. Its multipliers come from the dual. Their
   norm is bounded, which makes the constraints elastic: no penalty is ever raised.
3. *A trust radius* follows what came of the last steps. It begins at a thousandth of
   the size of `x0` and doubles: no unit matters. A step that made things worse than
   noise explains is taken back.
4. *Looks* go through all constraints in turn. The violated ones join, and the nearest
   of the others; values at earlier iterates give a first idea of their slopes.
5. *At the end* the radius shrinks to 0, most queries are looks, and constraints are
   kept by a margin: the worst violation that a look has found, which fades.

References
----------
.. [1] F. Hanzely, K. Mishchenko and P. Richtarik, "SEGA: variance reduction via
   gradient sketching", NeurIPS 2018.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply, check_replies, cost
from dszog.contract.arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    frozen_floats,
    frozen_ints,
)
from dszog.maths.gradients import draw_directions, row_means
from dszog.maths.random_stream import distinct_indices, lent_stream, uniform_constraints
from dszog.methods.base import Info
from dszog.methods.dszog import DSZOG, DSZOGState
from dszog.methods.policy import GUARDED, Policy

FIRST_RADIUS = 1e-3  # of the size of x0
STEPS, LEAST, USUAL = 150, 64, 832  # of a run; queries of an iteration
ALONG, AT_END = 0.6, 0.2  # of its queries, for directions; also in the last part
FEWEST, SOME = 4, 32  # directions; also where constraints are looked at along them
FAR = 10.0  # times the slope of the objective, that it is thought to be
FEW = 16  # queries of an iteration to one direction, at most
HELD, POINTS = 2**22, 2**23  # numbers of all slopes that are kept, and of all points
MOST = 1024  # constraints that are kept
JOIN, NEAR_BY = 64, 32  # join at most at a time; of so many, one that is not violated
SURE = 0.1  # of a slope that is not known: it is known well enough
SEEN, FARTHEST = 10.0, 10.0  # times the noise that differences are; times the radius
PULL, MOST_PULL = 2.0, 20.0  # times the slope of the objective, that constraints hold
MERIT = 300.0  # times that, where points compete
ANCHORS = (8, 32, 128)  # iterations whose points are kept
MANY, CLEAR = 8, 4.0  # violations of a look that count; times what is left to chance
OFTEN = 8  # iterations, after which no value is guessed
ENDING, STAY = 0.2, 0.03  # parts of the budget: the last one, and that without steps
RETREAT = 0.2  # of the way to the start
NEAREST, ROUNDS = 384, 100  # constraints of a step, and rounds of its dual


@dataclass(frozen=True, eq=False, kw_only=True)
class SlopesState(DSZOGState):
    """Where a run stands; `velocity` is the slope of the objective as far as known."""

    before: FloatArray  # (dim,), the iterate that the step to x began at
    rows: IntArray  # (k,), constraints that matter
    values: FloatArray  # (k,), theirs at `before`
    guessed: IntArray  # those whose value is what slopes say
    slopes: FloatArray  # (k, dim)
    pulls: FloatArray  # (k,), multipliers
    doubts: FloatArray  # (k,), by what part slopes were wrong of late
    found: IntArray  # constraints seen violated at `before` that are to join
    anchors: FloatArray  # (a, dim), the start and some iterates
    trust: float  # no step is longer
    reach: float  # the longest of late
    force: float  # the largest slope of the objective of late
    bend: float  # curvature of the objective along steps
    noise: float  # variance of a value of the objective
    rough: float  # that of a constraint, as a distance
    error: float  # variance of what is not known of its slope, along a direction
    gain: float  # what came of the last steps, each weighing less than the next
    hoped: float  # what should have come of them
    ending: float  # the radius when the end began; 0 before
    level: float  # the mean violation of the look at `before`
    margin: float  # by which constraints are kept more than asked for, at the end
    n_looked: int

    @property
    def fallback(self) -> FloatArray:
        """The iterate before one not judged; at the end one nearer to the start."""
        if not self.ending:
            return self.before
        return frozen_floats(self.before + RETREAT * (self.anchors[0] - self.before))


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

    def init(
        self,
        x0: FloatArray,
        size: ProblemSize,
        seed: int,
        weights: tuple[IntArray, FloatArray] | None = None,
    ) -> SlopesState:
        """Return the state before the first look."""
        first = DSZOG.init(self, x0, size, seed, weights)
        none, x = frozen_floats(np.empty(0)), first.x
        trust = self.step_size * FIRST_RADIUS * _size_of(x) * math.sqrt(size.dim)
        return SlopesState(
            **_parts(replace(first, start=None, velocity=0.0 * x, distribution=None)),
            before=x,
            rows=NO_INDICES,
            values=none,
            guessed=NO_INDICES,
            slopes=frozen_floats(np.empty((0, size.dim))),
            pulls=none,
            doubts=none,
            found=NO_INDICES if weights is None else frozen_ints(weights[0][:JOIN]),
            anchors=frozen_floats(x[np.newaxis]),
            trust=trust,
            reach=trust,
            force=0.0,
            bend=0.0,
            noise=0.0,
            rough=0.0,
            error=0.0,
            gain=0.0,
            hoped=0.0,
            ending=0.0,
            level=0.0,
            margin=0.0,
            n_looked=0,
        )

    def ask(self, state: Any) -> tuple[Query, ...]:
        """Return the queries of the next iteration.

        Losses along directions and back to the iterate before, constraints that bind
        along the same directions, all that matter and a look at others, and those that
        join at earlier iterates.
        """
        size, x = state.size, state.x
        rng = lent_stream(state.seed, state.iteration)
        n, binding = self._along(state)
        directions = draw_directions(
            rng, "orthogonal" if 8 * n > size.dim else "gaussian", n, size.dim
        )
        n_losses = self.batches(size)[0]
        losses = distinct_indices(rng, size.n_losses, n_losses)
        look = self._look(state, rng, n * (len(binding) + n_losses))
        steps = self._radius(state) / math.sqrt(size.dim) * directions
        further = [2.0 * steps[0], 3.0 * steps[0]]
        line = np.vstack([steps if len(binding) else steps[:1], *further])
        if not len(binding) and len(state.rows):  # how noisy are they?
            binding = state.rows[[int(np.argmax(state.values))]]
        if (x != state.before).any():
            further += [(state.before - x) / 2.0, state.before - x]
        earlier = np.vstack([state.before, state.anchors])
        asks: dict[str, Any] = {"iteration": state.iteration}
        every = np.unique(
            np.concatenate([state.rows[_asked(state)], state.found, look])
        )
        return (
            Query(x=x, steps=np.vstack([steps, *further]), losses=losses, **asks),
            Query(
                x=x, steps=line[: len(line) * len(binding)], constraints=binding, **asks
            ),
            Query.at(x, constraints=every, **asks),
            Query(
                x=earlier[0],
                steps=earlier[1:] - earlier[0],
                constraints=state.found,
                **asks,
            ),
        )

    def tell(
        self, state: Any, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> tuple[Any, Info]:
        """Return the state after a step was judged, slopes learned, and one taken."""
        check_replies(state.iteration, queries, replies, 4)
        seen = dict(
            zip(queries[2].constraints.tolist(), replies[2].constraints[0], strict=True)
        )
        looked = len(seen) - len(np.intersect1d(queries[2].constraints, state.rows))
        worst = max(seen.values(), default=0.0)
        n, _ = self._along(state)
        state = self._joined(state, seen, queries[3], replies[3])
        along = state.slopes @ (state.x - state.before)
        here = np.array([seen.pop(j, np.nan) for j in state.rows.tolist()])
        is_guess = np.isnan(here)
        both = ~is_guess & ~np.isin(state.rows, state.guessed)
        values = np.where(is_guess, state.values + along, here)
        # What was a guess at `before` was off by what it is now, at the same slope.
        was = np.where(is_guess | both, state.values, here - along)
        off = np.abs(was - state.values)
        state = replace(
            state,
            values=frozen_floats(was),
            doubts=frozen_floats(
                np.where(
                    off > 0.0,
                    _doubts(state, state.doubts, off, state.reach),
                    state.doubts,
                )
            ),
        )
        state, is_worse = self._judged(state, n, values, both, queries[0], replies[0])
        state = _learned_rows(state, queries[1], replies[1])
        order = sorted(seen, key=seen.__getitem__)
        n_broken = sum(value > 0.0 for value in seen.values())
        found = order[-min(max(n_broken, min(looked // NEAR_BY, JOIN // 4), 1), JOIN) :]
        over = np.maximum(np.array([*seen.values()] or [0.0]), 0.0)
        level = float(over.mean())
        unsure = float(over.std()) / math.sqrt(len(over))  # of a draw
        # Also of those not known.
        if n_broken >= MANY and level > 1.1 * state.level + CLEAR * unsure:
            is_worse = is_worse or bool((state.x != state.before).any())
            length = float(np.linalg.norm(state.x - state.before))
            state = replace(state, trust=min(state.trust, 0.5 * length) or state.trust)
        if not is_worse:
            state = replace(
                state,
                before=state.x,
                values=frozen_floats(values),
                guessed=frozen_ints(state.rows[is_guess]),
                level=level,
            )
        margin = 0.0
        if found and self._gone(state) > 1.0 - ENDING:
            margin = max(seen[found[-1]], 0.0)
        fades = 1.0 - looked / max(state.size.n_constraints, 1)
        state = replace(
            state,
            margin=max(float(margin), fades * state.margin),
            iteration=state.iteration + 1,
            n_queries=state.n_queries + cost(queries, state.size).total,
            found=frozen_ints(np.sort(np.array(found, dtype=np.int64))),
            n_looked=state.n_looked + looked,
        )
        weight = state.pulls / max(state.pulls.sum(), 1e-300)
        info = Info(
            sampled_objective=float(replies[0].losses[0].mean()),
            sampled_violation=max(float(worst), 0.0),
            sampled_share=n_broken / max(looked, 1),
            weighted_violation=float(weight @ np.maximum(state.values, 0.0)),
            n_touched=len(state.rows),
        )
        return self._stepped(state), info

    # ------------------------------------------------------------------ what is asked

    def batches(self, size: ProblemSize) -> tuple[int, int, int]:
        """Return losses, constraints along directions at most, and all queries."""
        queries, n_losses = USUAL, DSZOG.batches(self, size)[0]
        if self.horizon_queries is not None:
            few = FEW * max(POINTS // size.dim, FEWEST) * n_losses
            queries = max(min(self.horizon_queries // STEPS, few), LEAST)
        return n_losses, self.constraint_batch or queries, queries

    def least_queries(self, size: ProblemSize) -> int:
        """Return what one step costs at most."""
        n_losses, _, queries = self.batches(size)
        return (FEWEST + 5) * n_losses + min(
            self.dual_batch or queries, size.n_constraint_calls
        )

    def _gone(self, state: DSZOGState) -> float:
        """Return the part of the run that is over."""
        gone = 0.0
        if self.horizon is not None:
            gone = state.iteration / self.horizon
        if self.horizon_queries is not None:
            gone = max(gone, state.n_queries / self.horizon_queries)
        return min(gone, 1.0)

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
        n = max(queries - used - int(_asked(state).sum()), queries // 4)
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
        return min(far, FARTHEST * state.reach)

    # ---------------------------------------------------------------- what is learned

    def _joined(
        self, state: SlopesState, seen: dict[int, Any], query: Query, reply: Reply
    ) -> SlopesState:
        """Take in constraints that were found, and leave out those without a value."""
        kept = np.array([j in seen for j in state.rows.tolist()], dtype=bool)
        kept |= ~_asked(state)
        rows, values = state.rows[kept], state.values[kept]
        slopes, pulls, doubts = (
            state.slopes[kept],
            state.pulls[kept],
            state.doubts[kept],
        )
        known = np.array([j in seen for j in query.constraints.tolist()], dtype=bool)
        trust = state.trust
        if known.any():
            new, at = query.constraints[known], reply.constraints[:, known]
            now = np.array([seen[j] for j in new.tolist()])
            steps = np.vstack([query.x, query.x + query.steps]) - state.x
            first = np.zeros((len(new), len(state.x)))
            clear = np.square(steps).sum(axis=1) > SEEN**2 * state.rough
            if clear.any():
                first = _corrected(first, steps[clear], (at - now)[clear].T, 1e-2)
            rows, values = np.append(rows, new), np.append(values, at[0])
            back = now / np.maximum(np.sqrt(np.square(first).sum(axis=1)), 1e-300)
            seen_to = float(np.sqrt(np.square(steps).sum(axis=1)).max())
            trust = max(trust, min(1.5 * float(back.max()), seen_to))
            slopes, pulls = np.vstack([slopes, first]), np.append(pulls, 0.0 * now)
            doubts = np.append(doubts, 1.0 + 0.0 * now)
        most = min(max(HELD // state.size.dim, 8), MOST)
        if len(rows) > most:
            held = pulls * np.sqrt(np.square(slopes).sum(axis=1))
            best = np.sort(np.lexsort((-values, -held))[:most])
            rows, values, slopes = rows[best], values[best], slopes[best]
            pulls, doubts = pulls[best], doubts[best]
        return replace(
            state,
            rows=frozen_ints(rows),
            values=frozen_floats(values),
            slopes=frozen_floats(slopes),
            pulls=frozen_floats(pulls),
            doubts=frozen_floats(doubts),
            trust=trust,
        )

    def _judged(
        self,
        state: SlopesState,
        n: int,
        values: FloatArray,
        both: BoolArray,
        query: Query,
        reply: Reply,
    ) -> tuple[SlopesState, bool]:
        """Judge the last step, and learn the slope of the objective."""
        size, table, means = state.size, reply.losses, row_means(reply.losses)
        steps = query.points(size)[1:] - state.x
        moved = state.x - state.before
        n_back = 2 if moved.any() else 0
        whole = len(steps) == n + 2 + n_back  # nothing failed
        n = n if whole else len(steps)
        noise, trust, bend = state.noise, state.trust, state.bend
        differences = table[1:] - table[0]
        n_losses = table.shape[1]
        share = 1.0 - n_losses / size.n_losses
        varied = np.zeros(len(differences))
        if share > 0.0 and n_losses > 1:
            varied = differences.var(axis=1, ddof=1) * share / n_losses
        if whole and np.allclose(steps[n + 1], 3.0 * steps[0], rtol=1e-3, atol=0.0):
            third = means[0] - 3.0 * (means[1] - means[n + 1]) - means[n + 2]
            noise += (third**2 / 20.0 - noise) * (0.2 if state.iteration else 1.0)
        slope, error = state.velocity, state.error
        gain, hoped, is_worse = state.gain, state.hoped, False
        slopes, doubts = state.slopes, state.doubts
        if n_back and whole:
            length2 = float(moved @ moved)
            now, then = means[0], means[-1]
            second = table[-1] - 2.0 * table[-2] + table[0]
            unsure = 6.0 * noise
            if share > 0.0 and n_losses > 1:
                unsure += second.var(ddof=1) * share / n_losses
            bent = 4.0 * float(second.mean()) / length2
            scatter = math.sqrt(varied[-1] + 2.0 * noise)
            if abs(bent) * length2 > 20.0 * math.sqrt(unsure):
                bend = bent if bend <= 0.0 else 0.7 * bend + 0.3 * max(bent, 0.1 * bend)
            else:  # noise may have made it
                bend *= 0.9
            lengths, price = _lengths(state), _price(state)
            was = _excess(state.values + state.margin, lengths)
            hope = _excess(state.values + slopes @ moved + state.margin, lengths)
            hoped_for = price * (was - hope)
            of_slope = -float(slope @ moved) - 0.5 * max(bend, 0.0) * length2
            broken = _excess(values + state.margin, lengths)
            result = float(then - now + price * (was - broken))
            keep = 0.9 * scatter / (scatter + abs(result) + 1e-300)
            gain = keep * gain + result
            hoped = keep * hoped + of_slope + float(hoped_for)
            if result < -3.0 * scatter - 0.5 * abs(of_slope + hoped_for):
                is_worse, trust = True, 0.5 * math.sqrt(length2)
            elif min(abs(of_slope), abs(result)) ** 2 < 2.0 * noise:  # not to be seen
                trust = max(trust, 1.5 * math.sqrt(length2))
            elif gain > 0.5 * hoped and math.sqrt(length2) > 0.5 * trust:
                trust *= 2.0 if keep < 0.3 else 1.3
            elif gain < 0.2 * hoped:
                trust *= 0.7
            if varied[-1] > 0.0:  # does the slope promise too much?
                error *= 1.1 if then - now > 0.7 * of_slope else 0.9
            told = now - then + 0.5 * max(bend, 0.0) * length2
            part = _share(error * length2, varied[-1] + 2.0 * noise)
            slope = slope + part * (told - slope @ moved) / length2 * moved
            wrong = np.where(both, values - state.values - slopes @ moved, 0.0)
            known = np.square(wrong / lengths)
            parts = known / np.maximum(known + 2.0 * state.rough, 1e-300)
            doubts = _doubts(state, doubts, parts * np.abs(wrong), math.sqrt(length2))
            slopes = slopes + np.outer(parts * wrong / length2, moved)
        lengths = np.square(steps[:n]).sum(axis=1)
        told = means[1 : n + 1] - means[0] - 0.5 * max(bend, 0.0) * lengths
        left = np.square(told - steps[:n] @ slope).mean()
        noisy = varied[:n].mean() + 2.0 * noise
        length2 = lengths.mean()
        if length2 > 0.0 and (noisy < 0.5 * left or not error > 0.0):
            error = max(left - noisy, 0.1 * left) / length2
        part = _share(error * length2, noisy)
        slope = slope + part * (
            _corrected(slope[np.newaxis], steps[:n], told[np.newaxis])[0] - slope
        )
        state = replace(
            state,
            velocity=frozen_floats(slope),
            slopes=frozen_floats(slopes),
            doubts=frozen_floats(doubts),
            trust=max(trust, 1e-6 * state.reach),
            bend=bend,
            noise=float(noise),
            error=float(error),
            gain=float(gain),
            hoped=float(hoped),
        )
        return state, is_worse

    # ----------------------------------------------------------------------- the step

    def _stepped(self, state: SlopesState) -> SlopesState:
        """Return the state with a step from `before` to the minimum of the models."""
        slope, rows = state.velocity, state.slopes
        length = float(np.linalg.norm(slope))
        force = max((0.98 if state.force < FAR * length else 0.8) * state.force, length)
        state = replace(state, force=force)
        limit, ending = state.trust, state.ending
        lengths = np.sqrt(np.square(rows).sum(axis=1))
        values = state.values + state.margin
        left = 1.0 - self._gone(state)
        away = values / _lengths(state)
        back = 1.5 * max(float(away.max(initial=0.0)), 0.0)
        if left < ENDING:
            ending = ending or limit
            limit = min(limit, max(ending * (left / ENDING) ** 2, back, 1e-9 * ending))
        near = (away > -2.0 * limit) & (lengths > 0.0)
        if near.sum() > NEAREST:  # those that bind, and the nearest others
            order = np.lexsort((-away, -state.pulls, ~near))
            near[order[NEAREST:]] = False
        pulls = np.zeros(len(rows))
        step, went = np.zeros(len(slope)), 0.0
        if force > 0.0 and (left > STAY or back > 0.0):
            price, scale = _price(state), _lengths(state)[near]
            unit = rows[near] / scale[:, np.newaxis]
            stride = min(
                3.0 * limit / force,
                1.0 / state.bend if state.bend > 0.0 else math.inf,
            )
            gram, against = unit @ unit.T, unit @ slope
            held, far = state.pulls[near] * scale, away[near]
            for _ in range(4):
                held = _dual(gram, against, far, stride, price, held)
                step = -stride * (slope + held @ unit)
                went = float(np.linalg.norm(step))
                if went <= 1.05 * limit:
                    break
                stride *= limit / went
            pulls[near] = held / scale
            step *= min(1.0, limit / max(went, 1e-300))
        anchors = state.anchors
        if state.iteration in ANCHORS:
            anchors = frozen_floats(np.vstack([anchors, state.before]))
        return replace(
            state,
            x=frozen_floats(state.size.clip(state.before + step)),
            pulls=frozen_floats(pulls),
            anchors=anchors,
            reach=max(limit, 0.9 * state.reach),
            ending=ending,
        )

    # -------------------------------------------------------------------------- a run

    def policy(self, fixed: frozenset[str]) -> Policy:  # type: ignore[override]
        """Return how to use the method: in one round; the last iterate is the best."""
        return GUARDED

    def weights(self, state: Any) -> tuple[IntArray, FloatArray]:
        """Return the constraints that bind and their shares of the multipliers."""
        binds = state.pulls > 0.0
        order = np.argsort(state.rows[binds])
        pulls = state.pulls[binds][order]
        return state.rows[binds][order], pulls / max(pulls.sum(), 1e-300)

    def penalty_at(self, state: Any) -> float:
        """Return what weighs violations, in the units of the functions."""
        return MERIT * PULL * _typical(state)


def _learned_rows(state: SlopesState, query: Query, reply: Reply) -> SlopesState:
    """Learn the slopes of constraints that bind along the directions."""
    if not (query.constraints.size and len(query.steps)):
        return state
    order = np.argsort(state.rows)
    places = order[np.searchsorted(state.rows[order], query.constraints)]
    steps = query.points(state.size)[1:] - state.x
    slopes, lengths = np.array(state.slopes), _lengths(state)[places]
    table = reply.constraints
    rough, n = state.rough, len(steps) - 2
    if n > 0 and np.allclose(steps[-1], 3.0 * steps[0], rtol=1e-3, atol=0.0):
        third = table[0] - 3.0 * (table[1] - table[-2]) - table[-1]
        now = float(np.square(third / lengths).mean()) / 20.0
        rough += (now - rough) * (0.2 if rough > 0.0 else 1.0)
        steps, table = steps[:n], table[: n + 1]
    state = replace(state, rough=rough)
    if n < FEWEST:
        return state
    told = (table[1:] - table[0]).T
    wrong = np.zeros(len(slopes))
    wrong[places] = np.sqrt(np.square(told - slopes[places] @ steps.T).mean(axis=1))
    length = math.sqrt(float(np.square(steps).sum(axis=1).mean()))
    unsure = np.maximum(wrong[places] / lengths, 1e-300) ** 2
    part = np.maximum(unsure - 2.0 * rough, 0.1 * unsure) / unsure
    new = _corrected(slopes[places], steps, told)
    slopes[places] += part[:, np.newaxis] * (new - slopes[places])
    doubts = np.array(state.doubts)
    doubts[places] = _doubts(state, doubts, wrong, length)[places]
    return replace(state, slopes=frozen_floats(slopes), doubts=frozen_floats(doubts))


def _doubts(
    state: SlopesState, doubts: FloatArray, wrong: FloatArray, length: float
) -> FloatArray:
    """Return by what part each slope is off, as a difference over a step shows."""
    lengths = np.sqrt(np.square(state.slopes).sum(axis=1))
    now = wrong * math.sqrt(state.size.dim) / np.maximum(lengths * length, 1e-300)
    found: FloatArray = np.minimum((doubts + now) / 2.0, 10.0)
    return found


def _corrected(
    slopes: FloatArray, steps: FloatArray, told: FloatArray, ridge: float = 1e-6
) -> FloatArray:
    """Return slopes of rows, changed as little as differences along steps ask for."""
    lengths = np.sqrt(np.square(steps).sum(axis=1))
    used = lengths > 1e-6 * lengths.max()
    units, told = steps[used] / lengths[used, np.newaxis], told[:, used] / lengths[used]
    gram = units @ units.T + ridge * np.eye(len(units))
    amounts = np.linalg.solve(gram, (told - slopes @ units.T).T)
    found: FloatArray = slopes + amounts.T @ units
    return found


def _dual(
    gram: FloatArray,
    against: FloatArray,
    values: FloatArray,
    stride: float,
    price: float,
    held: FloatArray,
) -> FloatArray:
    r"""Return the multipliers of the step, by accelerated projected gradients.

    .. math:: \min_{\lambda \ge 0, \; \|\lambda\| \le u}
              \tfrac{t}{2} \|g + A^T \lambda\|^2 - c^T \lambda
    """
    if not len(values):
        return held
    ahead, bound = np.ones(len(values)), 1.0
    for _ in range(10):  # the largest eigenvalue, about
        ahead = gram @ ahead
        bound = float(np.linalg.norm(ahead)) or 1.0
        ahead /= bound
    last = ahead = held
    t = 1.0
    for _ in range(ROUNDS):
        uphill = stride * (against + gram @ ahead) - values
        new = _projected(ahead - uphill / (1.2 * bound * stride), price)
        after = (1.0 + math.sqrt(1.0 + 4.0 * t * t)) / 2.0
        if (ahead - new) @ (new - last) > 0.0:
            after, ahead = 1.0, new
        else:
            ahead = new + (t - 1.0) / after * (new - last)
        change, last, t = np.abs(new - last).max(), new, after
        if change <= 1e-9 * price:
            break
    return last


def _projected(point: FloatArray, most: float) -> FloatArray:
    """Return the nearest point without negative entries in a ball."""
    kept: FloatArray = np.maximum(point, 0.0)
    return kept * min(1.0, most / max(float(np.linalg.norm(kept)), 1e-300))


def _asked(state: SlopesState) -> BoolArray:
    """Return of which constraints the values are asked for, and not guessed."""
    moved = state.x - state.before
    far = np.sqrt(np.square(state.slopes).sum(axis=1)) * np.linalg.norm(moved)
    near: BoolArray = state.values + state.slopes @ moved + far > 0.0
    return near | (state.pulls > 0.0) | (state.iteration % OFTEN == 0)


def _lengths(state: SlopesState) -> FloatArray:
    """Return how steep constraints are; at least a part of what half of them are."""
    lengths = np.sqrt(np.square(state.slopes).sum(axis=1))
    if not lengths.any():
        return np.ones(len(lengths))
    found: FloatArray = np.maximum(lengths, 0.3 * np.median(lengths[lengths > 0.0]))
    return found


def _typical(state: SlopesState) -> float:
    """Return what holds the slope of the objective by a constraint, about."""
    lengths = _lengths(state)
    return state.force / float(np.median(lengths)) if len(lengths) else 1.0


def _price(state: SlopesState) -> float:
    """Return what a unit of distance to a constraint costs: all multipliers at most."""
    held = 2.0 * float(np.linalg.norm(state.pulls * _lengths(state)))
    force = state.force / math.sqrt(max(int((state.values > 0.0).sum()), 1))
    return min(max(PULL * force, held), MOST_PULL * force)


def _excess(values: FloatArray, lengths: FloatArray) -> float:
    """Return the distances to all constraints that are violated, as one."""
    return float(np.linalg.norm(np.maximum(values / lengths, 0.0)))


def _share(signal: float, noise: float) -> float:
    """Return the part of a difference that is to be believed."""
    return signal / (signal + noise) if noise > 0.0 else 1.0


def _size_of(x: FloatArray) -> float:
    """Return the root mean square, or 1 where all is 0."""
    with np.errstate(over="ignore"):
        found = float(np.sqrt(np.square(x).mean()))
    return found if 0.0 < found < math.inf else 1.0


def _parts(state: DSZOGState) -> dict[str, Any]:
    return {item.name: getattr(state, item.name) for item in fields(DSZOGState)}
