"""The objective: a table of losses with their slopes, grown and refreshed on demand.

The gradient is the mean of the table's slopes. After a step a part of the rows is
learned anew; the mean of their changes moves the gradient (SAGA), until what is left of
the noise along the step is small against the decrease that the step promised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, IntArray, frozen_floats, frozen_ints
from dszog.methods.sampled_sqp.looks import are_indices


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LossTable:
    """Losses with their values at the iterate and slopes seen there or before."""

    indices: IntArray  # (b,)
    values: FloatArray  # (b,), at the iterate
    slopes: FloatArray  # (b, dim), in scaled variables
    gradient: FloatArray  # (dim,), the estimate
    # A refresh that is under way: which rows are left, and what the others said.
    queue: IntArray  # rows in the order in which they are refreshed
    mean_before: FloatArray  # (dim,), of the slopes before the refresh
    changes: FloatArray  # (n_fresh, dim), of the slopes that were refreshed

    def __post_init__(self) -> None:
        for name in ("values", "slopes", "gradient", "mean_before", "changes"):
            object.__setattr__(self, name, frozen_floats(getattr(self, name)))
        for name in ("indices", "queue"):
            object.__setattr__(self, name, frozen_ints(getattr(self, name)))

    @classmethod
    def empty(cls, dim: int) -> LossTable:
        """Return a table without rows."""
        none, nothing = np.empty(0, dtype=np.int64), np.empty(0)
        return cls(
            indices=none,
            values=nothing,
            slopes=np.empty((0, dim)),
            gradient=np.zeros(dim),
            queue=none,
            mean_before=np.zeros(dim),
            changes=np.empty((0, dim)),
        )

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes and indices are those of a table of such a problem."""
        b, dim = len(self.indices), size.dim
        return (
            are_indices(self.indices, size.n_losses)
            and are_indices(self.queue, b)
            and self.values.shape == (b,)
            and self.slopes.shape == (b, dim)
            and self.gradient.shape == self.mean_before.shape == (dim,)
            and self.changes.shape == (self.n_fresh, dim)
            and self.n_fresh <= len(self.queue)
        )

    def __len__(self) -> int:
        return len(self.indices)

    @property
    def n_fresh(self) -> int:
        """How many rows of the queue are refreshed."""
        return len(self.changes)

    def noise_along(self, step: FloatArray, n_losses: int) -> float:
        """Return the standard error of the slope along a step, as all losses go."""
        b = len(self)
        if b >= n_losses or b < 2:
            return 0.0
        along = self.slopes @ step
        return float(along.std() / np.sqrt(b) * np.sqrt(1.0 - b / n_losses))

    # -------------------------------------------------------------------------- growing

    def grown(
        self, indices: IntArray, values: FloatArray, slopes: FloatArray
    ) -> LossTable:
        """Return the table with more rows, learned at the iterate."""
        b, more = len(self), len(indices)
        if not more:
            return self
        gradient = (b * self.gradient + slopes.sum(axis=0)) / (b + more)
        return replace(
            self,
            indices=np.concatenate([self.indices, indices]),
            values=np.concatenate([self.values, values]),
            slopes=np.vstack([self.slopes, slopes]),
            gradient=gradient,
        )

    # ----------------------------------------------------------------------- refreshing

    def begun(self, order: IntArray) -> LossTable:
        """Begin to refresh the rows in this order."""
        return replace(
            self,
            queue=order,
            mean_before=self.slopes.mean(axis=0),
            changes=np.empty((0, len(self.gradient))),
        )

    def next_rows(self, n_first: int) -> IntArray:
        """Return the rows to refresh next: some at first, then as many as were."""
        end = max(n_first, 2 * self.n_fresh)
        rows: IntArray = self.queue[self.n_fresh : end]
        return rows

    def refreshed(self, rows: IntArray, slopes: FloatArray) -> LossTable:
        """Return the table with these rows learned anew."""
        fresh = np.where(np.isnan(slopes), self.slopes[rows], slopes)
        changes = np.vstack([self.changes, fresh - self.slopes[rows]])
        all_slopes = np.array(self.slopes)
        all_slopes[rows] = fresh
        n_queued = len(self.queue)  # rows that joined since are behind these
        gradient = self.mean_before + changes.mean(axis=0)
        if len(changes) >= n_queued:
            gradient = all_slopes[:n_queued].mean(axis=0)
        later = all_slopes[n_queued:].sum(axis=0)
        return replace(
            self,
            slopes=all_slopes,
            gradient=(n_queued * gradient + later) / len(self),
            changes=changes,
        )

    def noise_left(self, step: FloatArray) -> float:
        """Return the standard error of the slope along a step, by stale rows."""
        n, n_queued = self.n_fresh, len(self.queue)
        if n >= n_queued:
            return 0.0
        if n < 2:
            return np.inf
        spread = float((self.changes @ step).std()) * n_queued / len(self)
        return spread / float(np.sqrt(n)) * float(np.sqrt(1.0 - n / n_queued))
