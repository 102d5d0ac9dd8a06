r"""The step: a quadratic program over the models, within a trust region.

.. math:: \min_{l \le s \le u} \; g^T s + \tfrac12 s^T (B + \sigma I) s
          + \rho \sum_j \max(c_j + a_j^T s, 0)

:math:`B` is the curvature of the objective along the last step. The square with
:math:`\sigma` keeps variables where they are along which there is little to gain: a
linear program would send each to the end of the region. Most of the many limits of the
cases are never near: those that cannot be reached within the region are left out, and
of the others only those that an answer breaks are put in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dszog.contract.arrays import BoolArray, FloatArray
from dszog.methods.sampled_sqp.elastic_qp import LinearModels
from dszog.methods.sampled_sqp.elastic_qp import solve as solve_qp

MOST_ROUNDS = 30  # of putting in rows
FIRST_ROWS = 64
NOTHING = 1e-9  # of the size of a limit: what is as good as 0
UNSOLVED = 1e-2  # a residual that is larger is no answer


@dataclass(frozen=True, slots=True, eq=False)
class Proposal:
    """The answer of the program."""

    step: FloatArray  # (dim,)
    excess: float  # the largest limit that is left, or 0
    multipliers: FloatArray  # (k, width)


def solve(
    gradient: FloatArray,
    values: FloatArray,
    slopes: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    hessian: FloatArray,
    price: float,
    start: FloatArray,
) -> Proposal | None:
    """Return the best step; None if the solver found none.

    `price` is that of a violation of the usual row, `start` has multipliers to begin
    with. Of each limit at most one row is put in at a time: that of the worst case.
    """
    dim, shape = len(gradient), values.shape
    flat, rows = values.ravel(), slopes.reshape(-1, dim)
    lengths = np.linalg.norm(rows, axis=1)
    far = np.maximum(-lower, upper)
    allowed = (flat + np.abs(rows) @ far > 0) & (lengths > 0)
    multipliers = np.where(allowed, start.ravel(), 0.0)
    chosen = _worst_cases(np.where(allowed, flat, -np.inf), shape) & allowed
    if np.count_nonzero(chosen) > FIRST_ROWS:
        order = np.argsort(-np.where(chosen, flat, -np.inf), kind="stable")
        chosen[order[FIRST_ROWS:]] = False
    chosen |= multipliers > 0
    usual = float(np.median(lengths[chosen])) if chosen.any() else 1.0
    step, excess = np.zeros(dim), 0.0
    for _ in range(MOST_ROUNDS):
        which = np.flatnonzero(chosen)
        sizes = lengths[which]
        models = LinearModels(
            slopes=rows[which] / sizes[:, np.newaxis],
            offsets=flat[which] / sizes,
            two_sided=np.zeros(len(which), dtype=bool),
        )
        before = multipliers[which] * sizes
        answer = solve_qp(
            hessian, gradient, models, price * usual, lower, upper, before
        )
        if not answer.residual <= UNSOLVED:
            return None
        step = answer.step
        multipliers = np.zeros(len(flat))
        multipliers[which] = np.maximum(answer.multipliers, 0.0) / sizes
        then = flat + rows @ step
        excess = max(float(then[which].max(initial=0.0)), 0.0)
        broken = allowed & ~chosen & (then > excess + NOTHING * lengths)
        if not broken.any():
            break
        chosen |= _worst_cases(np.where(broken, then, -np.inf), shape) & broken
    return Proposal(step, excess, multipliers.reshape(shape))


def _worst_cases(values: FloatArray, shape: tuple[int, ...]) -> BoolArray:
    """Return which rows are those of the case where a limit is worst."""
    found = np.zeros(shape, dtype=bool)
    if shape[0]:
        found[values.reshape(shape).argmax(axis=0), np.arange(shape[1])] = True
    return found.ravel()
