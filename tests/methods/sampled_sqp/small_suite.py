"""Small problems with known optima, to compare with solvers for small problems.

Those of Hock and Schittkowski, written down from their formulas, by their numbers. Odd
numbers may be used to choose constants of a method; figures are reported for even ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

Function: TypeAlias = Callable[[Any], Any]
LETTERS = "abcdefghij"  # of the variables
KNOWN = vars(math) | {"exp": np.exp, "cos": np.cos}


@dataclass(frozen=True, kw_only=True)
class SmallProblem:
    """Minimise `fun` where `above` is not negative and `equal` vanishes."""

    number: int
    fun: Function
    x0: tuple[float, ...]
    optimum: float
    above: Function | None = None  # -> list of values that want to be >= 0
    equal: Function | None = None  # -> list of values that want to be 0
    bounds: list[tuple[float, float]] | None = None

    @property
    def dim(self) -> int:
        return len(self.x0)

    @property
    def n_functions(self) -> int:
        """Values of the objective and all constraints at a point."""
        kinds = [kind for kind in (self.above, self.equal) if kind is not None]
        return 1 + sum(len(kind(self.x0)) for kind in kinds)

    def constraints(self) -> list[dict[str, Any]]:
        """Return the constraints as SciPy takes them."""
        return [
            {"type": kind, "fun": lambda x, values=values: np.array(values(x), float)}
            for kind, values in (("ineq", self.above), ("eq", self.equal))
            if values is not None
        ]

    def violation(self, x: Any) -> float:
        above = [] if self.above is None else [-value for value in self.above(x)]
        equal = [] if self.equal is None else map(abs, self.equal(x))
        return float(max([0.0, *above, *equal]))

    def is_solved(self, x: Any, gap: float = 1e-2, violation: float = 1e-6) -> bool:
        """Whether a point is feasible and as good as the optimum, or better."""
        excess = self.fun(x) - self.optimum
        near = excess <= gap * max(abs(self.optimum), 1.0)
        return bool(near and self.violation(x) <= violation)


def _problems() -> Iterator[SmallProblem]:
    """Read the table of the formulas that lies beside this file."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="ascii")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    heads = [k for k, line in enumerate(lines) if not line.startswith(" ")]
    for begin, end in zip(heads, [*heads[1:], len(lines)], strict=True):
        number, rest = lines[begin].split(":")
        start, optimum = rest.split("->")
        x0 = tuple(map(float, _value(f"[{start}]")))
        parts: dict[str, list[str]] = {"": [], ">=": [], "=": [], "within": []}
        for line in lines[begin + 1 : end]:
            kind, _, formula = line.strip().partition(" ")
            if kind not in parts:
                kind, formula = "", line.strip()
            parts[kind].append(formula)
        above, equal = (
            _function(f"[{', '.join(parts[kind])}]", len(x0)) if parts[kind] else None
            for kind in (">=", "=")
        )
        bounds = None
        if parts["within"]:
            lower, upper = (_value(f"[{s}]") for s in parts["within"][0].split(" to "))
            bounds = list(zip(lower, upper, strict=True))
        yield SmallProblem(
            number=int(number),
            fun=_function(parts[""][0], len(x0)),
            x0=x0,
            optimum=_value(optimum),
            above=above,
            equal=equal,
            bounds=bounds,
        )


def _value(text: str) -> Any:
    return eval(text.strip(), KNOWN)


def _function(text: str, dim: int) -> Function:
    made = _value(f"lambda {', '.join(LETTERS[:dim])}: {text}")
    return lambda x: made(*x)


PROBLEMS = tuple(_problems())
"""Every problem, by ascending number."""
