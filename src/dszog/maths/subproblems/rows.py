r"""Families of linear constraints :math:`a_j \cdot w \le h_j`, parts of polyhedra.

A family is asked for its most violated rows at a point, which it may find without
listing them; or for a *system* that describes the same set with all rows written out,
possibly in more variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from dszog.contract.arrays import FloatArray, IntArray


class System(NamedTuple):
    """All rows written out: ``matrix @ [w, extra] <= limits``."""

    matrix: FloatArray  # (n_rows, dim + n_extra)
    limits: FloatArray  # (n_rows,)


class RowFamily(Protocol):
    """A family of linear constraints, each named by its index."""

    @property
    def dim(self) -> int: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def is_homogeneous(self) -> bool:
        """Whether every limit is 0, which makes the set a cone."""
        ...

    def worst(self, w: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
        """Return about `count` of the most violated rows and what they are off by.

        The worst row of all comes first.
        """
        ...

    def normals(self, indices: IntArray) -> FloatArray: ...

    def limits(self, indices: IntArray) -> FloatArray: ...

    def system(self) -> System:
        """Return the same set with all its rows written out."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MatrixRows:
    """The rows of ``A w <= b``, `A` dense or sparse (CSR)."""

    matrix: FloatArray | sparse.csr_array
    bounds: FloatArray

    @property
    def dim(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def n_rows(self) -> int:
        return len(self.bounds)

    @property
    def is_homogeneous(self) -> bool:
        return not self.bounds.any()

    def worst(self, w: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
        return _largest(times(self.matrix, w) - self.bounds, count)

    def normals(self, indices: IntArray) -> FloatArray:
        return _dense(self.matrix[indices])

    def limits(self, indices: IntArray) -> FloatArray:
        return self.bounds[indices]

    def system(self) -> System:
        return System(_dense(self.matrix), self.bounds)


@dataclass(frozen=True, slots=True, eq=False)
class PairRows:
    r""":math:`(x_b^- - x_a^+) \cdot w \le \text{slack}` for every pair, never listed.

    Row ``a * n_negatives + b`` is the pair of positive ``a`` and negative ``b``.
    """

    positives: FloatArray  # (n_positives, dim)
    negatives: FloatArray  # (n_negatives, dim)
    slack: float

    @property
    def dim(self) -> int:
        return int(self.positives.shape[1])

    @property
    def n_rows(self) -> int:
        return len(self.positives) * len(self.negatives)

    @property
    def is_homogeneous(self) -> bool:
        return self.slack == 0.0

    def worst(self, w: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
        """Pair the lowest positive with the highest negative, and so on."""
        # The first is the worst of all pairs; the others name different samples each,
        # which is what makes them useful together.
        positive, negative = times(self.positives, w), times(self.negatives, w)
        a = _lowest(positive, count)
        b = _lowest(-negative, count)
        n = min(len(a), len(b))
        off = negative[b[:n]] - positive[a[:n]] - self.slack
        return a[:n] * len(self.negatives) + b[:n], off

    def normals(self, indices: IntArray) -> FloatArray:
        a, b = np.divmod(indices, len(self.negatives))
        return self.negatives[b] - self.positives[a]

    def limits(self, indices: IntArray) -> FloatArray:
        return np.full(len(indices), self.slack)

    def system(self) -> System:
        r"""Return a row per sample, with a threshold :math:`s` as one more variable.

        :math:`x_a^+ \cdot w \ge s` and :math:`x_b^- \cdot w \le s + \text{slack}` for
        some :math:`s` is the same set of :math:`w` as all the pairs.
        """
        n_pos, n_neg = len(self.positives), len(self.negatives)
        rows = np.concatenate([-self.positives, self.negatives])
        threshold = np.concatenate([np.ones(n_pos), -np.ones(n_neg)])
        limits = np.concatenate([np.zeros(n_pos), np.full(n_neg, self.slack)])
        return System(np.column_stack([rows, threshold]), limits)

    def listed(self) -> MatrixRows:
        """Return the same pairs with a row for each: the *full* form."""
        differences = self.negatives[np.newaxis] - self.positives[:, np.newaxis]
        matrix = differences.reshape(self.n_rows, self.dim)
        return MatrixRows(matrix, np.full(self.n_rows, self.slack))


@dataclass(frozen=True, slots=True, eq=False)
class BoxRows:
    """``lower <= w <= upper``; row ``i`` is an upper side, row ``dim + i`` a lower."""

    lower: FloatArray
    upper: FloatArray

    @property
    def dim(self) -> int:
        return len(self.lower)

    @property
    def n_rows(self) -> int:
        return 2 * len(self.lower)

    @property
    def n_sides(self) -> int:
        """Number of finite sides."""
        return int(np.isfinite([self.lower, self.upper]).sum())

    @property
    def is_homogeneous(self) -> bool:
        sides = np.concatenate([self.lower, self.upper])
        return not sides[np.isfinite(sides)].any()

    def worst(self, w: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
        return _largest(np.concatenate([w - self.upper, self.lower - w]), count)

    def normals(self, indices: IntArray) -> FloatArray:
        variable, is_lower = indices % self.dim, indices >= self.dim
        normals = np.zeros((len(indices), self.dim))
        normals[np.arange(len(indices)), variable] = np.where(is_lower, -1.0, 1.0)
        return normals

    def limits(self, indices: IntArray) -> FloatArray:
        return np.concatenate([self.upper, -self.lower])[indices]

    def system(self) -> System:
        limits = np.concatenate([self.upper, -self.lower])
        finite = np.flatnonzero(np.isfinite(limits))
        return System(self.normals(finite), limits[finite])


class NumberedRows:
    """The rows of several families, numbered through in their order."""

    def __init__(self, families: Sequence[RowFamily]) -> None:
        self._families = families
        self._firsts = np.cumsum([0, *(family.n_rows for family in families)])
        self.n_rows = int(self._firsts[-1])

    def worst(self, w: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
        """Return about `count` of the most violated rows of each family."""
        found = [family.worst(w, count) for family in self._families]
        numbered = zip(found, self._firsts[:-1], strict=True)
        indices = np.concatenate([own + first for (own, _), first in numbered])
        return indices, np.concatenate([off for _, off in found])

    def normals(self, indices: IntArray) -> FloatArray:
        return np.concatenate([f.normals(own) for f, own in self._split(indices)])

    def limits(self, indices: IntArray) -> FloatArray:
        return np.concatenate([f.limits(own) for f, own in self._split(indices)])

    def _split(self, indices: IntArray) -> Iterator[tuple[RowFamily, IntArray]]:
        """Yield each family with its own rows of these, which it numbers from 0."""
        ends = pairwise(self._firsts)
        for family, (first, last) in zip(self._families, ends, strict=True):
            yield family, indices[(indices >= first) & (indices < last)] - first


def joined(systems: list[System], dim: int) -> System:
    """Return all rows of several systems; each keeps extra variables of its own."""
    n_extra = sum(system.matrix.shape[1] - dim for system in systems)
    blocks, first = [], dim
    for matrix, _ in systems:
        n_own = matrix.shape[1] - dim
        block = np.zeros((len(matrix), dim + n_extra))
        block[:, :dim] = matrix[:, :dim]
        block[:, first : first + n_own] = matrix[:, dim:]
        blocks.append(block)
        first += n_own
    limits = np.concatenate([system.limits for system in systems])
    return System(np.concatenate(blocks), limits)


def normalised(system: System) -> System:
    """Return the same rows, each of length 1: what solvers of programs can judge."""
    lengths = np.sqrt(np.square(system.matrix).sum(axis=1))
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    return System(system.matrix / lengths[:, np.newaxis], system.limits / lengths)


def times(matrix: FloatArray | sparse.csr_array, w: FloatArray) -> FloatArray:
    """Return the product, whose bits do not depend on the number of threads."""
    if sparse.issparse(matrix):
        return np.asarray(matrix @ w)
    product: FloatArray = np.einsum("nd,d->n", matrix, w)
    return product


def _dense(rows: Any) -> FloatArray:
    dense: FloatArray = rows.toarray() if sparse.issparse(rows) else rows
    return dense


def _largest(values: FloatArray, count: int) -> tuple[IntArray, FloatArray]:
    chosen = _lowest(-values, count)
    return chosen, values[chosen]


def _lowest(values: FloatArray, count: int) -> IntArray:
    """Return where the `count` least values are, least first; the first of equals."""
    if count < len(values):
        edge = np.partition(values, count - 1)[count - 1]
        candidates = np.flatnonzero(values <= edge)
    else:
        candidates = np.arange(len(values))
    order: IntArray = candidates[np.argsort(values[candidates], kind="stable")][:count]
    return order
