r"""Algorithm 1 as printed, in plain NumPy: every iteration touches all `m` weights.

The yardstick for what it is worth to keep the weights sparsely. Written to be read
beside the paper, not to be fast; the library's ``distribution="dense"`` is held to the
same iterates in the tests.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dszog.contract.arrays import FloatArray, IntArray


class Draws(NamedTuple):
    """What is random in an iteration."""

    directions: FloatArray  # (q, dim)
    losses: IntArray  # M1
    constraints: IntArray  # M2, from the weights, with repeats
    duals: IntArray  # M3, uniform, without repeats


@dataclass
class PlainState:
    """The iterate and the weights, with their averaged gradients."""

    w: FloatArray
    p: FloatArray  # (m,)
    z_w: FloatArray | None = None
    z_p: FloatArray | None = None  # (m,)


@dataclass(frozen=True, kw_only=True)
class Plain:
    """The parameters, in the paper's letters."""

    losses: Callable[[FloatArray, IntArray], Any]  # values(points, indices)
    constraints: Callable[[FloatArray, IntArray], Any]
    n_losses: int
    m: int
    eta_w: float = 0.01
    eta_p: float = 0.01
    beta: float = 1.0
    mu: float = 1e-3
    q: int = 10
    ridge: float = 1e-6  # lambda
    a: float = 0.9
    b: float = 0.9
    c: float = 1e-8
    loss_batch: int = 128
    constraint_batch: int = 128
    dual_batch: int = 128

    def start(self, w: FloatArray) -> PlainState:
        """Return the start: the weights that are best for the first point (line 2)."""
        values = self.constraints(w[np.newaxis], np.arange(self.m))[0]
        phi = np.maximum(values, 0.0) ** 2
        return PlainState(w=w, p=project_simplex(self.beta / self.ridge * phi))

    def uniform_start(self, w: FloatArray) -> PlainState:
        """Return a start with equal weights, which needs no look at the constraints."""
        return PlainState(w=w, p=np.full(self.m, 1.0 / self.m))

    def draw(self, state: PlainState, rng: np.random.Generator) -> Draws:
        """Draw what one iteration needs (lines 8 to 11)."""
        return Draws(
            directions=rng.standard_normal((self.q, len(state.w))),
            losses=rng.choice(self.n_losses, self.loss_batch, replace=False),
            constraints=rng.choice(self.m, self.constraint_batch, p=state.p),
            duals=rng.permutation(self.m)[: self.dual_batch],
        )

    def step(self, state: PlainState, draws: Draws) -> PlainState:
        """Return the state after one iteration."""
        w, u = state.w, draws.directions
        points = np.vstack([w, w + self.mu * u])
        f = self.losses(points, draws.losses).mean(axis=1)
        phi = np.maximum(self.constraints(points, draws.constraints), 0.0) ** 2
        total = f + self.beta * phi.mean(axis=1)
        g_w = ((total[1:] - total[0]) / self.mu) @ u / self.q  # line 12
        phi_m3 = np.maximum(self.constraints(w[np.newaxis], draws.duals)[0], 0.0) ** 2
        g_p = -self.ridge * state.p  # line 13
        g_p[draws.duals] += self.beta * self.m / len(draws.duals) * phi_m3
        if state.z_w is None or state.z_p is None:
            z_w, z_p = g_w, g_p
        else:
            z_w = (1 - self.b) * state.z_w + self.b * g_w  # line 14
            z_p = (1 - self.b) * state.z_p + self.b * g_p  # line 15
        new_w = w - self.eta_w / (np.sqrt(np.linalg.norm(z_w)) + self.c) * z_w  # line 5
        scale = self.eta_p / (np.sqrt(np.linalg.norm(z_p)) + self.c)
        target = project_simplex(state.p + scale * z_p)  # line 6
        p = (1 - self.a) * state.p + self.a * target  # line 7
        return PlainState(w=new_w, p=p / p.sum(), z_w=z_w, z_p=z_p)


def project_simplex(v: FloatArray) -> FloatArray:
    """Return the nearest point of the simplex, by the usual sort."""
    shifted = v - v.max()  # the same projection, and no digits lost
    ordered = np.sort(shifted)[::-1]
    sums = np.cumsum(ordered) - 1.0
    last = np.nonzero(ordered > sums / np.arange(1, len(v) + 1))[0][-1]
    threshold = sums[last] / (last + 1)
    projected: FloatArray = np.maximum(shifted - threshold, 0.0)
    return projected
