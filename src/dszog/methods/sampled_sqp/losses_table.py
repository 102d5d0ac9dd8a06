"""The objective: a table of losses with their slopes, grown and refreshed on demand.

The gradient is the mean of the table's slopes. After a step a part of the rows is
learned anew; the mean of their changes moves the gradient (SAGA), until what is left of
the noise along the step is small against the decrease that the step promised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.arrays import FloatArray, FrozenArrays, IntArray
from dszog.methods.sampled_sqp.looks import are_indices

LEVEL = 0.01  # of the usual change along a step: losses that change less say little
MOST_GROWTH = 2.0  # of a slope, over one step


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LossTable(FrozenArrays):
    """Losses with their values at the iterate and slopes seen there or before."""

    indices: IntArray  # (b,)
    values: FloatArray  # (b,), at the iterate
    slopes: FloatArray  # (b, dim), in scaled variables
    gradient: FloatArray  # (dim,), the estimate
    # A refresh that is under way: which rows are left, and what the others said.
    queue: IntArray  # rows in the order in which they are refreshed
    mean_before: FloatArray  # (dim,), of the slopes before the refresh
    changes: FloatArray  # (n_fresh, dim), of the slopes that were refreshed
    growth: FloatArray  # (b,), share by which values say that each slope has grown

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
            growth=nothing,
        )

    def fits(self, size: ProblemSize) -> bool:
        """Whether the shapes and indices are those of a table of such a problem."""
        b, dim = len(self.indices), size.dim
        return (
            are_indices(self.indices, size.n_losses)
            and are_indices(self.queue, b)
            and self.values.shape == self.growth.shape == (b,)
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
            growth=np.concatenate([self.growth, np.zeros(more)]),
        )

    # ----------------------------------------------------------------------- refreshing

    def followed(self, values: FloatArray, step: FloatArray) -> LossTable:
        """Return the table after a step; values say by how much slopes have grown.

        So it is if a loss is a function of one linear form, as in linear models.
        """
        table = self._settled()
        along = (1.0 + table.growth) * (table.slopes @ step)
        misses = values - table.values - along
        least = LEVEL * float(np.sqrt((along**2).mean())) if len(along) else 0.0
        more = 2.0 * misses * along / np.maximum(along**2 + least**2, 1e-300)
        more = np.clip(more, -MOST_GROWTH, MOST_GROWTH)
        growth = (1.0 + table.growth) * (1.0 + more) - 1.0
        return replace(table, values=values, growth=growth)

    def begun(self, order: IntArray) -> LossTable:
        """Begin to refresh the rows in this order."""
        table = self._settled()
        return replace(
            table,
            queue=order,
            mean_before=table.slopes.mean(axis=0),
            changes=np.empty((0, len(self.gradient))),
        )

    def _expected(self) -> tuple[FloatArray, FloatArray]:
        """Return by how much each slope of the queue was to change, and did by now.

        As much of what values say is believed as came true where slopes are known.
        """
        before = np.array(self.slopes[self.queue])
        before[: self.n_fresh] -= self.changes
        said = self.growth[self.queue, np.newaxis] * before
        known = said[: self.n_fresh]
        share = float((known * self.changes).sum()) / max(
            float((known * known).sum()), 1e-300
        )
        said *= min(max(share, 0.0), 1.0)
        return said, self.changes - said[: self.n_fresh]

    def _settled(self) -> LossTable:
        """Return the table with all slopes as they are believed to be."""
        if not self.n_fresh:
            return self
        said, _ = self._expected()
        slopes, growth = np.array(self.slopes), np.array(self.growth)
        slopes[self.queue[self.n_fresh :]] += said[self.n_fresh :]
        growth[self.queue] = 0.0
        none = np.empty((0, len(self.gradient)))
        return replace(
            self, slopes=slopes, growth=growth, queue=self.queue[:0], changes=none
        )

    def next_rows(self, n_first: int) -> IntArray:
        """Return the rows to refresh next: some at first, then as many as were."""
        end = max(n_first, 2 * self.n_fresh)
        return self.queue[self.n_fresh : end]

    def refreshed(self, rows: IntArray, slopes: FloatArray) -> LossTable:
        """Return the table with these rows learned anew."""
        fresh = np.where(np.isnan(slopes), self.slopes[rows], slopes)
        changes = np.vstack([self.changes, fresh - self.slopes[rows]])
        all_slopes = np.array(self.slopes)
        all_slopes[rows] = fresh
        n_queued = len(self.queue)  # rows that joined since are behind these
        table = replace(self, slopes=all_slopes, changes=changes)
        said, missed = table._expected()
        gradient = self.mean_before + said.mean(axis=0) + missed.mean(axis=0)
        if len(changes) >= n_queued:
            gradient = all_slopes[:n_queued].mean(axis=0)
        later = all_slopes[n_queued:].sum(axis=0)
        return replace(table, gradient=(n_queued * gradient + later) / len(self))

    def noise_left(self, step: FloatArray) -> float:
        """Return the standard error of the slope along a step, by stale rows."""
        n, n_queued = self.n_fresh, len(self.queue)
        if n >= n_queued:
            return 0.0
        if n < 2:
            return np.inf
        spread = float((self._expected()[1] @ step).std()) * n_queued / len(self)
        return spread / float(np.sqrt(n)) * float(np.sqrt(1.0 - n / n_queued))
