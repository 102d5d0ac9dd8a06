"""The core under arbitrary use: asking, telling, forking and misusing, in any order."""

from __future__ import annotations

import copy
from dataclasses import replace
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
from dszog.methods import DSZOGState
from tests.contracts.helpers import CELLS, Cell, advance, digest, evaluate


class CoreMachine(RuleBasedStateMachine):
    """Drives a run of any cell by hand; a straight one of the same seed ends alike."""

    @initialize(cell=st.sampled_from(CELLS), seed=st.integers(0, 5))
    def start(self, cell: Cell, seed: int) -> None:
        self.method: Any = cell.method
        self.problem = cell.problem()
        self.first = self.state = cell.start(self.problem, seed)
        self.n_told = self.n_queries = 0

    def _advanced(self, steps: int = 1) -> Any:
        return advance(self.method, self.problem, self.state, steps)

    @rule()
    def ask_twice(self) -> None:
        assert digest(self.method.ask(self.state)) == digest(
            self.method.ask(self.state)
        )

    @rule()
    def tell(self) -> None:
        queries = self.method.ask(self.state)
        self.n_queries += cost(queries, self.problem.size).total
        self.state, self.n_told = self._advanced(), self.n_told + 1

    @rule()
    def tell_twice_from_the_same_state(self) -> None:
        assert digest(self._advanced()) == digest(self._advanced())

    @rule()
    def copy_and_go_on_with_the_copy(self) -> None:
        self.state = replace(copy.deepcopy(self.state))

    @rule(steps=st.integers(1, 3))
    def fork(self, steps: int) -> None:
        assert self._advanced(steps).iteration == self.state.iteration + steps

    @rule()
    @precondition(lambda self: self.state.iteration > 1)
    def tell_what_was_asked_earlier(self) -> None:
        stale = [
            query._replace(iteration=query.iteration - 1)
            for query in self.method.ask(self.state)
        ]
        before = digest(self.state)
        with pytest.raises(dszog.DszogError, match="the query was asked at"):
            self.method.tell(self.state, stale, evaluate(self.problem, stale))
        assert digest(self.state) == before

    @invariant()
    def weights_lie_in_the_simplex_and_queries_are_counted(self) -> None:
        if not isinstance(self.state, DSZOGState):
            return
        assert self.state.n_queries == self.n_queries
        if self.state.distribution is not None:
            weights = self.state.distribution.dense()
            assert (weights >= 0).all()
            assert abs(weights.sum() - 1.0) < 1e-9

    @invariant()
    def the_iterate_is_finite_and_where_it_may_be(self) -> None:
        size, domain = self.problem.size, getattr(self.method, "domain", None)
        assert np.isfinite(self.state.x).all()
        assert not self.state.x.flags.writeable
        assert (size.lower <= self.state.x).all()
        assert (self.state.x <= size.upper).all()
        assert domain is None or domain.contains(self.state.x)

    def teardown(self) -> None:
        """A straight run passes through the same states, whatever happened between."""
        if hasattr(self, "first"):
            straight = advance(self.method, self.problem, self.first, self.n_told)
            assert digest(straight) == digest(self.state)


CoreMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=15, deadline=None
)
TestCore = CoreMachine.TestCase
