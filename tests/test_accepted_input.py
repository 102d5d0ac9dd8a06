"""What is accepted as it comes, and what a user's function may be, get and return."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import dszog
from dszog import Constraints, EvaluationError
from dszog.contract.arrays import FloatArray, IntArray
from tests.test_wrong_input import NAN, User, three_arguments


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


def as_bytes(array: Any) -> bytes:
    return np.asarray(array).tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_x0_in_this_form_gives_the_same_run(form: str, tmp_path: Path) -> None:
    def run(x0: Any) -> Any:
        return User().minimize(x0=x0, max_iterations=20, seed=1).digest

    given = FORMS[form](START, tmp_path)
    before = as_bytes(given)
    assert run(given) == run(START)
    assert as_bytes(given) == before
    start = dszog.Problem(User().fun, User().constraints(), 3, x0=given).x0
    assert start.tobytes() == START.tobytes()


@pytest.mark.parametrize("form", FORMS)
def test_data_in_this_form_give_the_same_values(form: str, tmp_path: Path) -> None:
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


@pytest.mark.parametrize("seed", [0, np.int32(7), np.uint64(2**64 - 1), 2**64 - 1])
def test_seeds_of_any_integer_type_are_accepted_and_reported(seed: Any) -> None:
    result = User().minimize(seed=seed)
    assert result.seed == int(seed)
    assert type(result.seed) is int


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
    first = User().minimize()
    indices, weights = np.arange(3), np.array([0.5, 0.25, 0.25])
    plain = User().minimize(weights=(indices, weights))
    for form in (
        (indices.tolist(), weights.tolist()),
        [indices[::-1], weights[::-1]],
        (indices.astype(np.uint8), weights.astype(np.float32)),
        (tuple(indices), tuple(weights)),
    ):
        result = User().minimize(weights=form)
        assert result.digest == plain.digest
    User().minimize(weights=first.weights)


@pytest.mark.parametrize("off", [False, np.False_])
def test_a_switch_may_be_a_bool_of_python_or_of_numpy(off: Any) -> None:
    result = User().minimize(progress=off, options={"adaptive": off})
    assert not result.method.adaptive


@pytest.mark.parametrize("scale", [2, 2.0, np.float32(2), [2.0, 2.0], [2], (2, 2)])
def test_a_scale_may_be_one_number_or_one_for_each_variable(scale: Any) -> None:
    plain = User().minimize(x_scale=np.full(2, 2.0))
    result = User().minimize(x_scale=scale)
    assert result.digest == plain.digest


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
def test_points_are_read_only_float64_everywhere(form: str, x_scale: float) -> None:
    seen: list[Any] = []
    User().minimize(x0=np.ones(2, np.float32), x_scale=x_scale, **watched(seen)[form])
    assert len(seen) > 3
    assert {(x.dtype, x.shape) for x in seen} == {(np.dtype("f8"), (2,))}
    assert not any(x.flags.writeable for x in seen)


@pytest.mark.parametrize(
    "convert",
    [float, np.float64, np.float32, np.array, int, np.int16, bool, np.longdouble],
    ids=lambda convert: convert.__name__,
)
def test_a_value_of_this_type_is_accepted(convert: Callable[[Any], Any]) -> None:
    result = User().minimize(fun=lambda x: convert(7.0))
    assert result.fun == float(convert(7.0))


def of_single_precision(offset: float) -> Constraints:
    def values(points: FloatArray, indices: IntArray) -> Any:
        sums = (points @ [1.0, 2.0])[:, np.newaxis]
        return (offset + sums - 0.1 * indices).astype(np.float32)

    return Constraints(values, 3)


def test_single_precision_that_is_fine_enough_is_accepted() -> None:
    User().minimize(constraints=of_single_precision(1.0), options={"radius": 1e-4})


@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_too_coarse_single_precision_is_warned_of(offset: float) -> None:
    # Differences of 1e-4; single precision has 6e-5 to spare at 1e3, 0.06 at 1e6.
    with pytest.warns(dszog.PrecisionWarning) as caught:
        User().minimize(constraints=of_single_precision(offset))
    message = str(caught[0].message)
    for part in ("is noise", "each constraint come in float32", "Return float64, or"):
        assert part in message


@pytest.mark.parametrize("x0", [1e6, -1e9])
def test_a_radius_below_the_resolution_of_x_is_warned_of(x0: float) -> None:
    least = f"{1e4 * np.spacing(abs(x0)):.1g}"
    match = rf"radius=1e-07 is lost in .*Use at least {re.escape(least)}, or x_scale"
    options = {"radius": 1e-7}
    with pytest.warns(dszog.PrecisionWarning, match=match):
        User().minimize(x0=[x0, 0.0], options=options)
    User().minimize(x0=[x0, 0.0], options=options, x_scale=abs(x0))


@pytest.mark.parametrize(
    "what", ["objective", "all", "function", "callables", "blocks"]
)
def test_a_masked_value_is_not_known_and_stops_the_run(what: str) -> None:
    lost: Any = np.ma.masked  # which is what the mean of masked data is
    forms: dict[str, dict[str, Any]] = {
        "objective": {"fun": lambda x: lost},
        "all": {"constraints": Constraints(lambda p, j: np.ma.array(p, mask=True), 2)},
        "function": {"constraints": Constraints.from_function(lambda x, j: lost, 2)},
        "callables": {"constraints": Constraints.from_callables([lambda x: lost])},
        "blocks": {"constraints": Constraints.blocks(lambda x, b: lost, 2, 1)},
    }
    with pytest.raises(EvaluationError, match="masked"):
        User().minimize(**forms[what])


def test_a_function_of_one_point_given_as_one_of_many_is_told_so() -> None:
    constraints = dszog.Constraints(lambda x, j: float(x[j] - 1.0), 50)
    with pytest.raises(EvaluationError, match=r"\(1, 2\) and \(\d+,\).*from_function"):
        dszog.minimize(lambda x: float(x @ x), [1.0, 1.0], constraints, seed=0)
