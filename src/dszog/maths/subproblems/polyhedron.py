"""Sets of linear constraints, alone or within a ball around the origin."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self, TypeAlias, get_args

import numpy as np
from scipy import sparse
from scipy.optimize import Bounds, linprog

from dszog.contract import NO_INDICES
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats
from dszog.contract.validation import (
    check_bounds,
    check_choice,
    check_count_fields,
    check_floats,
    check_number,
    check_positive,
)
from dszog.errors import EmptySetError, InputError
from dszog.maths.subproblems.base import FEASIBLE, Solution
from dszog.maths.subproblems.nearest import (
    ACCEPTED,
    EMPTY_MESSAGE,
    by_generation,
    is_empty,
    least_squares,
)
from dszog.maths.subproblems.rows import (
    BoxRows,
    MatrixRows,
    NumberedRows,
    PairRows,
    RowFamily,
    System,
    joined,
    normalised,
)
from dszog.maths.subproblems.simple import check_bounded, length, shortened

Ball: TypeAlias = Literal["none", "l2"]
Form: TypeAlias = Literal["lifted", "full"]

FULL_LIMIT = 4e9  # bytes that listing all pairs may take
FAR = 1e6  # times the ball: so far down the slope nothing is gained any more
SETTLED = 1e-9  # further down the slope the answer is the same but for that
ROOT = 1e-11  # relative precision at which the ball is met


@dataclass(frozen=True, eq=False, kw_only=True)
class Polyhedron:
    r"""All points that satisfy families of linear constraints, within a ball.

    Made by :meth:`linear` or :meth:`pairwise`.

    Parameters
    ----------
    families : tuple of RowFamily
    ball : {"none", "l2"}
        Whether there is a Euclidean ball around the origin beside them.
    ball_radius : float
    n_named : int
        So many rows, from the first, are the constraints of a problem in their order.
    """

    families: tuple[RowFamily, ...]
    ball: Ball = "none"
    ball_radius: float = 10.0
    n_named: int = 0

    def __post_init__(self) -> None:
        check_choice(self, "ball", self.ball, get_args(Ball))
        check_positive(self, ball_radius="Try 10 for variables of order one.")
        check_count_fields(self, "n_named", least=0)
        if not self.families:
            raise InputError(
                "Polyhedron: `families` must hold at least one family of rows, got (). "
                "Use Polyhedron.linear or Polyhedron.pairwise."
            )

    @classmethod
    def linear(
        cls, A: Any, b: Any, *, lower: Any = None, upper: Any = None, **more: Any
    ) -> Self:
        """Return the set ``A w <= b``, between bounds if these are given.

        Examples
        --------
        >>> import numpy as np
        >>> below = Polyhedron.linear(np.array([[1.0, 1.0]]), [1.0], lower=[0.0, 0.0])
        >>> below.project(np.array([2.0, 1.5])).point
        array([0.75, 0.25])
        """
        name = "Polyhedron.linear"
        matrix: Any
        if sparse.issparse(A):
            check_floats(name, "A.data", sparse.csr_array(A).data)
            matrix = sparse.csr_array(A, dtype=np.float64)
        else:
            matrix = check_floats(name, "A", A)
        limits = np.atleast_1d(check_floats(name, "b", b))
        if matrix.ndim != 2 or 0 in matrix.shape or limits.shape != matrix.shape[:1]:
            raise InputError(
                f"{name}: `A` must be a matrix and `b` have an entry per row, got "
                f"shapes {matrix.shape} and {limits.shape}. Pass A[None, :] for one."
            )
        families: list[RowFamily] = [MatrixRows(matrix, limits)]
        families += box_rows(matrix.shape[1], lower, upper)
        return cls(families=tuple(families), **more)

    @classmethod
    def pairwise(
        cls,
        X_pos: Any,
        X_neg: Any,
        margin: float = 0.0,
        *,
        form: Form = "lifted",
        lower: Any = None,
        upper: Any = None,
        **more: Any,
    ) -> Self:
        r"""Return the set :math:`x_b^- \cdot w - x_a^+ \cdot w + \text{margin} \le 0`.

        Parameters
        ----------
        X_pos, X_neg : array_like of shape (n, dim)
        margin : float
            Negative to relax. With 0 the set is a cone, and may hold the origin alone.
        form : {"lifted", "full"}
            ``"lifted"`` never lists the pairs: a solver gets a row per sample and one
            more variable. ``"full"`` lists them all.

        Examples
        --------
        >>> import numpy as np
        >>> cone = Polyhedron.pairwise(np.eye(2), -np.eye(2))
        >>> cone.project(np.array([1.0, 3.0])).point
        array([1., 3.])
        """
        name = "Polyhedron.pairwise"
        check_choice(name, "form", form, get_args(Form))
        positives = check_floats(name, "X_pos", X_pos)
        negatives = check_floats(name, "X_neg", X_neg)
        for rows in (positives, negatives):
            if rows.ndim != 2 or 0 in rows.shape or rows.shape[1] != positives.shape[1]:
                raise InputError(
                    f"{name}: `X_pos` and `X_neg` must be matrices with the same "
                    f"columns, got shapes {positives.shape} and {negatives.shape}. "
                    "Take both from one matrix: X[y == 1], X[y == -1]."
                )
        slack = -check_number(name, "margin", margin) + 0.0
        if not math.isfinite(slack):
            raise InputError(
                f"{name}: `margin` must be finite, got {margin}. Try 0, or -0.1 to "
                "relax."
            )
        pairs = PairRows(positives, negatives, slack)
        first: RowFamily = pairs
        if form == "full":
            needed = 8.0 * pairs.n_rows * pairs.dim
            if needed > FULL_LIMIT:
                raise InputError(
                    f"{name}: form='full' lists {pairs.n_rows:,} pairs, which takes "
                    f"{needed / 1e9:.0f} GB. Use form='lifted', the same set."
                )
            first = pairs.listed()
        families = (first, *box_rows(pairs.dim, lower, upper))
        return cls(families=families, **more)

    def __repr__(self) -> str:
        ball = "" if self.ball == "none" else f", ball={self.ball}:{self.ball_radius:g}"
        return f"Polyhedron(n_rows={self.n_rows:_}, dim={self.dim}{ball})"

    # --------------------------------------------------------------------- the domain

    @property
    def dim(self) -> int:
        """Number of variables."""
        return self.families[0].dim

    @property
    def n_rows(self) -> int:
        """Number of linear constraints."""
        return sum(
            family.n_sides if isinstance(family, BoxRows) else family.n_rows
            for family in self.families
        )

    @cached_property
    def is_bounded(self) -> bool:
        """Whether a ball, or the rows themselves, leave no way to infinity."""
        if self.ball != "none":
            return True
        box = self._box
        if np.isfinite(box.lower).all() and np.isfinite(box.upper).all():
            return True
        systems = [family.system() for family in self.families]
        return _leaves_no_way(joined(systems, self.dim))

    def project(self, point: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the nearest point of the set."""
        nearest = by_generation(point, self.families, hint)
        if self.ball != "l2" or length(nearest.point) <= self.ball_radius:
            return nearest
        if self._is_cone:
            shorter = shortened(nearest.point, self.ball_radius)
            return replace(nearest, point=shorter)
        # With multiplier mu of the ball the answer is the projection of
        # point / (1 + mu); its norm grows with 1 / (1 + mu).
        return self._where_ball_is_met(point, 0.0, 1.0, nearest)

    def lmo(self, gradient: FloatArray, hint: IntArray = NO_INDICES) -> Solution:
        """Return the lowest point of the set down the gradient."""
        norm = length(gradient)
        if norm == 0.0:
            return self.project(np.zeros(self.dim), hint)
        if self.ball != "l2":
            return self._linear_program(gradient / norm)
        down = -gradient / norm
        if self._is_cone:
            return self._cone_minimiser(down, hint)
        # With multiplier 1 / t of the ball the answer is the projection of t * down.
        near, far = 0.0, 4.0 * self.ball_radius
        found = by_generation(far * down, self.families, hint)
        while length(found.point) < self.ball_radius and far < FAR * self.ball_radius:
            near, far, before = far, 16.0 * far, found.point
            found = self._next(far * down, found)
            is_settled = length(found.point - before) <= SETTLED * (
                1.0 + length(before)
            )
            if is_settled and self._is_held(down, found):
                return found  # a lowest point of the rows: the ball is not needed
        if length(found.point) > self.ball_radius:
            return self._where_ball_is_met(down, near, far, found)
        return found  # its value is off by less than radius * |gradient| / FAR

    def violation(self, x: FloatArray) -> float:
        """Return by how much the worst row, or the ball, is exceeded."""
        worst = [0.0]
        worst += [float(family.worst(x, 1)[1][0]) for family in self.families]
        if self.ball == "l2":
            worst.append(length(x) - self.ball_radius)
        return max(worst)

    def contains(self, x: FloatArray, tol: float = FEASIBLE) -> bool:
        """Whether `x` lies in the set, but for rounding."""
        if not np.isfinite(x).all():
            return False
        return self.violation(x) <= tol * (1.0 + length(x))

    def diameter(self) -> float:
        """Return the diameter of the ball, or of the smallest box around the set."""
        check_bounded(self)
        return self._diameter

    @cached_property
    def _diameter(self) -> float:
        if self.ball == "l2":
            return 2.0 * self.ball_radius
        sides = []
        for variable in np.eye(self.dim):
            low, high = self._linear_program(variable), self._linear_program(-variable)
            sides.append(float(variable @ (high.point - low.point)))
        return float(np.sqrt(np.square(sides).sum()))

    def feasible_start(self) -> FloatArray:
        """Return the point of the set nearest to the origin."""
        return self.project(np.zeros(self.dim)).point

    # ------------------------------------------------------------------ how it is done

    @cached_property
    def _is_cone(self) -> bool:
        return all(family.is_homogeneous for family in self.families)

    @cached_property
    def _box(self) -> BoxRows:
        lower, upper = np.full(self.dim, -np.inf), np.full(self.dim, np.inf)
        for family in self.families:
            if isinstance(family, BoxRows):
                lower = np.maximum(lower, family.lower)
                upper = np.minimum(upper, family.upper)
        return BoxRows(lower, upper)

    def _next(self, point: FloatArray, before: Solution) -> Solution:
        """Return the nearest point, with what it took in all so far."""
        found = by_generation(point, self.families, before.active)
        return replace(
            found,
            n_rounds=before.n_rounds + found.n_rounds,
            events=(*before.events, *found.events),
        )

    def _cone_minimiser(self, down: FloatArray, hint: IntArray) -> Solution:
        """Stretch the projection of the slope on the cone until it meets the ball."""
        found = Solution(point=down, active=hint, n_rounds=0)
        for _ in range(2):  # again at unit length: rounding would be stretched as well
            hint = found.active
            found = self._next(found.point, found)
            norm = length(found.point)
            if norm <= FEASIBLE:  # nothing in the cone goes down
                return replace(found, point=np.zeros(self.dim))
            found = replace(found, point=found.point / norm)
        if not len(found.active):  # it was in the cone, held by the rows found before
            found = replace(found, active=hint)
        return replace(found, point=self.ball_radius * found.point)

    def _is_held(self, down: FloatArray, found: Solution) -> bool:
        """Whether the active rows leave no way down, which makes a point the lowest."""
        # That the nearest points to two multiples of `down` are the same proves
        # nothing: farther out it may move on.
        if not len(found.active):
            return False
        normals = NumberedRows(self.families).normals(found.active)
        return least_squares(normals.T, down).residual <= SETTLED

    def _where_ball_is_met(
        self, ray: FloatArray, near: float, far: float, at_far: Solution
    ) -> Solution:
        """Return the projection of a multiple of `ray` that lies on the ball."""
        # While the same rows are active the projection moves on a line, and where that
        # line meets the ball is a quadratic equation: a few steps find the rows.
        found = self._next(near * ray, at_far)
        beyond = length(found.point) - self.ball_radius
        if near == 0.0 and beyond > FEASIBLE * self.ball_radius:
            raise EmptySetError(EMPTY_MESSAGE)
        if beyond >= 0.0:
            return found
        multiple = far
        found = replace(found, point=at_far.point, active=at_far.active)
        while far - near > ROOT * far:
            multiple = self._on_the_line(found, ray, multiple)
            if not near < multiple < far:
                multiple = (near + far) / 2
            found = self._next(multiple * ray, found)
            beyond = length(found.point) - self.ball_radius
            if abs(beyond) <= ROOT * self.ball_radius:
                break
            near, far = (near, multiple) if beyond > 0.0 else (multiple, far)
        return found

    def _on_the_line(self, found: Solution, ray: FloatArray, multiple: float) -> float:
        """Return for which multiple the ball is met if the active rows stay active."""
        point = found.point
        line = ray
        if len(found.active):
            normals = NumberedRows(self.families).normals(found.active)
            line = ray - normals.T @ np.linalg.lstsq(normals.T, ray, rcond=None)[0]
        square, along = float(line @ line), float(point @ line)
        beyond = float(point @ point) - self.ball_radius**2
        inside = along**2 - square * beyond
        if square <= 1e-16 or inside < 0.0:
            return math.nan
        return multiple + (math.sqrt(inside) - along) / square

    def _linear_program(self, cost: FloatArray) -> Solution:
        """Minimise a linear function over the rows with HiGHS; check its answer."""
        rows = [f.system() for f in self.families if not isinstance(f, BoxRows)]
        system = System(np.empty((0, self.dim)), np.empty(0))
        if rows:
            system = normalised(joined(rows, self.dim))
        n_extra = system.matrix.shape[1] - self.dim
        cost = np.concatenate([cost, np.zeros(n_extra)])
        sides = np.column_stack([self._box.lower, self._box.upper])
        free = np.tile([-np.inf, np.inf], (n_extra, 1))
        sides = np.concatenate([sides, free])
        answer = linprog(
            cost,
            A_ub=system.matrix,
            b_ub=system.limits,
            bounds=sides,
            method="highs",
        )
        if answer.status == 0 and is_lowest(cost, system, sides, answer):
            return Solution(point=answer.x[: self.dim])
        if answer.status == 2 and is_empty(self.families):
            raise EmptySetError(EMPTY_MESSAGE)
        if answer.status == 3 and not self.is_bounded:
            raise InputError(
                "Polyhedron: a linear function has no least value on an unbounded set. "
                "Give finite bounds, or a ball."
            )
        says = "a wrong answer" if answer.status == 0 else answer.message
        event = f"HiGHS failed ({says}); a projection was used instead"
        found = self._far_down(-cost[: self.dim])
        return replace(found, events=(*found.events, event))

    def _far_down(self, down: FloatArray) -> Solution:
        """Return the nearest point to one far down: none is lower, but for 1 / FAR."""
        found = by_generation(np.zeros(self.dim), self.families)
        for _ in range(2):  # the second time it is known how large the set is there
            far = FAR * (1.0 + length(found.point))
            found = self._next(far * down, found)
        return found


def is_lowest(cost: FloatArray, system: System, sides: FloatArray, answer: Any) -> bool:
    """Whether an answer to a linear program is feasible, and its dual is no higher."""
    # The rows of the system have length 1; `sides` (n, 2) are bounds on the variables.
    x, multipliers = answer.x, -answer.ineqlin.marginals
    if not np.isfinite([*x, *multipliers]).all():
        return False
    size = 1.0 + float(np.abs(x).max())
    off = system.matrix @ x - system.limits
    outside = max(
        off.max(initial=0.0), (sides[:, 0] - x).max(), (x - sides[:, 1]).max()
    )
    pull = cost + system.matrix.T @ multipliers
    pull[np.abs(pull) <= ACCEPTED] = 0.0
    # What is left of the cost pushes against sides; one at infinity does not hold.
    at = np.where(pull > 0.0, sides[:, 0], np.where(pull < 0.0, sides[:, 1], 0.0))
    if not np.isfinite(at).all():
        return False
    gap = float(cost @ x - pull @ at + multipliers @ system.limits)
    return bool(
        outside <= 10 * ACCEPTED * size
        and multipliers.min(initial=0.0) >= -ACCEPTED
        and gap <= 10 * ACCEPTED * size
    )


def box_rows(dim: int, lower: Any, upper: Any) -> list[RowFamily]:
    """Return the bounds as a family of rows; none, if there are no bounds."""
    if lower is None and upper is None:
        return []
    sides = Bounds(
        -np.inf if lower is None else lower, np.inf if upper is None else upper
    )
    low, high = check_bounds("Polyhedron", sides, dim)
    if not (np.isfinite(low).any() or np.isfinite(high).any()):
        return []
    return [BoxRows(frozen_floats(low), frozen_floats(high))]


def _leaves_no_way(system: System) -> bool:
    r"""Whether :math:`\{y : A y \le 0\}` is the origin alone.

    It is if and only if the rows span the space and some combination of them with
    positive weights is 0 (Stiemke): one linear program.
    """
    matrix = normalised(system).matrix
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        return False
    answer = linprog(
        np.zeros(len(matrix)),
        A_eq=matrix.T,
        b_eq=np.zeros(matrix.shape[1]),
        bounds=(1.0, None),
        method="highs",
    )
    if answer.status != 0:
        return False
    return bool(np.abs(matrix.T @ answer.x).max() <= 10 * ACCEPTED)
