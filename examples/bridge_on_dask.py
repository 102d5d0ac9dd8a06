"""
A bridge that survives the loss of any member, on Dask
======================================================

A truss bridge is to be as light as it can be. It has to carry a lorry wherever that
stands, and not only when it is whole: any one member may be missing. Each scenario, a
place of the lorry and a missing member, is one run of a simulator, which returns what
the bridge weighs and how much each member is strained.

You will learn how to wrap a simulator with :class:`dszog.Simulator`, so that one run
serves the objective and all limits, and how to share the runs among the workers of a
Dask cluster. Here it is a cluster of two processes on this machine; an address in place
of the ``LocalCluster`` would do for a large one. ``SIMULATOR_SECONDS=0.5`` makes each
run as slow as you like.
"""

from __future__ import annotations

import os
import time
from itertools import pairwise
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import dszog
from dszog.workers import Dask

# %%
# The bridge
# ----------
#
# Four panels, each braced crosswise, so that no single member is vital. The bridge is
# symmetric: a member and its mirror image have one area between them, which leaves
# nine variables.

N_PANELS, HEIGHT, LOAD = 4, 1.0, 1.0
YOUNG, STRENGTH = 2000.0, 10.0  # stiffness; stress that a member bears
N_PLACES = 13  # of the lorry

nodes = np.array([(i, h) for h in (0.0, HEIGHT) for i in range(N_PANELS + 1)], float)
low, high = np.arange(N_PANELS + 1), np.arange(N_PANELS + 1) + N_PANELS + 1
members = np.array(
    [
        *pairwise(low),
        *pairwise(high),
        *zip(low, high, strict=True),
        *zip(low[:-1], high[1:], strict=True),
        *zip(high[:-1], low[1:], strict=True),
    ]
)
spans = nodes[members[:, 1]] - nodes[members[:, 0]]
lengths = np.linalg.norm(spans, axis=1)
middles = nodes[members].mean(axis=1)
mirrored = np.round(np.c_[abs(middles[:, 0] - N_PANELS / 2), middles[:, 1]], 6)
_, variable = np.unique(
    np.c_[mirrored, np.round(lengths, 6)], axis=0, return_inverse=True
)
variable = variable.ravel()
n_variables, n_members = int(variable.max()) + 1, len(members)
fixed = np.array([0, 1, 2 * N_PANELS + 1])  # a hinge at the left, a roller at the right
free = np.setdiff1d(np.arange(2 * len(nodes)), fixed)
ways = np.zeros((n_members, 2 * len(nodes)))  # how a member gets longer
for axis in (0, 1):
    unit = spans[:, axis] / lengths
    ways[np.arange(n_members), 2 * members[:, 0] + axis] = -unit
    ways[np.arange(n_members), 2 * members[:, 1] + axis] = unit
ways = ways[:, free]

# %%
# The simulator
# -------------
#
# ``run(x, i)`` is all that the library sees. It solves the equations of a truss for one
# place of the lorry and one missing member (or none), and returns the mass and the
# strain of every member, each at most 0 where it is within its strength. ``x`` is the
# logarithm of the areas: whatever it is, areas are positive.

SLOW = float(os.environ.get("SIMULATOR_SECONDS", "0"))


def areas(x: Any) -> Any:
    """Return the cross-section of each member."""
    return np.exp(x)[variable]


def deck_load(place: float) -> Any:
    """Return the forces on the nodes of the deck, with the lorry at a place."""
    left = min(int(place), N_PANELS - 1)
    force = np.zeros(2 * len(nodes))
    force[2 * left + 1] = -LOAD * (left + 1 - place)
    force[2 * left + 3] = -LOAD * (place - left)
    return force


def stresses(x: Any, place: float, missing: int) -> Any:
    """Return the stress of each member; 0 of one that is missing."""
    stiffness = YOUNG * areas(x) / lengths
    if missing >= 0:
        stiffness[missing] = 0.0
    moved = np.linalg.solve((ways.T * stiffness) @ ways, deck_load(place)[free])
    return stiffness * (ways @ moved) / areas(x)


def run(x: Any, i: int) -> tuple[float, Any]:
    """Return the mass, and the strain of each member in scenario `i`."""
    time.sleep(SLOW)
    place, missing = divmod(i, n_members + 1)
    stress = stresses(x, N_PANELS * place / (N_PLACES - 1), missing - 1)
    return float(areas(x) @ lengths) / MASS, np.abs(stress) / STRENGTH - 1.0


start = np.full(n_variables, np.log(0.3))  # stout enough, everywhere alike
MASS = float(areas(start) @ lengths)
bridge = dszog.Simulator(run, n=N_PLACES * (n_members + 1), width=n_members)

# %%
# Solve it on a cluster
# ---------------------
#
# The workers of a cluster are processes, which read this file: whatever starts them has
# to stand under ``if __name__ == "__main__"``. A small batch of scenarios is enough for
# each step. The same seed gives the same bridge, to the bit, whatever the number of
# workers.

OPTIONS = {
    "step_size": 0.05,
    "penalty": 50.0,
    "loss_batch": 1,  # the mass is the same in all scenarios
    "constraint_batch": 16,
    "dual_batch": 100,
    "n_directions": 6,
}


def solve(client: Any) -> Any:
    """Return the lightest bridge that was found."""
    return dszog.minimize(
        bridge.in_pieces(50),
        start,
        bounds=[(np.log(0.02), np.log(2.0))] * n_variables,
        method="dszog",
        options=OPTIONS,
        max_iterations=120,
        constraint_tol=0.05,
        seed=0,
        evaluator=Dask(client),
    )


# %%
# The verdict, and a picture
# --------------------------
#
# The width of a line is the area of the member, its colour the worst strain over all
# scenarios: red members are used to the full.


def worst_strain(x: Any) -> Any:
    """Return the largest share of its strength that each member ever bears."""
    strains = [run(x, i)[1] + 1.0 for i in range(bridge.n)]
    return np.max(strains, axis=0)


def draw(designs: dict[str, Any]) -> None:
    """Draw bridges below each other."""
    # Here, as the workers need none of it.
    import matplotlib.pyplot as plt
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    figure, axes = plt.subplots(len(designs), 1, figsize=(8, 5), layout="constrained")
    colours = plt.get_cmap("turbo")
    for axis, (title, x) in zip(axes, designs.items(), strict=True):
        for (a, b), area, strain in zip(
            members, areas(x), worst_strain(x), strict=True
        ):
            ends = nodes[[a, b]].T
            axis.plot(*ends, color=colours(0.95 * min(strain, 1.0)), lw=20 * area)
        axis.plot([0, N_PANELS], [-0.06, -0.06], "k^", ms=9)
        axis.set(title=title, aspect="equal", xlim=(-0.3, N_PANELS + 0.3))
        axis.set_axis_off()
    shades = ScalarMappable(Normalize(0, 1 / 0.95), colours)
    figure.colorbar(shades, ax=axes, label="worst strain, of what it bears", shrink=0.8)
    plt.show()


if __name__ == "__main__":
    print(
        f"Data: a made-up bridge, {n_members} members, {n_variables} variables, "
        f"{bridge.n:,} scenarios, {len(bridge.constraints):,} limits"
    )
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as client,
    ):
        result = solve(client)
    print(result.message)
    print(f"{result.nfev + result.ncev:,} runs of the simulator by two workers")
    verdict = "feasible" if result.maxcv <= result.constraint_tol else "not feasible"
    print(
        f"Verdict: {verdict}, the bridge has {100 * result.fun:.0f} % of the mass at "
        f"the start and bears every place of the lorry with any member missing, to "
        f"within {100 * result.maxcv:.1f} % of its strength."
    )
    draw({"start: all alike": start, f"found: {100 * result.fun:.0f} %": result.x})
