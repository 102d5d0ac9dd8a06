"""
A suspension that takes every bump
==================================

A soft suspension rides well until a bump is too high for it: then it runs into its
stops, or the wheel leaves the road. One run of a simulator, an ordinary differential
equation solved by SciPy, tells how a car takes one bump at one speed and load. The
suspension shall be as comfortable as possible on a usual road and take all of them.

You will learn how to hand an ODE to :class:`dszog.Simulator`, with values in metres and
newtons and their limits; how to say that cases are all pairs of bumps and of loads; and
how to read which bump holds the design where it is.
"""

from __future__ import annotations

import math
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.integrate import odeint

import dszog

# %%
# The car
# -------
#
# A quarter of a car: a body on a spring and a damper, a wheel, and a tyre that only
# pushes. Five variables: the stiffness of the spring, by how much it grows, the damper
# inwards and outwards, and the stiffness of the stops.

WHEEL, TYRE, GRAVITY = 40.0, 2.0e5, 9.81  # kg, N/m, m/s^2
NAMES = ["spring", "progression", "damper in", "damper out", "stops"]
UNITS = np.array([1.0e4, 1.0e6, 1.0e3, 1.0e3, 1.0e5])  # N/m, N/m^3, N s/m twice, N/m
BOUNDS = [(1.0, 5.0), (0.0, 5.0), (0.3, 5.0), (0.3, 5.0), (0.0, 5.0)]
ROOM = 0.055  # m, until the stops


def driven(x: Any, body: float, road: Any, times: Any) -> tuple[Any, Any, Any]:
    """Return travel, force of the tyre and acceleration of the body over time."""
    spring, growth, inwards, outwards, stops = (x * UNITS).tolist()
    weight = (body + WHEEL) * GRAVITY

    def forces(state: Any, t: float) -> Any:
        high, low, v_high, v_low = state.tolist()
        travel, speed = low - high, v_low - v_high  # inwards
        soft = 0.5 * (1.0 + math.tanh(speed / 0.05))
        force = spring * travel + growth * travel**3
        force += (inwards * soft + outwards * (1.0 - soft)) * speed
        over = max(abs(travel) - ROOM, 0.0)
        force += math.copysign(stops * over * (1.0 + over / 0.01), travel)
        return force, max(weight + TYRE * (road(t) - low), 0.0)

    def moved(state: Any, t: float) -> Any:
        force, tyre = forces(state, t)
        return state[2], state[3], force / body, (tyre - weight - force) / WHEEL

    found = odeint(moved, np.zeros(4), times, rtol=1e-7, atol=1e-9, hmax=0.01)
    both = [forces(state, t) for state, t in zip(found, times, strict=True)]
    force, tyre = np.array(both).T
    return found[:, 1] - found[:, 0], tyre / weight, force / body


# %%
# Comfort, and bumps
# ------------------
#
# The objective is the root mean square of what passengers feel on a rough road. A case
# is a bump, of some height, length and speed, with a load. Of each run the largest
# travel both ways, the force of the tyre and the jolt are looked at.

RNG = np.random.default_rng(1)
WAVES = [(0.02 / k, 0.9 * k, p) for k, p in enumerate(RNG.uniform(0, 6, 8), 1)]
BUMPS = [
    (height, length, speed)
    for height in (0.025, 0.04, 0.055, -0.05)
    for length in (0.4, 1.0, 2.5)
    for speed in (4.0, 8.0, 14.0, 22.0)
]
LOADS = [280.0, 340.0, 420.0]  # kg
n_runs = 0


def comfort(x: Any) -> float:
    """Return what passengers feel on a rough road, in m/s^2."""

    def road(t: float) -> float:
        ahead = 20.0 * t
        waves = (a * math.sin(0.1 * w * ahead + p) for a, w, p in WAVES)
        return min(t, 1.0) * sum(waves)

    _, _, jolts = driven(x, LOADS[1], road, np.linspace(0.0, 5.0, 501))
    return float(np.sqrt(np.mean(jolts**2)))


def bump(x: Any, case: int) -> list[float]:
    """Return travel in and out, the tyre's largest force, and the worst jolt."""
    global n_runs
    n_runs += 1
    load, number = divmod(case, len(BUMPS))
    height, length, speed = BUMPS[number]
    lasts = length / speed

    def road(t: float) -> float:
        over = 0.0 < t < lasts
        return 0.5 * height * (1.0 - math.cos(2 * math.pi * t / lasts)) if over else 0.0

    times = np.linspace(0.0, lasts + 0.8, 400)
    travel, tyre, jolts = driven(x, LOADS[load], road, times)
    return [travel.max(), -travel.min(), tyre.max(), np.abs(jolts).max()]


def name(case: int) -> str:
    """Return what a case is called."""
    load, number = divmod(case, len(BUMPS))
    height, length, speed = BUMPS[number]
    what = f"{100 * height:.1f} cm over {length} m at {speed:.0f} m/s"
    return f"{what}, {LOADS[load]:.0f} kg"


car = dszog.Simulator(
    bump,
    (len(LOADS), len(BUMPS)),
    4,
    objective=comfort,
    upper=[0.07, 0.07, 5.0, 20.0],
    scale=[0.07, 0.07, 5.0, 20.0],
    names=(name, ["travel in", "travel out", "force of the tyre", "jolt"]),
)

# %%
# From a stiff car
# ----------------
#
# The start is safe, and rides badly.

start = np.array([4.0, 1.0, 2.5, 2.5, 2.0])
result = dszog.minimize(car, start, bounds=BOUNDS, constraint_tol=1e-3, seed=0)
print(result.message)
print(
    f"comfort  {comfort(start):.3f} to {result.fun:.3f} m/s^2, {n_runs:,} bumps driven"
)
for label, value in zip(NAMES, result.x, strict=True):
    print(f"  {label:12} {value:.3f}")
for row in result.binding():
    print(f"held by {row.name} ({row.multiplier:.3g})")

# %%
# The verdict
# -----------
#
# All bumps are driven once more, by hand.

limits = np.array([0.07, 0.07, 5.0, 20.0])
values = np.array([bump(result.x, i) for i in range(car.n)]) / limits
worst = values.max()
verdict = "feasible" if worst <= 1.001 else "not feasible"
print(
    f"Verdict: {verdict}; the worst of {values.size:,} limits is used to "
    f"{100 * worst:.1f} %."
)

# %%
# How the design takes its bumps
# ------------------------------


def draw() -> None:
    """Draw how much of each limit every bump uses, before and after."""
    before = np.array([bump(start, i) for i in range(car.n)]) / limits
    _, axes = plt.subplots(1, 4, figsize=(9, 3), sharey=True, layout="tight")
    for k, axis in enumerate(axes):
        axis.plot(np.sort(before[:, k]), "C7", label="stiff")
        axis.plot(np.sort(values[:, k]), "C0", label="found")
        axis.axhline(1.0, color="C3", lw=1)
        axis.set(title=car.limit_name(k), xlabel="cases, sorted")
    axes[0].set_ylabel("share of the limit")
    axes[0].legend()


draw()
plt.show()
