r"""Zeroth-order gradient estimates: directions drawn here, values reduced here.

All kinds of directions are scaled so that :math:`E[u u^T] = I`; one formula then turns
values into a gradient, whatever the kind.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

import numpy as np

from dszog.contract import Signs
from dszog.contract.arrays import FloatArray
from dszog.kernels import chosen

Directions: TypeAlias = Literal[
    "gaussian", "sphere", "orthogonal", "coordinate", "rademacher"
]
DIRECTIONS: tuple[str, ...] = get_args(Directions)


def draw_directions(
    rng: np.random.Generator, kind: Directions, n_directions: int, dim: int
) -> FloatArray:
    r"""Draw the rows :math:`u_k` along which values are compared.

    Parameters
    ----------
    rng : numpy.random.Generator
    kind : {"gaussian", "sphere", "orthogonal", "coordinate", "rademacher"}
        Independent normal vectors (the paper); independent vectors on the sphere of
        radius :math:`\sqrt d`; the same, mutually orthogonal; distinct coordinate
        vectors of that length, both of which start a new set every `dim` directions;
        independent random signs, see ``dszog.contract.signs``.
    n_directions, dim : int
    """
    if kind == "coordinate":
        return _coordinate(rng, n_directions, dim)
    if kind == "rademacher":
        seed = int(rng.integers(2**63))
        return Signs(seed, 0, tuple(range(n_directions)), dim, 1.0).dense()
    return from_normals(rng.standard_normal((n_directions, dim)), kind)


def from_normals(normals: FloatArray, kind: Directions) -> FloatArray:
    """Return the directions of any other kind that normal numbers stand for."""
    # Nobody else holds the numbers: these may be the directions.
    if kind == "sphere":
        lengths = np.sqrt(np.square(normals).sum(axis=1, keepdims=True))
        scaled: FloatArray = np.sqrt(normals.shape[1]) / lengths * normals
        return scaled
    if kind == "orthogonal":
        found: FloatArray = chosen().orthogonal(normals)
        return found
    return normals


def _coordinate(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    directions = np.zeros((n, dim))
    for first in range(0, n, dim):
        size = min(dim, n - first)
        chosen = rng.choice(dim, size=size, replace=False)
        directions[first + np.arange(size), chosen] = np.sqrt(dim)
    return directions


def row_means(table: FloatArray) -> FloatArray:
    """Return the mean of each row: of the values at each point."""
    means: FloatArray = np.add.reduce(table, axis=1) / table.shape[1]
    return means


def forward_difference(
    values: FloatArray, directions: FloatArray, radius: float
) -> FloatArray:
    r"""Estimate a gradient from values at a point and around it.

    .. math:: \hat g = \frac{1}{q} \sum_{k=1}^{q}
              \frac{F(x + \mu u_k) - F(x)}{\mu} \, u_k

    For :math:`u_k \sim \mathcal{N}(0, I)` this is an unbiased estimate of the gradient
    of the Gaussian smoothing of :math:`F` [1]_.

    Parameters
    ----------
    values : ndarray of shape (q + 1,)
        :math:`F(x), F(x + \mu u_1), \dots, F(x + \mu u_q)`.
    directions : ndarray of shape (q, dim)
        The rows :math:`u_k`.
    radius : float
        The smoothing radius :math:`\mu`.

    Returns
    -------
    ndarray of shape (dim,)

    References
    ----------
    .. [1] Y. Nesterov and V. Spokoiny, "Random gradient-free minimization of convex
       functions", Found. Comput. Math. 17 (2017), 527-566.

    Examples
    --------
    >>> forward_difference(np.array([0.0, 0.5, 1.0]), np.eye(2), radius=0.5)
    array([0.5, 1. ])
    """
    return _along((values[1:] - values[0]) / radius, directions)


def central_difference(
    values: FloatArray, directions: FloatArray, radius: float
) -> FloatArray:
    r"""Estimate a gradient from values at opposite points.

    .. math:: \hat g = \frac{1}{q} \sum_{k=1}^{q}
              \frac{F(x + \mu u_k) - F(x - \mu u_k)}{2 \mu} \, u_k

    Parameters
    ----------
    values : ndarray of shape (2 q + 1,)
        :math:`F(x)`, then :math:`F(x + \mu u_k)`, then :math:`F(x - \mu u_k)`.
    directions : ndarray of shape (q, dim)
    radius : float

    Returns
    -------
    ndarray of shape (dim,)

    Examples
    --------
    >>> central_difference(np.array([0.0, 1.0, -1.0]), np.array([[2.0]]), radius=0.5)
    array([4.])
    """
    n_directions = len(directions)
    forward, backward = values[1 : 1 + n_directions], values[1 + n_directions :]
    return _along((forward - backward) / (2 * radius), directions)


def _along(slopes: FloatArray, directions: FloatArray) -> FloatArray:
    # einsum, not BLAS: the bits of a sum must not depend on the number of threads.
    gradient: FloatArray = np.einsum("k,kd->d", slopes, directions) / len(directions)
    return gradient
