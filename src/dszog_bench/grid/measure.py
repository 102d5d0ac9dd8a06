"""`dszog bench grid`: power flows to a secure dispatch, ours and the field's."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np

import dszog
from dszog.contract.arrays import FloatArray
from dszog_bench.grid.generation import PRICE, Answer, generate
from dszog_bench.grid.network import Grid
from dszog_bench.records import Effort, Row

STARTS, FIRST_SEED = (61, 83), 41  # random ones that chose no constant
TARGET, WORST = 0.845, 1e-3  # cost over that of the base, and limit
MOST_CALLS = 20_000
SPREAD = 0.1  # of the first points of CMA-ES


def grid(effort: Effort) -> Iterator[Row]:
    """Power flows to a dispatch that survives every outage, at each one's own stop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the readers of the network
        network = Grid()
    for start in STARTS:
        for seed in range(FIRST_SEED, FIRST_SEED + effort.n_seeds):
            network.n_calls = 0
            result = dszog.minimize(
                network.problem(start),
                seed=seed,
                max_queries=MOST_CALLS,
                constraint_tol=WORST,
            )
            found = Answer(result.x, result.fun, network.n_calls)
            what = f"dszog, start {start}, seed {seed}"
            yield _row(what, found, network, 2500, result.success)
        others: dict[str, Callable[[FloatArray], Answer]] = {
            "constraint generation, full sweeps": lambda x: generate(
                network, x, n_swept=None, seed=FIRST_SEED
            ),
            "constraint generation, sampled sweeps": lambda x: generate(
                network, x, n_swept=50, seed=FIRST_SEED
            ),
            f"CMA-ES for {effort.peer_seconds:.0f} s": lambda x: evolved(
                network, x, effort.peer_seconds, FIRST_SEED
            ),
        }
        for name, method in others.items():
            found = method(network.start(start))
            yield _row(f"{name}, start {start}", found, network, None, None)


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


def _row(
    what: str, found: Answer, network: Grid, bar: float | None, success: bool | None
) -> Row:
    """Return the power flows spent, if cost and limits are as they should be."""
    cost, n_calls, worst = found.cost, found.n_calls, network.worst(found.x)
    is_there = cost <= TARGET and worst <= WORST
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
