"""A look: what is wanted at one point, as queries, and what the replies to them say.

Slopes of functions that come with gradients are asked for as such; all others are
learned by differences, a step along each variable. The value at the point itself is
mostly known already, so the first of these points serves as the base of the query and
the point itself is not paid for again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dszog.contract import NO_INDICES, ProblemSize, Query, Reply
from dszog.contract.arrays import (
    BoolArray,
    FloatArray,
    FrozenArrays,
    IntArray,
    frozen_floats,
)

UNKNOWN = 1e300  # stands for the value of a case that failed
ALIKE = 0.5  # of the variance: what neighbours differ by, squared; 2 if by chance
SAME = 1e-9  # of usual values: limits that differ by no more from case to case
MANY_CASES = 8  # that show whether limits do
NO_VALUES = frozen_floats(np.empty(0))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Look(FrozenArrays):
    """What is wanted at a point: values, or slopes where `reach` says how far to go."""

    at: FloatArray  # (dim,)
    losses: IntArray = field(default_factory=lambda: NO_INDICES)
    constraints: IntArray = field(default_factory=lambda: NO_INDICES)
    # (dim,), steps of the differences, 0: none; empty: values only
    reach: FloatArray = field(default_factory=lambda: NO_VALUES)
    # Known at the point, one per loss or constraint; empty: to be asked.
    loss_values: FloatArray = field(default_factory=lambda: NO_VALUES)
    constraint_values: FloatArray = field(default_factory=lambda: NO_VALUES)

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes and indices are those of a look at such a problem."""
        return (
            self.at.shape == (size.dim,)
            and self.reach.shape in ((0,), (size.dim,))
            and are_indices(self.losses, size.n_losses)
            and are_indices(self.constraints, size.n_constraints)
            and self.loss_values.shape in ((0,), self.losses.shape)
            and self.constraint_values.shape in ((0,), self.constraints.shape)
        )

    def shorter(self, size: ProblemSize) -> Look:
        """Return the look with shorter differences, to the other side if that fits."""
        if not self.wants_slopes:
            return self
        there = np.clip(self.at - self.reach / 8.0, size.lower, size.upper)
        stuck = there == self.at
        return replace(self, reach=np.where(stuck, self.reach / 8.0, there - self.at))

    @property
    def wants_slopes(self) -> bool:
        """Whether slopes are wanted."""
        return len(self.reach) > 0

    def queries(self, iteration: int, size: ProblemSize) -> tuple[Query, ...]:
        """Return the queries: for given gradients, then for all else."""
        if not self.wants_slopes:
            query = Query.at(
                self.at,
                iteration=iteration,
                losses=self.losses,
                constraints=self.constraints,
            )
            return (query,)
        white_losses = self.losses if size.has_gradient else NO_INDICES
        white_rows = self.constraints if size.has_jacobian else NO_INDICES
        made = []
        if len(white_losses) or len(white_rows):
            made.append(
                Query.at(
                    self.at,
                    iteration=iteration,
                    losses=white_losses,
                    constraints=white_rows,
                    want="gradients",
                )
            )
        losses = NO_INDICES if size.has_gradient else self.losses
        rows = NO_INDICES if size.has_jacobian else self.constraints
        moved = np.flatnonzero(self.reach)
        if (len(losses) or len(rows)) and (len(moved) or not made):
            made.append(self._differences(iteration, losses, rows, moved))
        return tuple(made)

    def around(self, steps: FloatArray, iteration: int) -> Query:
        """Return the query for values at steps from the point, the first its base."""
        return Query(
            iteration=iteration,
            x=self.at + steps[0],
            steps=steps[1:] - steps[0],
            losses=self.losses,
            constraints=self.constraints,
        )

    def _differences(
        self, iteration: int, losses: IntArray, rows: IntArray, moved: IntArray
    ) -> Query:
        steps = np.zeros((len(moved), len(self.at)))
        steps[np.arange(len(moved)), moved] = self.reach[moved]
        base = self.at
        if self._starts_beside:
            base = self.at + steps[0]
            steps = steps[1:] - steps[0]
        return Query(
            iteration=iteration, x=base, steps=steps, losses=losses, constraints=rows
        )

    @property
    def _starts_beside(self) -> bool:
        """Whether values at the point are known and differences asked for."""
        known = len(self.loss_values), len(self.constraint_values)
        is_known = known == (len(self.losses), len(self.constraints))
        return is_known and bool(self.reach.any())

    def read(
        self,
        queries: Sequence[Query],
        replies: Sequence[Reply],
        size: ProblemSize,
        scale: FloatArray,
    ) -> Found:
        """Return what the replies say; what has failed is nan.

        Slopes are those along the variables divided by `scale`.
        """
        found = Found(
            loss_values=_filled(self.loss_values, len(self.losses)),
            loss_slopes=np.full((len(self.losses), size.dim), np.nan),
            values=_filled(self.constraint_values, len(self.constraints)),
            slopes=np.full((len(self.constraints), size.dim), np.nan),
        )
        for query, reply in zip(queries, replies, strict=True):
            places = places_of(query.losses, self.losses)
            rows = places_of(query.constraints, self.constraints)
            is_given = query.want == "gradients"
            if is_given or not self._starts_beside:
                found.loss_values[places] = reply.losses[0]
                found.values[rows] = reply.constraints[0]
            if is_given and len(places):
                found.loss_slopes[places] = reply.loss_gradients * scale
            if is_given and len(rows):
                found.slopes[rows] = reply.jacobian * scale
            if is_given or not self.wants_slopes:
                continue
            shifts = query.points(size) - self.at
            for values, slopes, which, replied in (
                (found.loss_values, found.loss_slopes, places, reply.losses),
                (found.values, found.slopes, rows, reply.constraints),
            ):
                if len(which):
                    told = self._slopes(shifts, replied, values[which])
                    slopes[which] = told * scale
        return found

    def _slopes(
        self, shifts: FloatArray, values: FloatArray, here: FloatArray
    ) -> FloatArray:
        """Return slopes by values at shifted points; nan where one is missing."""
        slopes = np.zeros((len(here), len(self.at)))
        slopes[:, self.reach != 0] = np.nan
        along = np.abs(shifts / np.where(self.reach == 0, np.inf, self.reach)).argmax(1)
        moved = shifts[np.arange(len(along)), along]
        ok = moved != 0
        slopes[:, along[ok]] = (values[ok] - here).T / moved[ok]
        return slopes


def read_all(
    state: Any, queries: Sequence[Query], replies: Sequence[Reply]
) -> list[Found]:
    """Return what the replies say about each look of a state."""
    found, first = [], 0
    for look in state.looks:
        n = len(look.queries(state.iteration, state.size))
        part = slice(first, first + n)
        found.append(look.read(queries[part], replies[part], state.size, state.scale))
        first += n
    return found


def slope_looks(for_losses: Look, for_rows: Look) -> tuple[Look, ...]:
    """Return looks at slopes at one point: a single one if their steps are the same."""
    if not len(for_rows.constraints):
        return (for_losses,) if len(for_losses.losses) else ()
    if not len(for_losses.losses):
        return (for_rows,)
    if not np.array_equal(for_losses.reach, for_rows.reach):
        return for_losses, for_rows
    rows, values = for_rows.constraints, for_rows.constraint_values
    return (replace(for_losses, constraints=rows, constraint_values=values),)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Found:
    """What a look has found, in the order of its losses and constraints."""

    loss_values: FloatArray
    loss_slopes: FloatArray
    values: FloatArray
    slopes: FloatArray


def are_indices(indices: IntArray, n: int) -> bool:
    """Whether these are different numbers of things of which there are `n`."""
    return bool(
        indices.ndim == 1
        and (indices >= 0).all()
        and (indices < n).all()
        and len(np.unique(indices)) == len(indices)
    )


def _filled(values: FloatArray, n: int) -> FloatArray:
    return np.array(values) if len(values) == n else np.full(n, np.nan)


def places_of(wanted: IntArray, among: IntArray) -> IntArray:
    """Return the place of each index in a list that holds it."""
    order = np.argsort(among, kind="stable")
    return order[np.searchsorted(among, wanted, sorter=order)]


def worst_of(
    size: ProblemSize, constraints: IntArray, values: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Return what is known, by case: the worst of each, infinite where it failed.

    A limit that is the same in all cases, as one of a variable is, tells nothing of any
    of them: it counts where it is violated.
    """
    if not size.by_case:
        known = ~np.isnan(values)
        return constraints[known], values[known]
    table = values.reshape(-1, size.block_width)
    known = table[~np.isnan(table).any(axis=1)]
    own = np.array(table)
    if len(known) >= MANY_CASES:
        tiny = SAME * float(np.median(np.abs(known)))
        same = np.ptp(known, axis=0) <= tiny
        same &= known.max(axis=0) <= tiny
        own[:, same] = np.where(same.all(), table[:, same], -np.inf)
    worst = np.where(np.isnan(table), UNKNOWN, own).max(axis=1)
    return constraints[:: size.block_width] // size.block_width, worst


def inward(x: FloatArray, reach: FloatArray, size: ProblemSize) -> FloatArray:
    """Return steps of at most this size that stay within the bounds, with their signs.

    Each is turned to the side on which there is more room if it does not fit on the
    upper one; 0 for a variable that cannot move.
    """
    up, down = size.upper - x, x - size.lower
    step = np.where(up >= reach, reach, -reach)
    short = (up < reach) & (down < reach)
    step = np.where(short, np.where(up >= down, up, -down), step)
    return np.clip(x + step, size.lower, size.upper) - x


def peaks(indices: IntArray, values: FloatArray) -> BoolArray:
    """Return which values are no less than those before and behind, by index.

    All of them, unless neighbours are alike, as moments in a row are.
    """
    order = np.argsort(indices, kind="stable")
    found, along = np.ones(len(values), dtype=bool), values[order]
    if len(values) < 3:
        return found
    apart, usual = np.diff(along), along - along.mean()
    if (apart**2).mean() < ALIKE * (usual**2).mean():
        sides = np.concatenate([[-np.inf], along, [-np.inf]])
        found[order] = (along >= sides[:-2]) & (along >= sides[2:])
    return found
