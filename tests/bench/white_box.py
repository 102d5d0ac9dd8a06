"""The best answer of a case, by SLSQP on a growing set of its constraints.

This is how the optima were found that `dszog_bench` keeps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import minimize, nnls

from dszog_bench.cases import Case

SHARES = [1.0, *(1.0 - 1e-9 * 2**k for k in range(29)), *(0.5**k for k in range(1, 30))]


def solve(case: Case, start: Any, n_rounds: int = 200) -> Any:
    """Return a feasible local minimum.

    A feasible point moves within a box around it, which shrinks when that gains little.
    """
    x, rows, radius = feasible_between(case, case.start, start), np.empty(0, int), 0.5
    value = case.objective(x)
    for _ in range(n_rounds):
        moved, rows = _within_box(case, x, radius, rows)
        moved = feasible_between(case, x, moved)
        gained = value - case.objective(moved)
        if gained > 0:
            x, value = moved, value - gained
        if gained > 1e-6 * abs(value):
            radius = min(2.0 * radius, 1.0)
        elif radius < 1e-5:
            break
        else:
            radius /= 4.0
    return x


def _within_box(case: Case, x: Any, radius: float, rows: Any) -> tuple[Any, Any]:
    """Minimise under some constraints; those that are violated most join them."""
    for _ in range(20):
        moved = _under(case, rows, x, radius) if len(rows) else x
        values = case.all_constraints(moved)
        worst = np.argsort(-values)[:30]
        new = np.setdiff1d(worst[values[worst] > 1e-9] if len(rows) else worst, rows)
        if not len(new):
            break
        rows = np.concatenate([rows, new])
    return _under(case, rows, x, radius), rows


def _under(case: Case, rows: Any, x: Any, radius: float) -> Any:
    return minimize(
        case.objective,
        x,
        method="SLSQP",
        bounds=list(zip(x - radius, x + radius, strict=True)),
        constraints={
            "type": "ineq",
            "fun": lambda w: -case.constraints(w[np.newaxis], rows)[0],
        },
        options={"ftol": 1e-12, "maxiter": 200},
    ).x


def feasible_between(case: Case, x: Any, moved: Any) -> Any:
    """Return the farthest tried point on the way from `x` that is feasible."""
    for share in SHARES:
        point = x + share * (moved - x)
        if np.isfinite(point).all() and case.worst(point) <= 0:
            return point
    return x


def first_order_conditions(case: Case, w: Any) -> tuple[float, float]:
    """Return the KKT residual with the best multipliers, and the sum of these."""
    steps = 1e-5 * np.eye(len(w))
    active = np.flatnonzero(case.all_constraints(w) > -1e-6)
    up, down = (
        np.column_stack(
            [
                [case.objective(point) for point in w + sign * steps],
                case.constraints(w + sign * steps, active),
            ]
        )
        for sign in (1, -1)
    )
    slopes = (up - down) / 2e-5
    multipliers, residual = nnls(slopes[:, 1:], -slopes[:, 0])
    return float(residual), float(multipliers.sum())
