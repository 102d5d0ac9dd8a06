"""Ten scripts for ``scipy.optimize.minimize``; what may change is the import alone.

Each is given the function it would import. Four are problems of SciPy's documentation.
Run as a program, this prints the table of ``docs/coming_from.md``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize
from scipy.optimize import (
    Bounds,
    LinearConstraint,
    NonlinearConstraint,
    rosen,
    rosen_der,
)


def reference_page(minimize: Any) -> Any:
    """SciPy's reference of `minimize`: dictionaries, and bounds as pairs."""
    constraints = (
        {"type": "ineq", "fun": lambda x: x[0] - 2 * x[1] + 2},
        {"type": "ineq", "fun": lambda x: -x[0] - 2 * x[1] + 6},
        {"type": "ineq", "fun": lambda x: -x[0] + 2 * x[1] + 2},
    )
    return minimize(
        lambda x: (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2,
        (2, 0),
        method="SLSQP",
        bounds=((0, None), (0, None)),
        constraints=constraints,
    )


def tutorial_slsqp(minimize: Any) -> Any:
    """SciPy's tutorial: Rosenbrock's function, all gradients given."""
    within = {
        "type": "ineq",
        "fun": lambda x: np.array(
            [1 - x[0] - 2 * x[1], 1 - x[0] ** 2 - x[1], 1 - x[0] ** 2 + x[1]]
        ),
        "jac": lambda x: np.array([[-1, -2], [-2 * x[0], -1], [-2 * x[0], 1]]),
    }
    on = {
        "type": "eq",
        "fun": lambda x: np.array([2 * x[0] + x[1] - 1]),
        "jac": lambda x: np.array([2.0, 1.0]),
    }
    return minimize(
        rosen,
        np.array([0.5, 0.0]),
        method="SLSQP",
        jac=rosen_der,
        constraints=[on, within],
        options={"ftol": 1e-9, "disp": False},
        bounds=Bounds([0, -0.5], [1.0, 2.0]),
    )


def tutorial_cobyqa(minimize: Any) -> Any:
    """The same without gradients, with SciPy's newer constraints."""
    return minimize(
        rosen,
        np.array([0.5, 0.0]),
        method="COBYQA",
        constraints=[
            LinearConstraint([[1, 2], [2, 1]], [-np.inf, 1], [1, 1]),
            NonlinearConstraint(
                lambda x: [x[0] ** 2 + x[1], x[0] ** 2 - x[1]], -np.inf, 1
            ),
        ],
        bounds=Bounds([0, -0.5], [1.0, 2.0]),
        options={"disp": False, "maxiter": 500},
    )


def tutorial_sign(minimize: Any) -> Any:
    """The tutorial's older problem, maximised by an argument that is the sign."""

    def fun(x: Any, sign: float = 1.0) -> float:
        return float(sign * (2 * x[0] * x[1] + 2 * x[0] - x[0] ** 2 - 2 * x[1] ** 2))

    def slope(x: Any, sign: float = 1.0) -> Any:
        return sign * np.array([-2 * x[0] + 2 * x[1] + 2, 2 * x[0] - 4 * x[1]])

    constraints = (
        {
            "type": "eq",
            "fun": lambda x: np.array([x[0] ** 3 - x[1]]),
            "jac": lambda x: np.array([3.0 * x[0] ** 2, -1.0]),
        },
        {"type": "ineq", "fun": lambda x, low: x[1] - low, "args": (1.0,)},
    )
    return minimize(
        fun,
        [-1.0, 1.0],
        args=(-1.0,),
        jac=slope,
        constraints=constraints,
        method="SLSQP",
        options={"maxiter": 100},
    )


def hock_schittkowski_71(minimize: Any) -> Any:
    """A classic in SciPy's order of arguments, with a callback of the iterates."""
    path: list[Any] = []
    result = minimize(
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        [1.0, 5.0, 5.0, 1.0],
        (),
        "SLSQP",
        bounds=[(1, 5)] * 4,
        constraints=[
            {"type": "ineq", "fun": lambda x: np.prod(x) - 25},
            {"type": "eq", "fun": lambda x: np.sum(x**2) - 40},
        ],
        callback=lambda xk: path.append(xk.copy()),
    )
    assert len(path) == result.nit
    assert np.allclose(path[-1], result.x, atol=1e-4)
    return result


def portfolio(minimize: Any) -> Any:
    """Weights of least variance for a return; `fun` returns its gradient too."""
    rng = np.random.default_rng(3)
    moves = rng.normal(size=(60, 8)) * np.linspace(0.5, 2.0, 8)
    gains, covariance = np.linspace(0.02, 0.11, 8), np.cov(moves.T)
    return minimize(
        lambda w, risk: (w @ risk @ w, 2 * risk @ w),
        np.full(8, 1 / 8),
        args=(covariance,),
        jac=True,
        method="SLSQP",
        bounds=[(0, 1)] * 8,
        constraints=[
            {"type": "eq", "fun": lambda w: w.sum() - 1},
            {"type": "ineq", "fun": lambda w: w @ gains - 0.07},
        ],
        tol=1e-8,
    )


def loaded_die(minimize: Any) -> Any:
    """The distribution of most entropy with mean 4.5."""
    faces = np.arange(1, 7)
    return minimize(
        lambda p: np.sum(p * np.log(p)),
        np.full(6, 1 / 6),
        method="SLSQP",
        bounds=Bounds(1e-6, 1.0),
        constraints=LinearConstraint(np.array([np.ones(6), faces]), [1, 4.5], [1, 4.5]),
    )


def monotone_fit(minimize: Any) -> Any:
    """A fit that may not fall, watched by SciPy's newer callback."""
    t = np.linspace(0, 1, 12)
    data = np.sqrt(t) + 0.2 * np.sin(9 * t)
    best: list[float] = []

    def note(intermediate_result: Any) -> None:
        best.append(intermediate_result.fun)

    result = minimize(
        lambda y: np.sum((y - data) ** 2),
        np.full(12, 0.5),
        method="SLSQP",
        constraints=LinearConstraint(np.diff(np.eye(12), axis=0), 0, np.inf),
        callback=note,
        options={"maxiter": 300, "ftol": 1e-10},
    )
    assert best[-1] < best[0]
    return result


def tin_can(minimize: Any) -> Any:
    """The least metal for a can of 330 ml, no wider than 5 cm."""
    return minimize(
        lambda x: 2 * np.pi * x[0] * (x[0] + x[1]),
        [3.0, 10.0],
        method="COBYQA",
        bounds=[(1, 5), (1, 30)],
        constraints=NonlinearConstraint(
            lambda x: np.pi * x[0] ** 2 * x[1],
            330,
            np.inf,
            jac=lambda x: [2 * np.pi * x[0] * x[1], np.pi * x[0] ** 2],
        ),
        options={"maxiter": 1000, "feasibility_tol": 1e-6},
    )


def hanging_chain(minimize: Any) -> Any:
    """A chain of eight links between two nails, 14 variables and 8 equalities."""

    def joints(x: Any) -> Any:
        return np.vstack([[0.0, 0.0], x.reshape(-1, 2), [5.0, 0.0]])

    start = np.c_[np.linspace(0, 5, 9)[1:-1], -np.sin(np.linspace(0, np.pi, 9))[1:-1]]
    return minimize(
        lambda x: joints(x)[:, 1].sum(),
        start.ravel(),
        method="SLSQP",
        constraints={
            "type": "eq",
            "fun": lambda x: np.sum(np.diff(joints(x), axis=0) ** 2, axis=1) - 1,
        },
        options={"maxiter": 200},
    )


SCRIPTS: tuple[Callable[[Any], Any], ...] = (
    *(reference_page, tutorial_slsqp, tutorial_cobyqa, tutorial_sign),
    *(hock_schittkowski_71, portfolio, loaded_die, monotone_fit, tin_can),
    hanging_chain,
)

if __name__ == "__main__":
    import dszog

    for script in SCRIPTS:
        theirs, ours = script(scipy.optimize.minimize), script(dszog.minimize)
        away = float(np.abs(theirs.x - ours.x).max())
        print(
            f"| {script.__name__} | {theirs.fun:.6f} | {ours.fun:.6f} | {away:.0e} | "
            f"{theirs.nfev} | {ours.nfev} | {ours.success} | {ours.status.name}"
        )
