r"""The nearest point of a polyhedron, by constraint generation.

A few rows at a time are handed to the least-distance problem of Lawson and Hanson [1]_,
which is one problem of least squares with weights of at least 0, until no row of the
whole family is violated.

References
----------
.. [1] C. L. Lawson and R. J. Hanson, *Solving Least Squares Problems*, SIAM 1995,
   chapter 23.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog, nnls

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray
from dszog.errors import EmptySetError, SubproblemError
from dszog.maths.subproblems.base import Solution
from dszog.maths.subproblems.rows import NumberedRows, RowFamily, joined, normalised

ROWS_PER_ROUND = 20  # of each family
MAX_ROUNDS = 500
PRECISION = 1e-10  # of a projection, relative to its size
ROUNDING = 1e-14  # likewise, relative to the point that is projected
ACCEPTED = 1e-7  # likewise, of what a solver returns
EMPTY = 1e-13  # a least-distance residual below this is 0
TOLERANCES = ("primal_feasibility_tolerance", "dual_feasibility_tolerance")  # HiGHS
REACH = 1e6  # a set without points nearer to the origin than this is empty
OPTIMAL = 1e-12  # how far weights may be from optimal, relative to the target

EMPTY_MESSAGE = (
    "The feasible set is empty: no point satisfies all constraints, bounds and the "
    "ball together. Relax them, for example by a negative margin or a larger ball."
)


# ------------------------------------------------------------- constraint generation


def by_generation(
    point: FloatArray, families: Sequence[RowFamily], hint: IntArray = NO_INDICES
) -> Solution:
    """Project on all rows by solving for few of them."""
    # `hint` are rows to begin with, numbered through the families.
    rows = NumberedRows(families)
    working = np.unique(hint[(hint >= 0) & (hint < rows.n_rows)])
    rounding = ROUNDING * float(np.abs(point).max())
    w, off, tolerance = point, 0.0, 0.0
    n_rounds, events = 0, tuple[str, ...]()
    while n_rounds < MAX_ROUNDS:
        n_rounds += 1
        if len(working):
            normals, limits = rows.normals(working), rows.limits(working)
            w, multipliers, more = least_distance(point, normals, limits)
            events += more
            working = working[multipliers > 0.0]
        tolerance = PRECISION * (1.0 + float(np.abs(w).max())) + rounding
        violated, off = _violated(rows, w, tolerance)
        n_before, working = len(working), np.union1d(working, violated)
        if off <= tolerance or len(working) == n_before:
            break
    # Beyond the tolerance it is rounding: all rows that are violated are known already.
    if off <= ACCEPTED / PRECISION * tolerance:
        return Solution(point=w, active=working, n_rounds=n_rounds, events=events)
    if is_empty(families):
        raise EmptySetError(EMPTY_MESSAGE)
    raise SubproblemError(
        f"A projection stopped with a violation of {off:.2g} after {n_rounds} rounds. "
        "Scale the variables and constraints to order one."
    )


def _violated(
    rows: NumberedRows, w: FloatArray, tolerance: float
) -> tuple[IntArray, float]:
    """Return rows that `w` violates, the worst ones, and by which distance at most.

    Distances are violations divided by the length of the row.
    """
    indices, off = rows.worst(w, ROWS_PER_ROUND)
    lengths = np.sqrt(np.square(rows.normals(indices)).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.where(off > 0.0, off / lengths, 0.0)
    if np.isinf(distances).any():  # 0 <= a negative number
        raise EmptySetError(EMPTY_MESSAGE)
    return indices[distances > tolerance], float(distances.max(initial=0.0))


class Nearest(NamedTuple):
    """The answer to a least-distance problem."""

    point: FloatArray  # (dim,)
    multipliers: FloatArray  # (n_rows,)
    events: tuple[str, ...] = ()


def least_distance(
    point: FloatArray, normals: FloatArray, limits: FloatArray
) -> Nearest:
    r"""Return the point nearest to `point` with ``normals @ w <= limits``.

    And the multipliers :math:`\lambda \ge 0` with
    :math:`w = \text{point} - \sum_j \lambda_j a_j / \|a_j\|`.
    """
    lengths = np.sqrt(np.square(normals).sum(axis=1))
    is_row = lengths > 0.0
    if not is_row.all():  # 0 <= limit: true, or no point satisfies it
        if (limits[~is_row] < 0.0).any():
            raise EmptySetError(EMPTY_MESSAGE)
        multipliers = np.zeros(len(limits))
        found = least_distance(point, normals[is_row], limits[is_row])
        multipliers[is_row] = found.multipliers
        return found._replace(multipliers=multipliers)
    units = normals / lengths[:, np.newaxis]
    off = np.einsum("nd,d->n", units, point) - limits / lengths
    scale = float(np.abs(off).max(initial=0.0))
    # What a projection on a cone leaves, handed in again, is in it but for rounding.
    is_cone = not limits.any()
    rounding = ROUNDING * float(np.abs(point).max()) if is_cone else 0.0
    if off.max(initial=0.0) <= rounding:
        return Nearest(point, np.zeros(len(off)))
    if is_cone:  # a cone: what is left of the point is in its polar (Moreau)
        weights, _, events = least_squares(units.T, point)
        w = point - np.einsum("nd,n->d", units, weights)
        held = weights > 0.0
        return Nearest(_put_back(w, units[held], np.zeros(held.sum())), weights, events)
    system = np.concatenate([-units.T, off[np.newaxis] / scale])
    target = np.zeros(len(system))
    target[-1] = 1.0
    weights, _, events = least_squares(system, target)
    residual = np.einsum("nk,k->n", system, weights) - target
    if -residual[-1] <= EMPTY:
        raise EmptySetError(EMPTY_MESSAGE)
    w = point - scale * (residual[:-1] / residual[-1])
    held = weights > 0.0
    w = _put_back(w, units[held], (limits / lengths)[held])
    return Nearest(w, scale / -residual[-1] * weights, events)


def _put_back(w: FloatArray, units: FloatArray, sides: FloatArray) -> FloatArray:
    """Return the point on the rows that hold it, if rounding took it off them."""
    # It does where rows are nearly opposite: the point is far away then, and small
    # differences of large numbers tell where. Where no point is on all of these rows,
    # as in a set that is empty, it stays.

    def off(w: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("nd,d->n", units, w) - sides)

    def is_on_all(w: FloatArray) -> bool:
        tolerance = PRECISION * (1.0 + float(np.abs(w).max()))
        return bool(np.abs(off(w)).max(initial=0.0) <= tolerance)

    if is_on_all(w):
        return w
    moved: FloatArray = w - np.linalg.lstsq(units, off(w), rcond=None)[0]
    return moved if is_on_all(moved) else w


# ------------------------------------------------------ least squares, weights >= 0


class Weights(NamedTuple):
    """The answer to a problem of least squares with weights of at least 0."""

    weights: FloatArray  # (n_columns,)
    residual: float
    events: tuple[str, ...] = ()


def least_squares(matrix: FloatArray, target: FloatArray) -> Weights:
    r"""Minimise :math:`\|\text{matrix} \cdot w - \text{target}\|` over :math:`w \ge 0`.

    By :func:`scipy.optimize.nnls`, whose answers are checked: those of SciPy 1.12 to
    1.17 can be wrong, without a word. Where one is, :func:`by_active_set` gives it.
    """
    try:
        weights, residual = nnls(matrix, target, maxiter=_most_steps(matrix))
        found = Weights(weights, float(residual))
        says = "a wrong answer"
    except RuntimeError as error:
        found, says = None, str(error)
    if found is not None and is_least(matrix, target, found):
        return found
    event = f"nnls failed ({says}); an active-set method was used instead"
    instead = by_active_set(matrix, target)._replace(events=(event,))
    if not is_least(matrix, target, instead):
        raise SubproblemError(
            f"Least squares with {matrix.shape[1]} weights of at least 0 were not "
            f"solved: nnls failed ({says}), and so did an active-set method. Scale the "
            "variables and constraints to order one."
        )
    return instead


def is_least(matrix: FloatArray, target: FloatArray, found: Weights) -> bool:
    r"""Whether the conditions of optimality hold, whatever the solver says.

    With :math:`r = \text{target} - \text{matrix} \cdot w` these are :math:`w_j \ge 0`,
    :math:`-a_j \cdot r \ge 0`, and that one of the two is 0: the smaller one is 0.
    """
    if not np.isfinite(found.weights).all():
        return False
    columns, tops, goal, top = _scaled(matrix, target)
    parts = found.weights * (tops / top)
    left = goal - np.einsum("nk,k->n", columns, parts)
    slopes = np.einsum("nk,n->k", columns, left)
    allowed = OPTIMAL * len(goal) + ROUNDING * float(parts.sum())
    off = np.abs(np.minimum(parts, -slopes)).max(initial=0.0)
    claim = abs(found.residual / top - float(np.sqrt(np.square(left).sum())))
    return bool(off <= allowed and claim <= allowed)


def by_active_set(matrix: FloatArray, target: FloatArray) -> Weights:
    r"""Solve least squares with weights of at least 0 slowly and surely.

    The method of Lawson and Hanson: weights are let go from 0 one by one, that
    with the steepest slope first, and the free ones are fitted anew by the singular
    value decomposition. Two things make it safe against rounding: a step is kept only
    if it lowers the residual, so nothing repeats; and a weight whose step did not is
    left alone until another one's did.
    """
    columns, tops, goal, top = _scaled(matrix, target)
    weights, left = np.zeros(len(tops)), goal
    is_refused = np.zeros(len(tops), dtype=bool)
    for _ in range(_most_steps(matrix)):
        slopes = np.einsum("nk,n->k", columns, left)
        slopes[is_refused | (weights > 0.0)] = 0.0
        entering = int(np.argmax(slopes))
        if not slopes[entering] > 0.0:
            break
        trial = _fitted(columns, goal, weights, entering)
        left_then = goal - np.einsum("nk,k->n", columns, trial)
        # |left|^2 - |left_then|^2, which the difference of the squares would round away
        gain = np.einsum("nk,k->n", columns, trial - weights) * (left + left_then)
        if gain.sum() > 0.0:
            weights, left = trial, left_then
            is_refused[:] = False
        else:
            is_refused[entering] = True
    return Weights(weights * (top / tops), top * float(np.sqrt(np.square(left).sum())))


def _scaled(
    matrix: FloatArray, target: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    """Return columns and target with largest entries of 1, and what these were."""
    tops = np.abs(matrix).max(axis=0, initial=0.0)
    tops = np.where(tops > 0.0, tops, 1.0)
    top = float(np.abs(target).max(initial=0.0)) or 1.0
    return matrix / tops, tops, target / top, top


def _fitted(
    columns: FloatArray, goal: FloatArray, weights: FloatArray, entering: int
) -> FloatArray:
    """Fit the positive weights and one more, without letting any become negative."""
    free = weights > 0.0
    free[entering] = True
    for _ in range(len(weights)):
        fit = np.zeros(len(weights))
        fit[free] = np.linalg.lstsq(columns[:, free], goal, rcond=None)[0]
        stops = np.flatnonzero(free & (fit <= 0.0))
        if not len(stops):
            return fit
        if entering in stops and weights[entering] == 0.0:
            break  # its slope was rounding
        # As far towards the fit as no weight falls below 0; the first one there stays.
        steps = weights[stops] / (weights[stops] - fit[stops])
        first = int(np.argmin(steps))
        weights = np.maximum(weights + steps[first] * (fit - weights), 0.0)
        weights[stops[first]] = 0.0
        free = weights > 0.0
    return weights


def _most_steps(matrix: FloatArray) -> int:
    return 30 * int(matrix.shape[1]) + 300


def is_empty(families: Sequence[RowFamily]) -> bool:
    r"""Whether HiGHS finds rows that contradict each other, and they do.

    With rows of length 1 it minimises the :math:`t \ge 0` for which some point has
    :math:`a_j \cdot w \le h_j + t`. The multipliers :math:`y \ge 0` prove the answer:
    where :math:`\sum_j y_j a_j = 0` and :math:`\sum_j y_j h_j < 0` there is no point.
    """
    systems = [family.system() for family in families]
    matrix, limits = normalised(joined(systems, families[0].dim))
    n_rows, n_all = matrix.shape
    answer = linprog(
        np.append(np.zeros(n_all), 1.0),
        A_ub=np.column_stack([matrix, -np.ones(n_rows)]),
        b_ub=limits,
        bounds=[*[(None, None)] * n_all, (0.0, None)],
        options=dict.fromkeys(TOLERANCES, PRECISION),  # 1e-7 would hide contradictions
    )
    if answer.status != 0:
        return False
    multipliers = np.maximum(-answer.ineqlin.marginals, 0.0)
    contradiction = -float((multipliers * limits).sum())
    pull = float(np.abs(matrix.T @ multipliers).sum())
    size = 1.0 + float(np.abs(limits).max(initial=0.0))
    return contradiction > ROUNDING * size and pull * REACH <= contradiction
