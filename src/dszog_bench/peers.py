"""Other solvers, each in the form that suits it best, on values that are counted.

All start at the same point and see values only. Where a solver cannot take all
constraints it is given a penalty on them.
"""

from __future__ import annotations

import contextlib
import io
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import Bounds, NonlinearConstraint, minimize

from dszog.contract.arrays import FloatArray, IntArray
from dszog_bench.families import FIRST_SEED, TARGETS, Member, queries_to, relaxed
from dszog_bench.foreign import ForeignProblem
from dszog_bench.records import Effort, Row, kept

PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e5)  # on the sum of squared violations
GIGABYTES = 8.0  # that a solver may hold
LATEST = 3.0  # times the seconds, and a minute: a process is killed then
COSTS = {"0": 0.0, "10_us": 1e-5, "1_ms": 1e-3}  # seconds of one constraint's value
OURS = {"sampled_sqp": 600_000, "dszog": 3_000_000}  # methods, and their queries


class OverError(Exception):
    """The target is reached, or what was allowed is used up: the solver is stopped."""


@dataclass
class Counted:
    """What a solver sees of a problem; counts values, and notes what is feasible.

    A look at all constraints costs as many values as there are. Values at the point
    that was asked for last are remembered and cost nothing.
    """

    problem: ForeignProblem
    most: int  # values in all that may be used
    allowed: float  # seconds of a processor
    feasible: float  # the largest violation of a point that counts
    target: float = -math.inf  # a feasible point with this objective ends it
    stops_itself: bool = False
    n_values: int = 0  # of the objective
    n_constraint_values: int = 0
    best: list[tuple[float, int, int]] = field(default_factory=list)  # with both counts
    _began: float = field(default_factory=time.process_time)
    _known: dict[str, tuple[bytes, Any]] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Of a processor, since the solver began."""
        return time.process_time() - self._began

    @property
    def is_reached(self) -> bool:
        return bool(self.best) and self.best[-1][0] <= self.target

    def fun(self, x: FloatArray) -> float:
        return float(self._looked("fun", self.problem.fun, x))

    def constraints(self, x: FloatArray) -> FloatArray:
        found: FloatArray = self._looked("constraints", self.problem.constraints, x)
        return found

    def some(self, points: FloatArray, indices: IntArray) -> FloatArray:
        """Return some constraints at some points, as our own library asks for them."""
        self.charge(0, len(points) * len(indices))
        return np.array([self.problem.at(x, indices) for x in points])

    def charge(self, n_values: int, n_constraint_values: int) -> None:
        """Count values; stop a solver that does not stop by itself."""
        over = self.n_values + self.n_constraint_values > self.most
        if (over or self.seconds > self.allowed) and not self.stops_itself:
            raise OverError
        self.n_values += n_values
        self.n_constraint_values += n_constraint_values

    def _looked(self, what: str, values: Callable[[FloatArray], Any], x: Any) -> Any:
        x = np.array(x, dtype=float)
        if self._known.get(what, (b"",))[0] == x.tobytes():
            return self._known[what][1]
        problem = self.problem
        self.charge(*((problem.n_losses, 0) if what == "fun" else (0, problem.m)))
        self._known[what] = (x.tobytes(), values(x))
        if len({point for point, _ in self._known.values()}) == 1 < len(self._known):
            self.judge(x, self._known["fun"][1], self._known["constraints"][1])
        return self._known[what][1]

    def judge(self, x: FloatArray, value: float, constraints: FloatArray) -> None:
        """Note a feasible point that is better than those before."""
        lowest = self.best[-1][0] if self.best else np.inf
        if self.n_values + self.n_constraint_values > self.most:
            return
        if value < lowest and self.problem.violation(x, constraints) <= self.feasible:
            self.best.append((value, self.n_values, self.n_constraint_values))
            if self.is_reached:
                raise OverError


@contextlib.contextmanager
def quietly() -> Any:
    """Keep what solvers print and warn to themselves, and that they were stopped."""
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        np.errstate(all="ignore"),
        contextlib.suppress(OverError),
    ):
        warnings.simplefilter("ignore")
        yield


# ------------------------------------------------------------------------------ solvers

Solver: TypeAlias = Callable[[Counted], Any]


def _scipy(counted: Counted, method: str, **options: Any) -> None:
    """Run a method of SciPy with all constraints."""
    problem = counted.problem
    low = np.repeat([-np.inf, 0.0], [problem.m - problem.n_equal, problem.n_equal])
    minimize(
        counted.fun,
        problem.x0,
        method=method,
        bounds=Bounds(problem.lower, problem.upper),
        constraints=NonlinearConstraint(counted.constraints, low, 0.0),
        options=options,
    )


def _cma(counted: Counted) -> None:
    """Run CMA-ES with its augmented Lagrangian, again and again."""
    import cma

    problem = counted.problem
    n_rows = problem.m - problem.n_equal

    def rows(x: Any) -> list[float]:
        values = np.array(counted.constraints(np.asarray(x)))
        values[n_rows:] = np.abs(values[n_rows:]) - counted.feasible / 2
        return list(values)

    size = 0.2 * max(float(np.abs(problem.x0).max()), 1.0)
    bounds = [
        [None if not np.isfinite(end) else end for end in ends.tolist()]
        for ends in (problem.lower, problem.upper)
    ]
    for seed in range(1, 1000):
        function = cma.ConstrainedFitnessAL(lambda x: counted.fun(x), rows)
        _evolved(problem.x0, size, function, function.update, seed, bounds=bounds)


def _evolved(
    x0: FloatArray, size: float, function: Any, update: Any, seed: int, **more: Any
) -> None:
    import cma

    es = cma.CMAEvolutionStrategy(x0, size, {"seed": seed, "verbose": -9} | more)
    while not es.stop():
        points = es.ask()
        es.tell(points, [function(x) for x in points])
        update(es)


def _penalised(counted: Counted, penalty: float) -> Callable[[Any], float]:
    def total(x: Any) -> float:
        violations = np.maximum(counted.constraints(x), 0.0)
        return counted.fun(x) + penalty * float(np.square(violations).sum())

    return total


def _cma_penalty(counted: Counted) -> None:
    for seed in range(1, 1000):
        function = _penalised(counted, PENALTIES[2])
        _evolved(counted.problem.x0, 0.1, function, lambda es: None, seed)


def _lbfgsb(counted: Counted) -> None:
    """Minimise a quadratic penalty by finite differences, stiffer and stiffer."""
    x = counted.problem.x0
    for penalty in PENALTIES:
        total, options = _penalised(counted, penalty), {"maxfun": 10**9}
        x = minimize(total, x, method="L-BFGS-B", options=options).x


SOLVERS: dict[str, Solver] = {
    "SLSQP": partial(_scipy, method="SLSQP", ftol=1e-12, maxiter=10**5),
    "COBYLA": partial(_scipy, method="COBYLA", tol=1e-9, maxiter=10**5),
    "COBYQA": partial(_scipy, method="COBYQA", final_tr_radius=1e-9, maxfev=10**5),
    "trust-constr": partial(
        _scipy, method="trust-constr", gtol=1e-9, xtol=1e-12, maxiter=10**5
    ),
    "CMA-ES": _cma,
}
"""Solvers that take all constraints."""

PEERS: dict[str, Solver] = SOLVERS | {
    "L-BFGS-B, penalty": _lbfgsb,
    "CMA-ES, penalty": _cma_penalty,
}


# ------------------------------------------------------------------------------ measure


def peers(effort: Effort) -> Iterator[Row]:
    """Count the values that other solvers need on the relaxed pairs, to T1."""
    member = relaxed(50, FIRST_SEED)
    for method, queries in OURS.items():
        seeds = effort.seeds(FIRST_SEED)
        yield row_of(method, [_ours(member, queries, seed, method) for seed in seeds])
    seconds = effort.peer_seconds
    for name in PEERS:
        path = effort.output / "peers" / f"{name.replace(', ', '-')}-{seconds:g}s.json"
        yield row_of(name, [kept(path, partial(in_process, name, seconds))])


def _ours(member: Member, queries: int, seed: int, method: str) -> dict[str, Any]:
    found = queries_to(member, queries, seed, method, constraint_tol=1e-2)
    if found["T1"] is None:
        return {"why": f"{found['gap']:.1%} above the optimum, {found['ended_by']}"}
    n_constraints = found["T1_constraints"]
    return {
        "why": "",
        "seconds": found["T1_seconds"],
        "n_values": found["T1"] - n_constraints,
        "n_constraint_values": n_constraints,
    }


def in_process(name: str, seconds: float) -> dict[str, Any]:
    """Run a solver in a process of its own, which is killed if it does not end."""
    context = get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_send, args=(there, name, seconds))
    process.start()
    there.close()
    try:
        if here.poll(LATEST * seconds + 60.0):
            found: dict[str, Any] = here.recv()
            return found
    except EOFError:
        return {"why": "its process died"}
    finally:
        process.kill()
        process.join()
    return {"why": "killed: it could not be stopped"}


def _send(there: Connection, name: str, seconds: float) -> None:
    member = relaxed(50, FIRST_SEED)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        limit = int(GIGABYTES * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    there.send(run(member, name, seconds))


def run(member: Member, name: str, seconds: float) -> dict[str, Any]:
    """Let a solver try a member of a family until T1; return what it took."""
    gap, violation = TARGETS["T1"]
    counted = Counted(
        as_foreign(member),
        most=10**12,
        allowed=seconds,
        feasible=violation,
        target=member.optimum + gap * abs(member.optimum),
    )
    why = "it ended by itself"
    try:
        with quietly():
            PEERS[name](counted)
    except MemoryError as error:
        why = f"cannot hold the problem: {str(error) or 'out of memory'}"
    except ImportError as error:
        why = f"not installed: {error.name}"
    if counted.seconds > seconds:
        why = "time"
    best = counted.best[-1][0] - member.optimum if counted.best else math.inf
    return {
        "why": "" if counted.is_reached else why,
        "gap": best / abs(member.optimum),
        "seconds": counted.seconds,
        "n_values": counted.n_values,
        "n_constraint_values": counted.n_constraint_values,
    }


def as_foreign(member: Member) -> ForeignProblem:
    """Return a member of a family as all solvers take it."""
    return ForeignProblem(
        name="member",
        kind="family",
        fun=member.objective,
        n_losses=member.n_losses,
        at=lambda x, j: member.constraints(x[np.newaxis], j)[0],
        m=member.m,
        n_equal=0,
        x0=member.x0,
        lower=np.full(len(member.x0), -np.inf),
        upper=np.full(len(member.x0), np.inf),
    )


def row_of(name: str, runs: Sequence[dict[str, Any]]) -> Row:
    """Return the constraint values to T1, and the time if values cost something."""
    what, reached = f"relaxed pairs: {name}", [run for run in runs if not run["why"]]
    if not reached:
        first = dict(runs[0])
        outcome = {"outcome": f"not reached ({first.pop('why')})"}
        return Row(what=what, figure=None, details=outcome | first)
    details: dict[str, Any] = {
        "outcome": f"reached by {len(reached)} of {len(runs)}",
        "loss_queries": statistics.median(run["n_values"] for run in reached),
    }
    for label, cost in COSTS.items():
        details[f"seconds_at_{label}"] = statistics.median(
            run["seconds"] + cost * run["n_constraint_values"] for run in reached
        )
    return Row.of(
        what,
        [run["n_constraint_values"] for run in reached],
        unit="constraint queries",
        details=details,
    )
