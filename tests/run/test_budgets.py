"""Budgets that hold, runs that can be stopped, and runs that do not meet."""

from __future__ import annotations

import gc
import random
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

import dszog
import dszog.run.meter
from dszog import (
    METHODS,
    Constraints,
    EvaluationError,
    InputError,
    Losses,
    Problem,
    Progress,
    Simulator,
    Status,
)
from dszog.contract.arrays import FloatArray, IntArray
from dszog.run.failures import POLICIES
from tests.contracts.helpers import FEASIBLE_METHODS
from tests.runs import Record, by_dszog


# ------------------------------------------------------- E1: random configurations
@dataclass
class Counted:
    """Functions that count their calls: one point and one index, or one block."""

    rate: float = 0.0  # of calls that give no value
    n_calls: int = 0

    def _value(self, x: FloatArray, index: int, shift: float) -> float:
        self.n_calls += 1
        if np.abs(np.sin(1e5 * x.sum() + index + 7.0 * shift)) * 1e3 % 1.0 < self.rate:
            if index % 2:
                raise ArithmeticError("no value")
            return float("nan")
        return float(((x - shift) ** 2).sum() + np.sin(index)) - 1.5

    def loss(self, x: FloatArray) -> float:
        return self._value(x, 0, 0.5)

    def losses(self, points: FloatArray, i: IntArray) -> FloatArray:
        return np.array([[self._value(x, 2 * k, 0.5) for k in i] for x in points])

    def gradient(self, x: FloatArray, i: IntArray) -> FloatArray:
        self.n_calls += len(i)
        return np.repeat(2.0 * (x - 0.5)[np.newaxis], len(i), axis=0)

    def constraint(self, x: FloatArray, j: int) -> float:
        return self._value(x, j, 0.0)

    def values(self, points: FloatArray, j: IntArray) -> FloatArray:
        return np.array([[self._value(x, 2 * k, 0.0) for k in j] for x in points])

    def jacobian(self, x: FloatArray, j: IntArray) -> FloatArray:
        self.n_calls += len(j)
        return np.repeat(2.0 * x[np.newaxis], len(j), axis=0)

    def block(self, width: int) -> Callable[..., Any]:
        def values(x: FloatArray, *block: int) -> FloatArray:
            return self._value(x, sum(block), 0.0) + np.linspace(-0.5, 0.1, width)

        return values

    def run(self, width: int) -> Callable[[FloatArray, int], Any]:
        def simulated(x: FloatArray, i: int) -> Any:
            value = self._value(x, i, 0.0)
            return value, value + np.linspace(-0.5, 0.1, width)

        return simulated


KINDS = (
    *("plain", "vectorised", "white box", "callables", "blocks", "simulator"),
    *("scipy", "mixed"),
)


@dataclass
class Configuration:
    """One random run: a problem of some kind, a method, a budget."""

    kind: str
    seed: int
    box: Counted = field(init=False)

    def __post_init__(self) -> None:
        rng = np.random.Generator(np.random.Philox(key=self.seed))
        n = int(rng.integers(1, 40))
        m = int(rng.integers(1, 60))
        self.policy = str(rng.choice(POLICIES))
        rate = 0.0 if self.policy == "raise" else float(rng.choice([0.0, 0.01, 0.15]))
        self.box = Counted(rate)
        dim = int(rng.integers(1, 5))
        self.x0 = rng.uniform(0.2, 1.0, dim)
        self.fun, self.constraints = self._functions(rng, n, m)
        problem = Problem(self.fun, self.constraints, dim, x0=self.x0)
        size = problem.size
        self.box.n_calls = 0
        self.options = {
            "n_directions": int(rng.integers(1, 7)),
            "antithetic": bool(rng.random() < 0.3),
            "distribution": str(rng.choice(["sparse", "dense", "uniform"])),
            "start": str(rng.choice(["auto", "exact", "sampled"])),
            "constraint_batch": int(rng.integers(1, 30)),
            "loss_batch": int(rng.integers(1, size.n_losses + 1)),
            "dual_batch": int(rng.integers(1, size.n_constraints + 1)),
        }
        if rng.random() < 0.2:
            self.options["step_size"] = float(rng.choice([0.5, 50.0]))  # may run away
        least = 0.0 if rng.random() < 0.2 else np.log(50.0)
        self.max_queries = int(np.exp(rng.uniform(least, np.log(2500.0))))
        self.more: dict[str, Any] = {"method": "dszog"}
        if self.seed // 2 % 3 == 2:
            self.more["method"], self.options = "sampled_sqp", {}
        if rng.random() < 0.3:
            self.more["max_iterations"] = int(rng.integers(1, 30))
        if rng.random() < 0.3:
            self.more["bounds"] = [(-0.5, 1.0)] * dim
        if rng.random() < 0.3:
            self.more["x_scale"] = rng.uniform(0.3, 3.0, dim)

    def _functions(self, rng: np.random.Generator, n: int, m: int) -> tuple[Any, Any]:
        box, width = self.box, int(rng.integers(1, 12))
        plain = Constraints.from_function(box.constraint, m)
        losses = Losses(box.losses, n)
        blocks = Constraints.blocks(box.block(width), int(rng.integers(1, 12)), width)
        scipy_forms = [
            NonlinearConstraint(box.block(width), -np.inf, 1.0),
            NonlinearConstraint(box.block(width), -2.0, np.ones(width)),
            {"type": "ineq", "fun": lambda x: -box.block(3)(x)},
            {"type": "eq", "fun": lambda x: box.block(1)(x)},
        ]
        simulator = Simulator(box.run(width), n, width)
        if self.kind == "vectorised":
            return losses, Constraints(box.values, m)
        if self.kind == "white box":
            return (
                Losses(box.losses, n, gradient=box.gradient),
                Constraints(box.values, m, jacobian=box.jacobian),
            )
        if self.kind == "callables":
            return box.loss, Constraints.from_callables(
                [partial(box.constraint, j=j) for j in range(m)]
            )
        if self.kind == "blocks":
            return losses, blocks
        if self.kind == "simulator":
            return simulator, ()
        if self.kind == "scipy":
            chosen = rng.permutation(4)[: rng.integers(1, 5)]
            return box.loss, [scipy_forms[k] for k in chosen]
        if self.kind == "mixed":
            parts = [plain, blocks, Constraints(box.values, m), scipy_forms[0]]
            chosen = rng.permutation(4)[: rng.integers(2, 5)]
            fun = (simulator, losses, box.loss)[rng.integers(3)]
            return fun, [parts[k] for k in chosen]
        return box.loss, plain

    def minimize(self, max_queries: int) -> Any:
        return dszog.minimize(
            self.fun,
            self.x0,
            self.constraints,
            options=self.options,
            max_queries=max_queries,
            on_failure=self.policy,  # type: ignore[arg-type]
            seed=self.seed % 1000,
            **self.more,
        )

    def complaint(self) -> str:
        """Run it; return what went wrong, or nothing."""
        try:
            result = self.minimize(self.max_queries)
        except InputError as error:
            return self._too_small(error)
        except EvaluationError as error:  # a start that cannot be evaluated
            over = self.box.n_calls > self.max_queries
            if self.box.rate and "start cannot" in str(error) and not over:
                return ""
            return f"{self}: {error}"
        except ValueError as error:  # not one of ours
            return f"{self}: {type(error).__name__} {error}"
        charged = result.nfev + result.ncev + result.costs.n_retried
        if self.box.n_calls > self.max_queries:
            return f"{self}: {self.box.n_calls} of {self.max_queries} calls"
        if not self._is_counted(charged):
            return f"{self}: {self.box.n_calls} calls, {charged} reported"
        return ""

    def _is_counted(self, charged: int) -> bool:
        return charged == self.box.n_calls

    def _too_small(self, error: InputError) -> str:
        n_sizing = self._n_sizing_calls()
        if n_sizing >= self.max_queries:  # gone before the sizes are known
            told = f"takes {n_sizing} queries to learn how many" in str(error)
            return "" if told and not self.box.n_calls else f"{self}: {error}"
        if self.box.n_calls != n_sizing:
            return f"{self}: {self.box.n_calls} calls before {error}"
        found = re.search(r"need (\d+) queries", str(error))
        if found is None:
            return f"{self}: {error}"
        enough = int(found.group(1))
        if enough <= self.max_queries:
            return f"{self}: {enough} were said to be enough of {self.max_queries}"
        self.box.n_calls = 0
        try:
            self.minimize(enough)
        except EvaluationError:
            pass
        except InputError as again:
            return f"{self}: {again}, which was said to be enough"
        return f"{self}: too much" if self.box.n_calls > enough else ""

    def _n_sizing_calls(self) -> int:
        """Return the calls it takes to learn how many values functions return."""
        parts = self.constraints if isinstance(self.constraints, list) else []
        return sum(
            isinstance(part, dict)
            or (isinstance(part, NonlinearConstraint) and not np.ndim(part.ub))
            for part in parts
        )


def complaints(kind: str, seeds: range) -> list[str]:
    """Return what went wrong in runs of a kind of problem, or of a method."""
    made, first = (OfAMethod, 5000) if kind in METHODS else (Configuration, 1000)
    found = [made(kind, first + seed).complaint() for seed in seeds]
    return [one for one in found if one]


SETS = ("linear", "pairwise", "bounds", "both", "linearise", "retract")


class OfAMethod(Configuration):
    """A random run of a given method, on constraints that all nine can work with."""

    def __post_init__(self) -> None:
        rng = np.random.Generator(np.random.Philox(key=self.seed))
        self.policy = str(rng.choice(POLICIES))
        rate = 0.0 if self.policy == "raise" else float(rng.choice([0.0, 0.002, 0.05]))
        self.box = Counted(rate)
        n, dim = int(rng.integers(1, 40)), int(rng.integers(1, 4))
        self.x0 = rng.uniform(0.2, 1.0, dim)
        gradient = self.box.gradient if self.kind == "fcgs" else None
        self.fun: Any = Losses(self.box.losses, n, gradient=gradient)
        self.more: dict[str, Any] = {"bounds": [(-1.0, 1.0)] * dim}
        wanted = str(rng.choice(SETS))
        self.constraints = self._constraints(rng, wanted, dim)
        alone = wanted in ("linearise", "retract") and not isinstance(
            self.constraints, list
        )
        self.has_linear = wanted != "bounds" and not alone
        self.options = {"loss_batch": int(rng.integers(1, 20))}
        if self.kind in FEASIBLE_METHODS:
            self.options |= self._feasible_options(rng, wanted)
        if wanted in ("linear", "pairwise") and rng.random() < 0.5:
            del self.more["bounds"]  # a ball takes their place where one is needed
        if rng.random() < 0.3:
            self.more["max_iterations"] = int(rng.integers(1, 20))
        if rng.random() < 0.3:
            self.more["x_scale"] = rng.uniform(0.3, 3.0, dim)
        least = 0.0 if rng.random() < 0.2 else np.log(100.0)
        self.max_queries = int(np.exp(rng.uniform(least, np.log(2500.0))))
        if self.kind == "dszog":
            self.options["loss_batch"] = int(rng.integers(1, n + 1))
        self._choose_policy()

    def _choose_policy(self) -> None:
        """Take one that the method can make sense of."""
        compares = getattr(METHODS[self.kind], "compares_points", False)
        if self.policy == "penalise" and compares:
            self.policy = "resample"
        if self.options.get("per_sample"):
            self.policy, self.box.rate = "raise", 0.0

    def _constraints(self, rng: np.random.Generator, wanted: str, dim: int) -> Any:
        box, m = self.box, int(rng.integers(1, 30))
        rows = rng.normal(size=(m, dim))
        linear = Constraints.linear(rows, np.abs(rows).sum(axis=1))
        samples = rng.normal(size=(6, dim))
        pairs = Constraints.pairwise(samples[:3] + 0.5, samples[3:], margin=-2.0)
        curved = Constraints(box.values, m, jacobian=box.jacobian)
        return {
            "linear": linear,
            "pairwise": pairs,
            "bounds": (),
            "both": [linear, pairs],
            "linearise": [curved, linear] if rng.random() < 0.5 else curved,
            "retract": curved,
        }[wanted]

    def _feasible_options(
        self, rng: np.random.Generator, wanted: str
    ) -> dict[str, Any]:
        options: dict[str, Any] = {}
        kind = FEASIBLE_METHODS[self.kind]
        if wanted in ("linearise", "retract"):
            options |= {"nonconvex": wanted, "trust_radius": float(rng.uniform(0.1, 2))}
        if hasattr(kind(), "period") and rng.random() < 0.7:
            options["period"] = int(rng.integers(1, 6))
            options["refresh_batch"] = int(rng.integers(1, 50))
        if not kind.needs_gradient:
            options["n_directions"] = int(rng.integers(1, 7))
            options["estimator"] = str(rng.choice(["gaussian", "sphere", "coordinate"]))
            random_steps = options["estimator"] != "coordinate"
            options["per_sample"] = bool(random_steps and rng.random() < 0.3)
        if rng.random() < 0.3:
            options["ball"] = "l2"
        return options

    def _is_counted(self, charged: int) -> bool:
        # Values of linear constraints are charged, though no user's function is called.
        if self.has_linear:
            return self.box.n_calls <= charged <= self.max_queries
        return super()._is_counted(charged)

    def minimize(self, max_queries: int) -> Any:
        self.more["method"] = self.kind
        return super().minimize(max_queries)


@pytest.mark.parametrize("kind", [*KINDS, *METHODS])
@pytest.mark.parametrize(
    "n", [(20, 12), pytest.param((250, 225), marks=pytest.mark.slow)], ids=str
)
def test_no_budget_is_exceeded_and_every_call_is_counted(
    n: tuple[int, int], kind: str, record_property: Record
) -> None:
    n_runs = n[kind in METHODS]
    found = complaints(kind, range(n_runs))
    record_property("configurations", n_runs)
    record_property("exceeded or miscounted", len(found))
    assert not found


# ------------------------------------------------------------- E3: budgets too small
@pytest.mark.parametrize("m", [1, 30, 60, 300, 5000])
@pytest.mark.parametrize("n", [1, 5, 50])
def test_a_budget_too_small_is_refused_with_one_that_does(n: int, m: int) -> None:
    box = Counted()
    fun, constraints = Losses(box.losses, n), Constraints(box.values, m)
    said = r"need \d+ queries, got max_queries=3"
    with pytest.raises(InputError, match=said) as no:
        dszog.minimize(fun, [0.5, 0.5], constraints, max_queries=3, seed=0)
    enough = int(str(no.value).split("need ")[1].split(" ")[0])
    assert box.n_calls == 0
    result = dszog.minimize(fun, [0.5, 0.5], constraints, max_queries=enough, seed=0)
    assert box.n_calls == result.nfev + result.ncev <= enough
    assert result.certificate.is_known
    assert result.nit >= 1 or m > 60


# -------------------------------------------------------------------------- E3: time
@dataclass
class Clock:
    """A clock that only the user's functions move."""

    now: float = 0.0
    each: float = 0.01  # seconds a call takes

    def tick(self) -> None:
        self.now += self.each


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(
        dszog.run.meter, "time", SimpleNamespace(perf_counter=lambda: made.now)
    )
    return made


def ticking(clock: Clock, m: int) -> tuple[Any, Any]:
    def loss(x: FloatArray) -> float:
        clock.tick()
        return float(((x - 2.0) ** 2).sum())

    def constraint(x: FloatArray, j: int) -> float:
        clock.tick()
        return float(x[j % len(x)] - 1.0 - 0.01 * j)

    return loss, Constraints.from_function(constraint, m)


@pytest.mark.parametrize("method", ["auto", "dszog"])
@pytest.mark.parametrize("max_time", [0.5, 3.0, 20.0])
@pytest.mark.parametrize("m", [1, 20, 1000])
def test_time_runs_over_by_no_more_than_a_call(
    clock: Clock, m: int, max_time: float, method: str
) -> None:
    fun, constraints = ticking(clock, m)
    result = dszog.minimize(
        fun, [0.5, 0.5], constraints, method=method, max_time=max_time, seed=0
    )
    assert result.status == Status.MAX_TIME or method == "auto"  # which may converge
    # How long a call takes is known only after the first look at some constraints.
    first_look = min(m, 256) * clock.each
    assert clock.now <= max(max_time, first_look) + clock.each + 1e-9


@pytest.mark.parametrize("factor", [1.0, 30.0])
@pytest.mark.parametrize("seed", range(8))
def test_functions_that_become_slower_do_not_break_the_time_limit(
    clock: Clock, factor: float, seed: int
) -> None:
    fun, constraints = ticking(clock, 20)

    def slower(progress: Progress) -> None:
        if progress.iteration == 20:
            clock.each = 0.001 * factor

    clock.each = 0.001
    result = by_dszog(
        fun, [0.5, 0.5], constraints, max_time=10.0, seed=seed, callback=slower
    )
    assert result.status == Status.MAX_TIME
    assert result.nit > 20
    assert clock.now <= 10.0 + clock.each + 1e-9


@pytest.mark.parametrize("max_time", [5.0, 10.0])
@pytest.mark.parametrize("slow", [1, 40])
def test_one_slow_call_does_not_end_a_run(
    clock: Clock, max_time: float, slow: int
) -> None:
    n_calls = 0

    def loss(x: FloatArray) -> float:
        nonlocal n_calls
        n_calls += 1
        clock.now += 2.0 if n_calls == slow else 0.001
        return float(np.square(x - 1.0).sum())

    own = {"type": "ineq", "fun": lambda x: 5.0 - x.sum()}
    result = dszog.minimize(loss, np.full(10, 3.0), own, max_time=max_time, seed=0)
    assert result.success
    assert not result.is_start


def test_a_run_that_leaves_time_says_why(clock: Clock) -> None:
    clock.each = 0.4
    fun, constraints = ticking(clock, 20)
    result = by_dszog(fun, [0.5, 0.5], constraints, max_time=20.0, seed=0)
    assert clock.now < 20.0
    assert "Another step was expected to take " in result.message
    assert "s are left" in result.message
    assert "The time is up" not in result.message


def test_the_check_of_the_result_is_inside_the_time(clock: Clock) -> None:
    clock.each = 0.001
    fun, constraints = ticking(clock, 20)
    result = by_dszog(fun, [0.5, 0.5], constraints, max_time=10.0, seed=0)
    assert clock.now <= 10.0 + 1e-9
    assert result.certificate.is_known
    assert result.success


# --------------------------------------------------------------- F1 and F2: interrupts
@dataclass
class Interrupted:
    """A problem that presses Ctrl-C at a given call."""

    at: int
    n_calls: int = 0
    again: int = 0

    def call(self) -> None:
        self.n_calls += 1
        if self.n_calls in (self.at, self.again):
            signal.raise_signal(signal.SIGINT)

    def loss(self, x: FloatArray) -> float:
        self.call()
        return float(((x - 2.0) ** 2).sum())

    def constraint(self, x: FloatArray, j: int) -> float:
        self.call()
        return float(x[j % 2] - 1.0 - 0.01 * j)

    def minimize(self, **settings: Any) -> Any:
        return by_dszog(
            self.loss, [0.5, 0.5], Constraints.from_function(self.constraint, 12),
            **({"max_iterations": 40, "seed": 0} | settings),
        )  # fmt: skip


def check_interrupted(result: Any) -> None:
    assert result.status == Status.INTERRUPTED
    assert not result.success
    assert "interrupted" in result.message
    assert np.isfinite(result.x).all()
    known = result.certificate.is_known
    assert np.isfinite(result.fun) == np.isfinite(result.certificate.objective)
    assert not known or np.isfinite(result.maxcv)


def test_ctrl_c_in_a_function_returns_the_best_so_far_whatever_the_moment() -> None:
    straight = Interrupted(at=0)
    straight.minimize()
    rng = np.random.Generator(np.random.Philox(key=0))
    last = range(straight.n_calls - 90, straight.n_calls + 1)  # the check of the result
    moments = {*rng.integers(1, straight.n_calls, 30).tolist(), *last[::5], *last[-2:]}
    for k, at in enumerate(sorted(moments)):
        policy = POLICIES[k % len(POLICIES)]
        check_interrupted(Interrupted(at).minimize(on_failure=policy))


def test_ctrl_c_in_a_callback_returns_the_best_so_far() -> None:
    def press(progress: Progress) -> None:
        if progress.iteration == stop_at:
            raise KeyboardInterrupt

    for stop_at in (0, 1, 17, 40):
        result = Interrupted(at=0).minimize(callback=press)
        check_interrupted(result)
        assert result.nit == stop_at


@contextmanager
def alarm() -> Iterator[None]:
    """Press Ctrl-C when the timer that is set in it ends, wherever the program is."""

    def press(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, press)
    gc.disable()  # Python drops what is raised in callbacks of others at a collection
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
        gc.enable()


def lost_results(n_moments: int, seed: int) -> list[float]:
    """Return the moments of those interrupts after which no result came back."""
    rng = np.random.Generator(np.random.Philox(key=seed))
    Interrupted(at=0).minimize(max_iterations=5)  # loads kernels, which drop it too
    lost = []
    for seconds in rng.uniform(0.002, 0.12, n_moments):
        left = [seconds]

        def start(progress: Progress, left: list[float] = left) -> None:
            if left:
                signal.setitimer(signal.ITIMER_REAL, left.pop())

        with alarm():
            try:
                more: dict[str, Any] = {"max_iterations": 100_000, "callback": start}
                result = Interrupted(at=0).minimize(**more)
            except KeyboardInterrupt:
                lost.append(float(seconds))
                continue
        check_interrupted(result)
    return lost


@pytest.mark.parametrize("n", [25, pytest.param(200, marks=pytest.mark.slow)])
def test_ctrl_c_at_random_moments_returns_a_result(
    n: int, record_property: Record
) -> None:
    lost = lost_results(n, seed=n)
    record_property("interrupts", n)
    record_property("results lost", len(lost))
    assert lost == []


def test_a_second_ctrl_c_raises_at_once() -> None:
    straight = Interrupted(at=0)
    straight.minimize()
    for first in (5, straight.n_calls // 2):
        box = Interrupted(at=first)
        box.minimize()
        for second in range(first + 1, box.n_calls + 1, 7):  # all in the check
            twice = Interrupted(at=first, again=second)
            with pytest.raises(KeyboardInterrupt):
                twice.minimize()
            assert twice.n_calls == second


def test_after_ctrl_c_the_check_takes_no_longer_than_its_grace(clock: Clock) -> None:
    for m in (20, 1000):
        fun, constraints = ticking(clock, m)
        pressed: list[float] = []

        def press(progress: Progress, pressed: list[float] = pressed) -> None:
            if progress.iteration == 3:
                pressed.append(clock.now)
                raise KeyboardInterrupt

        result = by_dszog(fun, [0.5, 0.5], constraints, seed=0, callback=press)
        assert result.status == Status.INTERRUPTED
        assert clock.now - pressed[0] <= 2.0  # a second, and what was begun in it


# --------------------------------------------------------------- K1: callbacks, nesting
def test_callbacks_come_in_order_in_the_callers_thread_with_read_only_points() -> None:
    seen: list[tuple[int, int, int]] = []

    def look(progress: Progress) -> None:
        seen.append((progress.iteration, progress.n_queries, threading.get_ident()))
        with pytest.raises(ValueError, match="read-only"):
            progress.x[0] = 7.0

    def one_run(**settings: Any) -> Any:
        return Interrupted(at=0).minimize(callback=look, **settings)

    result = one_run()
    assert {thread for *_, thread in seen} == {threading.get_ident()}
    assert [iteration for iteration, *_ in seen] == [0, *range(1, 41)]
    assert all(a[1] < b[1] for a, b in pairwise(seen))
    seen.clear()
    worker = threading.Thread(target=one_run)
    worker.start()
    worker.join()
    assert {thread for *_, thread in seen} == {worker.ident}
    plain = Interrupted(at=0).minimize()
    assert plain.x.tobytes() == result.x.tobytes()  # a callback changes no bit


def bits(result: Any) -> tuple[Any, ...]:
    values = (result.x, result.fun, result.maxcv, *result.weights)
    counts = (result.nit, result.nfev, result.ncev, result.digest)
    return *(np.asarray(value).tobytes() for value in values), *counts


def simulated(inner: Callable[[], Any] | None = None) -> Any:
    """Return a run on a simulator and others that may have another run inside."""
    box = Counted()
    own = box.run(5)

    def run(x: FloatArray, i: int) -> Any:
        if inner is not None and box.n_calls % 50 == 7:
            inner()
        return own(x, i)

    limit = LinearConstraint([[1.0, 1.0]], -np.inf, 9.0)
    plant = Simulator(run, 20, 5)
    return dszog.minimize(plant, [0.5, 0.4], limit, max_iterations=10, seed=3)


def test_a_run_inside_a_run_changes_neither() -> None:
    alone = simulated()
    inside: list[Any] = []
    outer = simulated(lambda: inside.append(bits(simulated())))
    assert bits(outer) == bits(alone)
    assert len(inside) > 3
    assert set(inside) == {bits(alone)}


def test_runs_in_two_threads_are_the_runs_alone() -> None:
    alone = bits(simulated())
    found: list[Any] = []
    barrier = threading.Barrier(3)

    def work() -> None:
        barrier.wait()
        found.append(bits(simulated()))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 3


# ---------------------------------------------------------------------- D1 and D4: bits
def test_the_users_random_numbers_are_left_alone_and_change_nothing() -> None:
    found = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        before = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
        found.append(bits(simulated()))
        Interrupted(at=0).minimize()
        after = repr(np.random.get_state()), random.getstate()  # noqa: NPY002
        assert after == before
    assert found[0] == found[1]


@pytest.mark.parametrize("seed", [7, 16])
def test_points_towards_one_that_fails_leave_enough_for_the_last_look(
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    A, centre = rng.normal(size=(200, 3, 2)), 2.0 * rng.normal(size=2)
    n_calls = [0]

    def run(x: FloatArray, i: int) -> tuple[float, FloatArray]:
        n_calls[0] += 1
        is_lost = np.sin(1e4 * x[0] + i) > 0.8
        loss = np.nan if is_lost else float(np.sum((x - centre) ** 2))
        return loss, A[i] @ x - 0.3

    dszog.minimize(
        Simulator(run, n=200, width=3),
        [0.1, -0.1],
        bounds=[(-5.0, 5.0)] * 2,
        seed=seed,
        max_queries=150,
        on_failure="resample",
    )
    assert n_calls[0] <= 150
