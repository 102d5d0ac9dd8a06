r"""How near a point is to satisfying the conditions of a minimum.

The paper's Definitions 2, 3 and 4, computed directly from gradients at the point: true
ones where the problem gives them, central differences otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dszog.contract import NO_ITERATION, Evaluate, ProblemSize, Query
from dszog.contract.arrays import BoolArray, FloatArray, IntArray
from dszog.errors import SubproblemError
from dszog.maths.distribution import project_onto_simplex
from dszog.maths.penalties import squared_violation
from dszog.maths.subproblems.nearest import least_squares

RADIUS = 1e-5  # of the central differences, times the size of each variable
LOSSES = 256  # losses or constraints asked for at a time
MANY = 2**23  # numbers of an array that may be held
AROUND = 2**20  # of all points around one


@dataclass(frozen=True, eq=False, kw_only=True)
class Stationarity:
    r"""The residuals of the paper's definitions at a point.

    All norms are Euclidean. The examined constraints are the worst ones found and the
    ones of largest weight; others enter `violation` alone.

    Parameters
    ----------
    gradient_norm : float
        :math:`\|\nabla f_0\|`, to compare the residuals with.
    lagrangian : float
        Definition 2: :math:`\|\nabla f_0 + \sum_j \alpha_j \nabla f_j\|` with the
        multipliers :math:`\alpha_j = 2 \beta p_j \max(f_j, 0)` of the given weights.
    violation : float
        Definition 2: :math:`\sqrt{\sum_j \max(f_j, 0)^2}`.
    complementarity : float
        Definition 2: :math:`\sqrt{\sum_j (\alpha_j f_j)^2}`.
    dual_gradient, projected_dual_gradient : float
        Definition 3: :math:`\|\nabla_p L\|`, and the distance :math:`p` moves in a
        projected gradient step of length one, which vanishes at the maximiser. The
        other half of the definition, :math:`\|\nabla_w L\|`, equals `lagrangian`.
    outer_gradient : float
        Definition 4: :math:`\|\nabla g\|`, with all weight on the worst constraints.
    best_lagrangian : float
        The least :math:`\|\nabla f_0 + \sum_j \alpha_j \nabla f_j\|` over all
        :math:`\alpha \ge 0` on the examined constraints with values above
        ``-active_tol``: no noise of the weights is in it.
    multipliers : (indices, values)
        The positive multipliers that attain `best_lagrangian`.
    penalty, ridge, active_tol : float
        The :math:`\beta`, :math:`\lambda` and tolerance used.
    n_examined : int
        Constraints whose gradients were looked at.
    gradients : str
        Where the gradients come from.
    n_opposing : int
        Examined constraints whose values rise where the objective falls: those that a
        further descent comes nearer to.
    """

    gradient_norm: float
    lagrangian: float
    violation: float
    complementarity: float
    dual_gradient: float
    projected_dual_gradient: float
    outer_gradient: float
    best_lagrangian: float
    multipliers: tuple[IntArray, FloatArray]
    penalty: float
    ridge: float
    active_tol: float
    n_examined: int
    gradients: str
    n_opposing: int = 0

    def __str__(self) -> str:
        indices, values = self.multipliers
        return (
            f"of a gradient of length {self.gradient_norm:.3g} the best multipliers "
            f"({len(indices)} positive, sum {values.sum():.3g}) leave "
            f"{self.best_lagrangian:.2g}; from {self.gradients}"
        )


def stationarity(
    x: FloatArray,
    size: ProblemSize,
    *,
    losses: IntArray,
    examined: IntArray,
    weights: tuple[IntArray, FloatArray],
    sum_squares: float,
    penalty: float,
    ridge: float,
    active_tol: float,
    x_scale: FloatArray,
    answer: Evaluate,
) -> Stationarity | None:
    """Compute the residuals at `x`; None if a value or a gradient is not known.

    `x` is in scaled variables, the residuals are in the user's. `examined` and the
    indices of the weights ascend; weights that are not given count as 0. Raises
    FloatingPointError if values are too large to be squared.
    """
    slopes = _Slopes(x, size, answer)
    objective_gradient = slopes.mean(losses) / x_scale
    values, gradients = slopes.of("constraints", examined)
    gradients = gradients / x_scale
    if not all(np.isfinite(a).all() for a in (objective_gradient, values, gradients)):
        return None
    free, p = _Free(x, size), _weights_of(examined, weights)
    with np.errstate(over="raise"):  # what is known would be infinite, or no number
        violations = np.maximum(values, 0.0)
        penalties = squared_violation(values)
        alpha = 2.0 * penalty * p * violations
        worst_p = (
            project_onto_simplex(penalty * penalties / ridge) if len(examined) else p
        )
        worst_alpha = 2.0 * penalty * worst_p * violations
        dual_gradient = penalty * penalties - ridge * p
        moved = project_onto_simplex(p + dual_gradient) - p if len(examined) else p
        best_lagrangian, best_alpha = _best_multipliers(
            objective_gradient, gradients, values >= -active_tol, free
        )
        positive = best_alpha > 0.0
        return Stationarity(
            gradient_norm=_norm(objective_gradient),
            lagrangian=_norm(free.part(objective_gradient + alpha @ gradients)),
            violation=float(np.sqrt(sum_squares)),
            complementarity=_norm(alpha * values),
            dual_gradient=_norm(dual_gradient),
            projected_dual_gradient=_norm(moved),
            outer_gradient=_norm(
                free.part(objective_gradient + worst_alpha @ gradients)
            ),
            best_lagrangian=best_lagrangian,
            multipliers=(examined[positive], best_alpha[positive]),
            penalty=penalty,
            ridge=ridge,
            active_tol=active_tol,
            n_examined=len(examined),
            gradients=_source(size),
            n_opposing=_n_opposing(objective_gradient, gradients),
        )


def _n_opposing(objective_gradient: FloatArray, gradients: FloatArray) -> int:
    """Return how many rows point against a vector; no product is too large."""
    sizes = np.abs(gradients).max(axis=1, keepdims=True, initial=0.0)
    rows = gradients / np.where(sizes > 0.0, sizes, 1.0)
    return int(np.count_nonzero(rows @ objective_gradient < 0.0))


class _Free:
    """Which components of a gradient the bounds leave free at a point."""

    def __init__(self, x: FloatArray, size: ProblemSize) -> None:
        room = 1e-9 * np.maximum(np.abs(x), 1.0)
        self.at_lower = x <= size.lower + room
        self.at_upper = x >= size.upper - room

    def part(self, gradient: FloatArray) -> FloatArray:
        """Return the gradient without what only pushes against a bound."""
        held = (self.at_lower & (gradient > 0)) | (self.at_upper & (gradient < 0))
        return np.where(held, 0.0, gradient)

    def normals(self) -> FloatArray:
        """Return the gradients of the bounds that are reached, as rows."""
        lower, upper = np.flatnonzero(self.at_lower), np.flatnonzero(self.at_upper)
        rows = np.zeros((len(lower) + len(upper), len(self.at_lower)))
        rows[np.arange(len(lower)), lower] = -1.0
        rows[np.arange(len(lower), len(rows)), upper] = 1.0
        return rows


def _best_multipliers(
    objective_gradient: FloatArray,
    gradients: FloatArray,
    active: BoolArray,
    free: _Free,
) -> tuple[float, FloatArray]:
    rows = np.concatenate([gradients[active], free.normals()])
    alpha = np.zeros(len(gradients))
    if not len(rows):
        return _norm(objective_gradient), alpha
    try:
        found = least_squares(rows.T, -objective_gradient)
    except SubproblemError:  # no multipliers: the residual is never too small
        return _norm(objective_gradient), alpha
    alpha[active] = found.weights[: np.count_nonzero(active)]
    return found.residual, alpha


@dataclass(frozen=True)
class _Slopes:
    """Gradients at a point: given ones, or central differences."""

    x: FloatArray
    size: ProblemSize
    answer: Evaluate

    def mean(self, losses: IntArray) -> FloatArray:
        """Return the objective's gradient; of many variables not that of each loss."""
        if len(losses) * self.size.dim <= MANY:
            mean: FloatArray = self.of("losses", losses)[1].mean(axis=0)
            return mean
        total = np.zeros(self.size.dim)
        for first in range(0, len(losses), LOSSES):
            total += self.of("losses", losses[first : first + LOSSES])[1].sum(axis=0)
        return total / len(losses)

    def of(self, kind: str, indices: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return values and gradients of losses or constraints, in blocks."""
        is_loss = kind == "losses"
        is_given = self.size.has_gradient if is_loss else self.size.has_jacobian
        values, gradients = [np.empty(0)], [np.empty((0, self.size.dim))]
        for first in range(0, len(indices), LOSSES):
            block: dict[str, Any] = {kind: indices[first : first + LOSSES]}
            if is_given:
                query = Query.to_check(self.x, want="gradients", **block)
                reply = self.answer((query,))[0]
                at_x = getattr(reply, kind)[0]
                slopes = reply.loss_gradients if is_loss else reply.jacobian
            else:
                at_x, slopes = self._differences(kind, block)
            values.append(at_x)
            gradients.append(slopes)
        return np.concatenate(values), np.concatenate(gradients)

    def _differences(
        self, kind: str, block: dict[str, Any]
    ) -> tuple[FloatArray, FloatArray]:
        """Return values and differences along each coordinate, kept in the bounds.

        So many coordinates at a time that the points around `x` stay in a cache: each
        is `x` but for one entry.
        """
        x, size, at_x = self.x, self.size, np.empty(0)
        slopes = np.empty((len(block[kind]), size.dim))
        n = max(min(size.dim, AROUND // (2 * size.dim)), 1)
        for first in range(0, size.dim, n):
            which = np.arange(first, min(first + n, size.dim))
            own, lower, upper = x[which], size.lower[which], size.upper[which]
            lengths = RADIUS * np.maximum(np.abs(own), 1.0)
            ahead = np.clip(own + lengths, lower, upper) - own
            behind = np.clip(own - lengths, lower, upper) - own
            at_point = int(first == 0)  # what is known there is not asked for again
            points = np.tile(x, (at_point + 2 * len(which), 1))
            rows = at_point + np.arange(len(which))
            points[rows, which] += ahead
            points[rows + len(which), which] += behind
            asked = {"iteration": NO_ITERATION, "purpose": "final check", **block}
            query = Query.at_points(size.clip(points), **asked)
            table = getattr(self.answer((query,))[0], kind)
            if at_point:
                at_x, table = table[0], table[1:]
            reach = ahead - behind
            reach = np.where(reach > 0.0, reach, np.inf)  # a fixed variable: slope 0
            with np.errstate(over="ignore"):  # then it is not known
                change = table[: len(which)] - table[len(which) :]
                slopes[:, which] = (change / reach[:, np.newaxis]).T
        return at_x, slopes


def _weights_of(examined: IntArray, weights: tuple[IntArray, FloatArray]) -> FloatArray:
    indices, known = weights
    p = np.zeros(len(examined))
    _, places, sources = np.intersect1d(
        examined, indices, assume_unique=True, return_indices=True
    )
    p[places] = known[sources]
    return p


def _source(size: ProblemSize) -> str:
    if size.has_gradient and (size.has_jacobian or not size.n_constraints):
        return "given gradients"
    if size.has_gradient or size.has_jacobian:
        return "given gradients and central differences"
    return "central differences"


def _norm(vector: FloatArray) -> float:
    return float(np.sqrt(np.square(vector).sum()))
