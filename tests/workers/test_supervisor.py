"""Each answer is used once, whatever a pool makes of the work."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from dszog import Problem, Query
from dszog.contract import Cost
from dszog.workers import Serial
from dszog.workers._chunks import cut
from dszog.workers._supervisor import Begun, Done, Event, Pool, Supervised, WorkerLost
from dszog.workers.base import answer
from tests.workers.helpers import PROBLEMS

N_BATCHES = 5


class Unreliable(Pool):
    """Answers in any order, now and then twice, late, or not at all."""

    n_slots = 4
    bundle = 1.0

    def __init__(self, problem: Problem, seed: int) -> None:
        super().__init__()
        self._problem = problem
        self._rng = np.random.Generator(np.random.Philox(key=seed))
        self._waiting: list[tuple[int, Sequence[Query]]] = []
        self._late: list[Event] = []

    def room(self, n_waiting: int) -> int:
        return self.n_slots - len(self._waiting)

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        self._waiting.append((attempt, parts))

    def wait(self, seconds: float) -> Sequence[Event]:
        events, self._late = self._late, []
        self._rng.shuffle(self._waiting)
        while self._waiting:
            attempt, parts = self._waiting.pop()
            done = Done(attempt, answer(self._problem, parts), 1e-3)
            chance = self._rng.random()
            if chance < 0.1:
                events.append(WorkerLost(attempt, "never begun", started=False))
            elif chance < 0.25:
                events += [Begun(attempt), WorkerLost(attempt, "lost")]
            elif chance < 0.4:
                events.append(WorkerLost(attempt, "given up too early"))
                self._late.append(done)
            else:
                events += [done] * (2 if chance < 0.55 else 1)
        return events

    def stop(self, attempt: int) -> None:
        """No timeout is set."""

    def forget(self) -> None:
        """Nothing is interrupted."""

    def close(self) -> None:
        """Nothing is held."""


def query_of(problem: Problem, iteration: int) -> Query:
    steps = np.cos(np.arange(4.0 * problem.dim)).reshape(4, problem.dim)
    return Query(
        iteration=iteration,
        x=np.full(problem.dim, 0.2),
        steps=steps,
        losses=np.arange(problem.size.n_losses),
        constraints=np.arange(problem.size.n_constraints).repeat(2),
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", PROBLEMS)
def test_nothing_is_lost_or_used_twice_by_any_pool(name: str, seed: int) -> None:
    problem = PROBLEMS[name]()
    pool = Unreliable(problem, seed)
    evaluator, alone = Supervised(problem, pool), Serial(problem)
    charged: list[Cost] = []

    def charge(price: Cost) -> bool:
        charged.append(price)
        return True

    evaluator.charge = charge
    n_pieces = 0
    for iteration in range(N_BATCHES):
        query = query_of(problem, iteration)
        n_pieces += len(cut(problem, [query]))
        (found,), (wanted,) = evaluator([query]), alone([query])
        assert not found.failures
        assert found.losses.tobytes() == wanted.losses.tobytes()
        assert found.constraints.tobytes() == wanted.constraints.tobytes()

    traffic = evaluator.traffic
    assert traffic.n_pieces == n_pieces
    assert traffic.n_retried == traffic.n_lost == len(charged)
    assert traffic.n_duplicate + traffic.n_late > 0
