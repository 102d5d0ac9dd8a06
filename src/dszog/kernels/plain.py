"""Every kernel in plain NumPy: what the compiled ones are held to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray, freeze
from dszog.errors import InputError
from dszog.kernels.projection import project_with_background
from dszog.kernels.tables import EXACT, DualStep, SparseWeights, Weights

NAME = "plain"
AT_ONCE = False  # a method draws and steps by itself, not in one call
SPARSE_SHARE = -1.0  # no dense matrix is better scored as a sparse one

# A touched constraint rejoins the background when its difference from it is below the
# rounding of the totals: nothing that could be seen in the dense form is lost.
MERGE_WEIGHT = 1e-18  # of the sum of the weights, which is 1
MERGE_GRADIENT = 1e-18  # of the norm of the averaged gradient


# ----------------------------------------------------------------------- random numbers


def numbers(
    stream: Callable[[int, int], np.random.Generator],
    seed: int,
    iteration: int,
    shape: tuple[int, int],
    n_uniforms: int,
) -> tuple[FloatArray, FloatArray]:
    """Return normal numbers, then uniform ones, of the stream of an iteration."""
    rng = stream(seed, iteration)
    return rng.standard_normal(shape), rng.random(n_uniforms)


def distinct_indices(uniforms: FloatArray, n: int, size: int) -> IntArray | None:
    """Return the first different indices below `n` that uniform numbers stand for."""
    # Of `size` numbers at the least; ascending; None if they do not suffice. The 53
    # random bits of a float are an integer; one beyond the last full multiple of n is
    # left out, so that the rest of the division is uniform.
    if size == n:
        return np.arange(n)
    bits = (uniforms * EXACT).astype(np.int64)
    indices = bits[bits < EXACT - EXACT % n] % n
    _, firsts = np.unique(indices, return_index=True)
    if len(firsts) < size:
        return None
    return np.sort(indices[np.sort(firsts)[:size]])


def places(weights: FloatArray, rest: float, uniforms: FloatArray) -> IntArray | None:
    """Return where each uniform number falls among the weights, then the rest."""
    # Uniform numbers ascend, and so do the places. None if the weights are no weights.
    heights = np.cumsum(np.append(weights, rest))
    if not (np.isfinite(heights[-1]) and heights[-1] > 0.0):
        return None
    drawn = np.searchsorted(heights, uniforms * heights[-1], side="right")
    # Rounding may lift a draw to the very top: the last positive weight is meant.
    last = np.searchsorted(heights, heights[-1], side="left")
    positions: IntArray = np.minimum(drawn, last)
    return positions


def background(touched: IntArray, ranks: IntArray) -> IntArray:
    """Return the constraints of these ranks among those that are not touched."""
    # touched[i] - i of them lie below the i-th touched one.
    below = touched - np.arange(len(touched))
    found: IntArray = ranks + np.searchsorted(below, ranks, side="right")
    return found


def orthogonal(normals: FloatArray) -> FloatArray:
    """Turn normal numbers into orthogonal rows of length root dim, `dim` in a set."""
    n, dim = normals.shape
    blocks = [np.empty((0, dim))]
    for first in range(0, n, dim):
        block = normals[first : first + dim].reshape(dim, -1)
        basis, triangle = np.linalg.qr(block)
        # With the signs of the triangle's diagonal the basis is uniformly distributed.
        blocks.append((basis * np.sign(np.diag(triangle))).T)
    scaled: FloatArray = np.sqrt(dim) * np.concatenate(blocks)
    return scaled


def around(
    x: FloatArray, directions: FloatArray, radius: float
) -> tuple[FloatArray, FloatArray]:
    """Make steps of directions; return them, and the point with those at their ends."""
    if not directions.flags.writeable:  # signs that a query names are kept
        directions = directions.copy()
    directions *= radius
    points = np.empty((len(directions) + 1, len(x)))
    points[0] = x
    np.add(x, directions, out=points[1:])
    return freeze(directions), freeze(points)


# ----------------------------------------------------------------------- the weights


def violations(values: FloatArray) -> tuple[float, int, float, FloatArray]:
    """Return the worst violation, how many there are, their sum and their squares."""
    over = np.maximum(values, 0.0)
    worst, total = np.maximum.reduce(over, initial=0.0), np.add.reduce(over)
    return float(worst), int(np.count_nonzero(over)), float(total), over * over


def combine(
    others: IntArray,
    other_penalties: FloatArray,
    drawn: IntArray,
    penalties: FloatArray,
    weights_of: Callable[[IntArray], FloatArray],
    spread: float,
) -> tuple[IntArray, FloatArray]:
    r"""Join two draws; scale each penalty by the chances that it comes to light.

    `others`, ascending with repeats, are drawn from the weights :math:`p`, `drawn`
    uniformly, each standing for `spread` constraints. A penalty that either may bring
    to light is divided by the chance that one of them does [1]_,

    .. math:: \pi_j = 1 - (1 - p_j)^{|M_2|} \, (1 - |M_3| / m),

    which leaves the estimate unbiased. Returned are distinct indices, ascending, and
    penalties scaled such that each stands for `spread`.

    References
    ----------
    .. [1] D. G. Horvitz and D. J. Thompson, "A generalization of sampling without
       replacement from a finite universe", J. Am. Stat. Assoc. 47(260), 1952.
    """
    distinct, firsts = np.unique(others, return_index=True)
    indices = np.union1d(distinct, drawn)
    joined = np.empty(len(indices))
    joined[np.searchsorted(indices, distinct)] = other_penalties[firsts]
    joined[np.searchsorted(indices, drawn)] = penalties
    weights, uniform = np.minimum(weights_of(indices), 1.0), 1.0 / spread
    with np.errstate(divide="ignore"):  # the logarithm of 0, for what is always drawn
        missed = len(others) * np.log1p(-weights) + np.log1p(-uniform)
    return indices, joined * (uniform / -np.expm1(missed))


def weights_of(weights: SparseWeights, indices: IntArray) -> FloatArray:
    """Return the weights of some constraints."""
    found = np.searchsorted(weights.indices, indices)
    touched = found < len(weights.indices)
    touched[touched] = weights.indices[found[touched]] == indices[touched]
    own = np.full(len(indices), weights.background_weight)
    own[touched] = weights.weights[found[touched]]
    return own


def learn(
    weights: Weights,
    drawn: IntArray,
    penalties: FloatArray,
    step: DualStep,
    spread: float,
) -> Weights | None:
    """Estimate the gradient in the weights, ascend, project, average, merge."""
    # `drawn` ascend. None if a number is not finite.
    try:
        with np.errstate(over="raise", invalid="raise"):
            return _learn(weights, drawn, penalties, step, spread)
    except (FloatingPointError, InputError):
        return None


def _learn(
    old: Weights,
    drawn: IntArray,
    penalties: FloatArray,
    step: DualStep,
    spread: float,
) -> Weights:
    # Touch: each violated constraint gets a place of its own, with background values.
    violated = drawn[penalties > 0.0]
    new = violated[~np.isin(violated, old.indices, assume_unique=True)]
    indices, weights, z, memory = old.columns
    if len(new):
        at = np.searchsorted(indices, new)
        indices = np.insert(indices, at, new)
        weights = np.insert(weights, at, old.background_weight)
        z = np.insert(z, at, old.background_gradient)
        memory = np.insert(memory, at, 0.0)
    n_background, rest = old.n_constraints - len(indices), old.background_weight

    estimate = -step.ridge * weights  # Alg. 1, line 13
    found = np.searchsorted(indices, drawn)
    known = found < len(indices)
    known[known] = indices[found[known]] == drawn[known]
    found, penalties = found[known], penalties[known]
    factor = step.penalty * spread
    if step.centred:
        estimate += step.penalty * memory
        estimate[found] += factor * (penalties - memory[found])
        memory = memory.copy()
        memory[found] = penalties
    else:
        estimate[found] += factor * penalties
    b = step.averaging
    z = (1 - b) * z + b * estimate  # line 15
    rest_z = (1 - b) * old.background_gradient + b * (-step.ridge * rest)

    scale = step.scale(_norm(z, rest_z, n_background))
    target, rest_target = project_with_background(  # line 6
        weights + scale * z, rest + scale * rest_z, n_background
    )
    a = step.mixing
    weights = (1 - a) * weights + a * target  # line 7
    rest = (1 - a) * rest + a * rest_target
    total = weights.sum() + n_background * rest
    background = float(rest / total), rest_z
    return old.after(
        *merged(indices, weights / total, z, memory, *background, n_background)
    )


def merged(
    indices: IntArray,
    weights: FloatArray,
    gradient: FloatArray,
    memory: FloatArray,
    background_weight: float,
    background_gradient: float,
    n_background: int,
) -> tuple[Any, ...]:
    """Let the constraints that no longer differ from the background rejoin it."""
    least = MERGE_GRADIENT * _norm(gradient, background_gradient, n_background)
    keep = np.abs(weights - background_weight) > MERGE_WEIGHT
    keep |= np.abs(gradient - background_gradient) > least
    keep |= memory != 0.0
    if not keep.all():
        indices, weights = indices[keep], weights[keep]
        gradient, memory = gradient[keep], memory[keep]
    kept = map(freeze, (indices, weights, gradient, memory))
    return *kept, background_weight, background_gradient


def _norm(gradient: FloatArray, background: float, n_background: int) -> float:
    return float(np.sqrt(np.square(gradient).sum() + n_background * background**2))


# ----------------------------------------------------------------------- scores of rows


def prepared_rows(matrix: Any) -> Any:
    """Return sparse rows in the form in which they are scored: as they are."""
    return matrix


def scores(rows: Any, points: FloatArray, indices: IntArray) -> FloatArray:
    """Return the score of each point (row) and each indexed row (column)."""
    table: FloatArray = (rows[indices] @ points.T).T
    return table


def pairs(
    rows: Any, others: Any, margin: float, points: FloatArray, indices: IntArray
) -> FloatArray:
    """Return by how much each pair of sparse rows fails, at each point."""
    row, other = np.divmod(indices, others.shape[0])
    difference = others[other].toarray() - rows[row].toarray()
    table: FloatArray = points @ difference.T
    table += margin
    return table


def dense_pairs(
    rows: FloatArray,
    others: FloatArray,
    margin: float,
    points: FloatArray,
    indices: IntArray,
) -> FloatArray:
    """Return by how much each pair of dense rows fails, at each point."""
    table: FloatArray = points @ differences(rows, others, indices).T
    table += margin
    return table


def differences(rows: FloatArray, others: FloatArray, indices: IntArray) -> FloatArray:
    """Return the other row of each pair, less its own."""
    row, other = np.divmod(indices, len(others))
    return others.take(other, axis=0) - rows.take(row, axis=0)
