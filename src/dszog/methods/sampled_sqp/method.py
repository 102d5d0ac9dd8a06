r"""Sampled SQP: quadratic steps under linear models of the constraints that matter.

Each constraint that was found violated gets a linear model, learned by differences and
kept: later values correct it. A small quadratic program over these models gives the
step; further constraints are sampled at every trial point, and of those seen only the
ones that may have become violated are looked at again. So the cost of a step depends on
how many constraints matter, not on how many there are.

One iteration is one batch of queries:

pilot
    Values at the start.
slopes
    Differences there, again with other steps where values did not change or too much.
noise
    Values at a few points in a row, from which the noise of values is estimated.
trial
    Values at the trial point: losses, members of the working set, constraints seen that
    are at risk, and constraints not seen before.
learn
    Differences for constraints that join, and for what a step has made stale.
verify
    Values at the iterate of constraints that were not looked at there, before the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dszog.contract import (
    NO_INDICES,
    ProblemSize,
    Query,
    Reply,
    check_replies,
    cost,
)
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import check_count_fields, check_positive
from dszog.maths.random_stream import stream
from dszog.methods.base import FirstOrder, Info, Noise, check_first
from dszog.methods.policy import GUARDED, Policy
from dszog.methods.sampled_sqp import pilot
from dszog.methods.sampled_sqp.curvature import Pairs
from dszog.methods.sampled_sqp.elastic_qp import Answer, Rows, solve
from dszog.methods.sampled_sqp.looks import (
    NO_VALUES,
    Found,
    Look,
    inward,
    places_of,
    slope_looks,
)
from dszog.methods.sampled_sqp.losses_table import LossTable
from dszog.methods.sampled_sqp.models import WorkingSet
from dszog.methods.sampled_sqp.pilot import with_opposites
from dszog.methods.sampled_sqp.screening import Seen, permuted
from dszog.methods.sampled_sqp.state import SampledSQPState
from dszog.status import Status

# The step.
LONGEST = 1e2  # steps, in units of the point's distance from the origin
FARTHEST = 1e10  # in usual lengths: an objective that falls until there has no minimum
UNSOLVED = 1e-3  # a subproblem whose residual is larger is made easier
LAST_PRICE = 1e6  # of violations in the subproblem, in units of the gradient
GROWTH = 4.0  # of sigma after a rejected step
FEASIBLE = 1e-3  # of the tolerance: violations, in usual lengths
ACCEPT, GOOD, POOR = 0.1, 0.5, 0.25  # shares of the promise that was kept
MOST_STALE = 5  # steps in a row with a gradient that was not learned anew
USUAL_QUERIES = 1000  # in an iteration
GROWTH_SHARE = 0.3  # of the queries left that a larger table may cost
LEAST_GROWTH = 16  # rows
# Looking.
NEAR = 0.5  # of the usual length: members that are looked at
ALL_EVERY = 5  # trials after which all members are looked at
MOST_VERIFIED = 4096  # constraints in one look before the end
QUIET = 10**5  # unseen constraints without a violation that end a run

NEAR_ZERO = 1e-6  # of what the objective falls over a usual length: as good as 0
DROWNED = 1e-2  # of the objective: what noise may hide if a run is to have converged
NOISY_REACH = 3e-3  # steps of differences, in usual lengths, that are worth a word
FLAT = (
    "the objective did not change in any difference at the start: it may be piecewise "
    "constant, or have no part in the problem"
)
NOISY = "values are noisy: differences were taken over long steps and tell less"
FEW_LOSSES = "the losses looked at say no more, and more need a larger budget"
JUMPS = (
    "values change in jumps, as if rounded or piecewise constant: differences were "
    "taken over long steps and tell less"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSQP:
    r"""Step by small quadratic programs over models that are learned and kept.

    Parameters
    ----------
    tol : float
        The residual of the optimality conditions, relative, at which a run has
        converged.
    constraint_batch : int
        Unseen constraints that a trial looks at, at first.
    loss_batch : int
        Losses in the table at first; refreshed at least, too.
    noise_share : float
        The table grows while the noise of its mean along the step exceeds this share of
        the decrease that the step promises.
    horizon_queries : int, optional
        Queries that the run may use; set by the run.
    """

    tol: float = 1e-6
    constraint_batch: int = 256
    loss_batch: int = 32
    noise_share: float = 0.5
    horizon_queries: int | None = None

    def __post_init__(self) -> None:
        check_positive(
            self,
            tol="Try 1e-6.",
            noise_share="Try 0.5; less asks for more losses before each step.",
        )
        check_count_fields(self, "constraint_batch", "loss_batch")
        check_count_fields(self, "horizon_queries", optional=True)

    # ------------------------------------------------------------------ what a run asks

    def init(self, x0: FloatArray, size: ProblemSize, seed: int) -> SampledSQPState:
        """Return the state before the pilot."""
        x = check_first(self, x0, size, seed)
        x = size.clip(x)
        dim = size.dim
        losses = self._loss_order(0, self.loss_batch, size, seed)
        n_first = max(self.constraint_batch, pilot.ALL_MEMBERS)
        drawn, seen = Seen.nothing(dim).draw(n_first, size, seed)
        return SampledSQPState(
            iteration=0,
            seed=seed,
            size=size,
            x=x,
            phase="pilot",
            looks=(Look(at=x, losses=losses, constraints=drawn),),
            members=WorkingSet.empty(dim),
            table=LossTable.empty(dim),
            seen=seen,
            pairs=Pairs.none(dim),
            start=x,
            scale=np.ones(dim),
            length=1.0,
            first_distance=0.0,
            first_sigma=1.0,
            loss_reach=1e-7,
            row_reach=1e-7,
            loss_noise=0.0,
            constraint_noise=0.0,
            unit_noise=0.0,
            is_rounded=0,
            pilot_steps=np.zeros((2, dim)),
            n_pilot=0,
            step=np.zeros(dim),
            curved=0.0,
            promise=0.0,
            is_corrected=0,
            sigma=1.0,
            price=1.0,
            weight=0.0,
            objective=0.0,
            first_objective=0.0,
            violation=0.0,
            has_moved=0,
            n_trials=0,
            n_stale=0,
            n_rejected=0,
            n_idle=0,
            n_tiny=0,
            batch=self.constraint_batch,
            wants_rows=0,
            n_found=0,
            n_clean=0,
            anchor=np.zeros(dim),
            anchor_gradient=np.zeros(dim),
            residual=math.inf,
            n_loss_queries=0,
            n_constraint_queries=0,
        )

    def ask(self, state: SampledSQPState) -> tuple[Query, ...]:
        """Ask what the state wants to look at."""
        if state.phase == "noise":
            return pilot.noise_queries(state)
        return tuple(
            query
            for look in state.looks
            for query in look.queries(state.iteration, state.size)
        )

    def tell(
        self,
        state: SampledSQPState,
        queries: Sequence[Query],
        replies: Sequence[Reply],
    ) -> tuple[SampledSQPState, Info]:
        """Return the state after what was learned, with the next step worked out."""
        asked = self.ask(state)
        check_replies(state.iteration, queries, replies, len(asked))
        charged = cost(queries, state.size)
        phase = state.phase
        state = replace(
            state,
            n_loss_queries=state.n_loss_queries + charged.losses,
            n_constraint_queries=state.n_constraint_queries + charged.constraints,
        )
        if phase == "noise":
            state = pilot.after_noise(state, replies)
        else:
            found = _read(state, asked, queries, replies)
            if phase == "pilot":
                state = pilot.after_values(state, found[0])
            elif phase == "slopes":
                state = self._after_slopes(state, found)
            elif phase == "trial":
                state = self._after_trial(state, found[0])
            elif phase == "learn":
                state = self._after_learning(state, found)
            else:
                state = self._after_verifying(state, found[0])
        state = replace(state, iteration=state.iteration + 1)
        info = self._info(state, is_step=phase == "trial")
        if phase == "slopes" and state.phase != "slopes":
            info = info._replace(events=_warnings(state))
        return state, info

    def _info(self, state: SampledSQPState, *, is_step: bool) -> Info:
        stop = None
        events: tuple[str, ...] = ()
        if state.phase == "done":
            is_shown = self._is_optimal(state) and not _is_drowned(state)
            stop = Status.CONVERGED if is_shown else Status.STALLED
            if _is_drowned(state) and not _warnings(state):  # else it was said before
                events = (NOISY,)
            if stop == Status.STALLED and self._is_settled(state):
                events = (*events, FEW_LOSSES)
            if not self._is_feasible(state):
                stop = Status.LEAST_VIOLATION
        far = FARTHEST * max(state.length, state.first_distance)
        if state.n_trials and np.abs(state.z).max() > far:
            stop = Status.UNBOUNDED
        positive = int(np.count_nonzero(state.members.multipliers > 0))
        return Info(
            sampled_objective=state.objective,
            sampled_violation=max(state.violation, 0.0),
            is_step=is_step,
            n_touched=positive,
            events=events,
            stop=stop,
        )

    def planned(
        self, size: ProblemSize, iterations: int | None, queries: int | None
    ) -> Self:
        """Return the method with the number of queries known, or a usual one."""
        if self.horizon_queries is not None:
            return self
        if queries is None and iterations is not None:
            queries = USUAL_QUERIES * iterations
        return self if queries is None else replace(self, horizon_queries=queries)

    def policy(self, fixed: frozenset[str]) -> Policy:
        """Return that no step makes things worse, so that the last iterate is best."""
        return GUARDED

    def least_queries(self, size: ProblemSize) -> int:
        """Return what the pilot and the first trial cost."""
        losses = min(self.loss_batch, size.n_losses)
        constraints = min(self.constraint_batch, size.n_constraints)
        members = (
            constraints if constraints <= pilot.ALL_MEMBERS else pilot.FIRST_MEMBERS
        )
        learned = (size.dim + pilot.NOISE_POINTS) * (losses + 2 * members)
        return 2 * (losses + constraints) + learned

    def new_round(self, state: SampledSQPState) -> SampledSQPState:
        """Return the state as it is: this method runs in one round."""
        return state

    def weights(self, state: SampledSQPState) -> tuple[IntArray, FloatArray]:
        r"""Return the members with their weights :math:`p = \lambda / \sum \lambda`."""
        raw = state.members.multipliers / np.maximum(state.members.sizes, 1e-300)
        order = np.argsort(state.members.indices, kind="stable")
        total = float(raw.sum())
        indices = state.members.indices[order]
        if not (total > 0 and math.isfinite(total)):
            return indices, np.zeros(len(indices))
        return indices, raw[order] / total

    def _after_slopes(
        self, state: SampledSQPState, found: list[Found]
    ) -> SampledSQPState:
        """Look again where values hardly changed; else go on to the first step."""
        state = pilot.with_slopes(state, found)
        looks = pilot.longer_looks(state)
        if looks:
            return replace(state, looks=looks)
        return self._proposed(pilot.scaled(state))

    def first_order(self, state: SampledSQPState) -> FirstOrder | None:
        """Return how well the optimality conditions hold; None if it is not known."""
        if not math.isfinite(state.residual):
            return None
        members = state.members
        pulls = np.flatnonzero(members.multipliers > 0)
        pulls = pulls[np.argsort(members.indices[pulls], kind="stable")]
        raw = members.multipliers[pulls] / members.sizes[pulls]
        return FirstOrder(state.residual, members.indices[pulls], raw)

    def noise(self, state: SampledSQPState) -> Noise | None:
        """Return the noise of values; None if the run did not get so far."""
        if not state.n_pilot:
            return None
        return Noise(state.loss_noise, state.constraint_noise)

    # ------------------------------------------------------------------------- the step

    def _proposed(
        self, state: SampledSQPState, correction: FloatArray | None = None
    ) -> SampledSQPState:
        """Solve the subproblem; go on to a trial point, a larger table, or the end."""
        z, table = state.z, state.table
        slopes = table.slopes if state.size.n_losses > 1 else table.slopes[:0]
        curvature = state.pairs.matrix(slopes)
        state, answer = self._solved(state, curvature, correction)
        members, step = state.members, answer.step
        now, then = members.at(z), members.at(z + step)
        weight = self._weight(state)
        curved = float(step @ curvature @ step)
        gain = -(float(table.gradient @ step) + 0.5 * curved)
        promise = gain + weight * (_excess(now) - _excess(then))
        if correction is not None:
            promise = state.promise  # of the step that is corrected
        state = replace(
            state,
            step=step,
            curved=curved,
            promise=promise,
            is_corrected=int(correction is not None),
            weight=weight,
            residual=self._residual(state, curvature, answer, now),
        )
        if self._wants_growth(state):
            return self._growing(state)
        if correction is None and self._is_at_end(state):
            return self._verifying(state)
        return self._trying(state)

    def _weight(self, state: SampledSQPState) -> float:
        """Return what a unit of violation weighs in the merit: more than it gains."""
        needed = 2.0 * float(state.members.multipliers.max(initial=0.0))
        steepness = float(np.linalg.norm(state.table.gradient))
        return max(needed, 0.5 * (state.weight + needed), 0.5 * steepness, 1e-12)

    def _solved(
        self,
        state: SampledSQPState,
        curvature: FloatArray,
        correction: FloatArray | None,
    ) -> tuple[SampledSQPState, Answer]:
        """Return the answer of the subproblem, with multipliers, sigma and price."""
        members, size = state.members, state.size
        offsets = members.at(state.z)
        if correction is not None:
            offsets = offsets + correction
        rows, who = members.rows(offsets)
        lower = (size.lower - state.x) / state.scale
        upper = (size.upper - state.x) / state.scale
        gradient = state.table.gradient

        def answered(sigma: float, price: float, start: FloatArray) -> Answer:
            hessian = curvature + sigma * np.eye(size.dim)
            return solve(hessian, gradient, rows, price, lower, upper, start)

        sigma, price = state.sigma, state.price
        answer = answered(sigma, price, members.signed_multipliers(who))
        while answer.residual > UNSOLVED and sigma < 1e12 * state.first_sigma:
            sigma *= 10.0
            answer = answered(sigma, price, answer.multipliers)
        longest = LONGEST * max(float(np.abs(state.z).max()), state.length)
        while np.abs(answer.step).max() > longest and sigma < 1e12 * state.first_sigma:
            sigma *= 10.0
            answer = answered(sigma, price, answer.multipliers)
        highest = LAST_PRICE * (float(np.linalg.norm(gradient)) or 1.0)
        while price < highest and _is_saturated(answer, price):
            higher = answered(sigma, 10.0 * price, answer.multipliers)
            # A higher price is kept if it buys less violation.
            if _excess_of(rows, higher.step) > 0.9 * _excess_of(rows, answer.step):
                break
            answer, price = higher, 10.0 * price
        members = members.with_multipliers(who, answer.multipliers)
        return replace(state, members=members, sigma=sigma, price=price), answer

    def _residual(
        self,
        state: SampledSQPState,
        curvature: FloatArray,
        answer: Answer,
        now: FloatArray,
    ) -> float:
        """Return by how much the optimality conditions fail, relative to the forces."""
        members = state.members
        left = curvature @ answer.step + state.sigma * answer.step
        pull = members.slopes.T @ members.multipliers
        reach_of = max(float(np.abs(state.z).max()), state.length)
        force = max(
            float(np.abs(state.table.gradient).max()),
            float(np.abs(pull).max(initial=0.0)),
            state.pairs.stiffness() * reach_of,
            1e-300,
        )
        if not len(
            state.pairs.steps
        ):  # around the start, over steps that were long enough
            force = max(force, state.first_sigma * state.length)
        violation = float(now.max(initial=0.0)) / reach_of
        return max(float(np.abs(left).max()) / force, violation / FEASIBLE)

    def _is_feasible(self, state: SampledSQPState) -> bool:
        """Whether the models see no violation worth a word."""
        size = max(float(np.abs(state.z).max()), state.length)
        worst = float(state.members.at(state.z).max(initial=0.0))
        return worst <= max(FEASIBLE * self.tol * size, 16 * state.unit_noise)

    def _is_optimal(self, state: SampledSQPState) -> bool:
        gone = abs(state.first_objective - state.objective)
        usual = NEAR_ZERO * state.first_sigma * state.length**2
        worth = self.tol * max(abs(state.objective), gone, usual)
        is_flat = state.residual <= self.tol and state.promise <= worth
        return is_flat or state.n_tiny >= 3

    def _is_at_end(self, state: SampledSQPState) -> bool:
        """Whether no step is worth trying any more."""
        if state.n_stale:
            return False
        return self._is_optimal(state) or self._is_settled(state) or state.n_idle >= 4

    def _is_settled(self, state: SampledSQPState) -> bool:
        """Whether the losses in the table say no more, and more are not affordable."""
        noise = state.table.noise_along(state.step, state.size.n_losses)
        return 0.0 < noise >= state.promise and not self._affordable_rows(state)

    def _trying(self, state: SampledSQPState) -> SampledSQPState:
        """Go to the trial point with everything to be looked at there."""
        size, members = state.size, state.members
        y = size.clip(state.x + state.scale * state.step)
        zy = y / state.scale
        then = members.at(zy)
        near = (then > -NEAR * state.length) | (members.multipliers > 0)
        if state.n_trials % ALL_EVERY == 0 or len(members) <= pilot.ALL_MEMBERS:
            near[:] = True
        near |= np.isin(members.indices, members.opposites[near])
        at_risk = self._at_risk(state, zy)
        n_new = state.batch if state.n_found < self._most_joining(size) else 0
        drawn, seen = NO_INDICES, state.seen
        if not state.seen.all_drawn(size):
            drawn, seen = state.seen.draw(
                max(n_new, min(state.batch, self.constraint_batch)), size, state.seed
            )
            drawn = drawn[~np.isin(drawn, members.indices)]
        wanted = np.concatenate([members.indices[near], at_risk, drawn])
        look = Look(at=y, losses=state.table.indices, constraints=np.unique(wanted))
        return replace(state, phase="trial", looks=(look,), seen=seen)

    def _at_risk(self, state: SampledSQPState, z: FloatArray) -> IntArray:
        """Return the seen constraints that may be violated at a point, the worst.

        Once all were seen, some that seem safe are looked at too, the riskiest: the
        rate by which risks are judged is itself only learned.
        """
        seen, size = state.seen, state.size
        risks = seen.risks(z)
        most = max(state.batch, 4 * self._most_joining(size))
        n_more = 0
        if seen.all_drawn(size):
            behind = (state.n_loss_queries - state.n_constraint_queries) // 8
            n_more = min(state.batch, max(self.constraint_batch, behind))
        others = np.flatnonzero(~np.isin(seen.indices, state.members.indices))
        n_wanted = min(int((risks[others] > 0).sum()) + n_more, most, len(others))
        if n_wanted < len(others):
            order = np.argpartition(-risks[others], n_wanted)[:n_wanted]
            others = others[np.sort(order)]
        found: IntArray = seen.indices[others]
        return found

    def _most_joining(self, size: ProblemSize) -> int:
        return max(8, min(size.dim // 6, 64))

    # -------------------------------------------------------------- the trial's outcome

    def _after_trial(self, state: SampledSQPState, found: Found) -> SampledSQPState:
        """Accept the trial point, keep the point and take in constraints, or reject."""
        look, members = state.looks[0], state.members
        y = look.at
        zy = y / state.scale
        asked = np.flatnonzero(np.isin(members.indices, look.constraints))
        raw = found.values[places_of(members.indices[asked], look.constraints)]
        known = ~np.isnan(raw)
        asked, raw = asked[known], raw[known]
        values = raw / members.sizes[asked]
        now, then = members.at(state.z), members.at(zy)
        seen_then = np.array(then)
        seen_then[asked] = values
        rows = ~np.isnan(found.loss_values)
        before, after = state.table.values[rows], found.loss_values[rows]
        fall = float((before - after).mean()) if rows.any() else 0.0
        kept = fall + state.weight * (_excess(now) - _excess(seen_then))
        fuzz = 4.0 * state.loss_noise / math.sqrt(max(int(rows.sum()), 1))
        fuzz += 4.0 * state.weight * state.unit_noise * math.sqrt(len(members))
        ratio = (kept + fuzz) / (max(state.promise, 0.0) + fuzz) if fuzz > 0 else kept
        if not math.isfinite(ratio):
            ratio = -1.0
        state, joining, joining_values, worst_new = self._discovered(state, found)
        pull = float(members.multipliers.sum())
        spoiled = kept - pull * worst_new
        is_null = ratio > ACCEPT and worst_new > 0 and spoiled < 0.1 * state.promise
        has_moved = ratio > ACCEPT and not is_null
        members = members.with_bends(asked, values, zy)
        state = replace(
            state,
            members=members,
            n_trials=state.n_trials + 1,
            has_moved=int(has_moved),
        )
        if has_moved:
            few_new = pull * worst_new < 0.5 * max(state.promise, 0.0)
            return self._accepted(
                state,
                found,
                asked,
                values,
                joining,
                joining_values,
                ratio if few_new else min(ratio, GOOD),
                fuzz,
            )
        # The point stays: models of curved members that were learned here stay too.
        elsewhere = (members.bases[asked] != state.z).any(axis=1)
        use = elsewhere | (members.bent[asked] == 0)
        state = replace(state, members=members.corrected(asked[use], values[use], zy))
        if is_null:
            grown = 2.0 if spoiled < -state.promise else 1.0
            state = replace(state, sigma=self._held(state, grown * state.sigma))
            return self._learning(state, y, joining, joining_values)
        return self._rejected(state, seen_then - then, kept, worst_new)

    def _discovered(
        self, state: SampledSQPState, found: Found
    ) -> tuple[SampledSQPState, IntArray, FloatArray, float]:
        """Return who joins the working set, with values; note what was seen."""
        look, size = state.looks[0], state.size
        new = ~np.isin(look.constraints, state.members.indices) & ~np.isnan(
            found.values
        )
        indices, values = look.constraints[new], found.values[new]
        zy = look.at / state.scale
        seen = (
            state.seen.with_values(indices, values, zy) if len(indices) else state.seen
        )
        usual = float(np.median(state.members.sizes)) if len(state.members) else 1.0
        worth = values > self.tol * state.length * usual
        n_found, most = int(worth.sum()), self._most_joining(size)
        order = np.argsort(-np.where(worth, values, -np.inf), kind="stable")
        chosen = with_opposites(order[: min(n_found, most)], values)
        batch, wants_rows = state.batch, state.wants_rows
        table_cost = len(state.table) * (size.dim + 1)
        if n_found < max(2, most // 4):
            if len(state.table) < size.n_losses and batch >= table_cost:
                wants_rows = 1
            else:
                batch = self._larger(state, batch)
        elif n_found > 2 * most:
            batch = max(batch // 2, self.constraint_batch)
        state = replace(
            state,
            seen=seen,
            batch=batch,
            wants_rows=wants_rows,
            n_found=n_found,
            n_clean=0 if n_found else state.n_clean + len(indices),
        )
        worst = float(values[chosen].max(initial=0.0)) / usual if n_found else 0.0
        return state, indices[chosen], values[chosen], worst

    def _larger(self, state: SampledSQPState, batch: int) -> int:
        """Return twice as many constraints to look at, as far as the budget goes."""
        most = max(int(self._left(state)) // 10, self.constraint_batch)
        return min(2 * batch, most, max(state.size.n_constraints, 1))

    def _left(self, state: SampledSQPState) -> float:
        """Return how many queries are left; many if there is no limit."""
        if self.horizon_queries is None:
            return 10 * 2**20
        used = state.n_loss_queries + state.n_constraint_queries
        return max(self.horizon_queries - used, 0)

    def _accepted(
        self,
        state: SampledSQPState,
        found: Found,
        asked: IntArray,
        values: FloatArray,
        joining: IntArray,
        joining_values: FloatArray,
        ratio: float,
        fuzz: float,
    ) -> SampledSQPState:
        """Move; learn anew what the step has made stale."""
        look, table, members = state.looks[0], state.table, state.members
        y = look.at
        zy = y / state.scale
        sigma = state.sigma
        if ratio > GOOD:
            sigma /= 2.0 if state.size.n_losses > 1 else 4.0
        elif ratio < POOR:
            sigma *= GROWTH
        losses = np.where(np.isnan(found.loss_values), table.values, found.loss_values)
        objective = float(losses.mean()) if len(losses) else 0.0
        gain = -(float(table.gradient @ state.step) + 0.5 * state.curved)
        surprise = objective - (state.objective - gain)
        raw = found.values[~np.isnan(found.values)]
        is_tiny = state.promise <= fuzz
        bent = self._stale_members(state, asked, values, zy)
        trusts = (
            state.size.n_losses > 1
            and abs(surprise) <= 0.1 * max(abs(gain), state.promise)
            and state.n_stale < MOST_STALE
            and not state.wants_rows
            and len(joining) >= max(2, self._most_joining(state.size) // 4)
            and not (members.multipliers[members.bent == 1] > 0).any()
        )
        rest = np.setdiff1d(asked, bent)
        place = np.searchsorted(asked, rest)
        members = members.corrected(rest, values[place], zy)
        state = replace(
            state,
            x=y,
            members=members,
            table=replace(table, values=losses),
            sigma=self._held(state, sigma),
            objective=objective,
            violation=float(raw.max(initial=0.0)),
            n_rejected=0,
            n_idle=0,
            n_tiny=state.n_tiny + 1 if is_tiny else 0,
        )
        if trusts:
            return self._trusting(state, surprise, y, joining, joining_values)
        order = stream(state.seed, state.iteration).permutation(len(table))
        state = replace(state, table=state.table.begun(order))
        again = members.indices[bent]
        again_values = values[np.searchsorted(asked, bent)] * members.sizes[bent]
        return self._learning(
            state,
            y,
            np.concatenate([again, joining]),
            np.concatenate([again_values, joining_values]),
            state.table.next_rows(self.loss_batch),
        )

    def _stale_members(
        self,
        state: SampledSQPState,
        asked: IntArray,
        values: FloatArray,
        zy: FloatArray,
    ) -> IntArray:
        """Return the members to learn anew after a step: curved, and near enough."""
        members = state.members
        bent = members.bent[asked] == 1
        matters = (members.multipliers[asked] > 0) | (values > -0.1 * state.length)
        found = asked[bent & matters]
        if len(found) > 4 * (state.size.dim + 1):
            weights = members.multipliers[found]
            found = np.sort(found[np.argsort(-weights, kind="stable")])
            found = found[: 4 * (state.size.dim + 1)]
        with_opposites = np.isin(members.indices, members.opposites[found])
        return np.union1d(found, np.intersect1d(np.flatnonzero(with_opposites), asked))

    def _trusting(
        self,
        state: SampledSQPState,
        surprise: float,
        y: FloatArray,
        joining: IntArray,
        joining_values: FloatArray,
    ) -> SampledSQPState:
        """Go on with the gradient that the model predicts: its value was right."""
        curvature = state.pairs.matrix(state.table.slopes)
        said = curvature @ state.step
        if state.curved > 0:
            bent = max(state.curved + 2.0 * surprise, 0.2 * state.curved)
            said = said * (bent / state.curved)
        table = replace(state.table, gradient=state.table.gradient + said)
        state = replace(state, table=table, n_stale=state.n_stale + 1)
        return self._learning(state, y, joining, joining_values)

    def _rejected(
        self,
        state: SampledSQPState,
        misses: FloatArray,
        kept: float,
        worst_new: float,
    ) -> SampledSQPState:
        """Try a shorter step; or one that takes the curvature of rows into account."""
        wrong = max(state.promise - kept, 0.0)
        by_rows = state.weight * np.maximum(misses, 0.0).sum()
        if not state.is_corrected and by_rows > 0.5 * wrong and state.n_rejected == 0:
            corrected = self._proposed(state, np.array(misses))
            shift = np.linalg.norm(corrected.step - state.step)
            if corrected.phase == "trial" and shift <= np.linalg.norm(state.step):
                return replace(corrected, n_rejected=1)
        length = float(state.step @ state.step)
        steeper = state.sigma + 2.0 * wrong / max(length, 1e-300)
        sigma = min(max(GROWTH * state.sigma, steeper), 1e3 * state.sigma)
        n_rejected = state.n_rejected + 1
        state = replace(state, sigma=self._held(state, sigma), n_rejected=n_rejected)
        if state.n_stale or n_rejected % 4 == 0:
            return self._learning_all(state)
        return self._proposed(state)

    def _learning_all(self, state: SampledSQPState) -> SampledSQPState:
        """Learn the gradient and the members that matter anew where we are."""
        members, table = state.members, state.table
        elsewhere = (members.bases != state.z).any(axis=1)
        matters = (members.multipliers > 0) | (members.at(state.z) > 0)
        wanted = (members.bent == 1) & matters & (elsewhere | (state.n_idle > 0))
        wanted |= np.isin(members.indices, members.opposites[wanted])
        factor = 1.0
        if state.n_idle:
            factor = 8.0 if state.n_idle % 2 else 0.125
        order = stream(state.seed, state.iteration).permutation(len(table))
        table = table.begun(order)
        state = replace(
            state, table=table, n_idle=state.n_idle + (state.n_stale == 0), has_moved=0
        )
        rows = order if state.n_stale == 0 else table.next_rows(self.loss_batch)
        looks = _slope_looks(
            state, state.x, table.indices[rows], members.indices[wanted], factor=factor
        )
        return replace(state, phase="learn", looks=looks)

    def _held(self, state: SampledSQPState, sigma: float) -> float:
        """Return sigma within its bounds."""
        least = 1e-3 if state.size.n_losses > 1 else 1e-9
        return min(max(sigma, least * state.first_sigma), 1e12 * state.first_sigma)

    # ------------------------------------------------------------------------- learning

    def _learning(
        self,
        state: SampledSQPState,
        at: FloatArray,
        constraints: IntArray,
        values: FloatArray,
        rows: IntArray = NO_INDICES,
    ) -> SampledSQPState:
        """Learn slopes at a point; go on at once if there is nothing to learn."""
        if not len(constraints) and not len(rows):
            return self._proposed(state)
        looks = _slope_looks(
            state,
            at,
            state.table.indices[rows],
            constraints,
            state.table.values[rows],
            values,
        )
        return replace(state, phase="learn", looks=looks)

    def _wants_growth(self, state: SampledSQPState) -> bool:
        """Whether the table has too few losses for the step that is proposed."""
        table, n_losses = state.table, state.size.n_losses
        if len(table) >= n_losses or state.n_stale:
            return False
        noise = table.noise_along(state.step, n_losses)
        n_more = self._affordable_rows(state)
        if not n_more:
            return False
        upcoming = n_more * (state.size.dim + 1)
        has_share = state.n_loss_queries + upcoming < state.n_constraint_queries
        too_noisy = noise > self.noise_share * max(state.promise, 0.0)
        is_wanted = bool(state.wants_rows) or self._is_optimal(state)
        return is_wanted or too_noisy or has_share

    def _affordable_rows(self, state: SampledSQPState) -> int:
        """Return by how many losses the table may grow; at most to twice its size."""
        b = len(state.table)
        per_row = 1 if state.size.has_gradient else state.size.dim + 1
        n_more = min(b, int(GROWTH_SHARE * self._left(state)) // per_row)
        return n_more if n_more >= min(LEAST_GROWTH, state.size.n_losses - b) else 0

    def _growing(self, state: SampledSQPState) -> SampledSQPState:
        """Take more losses into the table."""
        b = len(state.table)
        end = b + self._affordable_rows(state)
        more = self._loss_order(b, end, state.size, state.seed)
        looks = _slope_looks(state, state.x, more, NO_INDICES)
        return replace(state, phase="learn", looks=looks, wants_rows=0, has_moved=0)

    def _loss_order(
        self, start: int, end: int, size: ProblemSize, seed: int
    ) -> IntArray:
        positions = np.arange(start, min(end, size.n_losses))
        return np.sort(permuted(positions, size.n_losses, 2 * seed))

    def _after_learning(
        self, state: SampledSQPState, found: list[Found]
    ) -> SampledSQPState:
        """Take in what was learned; learn more of the losses while they are noisy."""
        change = np.zeros(state.size.dim)
        learned_losses = False
        for look, one in zip(state.looks, found, strict=True):
            state, row_change = self._with_rows(state, look, one)
            change = change + row_change
            if len(look.losses):
                state, more = self._with_losses(state, look, one)
                learned_losses = True
                if len(more):
                    return self._learning(state, look.at, NO_INDICES, NO_VALUES, more)
        if learned_losses:
            state = self._with_pair(state, change)
        return self._proposed(self._trimmed(state))

    def _trimmed(self, state: SampledSQPState) -> SampledSQPState:
        most = max(6 * state.size.dim, 200)
        return replace(state, members=state.members.trimmed(most, state.z))

    def _with_rows(
        self, state: SampledSQPState, look: Look, found: Found
    ) -> tuple[SampledSQPState, FloatArray]:
        """Return the working set with models learned; and the change they cause."""
        members, z = state.members, look.at / state.scale
        known = ~np.isnan(found.values)
        indices, values = look.constraints[known], found.values[known]
        slopes = found.slopes[known]
        old = np.isin(indices, members.indices)
        which = places_of(indices[old], members.indices)
        before = members.slopes[which]
        pull = members.multipliers[which]
        members = members.learned_anew(which, values[old], slopes[old], z)
        change: FloatArray = pull @ (members.slopes[which] - before)
        members = members.joined(
            indices[~old], values[~old], np.nan_to_num(slopes[~old]), z
        )
        return replace(state, members=members), change

    def _with_losses(
        self, state: SampledSQPState, look: Look, found: Found
    ) -> tuple[SampledSQPState, IntArray]:
        """Return the table with slopes learned, and rows to learn before going on."""
        table = state.table
        is_old = np.isin(look.losses, table.indices)
        if not is_old.all():  # the table grows
            known = ~np.isnan(found.loss_values)
            table = table.grown(
                look.losses[known],
                found.loss_values[known],
                np.nan_to_num(found.loss_slopes[known]),
            )
            objective = float(table.values.mean())
            return replace(state, table=table, objective=objective), NO_INDICES
        rows = places_of(look.losses, table.indices)
        table = table.refreshed(rows, found.loss_slopes, state.step)
        sampling = table.noise_along(state.step, state.size.n_losses)
        aim = 0.3 * max(self.noise_share * state.promise, sampling)
        more = NO_INDICES
        if table.noise_left() > aim:
            more = table.next_rows(self.loss_batch)
        return replace(state, table=table), more

    def _with_pair(self, state: SampledSQPState, change: FloatArray) -> SampledSQPState:
        """Return the state with what the step says about curvature."""
        pairs, gradient = state.pairs, state.table.gradient
        if state.has_moved:
            step = state.z - state.anchor
            pairs = pairs.with_pair(step, gradient - state.anchor_gradient + change)
        return replace(
            state,
            pairs=pairs,
            anchor=state.z,
            anchor_gradient=gradient,
            n_stale=0,
            has_moved=0,
        )

    # --------------------------------------------------------------------- verification

    def _verifying(self, state: SampledSQPState) -> SampledSQPState:
        """Look at constraints that were not seen here; end if there are none."""
        size, seen, members = state.size, state.seen, state.members
        risks = seen.risks(state.z)
        unsure = seen.distances(state.z) > 1e-3 * state.length
        unsure &= ~np.isin(seen.indices, members.indices)
        who = np.flatnonzero(unsure)
        most = max(state.batch, MOST_VERIFIED)
        most = max(min(most, int(self._left(state)) // 2), 1)
        if len(who) > most:
            who = who[np.argpartition(-risks[who], most)[:most]]
        wanted, n_left = seen.indices[np.sort(who)], most - len(who)
        is_all = seen.all_drawn(size)
        if n_left > 0 and not is_all and state.n_clean < QUIET:
            drawn, seen = seen.draw(n_left, size, state.seed)
            wanted = np.union1d(wanted, drawn[~np.isin(drawn, members.indices)])
        if len(wanted):
            look = Look(at=state.x, constraints=wanted)
            return replace(state, phase="verify", looks=(look,), seen=seen)
        look = Look(at=state.x, losses=state.table.indices, constraints=members.indices)
        return replace(state, phase="done", looks=(look,))

    def _after_verifying(self, state: SampledSQPState, found: Found) -> SampledSQPState:
        """Go on with what was found violated, or come closer to the end."""
        if state.phase == "done":
            return self._verifying(state)
        state, joining, values, _ = self._discovered(state, found)
        if not len(joining):
            return self._verifying(state)
        violation = max(state.violation, float(values.max()))
        state = replace(state, violation=violation, n_idle=0, n_tiny=0, has_moved=0)
        return self._learning(state, state.x, joining, values)


# -------------------------------------------------------------------------- small parts


def _read(
    state: SampledSQPState,
    asked: Sequence[Query],
    queries: Sequence[Query],
    replies: Sequence[Reply],
) -> list[Found]:
    """Return what the replies say about each look."""
    found, first = [], 0
    for look in state.looks:
        n = len(look.queries(state.iteration, state.size))
        part = slice(first, first + n)
        found.append(look.read(queries[part], replies[part], state.size, state.scale))
        first += n
    return found


def _slope_looks(
    state: SampledSQPState,
    at: FloatArray,
    losses: IntArray,
    constraints: IntArray,
    loss_values: FloatArray = NO_VALUES,
    values: FloatArray = NO_VALUES,
    factor: float = 1.0,
) -> tuple[Look, ...]:
    """Return looks at slopes, by differences over steps as long as noise asks for."""

    def steps(reach: float) -> FloatArray:
        size = np.maximum(factor * reach * state.scale, 1e-8 * np.abs(state.x))
        return inward(at, size, state.size)

    return slope_looks(
        Look(
            at=at, losses=losses, loss_values=loss_values, reach=steps(state.loss_reach)
        ),
        Look(
            at=at,
            constraints=constraints,
            constraint_values=values,
            reach=steps(state.row_reach),
        ),
    )


def _excess(values: FloatArray) -> float:
    """Return the sum of what is positive."""
    return float(np.maximum(values, 0.0).sum())


def _is_saturated(answer: Answer, price: float) -> bool:
    """Whether a row would rather pay the price than hold."""
    return float(np.abs(answer.multipliers).max(initial=0.0)) > 0.99 * price


def _excess_of(rows: Rows, step: FloatArray) -> float:
    """Return the violation of the rows after a step."""
    values = rows.offsets + rows.slopes @ step
    values = np.where(rows.two_sided, np.abs(values), np.maximum(values, 0.0))
    return float(values.sum())


def _warnings(state: SampledSQPState) -> tuple[str, ...]:
    """Return what the pilot has found that may mislead differences."""
    found = []
    if not state.size.has_gradient and not state.table.slopes.any():
        found.append(FLAT)
    if state.is_rounded:
        found.append(JUMPS)
    elif max(state.loss_reach, state.row_reach) > NOISY_REACH * state.length:
        found.append(NOISY)
    return tuple(found)


def _is_drowned(state: SampledSQPState) -> bool:
    """Whether noise hides what the objective could still lose."""
    if FLAT in _warnings(state):  # a constant, if it is the same far away
        return not (state.n_trials and state.objective == state.first_objective)
    if state.size.has_gradient:
        return False
    unknown = 2.0 * state.loss_noise / state.loss_reach * state.length
    gone = abs(state.first_objective - state.objective)
    usual = NEAR_ZERO * state.first_sigma * state.length**2
    return unknown > DROWNED * max(abs(state.objective), gone, usual)
