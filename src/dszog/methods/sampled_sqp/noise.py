"""How noisy values are, and over which steps differences tell slopes from noise."""

from __future__ import annotations

import math

import numpy as np

from dszog.contract.arrays import FloatArray

LEAST_REACH, MOST_REACH = 1e-8, 0.1  # steps of differences, in usual lengths
ROUNDING = 2.0**-52


def reach(noise: float, slope: float, length: float) -> float:
    """Return the step of differences, in scaled variables.

    About the square root of the noise, both relative: an error of the values is then
    blown up as much as the curvature is seen, if that is of the size of the slope.
    """
    relative = noise / max(slope * length, 1e-300)
    return length * min(max(math.sqrt(relative), LEAST_REACH), MOST_REACH)


def noise_level(values: FloatArray) -> FloatArray:
    r"""Return the noise of functions, from values at evenly spaced points in a row.

    Differences of order :math:`k` of a smooth function vanish quickly with the order;
    those of noise with standard deviation :math:`\sigma` have mean square
    :math:`\binom{2k}{k} \sigma^2` (Hamming; Moré and Wild 2011). The first of three
    orders that agree says how large it is; if none do, the least that any says.

    Parameters
    ----------
    values : ndarray of shape (n_points, n_functions)
    """
    n_points, n_functions = values.shape
    levels = np.empty((n_points - 1, n_functions))
    differences = values
    turns = np.empty((n_points - 1, n_functions), dtype=bool)
    for k in range(1, n_points):
        differences = np.diff(differences, axis=0)
        factor = math.comb(2 * k, k)
        levels[k - 1] = np.sqrt((differences**2).mean(axis=0) / factor)
        turns[k - 1] = (differences.min(axis=0) < 0) & (differences.max(axis=0) > 0)
    found = levels.min(axis=0)
    done = np.zeros(n_functions, dtype=bool)
    for k in range(n_points - 3):
        three = levels[k : k + 3]
        agree = (three.max(axis=0) <= 4.0 * three.min(axis=0)) & turns[k] & ~done
        found = np.where(agree, three[0], found)
        done |= agree
    rounding = ROUNDING * np.abs(values).max(axis=0)
    noise: FloatArray = np.maximum(found, rounding)
    return noise


def granularity(changes: FloatArray) -> float:
    """Return the step of which all changes are multiples; 0 if there is none.

    Values that are rounded, or counts, change by multiples of a step.

    Examples
    --------
    >>> round(granularity(np.array([0.003, 0.0, -0.001, 0.0005])), 6)
    0.0005
    >>> granularity(np.array([0.003, 0.0, -0.001, 0.0005, np.pi * 1e-4]))
    0.0
    """
    sizes = np.unique(np.abs(changes))
    least = 1e-6 * float(sizes.max(initial=0.0))
    found = 0.0
    for size in sizes[sizes > least].tolist():
        a, b = size, found
        while b > least:  # Euclid's algorithm
            a, b = b, a - b * round(a / b)
            b = abs(b)
        found = a
    return found if found > 1e2 * least else 0.0
