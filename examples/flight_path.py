"""
A white-box constraint, a black-box objective
=============================================

A drone flies through a wood. Where the trees stand is known, and so is how the distance
to each of them changes with the path: these constraints are a white box. What the
flight costs comes out of a program that knows the wind and the battery, and which can
only be run: the objective is a black box.

You will learn how to give ``jacobian=`` for the part that you know, how
:meth:`dszog.Constraints.concat` joins families of constraints, what the knowledge is
worth (the same problem is solved once more with the gradients hidden), and what to do
where a problem has many local minima.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Circle
from scipy.interpolate import BSpline

import dszog

# %%
# The path
# --------
#
# A spline with twelve control points between a fixed beginning and a fixed end; the
# variables are their coordinates. The path is looked at in a hundred and fifty places.

rng = np.random.default_rng(3)
N_CONTROL, N_PLACES, N_TREES, CLEARANCE = 12, 150, 60, 0.03
BEGIN, END = np.array([0.0, 0.0]), np.array([4.0, 0.0])
knots = np.r_[[0.0] * 3, np.linspace(0, 1, N_CONTROL), [1.0] * 3]
basis = BSpline.design_matrix(np.linspace(0, 1, N_PLACES), knots, 3).toarray()
inner = basis[:, 1:-1]  # (places, control points) of those that may move


def paths(points: Any) -> Any:
    """Return the places of each path, of shape (len(points), N_PLACES, 2)."""
    control = np.asarray(points).reshape(len(points), N_CONTROL, 2)
    return inner @ control + basis[:, [0, -1]] @ np.array([BEGIN, END])


# %%
# The trees: a white box
# ----------------------
#
# Constraint ``j`` is the pair ``divmod(j, N_TREES)`` of a place and a tree: the tree's
# radius and a clearance, less the distance, in units of 0.1: the method expects values
# of order one. The gradient is written down below.

trees = np.c_[rng.uniform(0.3, 3.7, N_TREES), rng.uniform(-0.9, 0.9, N_TREES)]
radii = rng.uniform(0.04, 0.11, N_TREES)


UNIT = 0.1
TOLERANCE = 0.1


def too_near(points: Any, j: Any) -> Any:
    """Return by how much each place is too near to each tree, a row per path."""
    place, tree = np.divmod(j, N_TREES)
    away = paths(points)[:, place] - trees[tree]
    return (radii[tree] + CLEARANCE - np.hypot(away[..., 0], away[..., 1])) / UNIT


def gradients(x: Any, j: Any) -> Any:
    """Return the gradient of each of these constraints, a row per constraint."""
    place, tree = np.divmod(j, N_TREES)
    away = paths([x])[0][place] - trees[tree]
    away /= -UNIT * np.linalg.norm(away, axis=1, keepdims=True)
    return (inner[place][:, :, np.newaxis] * away[:, np.newaxis]).reshape(len(j), -1)


clear = dszog.Constraints(too_near, N_PLACES * N_TREES, jacobian=gradients)

# %%
# Each control point also lies at least a tenth east of the one before, which is linear,
# and the gradients come with :meth:`dszog.Constraints.linear`. Both families together
# are one, and a white box, since each of them is.

step = np.zeros((N_CONTROL - 1, 2 * N_CONTROL))
for k in range(N_CONTROL - 1):
    step[k, 2 * k], step[k, 2 * k + 2] = 1.0, -1.0
onward = dszog.Constraints.linear(step, np.full(N_CONTROL - 1, -0.1))
constraints = dszog.Constraints.concat(clear, onward)
print(f"Data: a generated wood; {2 * N_CONTROL} variables, {constraints!r}")
print(f"Gradients of the constraints: {constraints.has_jacobian}")

# %%
# The energy: a black box
# -----------------------
#
# A program that flies the path: wind from a table, power that grows with the cube of
# the speed in the air, a battery that sags under load. Nobody has its gradient.

GUST = rng.normal(scale=0.35, size=(9, 5))  # the table: the east wind on a grid


def energy(x: Any) -> float:
    """Fly the path in four minutes; return the charge that it takes."""
    places = paths([x])[0]
    speed = np.diff(places, axis=0) * (N_PLACES - 1) / 4.0
    here = (places[1:] + places[:-1]) / 2
    east = np.clip(here[:, 0] * 2.0, 0, 7.999)
    north = np.clip((here[:, 1] + 1.0) * 2.0, 0, 3.999)
    column, row = east.astype(int), north.astype(int)
    a, b = east - column, north - row
    wind = (1 - a) * ((1 - b) * GUST[column, row] + b * GUST[column, row + 1])
    wind += a * ((1 - b) * GUST[column + 1, row] + b * GUST[column + 1, row + 1])
    in_air = np.hypot(speed[:, 0] - wind, speed[:, 1])
    charge = 1.0
    for power in ((0.3 + in_air**3) / (N_PLACES - 1)).tolist():
        charge -= 0.2 * power / sqrt(max(charge, 0.1))  # an empty battery sags
    return 1.0 - charge


# %%
# With the gradients, and without
# -------------------------------
#
# The wood has many ways through, each a local minimum, and a descent finds one of them:
# which one is luck. So three runs are made from different seeds, and the best is kept.
# Known gradients save evaluations, as no points around the path need be looked at for
# the trees. They do not make a better way more likely: a noisy descent leaves a poor
# one now and then, and sometimes a good one.

N_RUNS = 3
straight = np.linspace(BEGIN, END, N_CONTROL + 2)[1:-1].ravel()
runs = {
    "gradients given": constraints,
    "gradients hidden": constraints.black_box(),
}
results: dict[str, Any] = {}
print(f"{'':16}   energy  too near by  evaluations")
near = too_near([straight], np.arange(len(clear))).max() * UNIT
print(f"{'straight on':16}  {energy(straight):7.4f}  {near:11.4f}")
for name, given in runs.items():
    tried = [
        dszog.minimize(
            energy,
            straight,
            given,
            method="dszog",
            max_iterations=1500,
            constraint_tol=TOLERANCE,
            seed=seed,
        )
        for seed in range(N_RUNS)
    ]
    result = min(tried, key=lambda one: (one.maxcv > TOLERANCE, one.fun))
    results[name] = result
    print(
        f"{name:16}  {result.fun:7.4f}  {result.maxcv * UNIT:11.4f}  "
        f"{result.nfev + result.ncev:11,}"
    )

# %%
# The verdict
# -----------

best = results["gradients given"]
print(best.certificate)
verdict = "feasible" if best.maxcv <= TOLERANCE else "not feasible"
print(
    f"Verdict: {verdict}, the path keeps {CLEARANCE} from all {N_TREES} trees, to "
    f"within {best.maxcv * UNIT:.3f}, at every one of {N_PLACES} places."
)

# %%
# The way through the wood
# ------------------------


def draw() -> None:
    """Draw the wood, the wind and the ways."""
    figure, axis = plt.subplots(figsize=(9, 4.4), layout="tight")
    extent = (-0.25, 4.25, -1.25, 1.25)
    image = axis.imshow(
        GUST.T, origin="lower", extent=extent, cmap="RdBu", alpha=0.5, vmin=-1, vmax=1,
        interpolation="bilinear",
    )  # fmt: skip
    figure.colorbar(image, label="wind to the east", shrink=0.8)
    for (x, y), radius in zip(trees, radii, strict=True):
        axis.add_patch(Circle((x, y), radius, color="darkgreen", alpha=0.8))
    axis.plot(*paths([straight])[0].T, "k:", label="straight on")
    for (name, result), style in zip(results.items(), ("C3-", "C1--"), strict=True):
        axis.plot(*paths([result.x])[0].T, style, lw=2, label=name)
    axis.set(
        xlabel="east",
        ylabel="north",
        xlim=(-0.1, 4.1),
        ylim=(-1.05, 1.05),
        aspect="equal",
    )
    axis.legend(loc="lower right", framealpha=0.9)


draw()
plt.show()
