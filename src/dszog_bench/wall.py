"""Time to a target: ours, and L-BFGS-B on a penalty over all constraints.

Both see values only. L-BFGS-B minimises the objective plus a penalty on the squared
violations of all constraints, from penalties that grow tenfold, each from the point
before; its differences are made in one call, as fast as NumPy goes. What a constraint
costs beyond the call is added by its number of values.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from dszog.contract.arrays import FloatArray
from dszog_bench.families import (
    FIRST_SEED,
    TARGETS,
    Cell,
    Member,
    nearest,
    queries_to,
    relaxed,
)
from dszog_bench.peers import OverError
from dszog_bench.records import Effort, Row

PENALTIES = tuple(10.0**k for k in range(1, 8))
LONGEST = 300.0  # seconds for L-BFGS-B
COST = 1e-5  # seconds that a constraint takes, in the second comparison
CELLS = (Cell(nearest, 60, 400_000, {}), Cell(relaxed, 50, 600_000, {}))


@dataclass
class Swept:
    """How far L-BFGS-B came, and what it took."""

    is_reached: bool = False
    n_values: int = 0  # of constraints
    seconds: float = 0.0


def swept(member: Member) -> Swept:
    """Run L-BFGS-B until the target is reached."""
    found, x, began = Swept(), member.x0, time.perf_counter()
    rows, losses = np.arange(member.m), np.arange(member.n_losses)
    most, violation = TARGETS["T2"]

    def penalised(x: FloatArray, penalty: float) -> tuple[float, FloatArray]:
        """Return the value and the differences; stop where the target is reached."""
        nonlocal began
        steps = 1e-8 * np.maximum(np.abs(x), 1.0)
        points = np.vstack([x, x + np.diag(steps)])
        violations = np.maximum(member.constraints(points, rows), 0.0)
        values = member.losses(points, losses).mean(axis=1)
        values = values + penalty * (violations**2).sum(axis=1)
        found.n_values += violations.size
        found.seconds = time.perf_counter() - began
        found.is_reached = member.gap(x) <= most and member.worst(x) <= violation
        if found.is_reached or found.seconds > LONGEST:
            raise OverError
        began = time.perf_counter() - found.seconds  # judging is not counted
        return float(values[0]), (values[1:] - values[0]) / steps

    with suppress(OverError):
        for penalty in PENALTIES:
            x = minimize(penalised, x, (penalty,), jac=True, method="L-BFGS-B").x
    return found


def wall(effort: Effort) -> Iterator[Row]:
    """Compare the time to T2 with L-BFGS-B's on a penalty over all constraints."""
    for cell in CELLS if effort.is_full else CELLS[:1]:
        free, dear = [], []
        for seed in effort.seeds(FIRST_SEED):
            member = cell.make(cell.dim, seed)
            queries_to(member, cell.budget, seed)  # compiled by now
            ours = queries_to(member, cell.budget, seed)
            theirs = swept(member)
            free.append(_ratio(ours, theirs, 0.0))
            dear.append(_ratio(ours, theirs, COST))
        for what, ratios, bar in (
            ("time to T2, L-BFGS-B over ours, constraints cost nothing", free, 1.0),
            (f"the same, a constraint takes {1e6 * COST:g} us", dear, 20.0),
        ):
            more = {"unit": "x", "bar": bar, "direction": "at least"}
            yield Row.of(f"{cell.name}: {what}", ratios, **more)


def _ratio(ours: dict[str, Any], theirs: Swept, cost: float) -> float:
    if ours["T2"] is None:
        return 0.0
    seconds = theirs.seconds if theirs.is_reached else LONGEST
    our_seconds: float = ours["T2_seconds"] + cost * ours["T2"]
    return (seconds + cost * theirs.n_values) / our_seconds
