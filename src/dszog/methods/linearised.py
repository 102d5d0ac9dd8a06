"""A method for convex sets, on a set whose constraints are linearised at each iterate.

Between two steps of the method the constraints are looked at where it went: their
values and gradients there give the tangents for the next step, and where the point is
not feasible it is corrected first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self, TypeAlias

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply, check_replies
from dszog.contract.arrays import BoolArray, FloatArray, IntArray, frozen_floats
from dszog.maths.subproblems.linearised import LinearisedSet, retraction
from dszog.methods.base import Info, State, check_first
from dszog.methods.feasible import FeasibleMethod, FeasibleState

Phase: TypeAlias = Literal["origin", "look", "estimate"]

TOLERANCE = 1e-9  # violations that are not corrected
CORRECTIONS = 3  # projections on new tangents after a step
RETRACTED = "infeasible iterates were drawn towards the origin"
NO_WAY_BACK = "the origin is not feasible: tangents were used instead of drawing to it"
UNCORRECTED = "iterates stayed infeasible after the corrections"


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LinearisedState(State):
    """The last point that was looked at, and the method's own state beyond it."""

    inner: FeasibleState  # its iterate is the point to look at next
    phase: Phase
    n_corrections: int
    values: FloatArray  # (n,), of the constraints at x
    jacobian: FloatArray  # (n, dim)
    at_origin: FloatArray  # (n,), values there; empty unless iterates are retracted

    @property
    def origin_is_feasible(self) -> bool:
        """Whether drawing an iterate towards the origin can make it feasible."""
        return float(self.at_origin.max(initial=0.0)) <= TOLERANCE

    @property
    def target(self) -> FloatArray:
        return self.inner.x

    def back_to(self, good: Any) -> Self:
        """Return the state that looks at half of the way from an earlier one."""
        inner = replace(self.inner, x=(good.x + self.target) / 2)
        phase: Phase = "origin" if self.phase == "origin" else "look"
        return replace(self, x=good.x, inner=inner, phase=phase, n_corrections=0)

    def __post_init__(self) -> None:
        State.__post_init__(self)
        for name in ("values", "jacobian", "at_origin"):
            object.__setattr__(self, name, frozen_floats(getattr(self, name)))


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearisedMethod:
    """Runs a method on tangents of the constraints.

    With `retract` infeasible iterates are drawn towards the origin, which makes them
    feasible where constraints are positively homogeneous but for a constant.
    """

    method: FeasibleMethod
    constraints: LinearisedSet
    retract: bool = False

    def init(self, x0: FloatArray, size: ProblemSize, seed: int) -> LinearisedState:
        x = check_first(self.method, x0, size, seed)
        x = self.constraints.start(size.clip(x))
        inner = replace(self.method, domain=self.constraints.around(x))
        start = inner.init(x, size, seed)
        return LinearisedState(
            iteration=0,
            seed=seed,
            size=size,
            x=start.x,
            inner=start,
            phase="origin" if self.retract else "look",
            n_corrections=0,
            values=np.empty(0),
            jacobian=np.empty((0, size.dim)),
            at_origin=np.empty(0),
        )

    def ask(self, state: LinearisedState) -> tuple[Query, ...]:
        """Ask for the constraints where the method went, or what the method asks."""
        if state.phase == "estimate":
            queries = self.method.ask(state.inner)
            return tuple(q._replace(iteration=state.iteration) for q in queries)
        origin = state.phase == "origin"
        query = Query.at(
            state.size.clip(np.zeros(state.size.dim)) if origin else state.inner.x,
            iteration=state.iteration,
            constraints=self.constraints.indices,
            want="values" if origin else "gradients",
        )
        return (query,)

    def tell(
        self,
        state: LinearisedState,
        queries: Sequence[Query],
        replies: Sequence[Reply],
    ) -> tuple[LinearisedState, Info]:
        if state.phase == "estimate":
            return self._step(state, queries, replies)
        check_replies(state.iteration, queries, replies, 1)
        state = replace(state, iteration=state.iteration + 1)
        values = np.array(replies[0].constraints[0])  # a copy: the reply is not ours
        # Those that gave no value are not in the query.
        known = np.isin(self.constraints.indices, queries[0].constraints)
        if state.phase == "origin":
            helps = values.max(initial=0.0) <= TOLERANCE
            at_origin = np.zeros(len(known))  # 0: on the edge, where it is not known
            at_origin[known] = values
            info = self._looked(values, () if helps else (NO_WAY_BACK,))
            return replace(state, phase="look", at_origin=at_origin), info
        return self._look(state, values, np.array(replies[0].jacobian), known)

    def _look(
        self,
        state: LinearisedState,
        values: FloatArray,
        jacobian: FloatArray,
        known: BoolArray,
    ) -> tuple[LinearisedState, Info]:
        """Accept the point, or correct it."""
        x, worst = state.inner.x, float(values.max(initial=0.0))
        events: tuple[str, ...] = ()
        if worst > TOLERANCE and self.retract and state.origin_is_feasible:
            at_origin = state.at_origin[known]
            factor = retraction(values, at_origin)
            x, events = factor * x, (RETRACTED,)
            values = at_origin + factor * (values - at_origin)
        elif worst > TOLERANCE and state.n_corrections < CORRECTIONS:
            domain, events = self.constraints.at(x, values, jacobian)
            inner = replace(state.inner, x=domain.project(x).point)
            n_done = state.n_corrections + 1
            info = self._looked(values, events)
            return replace(state, inner=inner, n_corrections=n_done), info
        elif worst > TOLERANCE:
            events = (UNCORRECTED,)
        looked = replace(
            state,
            x=x,
            inner=replace(state.inner, x=x),
            phase="estimate",
            n_corrections=0,
            values=values,
            jacobian=jacobian,
        )
        return looked, self._looked(values, events)

    def _step(
        self,
        state: LinearisedState,
        queries: Sequence[Query],
        replies: Sequence[Reply],
    ) -> tuple[LinearisedState, Info]:
        """Let the method make a step on the tangents at the point."""
        check_replies(state.iteration, queries, replies, len(queries))
        domain, events = self.constraints.at(state.x, state.values, state.jacobian)
        # A hint would name rows of other tangents.
        inner = replace(state.inner, active=NO_INDICES)
        asked = [query._replace(iteration=inner.iteration) for query in queries]
        moved, info = replace(self.method, domain=domain).tell(inner, asked, replies)
        next_state = replace(
            state, iteration=state.iteration + 1, inner=moved, phase="look"
        )
        violation = float(np.maximum(state.values, 0.0).max(initial=0.0))
        events = (*info.events, *events)
        return next_state, info._replace(events=events, sampled_violation=violation)

    def planned(
        self, size: ProblemSize, iterations: int | None, queries: int | None
    ) -> Self:
        """Return the method with its horizon set; looks take part of the queries."""
        if queries is not None:
            own = max(self.method.least_queries(size), 1)
            queries = int(queries * own / (own + 2 * len(self.constraints.indices)))
        return replace(self, method=self.method.planned(size, iterations, queries))

    def least_queries(self, size: ProblemSize) -> int:
        n_looks = 2 * (1 + CORRECTIONS) + self.retract
        looks = n_looks * len(self.constraints.indices)
        return looks + self.method.least_queries(size)

    def new_round(self, state: LinearisedState) -> LinearisedState:
        return state

    def weights(self, state: LinearisedState) -> tuple[IntArray, FloatArray]:
        return NO_INDICES, np.empty(0)

    def _looked(self, values: FloatArray, events: tuple[str, ...] = ()) -> Info:
        worst = float(np.maximum(values, 0.0).max(initial=0.0))
        share = float((values > 0.0).mean()) if len(values) else 0.0
        return Info(
            sampled_violation=worst, sampled_share=share, is_step=False, events=events
        )
