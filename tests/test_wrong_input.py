"""The input table: what is refused, and that every message has its three parts.

A message says what is wrong, what was got and what to do, before the first call of a
user's function; only a constraint in SciPy's form that does not tell its length may be
called once, at the start, to learn it. The words are checked for the messages that
users meet most: they are in ``pinned_messages.txt``.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter as of
from operator import methodcaller
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import dszog
from dszog import DSZOG, Constraints, InputError, InputTypeError
from dszog.contract.arrays import FloatArray, IntArray
from dszog.contract.validation import shown
from dszog.errors import DszogError
from dszog.maths.subproblems import Box, L1Ball, L2Ball, Polyhedron, Simplex
from dszog.maths.subproblems.rows import BoxRows
from dszog.methods.theory import TheoremConstants
from tests.contracts.helpers import FEASIBLE_METHODS

NAN, INF = np.nan, np.inf
PINNED = Path(__file__).with_name("pinned_messages.txt")


class HalfAMethod:
    """What a method is at first sight."""

    init = ask = tell = None


class User:
    """The caller's functions; they count how often they are called."""

    def __init__(self) -> None:
        self.n_calls = 0

    def returning(self, value: Any) -> Callable[..., Any]:
        def function(x: FloatArray) -> Any:
            self.n_calls += 1
            return value

        return function

    def fun(self, x: FloatArray) -> float:
        self.n_calls += 1
        return float(np.sum((x - 2.0) ** 2))

    def values(self, points: FloatArray, indices: IntArray) -> FloatArray:
        self.n_calls += 1
        values: FloatArray = points.sum(axis=1, keepdims=True) - 1.0 - indices
        return values

    def gradients(self, point: FloatArray, indices: IntArray) -> FloatArray:
        self.n_calls += 1
        return np.ones((len(indices), len(point)))

    def vector(self, x: FloatArray) -> FloatArray:
        self.n_calls += 1
        return x - 1.0

    def slopes(self, x: FloatArray) -> FloatArray:
        self.n_calls += 1
        return np.eye(len(x))

    def block(self, x: FloatArray, b: int) -> FloatArray:
        self.n_calls += 1
        return np.full(3, x[0] - 1.0 - b)

    def run(self, x: FloatArray, i: int) -> tuple[float, FloatArray]:
        return self.fun(x), np.full(3, x[0] - 1.0 - i)

    def callback(self, progress: dszog.Progress) -> None:
        self.n_calls += 1

    def constraints(self, m: int = 3) -> Constraints:
        return Constraints(self.values, m)

    def curved(self, m: int = 3, *beside: Constraints) -> Any:
        """Return constraints that are not known to be convex, and others."""
        return [Constraints(self.values, m, jacobian=self.gradients), *beside]

    def problem(self) -> dszog.Problem:
        return dszog.Problem(self.fun, self.constraints(), 2)

    def minimize(self, **changes: Any) -> dszog.Result:
        valid: dict[str, Any] = {
            "fun": self.fun,
            "x0": [0.0, 0.0],
            "constraints": self.constraints(),
            "max_iterations": 3,
            "seed": 0,
            "callback": self.callback,
        }
        return dszog.minimize(**(valid | changes))

    def minimize_linear(self, **changes: Any) -> dszog.Result:
        """Solve a problem that all methods could: white boxes, a bounded set."""
        return self.minimize(
            fun=dszog.Losses(self.values, 3, gradient=self.gradients),
            constraints=Constraints.linear(np.eye(2), [3.0, 3.0]),
            bounds=[(-3.0, 3.0)] * 2,
            **changes,
        )


Make = Callable[..., object]


@dataclass(frozen=True)
class Door:
    """What is called, with valid arguments of which one is changed at a time."""

    make: Callable[[User], Make]
    arguments: tuple[str, ...]
    calls: bool = False  # the user's functions, where nothing is wrong


def door(make: Make, calls: bool = False, **valid: Any) -> Door:
    """Return a door; what is read off or called on the user is written ``of(...)``."""
    parameters = inspect.signature(make).parameters.values()
    names = tuple(p.name for p in parameters if p.kind is not p.VAR_KEYWORD)
    return Door(lambda user: partial(make, **resolved(valid, user)), names, calls)


def resolved(valid: dict[str, Any], user: User) -> dict[str, Any]:
    return {
        name: value(user) if isinstance(value, (of, methodcaller)) else value
        for name, value in valid.items()
    }


def scipy_door(kind: Callable[..., Any], arguments: str, **valid: Any) -> Door:
    def make(user: User) -> Make:
        return lambda **changes: user.minimize(
            constraints=kind(**(resolved(valid, user) | changes))
        )

    return Door(make, tuple(arguments.split()), calls=True)


def option_door(name: str) -> Door:
    def make(user: User) -> Make:
        return lambda **changes: user.minimize_linear(method=name, options=changes)

    return Door(make, door(FEASIBLE_METHODS[name]).arguments, calls=True)


def fields_door(make: Any) -> Door:
    return Door(lambda user: make, door(make.__self__).arguments)


EYE = Constraints.linear(np.eye(2), 1.0)
SAMPLES: dict[str, Any] = {"X_pos": np.ones((3, 2)), "X_neg": np.zeros((2, 2))}
SLOPED: dict[str, Any] = {"fun": of("vector"), "jac": of("slopes")}


def concat(parts: Any) -> Constraints:
    return Constraints.concat(*parts)


NEEDED: dict[str, Any] = dict.fromkeys(
    ("accuracy", "smoothness", "concavity", "gap", "variance", "dual_variance"), 1.0
)
CONSTANTS = sorted(set(inspect.signature(TheoremConstants).parameters) - {"dim"})
THEORY: dict[str, dict[str, Any]] = {  # what is valid
    "zoscgd": {"dim": 3, "horizon": 10},
    "fzcgs": {"horizon": 10, "smoothness": 1.0},
    "fcgs": {"horizon": 10, "smoothness": 1.0},
    "zopsgd": {"dim": 3, "horizon": 10},
    "acczomda": {"dim": 3, "horizon": 10, "smoothness": 1.0},
}
METHODS: dict[str, Any] = {kind.__name__: kind for kind in FEASIBLE_METHODS.values()}
OF_FIELDS = {  # doors that take the fields of a method
    "DSZOG": door(DSZOG),
    "DSZOG.as_published": fields_door(DSZOG.as_published),
    "options of minimize": Door(
        lambda user: lambda **changes: user.minimize(options=changes),
        door(DSZOG).arguments,
        calls=True,
    ),
    **{name: door(kind) for name, kind in METHODS.items()},
    **{f"options, {name}": option_door(name) for name in FEASIBLE_METHODS},
}
FAMILY = methodcaller("constraints")
DOORS: dict[str, Door] = OF_FIELDS | {
    "minimize": Door(
        lambda user: user.minimize, door(dszog.minimize).arguments, calls=True
    ),
    "certify": door(
        dszog.certify, calls=True, problem=methodcaller("problem"), x=[0.0, 0.0]
    ),
    "Problem": door(dszog.Problem, losses=of("fun"), constraints=FAMILY, dim=2),
    "Losses": door(dszog.Losses, values=of("values"), n=3),
    "Losses.from_function": door(dszog.Losses.from_function, function=of("fun")),
    "Losses.linear": door(
        dszog.Losses.linear, X=np.eye(2), y=np.ones(2), loss=of("values")
    ),
    "Constraints": door(Constraints, values=of("values"), m=3),
    "Constraints.from_function": door(
        Constraints.from_function, function=of("values"), m=3
    ),
    "Constraints.from_callables": door(
        Constraints.from_callables, functions=of("fun", "vector")
    ),
    "Constraints.blocks": door(
        Constraints.blocks, values=of("block"), n_blocks=2, width=3
    ),
    "Constraints.concat": door(concat, parts=(EYE, EYE)),
    "Constraints.named": door(EYE.named, names=["a", "b"]),
    "Constraints.linear": door(Constraints.linear, A=np.ones((3, 2)), b=np.ones(3)),
    "Constraints.pairwise": door(Constraints.pairwise, **SAMPLES),
    "Simulator": door(dszog.Simulator, run=of("run"), n=2, width=3),
    "LinearConstraint": scipy_door(
        LinearConstraint, "A lb ub keep_feasible", A=np.eye(2), lb=-INF, ub=[1.0, 1.0]
    ),
    "NonlinearConstraint": scipy_door(
        NonlinearConstraint,
        "fun lb ub jac keep_feasible",
        **(SLOPED | {"lb": [-INF, -INF], "ub": [1.0, 1.0]}),
    ),
    "constraint dictionary": scipy_door(
        dict, "type fun jac args other", type="ineq", **SLOPED
    ),
    "TheoremConstants": door(TheoremConstants, dim=3, **NEEDED),
    **{
        f"{name}.from_theory": door(FEASIBLE_METHODS[name].from_theory, **valid)
        for name, valid in THEORY.items()
    },
    **{
        f"{name}.for_comparison": door(kind.for_comparison)
        for name, kind in METHODS.items()
    },
    "L2Ball": door(L2Ball, dim=2, radius=1.0),
    "L1Ball": door(L1Ball, dim=2, radius=1.0),
    "Simplex": door(Simplex, dim=2, total=1.0),
    "Box": door(Box, lower=[0.0, 0.0], upper=[1.0, 1.0]),
    "Polyhedron": door(Polyhedron, families=(BoxRows(np.zeros(2), np.ones(2)),)),
    "Polyhedron.linear": door(Polyhedron.linear, A=np.eye(2), b=np.ones(2)),
    "Polyhedron.pairwise": door(Polyhedron.pairwise, **SAMPLES),
}


@dataclass(frozen=True)
class Wrong:
    """Values that are refused for the same reason."""

    what: str  # in the message
    values: dict[str, Any]
    error: type[DszogError] = InputError
    got: str | None = None  # a pattern; a value's own representation if not given
    n_calls: int = 0  # of the user's functions, before it is refused


def wrong(what: str, *values: Any, **more: Any) -> Wrong:
    return Wrong(what, {shown(value): value for value in values}, **more)


def wrong_type(what: str, *values: Any, **more: Any) -> Wrong:
    return wrong(what, *values, error=InputTypeError, **more)


def of_shape(what: str, *shapes: tuple[int, ...]) -> tuple[Wrong, ...]:
    return tuple(
        Wrong(what, {f"shape {shape}": np.ones(shape)}, got=re.escape(str(shape)))
        for shape in shapes
    )


NOT_WHOLE = wrong_type(
    "must be a whole number",
    *(2.5, 1e4 + 0.5, NAN, INF, "3", True, [3], np.float64(2.5), np.True_),
)
COUNT = (NOT_WHOLE, wrong("must be at least 1", 0, -1))
NUMBER = wrong_type(
    "must be a number",
    *("1", True, 1j, [1.0], np.ones(1), np.complex128(1.0), np.complex64(1.0)),
    np.True_,
)
POSITIVE = (NUMBER, wrong("must be positive and finite", 0.0, -1.0, NAN, INF))
POSITIVE_OR_INFINITE = (NUMBER, wrong("must be positive", 0.0, -1.0, NAN))
NONNEGATIVE = (NUMBER, wrong("must be at least 0 and finite", -1.0, NAN, INF))
FINITE = (NUMBER, wrong("must be finite", NAN, INF, -INF))
SHARE = (NUMBER, wrong("must lie in (0, 1]", 0.0, -0.5, 1.5, NAN, INF))
FLAG = (wrong_type("must be True or False", 1, 0, "yes", None, 1.0, [True]),)
NAMES = (wrong_type("a list of 2 strings", 3, "ab", ["a"], ["a", 2]),)
TAG = (wrong_type("`tag` must be a string", 3, None, b"data"),)
SEED = (
    NOT_WHOLE,
    wrong_type("must be a whole number", np.random.default_rng(0), got="Generator"),
    wrong("must be at least 0", -1),
    wrong("must be below 2**64", 2**64),
)
EVALUATOR = (
    wrong("must be one of 'serial'", "seriel"),
    wrong_type("must be a name or workers", 3, None, ["serial"], True),
    wrong_type("a name or workers", dszog.evaluators.Threads, got="Threads"),
)
TIMEOUT = (*POSITIVE_OR_INFINITE, wrong("needs workers that can be ended", 1.0, 3))
NOT_NUMBERS = wrong_type("must hold real numbers", ["a", "b"], [1j, 0.0], got="got ")


def choice(misspelt: str, meant: str) -> tuple[Wrong, ...]:
    return wrong(f"'{meant}'", misspelt), wrong("must be one of", None, 3, [meant])


def array(*shape: int) -> tuple[Wrong, ...]:
    """Return what no array of numbers may be."""
    place = re.escape(str((1,) if len(shape) == 1 else (0, 1)))
    spoilt = []
    for value in (NAN, INF, -INF):
        one = np.zeros(shape)
        one.flat[1] = value
        spoilt.append(
            wrong("must be finite", one, got=f"got {value} at position {place}")
        )
    many = np.full((9, *shape[1:]), NAN)
    masked = (np.ma.masked_less(np.zeros(shape), 1.0), np.ma.array(np.ones(shape)))
    return (
        *spoilt,
        wrong("must be finite", many, got=rf"got nan at .*\) and {many.size - 5} more"),
        wrong_type("must hold real numbers", {"a": 1}, [[1.0], [1.0, 2.0]]),
        wrong_type(
            "must hold real numbers",
            *(np.zeros(shape, complex), np.full(shape, None), np.full(shape, "a")),
            *(np.zeros(shape, "M8[D]"), [10**400, 1]),
            got="got (array|.*0000).*dtype (complex128|object|<U1|datetime64)",
        ),
        *(
            wrong_type("must hold a number everywhere", one, got="got a masked")
            for one in masked
        ),
    )


def no_argument() -> float:
    return 0.0


def three_arguments(first: Any, second: Any, third: Any) -> float:
    return 0.0


def by_name_only(*, x: Any, y: Any) -> float:
    return 0.0


class Functor:
    """A function in the shape of an object."""

    def __call__(self, first: Any, second: Any, third: Any) -> float:
        return 0.0


WRONG_FUNCTIONS = (no_argument, three_arguments, by_name_only, Functor())


def takes(n_arguments: int) -> Wrong:
    other: Any = (lambda x, y: 0.0) if n_arguments == 1 else (lambda x: 0.0)
    return wrong_type(
        f"must take {n_arguments} argument",
        *(*WRONG_FUNCTIONS, other),
        got=r"got .*(no_argument|three_arguments|by_name_only|Functor|<lambda>).*\(",
    )


def function_of(n_arguments: int) -> tuple[Wrong, ...]:
    return takes(n_arguments), NO_FUNCTION


NO_FUNCTION = wrong_type("must be a function", 3, "f", [1.0])


FIELDS: dict[str, tuple[Wrong, ...]] = {  # of all methods
    **dict.fromkeys(
        (
            *("step_size", "dual_step_size", "penalty", "radius", "dual_ridge"),
            *("step_eps", "ball_radius", "trust_radius", "inner_gap", "long_factor"),
            *("damping_scale", "damping_offset", "momentum_scale"),
        ),
        POSITIVE,
    ),
    **dict.fromkeys(("averaging", "dual_averaging"), SHARE),
    **dict.fromkeys(
        (
            *("n_directions", "loss_batch", "constraint_batch", "dual_batch"),
            *("horizon", "horizon_queries", "max_inner", "period", "refresh_batch"),
        ),
        COUNT,
    ),
    **dict.fromkeys(
        ("antithetic", "adaptive", "normalised", "per_sample", "exact_prox"), FLAG
    ),
    "step_decay": choice("constnt", "constant"),
    "directions": choice("gausian", "gaussian"),
    "dual_estimate": choice("centered", "centred"),
    "distribution": choice("spars", "sparse"),
    "start": choice("exakt", "exact"),
    "estimator": choice("shpere", "sphere"),
    "ball": choice("l22", "l2"),
    "form": choice("lift", "lifted"),
    "nonconvex": choice("linearize", "linearise"),
    "step_rule": choice("open-loop", "open_loop"),
    "domain": (
        wrong_type("`domain` must be a feasible set", 3, "box", [(0.0, 1.0)]),
        wrong_type("must be a feasible set", L2Ball, Bounds(0, 1), got="(L2Ball|Bou)"),
    ),
}
X0 = (
    *array(2),
    *of_shape("Pass a vector: x0.ravel()", (3, 1), (1, 2), (1, 2, 1)),
    *of_shape("one entry per variable", (0,), (0, 3)),
)
X_SCALE = (
    *array(2),
    wrong("a positive number or one for", 0, -1.0, [1.0, 0.0], [1, 2, 3], [[1, 1]], []),
)
BOUNDS = (
    wrong(
        "must be 2 pairs (low, high)",
        *([(0, 1)], [(0, 1)] * 3, [(0, 1, 2)] * 2, (0, 1), 3, "ab"),
    ),
    wrong(
        "must have lower <= upper",
        *([(0, 1), (1, 0)], [(NAN, 1), (0, 1)], Bounds([1, 0], [0, 1])),
        got=r"got \((1.0, 0.0|nan, 1.0)\) for variable [01]",
    ),
    wrong_type(
        "must hold real numbers",
        *([("a", "b"), (0, 1)], [(0, 1j), (0, 1)]),
        got="got.*('a'|1j)",
    ),
)
CONSTRAINTS = (
    wrong_type("must be a dszog.Constraints or a SciPy constraint", 3, "f"),
    wrong_type(
        "must be a dszog.Constraints or a SciPy constraint",
        *(Bounds(0, 1), [EYE, 3], [[], ["f"]], np.sin, [np.sin, np.cos]),
        got="got (Bounds|3|'f'|<ufunc)",
    ),
    wrong("in 3 variables", Constraints.linear(np.eye(3), np.ones(3)), got="dim = 2"),
)
OBJECTIVE = (takes(1), wrong_type("must be a function", 3.0, "f", None, [1.0]))
WEIGHTS = (
    wrong_type("must be a pair", 3, ([0],), ([0], [0.5], [1]), {0: 0.5}),
    wrong(
        "must be distinct indices below 3 and weights >= 0 with a sum of at most 1",
        *(([0.0], [0.5]), ([True], [0.5]), ([0, 0], [0.5, 0.25]), ([-1], [0.5])),
        *(([3], [0.5]), ([2**62], [0.5]), ([0], [-0.5]), ([0, 1], [0.5, 0.75])),
        *(([0, 1], [0.5]), ([[0]], [[0.5]]), (0, 0.5), ([[0], [1, 2]], [0.5, 0.5])),
    ),
    wrong("must be finite", ([0], [NAN]), ([1], [INF]), got="got (nan|inf)"),
    wrong_type(
        "must hold real numbers",
        *(([0], ["a"]), ([0], [1j]), (None, None)),
        got="got .*('a'|1j|None)",
    ),
)
EACH_OF_3 = (NOT_NUMBERS, *of_shape("one for each of 3 values", (2,), (3, 1)))
NO_SIDE = wrong("must have a finite limit", INF, got="got None and inf")
TOO_MANY = wrong("`m` must be below 2**63", 2**62, got=f"got ({2**63}|{3 * 2**62})")
CROSSED = ([NAN, NAN], [NAN, 1.0])
KEEP_FEASIBLE = (wrong("cannot be promised", True, [False, True], got="got it set"),)
NO_NUMBERS: list[Any] = [None, "7", 7j, [], {}, [None, 1.0], [[1.0], [1.0, 2.0]]]
SIDE = (
    NOT_NUMBERS,
    *of_shape("must ", (3,), (2, 2)),
    wrong("must ", [NAN, 0.0], got="got (.*nan|shapes)"),
)


def sparse_matrix(*entries: complex) -> Any:
    return sparse.csr_array((np.array(entries), ([0, 2], [0, 1])), shape=(3, 2))


SPARSE = (
    wrong("must be finite", sparse_matrix(1.0, NAN), got="got nan"),
    wrong_type("must hold real numbers", sparse_matrix(1.0, 1j), got="complex128"),
)
TABLE: dict[str, dict[str, tuple[Wrong, ...]]] = {
    **{
        name: {argument: FIELDS[argument] for argument in one.arguments}
        for name, one in OF_FIELDS.items()
    },
    "minimize": {
        "fun": OBJECTIVE,
        "x0": (
            *X0,
            wrong_type("`x0` is missing", None, got="a function of unknown dimension"),
        ),
        "constraints": CONSTRAINTS,
        "args": (wrong_type("must take 2 arguments", 3, (3,), got="got fun"),),
        "jac": function_of(1),
        "bounds": BOUNDS,
        "method": (
            wrong("`method` must be one of", "dszgo"),
            wrong_type("must be a name or a method", 3, ["dszog"], DSZOG),
            wrong_type("a dataclass with init", HalfAMethod(), got="without planned"),
        ),
        "options": (
            wrong_type("`options` must be a dict", [1], "penalty=10"),
            wrong("has no option 'stepsize'. Did you mean", {"stepsize": 1}, got=""),
            wrong("has no option 'qqq'. Options: ", {"qqq": 1}, got=""),
            wrong("is drawn without repeats", {"loss_batch": 2}, got="got 2 of 1"),
            wrong("is drawn without repeats", {"dual_batch": 4}, got="got 4 of 3"),
        ),
        "max_iterations": COUNT,
        "max_queries": (
            *COUNT,
            wrong("one iteration and the check", 5, got="got max_queries=5"),
        ),
        "max_time": POSITIVE_OR_INFINITE,
        "constraint_tol": NONNEGATIVE,
        "tol": POSITIVE,
        "x_scale": X_SCALE,
        "names": NAMES,
        "weights": WEIGHTS,
        "seed": SEED,
        "evaluator": EVALUATOR,
        "timeout": TIMEOUT,
        "callback": (
            *function_of(1),
            wrong_type("must be a function", [print, 3], got="got .*print"),
            wrong_type("must take 1 argument,", [three_arguments], got="got three_arg"),
        ),
        "progress": FLAG,
        "checkpoint": (wrong_type("the path of a folder", True, 3, b"run", ""),),
        "resume": (*FLAG, wrong("needs the folder", True, got="got none")),
        "tag": (*TAG, wrong("guards a run that is saved", "May", got="got no folder")),
        "on_failure": choice("penalize", "penalise") + choice("re-sample", "resample"),
        "on_interrupt": choice("retrun", "return") + choice("rise", "raise"),
        "on_save_failure": (
            *(choice("warm", "warn") + choice("rise", "raise")),
            wrong("needs the folder", "warn", got="got none"),
        ),
    },
    "certify": {
        "problem": (
            wrong_type("must be a dszog.Problem", no_argument, 3, got="(func|int)"),
        ),
        "x": (
            *array(2),
            *of_shape("Pass a vector: x.ravel()", (2, 1), (1, 2)),
            *of_shape("one entry per variable", (0,)),
            wrong("one entry per variable", [1, 2, 3], got="3 entries for 2 variables"),
        ),
        "weights": WEIGHTS,
        "penalty": POSITIVE,
        "ridge": POSITIVE,
        "active_tol": NONNEGATIVE,
        "max_queries": (NOT_WHOLE, wrong("must be at least 2", 1, 0, -1)),
        "seed": SEED,
        "bounds": (wrong("are for a simulator", [(0, 1)] * 2, got="beside a problem"),),
        "evaluator": EVALUATOR,
        "timeout": TIMEOUT,
    },
    "Problem": {
        "losses": OBJECTIVE,
        "constraints": (
            *CONSTRAINTS,
            wrong("nothing to keep", None, got="got neither constraints nor bounds"),
        ),
        "dim": COUNT,
        "bounds": BOUNDS,
        "x0": (
            *X0,
            wrong("one entry per variable", [1, 2, 3], got="3 entries for 2 variables"),
        ),
        "x_scale": X_SCALE,
        "names": NAMES,
        "unconstrained": FLAG,
        "tag": TAG,
        "by_name": FLAG,
    },
    "Losses": {
        "values": function_of(2),
        "n": (*COUNT, wrong("`n` must be below 2**63", 2**63)),
        "gradient": function_of(2),
        "one_point": FLAG,
    },
    "Losses.from_function": {"function": function_of(1), "gradient": function_of(1)},
    "Losses.linear": {
        "X": (*array(2, 2), *of_shape("a sample per row", (2,), (0, 2), (2, 0))),
        "y": of_shape("must have an entry per row of X", (3,), (2, 1), (0,)),
        "loss": function_of(2),
    },
    "Constraints": {
        "values": function_of(2),
        "m": (*COUNT, wrong("`m` must be below 2**63", 2**63)),
        "jacobian": function_of(2),
        "one_point": FLAG,
    },
    "Constraints.from_function": {"function": function_of(2), "m": COUNT},
    "Constraints.from_callables": {
        "functions": (
            wrong_type(
                "`functions[1]` must take 1 argument,",
                *([np.linalg.norm, one] for one in WRONG_FUNCTIONS),
                got=r"got .*\(",
            ),
            wrong_type("must be a function", [np.sin, 3], "f", got="got (3|'f')"),
            wrong_type("must be a list of functions", 3, None, np.sin, {0: np.sin}),
            wrong("at least one function", [], (), got="got an empty list"),
        )
    },
    "Constraints.blocks": {
        "values": function_of(2),
        "n_blocks": (*COUNT, TOO_MANY),
        "width": (*COUNT, TOO_MANY),
    },
    "Constraints.named": {
        "names": (*NAMES, wrong_type("must take 1 argument", no_argument, got="got"))
    },
    "Constraints.concat": {
        "parts": (
            wrong_type(
                "every part must be a dszog.Constraints",
                *((EYE, 3), ([],), (LinearConstraint(np.eye(2)),)),
                got=r"got (3|\[\]|<.*LinearConstraint)",
            ),
            wrong("Constraints.concat: got no parts", (), got="no parts"),
            wrong(
                "all parts must have the same variables",
                [Constraints.linear(np.eye(k), 1.0) for k in (3, 2, 3)],
                got=r"got dimensions \[2, 3\]",
            ),
            wrong(
                "`m` must be below 2**63",
                [Constraints(lambda points, j: 0.0, 2**62)] * 2,
                got=f"got {2**63}",
            ),
        )
    },
    "Constraints.linear": {
        "A": (
            *array(3, 2),
            *of_shape("a constraint per row", (3,), (0, 3), (3, 0), (1, 1, 1)),
            wrong("a constraint per row", sparse.csr_array((0, 3)), got=r"\(0, 3\)"),
            *SPARSE,
        ),
        "b": (*array(3), *of_shape("an entry per row of A", (4,), (3, 1), (0,))),
    },
    "Constraints.pairwise": {
        **dict.fromkeys(
            ("X_pos", "X_neg"),
            (
                *array(3, 2),
                *of_shape("a sample per row", (2,), (0, 2), (2, 0)),
                wrong("the same columns", np.ones((2, 5)), got="got (5 and 2|2 and 5)"),
            ),
        ),
        "margin": FINITE,
    },
    "Simulator": {
        "run": function_of(2),
        "n": (*COUNT, TOO_MANY, wrong("`n` must be at least 1", (3, 0), got="got 0")),
        "width": (*COUNT, TOO_MANY),
        "objective": function_of(1),
        "lower": (*EACH_OF_3, wrong("room for a number", NAN, INF, got="got .")),
        "upper": (
            *EACH_OF_3,
            wrong("room for a number", NAN, -INF, got="got ."),
            NO_SIDE,
        ),
        "scale": (*EACH_OF_3, wrong("must be positive", 0.0, -1.0, NAN, INF)),
        "weights": (
            NOT_NUMBERS,
            wrong("2 numbers from 0", [1.0], [-1, 2], [0, 0], 1.0),
        ),
        "names": (
            wrong("must be a pair", 3, "abc", [["a", "b"]], got="got "),
            wrong_type(
                "(cases): `names` must be a list of 2", (["a"], None), got="1 in all"
            ),
            wrong_type("(limits): `names` must be a list of 3", (None, [1]), got="1"),
        ),
        "initializer": (
            wrong_type("take 0 arg", three_arguments, got="three_"),
            NO_FUNCTION,
        ),
        "retries": (NOT_WHOLE, wrong("must be at least 0", -1)),
    },
    "LinearConstraint": {
        "A": (
            wrong("must be finite", [[1.0, NAN], [INF, 1.0]], got="got nan at "),
            wrong("in 3 variables", np.ones((2, 3)), got="got dim = 2"),
        ),
        "lb": (wrong("lb <= ub", [2.0, 0.0], *CROSSED, got="got lb = array"),),
        "ub": (wrong("lb <= ub", *CROSSED, got=r"got .* ub = array\(\[nan"),),
        "keep_feasible": KEEP_FEASIBLE,
    },
    "NonlinearConstraint": {
        "fun": function_of(1),
        "lb": (wrong("lb <= ub", [2.0, 0.0], *CROSSED, got="got lb = array"),),
        "ub": (
            NOT_NUMBERS,
            wrong("lb <= ub", *CROSSED, got=r"got .* ub = array\(\[nan"),
            wrong_type(
                "must hold a number everywhere",
                np.ma.masked_less([0.0, 1.0], 0.5),
                got="got a masked",
            ),
            wrong(
                "`lb` and `ub` must fit ",
                *([[1.0, 1.0]], [1.0, 1.0, 1.0]),
                got=r"got shapes \(2,\) and|lb",
            ),
        ),
        "jac": (takes(1), wrong_type("must be a function", 3)),
        "keep_feasible": KEEP_FEASIBLE,
    },
    "constraint dictionary": {
        "type": (*choice("inequ", "ineq"), wrong("must be one of", ["eq"], "<=")),
        "fun": function_of(1),
        "jac": function_of(1),
        "args": (
            wrong_type("`args` must be a tuple", 3, 0),
            wrong_type("`args` must be a tuple", np.ones(2), got="got array"),
            wrong_type("must take 2 arguments", (1.0,), got="got vector"),
        ),
        "other": (
            wrong("the keys must be", 3, got=r"got \['type', 'fun', 'jac', 'ot"),
        ),
    },
    "TheoremConstants": {
        **dict.fromkeys(CONSTANTS, POSITIVE),
        "dim": COUNT,
        "dual_averaging": (*POSITIVE, wrong("`dual_averaging`", 1.5, 2.0)),
    },
    **{
        f"{name}.from_theory": {
            argument: COUNT
            if argument in ("dim", "horizon")
            else FLAG
            if argument == "convex"
            else POSITIVE
            for argument in DOORS[f"{name}.from_theory"].arguments
        }
        for name in THEORY
    },
    **{
        f"{name}.for_comparison": {
            argument: POSITIVE if argument == "step_size" else COUNT
            for argument in DOORS[f"{name}.for_comparison"].arguments
        }
        for name in METHODS
    },
    "L2Ball": {"dim": COUNT, "radius": POSITIVE},
    "L1Ball": {"dim": COUNT, "radius": POSITIVE},
    "Simplex": {"dim": COUNT, "total": POSITIVE},
    "Box": {"lower": SIDE, "upper": SIDE},
    "Polyhedron": {
        "families": (wrong("`families` must ", ()),),
        "ball": choice("l22", "l2"),
        "ball_radius": POSITIVE,
        "n_named": (NOT_WHOLE, wrong("must be at least 0", -1)),
    },
    "Polyhedron.linear": {
        "A": (
            *array(2, 2),
            *of_shape("`A` must be a matrix", (2,), (0, 2), (2, 0), (1, 1, 1)),
            *SPARSE,
        ),
        "b": (*array(2), *of_shape("have an entry per row", (4,), (2, 1), (0,))),
        "lower": SIDE,
        "upper": SIDE,
    },
    "Polyhedron.pairwise": {
        **dict.fromkeys(
            ("X_pos", "X_neg"),
            (
                *array(3, 2),
                *of_shape("with the same columns", (2,), (0, 2), (2, 0), (2, 5)),
            ),
        ),
        "margin": FINITE,
        "form": choice("lift", "lifted"),
        "lower": SIDE,
        "upper": SIDE,
    },
}


@dataclass(frozen=True)
class Row:
    """A call that is refused, and what its message says."""

    name: str
    call: Callable[[User], object]
    wrong: Wrong
    value: Any = field(default=None, repr=False)


def changed(name: str, **changes: Any) -> Callable[[User], object]:
    return lambda user: DOORS[name].make(user)(**resolved(changes, user))


def rows() -> Iterator[Row]:
    for name, arguments in TABLE.items():
        for argument, wrongs in arguments.items():
            for one in wrongs:
                for case, value in one.values.items():
                    call = changed(name, **{argument: value})
                    case = re.sub(" at 0x[0-9A-Fa-f]+", "", case)  # the same every time
                    yield Row(f"{name}({argument}): {case}", call, one, value)


def measured(value: Any, nonlinear: bool) -> Callable[[User], object]:
    """Have a function called for its length that returns this."""

    def call(user: User) -> object:
        fun = user.returning(value)
        form: Any = {"type": "ineq", "fun": fun}
        return user.minimize(
            constraints=NonlinearConstraint(fun, 0.0, 1.0) if nonlinear else form
        )

    return call


def unknown_length(**limits: Any) -> Callable[[User], object]:
    return lambda user: user.minimize(
        constraints=NonlinearConstraint(user.vector, **({"lb": 0, "ub": 0} | limits))
    )


def without(key: str) -> Callable[[User], object]:
    def call(user: User) -> object:
        form: dict[str, Any] = {"type": "ineq", "fun": user.vector}
        del form[key]
        return user.minimize(constraints=[form])

    return call


EMPTY = Constraints.linear([[1.0, 0.0], [-1.0, 0.0]], [0.0, -1.0])
NO_ORIGIN = Constraints.linear([[-1.0, 0.0]], [-0.1])
WHOLE: dict[str, Any] = {"fun": methodcaller("problem"), "x0": None, "constraints": ()}
OWN = "a Problem brings its own constraints, bounds and x_scale, got others beside it"
FZFW: dict[str, Any] = {"method": "fzfw", "constraints": EYE}
BALL = {"method": METHODS["ZOPSGD"](domain=L2Ball(dim=2, radius=9.0))}
CURVED: dict[str, Any] = {"method": "fzfw", "constraints": methodcaller("curved")}
RETRACT = CURVED | {"options": {"nonconvex": "retract"}, "x0": [0.5, 0.5]}
EXCLUDED = "nonconvex='retract' draws iterates towards the origin, which the linear "
EXCLUDED += "constraints or bounds exclude"
PER_SAMPLE = {"per_sample": True, "estimator": "sphere"}
ALONG = {"per_sample": True, "estimator": "coordinate"}
CROSSED_SIDES = {"lower": [0.0, 2.0], "upper": [1.0, 1.0]}
NO_LIMIT = {"lb": [-INF, -INF], "ub": [INF, INF]}


class Refused(NamedTuple):
    """Arguments that do not go together, or a call that is not like the others."""

    said: str  # in the message, word by word
    given: Any  # the arguments, at the door that the name begins with; or a call
    error: type[DszogError] = InputError
    n_calls: int = 0  # of the user's functions


REFUSED: dict[str, tuple[Any, ...]] = {
    **{
        f"minimize({name}) beside a Problem{which}": (OWN, WHOLE | {name: value})
        for name, which, value in (
            *(("constraints", "", EYE), ("bounds", "", [(0, 1), (0, 1)])),
            *(("x_scale", "", 2.0), ("x_scale", ": a vector", [1.0, 1.0])),
        )
    },
    "minimize(x0) beside a Problem": (
        "`x0` has 3 entries for 2 variables",
        WHOLE | {"x0": [1, 2, 3]},
    ),
    "minimize(options) beside a method": (
        "`options` go with a method given by name, got {'penalty': 1.0} beside DSZOG",
        {"method": DSZOG(), "options": {"penalty": 1.0}},
    ),
    "minimize(method) with too large a batch": (
        "`dual_batch` is drawn without repeats, got 4 of 3",
        {"method": DSZOG(dual_batch=4)},
    ),
    "minimize(options) of a billion dense weights": (
        "distribution='dense' keeps every weight, got 1000000000 constraints, which "
        "needs 48.0 GB",
        {
            "constraints": methodcaller("constraints", 10**9),
            "options": {"distribution": "dense"},
        },
    ),
    "minimize(weights) of a method that weighs nothing": (
        "`weights` are for methods that weigh constraints, got ZOPSGD",
        {"method": "zopsgd", "weights": ([0], [0.5])},
    ),
    **{
        f"minimize(options) of {name}": (
            f"method '{name}' has no option 'penalty'. Options: ",
            {"method": name, "options": {"penalty": 1.0}},
        )
        for name in FEASIBLE_METHODS
    },
    **{
        f"minimize(on_failure) of {name}: penalise": (
            "would pass for a slope: on_failure='penalise' cannot work. Use",
            {"method": name, "on_failure": "penalise"},
        )
        for name, kind in FEASIBLE_METHODS.items()
        if kind.compares_points
    },
    **{
        f"minimize(on_failure) of {name}, per_sample: {policy}": (
            f"on_failure='{policy}' cannot work. Use",
            {"method": name, "options": PER_SAMPLE, "on_failure": policy},
        )
        for name, kind in FEASIBLE_METHODS.items()
        for policy in ("resample", "penalise")
        if not kind.needs_gradient
    },
    "DSZOG.from_theorem(constants): 3": (
        "`constants` must be TheoremConstants, got 3",
        lambda user: DSZOG.from_theorem(3),  # type: ignore[arg-type]
        InputTypeError,
    ),
    **{
        f"{kind} returns {value}": (
            f"a constraint function must return numbers, got {value!r} at x0",
            measured(value, kind == "NonlinearConstraint"),
            *(InputTypeError, 1),
        )
        for value in NO_NUMBERS
        for kind in ("constraint dictionary", "NonlinearConstraint")
    },
    **{
        f"NonlinearConstraint({case})": (
            "the limits must satisfy lb <= ub and leave room, got lb = array([",
            unknown_length(**limits),
            *(InputError, 1),
        )
        for case, limits in (
            *(("lb > ub", {"lb": 1.0}), ("ub < lb", {"ub": -1.0})),
            ("lb nan", {"lb": NAN}),
        )
    },
    **{
        f"NonlinearConstraint({name})": (
            f"`{name}` must hold real numbers, got {value!r}",
            unknown_length(**{name: value}),
            *(InputTypeError, 1),
        )
        for name, value in (("ub", "a"), ("lb", 1j))
    },
    **{
        f"{name}(ub), no limit at all": (
            "a constraint must have a finite limit, got lb = -inf",
            NO_LIMIT,
        )
        for name in ("LinearConstraint", "NonlinearConstraint")
    },
    **{
        f"dictionary without {key}": (
            "the keys must be 'type' and 'fun', perhaps 'jac' and 'args', got [",
            without(key),
        )
        for key in ("type", "fun")
    },
    "Box: upper below lower": ("room for a number, got shapes (2,)", CROSSED_SIDES),
    **{
        f"Polyhedron.{name}: upper below lower": ("got (2.0, 1.0)", CROSSED_SIDES)
        for name in ("linear", "pairwise")
    },
    "Box: no number inside": (
        "room for a number, got",
        {"lower": [INF], "upper": [INF]},
    ),
    "Box: empty": ("`lower` must be at most `upper`", {"lower": [], "upper": []}),
    **{
        f"{name}: per_sample along the coordinates": (
            "`per_sample` is for random directions, got estimator='coordinate'",
            ALONG,
        )
        for name in METHODS
    },
    "FCGS: per_sample of gradients": ("FCGS: `per_sample` is for est", PER_SAMPLE),
    **{
        f"{name}: a step that leaves the set": (
            "`step_size` must lie in (0, 1], got 1.5: a longer step would leave the s",
            {"step_size": 1.5},
        )
        for name in ("ZOSCGD", "FZFW", "AccSZOFW", "AccSZOFWStorm")
    },
    **{
        f"{name}: no step": (
            *("`step_size` must be a number, got None", {"step_size": None}),
            InputTypeError,
        )
        for name in ("DSZOG", "FZCGS", "FCGS", "ZOPSGD", "AccZOM")
    },
    **{
        f"minimize(method): {what}": (f"{what}{got}", arguments)
        for what, got, arguments in (
            ("can be projected on", " are needed, got 3", {"method": "fzfw"}),
            ("a convex set is needed", ", got 3 constraints", CURVED),
            ("a gradient of the losses", " is needed, got", FZFW | {"method": "fcgs"}),
            (
                "`domain` has 3 variables",
                ", the problem has 2",
                FZFW | {"options": {"domain": L2Ball(dim=3, radius=1.0)}},
            ),
            ("variables as they are", ", got bounds", BALL | {"bounds": [(-1, 1)] * 2}),
            ("in the variables as they are", ", got x_scale", BALL | {"x_scale": 5.0}),
            ("stop by themselves", ", got 'dszog'", {"method": "dszog", "tol": 1e-3}),
            ("need a bounded set", ", got Poly", FZFW | {"options": {"ball": "none"}}),
            ("are the same", ", got 0.001", {"tol": 1e-3, "options": {"tol": 1e-5}}),
        )
    },
    "minimize(method): set is empty": (
        "set is empty: no point satisfies all",
        {"constraints": EMPTY, "method": "zopsgd"},
    ),
    "minimize(method): BFGS": (
        "no method 'bfgs'. It is one of SciPy: call scipy.optimize.minimize",
        {"method": "BFGS", "tol": 1e-3},
    ),
    "minimize(method): slqp": (
        "no method 'slqp'. Did you mean 'slsqp'?",
        {"method": "slqp"},
    ),
    "minimize(constraints): too many tangents": (
        "at each iterate, got 1,000,000,000,000 constraints",
        CURVED | {"constraints": methodcaller("curved", 10**12)},
    ),
    "minimize(bounds): without the origin": (
        *(EXCLUDED, RETRACT | {"bounds": [(0.1, 1.0)] * 2}),
    ),
    "minimize(constraints): without the origin": (
        *(EXCLUDED, RETRACT | {"constraints": methodcaller("curved", 3, NO_ORIGIN)}),
    ),
    "minimize(x0): swapped": (
        "got <built-in function abs>. The order is fun, x0, constraints",
        {"fun": [0.0, 0.0], "x0": abs},
        InputTypeError,
    ),
    "minimize(constraints): a generator": (
        "Make it a list: list(...).",
        lambda user: user.minimize(constraints=(one for one in [user.constraints])),
        InputTypeError,
    ),
    "minimize(seed): a generator of NumPy's": (
        "Pass a number that it draws: rng.integers(2**32).",
        {"seed": np.random.default_rng(3)},
        InputTypeError,
    ),
    "minimize(options): nearly SciPy's": (
        "'maxitr'. Give it to minimize itself: max_iterations=...",
        {"options": {"maxitr": 3}},
    ),
    "Problem(dim): missing": (
        "`dim` is missing, got no `x0` either",
        lambda user: dszog.Problem(np.sum, user.constraints),
        InputTypeError,
    ),
}


def together() -> Iterator[Row]:
    for name, refused in REFUSED.items():
        said, given, error, n_calls = Refused(*refused)
        door = re.split("[(:]", name)[0]
        call = given if callable(given) else changed(door, **given)
        yield Row(name, call, Wrong(said, {}, error, "", n_calls))


ROWS: dict[str, Row] = {}
BY_ARGUMENT: dict[str, list[Row]] = {}  # "minimize(x0)": a test of all its rows
for one in (*rows(), *together()):
    ROWS.setdefault(one.name, one)
    BY_ARGUMENT.setdefault(one.name.split(":")[0], []).append(one)


def message_of(row: Row, user: User) -> str:
    with pytest.raises(row.wrong.error) as caught:
        row.call(user)
    return " ".join(str(caught.value).split())


@pytest.mark.parametrize("rows", BY_ARGUMENT.values(), ids=BY_ARGUMENT)
def test_it_is_refused_in_three_parts_before_any_user_call(rows: list[Row]) -> None:
    for row in rows:
        user = User()
        said = f"{row.name}: {(message := message_of(row, user))}"
        got = row.wrong.got
        if got is None:
            got = re.escape(" ".join(f"got {shown(row.value)}".split()))
        assert row.wrong.what in message, f"what is wrong: {said}"
        assert re.search(got, message), f"what was got: {said}"
        assert re.search(r"\. [A-Z(]|must be one of", message), f"what to do: {said}"
        assert user.n_calls == row.wrong.n_calls, said


def test_messages_that_users_meet_most_have_these_words() -> None:
    pinned = dict(line.split(" -> ", 1) for line in PINNED.read_text().splitlines())
    found = {name: message_of(ROWS[name], User()) for name in pinned}
    assert found == pinned, f"if they should be others, change them in {PINNED}"


@pytest.mark.parametrize("name", DOORS)
def test_the_table_has_every_argument_of_a_door_and_valid_ones_are_accepted(
    name: str,
) -> None:
    assert set(TABLE[name]) == set(DOORS[name].arguments)
    user = User()
    DOORS[name].make(user)()
    assert (user.n_calls > 0) is DOORS[name].calls


def test_every_way_to_make_constraints_is_a_door() -> None:
    members = vars(Constraints).items()
    ways = [name for name, member in members if type(member) is classmethod]
    assert [name for name in ways if f"Constraints.{name}" not in DOORS] == []


def test_input_errors_are_also_pythons_own_value_and_type_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError)
    assert {row.wrong.error for row in ROWS.values()} == {InputError, InputTypeError}


def families(user: User) -> dict[str, Callable[[Any], object]]:
    """Return what takes indices of 3 losses or constraints."""
    both = dszog.Losses(user.values, 3, gradient=user.gradients)
    (constraints,), points = user.curved(), np.zeros((2, 2))
    return {
        "Losses.values": lambda i: both.values(points, i),
        "Losses.gradient": lambda i: both.gradient(points[0], i),
        "Constraints.values": lambda i: constraints.values(points, i),
        "Constraints.jacobian": lambda i: constraints.jacobian(points[0], i),
    }


BEYOND = r"must lie between 0 and 2, got {}\. Indices count from 0"
NO_INDICES = "must be a vector of whole numbers, got .*Pass an int64 array"
WRONG_INDICES: dict[str, tuple[Any, type[DszogError], str]] = {
    "negative": ([0, -1], InputError, BEYOND.format(-1)),
    "too large": ([3, 1, 9], InputError, BEYOND.format("3, 9")),
    "seven": (np.arange(7) + 3, InputError, BEYOND.format("3, 4, 5, 6, 7")),
    "too large for int64": (
        np.array([2**64 - 1], np.uint64),
        InputError,
        BEYOND.format(2**64 - 1),
    ),
    "floats": ([0.0], InputTypeError, NO_INDICES),
    "flags": ([True], InputTypeError, NO_INDICES),
    "text": (["0"], InputTypeError, NO_INDICES),
    "one number": (0, InputTypeError, NO_INDICES),
    "a matrix": ([[0]], InputTypeError, NO_INDICES),
    "None": (None, InputTypeError, NO_INDICES),
}


@pytest.mark.parametrize("family", families(User()))
@pytest.mark.parametrize(
    ("indices", "error", "match"), WRONG_INDICES.values(), ids=WRONG_INDICES
)
def test_indices_that_do_not_exist_are_refused_before_the_user_s_function_is_called(
    family: str, indices: Any, error: type[DszogError], match: str
) -> None:
    user = User()
    with pytest.raises(error, match=rf"{family.split('.')[0]}: indices {match}"):
        families(user)[family](indices)
    assert user.n_calls == 0
    families(user)[family](np.array([0, 2], np.uint8))
    assert user.n_calls == 1
