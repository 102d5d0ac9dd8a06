"""Projections and linear minimisers against exact arithmetic, degenerate sets included.

An answer is right if it lies in the set but for rounding and no point of the set is
nearer, or lower; the points of the set to compare with come from
``tests/maths/subproblems/exact.py``, which shares no code with the library. The sets
are made of short fractions, so that they are the same to both.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dszog.contract.arrays import FloatArray
from dszog.errors import DszogError, EmptySetError
from dszog.maths.subproblems import Polyhedron
from tests.maths.subproblems.exact import (
    Set,
    Vector,
    as_set,
    as_vector,
    lowest,
    nearest,
)
from tests.rounding import kernels, other_rounding
from tests.runs import said_by

KINDS = (
    "plain",
    "small whole numbers",
    "repeated rows",
    "opposite rows",
    "nearly parallel rows",
    "narrow",
    "the origin alone",
    "pairs",
    "box",
    "cone of many pairs",
)
POINTS = ("random", "far", "tiny", "in the set but for rounding", "a normal", "zero")
BALLS = ("l2", "l2", "none")
# How far outside an answer may lie, and by how much a point of the set may be better,
# relative to the sizes of both.
TOLERANCE = 1e-8
GRID = 2.0**20


@dataclass(frozen=True, eq=False)
class Case:
    """A set, as the library has it and exactly, and a point or slope."""

    kind: str
    domain: Polyhedron
    exact: Set
    point: FloatArray
    task: str  # "project" or "lmo"

    def __str__(self) -> str:
        return f"{self.task}, {self.kind}, {self.domain!r}"

    def reference(self) -> Vector | None:
        """Return the exact answer; None if the set is empty."""
        solve = nearest if self.task == "project" else lowest
        return solve(self.exact, as_vector(self.point))

    def value(self, w: FloatArray) -> float:
        """Return what is to be least."""
        if self.task == "project":
            return float(np.sqrt(np.square(w - self.point).sum()))
        return float((w * self.point).sum())


def on_grid(x: Any) -> FloatArray:
    """Round to short fractions, which exact arithmetic is quick with."""
    return np.asarray(np.round(np.asarray(x) * GRID) / GRID)


def random_rows(kind: str, dim: int, rng: np.random.Generator) -> FloatArray:
    """Return the vectors of some rows, of a kind that is hard for solvers."""
    n_rows = int(rng.integers(1, 3 * dim + 4))
    rows = on_grid(rng.normal(size=(n_rows, dim)))
    if kind == "small whole numbers":
        return rng.integers(-2, 3, size=(n_rows, dim)).astype(float)
    if kind == "repeated rows":
        again = rows[rng.integers(n_rows, size=n_rows)]
        longer = again * rng.choice([0.0, 0.5, 1.0, 2.0], size=(n_rows, 1))
        return np.concatenate([rows, longer])
    if kind == "opposite rows":
        return np.concatenate([rows, -rows[: int(rng.integers(1, n_rows + 1))]])
    if kind in ("nearly parallel rows", "narrow"):
        # Angles of 1e-12 and more between like rows, 1e-7 and more between opposite.
        tilt = 2.0 ** -int(rng.integers(3, 25 if kind == "narrow" else 40))
        sign = -1.0 if kind == "narrow" else 1.0
        return np.concatenate(
            [rows, sign * rows + tilt * rng.integers(-4, 5, rows.shape)]
        )
    if kind == "the origin alone":
        rows = np.concatenate([rows, on_grid(rng.normal(size=(dim, dim)))])
        return np.concatenate([rows, -rows.sum(axis=0, keepdims=True)])
    return rows


def random_case(seed: int) -> Case:
    """Return the case of a number, always the same one."""
    rng = np.random.default_rng([16, seed])
    kind = KINDS[seed % len(KINDS)]
    # Minimisers on such a cone project points that are in it but for rounding.
    is_hard = kind == "cone of many pairs"
    ball: Any = "l2" if is_hard else BALLS[int(rng.integers(len(BALLS)))]
    dim = int(rng.integers(1, 9))
    more = {"ball": ball, "ball_radius": float(rng.choice([0.5, 2.0, 10.0]))}
    is_cone = is_hard or rng.random() < 0.6
    if kind.endswith("pairs"):
        shift = 0.5 if is_hard else float(rng.choice([0.0, 0.5, 1.5]))
        n_positives, n_negatives = (14, 17) if is_hard else rng.integers(1, 12, size=2)
        positives = on_grid(rng.normal(size=(n_positives, dim)) + shift)
        negatives = on_grid(rng.normal(size=(n_negatives, dim)) - shift)
        margin = 0.0 if is_cone else float(rng.choice([-0.25, 0.125]))
        form: Any = rng.choice(["lifted", "full"])
        domain = Polyhedron.pairwise(positives, negatives, margin, form=form, **more)
        rows = np.array([b - a for a in positives for b in negatives])
        limits = np.full(len(rows), -margin)
    else:
        rows = random_rows(kind, dim, rng)
        limits = np.zeros(len(rows))
        if not is_cone:
            limits = on_grid(rng.normal(size=len(rows)) + rng.choice([0.0, 2.0]))
        lower, upper = random_sides(dim, rng) if kind == "box" else (None, None)
        domain = Polyhedron.linear(rows, limits, lower=lower, upper=upper, **more)
        rows, limits = with_sides(rows, limits, lower, upper)
    exact = as_set(rows, limits, domain.ball_radius if ball == "l2" else None)
    task = "lmo" if is_hard or (ball != "none" and rng.random() < 0.5) else "project"
    point = on_grid(rng.normal(size=dim)) if is_hard else random_point(rows, exact, rng)
    return Case(kind, domain, exact, point, task)


def random_sides(dim: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Return bounds: of both sides, of one, none, or fixing a variable."""
    middle = on_grid(rng.normal(size=dim))
    half = rng.choice([0.0, 0.25, 2.0], size=dim)
    lower, upper = middle - half, middle + half
    lower[rng.random(dim) < 0.3], upper[rng.random(dim) < 0.3] = -np.inf, np.inf
    return lower, upper


def with_sides(
    rows: FloatArray, limits: FloatArray, lower: Any, upper: Any
) -> tuple[FloatArray, FloatArray]:
    """Return the bounds as rows beside the others."""
    if lower is None:
        return rows, limits
    eye = np.eye(rows.shape[1])
    rows = np.concatenate([rows, eye[np.isfinite(upper)], -eye[np.isfinite(lower)]])
    sides = [limits, upper[np.isfinite(upper)], -lower[np.isfinite(lower)]]
    return rows, np.concatenate(sides)


def random_point(rows: FloatArray, exact: Set, rng: np.random.Generator) -> FloatArray:
    """Return a point to project, or a slope: easy, or on an edge of some kind."""
    dim = rows.shape[1]
    point = on_grid(2.0 * rng.normal(size=dim))
    kind = POINTS[int(rng.integers(len(POINTS)))]
    if kind == "far":
        return 2.0**10 * point
    if kind == "tiny":
        return 2.0**-20 * point
    if kind == "zero":
        return np.zeros(dim)
    if kind == "a normal":
        sign = float(rng.choice([-1.0, 1.0]))
        return np.asarray(sign * rows[int(rng.integers(len(rows)))])
    if kind == "in the set but for rounding":
        inside = nearest(exact, as_vector(point))
        return point if inside is None else np.array([float(x) for x in inside])
    return point


def answer(case: Case) -> dict[str, Any]:
    """Return what the library answers."""
    solve = case.domain.project if case.task == "project" else case.domain.lmo
    try:
        found = solve(case.point)
    except EmptySetError:
        return {"is_empty": True}
    except DszogError as error:
        return {"raised": f"{type(error).__name__}: {error}"}
    return {"point": found.point.tolist(), "events": list(found.events)}


def fault(case: Case, given: dict[str, Any], reference: Vector | None) -> str:
    """Return what is wrong with an answer; nothing if it is right."""
    if "raised" in given:
        return str(given["raised"])
    if given.get("is_empty"):
        return "" if reference is None else "a set that is not empty was called empty"
    w = np.array(given["point"])
    size = 1.0 + float(np.abs(w).max())
    outside = off_by(case.exact, w)
    if not outside <= TOLERANCE * (size + float(np.abs(case.point).max())):
        return f"lies outside by {outside:.2g}"
    if reference is None:
        return ""  # empty by less than rounding
    best = case.value(np.array([float(x) for x in reference]))
    size *= 1.0 + float(np.abs(case.point).max())
    if not case.value(w) <= best + TOLERANCE * size:
        return f"is {case.value(w):.9g}, where {best:.9g} can be had"
    return ""


def off_by(domain: Set, w: FloatArray) -> float:
    """Return the distance to the farthest row, or to the ball."""
    rows = np.array(domain.rows, dtype=float)
    lengths = np.sqrt(np.square(rows).sum(axis=1))
    off = (rows * w).sum(axis=1) - np.array(domain.limits, dtype=float)
    outside = float((off / np.where(lengths > 0.0, lengths, 1.0)).max(initial=0.0))
    if domain.radius is not None:
        outside = max(outside, float(np.sqrt(np.square(w).sum()) - domain.radius))
    return outside


N_SAMPLE, N_ALL = 450, 10_000


def test_answers_agree_with_exact_arithmetic() -> None:
    cases = [random_case(seed) for seed in range(N_SAMPLE)]
    references = [case.reference() for case in cases]
    faults = {
        f"{seed}: {case}": fault(case, answer(case), reference)
        for seed, (case, reference) in enumerate(zip(cases, references, strict=True))
    }
    assert {name: said for name, said in faults.items() if said} == {}
    assert 0.05 < sum(one is None for one in references) / N_SAMPLE < 0.4  # empty


ANSWERS = """
import json, sys
from tests.maths.subproblems.test_against_exact import answer, random_case
print(json.dumps([answer(random_case(seed)) for seed in range(int(sys.argv[1]))]))
"""


def answers_under(kernel: dict[str, str]) -> list[dict[str, Any]]:
    """Return the answers to all cases in a process with other rounding."""
    said = said_by("-c", ANSWERS, str(N_ALL), OPENBLAS_NUM_THREADS="1", **kernel)
    given: list[dict[str, Any]] = json.loads(said)
    return given


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_answers_agree_with_exact_arithmetic_under_every_kernel() -> None:
    surroundings = [{}, other_rounding()]
    surroundings += [{"OPENBLAS_CORETYPE": kernel} for kernel in kernels()]
    cases = [random_case(seed) for seed in range(N_ALL)]
    references = [case.reference() for case in cases]
    n_wrong = {}
    for kernel in surroundings:
        faults = {}
        for seed, given in enumerate(answers_under(kernel)):
            said = fault(cases[seed], given, references[seed])
            if said:
                faults[f"{seed}: {cases[seed]}"] = said
        n_wrong[str(kernel)] = len(faults)
        print(kernel, faults)
    assert set(n_wrong.values()) == {0}, n_wrong
