"""The loop, with a method that follows a script and a clock that stands still."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
import pytest

import dszog.run.meter as meter_module
from dszog import DSZOG, DszogError, Progress, Status
from dszog.contract import NO_INDICES, ProblemSize, Query, Reply, cost
from dszog.contract.arrays import FloatArray, IntArray
from dszog.methods import Info, State
from dszog.run.history import History
from dszog.run.loop import N_SEEN, Outcome, Position, advance
from dszog.run.meter import Limits, Meter
from tests.runs import short_run, size_of

SIZE = size_of(1, 100, 100)


@dataclass(frozen=True, kw_only=True)
class Scripted:
    """Moves to 1, 2, 3, ...; asks for `n_losses + n_constraints` values a time."""

    n_losses: int = 2
    n_constraints: int = 3
    point: Callable[[int], float] = float
    info: Callable[[int], Info] = lambda t: Info(sampled_objective=1.0 / t)

    def init(self, x0: FloatArray, size: ProblemSize, seed: int) -> State:
        return State(iteration=0, seed=seed, size=size, x=np.array(x0, dtype=float))

    def ask(self, state: State) -> tuple[Query, ...]:
        losses, constraints = np.arange(self.n_losses), np.arange(self.n_constraints)
        return (
            Query(x=state.x, iteration=state.iteration, losses=losses),
            Query(x=state.x, iteration=state.iteration, constraints=constraints),
        )

    def tell(
        self, state: State, queries: Sequence[Query], replies: Sequence[Reply]
    ) -> tuple[State, Info]:
        t = state.iteration + 1
        return replace(state, iteration=t, x=np.array([self.point(t)])), self.info(t)

    def planned(
        self, size: ProblemSize, iterations: int | None, queries: int | None
    ) -> Self:
        return self

    def weights(self, state: State) -> tuple[IntArray, FloatArray]:
        return NO_INDICES, np.empty(0)


@dataclass
class Box:
    """Answers with ones, counts for itself, and does as told at each call."""

    then: Callable[[int], None] = lambda n_calls: None
    n_calls: int = 0
    n_losses: int = 0
    n_constraints: int = 0
    now: float = 0.0
    seconds_per_query: float = 0.0
    seen: list[int] = field(default_factory=list)

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        self.n_calls += 1
        self.then(self.n_calls)
        for query in queries:
            self.n_losses += len(query.losses)
            self.n_constraints += len(query.constraints)
            self.now += self.seconds_per_query * cost([query], SIZE).total
            self.seen.append(query.iteration)
        return tuple(
            Reply(
                losses=np.ones((1, len(query.losses))),
                constraints=np.ones((1, len(query.constraints))),
            )
            for query in queries
        )

    @property
    def n_queries(self) -> int:
        return self.n_losses + self.n_constraints


def go(
    box: Box, *, end: Limits, method: Any = None, **options: Any
) -> tuple[Outcome, Meter]:
    method = Scripted() if method is None else method
    meter = Meter(box, SIZE, end.queries)
    start = Position.at(method.init(np.zeros(1), SIZE, 0))
    try:
        return advance(method, start, meter, end=end, **options), meter
    except KeyboardInterrupt:  # which would end the tests, too
        pytest.fail("the interrupt was passed on")


@pytest.fixture
def stopped_clock(monkeypatch: pytest.MonkeyPatch) -> Box:
    """A box that alone moves the clock of the loop."""
    box = Box()
    clock = SimpleNamespace(perf_counter=lambda: box.now)
    monkeypatch.setattr(meter_module, "time", clock)
    return box


# ------------------------------------------------------------------------ the limits
@pytest.mark.parametrize("iterations", [0, 1, 2, 17])
def test_exactly_as_many_iterations_are_made_as_are_allowed(iterations: int) -> None:
    box = Box()
    outcome, meter = go(box, end=Limits(iterations=iterations))
    assert outcome.status == Status.MAX_ITERATIONS
    assert meter.n_iterations == box.n_calls == iterations
    assert outcome.position.state.iteration == iterations
    assert outcome.position.state.x.item() == iterations


def test_a_look_that_is_no_step_is_no_iteration_but_is_shown_and_charged() -> None:
    box, seen = Box(), list[Progress]()
    looks = Scripted(info=lambda t: Info(is_step=t > 2))
    outcome, meter = go(
        box, end=Limits(iterations=3), method=looks, callbacks=[seen.append]
    )
    assert outcome.status == Status.MAX_ITERATIONS
    assert meter.n_iterations == 3
    assert outcome.position.state.iteration == box.n_calls == 5
    assert [progress.iteration for progress in seen] == [0, 0, 1, 2, 3]
    assert [progress.n_queries for progress in seen] == [5, 10, 15, 20, 25]


@pytest.mark.parametrize("queries", [0, 4, 5, 6, 9, 10, 11, 99, 100])
def test_queries_are_used_to_one_iteration_never_exceeded(queries: int) -> None:
    box = Box()
    outcome, meter = go(box, end=Limits(queries=queries))
    assert outcome.status == Status.MAX_QUERIES
    assert box.n_queries == 5 * (queries // 5) <= queries
    assert meter.n_loss_queries == box.n_losses
    assert meter.n_constraint_queries == box.n_constraints
    assert meter.n_queries == box.n_queries


@pytest.mark.parametrize("seconds", [0.5, 4.9, 5.1, 22.0, 99.9])
def test_no_iteration_begins_too_late(stopped_clock: Box, seconds: float) -> None:
    stopped_clock.seconds_per_query = 1.0
    outcome, _ = go(stopped_clock, end=Limits(time=seconds))
    assert outcome.status == Status.MAX_TIME
    # The pace is unknown before the first iteration, which is therefore always made.
    assert stopped_clock.now == max(5.0 * ((seconds - 1e-9) // 5.0), 5.0)


# ------------------------------------------------------------------------- the meter
def test_the_meter_refuses_what_would_exceed_the_budget_and_calls_nothing() -> None:
    box = Box()
    meter = Meter(box, SIZE, max_queries=7)
    queries = Scripted().ask(Scripted().init(np.zeros(1), SIZE, 0))
    meter(queries)
    assert (meter.affords(2), meter.affords(3)) == (True, False)
    with pytest.raises(
        DszogError, match=r"5 queries more .* exceed the 7 allowed, 5 are used"
    ):
        meter(queries)
    assert (box.n_calls, meter.n_queries) == (1, 5)


def test_what_fails_is_charged_for() -> None:
    def fail(n_calls: int) -> None:
        raise OSError("lost")

    meter = Meter(Box(then=fail), SIZE)
    with pytest.raises(OSError, match="lost"):
        meter(Scripted().ask(Scripted().init(np.zeros(1), SIZE, 0)))
    assert (meter.n_loss_queries, meter.n_constraint_queries) == (2, 3)


# --------------------------------------------------------------------- the callbacks
def test_a_callback_is_told_what_a_person_would_plot() -> None:
    seen: list[Progress] = []
    result = short_run(callback=seen.append, max_iterations=300)
    last = seen[-1]
    for progress in seen:
        assert progress.n_queries == (
            progress.n_loss_queries + progress.n_constraint_queries
        )
        assert 0.0 <= progress.evaluation_time <= progress.elapsed
    assert last.n_loss_queries <= result.nfev
    assert last.penalty == result.method.penalty
    assert seen[0].penalty == DSZOG().penalty < last.penalty
    assert [p.n_failed for p in seen] == [0] * len(seen)


# ------------------------------------------------------------------------ running away
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_iterate_that_is_not_finite_is_not_taken(bad: float) -> None:
    method = Scripted(point=lambda t: bad if t == 4 else float(t))
    outcome, meter = go(Box(), end=Limits(iterations=9), method=method)
    assert outcome.status == Status.DIVERGED
    assert outcome.position.state.x.item() == 3.0
    assert np.isfinite(outcome.position.average).all()
    assert meter.n_iterations == 3


@pytest.mark.parametrize("name", ["sampled_objective", "sampled_violation"])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_values_of_ten_thousand_scales_ran_away(name: str, scale: float) -> None:
    def info(largest: float) -> Callable[[int], Info]:
        def told(t: int) -> Info:
            value: dict[str, Any] = {name: largest if t == 4 else -scale}
            return Info(**value)

        return told

    fine = Scripted(info=info(-9_999.0 * scale))
    assert go(Box(), end=Limits(iterations=9), method=fine)[0].status == (
        Status.MAX_ITERATIONS
    )
    wild = Scripted(info=info(10_001.0 * scale))
    outcome, _ = go(Box(), end=Limits(iterations=9), method=wild)
    assert outcome.status == Status.DIVERGED
    assert outcome.position.state.x.item() == 3.0


def test_the_scale_is_that_of_each_value_the_first_time_it_is_seen() -> None:
    # A first look at the constraints says nothing about the objective.
    def info(t: int) -> Info:
        seen = Info(sampled_violation=0.5)
        return seen if t <= 2 else seen._replace(sampled_objective=123_456.0)

    outcome, _ = go(Box(), end=Limits(iterations=9), method=Scripted(info=info))
    assert outcome.status == Status.MAX_ITERATIONS


# ------------------------------------------------------------------------ the averages
def test_the_average_weighs_iterate_t_by_t_to_the_eighth() -> None:
    method = Scripted(
        point=lambda t: np.sin(t), info=lambda t: Info(weighted_violation=np.cos(t))
    )
    outcome, _ = go(Box(), end=Limits(iterations=30), method=method)
    t = np.arange(1.0, 31.0)

    def weights(power: int) -> FloatArray:
        rising = np.prod([(t + k) / 99.0 for k in range(power)], axis=0)
        return np.asarray(rising / rising.sum())  # t (t + 1) ... (t + power - 1)

    assert outcome.position.average.item() == pytest.approx(
        weights(8) @ np.sin(t), rel=1e-12
    )
    # What is left of the violation is wanted of the last iterates: to the fiftieth.
    expected = weights(50) @ np.cos(t)
    assert outcome.position.weighted_violation == pytest.approx(expected, rel=1e-12)


@dataclass
class Ramp(Box):
    """Answers that of a batch at `x` constraint ``j`` is ``j - x`` and a bit."""

    def __call__(self, queries: Sequence[Query]) -> tuple[Reply, ...]:
        return tuple(
            Reply(
                losses=np.ones((1, len(query.losses))),
                constraints=np.array([query.constraints - query.x[0] + 0.5]),
            )
            for query in queries
        )


@dataclass(frozen=True, kw_only=True)
class Roaming(Scripted):
    """Asks for the three constraints from one that moves on by one each time."""

    info: Callable[[int], Info] = lambda t: Info(sampled_violation=1.0)

    def ask(self, state: State) -> tuple[Query, ...]:
        first = max(state.iteration - 1, 0)
        constraints = np.arange(first, first + 3)
        return (Query(x=state.x, iteration=state.iteration, constraints=constraints),)


@pytest.mark.parametrize("iterations", [1, 5, N_SEEN, N_SEEN + 7])
def test_the_worst_of_each_of_the_last_batches_is_remembered(iterations: int) -> None:
    outcome, _ = go(Ramp(), end=Limits(iterations=iterations), method=Roaming())
    indices, values = outcome.position.worst_seen
    batches = range(iterations)
    worst = {max(t - 1, 0) + 2: max(t - 1, 0) + 2 - t + 0.5 for t in batches}
    assert indices.tolist() == list(worst)[-N_SEEN:]
    assert values.tolist() == list(worst.values())[-N_SEEN:]


def test_a_constraint_that_is_seen_again_has_its_latest_value() -> None:
    outcome, _ = go(
        Ramp(),
        end=Limits(iterations=2),
        method=Scripted(info=lambda t: Info(sampled_violation=1.0)),
    )
    assert [one.tolist() for one in outcome.position.worst_seen] == [[2], [1.5]]


def test_what_holds_is_not_remembered() -> None:
    method = Roaming(point=lambda t: 1e6)
    outcome, _ = go(Ramp(), end=Limits(iterations=9), method=method)
    # At the start, of the first batch.
    assert outcome.position.worst_seen[0].tolist() == [2]


# -------------------------------------------------------------------------- the history
@pytest.mark.parametrize("iterations", [1, 99, 100, 101, 1000, 12_345])
def test_the_history_is_bounded_evenly_spaced_and_up_to_date(iterations: int) -> None:
    history = History(capacity=100)
    for t in range(1, iterations + 1):
        if history.wants(t):
            history.record(_row(t))
    columns = history.columns()
    kept = columns["iteration"]
    assert set(columns) == set(History.COLUMNS)
    assert all(len(column) == len(kept) for column in columns.values())
    assert min(iterations, 49) <= len(kept) < 100
    gaps = np.diff(kept, prepend=0.0)
    assert len(set(gaps.tolist())) == 1
    assert iterations - kept[-1] < gaps[0]
    np.testing.assert_array_equal(columns["n_queries"], 10 * kept)
    np.testing.assert_array_equal(columns["sampled_violation"], 1.0 / kept)


@pytest.mark.parametrize("n", [5000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_iterations(n: int) -> None:
    held: dict[int, int] = {}

    def look(progress: Progress) -> None:
        if progress.iteration in (n // 2, n):
            held[progress.iteration] = tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    go(Ramp(), end=Limits(iterations=n), history=History(), callbacks=[look])
    tracemalloc.stop()
    assert held[n] - held[n // 2] < 10 * n  # bytes: a megabyte in 100,000 iterations


def history_of(objective: Any, violation: Any, penalty: Any) -> History:
    history = History()
    for t, (f, g, beta) in enumerate(zip(objective, violation, penalty, strict=True)):
        history.record((t + 1, 0, 0.0, f, g, 0.0, 0, 0, beta, 0))
    return history


@pytest.mark.parametrize(
    ("objective", "falls"),
    [
        (np.arange(30.0, 0.0, -1.0), True),
        (np.exp(-np.arange(30.0)), False),
        (np.arange(30.0), False),
        (np.tile([1e308, -1e308], 15), False),
        (np.full(30, np.nan), False),
    ],
)
def test_a_history_knows_whether_the_objective_falls_on(
    objective: FloatArray, falls: bool
) -> None:
    history = history_of(objective, np.zeros(30), np.zeros(30))
    assert history.is_falling == falls


@pytest.mark.parametrize(
    ("raised", "after", "responds"),
    [
        (100.0, 1.0, False),
        (100.0, 0.6, False),
        (100.0, 0.4, True),
        (5.0, 1.0, True),  # hardly raised: nothing is known
        (100.0, np.nan, True),  # nor here
    ],
)
def test_a_history_knows_whether_a_higher_penalty_helped(
    raised: float, after: float, responds: bool
) -> None:
    history = history_of(
        np.zeros(20), np.repeat([1.0, after], 10), np.repeat([30.0, 30.0 * raised], 10)
    )
    assert history.responds_to_penalty == responds


def _row(t: int) -> tuple[float, ...]:
    seen = {"iteration": t, "n_queries": 10 * t, "sampled_violation": 1.0 / t}
    return tuple(seen.get(name, 0.0) for name in History.COLUMNS)
