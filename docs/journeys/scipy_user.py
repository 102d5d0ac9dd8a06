"""Somebody who has used scipy.optimize.minimize for years."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.optimize
from steps import Journey

journey = Journey("A user of scipy.optimize")


def fun(x: Any) -> float:
    """Return what SciPy's tutorial minimises."""
    return float((x[0] - 1) ** 2 + (x[1] - 2.5) ** 2)


constraints = [
    {"type": "ineq", "fun": lambda x: x[0] - 2 * x[1] + 2},
    {"type": "ineq", "fun": lambda x: -x[0] - 2 * x[1] + 6},
    {"type": "ineq", "fun": lambda x: -x[0] + 2 * x[1] + 2},
]
bounds = [(0, None), (0, None)]

with journey.step("the problem of SciPy's tutorial, with SLSQP"):
    known = scipy.optimize.minimize(
        fun, (2, 0), method="SLSQP", bounds=bounds, constraints=constraints
    )

with journey.step("import dszog"):
    import dszog

with journey.step("only the module is changed: the same answer"):
    result = dszog.minimize(
        fun, (2, 0), method="SLSQP", bounds=bounds, constraints=constraints
    )
    print(f"    SLSQP {known.x.round(4)}, dszog {result.x.round(4)}")
    assert np.allclose(result.x, known.x, atol=1e-4)

with journey.step("options, gradient, arguments and tolerance as in SciPy"):
    result = dszog.minimize(
        lambda x, a: a * fun(x),
        (2, 0),
        args=(1.0,),
        jac="2-point",
        bounds=bounds,
        constraints=constraints,
        tol=1e-6,
        options={"maxiter": 100},
    )
    assert np.allclose(result.x, known.x, atol=1e-4)

with journey.mistake(
    "what there is not, all of it at once", TypeError, "'hess'", "'eps'"
):
    dszog.minimize(  # type: ignore[call-arg]
        fun, (2, 0), constraints, hess=scipy.optimize.BFGS(), options={"eps": 1e-8}
    )

with journey.mistake(
    "a method without constraints", ValueError, "no method 'bfgs'", "leave `method` out"
):
    dszog.minimize(fun, (2, 0), constraints, method="BFGS")

with journey.step("the result is SciPy's, with the fields one knows"):
    assert isinstance(result, scipy.optimize.OptimizeResult)
    assert {"x", "fun", "success", "message", "nit", "nfev", "maxcv"} <= set(result)
    assert isinstance(result.success, bool)
    assert result.fun == fun(result.x)
    assert "constraints checked" in result.message

with journey.step("few constraints are SciPy's: SLSQP needs fewer calls"):
    print(f"    calls of the objective: SLSQP {known.nfev}, dszog {result.nfev:,}")
    assert known.nfev < result.nfev < 100

# What they came for: a NonlinearConstraint with very many rows.
angles = np.linspace(0, 2 * np.pi, 20_000)
normals = np.c_[np.cos(angles), np.sin(angles)]
disc = scipy.optimize.NonlinearConstraint(lambda x: normals @ x, -np.inf, 1.0)

with journey.step("a NonlinearConstraint with 20,000 rows: taken as it is"):
    result = dszog.minimize(fun, (0, 0), disc, max_iterations=500, seed=0)
    print(f"    {result.x.round(3)}, {result.message}")
    assert result.success
    assert np.linalg.norm(result.x) <= 1.011

with journey.step("the same, so that only the rows that are asked for are made"):
    rows = dszog.Constraints(lambda points, j: points @ normals[j].T - 1.0, len(angles))
    result = dszog.minimize(fun, (0, 0), rows, max_iterations=500, seed=0)
    assert result.success

with journey.step("a callback that stops; it gets more than a vector"):
    seen: list[Any] = []

    def stop(progress: dszog.Progress) -> None:
        seen.append(progress)
        if progress.iteration == 100:
            raise StopIteration

    result = dszog.minimize(fun, (0, 0), rows, callback=stop, seed=0)
    print(f"    {result.message}")
    assert not result.success or result.maxcv <= 0.01
    assert seen[-1].x.shape == (2,)

with journey.step("a wrong sign, as happens: the message asks about it"):
    turned = {"type": "ineq", "fun": lambda x: x @ x - 1.0}  # meant: within the circle
    result = dszog.minimize(lambda x: x.sum(), (2, 0), turned, seed=0)
    print(f"    {result.message}")
    assert "look at their signs" in result.message

journey.arrive()
