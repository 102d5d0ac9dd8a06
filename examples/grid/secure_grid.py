"""
A grid that survives every outage
=================================

The cheapest dispatch of a grid loads its lines to the limit. Then one line trips, its
current takes other ways, and the next one is overloaded. A *secure* dispatch keeps all
currents and voltages within their limits after the loss of any one line. Each outage is
one power flow, and each power flow has hundreds of limits.

You will learn how to hand a simulator of your own to :class:`dszog.Simulator`: values
in their units with limits, sizes and names, runs that may fail, and how to read off
which limits bind in which outage, and what each costs. The grid is
``case_illinois200`` of pandapower, solved by lightsim2grid:
``pip install "dszog[grid,viz]"``.
"""

from __future__ import annotations

import json
import time
import warnings
from typing import Any

import numpy as np

import dszog

with warnings.catch_warnings():  # of pandapower beside pandas 3
    warnings.simplefilter("ignore")
    import pandapower.networks
    from lightsim2grid.network import init_from_pandapower

# %%
# The grid
# --------
#
# Variables are the power of each generator, and the voltage that it holds at its bus.
# The slack generator makes up for what is missing.

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    net = pandapower.networks.case_illinois200()
    intact = init_from_pandapower(net)

gens, slack = net.gen, len(net.gen)
least = np.append(gens.min_p_mw, net.ext_grid.min_p_mw)
most = np.append(gens.max_p_mw, net.ext_grid.max_p_mw)
base_power = np.append(gens.p_mw, 0.0)
moves = np.flatnonzero(gens.max_p_mw > gens.min_p_mw + 1e-6)
buses, first, at_bus = np.unique(
    np.append(gens.bus, net.ext_grid.bus), return_index=True, return_inverse=True
)
base_volts = np.append(gens.vm_pu, net.ext_grid.vm_pu)[first]
prices = np.zeros((3, slack + 1))
for row in net.poly_cost.itertuples():
    place = int(row.element) if row.et == "gen" else slack
    prices[0, place] += row.cp0_eur
    if row.et in ("gen", "ext_grid"):
        prices[1:, place] += row.cp1_eur_per_mw, row.cp2_eur_per_mw2
flat = np.full(len(net.bus), 1.04, dtype=complex)
n_flows = 0


def power_flow(x: Any, outage: int | None) -> tuple[Any, Any, Any]:
    """Return currents, voltages and the power of each generator after an outage."""
    global n_flows
    n_flows += 1
    power = base_power.copy()
    power[moves] = x[: len(moves)]
    volts = x[len(moves) :][at_bus]
    grid = intact.copy()  # one that was used before gives other last digits
    for k in range(slack + 1):
        if k != slack:
            grid.change_p_gen(k, power[k])
        grid.change_v_gen(k, volts[k])
    if outage is not None:
        grid.deactivate_powerline(outage)
    found = grid.ac_pf(flat.copy(), 15, 1e-8)
    if not len(found):
        raise ArithmeticError("the power flow has no solution")
    power[slack] = grid.get_gen_res()[0][slack]
    currents = np.maximum(grid.get_line_res1()[3], grid.get_line_res2()[3])
    return currents, np.abs(found[: len(net.bus)]), power


# %%
# What has to be kept
# -------------------
#
# ``run`` returns values as an engineer reads them: currents of lines in kA, voltages
# per unit, the power of the slack in MW. Where each has to lie is said beside. Lines
# may be used to 90 % of their rating.


def run(x: Any, case: int) -> Any:
    """Return currents, voltages and the slack's power after one outage."""
    currents, volts, power = power_flow(x, outages[case])
    return np.concatenate([currents, volts, power[slack:]])


def cost(x: Any) -> float:
    """Return what the intact grid costs an hour, in thousands."""
    *_, power = power_flow(x, None)
    fixed, linear, square = prices
    return float(fixed.sum() + linear @ power + square @ power**2) / 1e3


rating = 0.9 * (net.line.max_i_ka * net.line.parallel * net.line.df).to_numpy()
n_lines, n_buses = len(net.line), len(net.bus)
nowhere = np.full(n_lines, -np.inf)
lower = np.concatenate([nowhere, np.full(n_buses, 0.9), least[slack:]])
upper = np.concatenate([rating, np.full(n_buses, 1.1), 1.05 * most[slack:]])
scale = np.concatenate([rating, np.full(n_buses, 0.1), (most - least)[slack:]])

start = np.append(base_power[moves], base_volts)
bounds = [*zip(least[moves], most[moves], strict=True), *[(0.95, 1.1)] * len(buses)]
outages: list[int] = []
for line in range(n_lines):
    try:  # a line that is the only way to a bus cannot be lost
        power_flow(start, line)
        outages.append(line)
    except ArithmeticError:
        pass

ends = net.line[["from_bus", "to_bus"]].to_numpy()
plant = dszog.Simulator(
    run,
    n=len(outages),
    width=n_lines + n_buses + 1,
    objective=cost,
    lower=lower,
    upper=upper,
    scale=scale,
    names=(
        [f"line {ends[k][0]}-{ends[k][1]} lost" for k in outages],
        [
            *(f"current {a}-{b}" for a, b in ends),
            *(f"voltage of bus {k}" for k in range(n_buses)),
            "slack",
        ],
    ),
)

# %%
# Solve it
# --------
#
# A case that fails at some point is left out there; the check of the result looks at
# every limit of every outage.


def solve() -> Any:
    """Return the cheapest secure dispatch that is found."""
    return dszog.minimize(
        plant,
        start,
        bounds=bounds,
        max_queries=20_000,
        constraint_tol=1e-3,
        on_failure="resample",
        seed=0,
    )


# %%
# Which limits bind, where, and what they cost
# --------------------------------------------
#
# Left: what each binding limit costs. Right: the grid, with generators in blue. What is
# red is at its limit after the loss of one of the dashed lines.


def draw(result: Any) -> None:
    """Draw the costs of limits, and where they are."""
    import matplotlib.pyplot as plt

    rows = result.binding()
    places = np.array([json.loads(text)["coordinates"] for text in net.bus.geo])
    _, (left, right) = plt.subplots(1, 2, figsize=(13, 6), layout="constrained")
    shown = rows[:12][::-1]
    left.barh([row.name for row in shown], [1e3 * row.multiplier for row in shown])
    left.set(title="What binding limits cost", xscale="log")
    left.set_xlabel("an hour, for each scale by which the limit is exceeded")
    for a, b in [*ends, *net.trafo[["hv_bus", "lv_bus"]].to_numpy()]:
        right.plot(*places[[a, b]].T, color="0.75", lw=1, zorder=1)
    right.plot(*places.T, ".", color="0.5", ms=4, zorder=1)
    right.plot(*places[buses].T, "s", color="#0072B2", ms=4, zorder=2)
    for row in rows:
        case, limit = divmod(row.constraint, plant.n_limits)
        right.plot(*places[ends[outages[case]]].T, "k--", lw=2, zorder=3)
        value = plant.value_of(limit)  # lines, then buses, then the slack
        at = ends[value] if value < n_lines else [value - n_lines]
        if value == plant.width - 1:
            at = [int(net.ext_grid.bus.iloc[0])]
        right.plot(*places[at].T, "o-", color="#D55E00", lw=3, ms=7, zorder=4)
    right.set_title("At their limits (red), after outages (dashed)")
    right.set_axis_off()
    plt.show()


def worst(x: Any) -> float:
    """Return the largest violation over all outages, relative to its scale."""
    values = plant.constraints.values(x[np.newaxis], np.arange(len(plant.constraints)))
    return float(values.max())


if __name__ == "__main__":
    print(
        f"Data: case_illinois200, {n_buses} buses, {len(start)} variables, "
        f"{len(outages)} outages, {len(plant.constraints):,} limits"
    )
    before, n_flows = time.perf_counter(), 0
    result = solve()
    print(f"{n_flows:,} power flows in {time.perf_counter() - before:.0f} s")
    print(result.message)
    print(f"{'costs':>10}  limit")
    for row in result.binding()[:10]:
        print(f"{1e3 * row.multiplier:10.1f}  {row.name}")
    print(f"At the start the worst limit is exceeded by {100 * worst(start):.1f} %.")
    verdict = "feasible" if result.maxcv <= result.constraint_tol else "not feasible"
    print(
        f"Verdict: {verdict}, cost {result.fun:.3f} after {cost(start):.3f} thousand, "
        f"the worst limit after any outage exceeded by {100 * result.maxcv:.3f} %."
    )
    draw(result)
