"""Nearest points of polyhedra in exact arithmetic: slow, and without any tolerance.

Numbers in floating point are fractions of whole numbers, so the nearest point of
``A w <= b`` is a fraction too. It is found with Python's integers alone (no NumPy, no
BLAS, no SciPy), as the least-distance problem of Lawson and Hanson, *Solving Least
Squares Problems*, chapter 23: minimise ``|E u - f|`` over ``u >= 0``, with the columns
``(-a_j, a_j . point - b_j)`` of ``E`` and ``f = (0, ..., 0, 1)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt, lcm
from typing import Any, NamedTuple

Vector = list[Fraction]
Whole = list[int]

FAR = 2**70  # so far down a slope the nearest point is the lowest, but for 1e-20
FINE = 2**80  # square roots are rounded to multiples of 1 / FINE


class ExactPoint(NamedTuple):
    """The nearest point, and the rows that hold it there."""

    point: Vector
    active: list[int]


class Set(NamedTuple):
    """The points with ``rows @ w <= limits``; in a ball, if its radius is given."""

    rows: list[Vector]
    limits: Vector
    radius: Fraction | None = None


def as_set(rows: Any, limits: Any, radius: float | None = None) -> Set:
    """Return the set of these floating-point numbers, exactly."""
    return Set(
        [[Fraction(float(x)) for x in row] for row in rows],
        [Fraction(float(x)) for x in limits],
        None if radius is None else Fraction(float(radius)),
    )


def as_vector(x: Any) -> Vector:
    """Return floating-point numbers as fractions."""
    return [Fraction(float(entry)) for entry in x]


def dot(x: Sequence[Any], y: Sequence[Any]) -> Any:
    """Return the sum of products."""
    return sum((a * b for a, b in zip(x, y, strict=True)), start=0)


def nearest(domain: Set, point: Vector) -> Vector | None:
    """Return the nearest point of a set; None if the set is empty.

    In a ball it is the nearest point of the rows to ``t * point`` with the greatest
    ``t <= 1`` for which that lies in the ball.
    """
    found = _nearest_of_rows(domain, point)
    if found is None or _in_ball(domain, found.point):
        return None if found is None else found.point
    return _on_the_ball(domain, point, Fraction(1), found)


def lowest(domain: Set, gradient: Vector) -> Vector | None:
    """Return a point where ``gradient . w`` is least but for 1e-15; None if empty.

    The set is bounded. Its nearest point to one far down the slope is the lowest.
    """
    scale = max(map(abs, gradient)) or Fraction(1)
    down = [-x / scale for x in gradient]
    found = _nearest_of_rows(domain, [FAR * x for x in down])
    if found is None or domain.radius is None or _in_ball(domain, found.point):
        return None if found is None else found.point
    far = domain.radius
    while found is not None:
        far *= 16
        found = _nearest_of_rows(domain, [far * x for x in down])
        if found is not None and not _in_ball(domain, found.point):
            return _on_the_ball(domain, down, far, found)
    return None


def _in_ball(domain: Set, point: Vector) -> bool:
    radius = domain.radius
    return radius is None or dot(point, point) <= radius**2


def _on_the_ball(
    domain: Set, ray: Vector, far: Fraction, found: ExactPoint
) -> Vector | None:
    """Return the nearest point to a multiple of `ray` that lies on the ball.

    With the same rows active it moves on a line as the multiple grows.
    """
    if domain.radius is None:
        return found.point
    near, multiple = Fraction(0), far
    origin = _nearest_of_rows(domain, [Fraction(0)] * len(ray))
    if origin is None or not _in_ball(domain, origin.point):
        return None
    while True:
        beyond = dot(found.point, found.point) - domain.radius**2
        if abs(beyond) <= domain.radius**2 / 2**60 or far - near <= far / 2**90:
            return found.point
        near, far = (near, multiple) if beyond > 0 else (multiple, far)
        step = _step_to_the_ball(domain, found, ray)
        multiple = (near + far) / 2 if step is None else _rounded(multiple + step)
        if not near < multiple < far:
            multiple = (near + far) / 2
        moved = _nearest_of_rows(domain, [multiple * x for x in ray])
        if moved is None:
            return None
        found = moved


def _step_to_the_ball(domain: Set, found: ExactPoint, ray: Vector) -> Fraction | None:
    rows = [domain.rows[j] for j in found.active]
    line = ray
    if rows:
        products = [[dot(a, b) for b in rows] for a in rows]
        weights = _solved(products, [dot(a, ray) for a in rows])
        line = [
            x - dot(weights, column)
            for x, column in zip(ray, zip(*rows, strict=True), strict=True)
        ]
    radius = domain.radius or Fraction(0)
    square, along = dot(line, line), dot(line, found.point)
    inside = along**2 - square * (dot(found.point, found.point) - radius**2)
    if square == 0 or inside < 0:
        return None
    return Fraction((_root(inside) - along) / square)


def _root(x: Fraction) -> Fraction:
    scale = FINE * max(1, x.denominator.bit_length())
    return Fraction(isqrt(x.numerator * scale**2 // x.denominator), scale)


def _rounded(x: Fraction) -> Fraction:
    return Fraction(round(x * FINE), FINE)


def _nearest_of_rows(domain: Set, point: Vector) -> ExactPoint | None:
    """Return the nearest point of the rows alone; None if none satisfies them."""
    columns, places = [], []
    for place, (row, limit) in enumerate(zip(domain.rows, domain.limits, strict=True)):
        if any(row):
            column = [*(-x for x in row), dot(row, point) - limit]
            factor = lcm(*(x.denominator for x in column))
            columns.append([int(x * factor) for x in column])  # of whole numbers
            places.append(place)
        elif limit < 0:
            return None
    weights = _least_squares(columns)
    *left, last = [-x for x in _sum_of(columns, weights, len(point) + 1)]
    if last == -1:  # nothing is left of f
        return None
    moved = [x - y / (last + 1) for x, y in zip(point, left, strict=True)]
    return ExactPoint(moved, [places[j] for j in weights])


def _sum_of(columns: list[Whole], weights: dict[int, Fraction], n: int) -> Vector:
    """Return the sum of columns, each times its weight."""
    used = [[w * x for x in columns[j]] for j, w in weights.items()]
    return [sum(entries, Fraction(0)) for entries in zip(*used, strict=True)] or (
        [Fraction(0)] * n
    )


def _least_squares(columns: list[Whole]) -> dict[int, Fraction]:
    """Minimise ``|E u - f|`` over ``u >= 0``; return the positive weights."""
    lengths = [Fraction(float(dot(c, c)) ** 0.5 or 1.0) for c in columns]
    weights: dict[int, Fraction] = {}
    while True:
        fit = _sum_of(columns, weights, len(columns[0]) if columns else 0)
        slopes = [c[-1] - dot(c, fit) for c in columns]
        rising = [j for j, slope in enumerate(slopes) if slope > 0]
        if not rising:
            return weights
        weights[max(rising, key=lambda j: slopes[j] / lengths[j])] = Fraction(0)
        while True:
            free = sorted(weights)
            gram = [[dot(columns[i], columns[j]) for j in free] for i in free]
            fitted = _solved(gram, [columns[j][-1] for j in free])
            wanted = dict(zip(free, fitted, strict=True))
            stops = [j for j in free if wanted[j] <= 0]
            if not stops:
                weights = wanted
                break
            step = min(weights[j] / (weights[j] - wanted[j]) for j in stops)
            moved = {j: weights[j] + step * (wanted[j] - weights[j]) for j in free}
            weights = {j: w for j, w in moved.items() if w > 0}


def _solved(matrix: Sequence[Sequence[Any]], right: Sequence[Any]) -> Vector:
    """Solve a system with a positive definite matrix (Bareiss, in whole numbers)."""
    rows = [[*row, entry] for row, entry in zip(matrix, right, strict=True)]
    factor = lcm(*(x.denominator for row in rows for x in row))
    whole = [[int(x * factor) for x in row] for row in rows]
    before = 1
    for k, pivot_row in enumerate(whole):
        pivot = pivot_row[k]
        for i, row in enumerate(whole):
            if i != k:
                terms = zip(row, pivot_row, strict=True)
                whole[i] = [(pivot * x - row[k] * y) // before for x, y in terms]
        before = pivot
    return [Fraction(row[-1], before) for row in whole]
