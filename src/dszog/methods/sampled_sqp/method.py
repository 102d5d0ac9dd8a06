r"""Sampled SQP: quadratic steps under linear models of the constraints that matter.

Each constraint that was found violated gets a linear model, learned by differences and
kept: later values correct it. A small quadratic program over these models gives the
step; further constraints are sampled at every trial point, and of those seen only the
ones that may have become violated are looked at again. So the cost of a step depends on
how many constraints matter, not on how many there are.

One iteration is one batch of queries. Its phase says what was asked for, and in which
module the replies are read::

    pilot -> noise -> (sizes ->) slopes -> trial -> learn -> trial -> ... -> verify
    -> confirm -> search -> done

pilot (:mod:`pilot`)
    Values at the start.
noise (:mod:`pilot`)
    Values at a few points in a row, from which the noise of values is estimated.
sizes (:mod:`scales`)
    Differences over two steps, where variables are far smaller than the start is.
slopes (:mod:`pilot`)
    Differences at the start, again over longer steps where values hardly changed.
trial (:mod:`trial`)
    Values at the trial point: losses, members of the working set, constraints seen that
    are at risk, and constraints not seen before. The step is accepted, rejected, or a
    null step: the point stays, and constraints that were found become members.
learn (:mod:`learning`)
    Differences for constraints that join, and for what a step has made stale.
verify (:mod:`trial`)
    Values at the iterate of constraints that were not looked at there, before the end.
confirm (:mod:`confirming`)
    Values around the iterate, farther than differences go, before it is said to be
    optimal. An objective that shows kinks there is followed by a :mod:`bundle`.
search (:mod:`searching`)
    Values farther out, the last look before the end.
near (:mod:`nearby`)
    Where constraints could not be kept and a call returns many of them: values along
    the way that keeps them better, and along variables. If less is violated at one of
    these points, the run begins again there.
elsewhere (:mod:`searching`)
    Values far away, where constraints could not be kept: a run begins again where they
    are kept best, up to twice, and ends at the best end.

Where a call returns many constraints, a case, such cases are the unit: all their values
are looked at, and differences give the slopes of all of them. Then models are corrected
by later values, and learned anew when trials have cost as much as that does.

After each but those of the pilot, :mod:`subproblem` works out a step from all that is
known, :mod:`plans` decides what to look at next, and :mod:`ending` whether to stop.
Start reading at :func:`plans.proposed`, which does so, and :func:`trial.after_trial`.
What is known is a :mod:`state`: a working set of :mod:`models`, a :mod:`losses_table`,
pairs that tell :mod:`curvature`, and for :mod:`screening` what was seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Self

import numpy as np

from dszog.contract import (
    NO_INDICES,
    ProblemSize,
    Purpose,
    Query,
    Reply,
    check_replies,
    cost,
)
from dszog.contract.arrays import FloatArray, IntArray
from dszog.methods.base import FirstOrder, Info, Noise, check_first
from dszog.methods.policy import GUARDED, Policy
from dszog.methods.sampled_sqp import (
    confirming,
    ending,
    learning,
    nearby,
    pilot,
    plans,
    scales,
    searching,
    trial,
)
from dszog.methods.sampled_sqp.bundle import Bundle
from dszog.methods.sampled_sqp.case_values import CaseValues
from dszog.methods.sampled_sqp.curvature import Pairs
from dszog.methods.sampled_sqp.looks import Found, Look, read_all
from dszog.methods.sampled_sqp.losses_table import LossTable
from dszog.methods.sampled_sqp.models import WorkingSet
from dszog.methods.sampled_sqp.noise import ROUNDING
from dszog.methods.sampled_sqp.options import Options, first_batch
from dszog.methods.sampled_sqp.scales import in_units
from dszog.methods.sampled_sqp.screening import Seen
from dszog.methods.sampled_sqp.state import SampledSQPState

SHRUNK = 1e-3  # of the size of a variable: the least one where a run begins again
USUAL_QUERIES = 1000  # in an iteration
PROBES = {  # the steps from the iterate to the points of one query
    "confirm": confirming.steps,
    "search": searching.steps,
    "near": nearby.steps,
    "elsewhere": searching.steps_elsewhere,
}
PURPOSES: dict[str, Purpose] = {  # of all other phases a step
    "trial": "trial",
    "learn": "trial",
    "search": "look around",
    "near": "look around",
    "elsewhere": "look around",
}
ASKED_AGAIN = 16  # cases in the final check: the worst, to be named


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledSQP(Options):
    r"""Step by small quadratic programs over models that are learned and kept.

    Parameters
    ----------
    tol : float
        The residual of the optimality conditions, relative, at which a run has
        converged.
    constraint_batch : int
        Unseen constraints that a trial looks at, at first; one in 16, and 32 at
        least, where that is less.
    loss_batch : int
        Losses in the table at first; refreshed at least, too.
    noise_share : float
        The table grows while the noise of its mean along the step exceeds this share of
        the decrease that the step promises.
    horizon_queries : int, optional
        Queries that the run may use; set by the run.
    constraint_tol : float, optional
        How large a violation may remain, in the units of the constraints; set by the
        run. Without it, violations count in relation to slopes alone.
    """

    # ------------------------------------------------------------------ what a run asks

    def init(self, x0: FloatArray, size: ProblemSize, seed: int) -> SampledSQPState:
        """Return the state before the pilot."""
        x = check_first(self, x0, size, seed)
        x = size.clip(x)
        dim, sizes = size.dim, scales.usual_sizes(x, size)
        losses = np.sort(plans.loss_order(self.loss_batch, size, seed))
        n_first = max(first_batch(self, size), pilot.ALL_MEMBERS)
        if size.by_case:
            n_first = pilot.FIRST_LOOK * size.block_width
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
            case_values=CaseValues.nothing(dim),
            pairs=Pairs.none(dim),
            bundle=Bundle.empty(dim),
            start=x,
            home=x,
            best=x,
            doubted=x,
            best_losses=NO_INDICES,
            best_values=np.empty(0),
            best_cases=NO_INDICES,
            sizes=sizes,
            origin=scales.origin(x, sizes),
            scale=np.ones(dim),
            pilot_steps=np.zeros((2, dim)),
            step=np.zeros(dim),
            batch=first_batch(self, size),
            anchor=np.zeros(dim),
            anchor_gradient=np.zeros(dim),
            measured=np.empty((0, 0)),
        )

    def ask(self, state: SampledSQPState) -> tuple[Query, ...]:
        """Ask what the state wants to look at."""
        if state.phase == "noise":
            queries: tuple[Query, ...] = (pilot.noise_query(state),)
        elif state.phase in PROBES:
            steps = PROBES[state.phase](state)
            queries = (state.looks[0].around(steps, state.iteration),)
        else:
            parts = [look.queries(state.iteration, state.size) for look in state.looks]
            queries = tuple(chain.from_iterable(parts))
        purpose = PURPOSES.get(state.phase, "step")
        return tuple(query._replace(purpose=purpose) for query in queries)

    def tell(
        self,
        state: SampledSQPState,
        queries: Sequence[Query],
        replies: Sequence[Reply],
    ) -> tuple[SampledSQPState, Info]:
        """Return the state after what was learned, with the next step worked out."""
        check_replies(
            state.iteration,
            queries,
            replies,
            len(self.ask(state)),
            check_values=not state.takes_unknown,
        )
        charged = cost(queries, state.size)
        phase, look = state.phase, state.looks[0]
        state = replace(
            state,
            n_lost=0,
            n_loss_queries=state.n_loss_queries + charged.losses,
            n_constraint_queries=state.n_constraint_queries + charged.constraints,
        )
        state = self._after(state, queries, replies)
        if state.phase == "again":
            state = self._begun_again(state)
        if state.kept is not None and ending.how(self, state)[0] is not None:
            state = searching.as_kept(state)  # lost on the way
        if phase in ("slopes", "trial", "verify") and state.size.by_case:
            state = ending.with_best(self, state, look)
        state = replace(state, iteration=state.iteration + 1)
        info = self._info(state, is_step=phase == "trial")
        if phase == "slopes" and state.phase != "slopes":
            info = info._replace(events=ending.remarks(state))
        return state, info

    def _after(
        self,
        state: SampledSQPState,
        queries: Sequence[Query],
        replies: Sequence[Reply],
    ) -> SampledSQPState:
        """Return the state after the replies to what its phase has asked for."""
        if state.phase == "noise":
            return pilot.after_noise(state, replies[0])
        if state.phase == "confirm":
            known = confirming.after_looking(state, queries[0], replies[0])
            return plans.reconsidered(self, state, known)
        if state.phase == "search":
            return plans.searched(self, state, queries[0], replies[0])
        if state.phase == "near":
            state = nearby.after_looking(state, replies[0])
            is_over = state.phase == "done"
            return searching.looking_elsewhere(self, state) if is_over else state
        if state.phase == "elsewhere":
            return searching.after_looking_elsewhere(state, queries[0], replies[0])
        found = read_all(state, queries, replies)
        if state.phase == "pilot":
            return pilot.after_values(state, found[0])
        if state.phase == "sizes":
            return scales.after_sizes(state, found)
        if state.phase == "slopes":
            return self._after_slopes(state, found)
        if state.phase == "trial":
            return trial.after_trial(self, state, found[0])
        if state.phase == "learn":
            return learning.after_learning(self, state, found)
        return trial.after_verifying(self, state, found[0])

    def _begun_again(self, state: SampledSQPState) -> SampledSQPState:
        """Return a pilot at the iterate, which looks at the members once more."""
        fresh = self.init(state.x, state.size, state.seed)
        (look,) = fresh.looks
        rows = np.union1d(look.constraints, state.members.indices)
        rows = state.size.limits_of(state.size.cases_of(rows))
        return replace(
            fresh,
            iteration=state.iteration,
            measured=in_units(state.measured, 1.0 / state.scale),
            looks=(
                replace(look, losses=np.sort(state.table.indices), constraints=rows),
            ),
            sizes=np.maximum(
                np.where(state.origin, state.sizes, fresh.sizes),
                SHRUNK * state.own_sizes,
            ),
            origin=state.origin,
            has_home=state.has_home,
            home=state.home,
            home_objective=state.home_objective,
            caution=state.caution,
            n_begun=state.n_begun + 1,
            kept=state.kept,
            **state.remembered,
        )

    def _info(self, state: SampledSQPState, *, is_step: bool) -> Info:
        stop, events = ending.how(self, state)
        positive = int(np.count_nonzero(state.members.multipliers > 0))
        return Info(
            sampled_objective=state.objective,
            sampled_violation=max(state.violation, 0.0),
            is_step=is_step,
            n_touched=positive,
            events=events,
            stop=stop,
            n_held=len(state.table),
        )

    def planned(
        self, size: ProblemSize, iterations: int | None, queries: int | None
    ) -> Self:
        """Return the method with the number of queries known, or a usual one."""
        if self.horizon_queries is not None:
            return self
        if queries is None and iterations is not None:
            queries = USUAL_QUERIES * iterations
        if queries is None:
            return self
        return replace(self, horizon_queries=max(queries, 1))

    def policy(self, fixed: frozenset[str]) -> Policy:
        """Return that no step makes things worse, so that the last iterate is best."""
        return GUARDED

    def least_queries(self, size: ProblemSize) -> int:
        """Return what the pilot and the first trial cost."""
        losses = min(self.loss_batch, size.n_losses)
        if size.by_case:
            looked = min(pilot.FIRST_LOOK, size.n_cases)
            learned = min(pilot.FIRST_CASES, size.n_cases)
        else:
            looked = min(first_batch(self, size), size.n_constraints)
            is_few = looked <= pilot.ALL_MEMBERS
            learned = 2 * (looked if is_few else pilot.FIRST_MEMBERS)
        per_function = size.dim + pilot.NOISE_POINTS
        return 2 * (losses + looked) + per_function * (losses + learned)

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
        return plans.proposed(self, ending.with_home(self, scales.scaled(state)))

    def held(self, state: SampledSQPState) -> IntArray:
        """Return cases that were seen to hold at the iterate, but not the worst."""
        seen = state.seen
        if not state.size.by_case or not len(seen.points):
            return NO_INDICES
        # Not those at the oldest point, to which values from elsewhere were moved; and
        # where values are noisy, only those that hold by far.
        noise = state.unit_noise if state.unit_noise > 64.0 * ROUNDING else 0.0
        holds = (seen.points == state.z).all(axis=1)[seen.places] & (seen.places > 0)
        holds &= seen.values <= -16.0 * noise
        order = np.argsort(-seen.values[holds], kind="stable")[ASKED_AGAIN:]
        return np.sort(seen.indices[holds][order])

    def doubted(self, state: SampledSQPState) -> list[FloatArray]:
        """Return points that may be better than all others, if they hold."""
        return [state.doubted] if state.has_doubted else []

    def first_order(self, state: SampledSQPState) -> FirstOrder | None:
        """Return how well the optimality conditions hold; None if it is not known."""
        if state.residual < 0.0:
            return None
        members = state.members
        pulls = np.flatnonzero(members.multipliers > 0)
        pulls = pulls[np.argsort(members.indices[pulls], kind="stable")]
        raw = members.multipliers[pulls] / members.sizes[pulls]
        return FirstOrder(state.residual, members.indices[pulls], raw)

    def gradient(self, state: SampledSQPState) -> FloatArray | None:
        """Return the objective's gradient at the iterate; None if it is not known."""
        if not np.array_equal(state.anchor, state.z):
            return None
        return state.anchor_gradient / state.scale

    def noise(self, state: SampledSQPState) -> Noise | None:
        """Return the noise of values; None if the run did not get so far."""
        if not state.n_pilot:
            return None
        return Noise(state.loss_noise, state.constraint_noise)
