"""A script for SciPy runs with the import changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from scipy.optimize import BFGS, NonlinearConstraint, OptimizeResult, OptimizeWarning

import dszog
from dszog import InputError, InputTypeError, Losses, minimize
from dszog.contract.arrays import FloatArray
from dszog.status import Status
from tests.problem.swapped_scripts import SCRIPTS

LINE: Any = {"type": "ineq", "fun": lambda x: 1.0 - x.sum()}
METHOD: dict[str, Any] = {"method": "SLSQP", "seed": 0}


def bowl(x: FloatArray, centre: float = 2.0) -> float:
    return float(((x - centre) ** 2).sum())


def slope(x: FloatArray, centre: float = 2.0) -> FloatArray:
    return 2.0 * (x - centre)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_for_scipy_gives_its_answer(script: Callable[[Any], Any]) -> None:
    theirs, ours = script(scipy.optimize.minimize), script(minimize)
    assert theirs.success
    assert "stands in for SciPy's" in ours.message
    np.testing.assert_allclose(ours.x, theirs.x, atol=1e-3)
    assert ours.fun == pytest.approx(theirs.fun, abs=1e-3)


@pytest.mark.parametrize("args", [(0.0,), 0.0], ids=["tuple", "single"])
@pytest.mark.parametrize(
    ("fun", "jac"),
    [(bowl, slope), (lambda x, c: (bowl(x, c), slope(x, c)), True), (bowl, "3-point")],
    ids=["jac", "pair", "differences"],
)
def test_args_go_to_function_and_gradient(args: Any, fun: Any, jac: Any) -> None:
    floor = {"type": "ineq", "fun": lambda x, low: x[0] - low, "args": (1.0,)}
    result = minimize(fun, [3.0, 3.0], args=args, jac=jac, constraints=floor, **METHOD)
    np.testing.assert_allclose(result.x, [1.0, 0.0], atol=1e-3)
    np.testing.assert_allclose(result.jac, [2.0, 0.0], atol=1e-3)
    assert (result.njev > 0) == (jac != "3-point")


def test_a_pair_of_value_and_gradient_costs_one_call_where_both_are_wanted() -> None:
    calls: list[FloatArray] = []

    def both(x: FloatArray) -> tuple[float, FloatArray]:
        calls.append(x)
        return bowl(x), slope(x)

    losses = Losses.from_function(both, gradient=True)
    result = minimize(losses, [3.0, 3.0], LINE, **METHOD)
    assert result.success
    assert len(calls) < result.nfev
    np.testing.assert_array_equal(
        losses.gradient(np.ones(2), np.array([0, 0])), -2 * np.ones((2, 2))
    )


def test_scipys_order_of_arguments_is_taken() -> None:
    named = minimize(bowl, [0.0, 0.0], LINE, args=(3.0,), jac=slope, **METHOD)
    place: Any = (bowl, [0.0, 0.0], (3.0,), "SLSQP", slope, None, None, None, LINE)
    np.testing.assert_array_equal(minimize(*place, seed=0).x, named.x)
    call: Any = minimize
    third = call(*place[:3], constraints=LINE, jac=slope, **METHOD)
    np.testing.assert_array_equal(third.x, named.x)
    with pytest.raises(TypeError, match="positional"):  # twice the same
        minimize(*place, jac=slope)


def test_maxfev_bounds_the_calls_of_each_function() -> None:
    calls = [0, 0, 0]

    def counted(place: int, value: Any) -> Any:
        calls[place] += 1
        return value

    limits = [
        {"type": "ineq", "fun": lambda x: counted(1, 1.0 - x)},
        NonlinearConstraint(lambda x: counted(2, x[:2].sum()), -1.0, 1.0),
    ]
    result = minimize(
        lambda x: counted(0, scipy.optimize.rosen(x)),
        np.full(6, -1.0),
        method="COBYQA",
        constraints=limits,
        options={"maxfev": 100},
        seed=0,
    )
    assert result.status == Status.MAX_QUERIES
    assert 200 < sum(calls) <= 300
    with pytest.warns(OptimizeWarning, match=r"not used: f_target\. "):
        minimize(bowl, [0.0, 0.0], method="COBYQA", options={"f_target": -1.0})


def test_less_usual_calls_are_taken() -> None:
    seen: list[Any] = []

    def note(xk: Any, state: Any, more: int = 3) -> None:
        seen.append((xk, state.nit, more))

    call: Any = minimize
    options = {"ftol": 1e-7, "gtol": 1e-8, "barrier_tol": 1e-8, "eps": 1.0}
    more: Any = {"callback": note, "hess": BFGS(), "hessp": 1, "options": options}
    told = r"not used: hess, hessp, barrier_tol, eps\. .* stands in for 'trust-constr'"
    with pytest.warns(OptimizeWarning, match=told):
        result = call(bowl, 3.0, (1.0,), method="trust-constr", seed=0, **more)
    assert (result.success, result.status, result.method.tol) == (True, 0, 1e-8)
    assert result.x == pytest.approx([1.0], abs=1e-6)
    assert [one[1:] for one in seen] == [(i + 1, 3) for i in range(result.nit)]
    assert isinstance(seen[0][0], np.ndarray)


@pytest.mark.parametrize(
    "form", ["xk", "x", "xk, a=3", "intermediate_result", "other", "progress"]
)
def test_a_callback_is_given_what_scipy_gives_it(form: str) -> None:
    seen: list[Any] = []
    scope: dict[str, Any] = {"seen": seen}
    first = form.split(",")[0]
    exec(f"def call({form}): seen.append({first})", scope)
    method = "auto" if first in ("xk", "x", "intermediate_result") else "SLSQP"
    result = minimize(
        bowl, [0.0, 0.0], LINE, callback=scope["call"], method=method, seed=0
    )
    expected = {"intermediate_result": OptimizeResult, "progress": dszog.Progress}
    assert {type(one) for one in seen} == {expected.get(form, np.ndarray)}
    if form != "progress":
        assert len(seen) == result.nit  # once an iteration
    if form == "intermediate_result":
        assert [one.nit for one in seen] == list(range(1, result.nit + 1))
        assert seen[-1].fun == bowl(seen[-1].x)


def by_name(*, intermediate_result: OptimizeResult) -> bool:
    return bool(intermediate_result.nit == 2)


def raising(xk: FloatArray) -> None:
    raise StopIteration


@pytest.mark.parametrize(
    ("callback", "nit"),
    [
        (by_name, 2),
        (raising, 1),
        (lambda progress: progress.iteration == 2, 2),
        (lambda x: np.all(x < 99.0), 1),
    ],
)
def test_a_callback_may_return_true_or_raise_to_stop(callback: Any, nit: int) -> None:
    result = minimize(
        lambda x: np.exp(x).sum(), [3.0, 3.0], LINE, callback=callback, **METHOD
    )
    assert (result.status, result.nit) == (Status.STOPPED_BY_CALLBACK, nit)


def test_other_values_that_a_callback_returns_do_not_stop_the_run() -> None:
    result = minimize(bowl, [3.0, 3.0], LINE, callback=lambda x: x, **METHOD)
    assert result.status == Status.CONVERGED


def test_options_of_scipy_are_arguments_here(capfd: pytest.CaptureFixture[str]) -> None:
    result = minimize(
        *(scipy.optimize.rosen, [3.0, -3.0], LINE),
        options={"maxiter": 3, "disp": 1, "ftol": 1e-9, "catol": 0.5},
        **METHOD,
    )
    assert (result.nit, result.constraint_tol, result.method.tol) == (3, 0.5, 1e-9)
    assert "iteration" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            {"hess": BFGS(), "hessp": 1, "options": {"eps": 1, "iprint": 2}},
            InputTypeError,
            ("'hess'", "'hessp'", "'eps'", "'iprint'", "progress=", "Lengths of diff"),
        ),
        (
            {"options": {"eps": 1, "rhobeg": 2, "stepsize": 3}},
            InputError,
            ("'eps'", "'rhobeg'", "x_scale", "Did you mean 'step_size'"),
        ),
        (
            {"options": {"maxiter": 3}, "max_iterations": 4},
            InputError,
            ("options['maxiter'] is `max_iterations`, got 3 beside 4",),
        ),
        (
            {"options": {"ftol": 1.0, "gtol": 2.0}, "tol": 3.0},
            InputError,
            ("options['ftol'] is `tol`, got 1.0 beside 3.0",),
        ),
        (
            {"options": {"stepsize": 3}, "method": "SLSQP"},
            InputError,
            ("method 'SLSQP' has no option 'stepsize'",),
        ),
        (
            {"fun": Losses.from_function(bowl), "args": (1,)},
            InputError,
            ("go with a function fun", "gradient="),
        ),
        ({"jac": 3}, InputTypeError, ("`jac` must be a function, got 3",)),
        ({"jac": slope, "args": (1, 2)}, InputTypeError, ("must take 3 arguments",)),
        (
            {"method": "TNC", "hess": BFGS(), "options": {"eps": 1}},
            InputTypeError,
            ("call scipy.optimize.minimize", "'hess'", "'eps'"),
        ),
    ],
    ids=list("abcdefghi"),
)
def test_what_cannot_be_is_named_all_at_once(
    call: dict[str, Any], kind: type[Exception], words: tuple[str, ...]
) -> None:
    with pytest.raises(kind) as error:
        minimize(**{"fun": bowl, "x0": [0.0, 0.0], "constraints": LINE, **call})
    for word in words:
        assert word in str(error.value)
