r"""The subproblem: a quadratic model under linear models that may be broken at a price.

.. math:: \min_{l \le s \le u} \; g^T s + \tfrac12 s^T H s
          + \rho \sum_j \max(c_j + a_j^T s, 0)

A row that is *two-sided* is an equality: it costs :math:`\rho |c_j + a_j^T s|`. The
price makes the problem solvable whatever the rows say: where they contradict each other
the answer violates them as little as it can.

A dual active set solves it: it begins with the rows that held in the last call, and
moves multipliers until each fits the value of its row. Every answer comes with its
residual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrs, dtrtrs

from dszog.contract.arrays import BoolArray, FloatArray, IntArray

CHANGES = 5  # of who holds, for each row and variable: more go in circles
MOVES = 10  # of one row: rows that depend on each other take turns for ever
DEPENDENT = 1e-13  # the share of a slope, squared, that may be left by rounding
PASSES = 2  # of refining a step
HOLDS = 1e-12  # the error of a value, relative


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
    hessian: FloatArray,  # (dim, dim), positive definite
    gradient: FloatArray,  # (dim,)
    rows: LinearModels,
    price: float,  # of a unit of violation
    lower: FloatArray,  # (dim,), of the step; 0 lies within
    upper: FloatArray,  # (dim,)
    start: FloatArray,  # (k,), multipliers to begin with
) -> Answer:
    """Return the minimiser."""
    return _Problem(hessian, gradient, rows, price, lower, upper).solved(start)


class _Problem:
    """One subproblem, in which variables with bounds are rows of a boundless price.

    A row has an interval of values, ``low <= a @ s <= high``, and a multiplier between
    its prices. Rows that *hold* have a value at an end of the interval; of all others
    the multiplier is known: 0 inside of it, the price beyond. One multiplier after the
    other is moved so that the dual objective rises (Goldfarb and Idnani, 1983, with
    prices) until each value fits its multiplier.
    """

    def __init__(
        self,
        hessian: FloatArray,
        gradient: FloatArray,
        rows: LinearModels,
        price: float,
        lower: FloatArray,
        upper: FloatArray,
    ) -> None:
        self.hessian, self.gradient, self.k = hessian, gradient, len(rows.offsets)
        self.lower, self.upper = lower, upper
        self.bounded = np.flatnonzero(np.isfinite(lower) | np.isfinite(upper))
        n = len(self.bounded)
        self.slopes = np.vstack([rows.slopes, np.eye(len(gradient))[self.bounded]])
        low = np.where(rows.two_sided, -rows.offsets, -np.inf)
        self.low = np.concatenate([low, lower[self.bounded]])
        self.high = np.concatenate([-rows.offsets, upper[self.bounded]])
        prices = np.where(rows.two_sided, price, 0.0)
        self.least = np.concatenate([-prices, np.full(n, -np.inf)])
        self.most = np.concatenate([np.full(self.k, price), np.full(n, np.inf)])
        self.factor = _factor(hessian)
        self.multipliers = np.zeros(len(self.high))
        self.n_moves = np.zeros(len(self.high), dtype=np.int64)
        # Rows that hold, with the ends where they do; their slopes in units of the
        # factor; and the factor of the matrix of these slopes.
        self.holding = np.empty(0, dtype=np.int64)
        self.ends = np.empty(0)
        self.scaled = np.empty((0, len(gradient)))
        self.root = np.empty((0, 0))

    def solved(self, start: FloatArray) -> Answer:
        """Return the answer; its residual says whether it is one."""
        if not np.isfinite(self.factor).all():
            return self.answer(np.zeros(len(self.gradient)))
        self._begin(start)
        for _ in range(CHANGES * (len(self.high) + len(self.gradient)) + 50):
            step = self._settled()
            found = self._worst(step)
            if found is None or not self._moved(*found):
                break
            self.n_moves[found[0]] += 1
        return self.answer(self._settled())

    def answer(self, step: FloatArray) -> Answer:
        """Return an answer with its residual."""
        step = np.clip(step, self.lower, self.upper)
        multipliers, at_bounds = self.multipliers[: self.k], np.zeros(len(step))
        at_bounds[self.bounded] = self.multipliers[self.k :]
        rows = self.slopes[: self.k]
        pull = rows.T @ multipliers
        left = self.gradient + self.hessian @ step + pull + at_bounds
        force = np.abs(self.gradient).max(initial=0.0) + np.abs(pull).max(initial=0.0)
        # Each row's multiplier is what the row, moved by its value, would ask for.
        curvature = float(np.trace(self.hessian)) / len(step)
        size = np.abs(step).max(initial=0.0) + 1e-3 * force / curvature
        stiffness = max(force, 1e-300) / max(size, 1e-300)
        wanted = multipliers + stiffness * (rows @ step - self.high[: self.k])
        wanted = np.clip(wanted, self.least[: self.k], self.most[: self.k])
        missed = np.abs(wanted - multipliers).max(initial=0.0)
        ends = np.where(at_bounds > 0, self.upper - step, step - self.lower)
        bounds = np.abs(np.where(at_bounds != 0, ends, 0.0)).max(initial=0.0)
        total = np.abs(left).max(initial=0.0) + missed + stiffness * bounds
        residual = float(total / max(force, 1e-300))
        return Answer(
            step=step,
            multipliers=multipliers,
            bound_multipliers=at_bounds,
            residual=residual if np.isfinite(residual) else np.inf,
        )

    # --------------------------------------------------------------- who holds, and how

    def _begin(self, start: FloatArray) -> None:
        """Let the rows hold that held before, but for those that depend on others."""
        k = self.k
        self.multipliers[:k] = np.clip(start, self.least[:k], self.most[:k])
        inside = (self.multipliers != 0) & (self.multipliers < self.most)
        held = np.flatnonzero(inside & (self.multipliers > self.least))
        scaled = solve_triangular(self.factor, self.slopes[held].T, lower=True).T
        try:
            root = np.linalg.cholesky(scaled @ scaled.T)
        except np.linalg.LinAlgError:
            root = np.zeros((len(held), len(held)))
        least = 1e3 * DEPENDENT * np.einsum("ij,ij->i", scaled, scaled)
        if (np.diagonal(root) ** 2 > least).all():
            self.holding, self.ends = held, self.high[held]
            self.scaled, self.root = scaled, root
            return
        for who, column in zip(held.tolist(), scaled, strict=True):
            half, left = self._against(column)
            if left > 1e3 * DEPENDENT * float(column @ column):
                self._hold(who, self.high[who], column, half, left)
            else:
                self.multipliers[who] = 0.0

    def _against(self, column: FloatArray) -> tuple[FloatArray, float]:
        """Return a scaled slope in the frame of those that hold, and what is left."""
        half = _below(self.root, self.scaled @ column)
        return half, float(column @ column - half @ half)

    def _hold(
        self, who: int, end: float, column: FloatArray, half: FloatArray, left: float
    ) -> None:
        n = len(self.holding)
        root = np.zeros((n + 1, n + 1))
        root[:n, :n], root[n, :n], root[n, n] = self.root, half, np.sqrt(left)
        self.root = root
        self.holding = np.append(self.holding, who)
        self.ends = np.append(self.ends, end)
        self.scaled = np.vstack([self.scaled, column])

    def _release(self, place: int, rises: bool) -> None:
        """Let one hold no more: its multiplier has come to an end of its range."""
        who = self.holding[place]
        ends = self._range(np.array([who]), self.ends[place : place + 1])
        self.multipliers[who] = ends[int(rises)][0]
        self.holding = np.delete(self.holding, place)
        self.ends = np.delete(self.ends, place)
        self.scaled = np.delete(self.scaled, place, axis=0)
        below = self.root[place + 1 :, place:]  # what comes after is factored again
        n = len(self.holding)
        root = np.zeros((n, n))
        root[:place, :place] = self.root[:place, :place]
        root[place:, :place] = self.root[place + 1 :, :place]
        root[place:, place:] = np.linalg.qr(below.T)[1].T
        self.root = root

    def _range(self, who: IntArray, ends: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the least and the largest multiplier of rows that hold at ends."""
        low, high = self.low[who], self.high[who]
        at_low, at_high = ends == low, ends == high
        return (
            np.where(at_low, self.least[who], 0.0),
            np.where(at_high, self.most[who], 0.0),
        )

    # -------------------------------------------------------------- moving multipliers

    def _step(self) -> FloatArray:
        """Return the step that the multipliers ask for."""
        pulls = np.flatnonzero(self.multipliers)
        force = self.gradient + self.multipliers[pulls] @ self.slopes[pulls]
        return -_within(self.factor, force)

    def _settled(self) -> FloatArray:
        """Return the step at which all that hold do; those that cannot let go."""
        while len(self.holding):
            moves = self._wanted(self._step())
            room, place = self._room(moves)
            self.multipliers[self.holding] += min(room, 1.0) * moves
            if room >= 1.0:
                break
            self._release(place, bool(moves[place] > 0))
        step = self._step()
        for _ in range(PASSES):  # for digits that high prices have cost
            step = step - _above(self.factor, self._wanted(step) @ self.scaled)
        return step

    def _wanted(self, step: FloatArray) -> FloatArray:
        """Return how multipliers would have to change so that all that hold do."""
        miss = self.slopes[self.holding] @ step - self.ends
        return _within(self.root, miss)

    def _error(self, step: FloatArray) -> float:
        """Return the error of values that is let pass."""
        size = float(np.abs(step).max() + np.abs(self.ends).max(initial=0.0))
        return HOLDS * max(size, 1e-300)

    def _room(self, moves: FloatArray) -> tuple[float, int]:
        """Return how far the multipliers of those that hold can go, and who stops."""
        if not len(moves):
            return np.inf, -1
        least, most = self._range(self.holding, self.ends)
        ends = np.where(moves > 0, most, least)
        far = np.abs(ends - self.multipliers[self.holding])
        rooms = np.full(len(moves), np.inf)
        np.divide(far, np.abs(moves), out=rooms, where=moves != 0)
        place = int(rooms.argmin())
        return float(rooms[place]), place

    def _worst(self, step: FloatArray) -> tuple[int, float, float, float] | None:
        """Return who fits least: the sign to move in, by how much, the end to reach."""
        values = self.slopes @ step
        top = (self.multipliers > 0) & (self.multipliers == self.most)
        bottom = (self.multipliers < 0) & (self.multipliers == self.least)
        rises = values - np.where(bottom, self.low, self.high)
        falls = np.where(top, self.high, self.low) - values
        rises[top], falls[bottom] = -np.inf, -np.inf
        done = self.n_moves >= MOVES
        done[self.holding] = True
        rises[done] = falls[done] = -np.inf
        excess = np.maximum(rises, falls)
        if not len(excess):
            return None
        who = int(excess.argmax())
        if not excess[who] > self._error(step):
            return None
        up = bool(rises[who] >= falls[who])
        at_low = bool(bottom[who]) if up else not top[who]
        end = self.low[who] if at_low else self.high[who]
        return who, 1.0 if up else -1.0, float(excess[who]), float(end)

    def _moved(self, who: int, sign: float, excess: float, end: float) -> bool:
        """Move a multiplier until its row holds or the price is paid."""
        column = _below(self.factor, self.slopes[who])
        least, most = self._range(np.array([who]), np.array([end]))
        last = float(most[0] if sign > 0 else least[0])
        while True:
            half, left = self._against(column)
            moves = -sign * _above(self.root, half)
            room, place = self._room(moves)
            own = abs(last - self.multipliers[who])
            is_free = left > DEPENDENT * float(column @ column)
            full = excess / left if is_free else np.inf
            t = min(full, room, own)
            if not np.isfinite(t):
                return False
            self.multipliers[self.holding] += t * moves
            self.multipliers[who] += sign * t
            excess -= t * left
            if t == full:
                self._hold(who, end, column, half, left)
                return True
            if t == own:
                self.multipliers[who] = last
                return True
            self._release(place, bool(moves[place] > 0))


def _factor(matrix: FloatArray) -> FloatArray:
    """Return the Cholesky factor of a matrix, made definite if rounding broke that.

    It is nan where the matrix is far from definite.
    """
    size = float(np.trace(matrix)) / len(matrix)
    shift = 0.0
    while np.isfinite(size) and shift <= 1e-3:
        moved = matrix.copy()
        np.fill_diagonal(moved, moved.diagonal() + shift * size)
        try:
            return np.asarray(np.linalg.cholesky(moved), dtype=np.float64)
        except np.linalg.LinAlgError:
            shift = max(100.0 * shift, 1e-14)
    return np.full_like(matrix, np.nan)


# Systems of a few rows, ten thousands of times: SciPy's checks of arguments took longer
# than solving them, so LAPACK is called as `solve_triangular` and `cho_solve` call it.
# Of a triangle that is singular the answer is none, as its residual says.


def _below(root: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with a lower triangle."""
    return dtrtrs(root.T, right, lower=0, trans=1)[0] if len(root) else right


def _above(root: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with the transpose of a lower triangle."""
    return dtrtrs(root.T, right, lower=0, trans=0)[0] if len(root) else right


def _within(root: FloatArray, right: FloatArray) -> FloatArray:
    """Solve with the matrix of which this is the Cholesky factor."""
    return dpotrs(root, right, lower=1)[0] if len(root) else right
