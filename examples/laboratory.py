"""
Ask and tell by hand, for a laboratory
======================================

Sometimes no function can be called: a person mixes seven glasses in the morning and
reads the meters in the evening. The method says what it wants to know, and waits.

You will learn how to run a method yourself with ``init``, ``ask`` and ``tell``, how to
make its replies from measurements, and how to keep everything on disk from one day to
the next: the state of the method with :func:`dszog.save_state`, the measurements in a
table that a person can read and correct.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import dszog

# %%
# What is wanted
# --------------
#
# A dye of three ingredients, each between 0 and 1, shall be as near to a colour as
# possible. In twenty-four places of a sample its thickness must stay below a limit. A
# glass gives one difference of colour and twenty-four thicknesses: one loss, and
# twenty-four constraints, which hold where they are at most 0.

N_PLACES = 24
SIZE = dszog.ProblemSize(
    dim=3, n_losses=1, n_constraints=N_PLACES, lower=np.zeros(3), upper=np.ones(3)
)

# %%
# The method is set for measurements. They are noisy: so points lie far apart
# (``radius``) and on both sides (``antithetic``). Glasses are expensive: the steps are
# few, large, and shrink over thirty days (``horizon``).

METHOD = dszog.DSZOG(
    radius=0.06,
    antithetic=True,
    n_directions=3,
    step_size=0.06,
    averaging=0.7,
    penalty=40.0,
    horizon=30,
)

# %%
# The notebook
# ------------
#
# ``ask`` gives queries: points, and which losses and constraints are wanted there. It
# gives the same ones whenever it is asked, so only what was measured has to be kept. A
# glass gives all values at once, so each point is one line of a table.


def recipes(state: Any) -> Any:
    """Return the points that the method wants to know about, each once."""
    points = [query.points(SIZE) for query in METHOD.ask(state) if wants(query)]
    return np.unique(np.vstack(points), axis=0)


def wants(query: dszog.Query) -> bool:
    """Return whether anything is wanted; a query may be empty."""
    return len(query.losses) + len(query.constraints) > 0


def write_down(notebook: Path, points: Any, readings: Any) -> None:
    """Write what was mixed and what was read into the notebook."""
    with notebook.open("w", newline="") as file:
        csv.writer(file).writerows(np.hstack([points, readings]).tolist())


def replies(state: Any, notebook: Path) -> list[dszog.Reply]:
    """Return what the notebook says to the queries of a state."""
    with notebook.open(newline="") as file:
        table = np.array([[float(text) for text in row] for row in csv.reader(file)])
    known = {row[:3].tobytes(): row[3:] for row in table}
    told = []
    for query in METHOD.ask(state):
        points = query.points(SIZE) if wants(query) else np.empty((0, 3))
        rows = np.array([known[x.tobytes()] for x in points]).reshape(-1, 1 + N_PLACES)
        n_points = len(query.steps) + 1
        told.append(
            dszog.Reply(
                losses=rows[:, query.losses].reshape(n_points, -1),
                constraints=rows[:, 1 + query.constraints].reshape(n_points, -1),
            )
        )
    return told


# %%
# A day
# -----
#
# Two visits, which may be days apart and in different processes. In the morning the
# state is read and the recipes are printed; in the evening the notebook is read, the
# method is told, and the new state replaces the old one.


def morning(folder: Path) -> Any:
    """Return what is to be mixed today."""
    return recipes(dszog.load_state(folder / "method.state", METHOD, SIZE))


def evening(folder: Path) -> Any:
    """Tell the method what was read today, and keep its new state."""
    state = dszog.load_state(folder / "method.state", METHOD, SIZE)
    told = replies(state, folder / "notebook.csv")
    state, info = METHOD.tell(state, METHOD.ask(state), told)
    dszog.save_state(folder / "method.state", METHOD, state)
    return state, info


# %%
# The person
# ----------
#
# Stands in for whoever mixes and reads, with an error of one in a hundred. What is
# inside is unknown to the method.

RNG = np.random.default_rng(0)
BEST_COLOUR = np.array([0.7, 0.8, 0.3])
VISCOUS = np.abs(RNG.normal(size=(N_PLACES, 3))) * [0.6, 1.0, 0.4]


def truth(x: Any) -> Any:
    """Return the difference of colour and by how much each place is too thick."""
    return np.r_[np.sum((x - BEST_COLOUR) ** 2), VISCOUS @ x - 1.2 + 0.3 * x[0] * x[1]]


def person(points: Any) -> Any:
    """Mix each recipe, read the meters, and return a line for each."""
    lines = np.array([truth(x) for x in points])
    return lines + 0.01 * RNG.standard_normal(lines.shape)


# %%
# Thirty days
# -----------

track, n_glasses = [], 0
state = METHOD.init(np.full(3, 0.2), SIZE, seed=0)
with tempfile.TemporaryDirectory() as place:  # a folder of the laboratory
    folder = Path(place)
    dszog.save_state(folder / "method.state", METHOD, state)
    for day in range(30):
        wanted = morning(folder)
        n_glasses += len(wanted)
        write_down(folder / "notebook.csv", wanted, person(wanted))
        state, info = evening(folder)
        track.append(truth(state.x))
        if day % 6 == 0:
            print(f"day {day:2}: {len(wanted)} glasses, recipe {np.round(state.x, 3)}")
    # A state is only read by the method that wrote it, on the problem it was of.
    try:
        dszog.load_state(folder / "method.state", dszog.DSZOG(), SIZE)
    except dszog.CheckpointError as error:
        print(f"With other settings: {str(error).split(', which')[0][-42:]}")

# %%
# The verdict
# -----------
#
# The last recipe is mixed once more, ten times, and the means are looked at.

final = person([state.x] * 10).mean(axis=0)
TOLERANCE = 0.05
verdict = "feasible" if final[1:].max() <= TOLERANCE else "not feasible"
print(
    f"Verdict: {verdict}; the worst place of {N_PLACES} is off its limit by "
    f"{max(final[1:].max(), 0.0):.3f} (allowed: {TOLERANCE}), the colour by "
    f"{final[0]:.3f} (at the start {track[0][0]:.3f}), after {n_glasses} glasses."
)

# %%
# How it went
# -----------


def draw() -> None:
    """Draw the colour and the worst place, day by day."""
    _, axis = plt.subplots(figsize=(7, 3.6), layout="tight")
    days = np.arange(len(track))
    axis.plot(days, [row[0] for row in track], "C0o-", label="difference of colour")
    worst = [row[1:].max() for row in track]
    axis.plot(days, worst, "C3s-", label="worst place, above its limit")
    axis.axhline(0.0, color="black", lw=1)
    axis.axhspan(TOLERANCE, 1.0, color="C3", alpha=0.1)
    axis.text(29.5, 0.72, "too thick", color="C3", ha="right")
    axis.set(xlabel="day", ylabel="true value", ylim=(-0.8, 0.8))
    axis.legend()


draw()
plt.show()
