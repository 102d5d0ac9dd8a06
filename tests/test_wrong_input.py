"""The input table: what is refused, in which words, and what is accepted unchanged.

Every message has three parts: what is wrong, what was got, what to do. All of it is
said before the first call of a user's function.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, OptimizeResult

import dszog
from dszog import DSZOG, Constraints, EvaluationError, InputError, InputTypeError
from dszog._arrays import FloatArray, IntArray
from dszog.errors import DszogError

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


def method(**changes: Any) -> Call:
    return lambda user: DSZOG(**changes)


def published_method(**changes: Any) -> Call:
    return lambda user: DSZOG.as_published(**changes)


def options(**changes: Any) -> Call:
    return minimize(options=changes)


DOORS: dict[str, tuple[Callable[..., Call], Callable[..., object]]] = {
    "minimize": (minimize, dszog.minimize),
    "Problem": (problem, dszog.Problem),
    "Losses": (losses, dszog.Losses),
    "Losses.from_function": (loss_function, dszog.Losses.from_function),
    "Constraints": (constraints, Constraints),
    "Constraints.from_function": (constraint_function, Constraints.from_function),
    "Constraints.linear": (linear, Constraints.linear),
    "Constraints.pairwise": (pairwise, Constraints.pairwise),
    "DSZOG": (method, DSZOG),
    "DSZOG.as_published": (published_method, DSZOG),
    "options of minimize": (options, DSZOG),
}
METHOD_DOORS = ("DSZOG", "DSZOG.as_published", "options of minimize")


def rows(
    door: str,
    argument: str,
    error: type[DszogError],
    wrong: str,
    cases: dict[str, tuple[Any, str]],
    cure: str,
) -> list[Row]:
    """Return a row for each case: a value, and how it is shown in the message."""
    call, _ = DOORS[door]
    return [
        Row(door, argument, case, call(**{argument: value}), error, wrong, got, cure)
        for case, (value, got) in cases.items()
    ]


def each(*values: Any) -> dict[str, tuple[Any, str]]:
    """Return cases that are shown as Python shows them."""
    return {repr(value): (value, re.escape(f"got {value!r}")) for value in values}


# ------------------------------------------------------------------- arrays of numbers

ARRAYS: dict[tuple[str, str], tuple[int, ...]] = {
    ("minimize", "x0"): (2,),
    ("Problem", "x0"): (2,),
    ("Constraints.linear", "A"): (3, 2),
    ("Constraints.linear", "b"): (3,),
    ("Constraints.pairwise", "X_pos"): (3, 2),
    ("Constraints.pairwise", "X_neg"): (2, 2),
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
    )
]


def of_shape(*shapes: tuple[int, ...]) -> dict[str, tuple[Any, str]]:
    return {
        f"shape {shape}": (np.ones(shape), re.escape(f"shape {shape}"))
        for shape in shapes
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
        "Constraints.linear",
        "A",
        InputError,
        "`A` must be a matrix with a row per constraint",
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
    ("Constraints", "values"): r"values\(points, indices\) -> \(k, b\) array",
    ("Constraints", "jacobian"): r"jacobian\(point, indices\) -> \(b, dim\) array",
    ("Constraints.from_function", "function"): r"function\(x, j\) -> float",
    ("minimize", "callback"): r"callback\(progress\)",
}
FUNCTION_ROWS = [
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
            "constraints must be a dszog.Constraints",
            each(3, "f", np.sin, [np.sin, np.cos]),
            r"Use dszog\.Constraints\(values, m\), |Use Constraints.from_callables",
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
        wrong="a Problem brings its own",
        got="got others beside it",
        cure="Put them into the Problem",
    )
    for name, value in (
        ("constraints", Constraints.linear(np.eye(2), np.ones(2))),
        ("bounds", [(0, 1), (0, 1)]),
    )
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

NOT_WHOLE = each(3.0, 2.5, NAN, "3", True, [3])
NOT_A_NUMBER = each("1", True, 1j, [1.0], np.ones(1))
COUNTS = {
    ("Constraints", "m"): "Leave the constraints out",
    ("Constraints.from_function", "m"): "Leave the constraints out",
    ("Losses", "n"): "Pass a larger number",
    ("Problem", "dim"): "Pass a larger number",
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
    *rows(
        "minimize",
        "max_queries",
        InputError,
        r"one iteration and the check of the result need \d+ queries",
        {"too few for one iteration": (5, "got max_queries=5")},
        "Raise max_queries",
    ),
    *rows(
        "minimize",
        "seed",
        InputTypeError,
        "`seed` must be a whole number",
        NOT_WHOLE | {"a generator": (np.random.default_rng(0), "got Generator")},
        "Pass an int such as 0, or None",
    ),
    *rows(
        "minimize",
        "seed",
        InputError,
        "`seed` must be at least 0",
        each(-1),
        "Pass an int such as 0, or None",
    ),
    *rows(
        "minimize",
        "seed",
        InputError,
        r"`seed` must be below 2\*\*64",
        each(2**64),
        "Pass a smaller int",
    ),
]
NUMBERS: dict[tuple[str, str], tuple[list[float], str]] = {
    ("minimize", "max_time"): ([0.0, -1.0, NAN], "Pass a number above 0"),
    ("minimize", "constraint_tol"): ([-1.0, NAN, INF], "Try 1e-2"),
    ("Constraints.pairwise", "margin"): ([NAN, INF, -INF], "Try 0, or -0.1"),
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
    *rows(
        "minimize",
        "evaluator",
        InputError,
        "`evaluator` must be one of",
        each("seriel"),
        "Did you mean 'serial'",
    ),
    *rows(
        "minimize",
        "evaluator",
        InputError,
        "`evaluator` must be one of",
        each(3, None),
        "'serial'",
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
SWITCHES = {"antithetic", "adaptive"}  # whatever is given is true or false


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

ROWS = [
    *ARRAY_ROWS,
    *SHAPE_ROWS,
    *FUNCTION_ROWS,
    *FAMILY_ROWS,
    *BOUNDS_ROWS,
    *COUNT_ROWS,
    *NUMBER_ROWS,
    *CHOICE_ROWS,
    *FIELD_ROWS,
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
    assert user.n_calls == 0


def test_input_errors_are_also_pythons_own_value_and_type_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError)
    assert {row.error for row in ROWS} == {InputError, InputTypeError}


@pytest.mark.parametrize("door", DOORS)
def test_every_argument_of_every_door_is_in_the_table(door: str) -> None:
    arguments = set(inspect.signature(DOORS[door][1]).parameters)
    tested = {row.argument for row in ROWS if row.door == door}
    untested = {"progress"} if door == "minimize" else set()
    if door in METHOD_DOORS:
        untested = SWITCHES
    assert tested == arguments - untested


@pytest.mark.parametrize("door", [door for door in DOORS if door not in METHOD_DOORS])
def test_the_valid_arguments_that_the_table_changes_are_accepted(door: str) -> None:
    user = User()
    DOORS[door][0]()(user)
    assert (user.n_calls > 0) is (door == "minimize")


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


RETURNS: dict[str, tuple[Any, str]] = {
    "None": (None, "None"),
    "text": ("7", "'7'"),
    "complex": (7j, "7j"),
    "a vector": (np.zeros(2), r"array\(\[0., 0.\]\)"),
    "nan": (NAN, "returned nan"),
    "inf": (INF, "returned inf"),
    "-inf": (-INF, "returned -inf"),
    "a dict": ({"value": 7.0}, "{'value': 7.0}"),
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
