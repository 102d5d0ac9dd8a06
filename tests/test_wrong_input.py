"""The input table: what is refused, in which words, and what is accepted unchanged.

Every message has three parts: what is wrong, what was got, what to do. All of it is
said before the first call of a user's function; only a constraint in SciPy's form that
does not tell its length may be called once, at the start, to learn it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import (
    Bounds,
    LinearConstraint,
    NonlinearConstraint,
    OptimizeResult,
)

import dszog
from dszog import DSZOG, Constraints, EvaluationError, InputError, InputTypeError
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import DszogError
from dszog.maths.subproblems import Box, L1Ball, L2Ball, Polyhedron, Simplex
from dszog.maths.subproblems.rows import BoxRows
from dszog.methods.theory import TheoremConstants
from tests.contracts.helpers import FEASIBLE_METHODS

NAN, INF = np.nan, np.inf


class User:
    """The caller's functions; they count how often they are called."""

    def __init__(self) -> None:
        self.n_calls = 0

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

    def returning(self, value: Any) -> Callable[[FloatArray], Any]:
        def function(x: FloatArray) -> Any:
            self.n_calls += 1
            return value

        return function

    def callback(self, progress: dszog.Progress) -> None:
        self.n_calls += 1

    def constraints(self, m: int = 3) -> Constraints:
        return Constraints(self.values, m)


Call = Callable[[User], object]


@dataclass(frozen=True)
class Row:
    """A wrong argument, and the three parts of the message that refuses it."""

    door: str
    argument: str
    case: str
    call: Call
    error: type[DszogError]
    wrong: str
    got: str
    cure: str
    n_calls: int = 0  # of the user's functions, before it is refused

    def __str__(self) -> str:
        return f"{self.door}({self.argument}): {self.case}"


# --------------------------------------------------------------------- the front doors


def minimize(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {
            "fun": user.fun,
            "x0": [0.0, 0.0],
            "constraints": user.constraints(),
            "max_iterations": 3,
            "seed": 0,
            "callback": user.callback,
        }
        return dszog.minimize(**(valid | changes))

    return call


def beside_a_problem(**others: Any) -> Call:
    def call(user: User) -> object:
        return dszog.minimize(dszog.Problem(user.fun, user.constraints(), 2), **others)

    return call


def problem(**changes: Any) -> Call:
    def call(user: User) -> object:
        constraints = user.constraints()
        valid: dict[str, Any] = {
            "losses": user.fun,
            "constraints": constraints,
            "dim": 2,
        }
        return dszog.Problem(**(valid | changes))

    return call


def losses(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {"values": user.values, "n": 3}
        return dszog.Losses(**(valid | changes))

    return call


def loss_function(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {"function": user.fun}
        return dszog.Losses.from_function(**(valid | changes))

    return call


def linear_losses(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {
            "X": np.eye(2),
            "y": np.ones(2),
            "loss": user.values,
        }
        return dszog.Losses.linear(**(valid | changes))

    return call


def constraints(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {"values": user.values, "m": 3}
        return Constraints(**(valid | changes))

    return call


def constraint_function(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {"function": user.values, "m": 3}
        return Constraints.from_function(**(valid | changes))

    return call


def linear(**changes: Any) -> Call:
    valid: dict[str, Any] = {"A": np.ones((3, 2)), "b": np.ones(3)}
    return lambda user: Constraints.linear(**(valid | changes))


def pairwise(**changes: Any) -> Call:
    valid: dict[str, Any] = {"X_pos": np.ones((3, 2)), "X_neg": np.zeros((2, 2))}
    return lambda user: Constraints.pairwise(**(valid | changes))


def callables(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {"functions": [user.fun, user.fun]}
        return Constraints.from_callables(**(valid | changes))

    return call


def blocks(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {"values": user.block, "n_blocks": 2, "width": 3}
        return Constraints.blocks(**(valid | changes))

    return call


def concat(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid = {"parts": (user.constraints(), user.constraints())}
        return Constraints.concat(*(valid | changes)["parts"])

    return call


def simulator(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {"run": user.run, "n": 2, "width": 3}
        return dszog.Simulator(**(valid | changes))

    return call


def certify(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {
            "problem": dszog.Problem(user.fun, user.constraints(), 2),
            "x": [0.0, 0.0],
        }
        return dszog.certify(**(valid | changes))

    return call


def theorem(**changes: Any) -> Call:
    names = ("accuracy", "smoothness", "concavity", "gap", "variance", "dual_variance")
    valid: dict[str, Any] = dict.fromkeys(names, 1.0) | {"dim": 3}
    return lambda user: TheoremConstants(**(valid | changes))


def scipy_linear(**changes: Any) -> Call:
    valid: dict[str, Any] = {"A": np.eye(2), "lb": -INF, "ub": [1.0, 1.0]}

    def call(user: User) -> object:
        return minimize(constraints=LinearConstraint(**(valid | changes)))(user)

    return call


def scipy_nonlinear(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {
            "fun": user.vector,
            "lb": [-INF, -INF],
            "ub": [1.0, 1.0],
            "jac": user.slopes,
        }
        return minimize(constraints=NonlinearConstraint(**(valid | changes)))(user)

    return call


def scipy_dictionary(**changes: Any) -> Call:
    def call(user: User) -> object:
        valid: dict[str, Any] = {"type": "ineq", "fun": user.vector, "jac": user.slopes}
        return minimize(constraints=valid | changes)(user)

    return call


def linear_form(A: Any, lb: Any, ub: Any, keep_feasible: Any) -> None:
    """Have the arguments of a LinearConstraint that are read."""


def nonlinear_form(fun: Any, lb: Any, ub: Any, jac: Any, keep_feasible: Any) -> None:
    """Have the arguments of a NonlinearConstraint that are read."""


def dictionary_form(type: Any, fun: Any, jac: Any, args: Any, other: Any) -> None:
    """Have the keys of a dictionary, and one that it has not."""


def method(**changes: Any) -> Call:
    return lambda user: DSZOG(**changes)


def published_method(**changes: Any) -> Call:
    return lambda user: DSZOG.as_published(**changes)


def options(**changes: Any) -> Call:
    return minimize(options=changes)


def linear_problem(**settings: Any) -> Call:
    """Have a problem that all methods could work on: white boxes, a bounded set."""

    def call(user: User) -> object:
        return minimize(
            fun=dszog.Losses(user.values, 3, gradient=user.gradients),
            constraints=Constraints.linear(np.eye(2), [3.0, 3.0]),
            bounds=[(-3.0, 3.0)] * 2,
            **settings,
        )(user)

    return call


def feasible(kind: Any) -> Callable[..., Call]:
    return lambda **changes: lambda user: kind(**changes)


def feasible_options(name: str) -> Callable[..., Call]:
    return lambda **changes: linear_problem(method=name, options=changes)


def preset(make: Callable[..., object], **valid: Any) -> Callable[..., Call]:
    return lambda **changes: lambda user: make(**(valid | changes))


ROWS_OF_EYE: dict[str, Any] = {"A": np.eye(2), "b": np.ones(2)}
SAMPLES: dict[str, Any] = {"X_pos": np.ones((3, 2)), "X_neg": np.zeros((2, 2))}


def theory_form(name: str) -> Callable[..., object]:
    """Return a function with the arguments of a preset but for other fields."""
    made = FEASIBLE_METHODS[name].from_theory

    def form() -> None:
        """Have a signature, which is set below."""

    own = [
        parameter
        for parameter in inspect.signature(made).parameters.values()
        if parameter.name != "changes"
    ]
    form.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    return form


def comparison_form(step_size: Any) -> None:
    """Have the arguments of `for_comparison` but for other fields."""


def spider_comparison_form(step_size: Any, n_losses: Any) -> None:
    """Have those of methods that refresh their estimate."""


def polyhedron_form(
    families: Any, ball: Any, ball_radius: Any, solver: Any, n_named: Any
) -> None:
    """Have the fields of a polyhedron."""


def linear_set_form(A: Any, b: Any, lower: Any, upper: Any) -> None:
    """Have the arguments of `Polyhedron.linear` but for fields."""


def pairwise_set_form(
    X_pos: Any, X_neg: Any, margin: Any, form: Any, lower: Any, upper: Any
) -> None:
    """Have the arguments of `Polyhedron.pairwise` but for fields."""


THEORY: dict[str, dict[str, Any]] = {  # what is valid
    "zoscgd": {"dim": 3, "horizon": 10},
    "fzfw": {"horizon": 10},
    "fzcgs": {"horizon": 10, "smoothness": 1.0},
    "fcgs": {"horizon": 10, "smoothness": 1.0},
    "accszofw": {"horizon": 10},
    "accszofw_storm": {"horizon": 10},
    "zopsgd": {"dim": 3, "horizon": 10},
    "acczomda": {"dim": 3, "horizon": 10, "smoothness": 1.0},
}
SPIDERS = ("fzfw", "fzcgs", "fcgs", "accszofw")
RELEASED = {
    "AccSZOFW.as_released": FEASIBLE_METHODS["accszofw"].as_released,
    "AccSZOFWStorm.as_released": FEASIBLE_METHODS["accszofw_storm"].as_released,
    "AccZOM.as_published": FEASIBLE_METHODS["acczomda"].as_published,
}
NAMES = {name: kind.__name__ for name, kind in FEASIBLE_METHODS.items()}
FEASIBLE_DOORS: dict[str, tuple[Callable[..., Call], Callable[..., object]]] = {
    NAMES[name]: (feasible(kind), kind) for name, kind in FEASIBLE_METHODS.items()
}
OPTION_DOORS: dict[str, tuple[Callable[..., Call], Callable[..., object]]] = {
    f"options of minimize, {name}": (feasible_options(name), kind)
    for name, kind in FEASIBLE_METHODS.items()
}
THEORY_DOORS: dict[str, tuple[Callable[..., Call], Callable[..., object]]] = {
    f"{NAMES[name]}.from_theory": (
        preset(FEASIBLE_METHODS[name].from_theory, **valid),
        theory_form(name),
    )
    for name, valid in THEORY.items()
}
COMPARISON_DOORS: dict[str, tuple[Callable[..., Call], Callable[..., object]]] = {
    f"{NAMES[name]}.for_comparison": (
        preset(kind.for_comparison),
        spider_comparison_form if name in SPIDERS else comparison_form,
    )
    for name, kind in FEASIBLE_METHODS.items()
}
RELEASED_DOORS: dict[str, tuple[Callable[..., Call], Callable[..., object]]] = {
    door: (preset(make), make.__self__) for door, make in RELEASED.items()
}
SET_DOORS: dict[str, tuple[Callable[..., Call], Callable[..., object]]] = {
    "L2Ball": (preset(L2Ball, dim=2, radius=1.0), L2Ball),
    "L1Ball": (preset(L1Ball, dim=2, radius=1.0), L1Ball),
    "Simplex": (preset(Simplex, dim=2, total=1.0), Simplex),
    "Box": (preset(Box, lower=[0.0, 0.0], upper=[1.0, 1.0]), Box),
    "Polyhedron": (
        preset(Polyhedron, families=(BoxRows(np.zeros(2), np.ones(2)),)),
        polyhedron_form,
    ),
    "Polyhedron.linear": (preset(Polyhedron.linear, **ROWS_OF_EYE), linear_set_form),
    "Polyhedron.pairwise": (preset(Polyhedron.pairwise, **SAMPLES), pairwise_set_form),
}


DOORS: dict[str, tuple[Callable[..., Call], Callable[..., object]]] = {
    "minimize": (minimize, dszog.minimize),
    "Problem": (problem, dszog.Problem),
    "Losses": (losses, dszog.Losses),
    "Losses.from_function": (loss_function, dszog.Losses.from_function),
    "Losses.linear": (linear_losses, dszog.Losses.linear),
    "Constraints": (constraints, Constraints),
    "Constraints.from_function": (constraint_function, Constraints.from_function),
    "Constraints.linear": (linear, Constraints.linear),
    "Constraints.pairwise": (pairwise, Constraints.pairwise),
    "Constraints.from_callables": (callables, Constraints.from_callables),
    "Constraints.blocks": (blocks, Constraints.blocks),
    "Constraints.concat": (concat, Constraints.concat),
    "Simulator": (simulator, dszog.Simulator),
    "certify": (certify, dszog.certify),
    "TheoremConstants": (theorem, TheoremConstants),
    "LinearConstraint": (scipy_linear, linear_form),
    "NonlinearConstraint": (scipy_nonlinear, nonlinear_form),
    "constraint dictionary": (scipy_dictionary, dictionary_form),
    "DSZOG": (method, DSZOG),
    "DSZOG.as_published": (published_method, DSZOG),
    "options of minimize": (options, DSZOG),
    **FEASIBLE_DOORS,
    **OPTION_DOORS,
    **THEORY_DOORS,
    **COMPARISON_DOORS,
    **RELEASED_DOORS,
    **SET_DOORS,
}
METHOD_DOORS = ("DSZOG", "DSZOG.as_published", "options of minimize")
CALLING_DOORS = {
    "minimize",
    "certify",
    "LinearConstraint",
    "NonlinearConstraint",
    "constraint dictionary",
    *OPTION_DOORS,
}


def rows(
    door: str,
    argument: str,
    error: type[DszogError],
    wrong: str,
    cases: dict[str, tuple[Any, str]],
    cure: str,
    n_calls: int = 0,
) -> list[Row]:
    """Return a row for each case: a value, and how it is shown in the message."""
    make, _ = DOORS[door]
    return [
        Row(
            door=door,
            argument=argument,
            case=case,
            call=make(**{argument: value}),
            error=error,
            wrong=wrong,
            got=got,
            cure=cure,
            n_calls=n_calls,
        )
        for case, (value, got) in cases.items()
    ]


def each(*values: Any) -> dict[str, tuple[Any, str]]:
    """Return cases that are shown as Python shows them."""
    return {repr(value): (value, re.escape(f"got {value!r}")) for value in values}


# ------------------------------------------------------------------- arrays of numbers

ARRAYS: dict[tuple[str, str], tuple[int, ...]] = {
    ("minimize", "x0"): (2,),
    ("Problem", "x0"): (2,),
    ("certify", "x"): (2,),
    ("minimize", "x_scale"): (2,),
    ("Problem", "x_scale"): (2,),
    ("Constraints.linear", "A"): (3, 2),
    ("Constraints.linear", "b"): (3,),
    ("Losses.linear", "X"): (2, 2),
    ("Constraints.pairwise", "X_pos"): (3, 2),
    ("Constraints.pairwise", "X_neg"): (2, 2),
    ("Polyhedron.linear", "A"): (2, 2),
    ("Polyhedron.linear", "b"): (2,),
    ("Polyhedron.pairwise", "X_pos"): (3, 2),
    ("Polyhedron.pairwise", "X_neg"): (2, 2),
}


def not_finite(shape: tuple[int, ...]) -> dict[str, tuple[Any, str]]:
    """Return arrays with one bad entry, the second, and one with very many."""
    place = re.escape(str((1,) if len(shape) == 1 else (0, 1)))
    cases: dict[str, tuple[Any, str]] = {}
    for value in (NAN, INF, -INF):
        array = np.zeros(shape)
        array.flat[1] = value
        cases[str(value)] = array, f"got {value} at position {place}"
    many, n_shown = np.full((9, *shape[1:]), NAN), 5
    cases["many"] = many, rf"got nan at .*\) and {many.size - n_shown} more"
    return cases


def not_numbers(shape: tuple[int, ...]) -> dict[str, tuple[Any, str]]:
    return {
        "complex": (np.zeros(shape, complex), "got array.*complex128"),
        "objects": (np.full(shape, None), "got array.*None.*object"),
        "text": (np.full(shape, "a"), "got array.*'a'.*dtype <U1"),
        "dates": (np.zeros(shape, "M8[D]"), "got array.*datetime64"),
        "ragged": ([[1.0], [1.0, 2.0]], r"got \[\[1.0\], \[1.0, 2.0\]\]"),
        "a dict": ({"a": 1}, "got {'a': 1}"),
        "huge ints": ([10**400, 1], r"got \[10000000000.*\.\.\."),
    }


ARRAY_ROWS = [
    row
    for (door, name), shape in ARRAYS.items()
    for row in (
        *rows(
            door,
            name,
            InputError,
            f"`{name}` must be finite",
            not_finite(shape),
            "Replace these entries",
        ),
        *rows(
            door,
            name,
            InputTypeError,
            f"`{name}` must hold real numbers",
            not_numbers(shape),
            "converts to float64",
        ),
        *rows(
            door,
            name,
            InputTypeError,
            f"`{name}` must hold a number everywhere",
            {
                "masked": (np.ma.masked_less(np.zeros(shape), 1.0), "got a masked"),
                "nothing masked": (np.ma.array(np.ones(shape)), "got a masked"),
            },
            r"Fill it first: array\.filled",
        ),
    )
]


def of_shape(*shapes: tuple[int, ...]) -> dict[str, tuple[Any, str]]:
    return {
        f"shape {shape}": (np.ones(shape), re.escape(f"shape {shape}"))
        for shape in shapes
    }


def of_shapes(*shapes: tuple[int, ...]) -> dict[str, tuple[Any, str]]:
    """Return cases whose shape is named beside another."""
    return {
        case: (value, "shapes? .*" + re.escape(case.removeprefix("shape ")))
        for case, (value, _) in of_shape(*shapes).items()
    }


def thin(*entries: complex) -> Any:
    return sparse.csr_array((np.array(entries), ([0, 2], [0, 1])), shape=(3, 2))


SHAPE_ROWS = [
    *(
        row
        for door in ("minimize", "Problem")
        for row in (
            *rows(
                door,
                "x0",
                InputError,
                "`x0`",
                of_shape((3, 1), (1, 2), (1, 2, 1)),
                r"Pass a vector: x0\.ravel\(\)",
            ),
            *rows(
                door,
                "x0",
                InputError,
                "`x0`",
                of_shape((0,), (0, 3)),
                "one entry per variable",
            ),
        )
    ),
    *rows(
        "Problem",
        "x0",
        InputError,
        "`x0`",
        {"too long": ([1, 2, 3], "3 entries for 2 variables")},
        "one entry per variable",
    ),
    Row(
        door="minimize",
        argument="x0",
        case="too long for the Problem",
        call=beside_a_problem(x0=[1, 2, 3]),
        error=InputError,
        wrong="`x0`",
        got="3 entries for 2 variables",
        cure="one entry per variable",
    ),
    *rows(
        "minimize",
        "x0",
        InputTypeError,
        "`x0` is missing",
        {"missing": (None, "got a function of unknown dimension")},
        r"for example numpy\.zeros",
    ),
    *rows(
        "certify",
        "x",
        InputError,
        "`x`",
        of_shape((2, 1), (1, 2)),
        r"Pass a vector: x\.ravel\(\)",
    ),
    *rows(
        "certify",
        "x",
        InputError,
        "`x`",
        of_shape((0,)) | {"too long": ([1, 2, 3], "3 entries for 2 variables")},
        "one entry per variable",
    ),
    *(
        row
        for door in ("minimize", "Problem")
        for row in rows(
            door,
            "x_scale",
            InputError,
            "`x_scale` must be a positive number or one for each of 2 variables",
            each(0, -1.0, [1.0, 0.0], [1, 2, 3], [[1, 1]], [])
            | {"a matrix": (np.ones((2, 2)), "got array")},
            "Give the typical size of the variables",
        )
    ),
    *rows(
        "Constraints.linear",
        "A",
        InputError,
        "`A` must be a matrix with a constraint per row",
        of_shape((3,), (0, 3), (3, 0), (1, 1, 1))
        | {"sparse, empty": (sparse.csr_array((0, 3)), r"shape \(0, 3\)")},
        r"pass A\[None, :\]",
    ),
    *rows(
        "Constraints.linear",
        "A",
        InputError,
        "must be finite",
        {"sparse, nan": (thin(1.0, NAN), "got nan")},
        "Replace these entries",
    ),
    *rows(
        "Constraints.linear",
        "A",
        InputTypeError,
        "must hold real numbers",
        {"sparse, complex": (thin(1.0, 1j), "complex128")},
        "converts to float64",
    ),
    *rows(
        "Constraints.linear",
        "b",
        InputError,
        "`b` must have an entry per row of A",
        of_shape((4,), (3, 1), (0,)),
        "Pass a vector",
    ),
    *rows(
        "Losses.linear",
        "X",
        InputError,
        "`X` must be a matrix with a sample per row",
        of_shape((2,), (0, 2), (2, 0)),
        "Pass at least one row",
    ),
    *rows(
        "Losses.linear",
        "y",
        InputError,
        "`y` must have an entry per row of X",
        of_shape((3,), (2, 1), (0,)),
        "Pass a vector",
    ),
    *(
        row
        for name in ("X_pos", "X_neg")
        for row in (
            *rows(
                "Constraints.pairwise",
                name,
                InputError,
                f"`{name}` must be a matrix with a sample per row",
                of_shape((2,), (0, 2), (2, 0)),
                "Pass at least one row",
            ),
            *rows(
                "Constraints.pairwise",
                name,
                InputError,
                "must have the same columns",
                {"other columns": (np.ones((2, 5)), "got (5 and 2|2 and 5)")},
                "Take both from one matrix",
            ),
        )
    ),
]

# --------------------------------------------------------- functions, families, bounds

SIGNATURES = {
    ("Losses", "values"): r"values\(points, indices\) -> \(k, b\) array",
    ("Losses", "gradient"): r"gradient\(point, indices\) -> \(b, dim\) array",
    ("Losses.from_function", "function"): r"fun\(x\) -> float",
    ("Losses.linear", "loss"): r"loss\(scores, y\) -> \(k, b\)",
    ("Constraints", "values"): r"values\(points, indices\) -> \(k, b\) array",
    ("Constraints", "jacobian"): r"jacobian\(point, indices\) -> \(b, dim\) array",
    ("Constraints.from_function", "function"): r"function\(x, j\) -> float",
    ("minimize", "callback"): r"callback\(progress\)",
    ("Constraints.blocks", "values"): r"values\(x, block\) -> \(width,\) array",
    ("Simulator", "run"): r"run\(x, i\) -> \(loss, limits\)",
    ("NonlinearConstraint", "fun"): r"fun\(x\) -> array",
    ("constraint dictionary", "fun"): r"fun\(x\) -> float or array",
    ("constraint dictionary", "jac"): r"jac\(x\) -> array",
}


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


def wrong_arguments(one: bool) -> dict[str, tuple[Any, str]]:
    """Return functions of none and of three arguments, or of the wrong one of 1, 2."""
    other: Any = (lambda x, y: 0.0) if one else (lambda x: 0.0)
    return {
        "no argument": (no_argument, r"got no_argument\(\)"),
        "three": (three_arguments, r"got three_arguments\(first: .* third: "),
        "by name only": (by_name_only, r"got by_name_only\(\*, x: "),
        "an object": (Functor(), r"got <.*Functor object.*>\(first: "),
        "one more or less": (other, rf"got <lambda>\(x{', y' if one else ''}\)"),
    }


def argument_rows(door: str, name: str, signature: str) -> list[Row]:
    one = "," not in signature.split(r"\)")[0]
    return rows(
        door,
        name,
        InputTypeError,
        rf"`{name}` must take {1 if one else 2} positional arguments",
        wrong_arguments(one),
        f"Pass a callable {signature}",
    )


FUNCTION_ROWS = [
    *(
        row
        for (door, name), signature in SIGNATURES.items()
        for row in argument_rows(door, name, signature)
    ),
    *(
        row
        for door, name in (("minimize", "fun"), ("Problem", "losses"))
        for row in rows(
            door,
            name,
            InputTypeError,
            "`function` must take 1 positional arguments",
            wrong_arguments(one=True),
            r"Pass a callable fun\(x\) -> float",
        )
    ),
    *rows(
        "Constraints.from_callables",
        "functions",
        InputTypeError,
        r"`functions\[1\]` must take 1 positional arguments",
        {
            case: ([np.linalg.norm, function], got)
            for case, (function, got) in wrong_arguments(one=True).items()
        },
        r"Pass a callable f\(x\) -> float",
    ),
    *rows(
        "Constraints.from_callables",
        "functions",
        InputTypeError,
        r"`functions\[[01]\]` must be a function",
        {"a number": ([np.sin, 3], "got 3"), "text": ("f", "got 'f'")},
        r"Pass a callable f\(x\) -> float",
    ),
    *rows(
        "Constraints.from_callables",
        "functions",
        InputTypeError,
        "`functions` must be a list of functions",
        each(3, None, np.sin, {0: np.sin}),
        r"Pass \[f1, f2, \.\.\.\]",
    ),
    *rows(
        "Constraints.from_callables",
        "functions",
        InputError,
        "`functions` must hold at least one function",
        {"empty": ([], "got an empty list"), "no tuple": ((), "got an empty list")},
        "Leave the constraints out",
    ),
    *(
        row
        for (door, name), signature in SIGNATURES.items()
        for row in rows(
            door,
            name,
            InputTypeError,
            f"`{name}` must be a function",
            each(3, "f", [1.0]),
            f"Pass a callable {signature}",
        )
    ),
    *(
        row
        for door, name in (("minimize", "fun"), ("Problem", "losses"))
        for row in rows(
            door,
            name,
            InputTypeError,
            "the objective must be a function",
            each(3.0, "f", None, [1.0]),
            r"Pass fun\(x\) -> float, or dszog\.Losses\(values, n\)",
        )
    ),
]
FAMILY_ROWS = [
    row
    for door in ("minimize", "Problem")
    for row in (
        *rows(
            door,
            "constraints",
            InputTypeError,
            "constraints must be a dszog.Constraints or a SciPy constraint",
            each(3, "f", Bounds(0, 1))
            | {
                "one of a list": ([Constraints.linear(np.eye(2), 1.0), 3], "got 3"),
                "in a list of lists": ([[], ["f"]], "got 'f'"),
            },
            r"Use dszog\.Constraints\(values, m\), .* SciPy's LinearConstraint or Non",
        ),
        *rows(
            door,
            "constraints",
            InputTypeError,
            "constraints must be a dszog.Constraints or a SciPy constraint",
            each(np.sin)
            | {"a list of functions": ([np.sin, np.cos], "got <ufunc 'sin'>")},
            r"Use Constraints\.from_callables\(\[f, \.\.\.\]\), .* f\(x\) <= 0",
        ),
        *rows(
            door,
            "constraints",
            InputError,
            "nothing to keep",
            {"none": (None, "got neither constraints nor bounds")},
            "use an unconstrained method",
        ),
        *rows(
            door,
            "constraints",
            InputError,
            "the constraints are in 3 variables",
            {"other variables": (Constraints.linear(np.eye(3), np.ones(3)), "dim = 2")},
            "one column per variable",
        ),
    )
] + [
    Row(
        door="minimize",
        argument=name,
        case="beside a Problem",
        call=beside_a_problem(**{name: value}),
        error=InputError,
        wrong="a Problem brings its own constraints, bounds and x_scale",
        got="got others beside it",
        cure="Put them into the Problem",
    )
    for name, value in (
        ("constraints", Constraints.linear(np.eye(2), np.ones(2))),
        ("bounds", [(0, 1), (0, 1)]),
        ("x_scale", 2.0),
        ("x_scale", [1.0, 1.0]),
    )
]
CONCAT_ROWS = [
    *rows(
        "Constraints.concat",
        "parts",
        InputTypeError,
        r"every part must be a dszog\.Constraints",
        {
            "a number": ((Constraints.linear(np.eye(2), 1.0), 3), "got 3"),
            "a list": (([],), r"got \[\]"),
            "SciPy's": ((LinearConstraint(np.eye(2)),), "got <.*LinearConstraint"),
        },
        r"Make one with Constraints\(values, m\)",
    ),
    *rows(
        "Constraints.concat",
        "parts",
        InputError,
        "Constraints.concat: ",
        {"none": ((), "got no parts")},
        "Pass at least one",
    ),
    *rows(
        "Constraints.concat",
        "parts",
        InputError,
        "all parts must have the same variables",
        {
            "other variables": (
                [Constraints.linear(np.eye(k), 1.0) for k in (3, 2, 3)],
                r"got dimensions \[2, 3\]",
            )
        },
        "Check the matrices",
    ),
    *rows(
        "Constraints.concat",
        "parts",
        InputError,
        r"`m` must be below 2\*\*63",
        {
            "too many": (
                [Constraints(lambda points, j: 0.0, 2**62)] * 2,
                f"got {2**63}",
            )
        },
        "one index stands for several",
    ),
]

# -------------------------------------------------------- constraints as SciPy has them

LIMITS: dict[str, tuple[Any, str]] = {
    "a number below": (-1.0, r"got lb = .*0\., +0\..*, ub = array\(\[-1., -1.\]\)"),
    "one below": ([1.0, -1.0], r"got lb = .*, ub = array\(\[ 1., -1.\]\)"),
    "nan": (NAN, r"got .* ub = array\(\[nan, nan\]\)"),
    "one nan": ([NAN, 1.0], r"got .* ub = array\(\[nan, +1.\]\)"),
}


def scipy_limit_rows(door: str) -> Iterator[Row]:
    """Yield the rows about `ub`, beside an `lb` of 0, and about `lb`, beside 0."""
    make, _ = DOORS[door]
    for case, (value, got) in LIMITS.items():
        for name, limits, shown in (
            ("ub", {"lb": [0.0, 0.0], "ub": value}, got),
            ("lb", {"lb": np.negative(value), "ub": [0.0, 0.0]}, "got lb = array"),
        ):
            yield Row(
                door=door,
                argument=name,
                case=f"{case} and {name}",
                call=make(**limits),
                error=InputError,
                wrong=f"{door}: the limits must satisfy lb <= ub",
                got=shown,
                cure="Correct them; use inf for no limit",
            )
    yield Row(
        door=door,
        argument="ub",
        case="no limit at all",
        call=make(lb=[-INF, -INF], ub=[INF, INF]),
        error=InputError,
        wrong="a constraint must have a finite limit",
        got="got lb = -inf and ub = inf throughout",
        cure="Leave it out",
    )
    for case, value in {"all": True, "one": [False, True]}.items():
        yield from rows(
            door,
            "keep_feasible",
            InputError,
            f"{door}: keep_feasible=True cannot be promised",
            {case: (value, "got it set")},
            "Leave it out; bounds on the variables are always kept",
        )


DICTIONARY_KEYS = "the keys must be 'type' and 'fun', perhaps 'jac' and 'args'"


def dictionary(without: str) -> Call:
    def call(user: User) -> object:
        form = {"type": "ineq", "fun": user.vector, "jac": user.slopes}
        del form[without]
        return minimize(constraints=[form])(user)

    return call


def measured(value: Any, nonlinear: bool) -> Call:
    """Have a function called for its length that returns this."""

    def call(user: User) -> object:
        form: Any = {"type": "ineq", "fun": user.returning(value)}
        if nonlinear:
            form = NonlinearConstraint(form["fun"], 0.0, 1.0)
        return minimize(constraints=form)(user)

    return call


NO_NUMBERS: list[Any] = [None, "7", 7j, [], {}, [None, 1.0]]
SCIPY_ROWS = [
    *scipy_limit_rows("LinearConstraint"),
    *scipy_limit_rows("NonlinearConstraint"),
    *rows(
        "NonlinearConstraint",
        "ub",
        InputTypeError,
        "`ub` must hold real numbers",
        {
            "text": (["a", "b"], "got .*'a'"),
            "complex": ([1j, 0.0], "got .*1j"),
        },
        "converts to float64",
    ),
    *rows(
        "NonlinearConstraint",
        "ub",
        InputTypeError,
        "`ub` must hold a number everywhere",
        {"masked": (np.ma.masked_less([0.0, 1.0], 0.5), "got a masked array")},
        "Fill it first",
    ),
    *rows(
        "NonlinearConstraint",
        "ub",
        InputError,
        "`lb` and `ub` must fit 2 values",
        {"a matrix": ([[1.0, 1.0]], r"got shapes \(2,\) and \(1, 2\)")},
        "Give one limit, or one for each value",
    ),
    *rows(
        "LinearConstraint",
        "A",
        InputError,
        "`A` must be finite",
        {
            "nan": ([[1.0, NAN], [0.0, 1.0]], r"got nan at position \(0, 1\)"),
            "inf": ([[1.0, 0.0], [INF, 1.0]], r"got inf at position \(1, 0\)"),
        },
        "Replace these entries",
    ),
    *rows(
        "LinearConstraint",
        "A",
        InputError,
        "the constraints are in 3 variables",
        {"other variables": (np.ones((2, 3)), "got dim = 2")},
        "one column per variable",
    ),
    *rows(
        "constraint dictionary",
        "type",
        InputError,
        "`type` must be one of 'ineq', 'eq'",
        each("inequ"),
        "Did you mean 'ineq'",
    ),
    *rows(
        "constraint dictionary",
        "type",
        InputError,
        "`type` must be one of",
        each(None, 3, ["eq"], "<="),
        "'ineq', 'eq'",
    ),
    *rows(
        "constraint dictionary",
        "other",
        InputError,
        DICTIONARY_KEYS,
        {"unknown key": (3, r"got \['type', 'fun', 'jac', 'other'\]")},
        "For example {'type': 'ineq', 'fun': f}",
    ),
    *(
        Row(
            door="constraint dictionary",
            argument=name,
            case="missing",
            call=dictionary(without=name),
            error=InputError,
            wrong=DICTIONARY_KEYS,
            got=got,
            cure=r"For example .*, which holds where f\(x\) >= 0",
        )
        for name, got in (
            ("type", r"got \['fun', 'jac'\]"),
            ("fun", r"got \['type', 'jac'\]"),
        )
    ),
    *(
        Row(
            door="NonlinearConstraint" if nonlinear else "constraint dictionary",
            argument="fun",
            case=f"returns {value!r} at x0",
            call=measured(value, nonlinear),
            error=InputTypeError,
            wrong="a constraint function must return numbers",
            got=re.escape(f"got {value!r} at x0"),
            cure="Return a float or an array",
            n_calls=1,
        )
        for nonlinear in (False, True)
        for value in NO_NUMBERS
    ),
    *(
        Row(
            door="NonlinearConstraint",
            argument=name,
            case=f"{case}, of unknown length",
            call=scipy_nonlinear(**({"lb": 0.0, "ub": 0.0} | {name: value})),
            error=error,
            wrong=wrong,
            got="got ",
            cure="Correct them|converts to float64",
            n_calls=1,
        )
        for name, sign in (("lb", 1.0), ("ub", -1.0))
        for case, value, error, wrong in (
            ("crossed", sign, InputError, "lb <= ub"),
            ("nan", NAN, InputError, "lb <= ub"),
            ("text", "a", InputTypeError, f"`{name}` must hold real numbers"),
            ("complex", 1j, InputTypeError, f"`{name}` must hold real numbers"),
        )
    ),
]
BOUNDS_ROWS = [
    row
    for door in ("minimize", "Problem")
    for row in (
        *rows(
            door,
            "bounds",
            InputError,
            r"`bounds` must be 2 pairs \(low, high\)",
            each([(0, 1)], [(0, 1)] * 3, [(0, 1, 2)] * 2, (0, 1), 3, "ab"),
            r"Use None for a side without a bound, or pass scipy\.optimize\.Bounds",
        ),
        *rows(
            door,
            "bounds",
            InputError,
            "`bounds` must have lower <= upper",
            {
                "swapped": ([(0, 1), (1, 0)], r"got \(1.0, 0.0\) for variable 1"),
                "nan": ([(NAN, 1), (0, 1)], r"got \(nan, 1.0\) for variable 0"),
                "SciPy's": (Bounds([1, 0], [0, 1]), r"got \(1.0, 0.0\) for variable 0"),
            },
            "Swap or correct them",
        ),
        *rows(
            door,
            "bounds",
            InputTypeError,
            "`bounds` must hold real numbers",
            {
                "text": ([("a", "b"), (0, 1)], "got.*'a'"),
                "complex": ([(0, 1j), (0, 1)], "got.*1j"),
            },
            "converts to float64",
        ),
    )
]

# ------------------------------------------------- counts, seeds, numbers and choices

NOT_WHOLE = each(2.5, 1e4 + 0.5, NAN, INF, "3", True, [3], np.float64(2.5), np.True_)
NOT_A_NUMBER = each(
    "1", True, 1j, [1.0], np.ones(1), np.complex128(1.0), np.complex64(1.0), np.True_
)
COUNTS = {
    ("Constraints", "m"): "Leave the constraints out",
    ("Constraints.from_function", "m"): "Leave the constraints out",
    ("Losses", "n"): "Pass a larger number",
    ("Problem", "dim"): "Pass a larger number",
    ("Constraints.blocks", "n_blocks"): "Pass a larger number",
    ("Constraints.blocks", "width"): "Pass a larger number",
    ("Simulator", "n"): "Pass a larger number",
    ("Simulator", "width"): "Pass a larger number",
    ("TheoremConstants", "dim"): "Pass a larger number",
    ("minimize", "max_iterations"): "Pass a larger number",
    ("minimize", "max_queries"): "Pass a larger number",
}
COUNT_ROWS = [
    row
    for (door, name), cure in COUNTS.items()
    for row in (
        *rows(
            door,
            name,
            InputTypeError,
            f"`{name}` must be a whole number",
            NOT_WHOLE,
            f"Pass an int|{cure}",
        ),
        *rows(
            door, name, InputError, f"`{name}` must be at least 1", each(0, -1), cure
        ),
    )
] + [
    *rows(
        "Constraints",
        "m",
        InputError,
        r"`m` must be below 2\*\*63",
        each(2**63),
        "one index stands for several",
    ),
    *(
        row
        for door, name in (
            ("Constraints.blocks", "n_blocks"),
            ("Constraints.blocks", "width"),
            ("Simulator", "n"),
            ("Simulator", "width"),
        )
        for row in rows(
            door,
            name,
            InputError,
            rf"{door}: `m` must be below 2\*\*63",
            {str(2**62): (2**62, rf"got {2**63}|got {3 * 2**62}")},
            "one index stands for several",
        )
    ),
    *rows(
        "Losses",
        "n",
        InputError,
        r"`n` must be below 2\*\*63",
        each(2**63),
        "Indices have 64 bits",
    ),
    *rows(
        "certify",
        "max_queries",
        InputTypeError,
        "`max_queries` must be a whole number",
        NOT_WHOLE,
        "Pass an int",
    ),
    *rows(
        "certify",
        "max_queries",
        InputError,
        "`max_queries` must be at least 2",
        each(1, 0, -1),
        "Pass a larger number",
    ),
    *rows(
        "minimize",
        "max_queries",
        InputError,
        r"one iteration and the check of the result need \d+ queries",
        {"too few for one iteration": (5, "got max_queries=5")},
        "Raise max_queries",
    ),
    *(
        row
        for door in ("minimize", "certify")
        for row in (
            *rows(
                door,
                "seed",
                InputTypeError,
                f"{door}: `seed` must be a whole number",
                NOT_WHOLE
                | {"a generator": (np.random.default_rng(0), "got Generator")},
                "Pass an int such as 0",
            ),
            *rows(
                door,
                "seed",
                InputError,
                f"{door}: `seed` must be at least 0",
                each(-1),
                "Pass an int such as 0",
            ),
            *rows(
                door,
                "seed",
                InputError,
                rf"{door}: `seed` must be below 2\*\*64",
                each(2**64),
                "Pass a smaller int",
            ),
        )
    ),
]
NUMBERS: dict[tuple[str, str], tuple[list[float], str]] = {
    ("minimize", "max_time"): ([0.0, -1.0, NAN], "Pass a number above 0"),
    ("minimize", "timeout"): ([0.0, -1.0, NAN], "Pass a number above 0"),
    ("certify", "timeout"): ([0.0, -1.0, NAN], "Pass a number above 0"),
    ("minimize", "constraint_tol"): ([-1.0, NAN, INF], "Try 1e-2"),
    ("Constraints.pairwise", "margin"): ([NAN, INF, -INF], "Try 0, or -0.1"),
    ("certify", "penalty"): ([0.0, -1.0, NAN, INF], "Pass a number above 0"),
    ("certify", "ridge"): ([0.0, -1.0, NAN, INF], "Pass a number above 0"),
    ("certify", "active_tol"): ([-1.0, NAN, INF], "Try 1e-2"),
} | {
    ("TheoremConstants", name): (
        [0.0, -1.0, NAN, INF],
        "The theorem needs a positive constant",
    )
    for name in inspect.signature(TheoremConstants).parameters
    if name != "dim"
}
NUMBER_ROWS = [
    row
    for (door, name), (values, cure) in NUMBERS.items()
    for row in (
        *rows(door, name, InputError, f"`{name}` must be", each(*values), cure),
        *rows(
            door,
            name,
            InputTypeError,
            f"`{name}` must be a number",
            NOT_A_NUMBER,
            "Pass an int or a float",
        ),
    )
]
CHOICE_ROWS = [
    *(
        row
        for door in ("minimize", "certify")
        for row in (
            *rows(
                door,
                "evaluator",
                InputError,
                f"{door}: `evaluator` must be one of 'serial'",
                each("seriel"),
                "Did you mean 'serial'",
            ),
            *rows(
                door,
                "evaluator",
                InputTypeError,
                f"{door}: `evaluator` must be a name, an executor or workers",
                each(3, None, ["serial"], True, dszog.evaluators.Threads),
                r"Names: serial.*an instance such as dszog\.evaluators\.Processes\(4\)",
            ),
            *rows(
                door,
                "timeout",
                InputError,
                f"{door}: `timeout` needs workers that can be ended",
                each(1.0, 3),
                "Use 'processes', 'dask' or 'ray'",
            ),
        )
    ),
    *rows(
        "minimize",
        "method",
        InputError,
        "`method` must be one of 'dszog'",
        each("dszgo"),
        "Did you mean 'dszog'",
    ),
    *rows(
        "minimize",
        "method",
        InputTypeError,
        "`method` must be a name or a method",
        each(3, None, ["dszog"]),
        r"Names: dszog.*an instance such as dszog\.DSZOG\(\)",
    ),
    *(
        row
        for door, name, misspelt, meant in (
            ("minimize", "on_failure", "penalize", "penalise"),
            ("minimize", "on_failure", "re-sample", "resample"),
            ("minimize", "on_interrupt", "retrun", "return"),
            ("minimize", "on_interrupt", "rise", "raise"),
            ("minimize", "on_save_failure", "warm", "warn"),
            ("minimize", "on_save_failure", "rise", "raise"),
        )
        for row in (
            *rows(
                door,
                name,
                InputError,
                f"{door}: `{name}` must be one of",
                each(misspelt),
                f"Did you mean '{meant}'",
            ),
            *rows(
                door,
                name,
                InputError,
                f"{door}: `{name}` must be one of",
                each(3, None, [meant], True),
                f"'{meant}'",
            ),
        )
    ),
    *rows(
        "Problem",
        "unconstrained",
        InputTypeError,
        "Problem: `unconstrained` must be True or False",
        each(1, 0, "yes", None, 1.0),
        "Pass a bool",
    ),
    *(
        row
        for name in ("progress", "resume")
        for row in rows(
            "minimize",
            name,
            InputTypeError,
            f"minimize: `{name}` must be True or False",
            each(1, 0, "yes", None, 1.0),
            "Pass a bool",
        )
    ),
    *rows(
        "minimize",
        "tune",
        InputError,
        "minimize: `tune` must be True, False or a dszog.Tuning",
        each(1, 0, "yes", None, 0.3, {"share": 0.3}),
        r"For example tune=dszog\.Tuning\(share=0\.2\)",
    ),
    *rows(
        "minimize",
        "tune",
        InputError,
        "minimize: the smallest tuning, two trials in 0.3 of the budget, needs about",
        {"too small a budget": (True, "got max_iterations=3")},
        "Give a larger budget or share, or leave `tune` out",
    ),
    *rows(
        "minimize",
        "resume",
        InputError,
        "minimize: `resume` needs the folder of the checkpoints",
        {"without a folder": (True, "got none")},
        "Give it: checkpoint='folder'",
    ),
    *rows(
        "minimize",
        "checkpoint",
        InputTypeError,
        "minimize: `checkpoint` must be the path of a folder",
        each(True, 3, b"run", ""),
        "For example checkpoint='run-1'",
    ),
    *(
        row
        for owner in ("Problem", "minimize")
        for row in rows(
            owner,
            "tag",
            InputTypeError,
            f"{owner}: `tag` must be a string",
            each(3, None, b"data"),
            "Give a name, for example tag='data of May'",
        )
    ),
    *rows(
        "minimize",
        "tag",
        InputError,
        "minimize: `tag` guards a run that is saved",
        {"without a folder": ("May", "got no folder")},
        "Give it: checkpoint='folder'",
    ),
    *rows(
        "certify",
        "problem",
        InputTypeError,
        r"`problem` must be a dszog\.Problem",
        {"a function": (no_argument, "got function"), "a number": (3, "got int")},
        r"Make one with dszog\.Problem\(fun, constraints, dim\)",
    ),
    *rows(
        "minimize",
        "options",
        InputTypeError,
        "`options` must be a dict",
        each([1], "penalty=10", DSZOG),
        "For example options={'penalty': 10.0}",
    ),
    *(
        row
        for misspelt, meant in (
            ("stepsize", "step_size"),
            ("penalties", "penalty"),
            ("n_direction", "n_directions"),
            ("dual_stepsize", "dual_step_size"),
        )
        for row in rows(
            "minimize",
            "options",
            InputError,
            "method 'dszog' has no option",
            {misspelt: ({misspelt: 1}, f"'{misspelt}'")},
            f"Did you mean '{meant}'",
        )
    ),
    *rows(
        "minimize",
        "options",
        InputError,
        "method 'dszog' has no option",
        {"nothing like it": ({"qqq": 1}, "'qqq'")},
        "Options: .*step_size",
    ),
    Row(
        door="minimize",
        argument="options",
        case="beside a method",
        call=minimize(method=DSZOG(), options={"penalty": 1.0}),
        error=InputError,
        wrong="`options` go with a method given by name",
        got="got {'penalty': 1.0} beside DSZOG",
        cure="Set them there",
    ),
]


def unknown(name: str, cure: str) -> Row:
    return Row(
        door="minimize",
        argument="unknown",
        case=name,
        call=minimize(**{name: 3}),
        error=InputTypeError,
        wrong="minimize: there is no argument",
        got=f"'{name}'",
        cure=cure,
    )


UNKNOWN_ROWS = [
    *(
        unknown(misspelt, f"Did you mean '{meant}'")
        for misspelt, meant in (
            ("constraint", "constraints"),
            ("max_iteration", "max_iterations"),
            ("maxqueries", "max_queries"),
            ("maxtime", "max_time"),
            ("xscale", "x_scale"),
            ("weight", "weights"),
            ("seeds", "seed"),
            ("call_back", "callback"),
            ("evaluater", "evaluator"),
            ("onfailure", "on_failure"),
            ("checkpoints", "checkpoint"),
            ("resumed", "resume"),
            ("constrainttol", "constraint_tol"),
        )
    ),
    *(
        unknown(name, re.escape(f"a field of the method: options={{'{name}': ...}}"))
        for name in ("penalty", "radius", "step_size", "dual_batch", "start")
    ),
    unknown("qqq", r"See help\(minimize\)"),
]

# -------------------------------------------------------------- weights to begin with

WEIGHTS_ROWS = [
    row
    for door in ("minimize", "certify")
    for row in (
        *rows(
            door,
            "weights",
            InputTypeError,
            rf"{door}: `weights` must be a pair \(indices, weights\)",
            each(3, ([0],), ([0], [0.5], [1]), {0: 0.5}),
            r"Pass result\.weights of an earlier run",
        ),
        *rows(
            door,
            "weights",
            InputError,
            f"{door}: `weights` must be distinct indices below 3 and weights >= 0 with "
            "a sum of at most 1",
            each(
                ([0.0], [0.5]),
                ([True], [0.5]),
                ([0, 0], [0.5, 0.25]),
                ([-1], [0.5]),
                ([3], [0.5]),
                ([2**62], [0.5]),
                ([0], [-0.5]),
                ([0, 1], [0.5, 0.75]),
                ([0, 1], [0.5]),
                ([[0]], [[0.5]]),
                (0, 0.5),
            ),
            r"Pass result\.weights of an earlier run on the same constraints",
        ),
        *rows(
            door,
            "weights",
            InputError,
            f"{door}: `weights` must be finite",
            {"nan": (([0], [NAN]), "got nan"), "inf": (([1], [INF]), "got inf")},
            "Replace these entries",
        ),
        *rows(
            door,
            "weights",
            InputTypeError,
            f"{door}: `weights` must hold real numbers",
            {
                "text": (([0], ["a"]), "got .*'a'"),
                "complex": (([0], [1j]), "got .*1j"),
                "None": ((None, None), "got None"),
            },
            "converts to float64",
        ),
    )
]

# ---------------------------------------------------------------- fields of the method

POSITIVE = {
    "step_size": "Try 0.02",
    "dual_step_size": "Try 0.01",
    "penalty": "Try 30",
    "radius": "Try 1e-4",
    "dual_ridge": "The paper uses 1e-6",
    "step_eps": "The paper uses 1e-8",
}
SHARES = ("averaging", "dual_averaging")
FIELD_COUNTS = (
    "n_directions",
    "loss_batch",
    "constraint_batch",
    "dual_batch",
    "horizon",
    "horizon_queries",
)
MISSPELT = {
    "step_decay": ("liner", "linear"),
    "directions": ("gausian", "gaussian"),
    "dual_estimate": ("centered", "centred"),
    "distribution": ("spars", "sparse"),
    "start": ("exakt", "exact"),
}
SWITCHES = ("antithetic", "adaptive")


def field_rows(door: str) -> Iterator[Row]:
    for name in (*POSITIVE, *SHARES):
        yield from rows(
            door,
            name,
            InputTypeError,
            f"DSZOG: `{name}` must be a number",
            NOT_A_NUMBER | each(None),
            "Pass an int or a float",
        )
    for name, cure in POSITIVE.items():
        yield from rows(
            door,
            name,
            InputError,
            f"DSZOG: `{name}` must be positive and finite",
            each(0.0, -1.0, NAN, INF),
            cure,
        )
    for name in SHARES:
        yield from rows(
            door,
            name,
            InputError,
            rf"DSZOG: `{name}` must lie in \(0, 1\]",
            each(0.0, -0.5, 1.5, NAN, INF),
            r"The paper uses .*0\.9",
        )
    for name in FIELD_COUNTS:
        yield from rows(
            door,
            name,
            InputTypeError,
            f"DSZOG: `{name}` must be a whole number",
            NOT_WHOLE,
            "Pass an int|Try 5",
        )
        yield from rows(
            door,
            name,
            InputError,
            f"DSZOG: `{name}` must be at least 1",
            each(0, -1),
            "Pass a larger number|Try 5",
        )
    for name in SWITCHES:
        yield from rows(
            door,
            name,
            InputTypeError,
            f"DSZOG: `{name}` must be True or False",
            each(1, 0, 1.0, "no", None, [True]),
            "Pass a bool",
        )
    for name, (misspelt, meant) in MISSPELT.items():
        wrong = f"DSZOG: `{name}` must be one of"
        cure = f"Did you mean '{meant}'"
        yield from rows(door, name, InputError, wrong, each(misspelt), cure)
        yield from rows(door, name, InputError, wrong, each(None, 3), f"'{meant}'")


def batch_rows(name: str, size: int, there_are: int) -> Iterator[Row]:
    field: Any = {name: size}
    for case, call in (
        ("by options", minimize(options=field)),
        ("by a method", minimize(method=DSZOG(**field))),
    ):
        yield Row(
            door="minimize",
            argument="options",
            case=f"{name} {size} of {there_are}, {case}",
            call=call,
            error=InputError,
            wrong=f"`{name}` is drawn without repeats",
            got=f"got {size} of {there_are}",
            cure=f"Set {name}={there_are} or less, or leave it out",
        )


def dense_billion(user: User) -> object:
    dense = {"distribution": "dense"}
    return minimize(constraints=user.constraints(10**9), options=dense)(user)


# ------------------------------------------- methods of feasible sets, and the sets

KINDS_OF_FIELDS: dict[str, tuple[str, ...]] = {
    "optional positive": ("step_size", "radius", "inner_gap"),
    "positive": (
        "ball_radius",
        "trust_radius",
        "long_factor",
        "damping_scale",
        "damping_offset",
        "momentum_scale",
    ),
    "count": ("n_directions", "max_inner"),
    "optional count": ("loss_batch", "horizon", "period", "refresh_batch"),
    "switch": ("per_sample", "exact_prox"),
}
FEASIBLE_MISSPELT = {
    "estimator": ("shpere", "sphere"),
    "ball": ("boxx", "box"),
    "form": ("lift", "lifted"),
    "solver": ("dapq", "daqp"),
    "nonconvex": ("linearize", "linearise"),
    "step_rule": ("open-loop", "open_loop"),
    "step_decay": ("squrt", "sqrt"),
}
SHARE_STEPS = ("ZOSCGD", "FZFW", "AccSZOFW", "AccSZOFWStorm")


def feasible_rows(door: str, kind: Any) -> Iterator[Row]:
    """Yield the rows about the fields that a method of feasible sets has.

    All cases for the method itself, and a few for the other ways to its fields.
    """
    name_of = kind.__name__
    is_first = door == name_of
    no_number = NOT_A_NUMBER if is_first else each("1", True)
    not_positive = each(0.0, -1.0, NAN, INF) if is_first else each(0.0, NAN)
    not_whole = NOT_WHOLE if is_first else each(2.5)
    no_count = each(0, -1) if is_first else each(0)
    no_switch = each(1, 0, 1.0, "no", None, [True]) if is_first else each(1)
    for name in inspect.signature(kind).parameters:
        if name in KINDS_OF_FIELDS["optional positive"] + KINDS_OF_FIELDS["positive"]:
            yield from rows(
                door,
                name,
                InputTypeError,
                f"{name_of}: `{name}` must be a number",
                no_number,
                "Pass an int or a float",
            )
            yield from rows(
                door,
                name,
                InputError,
                f"{name_of}: `{name}` must be positive and finite",
                not_positive,
                "Pass a number above 0|The theory has 1|The paper uses",
            )
        if name in KINDS_OF_FIELDS["optional count"] + KINDS_OF_FIELDS["count"]:
            yield from rows(
                door,
                name,
                InputTypeError,
                f"{name_of}: `{name}` must be a whole number",
                not_whole,
                "Pass an int",
            )
            yield from rows(
                door,
                name,
                InputError,
                f"{name_of}: `{name}` must be at least 1",
                no_count,
                "Pass a larger number",
            )
        if name in KINDS_OF_FIELDS["switch"]:
            yield from rows(
                door,
                name,
                InputTypeError,
                f"{name_of}: `{name}` must be True or False",
                no_switch,
                "Pass a bool",
            )
        if name in FEASIBLE_MISSPELT:
            misspelt, meant = FEASIBLE_MISSPELT[name]
            wrong = f"{name_of}: `{name}` must be one of"
            cure = f"Did you mean '{meant}'"
            yield from rows(door, name, InputError, wrong, each(misspelt), cure)
            yield from rows(door, name, InputError, wrong, each(None, 3), f"'{meant}'")
    yield from rows(
        door,
        "domain",
        InputTypeError,
        f"{name_of}: `domain` must be a feasible set",
        each(3, "box", [(0.0, 1.0)], Bounds(0, 1))
        | {"a class": (L2Ball, "got <class .*L2Ball")},
        r"Use one of dszog\.subproblems",
    )
    if name_of in SHARE_STEPS:
        yield from rows(
            door,
            "step_size",
            InputError,
            rf"{name_of}: `step_size` must lie in \(0, 1\]",
            each(1.5, 30.0),
            "would leave the set. Try 0.01",
        )


def other(
    door: str,
    argument: str,
    case: str,
    call: Call,
    wrong: str,
    got: str,
    error: type[DszogError] = InputError,
) -> Row:
    """Return a row about what some methods refuse and others take."""
    return Row(
        door=door,
        argument=argument,
        case=case,
        call=call,
        error=error,
        wrong=wrong,
        got=got,
        cure=r"\. [A-Z]",
    )


def theory_rows(door: str, valid: dict[str, Any]) -> Iterator[Row]:
    for name in inspect.signature(DOORS[door][1]).parameters:
        if name in ("dim", "horizon"):
            yield from rows(
                door,
                name,
                InputTypeError,
                f"`{name}` must be a whole number",
                each(2.5, "3", True),
                "Pass an int",
            )
            yield from rows(
                door,
                name,
                InputError,
                f"`{name}` must be at least 1",
                each(0, -1),
                "Pass a larger number",
            )
        elif name == "convex":
            yield from rows(
                door,
                name,
                InputTypeError,
                "`convex` must be True or False",
                each(1, None, "no"),
                "Pass a bool",
            )
        else:
            yield from rows(
                door,
                name,
                InputError,
                f"`{name}` must be positive and finite",
                each(0.0, -1.0, NAN, INF),
                "Pass a number above 0",
            )
            yield from rows(
                door,
                name,
                InputTypeError,
                f"`{name}` must be a number",
                each("1", True),
                "Pass an int or a float",
            )


def comparison_rows(door: str) -> Iterator[Row]:
    yield from rows(
        door,
        "step_size",
        InputTypeError,
        "`step_size` must be a number",
        each("1", True),
        "Pass an int or a float",
    )
    yield from rows(
        door,
        "step_size",
        InputError,
        "`step_size` must be positive and finite",
        each(0.0, -1.0, NAN, INF),
        "Pass a number above 0",
    )
    if "n_losses" in inspect.signature(DOORS[door][1]).parameters:
        yield from rows(
            door,
            "n_losses",
            InputTypeError,
            "`n_losses` must be a whole number",
            each(2.5, "3", True),
            "Pass an int",
        )
        yield from rows(
            door,
            "n_losses",
            InputError,
            "`n_losses` must be at least 1",
            each(0, -1),
            "Pass a larger number",
        )


FEASIBLE_ROWS = [
    *(
        row
        for door, (_, kind) in (FEASIBLE_DOORS | OPTION_DOORS | RELEASED_DOORS).items()
        for row in feasible_rows(door, kind)
    ),
    *(
        row
        for name, valid in THEORY.items()
        for row in theory_rows(f"{NAMES[name]}.from_theory", valid)
    ),
    *(row for door in COMPARISON_DOORS for row in comparison_rows(door)),
    *(
        other(
            NAMES[name],
            "per_sample",
            "along the coordinates",
            feasible(kind)(per_sample=True, estimator="coordinate"),
            "`per_sample` is for random directions",
            "got estimator='coordinate'",
        )
        for name, kind in FEASIBLE_METHODS.items()
    ),
    *(
        other(
            NAMES[name],
            "step_size",
            "None",
            feasible(FEASIBLE_METHODS[name])(step_size=None),
            "`step_size` must be a number",
            "got None",
            InputTypeError,
        )
        for name in ("fzcgs", "fcgs", "zopsgd", "acczomda")
    ),
    other(
        "FCGS",
        "per_sample",
        "with gradients",
        feasible(FEASIBLE_METHODS["fcgs"])(per_sample=True, estimator="sphere"),
        "FCGS: `per_sample` ",
        "got",
    ),
]
SIDES: dict[str, tuple[type[DszogError], str, dict[str, tuple[Any, str]], str]] = {
    "numbers": (
        InputTypeError,
        "must hold real numbers",
        {
            "text": (["a", "b"], "got .*'a'"),
            "complex": ([1j, 0.0], "got .*1j|got .*1\\.j"),
        },
        "converts to float64",
    ),
    "shapes": (
        InputError,
        "`(lower|upper|bounds)` must ",
        {
            "too long": (np.zeros(3), r"\(3,\)"),
            "a matrix": (np.zeros((2, 2)), r"\(2, 2\)"),
        },
        "one (number|entry)",
    ),
    "order": (
        InputError,
        "`(lower|upper|bounds)` must ",
        {"nan": ([NAN, 0.0], r"got (.*nan|shapes)")},
        r"\. [A-Z]",
    ),
}
SET_ROWS = [
    *(
        row
        for door, name in (("L2Ball", "radius"), ("L1Ball", "radius"))
        for row in (
            *rows(
                door,
                name,
                InputError,
                f"{door}: `{name}` must be positive and finite",
                each(0.0, -1.0, NAN, INF),
                "Try 10",
            ),
            *rows(
                door,
                name,
                InputTypeError,
                f"{door}: `{name}` must be a number",
                NOT_A_NUMBER,
                "Pass an int or a float",
            ),
        )
    ),
    *(
        row
        for door in ("L2Ball", "L1Ball", "Simplex")
        for row in (
            *rows(
                door,
                "dim",
                InputTypeError,
                f"{door}: `dim` must be a whole number",
                NOT_WHOLE,
                "Pass an int",
            ),
            *rows(
                door,
                "dim",
                InputError,
                f"{door}: `dim` must be at least 1",
                each(0, -1),
                "Pass a larger number",
            ),
        )
    ),
    *rows(
        "Simplex",
        "total",
        InputError,
        "Simplex: `total` must be positive and finite",
        each(0.0, -1.0, NAN, INF),
        "Pass a number above 0",
    ),
    *rows(
        "Simplex",
        "total",
        InputTypeError,
        "Simplex: `total` must be a number",
        NOT_A_NUMBER,
        "Pass an int or a float",
    ),
    *(
        row
        for door in ("Box", "Polyhedron.linear", "Polyhedron.pairwise")
        for name in ("lower", "upper")
        for error, wrong, cases, cure in SIDES.values()
        for row in rows(door, name, error, wrong, cases, cure)
    ),
    *(
        Row(
            door=door,
            argument="upper",
            case="below lower",
            call=DOORS[door][0](lower=[0.0, 2.0], upper=[1.0, 1.0]),
            error=InputError,
            wrong="`(lower|bounds)` must ",
            got="got (.*2|shapes)",
            cure="[Ss]wap",
        )
        for door in ("Box", "Polyhedron.linear", "Polyhedron.pairwise")
    ),
    Row(
        door="Box",
        argument="lower",
        case="no variables",
        call=preset(Box)(lower=[], upper=[]),
        error=InputError,
        wrong="`lower`",
        got=r"\(0,\)",
        cure="one entry per variable",
    ),
    *rows(
        "Polyhedron.linear",
        "A",
        InputError,
        "`A` must be a matrix",
        of_shapes((2,), (0, 2), (2, 0), (1, 1, 1)),
        r"[Pp]ass A\[None, :\]",
    ),
    *rows(
        "Polyhedron.linear",
        "A",
        InputTypeError,
        "must hold real numbers",
        {"sparse, complex": (thin(1.0, 1j), "complex128")},
        "converts to float64",
    ),
    *rows(
        "Polyhedron.linear",
        "A",
        InputError,
        "must be finite",
        {"sparse, nan": (thin(1.0, NAN), "got nan")},
        "Replace these entries",
    ),
    *rows(
        "Polyhedron.linear",
        "b",
        InputError,
        "`b` (must )?have an entry per row",
        of_shapes((4,), (2, 1), (0,)),
        "Pass ",
    ),
    *(
        row
        for name in ("X_pos", "X_neg")
        for row in (
            *rows(
                "Polyhedron.pairwise",
                name,
                InputError,
                "`X_pos` and `X_neg` must be matrices with the same columns",
                of_shapes((2,), (0, 2), (2, 0), (2, 5)),
                "Take both from one matrix",
            ),
        )
    ),
    *rows(
        "Polyhedron.pairwise",
        "margin",
        InputError,
        "`margin` must be",
        each(NAN, INF, -INF),
        r"\. [A-Z]",
    ),
    *rows(
        "Polyhedron.pairwise",
        "margin",
        InputTypeError,
        "`margin` must be a number",
        NOT_A_NUMBER,
        "Pass an int or a float",
    ),
    *rows(
        "Polyhedron.pairwise",
        "form",
        InputError,
        "`form` must be one of 'lifted', 'full'",
        each("lift"),
        "Did you mean 'lifted'",
    ),
    *(
        row
        for name, (misspelt, meant) in {
            "ball": ("boxx", "box"),
            "solver": ("dapq", "daqp"),
        }.items()
        for row in rows(
            "Polyhedron",
            name,
            InputError,
            f"Polyhedron: `{name}` must be one of",
            each(misspelt),
            f"Did you mean '{meant}'",
        )
    ),
    *rows(
        "Polyhedron",
        "ball_radius",
        InputError,
        "Polyhedron: `ball_radius` must be positive and finite",
        each(0.0, -1.0, NAN, INF),
        "Try 10",
    ),
    *rows(
        "Polyhedron",
        "ball_radius",
        InputTypeError,
        "Polyhedron: `ball_radius` must be a number",
        NOT_A_NUMBER,
        "Pass an int or a float",
    ),
    *rows(
        "Polyhedron",
        "families",
        InputError,
        "Polyhedron: `families` must ",
        each(()),
        r"Polyhedron\.linear",
    ),
    *rows(
        "Polyhedron",
        "n_named",
        InputTypeError,
        "Polyhedron: `n_named` must be a whole number",
        NOT_WHOLE,
        "Pass an int",
    ),
    *rows(
        "Polyhedron",
        "n_named",
        InputError,
        "Polyhedron: `n_named` must be at least 0",
        each(-1),
        "Pass a larger number",
    ),
]


def of_sets(call: Call, wrong: str, got: str, cure: str) -> Row:
    return Row(
        door="minimize",
        argument="method",
        case=f"{wrong} {got}",
        call=call,
        error=InputError,
        wrong=wrong,
        got=got,
        cure=cure,
    )


def tangent_problem(user: User) -> object:
    curved = Constraints(user.values, 3, jacobian=user.gradients)
    return minimize(constraints=curved, method="fzfw")(user)


def empty_problem(user: User) -> object:
    apart = Constraints.linear([[1.0, 0.0], [-1.0, 0.0]], [0.0, -1.0])
    return minimize(constraints=apart, method="zopsgd")(user)


def without_a_gradient(user: User) -> object:
    return minimize(constraints=Constraints.linear(np.eye(2), 1.0), method="fcgs")(user)


def beside_a_domain(**others: Any) -> Call:
    method = FEASIBLE_METHODS["zopsgd"](domain=L2Ball(dim=2, radius=9.0))
    return minimize(method=method, **others)


DOMAIN_ROWS = [
    of_sets(
        minimize(method="fzfw"),
        "constraints that can be projected on are needed",
        "got 3 that are known by values alone",
        "Use method='dszog'",
    ),
    of_sets(
        tangent_problem,
        "a convex set is needed",
        "got 3 constraints that are not known to be convex",
        "'nonconvex': 'linearise'",
    ),
    of_sets(
        empty_problem,
        "The feasible set is empty",
        "no point satisfies all",
        "Relax them",
    ),
    of_sets(
        without_a_gradient,
        "a gradient of the losses is needed",
        "got values alone",
        "use method='fzcgs'",
    ),
    of_sets(
        minimize(method="fzfw", options={"domain": L2Ball(dim=3, radius=1.0)}),
        "`domain` has 3 variables",
        "the problem has 2",
        "one entry per variable",
    ),
    of_sets(
        beside_a_domain(bounds=[(-1.0, 1.0)] * 2),
        "`domain`",
        "got bounds",
        r"\. [A-Z]",
    ),
    of_sets(
        beside_a_domain(x_scale=5.0),
        "`domain`",
        "got x_scale",
        r"\. [A-Z]",
    ),
    Row(
        door="minimize",
        argument="weights",
        case="of a method that weighs nothing",
        call=linear_problem(method="zopsgd", weights=([0], [0.5])),
        error=InputError,
        wrong="`weights` are for methods that weigh constraints",
        got="got ZOPSGD",
        cure="Leave them out",
    ),
    *(
        Row(
            door="minimize",
            argument="options",
            case=f"of {name}",
            call=linear_problem(method=name, options={"penalty": 1.0}),
            error=InputError,
            wrong=f"method '{name}' has no option",
            got="'penalty'",
            cure="Options: .*step_size",
        )
        for name in FEASIBLE_METHODS
    ),
]

FIELD_ROWS = [
    *(row for door in METHOD_DOORS for row in field_rows(door)),
    *batch_rows("loss_batch", 2, 1),
    *batch_rows("dual_batch", 4, 3),
    Row(
        door="minimize",
        argument="options",
        case="dense weights of a billion",
        call=dense_billion,
        error=InputError,
        wrong="distribution='dense' keeps every weight",
        got=r"got 1000000000 constraints, which needs 48\.0 GB",
        cure="Use distribution='sparse'",
    ),
]

# What was let through once, or answered with an error that was not ours.


def once_a_gap(
    door: str,
    argument: str,
    case: str,
    call: Call,
    wrong: str = "",
    n_calls: int = 0,
    error: type[DszogError] = InputTypeError,
) -> Row:
    return Row(
        door=door,
        argument=argument,
        case=case,
        call=call,
        error=error,
        wrong=wrong or f"`{argument}`",
        got="got",
        cure=r"\. \S",
        n_calls=n_calls,
    )


def with_two_arguments(user: User) -> object:
    form = {"type": "ineq", "fun": user.vector, "args": (1.0,)}
    return minimize(constraints=form)(user)


ONCE_GAPS_ROWS = [
    once_a_gap("constraint dictionary", "args", "3", scipy_dictionary(args=3)),
    once_a_gap("constraint dictionary", "args", "0", scipy_dictionary(args=0)),
    once_a_gap(
        "constraint dictionary", "args", "an array", scipy_dictionary(args=np.ones(2))
    ),
    once_a_gap(
        "constraint dictionary", "fun", "one argument, with args", with_two_arguments
    ),
    once_a_gap(
        "constraint dictionary",
        "fun",
        "returns a ragged list",
        measured([[1.0], [1.0, 2.0]], nonlinear=False),
        wrong="must return numbers",
        n_calls=1,
    ),
    once_a_gap(
        "NonlinearConstraint",
        "lb",
        "shapes that do not fit",
        scipy_nonlinear(lb=[0.0, 0.0], ub=[1.0, 1.0, 1.0]),
        wrong="`lb` and `ub`",
        error=InputError,
    ),
    once_a_gap(
        "NonlinearConstraint",
        "lb",
        "inf on both sides",
        scipy_nonlinear(lb=[INF, 0.0], ub=[INF, 1.0]),
        wrong="lb",
        error=InputError,
    ),
    once_a_gap(
        "NonlinearConstraint", "jac", "no argument", scipy_nonlinear(jac=no_argument)
    ),
    once_a_gap("NonlinearConstraint", "jac", "a number", scipy_nonlinear(jac=3)),
    once_a_gap(
        "DSZOG.from_theorem",
        "constants",
        "3",
        lambda user: DSZOG.from_theorem(3),  # type: ignore[arg-type]
    ),
    once_a_gap(
        "minimize",
        "weights",
        "ragged",
        minimize(weights=([[0], [1, 2]], [0.5, 0.5])),
        error=InputError,
    ),
    unknown("maxiter", "Did you mean 'max_iterations'"),
    unknown("n_directions", "a field of the method"),
    unknown("constraint_batch", "a field of the method"),
    unknown("horizon_queries", "a field of the method"),
]


ROWS = [
    *ARRAY_ROWS,
    *SHAPE_ROWS,
    *FUNCTION_ROWS,
    *FAMILY_ROWS,
    *CONCAT_ROWS,
    *SCIPY_ROWS,
    *BOUNDS_ROWS,
    *COUNT_ROWS,
    *NUMBER_ROWS,
    *CHOICE_ROWS,
    *UNKNOWN_ROWS,
    *WEIGHTS_ROWS,
    *FIELD_ROWS,
    *FEASIBLE_ROWS,
    *SET_ROWS,
    *DOMAIN_ROWS,
    *ONCE_GAPS_ROWS,
]


# ----------------------------------------------------------------------------- refused


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_refused_in_three_parts_before_any_user_call(row: Row) -> None:
    user = User()
    with pytest.raises(row.error) as caught:
        row.call(user)
    message = " ".join(str(caught.value).split())
    assert re.search(row.wrong, message), f"what is wrong: {message}"
    assert re.search(row.got, message), f"what was got: {message}"
    assert re.search(row.cure, message), f"what to do: {message}"
    assert user.n_calls == row.n_calls


def test_only_scipy_forms_of_unknown_length_are_called_before_they_are_refused() -> (
    None
):
    called = {row.door for row in ROWS if row.n_calls}
    assert called == {"NonlinearConstraint", "constraint dictionary"}
    assert {row.n_calls for row in ROWS} == {0, 1}


@pytest.mark.parametrize("max_queries", [2, 3])
def test_the_least_number_of_queries_that_certify_takes_is_enough(
    max_queries: int,
) -> None:
    user = User()
    ten = dszog.Problem(user.fun, user.constraints(10), 2)
    try:
        certificate = dszog.certify(ten, [0.0, 0.0], max_queries=max_queries)
    except InputError:
        assert user.n_calls == 0
    else:
        assert 0 < 1 + certificate.feasibility.n_checked <= max_queries


def test_input_errors_are_also_pythons_own_value_and_type_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError)
    assert {row.error for row in ROWS} == {InputError, InputTypeError}


@pytest.mark.parametrize("door", DOORS)
def test_every_argument_of_every_door_is_in_the_table(door: str) -> None:
    arguments = set(inspect.signature(DOORS[door][1]).parameters)
    tested = {row.argument for row in ROWS if row.door == door}
    assert tested == arguments


@pytest.mark.parametrize("door", [door for door in DOORS if door not in METHOD_DOORS])
def test_the_valid_arguments_that_the_table_changes_are_accepted(door: str) -> None:
    user = User()
    DOORS[door][0]()(user)
    assert (user.n_calls > 0) is (door in CALLING_DOORS)


# ---------------------------------------------------------------------------- accepted


class Vector(np.ndarray[Any, Any]):
    """A subclass that changes nothing."""


def on_disk(array: FloatArray, folder: Path) -> Any:
    path = folder / "array.bin"
    array.tofile(path)
    return np.memmap(path, dtype=array.dtype, mode="r", shape=array.shape)


def spread_out(array: FloatArray) -> FloatArray:
    wide = np.full(tuple(3 * n for n in array.shape), NAN)
    wide[tuple(slice(None, None, 3) for _ in array.shape)] = array
    return wide[tuple(slice(None, None, 3) for _ in array.shape)]


def locked(array: FloatArray) -> FloatArray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


FORMS: dict[str, Callable[[FloatArray, Path], Any]] = {
    "list": lambda array, _: array.tolist(),
    "int": lambda array, _: array.astype(np.int64),
    "small int": lambda array, _: array.astype(np.int8),
    "float32": lambda array, _: array.astype(np.float32),
    "float16": lambda array, _: array.astype(np.float16),
    "big-endian": lambda array, _: array.astype(">f8"),
    "not contiguous": lambda array, _: spread_out(array),
    "backwards": lambda array, _: np.flip(np.ascontiguousarray(np.flip(array))),
    "Fortran": lambda array, _: np.asfortranarray(array),
    "read-only": lambda array, _: locked(array),
    "memmap": on_disk,
    "subclass": lambda array, _: array.view(Vector),
}
START = np.array([3.0, -2.0, 0.0])  # the same numbers in all types above
MATRIX = np.array(
    [[1.0, 2.0, 0.0], [-1.0, 0.0, 3.0], [2.0, -2.0, 1.0], [0.0, 5.0, 1.0]]
)


def digest(result: OptimizeResult) -> tuple[object, ...]:
    return (
        result.x.tobytes(),
        np.float64(result.fun).tobytes(),
        np.float64(result.maxcv).tobytes(),
        (result.nit, result.nfev, result.ncev, result.seed, result.message),
        result.history["sampled_objective"].tobytes(),
    )


def as_bytes(array: Any) -> bytes:
    return np.asarray(array).tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_x0_in_this_form_gives_the_same_run_and_is_left_alone(
    form: str, tmp_path: Path
) -> None:
    def run(x0: Any) -> tuple[object, ...]:
        return digest(
            dszog.minimize(
                User().fun, x0, User().constraints(), max_iterations=20, seed=1
            )
        )

    given = FORMS[form](START, tmp_path)
    before = as_bytes(given)
    assert run(given) == run(START)
    assert as_bytes(given) == before
    start = dszog.Problem(User().fun, User().constraints(), 3, x0=given).x0
    assert start.tobytes() == START.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_data_in_this_form_gives_the_same_values_and_is_left_alone(
    form: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    points, indices = rng.standard_normal((2, 3)), np.arange(4)
    for array, make in (
        (MATRIX, lambda A: Constraints.linear(A, START[[0, 1, 2, 0]])),
        (np.array([1.0, -2.0, 0.0, 4.0]), lambda b: Constraints.linear(MATRIX, b)),
        (MATRIX, lambda X: Constraints.pairwise(X, MATRIX[::-1], 1.0)),
        (MATRIX, lambda X: Constraints.pairwise(MATRIX[::-1], X, 1.0)),
    ):
        given = FORMS[form](array, tmp_path)
        before = as_bytes(given)
        ours, plain = make(given), make(array)
        assert as_bytes(given) == before
        assert as_bytes(ours.values(points, indices)) == as_bytes(
            plain.values(points, indices)
        )
        assert ours.summary(points[0]) == plain.summary(points[0])


def test_the_same_run_is_told_from_another() -> None:
    runs = {
        digest(
            dszog.minimize(
                User().fun, START, User().constraints(), max_iterations=20, seed=seed
            )
        )
        for seed in (1, 1, 2)
    }
    assert len(runs) == 2


@pytest.mark.parametrize("seed", [0, np.int32(7), np.uint64(2**64 - 1), 2**64 - 1])
def test_seeds_of_any_integer_type_are_accepted_and_reported(seed: Any) -> None:
    result = minimize(seed=seed)(User())
    assert isinstance(result, OptimizeResult)
    assert result.seed == int(seed)
    assert type(result.seed) is int


def test_a_seed_that_was_not_given_is_drawn_and_reported() -> None:
    first = minimize(seed=None)(User())
    assert isinstance(first, OptimizeResult)
    again = minimize(seed=first.seed)(User())
    assert isinstance(again, OptimizeResult)
    assert digest(first) == digest(again)
    other = minimize(seed=None)(User())
    assert isinstance(other, OptimizeResult)
    assert other.seed != first.seed


def test_one_of_everything_works() -> None:
    result = dszog.minimize(
        lambda x: float((x[0] - 2.0) ** 2),
        [0.0],
        Constraints(lambda points, j: points - 1.0 + 0.0 * j, 1),
        options={
            "n_directions": 1,
            "loss_batch": 1,
            "constraint_batch": 1,
            "dual_batch": 1,
        },
        max_iterations=600,
        seed=0,
    )
    assert result.success
    np.testing.assert_allclose(result.x, [1.0], atol=0.01)


def test_constraints_drawn_from_the_weights_may_be_more_than_there_are() -> None:
    result = minimize(options={"constraint_batch": 50})(User())
    assert isinstance(result, OptimizeResult)
    assert result.method.constraint_batch == 50
    assert result.nit == 3


def test_a_billion_constraints_need_no_memory_for_each() -> None:
    user = User()
    result = dszog.minimize(
        user.fun, [0.0, 0.0], user.constraints(10**9), max_queries=30_000, seed=0
    )
    assert result.certificate.feasibility.n_constraints == 10**9
    assert 0 < result.nfev + result.ncev <= 30_000


class Method:
    """Has functions of one and of two arguments, as an object has them."""

    def one(self, x: Any) -> float:
        return 0.0

    def two(self, x: Any, j: Any) -> Any:
        return np.zeros((len(x), len(j)))


def optional(x: Any, j: Any = 0, *, scale: float = 1.0) -> float:
    return 0.0


def any_number(*arguments: Any) -> float:
    return 0.0


@pytest.mark.parametrize(
    "function",
    [optional, any_number, Method().one, partial(three_arguments, 1, 2), max, np.sum],
    ids=lambda function: getattr(function, "__name__", "partial"),
)
def test_a_function_that_can_take_one_argument_is_accepted(function: Any) -> None:
    assert len(dszog.Losses.from_function(function)) == 1
    assert len(Constraints.from_callables([function])) == 1


@pytest.mark.parametrize(
    "function",
    [optional, any_number, Method().two, partial(three_arguments, 1), np.add],
    ids=lambda function: getattr(function, "__name__", "partial"),
)
def test_a_function_that_can_take_two_arguments_is_accepted(function: Any) -> None:
    assert len(Constraints(function, 3, jacobian=function)) == 3
    assert len(Constraints.from_function(function, 3)) == 3
    assert len(Constraints.blocks(function, 3, 1)) == 3
    assert len(dszog.Losses(function, 3, gradient=function)) == 3
    assert dszog.Simulator(function, 3, 1).n == 3


def test_weights_of_an_earlier_run_are_accepted_in_any_order_and_form() -> None:
    first = minimize()(User())
    assert isinstance(first, OptimizeResult)
    indices, weights = np.arange(3), np.array([0.5, 0.25, 0.25])
    plain = minimize(weights=(indices, weights))(User())
    assert isinstance(plain, OptimizeResult)
    for form in (
        (indices.tolist(), weights.tolist()),
        [indices[::-1], weights[::-1]],
        (indices.astype(np.uint8), weights.astype(np.float32)),
        (tuple(indices), tuple(weights)),
    ):
        result = minimize(weights=form)(User())
        assert isinstance(result, OptimizeResult)
        assert digest(result) == digest(plain)
    assert isinstance(minimize(weights=first.weights)(User()), OptimizeResult)


@pytest.mark.parametrize("off", [False, np.False_])
def test_a_switch_may_be_a_bool_of_python_or_of_numpy(off: Any) -> None:
    result = minimize(progress=off, options={"adaptive": off})(User())
    assert isinstance(result, OptimizeResult)
    assert not result.method.adaptive


@pytest.mark.parametrize("scale", [2, 2.0, np.float32(2), [2.0, 2.0], [2], (2, 2)])
def test_a_scale_may_be_one_number_or_one_for_each_variable(scale: Any) -> None:
    plain = minimize(x_scale=np.full(2, 2.0))(User())
    result = minimize(x_scale=scale)(User())
    assert isinstance(plain, OptimizeResult)
    assert isinstance(result, OptimizeResult)
    assert digest(result) == digest(plain)


# -------------------------------------------------------------------- indices by hand


def families(user: User) -> dict[str, Callable[[Any], object]]:
    """Return what takes indices of 3 losses or constraints."""
    both = dszog.Losses(user.values, 3, gradient=user.gradients)
    constraints = Constraints(user.values, 3, jacobian=user.gradients)
    points = np.zeros((2, 2))
    return {
        "Losses.values": lambda i: both.values(points, i),
        "Losses.gradient": lambda i: both.gradient(points[0], i),
        "Constraints.values": lambda i: constraints.values(points, i),
        "Constraints.jacobian": lambda i: constraints.jacobian(points[0], i),
    }


WRONG_INDICES: dict[str, tuple[Any, type[DszogError], str, str]] = {
    "negative": ([0, -1], InputError, "between 0 and 2, got -1", "count from 0"),
    "too large": ([3, 1, 9], InputError, "between 0 and 2, got 3, 9", "count from 0"),
    "seven": (
        np.arange(7) + 3,
        InputError,
        r"between 0 and 2, got 3, 4, 5, 6, 7\.",
        "count from 0",
    ),
    "too large for int64": (
        np.array([2**64 - 1], np.uint64),
        InputError,
        f"got {2**64 - 1}",
        "count from 0",
    ),
    "floats": ([0.0], InputTypeError, r"whole numbers, got \[0.0\]", "int64 array"),
    "flags": ([True], InputTypeError, r"whole numbers, got \[True\]", "int64 array"),
    "text": (["0"], InputTypeError, "whole numbers, got .*'0'", "int64 array"),
    "one number": (
        0,
        InputTypeError,
        "a vector of whole numbers, got 0",
        "int64 array",
    ),
    "a matrix": ([[0]], InputTypeError, r"vector .*, got \[\[0\]\]", "int64 array"),
    "None": (None, InputTypeError, "whole numbers, got None", "int64 array"),
}


@pytest.mark.parametrize("family", families(User()))
@pytest.mark.parametrize(
    ("indices", "error", "got", "cure"), WRONG_INDICES.values(), ids=WRONG_INDICES
)
def test_indices_that_do_not_exist_are_refused_before_the_user_s_function_is_called(
    family: str, indices: Any, error: type[DszogError], got: str, cure: str
) -> None:
    user = User()
    with pytest.raises(error, match=rf"{family.split('.')[0]}: indices must .*{got}"):
        families(user)[family](indices)
    with pytest.raises(error, match=cure):
        families(user)[family](indices)
    assert user.n_calls == 0
    families(user)[family](np.array([0, 2], np.uint8))
    assert user.n_calls == 1


# -------------------------------------------------------- what a user's function may do


def test_a_users_function_receives_read_only_float64_whatever_x0_was() -> None:
    seen: list[Any] = []

    def fun(x: FloatArray) -> float:
        seen.append(x)
        return float(x @ x)

    def values(points: FloatArray, indices: IntArray) -> FloatArray:
        seen.extend([points, indices])
        return User().values(points, indices)

    dszog.minimize(
        fun, np.ones(2, np.float32), Constraints(values, 3), max_iterations=3, seed=0
    )
    assert {array.dtype for array in seen} == {np.dtype("f8"), np.dtype("i8")}
    assert not any(array.flags.writeable for array in seen)


def watched(seen: list[Any]) -> dict[str, dict[str, Any]]:
    """Return problems in which every function keeps the points it was given."""

    def fun(x: FloatArray, *index: int) -> float:
        seen.append(x)
        return float(x @ x) - 1.0

    def vector(x: FloatArray, *index: int) -> FloatArray:
        seen.append(x)
        return np.array(x)

    def slopes(x: FloatArray) -> FloatArray:
        seen.append(x)
        return np.eye(2)

    def run(x: FloatArray, i: int) -> tuple[float, FloatArray]:
        return fun(x), vector(x)

    nonlinear = NonlinearConstraint(vector, 0.5, 1.0, jac=slopes)
    dictionary = {"type": "ineq", "fun": vector, "jac": slopes, "args": ()}
    return {
        "function": {"constraints": Constraints.from_function(fun, 3)},
        "callables": {"constraints": Constraints.from_callables([fun, fun])},
        "blocks": {"constraints": Constraints.blocks(vector, 2, 2)},
        "simulator": {"fun": dszog.Simulator(run, 2, 2), "constraints": ()},
        "NonlinearConstraint": {"constraints": nonlinear},
        "dictionary": {"constraints": dictionary},
        "several": {"constraints": [nonlinear, dictionary, dictionary]},
    }


@pytest.mark.parametrize("form", watched([]))
@pytest.mark.parametrize("x_scale", [1.0, 3.0])
def test_the_points_of_every_form_of_function_are_read_only_float64(
    form: str, x_scale: float
) -> None:
    seen: list[Any] = []
    minimize(x0=np.ones(2, np.float32), x_scale=x_scale, **watched(seen)[form])(User())
    assert len(seen) > 3
    assert {(x.dtype, x.shape) for x in seen} == {(np.dtype("f8"), (2,))}
    assert not any(x.flags.writeable for x in seen)


def test_writing_into_what_a_users_function_was_given_raises_there() -> None:
    def fun(x: FloatArray) -> float:
        x[0] = 1.0
        return 0.0

    with pytest.raises(EvaluationError, match=r"ValueError: .*read-only"):
        minimize(fun=fun)(User())


@pytest.mark.parametrize(
    "convert",
    [float, np.float64, np.float32, np.array, int, np.int16, bool, np.longdouble],
    ids=lambda convert: convert.__name__,
)
def test_a_value_of_this_type_is_accepted(convert: Callable[[Any], Any]) -> None:
    result = minimize(fun=lambda x: convert(7.0))(User())
    assert isinstance(result, OptimizeResult)
    assert result.fun == float(convert(7.0))


def of_single_precision(offset: float) -> Constraints:
    def values(points: FloatArray, indices: IntArray) -> Any:
        sums = (points @ [1.0, 2.0])[:, np.newaxis]
        return (offset + sums - 0.1 * indices).astype(np.float32)

    return Constraints(values, 3)


def test_single_precision_that_is_fine_enough_is_accepted() -> None:
    result = minimize(constraints=of_single_precision(1.0))(User())
    assert isinstance(result, OptimizeResult)


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_single_precision_in_which_differences_drown_is_warned_of(
    offset: float,
) -> None:
    # Differences of 1e-4; single precision has 6e-5 to spare at 1e3, 0.06 at 1e6.
    with pytest.warns(dszog.PrecisionWarning) as caught:
        minimize(constraints=of_single_precision(offset))(User())
    message = str(caught[0].message)
    for part in ("is noise", "each constraint come in float32", "Return float64, or"):
        assert part in message


@pytest.mark.parametrize("x0", [1e6, -1e9])
def test_a_radius_below_the_resolution_of_x_is_warned_of(x0: float) -> None:
    least = f"{1e4 * np.spacing(abs(x0)):.1g}"
    match = rf"radius=1e-07 is lost in .*Use at least {re.escape(least)}, or x_scale"
    options = {"radius": 1e-7}
    with pytest.warns(dszog.PrecisionWarning, match=match):
        minimize(x0=[x0, 0.0], options=options)(User())
    minimize(x0=[x0, 0.0], options=options, x_scale=abs(x0))(User())


RETURNS: dict[str, tuple[Any, str]] = {
    "None": (None, "None"),
    "text": ("7", "'7'"),
    "complex": (7j, "7j"),
    "a vector": (np.zeros(2), r"array\(\[0., 0.\]\)"),
    "nan": (NAN, "returned nan"),
    "inf": (INF, "returned inf"),
    "-inf": (-INF, "returned -inf"),
    "a dict": ({"value": 7.0}, "{'value': 7.0}"),
    "complex of NumPy": (np.complex128(7), r"np\.complex128\(7\+0j\)"),
    "a ragged list": ([[7.0], [7.0, 7.0]], r"\[\[7.0\], \[7.0, 7.0\]\]"),
    "nothing": ([], r"\[\]"),
}


@pytest.mark.parametrize(("value", "got"), RETURNS.values(), ids=RETURNS)
def test_an_objective_that_is_no_finite_number_stops_the_run(
    value: Any, got: str
) -> None:
    with pytest.raises(EvaluationError, match=got) as caught:
        minimize(fun=lambda x: value)(User())
    message = str(caught.value)
    assert re.search(r"at iteration \d+", message)
    assert re.search(r"expected a real number|must be finite", message)


@pytest.mark.parametrize("what", ["objective", "function", "callables", "blocks"])
def test_a_masked_value_is_not_known_and_stops_the_run(what: str) -> None:
    lost: Any = np.ma.masked  # which is what the mean of masked data is
    forms: dict[str, dict[str, Any]] = {
        "objective": {"fun": lambda x: lost},
        "function": {"constraints": Constraints.from_function(lambda x, j: lost, 2)},
        "callables": {"constraints": Constraints.from_callables([lambda x: lost])},
        "blocks": {"constraints": Constraints.blocks(lambda x, b: lost, 2, 1)},
    }
    with pytest.raises(EvaluationError, match="masked"):
        minimize(**forms[what])(User())


def test_masked_values_of_many_constraints_stop_the_run() -> None:
    def values(points: FloatArray, indices: IntArray) -> Any:
        return np.ma.masked_less(User().values(points, indices), 0.0)

    with pytest.raises(EvaluationError, match=r"masked array .* array\.filled"):
        minimize(constraints=Constraints(values, 3))(User())


@pytest.mark.parametrize("shape", [(3,), (3, 1), (1, 3, 1), (1, 2)])
def test_constraint_values_of_a_wrong_shape_stop_the_run(
    shape: tuple[int, ...],
) -> None:
    wrong = Constraints(lambda points, indices: np.zeros(shape), 3)
    with pytest.raises(EvaluationError, match=r"Expected \(1, 3\)") as caught:
        minimize(constraints=wrong)(User())
    assert f"returned shape {shape}" in str(caught.value)
    assert "one row per point and one column per index" in str(caught.value)


def test_the_constraint_that_returned_nan_is_named() -> None:
    def values(points: FloatArray, indices: IntArray) -> FloatArray:
        return np.where(indices == 41_207, NAN, -1.0) + 0.0 * points[:, :1]

    with pytest.raises(EvaluationError, match="Constraint 41207 returned nan"):
        minimize(constraints=Constraints(values, 50_000))(User())


def test_a_users_exception_is_kept_as_the_cause() -> None:
    def fun(x: FloatArray) -> float:
        raise ZeroDivisionError("my own words")

    with pytest.raises(
        EvaluationError, match="ZeroDivisionError: my own words"
    ) as caught:
        minimize(fun=fun)(User())
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_a_function_of_one_point_given_as_one_of_many_is_told_so() -> None:
    constraints = dszog.Constraints(lambda x, j: float(x[j] - 1.0), 50)
    with pytest.raises(EvaluationError, match=r"\(1, 2\) and \(50,\).*from_function"):
        dszog.minimize(lambda x: float(x @ x), [1.0, 1.0], constraints, seed=0)
