"""DSZOG for very many variables: settings that do not need to be searched for.

With ten thousand variables and more, almost all of a step along random directions is
noise. A step of a length that is known beforehand cannot run away, whatever the slope:
over a factor of 30 none did. A penalty of 1 was best on all networks that were tried,
and raising it did harm.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from dszog.contract import ProblemSize
from dszog.methods.dszog import DSZOG
from dszog.methods.sized import SizedDSZOG
from dszog.methods.slopes import SlopesDSZOG

SOME = 1000  # variables, from which on slopes are kept, where all is left open
HELD = 2**21  # numbers of all points of an iteration, about
OPEN = frozenset({"n_directions", "loss_batch", "constraint_batch", "dual_batch"})
MANY = 10_000  # variables, from which on these settings are chosen
SETTINGS: dict[str, Any] = {
    "directions": "rademacher",
    "normalised": True,
    "penalty": 1.0,
    "radius": 1e-3,
}
REACH = 1.5  # of the length of x0, that all steps in one direction would go
WANDER = 1.0  # of it, that steps in random directions would go
STEADY = 1.5  # times what breaks one in a hundred constraints: they may go so far
MOST = 0.02  # of it, that one step goes at most, however short the run
UNKNOWN_LENGTH = 2000  # iterations, where only time limits a run


def step_for(
    length: float,
    dim: int,
    n_directions: int,
    n_iterations: int,
    wander: float = WANDER,
) -> float:
    """Return the step size, the root mean square over the variables.

    Of a step, the part along the gradient is the root of ``n_directions / dim``. All of
    them together shall reach far enough, and the rest not wander off too far.

    Examples
    --------
    >>> round(step_for(length=20.0, dim=20_000, n_directions=5, n_iterations=10**4), 6)
    0.001342
    """
    n = max(n_iterations, 1)
    share = min(REACH * math.sqrt(dim / n_directions) / n, wander / math.sqrt(n))
    return min(share, MOST) * (length or math.sqrt(dim)) / math.sqrt(dim)


def n_steps(
    method: DSZOG, size: ProblemSize, iterations: int | None, queries: int | None
) -> int:
    """Return how many steps a run within these limits will take, about."""
    found = [] if iterations is None else [iterations]
    if queries is not None:
        n_losses, n_drawn, n_duals = method.batches(size)
        each = (1 + method.n_directions) * (n_losses + n_drawn) + n_duals
        found.append(int(0.9 * queries / each))
    return max(min(found, default=UNKNOWN_LENGTH), 1)


def settings_for(
    given: Mapping[str, Any],
    length: float,
    dim: int,
    size: ProblemSize,
    iterations: int | None,
    queries: int | None,
    wander: float = WANDER,
) -> dict[str, Any]:
    """Return settings for so many variables, of which some may be given."""
    chosen = SETTINGS | dict(given)
    if "step_size" not in chosen and chosen["normalised"]:
        method = DSZOG(**chosen)
        n = n_steps(method, size, iterations, queries)
        chosen["step_size"] = step_for(length, dim, method.n_directions, n, wander)
    return chosen


def suited(
    method: Any,
    fixed: frozenset[str],
    size: ProblemSize,
    length: float,
    iterations: int | None,
    queries: int | None,
) -> tuple[Any, str]:
    """Return the method with what the caller left open set for many variables.

    And what to say of it. `length` is that of x0.
    """
    if type(method) is not DSZOG or size.dim < SOME or not size.is_black_box:
        return method, ""
    given = {name: getattr(method, name) for name in fixed}
    said = f"There are {size.dim:,} variables: random signs are the directions."
    if fixed <= OPEN and size.dim < MANY:
        return SlopesDSZOG(**given), "Slopes of constraints that bind are remembered."
    if fixed <= OPEN:
        few = {"n_directions": min(max(HELD // size.dim, 5), SizedDSZOG().n_directions)}
        return SizedDSZOG(
            **(few | given)
        ), f"{said[:-1]}, and sizes were learned first."
    if size.dim < MANY:
        return method, ""
    if given.get("directions", "rademacher") != "rademacher":
        return method, ""
    if "adaptive" in given and not given["adaptive"]:
        given.setdefault("normalised", False)
    chosen = settings_for(given, length, size.dim, size, iterations, queries)
    return replace(method, **chosen), said
