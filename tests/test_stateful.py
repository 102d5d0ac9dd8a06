"""The core under arbitrary use: asking, telling, forking and misusing, in any order."""

import copy
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

import dszog
from dszog.contract import cost
from dszog.maths.subproblems import Polyhedron
from dszog.methods import DSZOGState
from dszog.workers import Serial
from tests.contracts.helpers import FEASIBLE_METHODS
from tests.contracts.helpers import digest as digest_of

DIM, N_LOSSES, N_CONSTRAINTS = 3, 7, 40


def small_problem(white: bool = False) -> dszog.Problem:
    rng = np.random.default_rng(0)
    targets = rng.normal(1.0, 1.0, size=(N_LOSSES, DIM))
    normals = rng.standard_normal((N_CONSTRAINTS, DIM))

    def losses(points: Any, i: Any) -> Any:
        return np.square(points[:, None] - targets[i]).mean(axis=2)

    def planes(points: Any, j: Any) -> Any:
        return points @ normals[j].T - 0.5

    def gradient(point: Any, i: Any) -> Any:
        return 2.0 * (point - targets[i]) / DIM

    return dszog.Problem(
        dszog.Losses(losses, N_LOSSES, gradient=gradient if white else None),
        dszog.Constraints(planes, N_CONSTRAINTS),
        DIM,
        bounds=[(-2.0, 2.0)] * DIM,
    )


def digest(state: Any) -> Any:
    """What a run has come to, bit for bit."""
    if not isinstance(state, DSZOGState):
        return digest_of(state)
    weights = None if state.distribution is None else state.distribution.dense()
    return (
        state.iteration,
        state.n_queries,
        state.x.tobytes(),
        state.velocity.tobytes(),
        None if weights is None else weights.tobytes(),
    )


class CoreMachine(RuleBasedStateMachine):
    """Drives one run by hand, and a straight run of the same seed beside it."""

    asked_for = "constraints"  # what a nonsensical reply is wrong about

    @initialize(
        seed=st.integers(0, 5),
        distribution=st.sampled_from(["sparse", "dense", "uniform"]),
        antithetic=st.booleans(),
    )
    def start(self, seed: int, distribution: Any, antithetic: bool) -> None:
        method = dszog.DSZOG(
            distribution=distribution,
            antithetic=antithetic,
            n_directions=2,
            dual_batch=8,
            horizon=50,
        )
        self._begin(small_problem(), method, seed)

    def _begin(self, problem: dszog.Problem, method: Any, seed: int) -> None:
        self.problem, self.method, self.seed = problem, method, seed
        self.answer = Serial(problem)
        self.state = self._fresh()
        self.trail = [digest(self.state)]
        self.issued = 0

    def _fresh(self) -> Any:
        return self.method.init(np.zeros(DIM), self.problem.size, self.seed)

    def _advance(self, state: Any) -> Any:
        queries = self.method.ask(state)
        return self.method.tell(state, queries, self.answer(queries))[0]

    @rule()
    def ask_twice(self) -> None:
        first, second = self.method.ask(self.state), self.method.ask(self.state)
        for one, other in zip(first, second, strict=True):
            assert one.steps.tobytes() == other.steps.tobytes()
            assert one.losses.tobytes() == other.losses.tobytes()
            assert one.constraints.tobytes() == other.constraints.tobytes()

    @rule()
    def tell(self) -> None:
        queries = self.method.ask(self.state)
        self.issued += cost(queries, self.problem.size).total
        self.state = self._advance(self.state)
        self.trail.append(digest(self.state))

    @rule()
    def tell_twice_from_the_same_state(self) -> None:
        assert digest(self._advance(self.state)) == digest(self._advance(self.state))

    @rule()
    def copy_and_go_on_with_the_copy(self) -> None:
        self.state = replace(copy.deepcopy(self.state))

    @rule(steps=st.integers(1, 3))
    def fork(self, steps: int) -> None:
        forked = self.state
        for _ in range(steps):
            forked = self._advance(forked)
        assert forked.iteration == self.state.iteration + steps

    @rule()
    @precondition(lambda self: self.state.iteration > 1)
    def tell_what_was_asked_earlier(self) -> None:
        stale = [
            query._replace(iteration=query.iteration - 1)
            for query in self.method.ask(self.state)
        ]
        self._refused(stale, self.answer(stale), "the query was asked at")

    @rule(how=st.sampled_from(["nan", "inf", "row", "column", "missing"]))
    def tell_nonsense(self, how: str) -> None:
        queries = self.method.ask(self.state)
        replies = list(self.answer(queries))
        tables = [getattr(reply, self.asked_for) for reply in replies]
        place = int(np.argmax([table.size for table in tables]))
        bad = tables[place].copy()
        if how == "missing":
            self._refused(queries, replies[:-1], "replies")
            return
        if how in ("nan", "inf"):
            bad[0, 0] = float(how)
            message = "not finite"
        elif how == "row":
            bad, message = np.concatenate([bad, bad]), "must have shape"
        else:
            bad, message = bad[:, :-1], "must have shape"
        replies[place] = replies[place]._replace(**{self.asked_for: bad})
        self._refused(queries, replies, message)

    def _refused(self, queries: Any, replies: Any, message: str) -> None:
        before = digest(self.state)
        with pytest.raises(dszog.DszogError, match=message):
            self.method.tell(self.state, queries, replies)
        assert digest(self.state) == before

    @invariant()
    def weights_lie_in_the_simplex(self) -> None:
        distribution = getattr(self.state, "distribution", None)
        if distribution is None:
            return
        weights = distribution.dense()
        assert (weights >= 0).all()
        assert abs(weights.sum() - 1.0) < 1e-9

    @invariant()
    def the_iterate_is_finite_and_within_the_bounds(self) -> None:
        size = self.problem.size
        assert np.isfinite(self.state.x).all()
        assert (size.lower <= self.state.x).all()
        assert (self.state.x <= size.upper).all()

    @invariant()
    def queries_are_counted(self) -> None:
        assert getattr(self.state, "n_queries", self.issued) == self.issued

    @invariant()
    def arrays_are_read_only(self) -> None:
        for item in fields(self.state):
            value = getattr(self.state, item.name)
            assert not (isinstance(value, np.ndarray) and value.flags.writeable)

    def teardown(self) -> None:
        """A straight run passes through the same states, whatever happened between."""
        if not hasattr(self, "trail"):
            return
        state = self._fresh()
        straight = [digest(state)]
        for _ in self.trail[1:]:
            state = self._advance(state)
            straight.append(digest(state))
        assert straight == self.trail


CoreMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=25, deadline=None
)
TestCore = CoreMachine.TestCase


class FeasibleMachine(CoreMachine):
    """Drives a run of a method that stays in a feasible set."""

    asked_for = "losses"

    @initialize(
        seed=st.integers(0, 5),
        name=st.sampled_from(sorted(FEASIBLE_METHODS)),
        per_sample=st.booleans(),
    )
    def start(self, seed: int, name: str, per_sample: bool) -> None:
        kind = FEASIBLE_METHODS[name]
        settings: dict[str, Any] = {"loss_batch": 4, "n_directions": 2, "horizon": 50}
        if hasattr(kind(), "period"):
            settings |= {"period": 3, "refresh_batch": 5}
        if not kind.needs_gradient:
            settings |= {"estimator": "sphere", "per_sample": per_sample}
        rows = np.random.default_rng(1).standard_normal((12, DIM))
        self.domain = Polyhedron.linear(
            rows, np.full(12, 0.5), lower=-2.0, upper=2.0, ball="l2", ball_radius=1.5
        )
        method = kind(domain=self.domain, **settings)
        self._begin(small_problem(white=kind.needs_gradient), method, seed)

    @invariant()
    def the_iterate_lies_in_the_set(self) -> None:
        assert self.domain.contains(self.state.x)


FeasibleMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=12, deadline=None
)
TestFeasible = FeasibleMachine.TestCase
