"""Small problems with known optima, to compare with solvers for small problems.

Those of Hock and Schittkowski ("Test Examples for Nonlinear Programming Codes", 1981),
written down from their formulas, by their numbers. Odd numbers may be used to choose
constants of a method; figures are reported for even ones, which nothing was chosen on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, pi, sin, sqrt
from typing import Any, TypeAlias

import numpy as np

Function: TypeAlias = Callable[[Any], Any]
INF = np.inf


@dataclass(frozen=True, kw_only=True)
class SmallProblem:
    """Minimise `fun` where `above` is not negative and `equal` vanishes."""

    number: int
    fun: Function
    x0: tuple[float, ...]
    optimum: float
    above: Function | None = None  # -> list of values that want to be >= 0
    equal: Function | None = None  # -> list of values that want to be 0
    lower: tuple[float, ...] = ()
    upper: tuple[float, ...] = ()

    @property
    def dim(self) -> int:
        return len(self.x0)

    @property
    def bounds(self) -> list[tuple[float, float]] | None:
        if not self.lower and not self.upper:
            return None
        lower = self.lower or (-INF,) * self.dim
        upper = self.upper or (INF,) * self.dim
        return list(zip(lower, upper, strict=True))

    @property
    def n_functions(self) -> int:
        """Values of the objective and all constraints at a point."""
        n = 1 if self.above is None else 1 + len(self.above(self.x0))
        return n if self.equal is None else n + len(self.equal(self.x0))

    def constraints(self) -> list[dict[str, Any]]:
        """Return the constraints as SciPy takes them."""
        made: list[dict[str, Any]] = []
        for kind, values in (("ineq", self.above), ("eq", self.equal)):
            if values is not None:
                made.append({"type": kind, "fun": _as_array(values)})
        return made

    def violation(self, x: Any) -> float:
        worst = 0.0
        if self.above is not None:
            worst = max(worst, -min(self.above(x)))
        if self.equal is not None:
            worst = max(worst, *(abs(value) for value in self.equal(x)))
        return float(worst)

    def is_solved(self, x: Any, gap: float = 1e-2, violation: float = 1e-6) -> bool:
        """Whether a point is feasible and as good as the optimum, or better."""
        excess = self.fun(x) - self.optimum
        return bool(
            excess <= gap * max(abs(self.optimum), 1.0)
            and self.violation(x) <= violation
        )


def _as_array(values: Function) -> Function:
    return lambda x: np.array(values(x), dtype=float)


def _rosenbrock(x: Any) -> Any:
    return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2


def _of_78(x: Any) -> list[Any]:
    return [
        sum(v * v for v in x) - 10,
        x[1] * x[2] - 5 * x[3] * x[4],
        x[0] ** 3 + x[1] ** 3 + 1,
    ]


def _product(x: Any) -> Any:
    return x[0] * x[1] * x[2] * x[3] * x[4]


def _of_113(x: Any) -> Any:
    a, b, c, d, e, f, g, h, i, j = x
    return (
        a * a
        + b * b
        + a * b
        - 14 * a
        - 16 * b
        + (c - 10) ** 2
        + 4 * (d - 5) ** 2
        + (e - 3) ** 2
        + 2 * (f - 1) ** 2
        + 5 * g * g
        + 7 * (h - 11) ** 2
        + 2 * (i - 10) ** 2
        + (j - 7) ** 2
        + 45
    )


def _above_113(x: Any) -> list[Any]:
    a, b, c, d, e, f, g, h, i, j = x
    return [
        105 - 4 * a - 5 * b + 3 * g - 9 * h,
        -10 * a + 8 * b + 17 * g - 2 * h,
        8 * a - 2 * b - 5 * i + 2 * j + 12,
        -3 * (a - 2) ** 2 - 4 * (b - 3) ** 2 - 2 * c * c + 7 * d + 120,
        -5 * a * a - 8 * b - (c - 6) ** 2 + 2 * d + 40,
        -0.5 * (a - 8) ** 2 - 2 * (b - 4) ** 2 - 3 * e * e + f + 30,
        -a * a - 2 * (b - 2) ** 2 + 2 * a * b - 14 * e + 6 * f,
        3 * a - 6 * b - 12 * (i - 8) ** 2 + 7 * j,
    ]


def _of_100(x: Any) -> Any:
    a, b, c, d, e, f, g = x
    return (
        (a - 10) ** 2
        + 5 * (b - 12) ** 2
        + c**4
        + 3 * (d - 11) ** 2
        + 10 * e**6
        + 7 * f * f
        + g**4
        - 4 * f * g
        - 10 * f
        - 8 * g
    )


def _above_100(x: Any) -> list[Any]:
    a, b, c, d, e, f, g = x
    return [
        127 - 2 * a * a - 3 * b**4 - c - 4 * d * d - 5 * e,
        282 - 7 * a - 3 * b - 10 * c * c - d + e,
        196 - 23 * a - b * b - 6 * f * f + 8 * g,
        -4 * a * a - b * b + 3 * a * b - 2 * c * c - 5 * f + 11 * g,
    ]


def _of_43(x: Any) -> Any:
    a, b, c, d = x
    return a * a + b * b + 2 * c * c + d * d - 5 * a - 5 * b - 21 * c + 7 * d


def _above_43(x: Any) -> list[Any]:
    a, b, c, d = x
    return [
        8 - a * a - b * b - c * c - d * d - a + b - c + d,
        10 - a * a - 2 * b * b - c * c - 2 * d * d + a + d,
        5 - 2 * a * a - b * b - c * c - 2 * a + b + d,
    ]


def _of_76(x: Any) -> Any:
    a, b, c, d = x
    return a * a + 0.5 * b * b + c * c + 0.5 * d * d - a * c + c * d - a - 3 * b + c - d


def _problem(number: int, x0: Any, optimum: float, fun: Function, **more: Any) -> Any:
    return SmallProblem(
        number=number,
        fun=fun,
        x0=tuple(float(v) for v in x0),
        optimum=optimum,
        **more,
    )


_S2, _S3 = sqrt(2.0), sqrt(3.0)

PROBLEMS: tuple[SmallProblem, ...] = (
    _problem(1, (-2, 1), 0.0, _rosenbrock, lower=(-INF, -1.5)),
    _problem(2, (-2, 1), 0.0504261879, _rosenbrock, lower=(-INF, 1.5)),
    _problem(
        3, (10, 1), 0.0, lambda x: x[1] + 1e-5 * (x[1] - x[0]) ** 2, lower=(-INF, 0)
    ),
    _problem(
        4, (1.125, 0.125), 8 / 3, lambda x: (x[0] + 1) ** 3 / 3 + x[1], lower=(1, 0)
    ),
    _problem(
        5,
        (0, 0),
        -sqrt(3) / 2 - pi / 3,
        lambda x: sin(x[0] + x[1]) + (x[0] - x[1]) ** 2 - 1.5 * x[0] + 2.5 * x[1] + 1,
        lower=(-1.5, -3),
        upper=(4, 3),
    ),
    _problem(
        6,
        (-1.2, 1),
        0.0,
        lambda x: (1 - x[0]) ** 2,
        equal=lambda x: [10 * (x[1] - x[0] ** 2)],
    ),
    _problem(
        7,
        (2, 2),
        -_S3,
        lambda x: log(1 + x[0] ** 2) - x[1],
        equal=lambda x: [(1 + x[0] ** 2) ** 2 + x[1] ** 2 - 4],
    ),
    _problem(
        8,
        (2, 1),
        -1.0,
        lambda x: -1.0,
        equal=lambda x: [x[0] ** 2 + x[1] ** 2 - 25, x[0] * x[1] - 9],
    ),
    _problem(
        9,
        (0, 0),
        -0.5,
        lambda x: sin(pi * x[0] / 12) * np.cos(pi * x[1] / 16),
        equal=lambda x: [4 * x[0] - 3 * x[1]],
    ),
    _problem(
        10,
        (-10, 10),
        -1.0,
        lambda x: x[0] - x[1],
        above=lambda x: [-3 * x[0] ** 2 + 2 * x[0] * x[1] - x[1] ** 2 + 1],
    ),
    _problem(
        11,
        (4.9, 0.1),
        -8.498464223,
        lambda x: (x[0] - 5) ** 2 + x[1] ** 2 - 25,
        above=lambda x: [-(x[0] ** 2) + x[1]],
    ),
    _problem(
        12,
        (0, 0),
        -30.0,
        lambda x: 0.5 * x[0] ** 2 + x[1] ** 2 - x[0] * x[1] - 7 * x[0] - 7 * x[1],
        above=lambda x: [25 - 4 * x[0] ** 2 - x[1] ** 2],
    ),
    _problem(
        13,
        (-2, -2),
        1.0,
        lambda x: (x[0] - 2) ** 2 + x[1] ** 2,
        above=lambda x: [(1 - x[0]) ** 3 - x[1]],
        lower=(0, 0),
    ),
    _problem(
        14,
        (2, 2),
        9 - 2.875 * sqrt(7),
        lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
        above=lambda x: [-0.25 * x[0] ** 2 - x[1] ** 2 + 1],
        equal=lambda x: [x[0] - 2 * x[1] + 1],
    ),
    _problem(
        15,
        (-2, 1),
        306.5,
        _rosenbrock,
        above=lambda x: [x[0] * x[1] - 1, x[0] + x[1] ** 2],
        upper=(0.5, INF),
    ),
    _problem(
        16,
        (-2, 1),
        0.25,
        _rosenbrock,
        above=lambda x: [x[0] + x[1] ** 2, x[0] ** 2 + x[1]],
        lower=(-2, -INF),
        upper=(0.5, 1),
    ),
    _problem(
        17,
        (-2, 1),
        1.0,
        _rosenbrock,
        above=lambda x: [x[1] ** 2 - x[0], x[0] ** 2 - x[1]],
        lower=(-2, -INF),
        upper=(0.5, 1),
    ),
    _problem(
        18,
        (2, 2),
        5.0,
        lambda x: 0.01 * x[0] ** 2 + x[1] ** 2,
        above=lambda x: [x[0] * x[1] - 25, x[0] ** 2 + x[1] ** 2 - 25],
        lower=(2, 0),
        upper=(50, 50),
    ),
    _problem(
        19,
        (20.1, 5.84),
        -6961.81381,
        lambda x: (x[0] - 10) ** 3 + (x[1] - 20) ** 3,
        above=lambda x: [
            (x[0] - 5) ** 2 + (x[1] - 5) ** 2 - 100,
            -((x[1] - 5) ** 2) - (x[0] - 6) ** 2 + 82.81,
        ],
        lower=(13, 0),
        upper=(100, 100),
    ),
    _problem(
        20,
        (-2, 1),
        81.5 - 25 * _S3,
        _rosenbrock,
        above=lambda x: [
            x[0] + x[1] ** 2,
            x[0] ** 2 + x[1],
            x[0] ** 2 + x[1] ** 2 - 1,
        ],
        lower=(-0.5, -INF),
        upper=(0.5, INF),
    ),
    _problem(
        21,
        (-1, -1),
        -99.96,
        lambda x: 0.01 * x[0] ** 2 + x[1] ** 2 - 100,
        above=lambda x: [10 * x[0] - x[1] - 10],
        lower=(2, -50),
        upper=(50, 50),
    ),
    _problem(
        22,
        (2, 2),
        1.0,
        lambda x: (x[0] - 2) ** 2 + (x[1] - 1) ** 2,
        above=lambda x: [-x[0] - x[1] + 2, -(x[0] ** 2) + x[1]],
    ),
    _problem(
        23,
        (3, 1),
        2.0,
        lambda x: x[0] ** 2 + x[1] ** 2,
        above=lambda x: [
            x[0] + x[1] - 1,
            x[0] ** 2 + x[1] ** 2 - 1,
            9 * x[0] ** 2 + x[1] ** 2 - 9,
            x[0] ** 2 - x[1],
            x[1] ** 2 - x[0],
        ],
        lower=(-50, -50),
        upper=(50, 50),
    ),
    _problem(
        24,
        (1, 0.5),
        -1.0,
        lambda x: ((x[0] - 3) ** 2 - 9) * x[1] ** 3 / (27 * _S3),
        above=lambda x: [
            x[0] / _S3 - x[1],
            x[0] + _S3 * x[1],
            -x[0] - _S3 * x[1] + 6,
        ],
        lower=(0, 0),
    ),
    _problem(
        26,
        (-2.6, 2, 2),
        0.0,
        lambda x: (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4,
        equal=lambda x: [(1 + x[1] ** 2) * x[0] + x[2] ** 4 - 3],
    ),
    _problem(
        27,
        (2, 2, 2),
        0.04,
        lambda x: 0.01 * (x[0] - 1) ** 2 + (x[1] - x[0] ** 2) ** 2,
        equal=lambda x: [x[0] + x[2] ** 2 + 1],
    ),
    _problem(
        28,
        (-4, 1, 1),
        0.0,
        lambda x: (x[0] + x[1]) ** 2 + (x[1] + x[2]) ** 2,
        equal=lambda x: [x[0] + 2 * x[1] + 3 * x[2] - 1],
    ),
    _problem(
        29,
        (1, 1, 1),
        -16 * _S2,
        lambda x: -x[0] * x[1] * x[2],
        above=lambda x: [48 - x[0] ** 2 - 2 * x[1] ** 2 - 4 * x[2] ** 2],
    ),
    _problem(
        30,
        (1, 1, 1),
        1.0,
        lambda x: x[0] ** 2 + x[1] ** 2 + x[2] ** 2,
        above=lambda x: [x[0] ** 2 + x[1] ** 2 - 1],
        lower=(1, -10, -10),
        upper=(10, 10, 10),
    ),
    _problem(
        31,
        (1, 1, 1),
        6.0,
        lambda x: 9 * x[0] ** 2 + x[1] ** 2 + 9 * x[2] ** 2,
        above=lambda x: [x[0] * x[1] - 1],
        lower=(-10, 1, -10),
        upper=(10, 10, 1),
    ),
    _problem(
        32,
        (0.1, 0.7, 0.2),
        1.0,
        lambda x: (x[0] + 3 * x[1] + x[2]) ** 2 + 4 * (x[0] - x[1]) ** 2,
        above=lambda x: [6 * x[1] + 4 * x[2] - x[0] ** 3 - 3],
        equal=lambda x: [1 - x[0] - x[1] - x[2]],
        lower=(0, 0, 0),
    ),
    _problem(
        33,
        (0, 0, 3),
        _S2 - 6,
        lambda x: (x[0] - 1) * (x[0] - 2) * (x[0] - 3) + x[2],
        above=lambda x: [
            x[2] ** 2 - x[1] ** 2 - x[0] ** 2,
            x[0] ** 2 + x[1] ** 2 + x[2] ** 2 - 4,
        ],
        lower=(0, 0, 0),
        upper=(INF, INF, 5),
    ),
    _problem(
        34,
        (0, 1.05, 2.9),
        -log(log(10)),
        lambda x: -x[0],
        above=lambda x: [x[1] - np.exp(x[0]), x[2] - np.exp(x[1])],
        lower=(0, 0, 0),
        upper=(100, 100, 10),
    ),
    _problem(
        35,
        (0.5, 0.5, 0.5),
        1 / 9,
        lambda x: (
            9
            - 8 * x[0]
            - 6 * x[1]
            - 4 * x[2]
            + 2 * x[0] ** 2
            + 2 * x[1] ** 2
            + x[2] ** 2
            + 2 * x[0] * x[1]
            + 2 * x[0] * x[2]
        ),
        above=lambda x: [3 - x[0] - x[1] - 2 * x[2]],
        lower=(0, 0, 0),
    ),
    _problem(
        36,
        (10, 10, 10),
        -3300.0,
        lambda x: -x[0] * x[1] * x[2],
        above=lambda x: [72 - x[0] - 2 * x[1] - 2 * x[2]],
        lower=(0, 0, 0),
        upper=(20, 11, 42),
    ),
    _problem(
        37,
        (10, 10, 10),
        -3456.0,
        lambda x: -x[0] * x[1] * x[2],
        above=lambda x: [
            72 - x[0] - 2 * x[1] - 2 * x[2],
            x[0] + 2 * x[1] + 2 * x[2],
        ],
        lower=(0, 0, 0),
        upper=(42, 42, 42),
    ),
    _problem(
        39,
        (2, 2, 2, 2),
        -1.0,
        lambda x: -x[0],
        equal=lambda x: [
            x[1] - x[0] ** 3 - x[2] ** 2,
            x[0] ** 2 - x[1] - x[3] ** 2,
        ],
    ),
    _problem(
        40,
        (0.8, 0.8, 0.8, 0.8),
        -0.25,
        lambda x: -x[0] * x[1] * x[2] * x[3],
        equal=lambda x: [
            x[0] ** 3 + x[1] ** 2 - 1,
            x[0] ** 2 * x[3] - x[2],
            x[3] ** 2 - x[1],
        ],
    ),
    _problem(
        42,
        (1, 1, 1, 1),
        28 - 10 * _S2,
        lambda x: sum((x[i] - i - 1) ** 2 for i in range(4)),
        equal=lambda x: [x[0] - 2, x[2] ** 2 + x[3] ** 2 - 2],
    ),
    _problem(43, (0, 0, 0, 0), -44.0, _of_43, above=_above_43),
    _problem(
        45,
        (2, 2, 2, 2, 2),
        1.0,
        lambda x: 2 - _product(x) / 120,
        lower=(0, 0, 0, 0, 0),
        upper=(1, 2, 3, 4, 5),
    ),
    _problem(
        46,
        (_S2 / 2, 1.75, 0.5, 2, 2),
        0.0,
        lambda x: (
            (x[0] - x[1]) ** 2 + (x[2] - 1) ** 2 + (x[3] - 1) ** 4 + (x[4] - 1) ** 6
        ),
        equal=lambda x: [
            x[0] ** 2 * x[3] + sin(x[3] - x[4]) - 1,
            x[1] + x[2] ** 4 * x[3] ** 2 - 2,
        ],
    ),
    _problem(
        48,
        (3, 5, -3, 2, -2),
        0.0,
        lambda x: (x[0] - 1) ** 2 + (x[1] - x[2]) ** 2 + (x[3] - x[4]) ** 2,
        equal=lambda x: [sum(x) - 5, x[2] - 2 * (x[3] + x[4]) + 3],
    ),
    _problem(
        51,
        (2.5, 0.5, 2, -1, 0.5),
        0.0,
        lambda x: (
            (x[0] - x[1]) ** 2
            + (x[1] + x[2] - 2) ** 2
            + (x[3] - 1) ** 2
            + (x[4] - 1) ** 2
        ),
        equal=lambda x: [
            x[0] + 3 * x[1] - 4,
            x[2] + x[3] - 2 * x[4],
            x[1] - x[4],
        ],
    ),
    _problem(
        60,
        (2, 2, 2),
        0.03256820025,
        lambda x: (x[0] - 1) ** 2 + (x[0] - x[1]) ** 2 + (x[1] - x[2]) ** 4,
        equal=lambda x: [x[0] * (1 + x[1] ** 2) + x[2] ** 4 - 4 - 3 * _S2],
        lower=(-10, -10, -10),
        upper=(10, 10, 10),
    ),
    _problem(
        61,
        (0, 0, 0),
        -143.6461422,
        lambda x: (
            4 * x[0] ** 2
            + 2 * x[1] ** 2
            + 2 * x[2] ** 2
            - 33 * x[0]
            + 16 * x[1]
            - 24 * x[2]
        ),
        equal=lambda x: [3 * x[0] - 2 * x[1] ** 2 - 7, 4 * x[0] - x[2] ** 2 - 11],
    ),
    _problem(
        63,
        (2, 2, 2),
        961.7151721,
        lambda x: (
            1000 - x[0] ** 2 - 2 * x[1] ** 2 - x[2] ** 2 - x[0] * x[1] - x[0] * x[2]
        ),
        equal=lambda x: [
            8 * x[0] + 14 * x[1] + 7 * x[2] - 56,
            x[0] ** 2 + x[1] ** 2 + x[2] ** 2 - 25,
        ],
        lower=(0, 0, 0),
    ),
    _problem(
        64,
        (1, 1, 1),
        6299.842428,
        lambda x: (
            5 * x[0]
            + 50000 / x[0]
            + 20 * x[1]
            + 72000 / x[1]
            + 10 * x[2]
            + 144000 / x[2]
        ),
        above=lambda x: [1 - 4 / x[0] - 32 / x[1] - 120 / x[2]],
        lower=(1e-5, 1e-5, 1e-5),
    ),
    _problem(
        65,
        (-5, 5, 0),
        0.9535288567,
        lambda x: (x[0] - x[1]) ** 2 + (x[0] + x[1] - 10) ** 2 / 9 + (x[2] - 5) ** 2,
        above=lambda x: [48 - x[0] ** 2 - x[1] ** 2 - x[2] ** 2],
        lower=(-4.5, -4.5, -5),
        upper=(4.5, 4.5, 5),
    ),
    _problem(
        66,
        (0, 1.05, 2.9),
        0.5181632741,
        lambda x: 0.2 * x[2] - 0.8 * x[0],
        above=lambda x: [x[1] - np.exp(x[0]), x[2] - np.exp(x[1])],
        lower=(0, 0, 0),
        upper=(100, 100, 10),
    ),
    _problem(
        71,
        (1, 5, 5, 1),
        17.0140173,
        lambda x: x[0] * x[3] * (x[0] + x[1] + x[2]) + x[2],
        above=lambda x: [x[0] * x[1] * x[2] * x[3] - 25],
        equal=lambda x: [sum(v * v for v in x) - 40],
        lower=(1, 1, 1, 1),
        upper=(5, 5, 5, 5),
    ),
    _problem(
        72,
        (1, 1, 1, 1),
        727.67937,
        lambda x: 1 + sum(x),
        above=lambda x: [
            0.0401 - 4 / x[0] - 2.25 / x[1] - 1 / x[2] - 0.25 / x[3],
            0.010085 - 0.16 / x[0] - 0.36 / x[1] - 0.64 / x[2] - 0.64 / x[3],
        ],
        lower=(1e-3, 1e-3, 1e-3, 1e-3),
        upper=(4e5, 3e5, 2e5, 1e5),
    ),
    _problem(
        76,
        (0.5, 0.5, 0.5, 0.5),
        -4.681818181,
        _of_76,
        above=lambda x: [
            5 - x[0] - 2 * x[1] - x[2] - x[3],
            4 - 3 * x[0] - x[1] - 2 * x[2] + x[3],
            x[1] + 4 * x[2] - 1.5,
        ],
        lower=(0, 0, 0, 0),
    ),
    _problem(
        77,
        (2, 2, 2, 2, 2),
        0.24150513,
        lambda x: (
            (x[0] - 1) ** 2
            + (x[0] - x[1]) ** 2
            + (x[2] - 1) ** 2
            + (x[3] - 1) ** 4
            + (x[4] - 1) ** 6
        ),
        equal=lambda x: [
            x[0] ** 2 * x[3] + sin(x[3] - x[4]) - 2 * _S2,
            x[1] + x[2] ** 4 * x[3] ** 2 - 8 - _S2,
        ],
    ),
    _problem(78, (-2, 1.5, 2, -1, -1), -2.91970041, _product, equal=_of_78),
    _problem(
        79,
        (2, 2, 2, 2, 2),
        0.0787768209,
        lambda x: (
            (x[0] - 1) ** 2
            + (x[0] - x[1]) ** 2
            + (x[1] - x[2]) ** 2
            + (x[2] - x[3]) ** 4
            + (x[3] - x[4]) ** 4
        ),
        equal=lambda x: [
            x[0] + x[1] ** 2 + x[2] ** 3 - 2 - 3 * _S2,
            x[1] - x[2] ** 2 + x[3] + 2 - 2 * _S2,
            x[0] * x[4] - 2,
        ],
    ),
    _problem(
        80,
        (-2, 2, 2, -1, -1),
        0.0539498478,
        lambda x: exp(min(_product(x), 700.0)),
        equal=_of_78,
        lower=(-2.3, -2.3, -3.2, -3.2, -3.2),
        upper=(2.3, 2.3, 3.2, 3.2, 3.2),
    ),
    _problem(
        81,
        (-2, 2, 2, -1, -1),
        0.0539498478,
        lambda x: exp(min(_product(x), 700.0)) - 0.5 * (x[0] ** 3 + x[1] ** 3 + 1) ** 2,
        equal=_of_78,
        lower=(-2.3, -2.3, -3.2, -3.2, -3.2),
        upper=(2.3, 2.3, 3.2, 3.2, 3.2),
    ),
    _problem(100, (1, 2, 0, 4, 0, 1, 1), 680.6300573, _of_100, above=_above_100),
    _problem(
        113, (2, 3, 5, 5, 1, 2, 7, 3, 6, 10), 24.3062091, _of_113, above=_above_113
    ),
)
"""Every problem, by ascending number."""

TRAINING = tuple(problem for problem in PROBLEMS if problem.number % 2)
HELD_OUT = tuple(problem for problem in PROBLEMS if not problem.number % 2)
