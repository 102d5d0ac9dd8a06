"""Every kernel as a compiled loop; what each does is said in ``plain``."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dszog.contract.arrays import (
    FloatArray,
    IntArray,
    freeze,
    frozen_floats,
    frozen_ints,
)
from dszog.kernels import _draws, _rows, _steps, plain
from dszog.kernels.plain import MERGE_GRADIENT, MERGE_WEIGHT
from dszog.kernels.tables import Draw, Drawn, DualStep, SparseWeights, Stepped, Weights

try:
    from dszog.kernels import _philox
except ImportError:  # a Numba that keeps its tables elsewhere
    _philox = None  # type: ignore[assignment]

NAME = "compiled"
AT_ONCE = True  # draws and steps of an iteration, each in one call
SPARSE_SHARE = 0.25  # a dense matrix with at most this share of entries is kept sparse
FEW = 16  # directions of a set that are made orthogonal one by one
SPARE_WORDS = 64  # words of random bits at the least beyond one for each number


def say_what_takes_time() -> None:
    """Say why first calls take seconds, if nothing is kept on disk yet."""
    kept = _steps.learn.stats.cache_path  # type: ignore[attr-defined]
    if kept is None or not any(Path(kept).glob("_steps.*.nbi")):
        logging.getLogger("dszog").warning(
            "Compiling the kernels, once; later runs find them on disk. "
            "DSZOG_KERNELS=numpy does without them."
        )


def numbers(
    stream: Callable[[int, int], np.random.Generator],
    seed: int,
    iteration: int,
    shape: tuple[int, int],
    n_uniforms: int,
) -> tuple[FloatArray, FloatArray]:
    if _philox is not None and seed < 2**63:  # an int64, as the compiled ones
        n_normals = shape[0] * shape[1]
        # One normal number in forty takes more words than one.
        n_words = n_normals + n_normals // 32 + n_uniforms + SPARE_WORDS
        words = np.empty(n_words - n_words % 4, np.uint64)
        normals, uniforms = np.empty(shape), np.empty(n_uniforms)
        if _philox.numbers(seed, iteration, words, normals, uniforms):
            return normals, uniforms
    return plain.numbers(stream, seed, iteration, shape, n_uniforms)


def distinct_indices(uniforms: FloatArray, n: int, size: int) -> IntArray | None:
    drawn = np.empty(size, dtype=np.int64)
    return drawn if _draws.distinct_indices(uniforms, n, drawn) else None


def places(weights: FloatArray, rest: float, uniforms: FloatArray) -> IntArray | None:
    drawn = np.empty(len(uniforms), dtype=np.int64)
    return drawn if _draws.places(weights, rest, uniforms, drawn) else None


def draw(
    uniforms: FloatArray,
    losses: Draw,
    duals: Draw,
    n_drawn: int,
    weights: SparseWeights,
) -> Drawn | None:
    """Draw all that an iteration of DSZOG looks at (Alg. 1, lines 9 to 11)."""
    # None where the numbers do not suffice, or the weights are no weights.
    n_losses, first = losses.size, losses.size + duals.size
    # Losses, duals, and constraints with what is known of repeats among them.
    drawn = np.empty(first + 3 * n_drawn, np.int64)
    touched = weights.indices
    rest = (weights.n_constraints - len(touched)) * weights.background_weight
    n_kept = _draws.draw(
        uniforms, *losses, *duals, touched, weights.weights, rest, drawn
    )
    if n_kept < 0:
        return None
    freeze(drawn)
    constraints = drawn[first : first + n_drawn]
    if n_kept == n_drawn:
        distinct: Any = constraints, None
    else:
        kept, repeats = first + n_drawn, first + 2 * n_drawn
        distinct = drawn[kept : kept + n_kept], drawn[repeats:]
    return Drawn(drawn[:n_losses], drawn[n_losses:first], constraints, distinct)


def orthogonal(normals: FloatArray) -> FloatArray:
    if min(normals.shape) > FEW:  # LAPACK is the faster one
        return plain.orthogonal(normals)
    directions = np.empty(normals.shape)
    _draws.orthogonal(normals.reshape(-1), directions)
    return directions


def around(
    x: FloatArray, directions: FloatArray, radius: float
) -> tuple[FloatArray, FloatArray]:
    steps = np.ascontiguousarray(directions)
    if not steps.flags.writeable:  # signs that a query names are kept
        steps = steps.copy()
    points = np.empty((len(steps) + 1, len(x)))
    _draws.around(x, steps, radius, points)
    return freeze(steps), freeze(points)


def step(
    losses: FloatArray,
    constraints: FloatArray,
    values: FloatArray,
    steps: FloatArray,
    x: FloatArray,
    velocity: FloatArray,
    drawn: tuple[IntArray, IntArray],
    weights: SparseWeights,
    dual_step: DualStep,
    spread: float,
    radius: float,
    step_size: float,
) -> Stepped | None:
    """Take both steps of an iteration of DSZOG (Alg. 1, lines 5 to 7 and 12 to 15)."""
    # `drawn` are the constraints drawn for the weights to learn from, each of which
    # stands for `spread`, and those drawn from the weights, where these learn from them
    # as well; else none. None where a value is not finite, or a number overflows.
    dim, (duals, others) = len(x), drawn
    room = len(weights.indices) + len(duals) + len(others)
    touched, found = np.empty(room, np.int64), np.empty(2 * dim + 3 * room)
    seen = losses, constraints, values, steps, x, velocity
    numbers = _numbers(weights, dual_step, spread, radius, step_size)
    is_good, objective, worst, mean, n_violated, n_touched, p, z = _steps.step(
        *seen, duals, others, *weights.columns, numbers, touched, found
    )
    if not is_good:
        return None
    freeze(found)
    return Stepped(
        found[:dim],
        found[dim : 2 * dim],
        _learned(weights, touched, found[2 * dim :].reshape(3, room), n_touched, p, z),
        objective,
        worst,
        mean,
        n_violated,
    )


def violations(values: FloatArray) -> tuple[float, int, float, FloatArray]:
    penalties = np.empty(len(values))
    _, worst, n, total = _steps.violations(frozen_floats(values), penalties)
    return worst, n, total, penalties


def learn(
    weights: Weights,
    drawn: IntArray,
    penalties: FloatArray,
    step: DualStep,
    spread: float,
) -> Weights | None:
    room = len(weights.indices) + len(drawn)
    touched, table = np.empty(room, dtype=np.int64), np.empty((3, room))
    asked = frozen_ints(drawn), frozen_floats(penalties)
    numbers = _numbers(weights, step, spread)
    n_touched, p, z = _steps.learn(*weights.columns, *asked, numbers, touched, table)
    if n_touched < 0:
        return None
    return _learned(weights, touched, freeze(table), n_touched, p, z)


def _numbers(
    weights: SparseWeights,
    step: DualStep,
    spread: float,
    radius: float = 0.0,
    step_size: float = 0.0,
) -> FloatArray:
    """Return the `NUMBERS` that compiled steps read."""
    numbers = _constants(weights.n_constraints, step, spread, radius).copy()
    numbers[0], numbers[1] = weights.background_weight, weights.background_gradient
    numbers[-1] = step_size
    return numbers


@lru_cache(maxsize=8)  # the same each time
def _constants(n: int, step: DualStep, spread: float, radius: float) -> FloatArray:
    """Return the `NUMBERS`, with zeros for those that change in each iteration."""
    size, b, a, penalty, ridge, step_eps, adaptive, centred = step
    numbers = 0.0, 0.0, n, b, a, size, step_eps, penalty, ridge
    limits = spread, MERGE_WEIGHT, MERGE_GRADIENT, adaptive, centred
    return np.array((*numbers, *limits, radius, 0.0))


def _learned(
    old: Weights,
    touched: IntArray,
    table: FloatArray,
    n_touched: int,
    weight: float,
    z: float,
) -> Weights:
    freeze(touched)
    if n_touched < len(touched):
        touched, table = touched[:n_touched], table[:, :n_touched]
    return old.after(touched, table[0], table[1], table[2], weight, z)


def prepared_rows(matrix: Any) -> Any:
    """Return values (none if all are 1), columns, and where each row starts."""
    kind: Any = np.int64
    for smaller in (np.int32, np.uint16):  # memory is what the loops wait for
        if matrix.shape[1] - 1 <= np.iinfo(smaller).max:
            kind = smaller
    values = frozen_floats(matrix.data)
    return (
        values[:0] if (values == 1.0).all() else values,
        freeze(matrix.indices.astype(kind)),
        frozen_ints(matrix.indptr),
    )


def scores(rows: Any, points: FloatArray, indices: IntArray) -> FloatArray:
    table = np.empty((len(points), len(indices)))
    values, columns, starts = rows
    points, indices = frozen_floats(points), frozen_ints(indices)
    _rows.scores(values, columns, starts, points, indices, table)
    return table


def pairs(
    rows: Any, others: Any, margin: float, points: FloatArray, indices: IntArray
) -> FloatArray:
    table = np.empty((len(points), len(indices)))
    both: tuple[Any, ...] = (*rows, *others)
    points, indices = frozen_floats(points), frozen_ints(indices)
    _rows.pairs(*both, margin, points, indices, table)  # type: ignore[call-arg]
    return table


def dense_pairs(
    rows: FloatArray,
    others: FloatArray,
    margin: float,
    points: FloatArray,
    indices: IntArray,
) -> FloatArray:
    if len(points) > 1:
        table: FloatArray = points @ differences(rows, others, indices).T
        table += margin
        return table
    table = np.empty((1, len(indices)))
    x = frozen_floats(points)[0]
    _rows.dense_pairs(rows, others, margin, x, frozen_ints(indices), table[0])
    return table


def differences(rows: FloatArray, others: FloatArray, indices: IntArray) -> FloatArray:
    table = np.empty((len(indices), rows.shape[1]))
    _rows.differences(rows, others, frozen_ints(indices), table)
    return table
