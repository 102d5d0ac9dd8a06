r"""The subproblem: a quadratic model under linear models that may be broken at a price.

.. math:: \min_{l \le s \le u} \; g^T s + \tfrac12 s^T H s
          + \rho \sum_j \max(c_j + a_j^T s, 0)

A row that is *two-sided* is an equality: it costs :math:`\rho |c_j + a_j^T s|`. The
price makes the problem solvable whatever the rows say: where they contradict each other
the answer violates them as little as it can.

Mostly the rows that hold can be guessed, beginning with those of the last call, and
corrected a few times. Where that goes in circles the method of multipliers is used: its
inner problems are smooth but for jumps of the second derivative, and a few Newton steps
solve each. Once the active rows are found they are solved for as equations, which gives
all the digits there are. Every answer comes with its residual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from dszog.contract.arrays import BoolArray, FloatArray

MAX_ROUNDS = 40  # updates of the multipliers
MAX_NEWTON = 40  # Newton steps in each
STIFFEST = 1e9  # the largest weight of a square, in units of the curvature
MAX_GUESSES = 20  # of the active rows, before the safe way is taken
TIE = 1e-9  # decides between multipliers of rows that depend on each other
EXACT = 1e-10  # relative error of an answer that needs no further round


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LinearModels:
    """Linear models ``offsets + slopes @ s``, of unit length, that want to be <= 0."""

    slopes: FloatArray  # (k, dim)
    offsets: FloatArray  # (k,)
    two_sided: BoolArray  # (k,), whether the model wants to be 0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Answer:
    """The step, what each row pulls with, and how well all of it fits together."""

    step: FloatArray  # (dim,), within the bounds
    multipliers: FloatArray  # (k,), within the price on either side
    bound_multipliers: FloatArray  # (dim,), positive at an upper bound
    residual: float  # of the optimality conditions, relative


def solve(
    hessian: FloatArray,
    gradient: FloatArray,
    rows: LinearModels,
    price: float,
    lower: FloatArray,
    upper: FloatArray,
    start: FloatArray,
) -> Answer:
    r"""Return the minimiser.

    Parameters
    ----------
    hessian : ndarray of shape (dim, dim)
        Positive definite.
    gradient : ndarray of shape (dim,)
    rows : LinearModels
    price : float
        :math:`\rho`, of a unit of violation.
    lower, upper : ndarray of shape (dim,)
        Bounds on the step; 0 lies within.
    start : ndarray of shape (k,)
        Multipliers to begin with.

    Examples
    --------
    >>> rows = LinearModels(
    ...     slopes=np.array([[1.0, 0.0]]),
    ...     offsets=np.array([-1.0]),
    ...     two_sided=np.array([False]),
    ... )
    >>> far = np.full(2, np.inf)
    >>> answer = solve(
    ...     np.eye(2), np.array([-3.0, 0.0]), rows, 9.0, -far, far, np.zeros(1)
    ... )
    >>> answer.step.round(9) + 0.0, answer.multipliers
    (array([1., 0.]), array([2.]))
    """
    problem = _Problem(hessian, gradient, rows, price, lower, upper)
    quick = problem.by_active_sets(start)
    if quick.residual <= EXACT:
        return quick
    sure = problem.by_multipliers(start)
    return sure if sure.residual < quick.residual else quick


class _Problem:
    """One subproblem, and the ways to solve it."""

    def __init__(
        self,
        hessian: FloatArray,
        gradient: FloatArray,
        rows: LinearModels,
        price: float,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self.hessian, self.gradient = hessian, gradient
        self.slopes, self.offsets = rows.slopes, rows.offsets
        self.upper_price = np.full(len(rows.offsets), price)
        self.lower_price = np.where(rows.two_sided, -price, 0.0)
        self.lower, self.upper = lower, upper
        self.is_bounded = bool(np.isfinite(lower).any() or np.isfinite(upper).any())
        self.curvature = float(np.trace(hessian)) / len(gradient)
        self.factor = _factor(hessian)

    def answer(
        self, step: FloatArray, multipliers: FloatArray, at_bounds: FloatArray
    ) -> Answer:
        """Return an answer with its residual."""
        step = np.clip(step, self.lower, self.upper)
        values = self.offsets + self.slopes @ step
        pull = self.slopes.T @ multipliers
        left = self.gradient + self.hessian @ step + pull + at_bounds
        force = np.abs(self.gradient).max(initial=0.0) + np.abs(pull).max(initial=0.0)
        # Each row's multiplier is what the row, moved by its value, would ask for.
        size = np.abs(step).max(initial=0.0) + 1e-3 * force / self.curvature
        stiffness = max(force, 1e-300) / max(size, 1e-300)
        wanted = np.clip(
            multipliers + stiffness * values, self.lower_price, self.upper_price
        )
        rows = np.abs(wanted - multipliers).max(initial=0.0)
        ends = np.where(at_bounds > 0, self.upper - step, step - self.lower)
        bounds = np.abs(np.where(at_bounds != 0, ends, 0.0)).max(initial=0.0)
        total = np.abs(left).max(initial=0.0) + rows + stiffness * bounds
        residual = float(total / max(force, 1e-300))
        return Answer(
            step=step,
            multipliers=multipliers,
            bound_multipliers=at_bounds,
            residual=residual if np.isfinite(residual) else np.inf,
        )

    # ------------------------------------------------------------ method of multipliers

    def by_multipliers(self, start: FloatArray) -> Answer:
        """Return the best answer of some rounds."""
        dim = len(self.gradient)
        step, at_bounds = np.zeros(dim), np.zeros(dim)
        multipliers = np.clip(start, self.lower_price, self.upper_price)
        best = self.answer(step, multipliers, at_bounds)
        weight, last = 10.0 * self.curvature, np.inf
        for _ in range(MAX_ROUNDS):
            step = self._inner(step, multipliers, at_bounds, weight)
            if not np.isfinite(step).all():
                break
            pulled = multipliers + weight * (self.offsets + self.slopes @ step)
            multipliers = np.clip(pulled, self.lower_price, self.upper_price)
            at_bounds = weight * self._beyond(step, at_bounds, weight)
            found = self.answer(step, multipliers, at_bounds)
            if EXACT < found.residual < 0.1:
                found = self.by_equations(found) or found
            if found.residual < best.residual:
                best = found
            if best.residual <= EXACT:
                break
            factor = 5.0 if found.residual > 0.25 * last else 2.0
            weight = min(factor * weight, STIFFEST * self.curvature)
            last = found.residual
        return best

    def _beyond(
        self, step: FloatArray, at_bounds: FloatArray, weight: float
    ) -> FloatArray:
        """Return how far each variable is beyond its bounds, multipliers counted in."""
        if not self.is_bounded:
            return np.zeros_like(step)
        moved = step + at_bounds / weight
        beyond: FloatArray = moved - np.clip(moved, self.lower, self.upper)
        return beyond

    def _inner(
        self,
        step: FloatArray,
        multipliers: FloatArray,
        at_bounds: FloatArray,
        weight: float,
    ) -> FloatArray:
        """Return the minimiser of the augmented Lagrangian, by Newton steps."""
        hessian_step, row_step = self.hessian @ step, self.slopes @ step
        for _ in range(MAX_NEWTON):
            pulled = multipliers + weight * (self.offsets + row_step)
            clipped = np.clip(pulled, self.lower_price, self.upper_price)
            beyond = self._beyond(step, at_bounds, weight)
            pull = self.slopes.T @ clipped
            slope = self.gradient + hessian_step + pull + weight * beyond
            force = np.abs(self.gradient).max() + np.abs(pull).max(initial=0.0)
            if np.abs(slope).max() <= 1e-12 * force:
                break
            inside = (pulled > self.lower_price) & (pulled < self.upper_price)
            active = self.slopes[inside]
            matrix = self.hessian + weight * (active.T @ active)
            matrix[np.diag_indices_from(matrix)] += weight * (beyond != 0)
            move = -_solve(matrix, slope)
            if not np.isfinite(move).all():
                break
            hessian_move, row_move = self.hessian @ move, self.slopes @ move

            def height(
                t: float,
                step: FloatArray = step,
                move: FloatArray = move,
                hessian_step: FloatArray = hessian_step,
                hessian_move: FloatArray = hessian_move,
                row_step: FloatArray = row_step,
                row_move: FloatArray = row_move,
            ) -> float:
                there = step + t * move
                pulled = multipliers + weight * (self.offsets + row_step + t * row_move)
                clipped = np.clip(pulled, self.lower_price, self.upper_price)
                rows = (clipped * (pulled - 0.5 * clipped)).sum() / weight
                bounds = 0.5 * weight * (self._beyond(there, at_bounds, weight) ** 2)
                smooth = self.gradient @ there
                smooth += 0.5 * there @ (hessian_step + t * hessian_move)
                return float(smooth + rows + bounds.sum())

            here, fall, t = height(0.0), float(slope @ move), 1.0
            while t > 1e-8 and height(t) > here + 1e-4 * t * fall + 1e-15 * abs(here):
                t *= 0.5
            if t <= 1e-8:
                break
            step = step + t * move
            hessian_step = hessian_step + t * hessian_move
            row_step = row_step + t * row_move
        return step

    # ------------------------------------------------------------------------ polishing

    def by_equations(self, found: Answer) -> Answer | None:
        """Return the answer in which the active rows and bounds hold exactly.

        None if it is no better than what was found.
        """
        at_top = found.multipliers >= self.upper_price * (1.0 - 1e-9)
        at_bottom = found.multipliers <= self.lower_price * (1.0 - 1e-9)
        at_bounds = np.sign(found.bound_multipliers)
        solved = self._equations(at_top, at_bottom, at_bounds, found.multipliers)
        if solved is None:
            return None
        step, multipliers, pushes = solved
        if (pushes * found.bound_multipliers < 0).any():
            return None
        multipliers = np.clip(multipliers, self.lower_price, self.upper_price)
        exact = self.answer(step, multipliers, pushes)
        return exact if exact.residual < found.residual else None

    def _equations(
        self,
        at_top: BoolArray,
        at_bottom: BoolArray,
        at_bounds: FloatArray,
        near: FloatArray,
    ) -> tuple[FloatArray, FloatArray, FloatArray] | None:
        """Return step and multipliers if it is known where each row and variable is.

        Rows are paid for (`at_top`), slack or paid for below (`at_bottom`), or hold;
        variables are at the upper (1), the lower (-1) or no bound (0). Of multipliers
        that do as well as others, those close to `near` are taken.
        """
        active = np.flatnonzero(~(at_top | at_bottom))
        fixed = at_bounds != 0
        free = np.flatnonzero(~fixed)
        if not len(free):
            return None
        step = np.zeros(len(self.gradient))
        step[fixed] = np.where(at_bounds > 0, self.upper, self.lower)[fixed]
        given = np.where(at_top, self.upper_price, 0.0)
        given = np.where(at_bottom, self.lower_price, given)
        force = self.gradient + self.slopes.T @ given + self.hessian @ step
        if len(free) == len(step):
            factor = self.factor
        else:
            factor = _factor(self.hessian[np.ix_(free, free)])
        if factor is None:
            return None
        multipliers = np.array(given)
        plain = -cho_solve(factor, force[free], check_finite=False)
        if len(active):
            slopes = self.slopes[np.ix_(active, free)]
            spread = cho_solve(factor, slopes.T, check_finite=False)
            offsets = self.offsets[active] + self.slopes[active] @ step
            matrix = slopes @ spread
            little = TIE * float(np.trace(matrix)) / len(active)
            matrix[np.diag_indices_from(matrix)] += little
            wanted = offsets + slopes @ plain + little * near[active]
            pull = _solve(matrix, wanted)
            multipliers[active] = pull
            plain = plain - spread @ pull
        step[free] = plain
        if not (np.isfinite(step).all() and np.isfinite(multipliers).all()):
            return None
        left = self.gradient + self.hessian @ step + self.slopes.T @ multipliers
        return step, multipliers, np.where(fixed, -left, 0.0)

    # ------------------------------------------------------------- guessing active sets

    def by_active_sets(self, start: FloatArray) -> Answer:
        """Guess which rows hold, solve for these, and let the answer correct the guess.

        Mostly a few rounds are enough; where they go in circles the best is returned.
        """
        pulled, at_bounds = start, np.zeros(len(self.gradient))
        near = np.clip(start, self.lower_price, self.upper_price)
        best = self.answer(np.zeros(len(self.gradient)), 0.0 * start, at_bounds)
        for _ in range(MAX_GUESSES):
            at_top = pulled >= self.upper_price
            at_bottom = pulled <= self.lower_price
            solved = self._equations(at_top, at_bottom, at_bounds, near)
            if solved is None:
                break
            step, multipliers, pushes = solved
            near = np.clip(multipliers, self.lower_price, self.upper_price)
            found = self.answer(step, near, pushes)
            if found.residual < best.residual:
                best = found
            if best.residual <= EXACT:
                break
            size = np.abs(step).max() + np.abs(self.offsets).max(initial=0.0)
            force = np.abs(self.gradient).max() + np.abs(multipliers).max(initial=0.0)
            stiffness = max(float(force / max(size, 1e-300)), self.curvature)
            pulled = multipliers + stiffness * (self.offsets + self.slopes @ step)
            moved = step + pushes / stiffness
            at_bounds = np.sign(moved - np.clip(moved, self.lower, self.upper))
        return best


def _factor(matrix: FloatArray) -> tuple[FloatArray, bool] | None:
    """Return the Cholesky factor of a matrix, made definite if rounding broke that."""
    size = float(np.trace(matrix)) / len(matrix)
    shift = 0.0
    while np.isfinite(size) and shift <= 1e-3:
        moved = matrix.copy()
        moved[np.diag_indices_from(moved)] += shift * size
        try:
            factor: tuple[FloatArray, bool] = cho_factor(moved, check_finite=False)
        except np.linalg.LinAlgError:
            shift = max(100.0 * shift, 1e-14)
            continue
        return factor
    return None


def _solve(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Return the solution of a definite system; nan if there is none."""
    factor = _factor(matrix)
    if factor is None:
        return np.full(len(right), np.nan)
    found: FloatArray = cho_solve(factor, right, check_finite=False)
    return found
