"""`dszog bench grid`: power flows to a secure dispatch, ours and the field's."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import dszog
from dszog_bench.grid.generation import generate
from dszog_bench.grid.network import Grid
from dszog_bench.records import Effort, Row

STARTS = (0, 21)  # the base dispatch, and a random one that chose no constant
TARGET, WORST = 0.845, 1e-3  # cost over that of the base, and limit
MOST_CALLS = 20_000
ACCURACY = 2e-5  # of ours, at which it stops within some 0.2 % of the best cost


def grid(effort: Effort) -> Iterator[Row]:
    """Power flows to a dispatch that survives every outage, at each one's own stop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of the readers of the network
        network = Grid()
    for start in STARTS:
        for seed in range(effort.n_seeds):
            network.n_calls = 0
            result = dszog.minimize(
                network.problem(start),
                method=dszog.SampledSQP(tol=ACCURACY),
                seed=seed,
                max_queries=MOST_CALLS,
                constraint_tol=WORST,
            )
            n_calls, worst = network.n_calls, network.worst(result.x)
            what = f"dszog, start {start}, seed {seed}"
            yield _row(what, n_calls, result.fun, worst, 2500, result.success)
        for n_swept in (None, 50):
            found = generate(network, network.start(start), n_swept=n_swept, seed=0)
            sweeps = "full" if n_swept is None else "sampled"
            what = f"constraint generation, {sweeps} sweeps, start {start}"
            worst = network.worst(found.x)
            yield _row(what, found.n_calls, found.cost, worst, None, None)


def _row(
    what: str,
    n_calls: int,
    cost: float,
    worst: float,
    bar: float | None,
    success: bool | None,
) -> Row:
    """Return the power flows spent, if cost and limits are as they should be."""
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
