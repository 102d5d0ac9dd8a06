"""What the contract tests share: small problems, cells, and a run walked by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from dszog import DSZOG, EVALUATORS, METHODS, Constraints, Losses, Problem
from dszog.contract import Query, Reply
from dszog.contract.arrays import FloatArray, IntArray
from dszog.maths.distribution import DISTRIBUTIONS
from dszog.maths.gradients import DIRECTIONS
from dszog.maths.subproblems import Box, Domain, Polyhedron
from dszog.maths.subproblems.linearised import LinearisedSet
from dszog.maths.subproblems.rows import BoxRows
from dszog.methods import FeasibleMethod, Info, Method
from dszog.methods.linearised import LinearisedMethod
from dszog.methods.slopes import SlopesDSZOG
from dszog.methods.spider import SpiderMethod

Values: TypeAlias = Callable[[FloatArray, IntArray], FloatArray]


@dataclass
class Tally:
    """What the user's functions saw, counted by themselves.

    One value, or one gradient, of one index at one point is one query.
    """

    n_losses: int = 0
    n_constraints: int = 0
    n_calls: int = 0
    points: list[FloatArray] = field(default_factory=list)

    @property
    def n_queries(self) -> int:
        return self.n_losses + self.n_constraints


@dataclass(frozen=True)
class Kind:
    """A small problem by its sizes; the functions are always the same ones.

    The losses are quadratic around the rows of a matrix, bent by a sine; the
    constraints are half-spaces, bent by a square. About half of the constraints are
    violated at the start, none is where all variables are 0.2, and the bounds, if there
    are any, keep the minimiser of the losses out.
    """

    dim: int = 3
    n: int = 70
    m: int = 300
    gradient: bool = False
    jacobian: bool = False
    bounded: bool = False


PROBLEMS: dict[str, Kind] = {
    "black box": Kind(),
    "gradient known": Kind(gradient=True),
    "jacobian known": Kind(jacobian=True),
    "white box": Kind(gradient=True, jacobian=True),
    "bounded": Kind(bounded=True),
    "bounded white box": Kind(gradient=True, jacobian=True, bounded=True),
    "bounds only": Kind(m=0, bounded=True),
    "one constraint": Kind(m=1),
    "one variable": Kind(dim=1),
    "one loss": Kind(n=1),
    "one of everything": Kind(dim=1, n=1, m=1),
}


def make_problem(kind: Kind) -> tuple[Problem, Tally]:
    """Return a problem of this kind, and the tally that its functions keep."""
    rng = np.random.Generator(np.random.Philox(key=11))
    centres = rng.normal(1.0, 0.3, (kind.n, kind.dim))
    rows = rng.normal(size=(kind.m, kind.dim))
    limits = rows @ np.full(kind.dim, 0.2) + 0.05
    tally = Tally()

    def losses(points: FloatArray, i: IntArray) -> FloatArray:
        tally.n_calls += 1
        tally.n_losses += len(points) * len(i)
        tally.points.append(points)
        gaps = points[:, np.newaxis, :] - centres[i]
        return np.asarray((gaps**2 + 0.1 * np.sin(3.0 * gaps)).mean(axis=2))

    def gradient(point: FloatArray, i: IntArray) -> FloatArray:
        tally.n_calls += 1
        tally.n_losses += len(i)
        gaps = point - centres[i]
        return np.asarray((2.0 * gaps + 0.3 * np.cos(3.0 * gaps)) / kind.dim)

    def values(points: FloatArray, j: IntArray) -> FloatArray:
        tally.n_calls += 1
        tally.n_constraints += len(points) * len(j)
        tally.points.append(points)
        squares = (points**2).mean(axis=1, keepdims=True)
        return np.asarray(points @ rows[j].T - limits[j] + 0.1 * squares)

    def jacobian(point: FloatArray, j: IntArray) -> FloatArray:
        tally.n_calls += 1
        tally.n_constraints += len(j)
        return np.asarray(rows[j] + 0.2 * point / kind.dim)

    problem = Problem(
        Losses(losses, kind.n, gradient=gradient if kind.gradient else None),
        Constraints(values, kind.m, jacobian=jacobian if kind.jacobian else None)
        if kind.m
        else None,
        kind.dim,
        bounds=[(-1.0, 0.5)] * kind.dim if kind.bounded else None,
        x0=np.full(kind.dim, 0.5),
    )
    return problem, tally


@dataclass(frozen=True, eq=False)
class Cell:
    """One method with one set of hyper-parameters on one problem."""

    method_name: str
    variant: str
    problem_name: str
    method: Method

    def __str__(self) -> str:
        return f"{self.method_name}-{self.variant}-{self.problem_name}".replace(
            " ", "_"
        )

    def problem(self) -> Problem:
        return self.counted()[0]

    def counted(self) -> tuple[Problem, Tally]:
        return make_problem(PROBLEMS[self.problem_name])

    def start(self, problem: Problem, seed: int = 0) -> Any:
        return self.method.init(problem.x0, problem.size, seed)


def dszog_variants() -> dict[str, DSZOG]:
    """Every two settings of different fields meet in one of the first twelve."""
    variants: dict[str, DSZOG] = {}
    for i, distribution in enumerate(DISTRIBUTIONS):
        for j, directions in enumerate(DIRECTIONS):
            antithetic, adaptive = bool((i + j) % 2), bool((i + j // 2) % 2)
            settings: dict[str, Any] = {
                "distribution": distribution,
                "directions": directions,
                "antithetic": antithetic,
                "adaptive": adaptive,
            }
            words = [distribution, directions]
            words += ["antithetic"] if antithetic else []
            words += [] if adaptive else ["plain"]
            variants[" ".join(words)] = DSZOG(step_size=0.01, **settings)
    return variants | {
        "defaults": DSZOG(),
        "as published": DSZOG.as_published(),
        "ones": DSZOG(n_directions=1, loss_batch=1, constraint_batch=1, dual_batch=1),
        "uniform draw alone": DSZOG(dual_estimate="plain"),
        "centred": DSZOG(dual_estimate="centred"),
        "dense centred": DSZOG(dual_estimate="centred", distribution="dense"),
        "sampled start": DSZOG(start="sampled"),
        "decay by the root": DSZOG(step_decay="sqrt"),
        "slopes": SlopesDSZOG(n_directions=3),
    }


# A set for each problem: its bounds, where it has some.
LOWER, UPPER = -1.0, 0.5

FEASIBLE_METHODS: dict[str, Any] = {
    name: kind for name, kind in METHODS.items() if issubclass(kind, FeasibleMethod)
}

FEW = ("black box", "bounded white box", "one of everything")
ROWS = ("black box", "one variable", "bounded white box")
TANGENTS = ("jacobian known", "white box", "bounded white box")


def box(kind: Kind) -> Domain:
    """Return a set with closed forms."""
    return Box(lower=np.full(kind.dim, LOWER), upper=np.full(kind.dim, UPPER))


def polyhedron(kind: Kind) -> Domain:
    """Return a set of 40 rows in a ball, whose answers come with hints."""
    rng = np.random.Generator(np.random.Philox(key=7))
    rows = rng.normal(size=(40, kind.dim))
    limits = rows @ np.full(kind.dim, 0.2) + 0.1
    sides = {"lower": np.full(kind.dim, LOWER), "upper": np.full(kind.dim, UPPER)}
    return Polyhedron.linear(rows, limits, ball="l2", ball_radius=2.0, **sides)


def tangents(kind: Kind) -> LinearisedSet:
    """Return the constraints of the problem, to be replaced by tangents."""
    sides = np.full(kind.dim, LOWER), np.full(kind.dim, UPPER)
    return LinearisedSet(
        indices=np.arange(kind.m),
        families=(BoxRows(*sides),),
        trust_radius=0.7,
    )


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Settings of a method that needs a feasible set, and where to try them."""

    settings: dict[str, Any]
    problems: tuple[str, ...] = FEW
    domain: Callable[[Kind], Domain] = box
    nonconvex: str = "refuse"

    def method(self, kind: Any, problem: Kind) -> Method:
        """Return the method for a problem."""
        if self.nonconvex == "refuse":
            made: Method = kind(domain=self.domain(problem), **self.settings)
            return made
        return LinearisedMethod(
            method=kind(**self.settings),
            constraints=tangents(problem),
            retract=self.nonconvex == "retract",
        )


def feasible_variants(method_name: str) -> dict[str, Variant]:
    """Return the settings to test a method that needs a feasible set with.

    The defaults meet every problem; what differs less meets a few.
    """
    kind = FEASIBLE_METHODS[method_name]
    small: dict[str, Any] = {"loss_batch": 6, "n_directions": 3}
    if issubclass(kind, SpiderMethod):  # both kinds of steps, within six
        small |= {"period": 2, "refresh_batch": 9}
    variants = {"defaults": Variant(settings={}, problems=tuple(PROBLEMS))}
    if not kind.needs_gradient:
        for estimator in ("gaussian", "sphere", "coordinate"):
            settings = small | {"estimator": estimator}
            variants[estimator] = Variant(settings=settings)
        settings = small | {"estimator": "sphere", "per_sample": True}
        variants["per sample"] = Variant(settings=settings)
    variants |= {
        "small": Variant(settings=small, problems=("one loss", "white box")),
        "polyhedron": Variant(settings=small, problems=ROWS, domain=polyhedron),
        "linearised": Variant(settings=small, problems=TANGENTS, nonconvex="linearise"),
        "retracted": Variant(settings=small, problems=TANGENTS, nonconvex="retract"),
    }
    more: dict[str, dict[str, Any]] = {
        "zoscgd": {"open loop": {"step_rule": "open_loop"}},
        "fzfw": {"one step": {"step_size": 1.0}},
        "fzcgs": {"exact prox": {"exact_prox": True}, "capped": {"max_inner": 1}},
        "fcgs": {"exact prox": {"exact_prox": True}},
        "accszofw": {"long steps": {"step_size": 0.9}},
        "accszofw_storm": {"long factor": {"long_factor": 6.0}},
        "zopsgd": {"decay": {"step_decay": "sqrt"}},
        "acczomda": {"undamped": {"damping_scale": 9.0}},
    }
    for name, settings in more.get(method_name, {}).items():
        variants[name] = Variant(settings=small | settings, domain=polyhedron)
    return variants


def is_for(method: Any, problem: Kind) -> bool:
    """Whether a method can work on a problem: some need gradients."""
    return problem.gradient or not getattr(method, "needs_gradient", False)


def cells_of(method_name: str) -> Iterator[Cell]:
    """Yield the cells of a method; its defaults on all problems if it is unknown."""
    kind: Any = METHODS[method_name]
    if method_name in FEASIBLE_METHODS:
        for name, variant in feasible_variants(method_name).items():
            for problem_name in variant.problems:
                problem = PROBLEMS[problem_name]
                if is_for(kind, problem):
                    method = variant.method(kind, problem)
                    yield Cell(method_name, name, problem_name, method)
        return
    variants = dszog_variants() if method_name == "dszog" else {"defaults": kind()}
    for name, method in variants.items():
        for problem_name, problem in PROBLEMS.items():
            if name == "slopes" and (problem.gradient or problem.jacobian):
                continue  # of values alone
            yield Cell(method_name, name, problem_name, method)


CELLS: list[Cell] = [cell for name in METHODS for cell in cells_of(name)]


def evaluate(problem: Problem, queries: Sequence[Query]) -> tuple[Reply, ...]:
    """Answer the queries with arrays that can be written to."""
    evaluator = EVALUATORS["serial"](problem)
    return tuple(
        reply._replace(
            losses=reply.losses.copy(),
            constraints=reply.constraints.copy(),
            loss_gradients=reply.loss_gradients.copy(),
            jacobian=reply.jacobian.copy(),
        )
        for reply in evaluator(queries)
    )


def told(method: Method, problem: Problem, state: Any) -> tuple[Any, Info]:
    """Return the next state, and what is said of the iteration."""
    queries = method.ask(state)
    return method.tell(state, queries, evaluate(problem, queries))


def walk(method: Method, problem: Problem, state: Any, iterations: int) -> list[Any]:
    """Return the state and those that follow it."""
    states = [state]
    for _ in range(iterations):
        states.append(told(method, problem, states[-1])[0])
    return states


@dataclass(frozen=True)
class Trip:
    """The first iterations of a cell, made once and looked at by many tests."""

    problem: Problem
    tally: Tally
    states: list[Any]
    queries: list[tuple[Query, ...]]  # of each state
    replies: list[tuple[Reply, ...]]  # to them


@cache
def trip(cell: Cell) -> Trip:
    """Return six iterations of a cell, from seed 0."""
    problem, tally = cell.counted()
    state, made = cell.start(problem), Trip(problem, tally, [], [], [])
    for _ in range(7):
        made.states.append(state)
        made.queries.append(cell.method.ask(state))
        made.replies.append(evaluate(problem, made.queries[-1]))
        state, _ = cell.method.tell(state, made.queries[-1], made.replies[-1])
    return made


def advance(method: Method, problem: Problem, state: Any, iterations: int) -> Any:
    """Return the state that lies this many iterations ahead."""
    return walk(method, problem, state, iterations)[-1]


def after(method: Method, problem: Problem, iterations: int, seed: int = 0) -> Any:
    """Return the state after so many iterations from the start of a problem."""
    start = method.init(problem.x0, problem.size, seed)
    return advance(method, problem, start, iterations)


def digest(value: object) -> object:
    """Return something equal for equal bits: of arrays, and of all that holds them."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    if is_dataclass(value) and not isinstance(value, type):
        return type(value).__name__, [
            digest(getattr(value, item.name)) for item in fields(value)
        ]
    if isinstance(value, (tuple, list)):
        return [digest(item) for item in value]
    return repr(value)


def rebuilt(value: Any) -> Any:
    """Return an equal object, made anew from copies of the fields of the old one."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if is_dataclass(value) and not isinstance(value, type):
        made = {item.name: rebuilt(getattr(value, item.name)) for item in fields(value)}
        return type(value)(**made)
    return value


def arrays_in(value: object, path: str = "state") -> Iterator[tuple[str, Any]]:
    """Yield every array that a state holds, with the way to it."""
    if isinstance(value, np.ndarray):
        yield path, value
    elif is_dataclass(value):
        for item in fields(value):
            yield from arrays_in(getattr(value, item.name), f"{path}.{item.name}")
