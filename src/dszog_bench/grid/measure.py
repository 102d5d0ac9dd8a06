"""`dszog bench grid`: power flows to a secure dispatch, ours and the field's."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

import dszog
from dszog.contract.arrays import FloatArray
from dszog_bench.grid.generation import PRICE, Answer, generate
from dszog_bench.grid.network import Grid
from dszog_bench.records import Effort, Row

STARTS, FIRST_SEED = (61, 83), 41  # random ones that chose no constant
TARGET, WORST = 0.845, 1e-3  # cost over that of the base, and limit
N_SCENARIOS, LOADS_TARGET, LOADS_WORST = 200, 0.848, 5e-3  # with loads that vary
MOST_CALLS = 20_000
SPREAD = 0.1  # of the first points of CMA-ES


def grid(effort: Effort) -> Iterator[Row]:
    """Power flows to a dispatch that survives every outage, at each one's own stop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the readers of the network
        network, loads = Grid(), Grid(N_SCENARIOS)
    seeds = effort.seeds(FIRST_SEED)
    for start in STARTS:
        for seed in seeds:
            yield ours(network, start, seed, 2500)
        others: dict[str, Callable[..., Answer]] = {
            "constraint generation, full sweeps": partial(generate, n_swept=None),
            "constraint generation, sampled sweeps": partial(generate, n_swept=50),
            f"CMA-ES for {effort.peer_seconds:.0f} s": partial(
                evolved, seconds=effort.peer_seconds
            ),
        }
        for name, method in others.items():
            found = method(network, network.start(start), seed=FIRST_SEED)
            yield _row(f"{name}, start {start}", found, network, None, None)
    for start in STARTS:
        for seed in seeds:
            yield ours(loads, start, seed, 12_000)


def ours(network: Grid, start: int, seed: int, bar: float) -> Row:
    """Return the row of a run of the library."""
    network.n_calls = 0
    result = dszog.minimize(
        network.problem(start),
        seed=seed,
        max_queries=MOST_CALLS,
        constraint_tol=_bars(network)[1],
    )
    found = Answer(result.x, result.fun, network.n_calls)
    what = f"dszog, {network.n_cases:,} cases, start {start}, seed {seed}"
    return _row(what, found, network, bar, result.success)


def evolved(network: Grid, x: FloatArray, seconds: float, seed: int) -> Answer:
    """Return the best of CMA-ES, which sweeps through all cases at each of its points.

    The largest violation is paid for at the price that constraint generation has.
    """
    import cma

    network.n_calls, cases = 0, range(network.n_cases)

    def merit(point: FloatArray) -> float:
        found = [network.limits(point, case).max() for case in cases]
        worst = np.nan_to_num(found, nan=9.0).max()
        cost = float(np.nan_to_num(network.cost(point), nan=9.0))
        return cost + PRICE * max(float(worst), 0.0)

    until = time.monotonic() + seconds
    options = {"seed": seed, "verbose": -9, "bounds": [0.0, 1.0]}
    es = cma.CMAEvolutionStrategy(x, SPREAD, options)
    while not es.stop() and time.monotonic() < until:
        points = es.ask()
        es.tell(points, [merit(np.asarray(point)) for point in points])
    best, n_calls = np.asarray(es.result.xbest), network.n_calls
    return Answer(best, network.cost(best), n_calls)


def _bars(network: Grid) -> tuple[float, float]:
    """Return the cost and the worst limit to be reached."""
    is_one = network.n_scenarios == 1
    return (TARGET, WORST) if is_one else (LOADS_TARGET, LOADS_WORST)


def _row(
    what: str, found: Answer, network: Grid, bar: float | None, success: bool | None
) -> Row:
    """Return the power flows spent, if cost and limits are as they should be."""
    cost, n_calls, worst = found.cost, found.n_calls, network.worst(found.x)
    target, allowed = _bars(network)
    is_there = cost <= target and worst <= allowed
    outcome = f"{n_calls:,} power flows, cost {cost:.4f}, worst limit {worst:.2g}"
    return Row(
        what=f"{what}: cost {cost:.4f}, worst {worst:.1g}",
        figure=float(n_calls) if is_there else None,
        unit="power flows",
        bar=bar,
        details={
            "outcome": outcome,
            "calls": n_calls,
            "cost": cost,
            "worst": worst,
            "success": "not said" if success is None else success,
        },
    )
