"""Panels of a picture: curves over a run, each with honest words for what it shows."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

from dszog.contract.arrays import FloatArray
from dszog.show.plot.series import spans_decades

# Colours of Okabe and Ito, which the colour-blind can tell apart.
BLUE, VERMILLION, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#6E6E6E"
INK, GRID = "#1b1b1f", "#e3e3e8"
SMALL = 8.5


class Picture(Figure):
    """A figure that a notebook shows by itself, and that belongs to no window."""

    def _repr_png_(self) -> bytes:
        with io.BytesIO() as file:
            self.savefig(file, format="png")
            return file.getvalue()


@dataclass(frozen=True)
class Panel:
    """One quantity seen in batches."""

    column: str  # of the history
    title: str
    absent: str  # what is said where no batch has it


PANELS = (
    Panel("sampled_objective", "Objective, mean over a batch", "no losses were drawn"),
    Panel(
        "sampled_violation",
        "Worst violation seen in a batch",
        "this method draws no constraints in batches",
    ),
    Panel(
        "sampled_share",
        "Share violated, of a uniformly drawn batch",
        "this method draws no uniform batches of constraints",
    ),
)


def dress(axes: Axes, title: str) -> None:
    """Give axes the look that all have."""
    axes.set_title(title, loc="left", fontsize=10, color=INK, parse_math=False)
    axes.grid(color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=SMALL, colors=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def say(axes: Axes, text: str) -> None:
    axes.set_yticks([])
    middle: dict[str, Any] = {
        "ha": "center",
        "va": "center",
        "transform": axes.transAxes,
    }
    axes.text(0.5, 0.5, text, **middle, color=GREY, fontsize=SMALL, wrap=True)


def finish_vertical(
    axes: Axes, column: str, drawn: list[float], tolerance: float
) -> None:
    """Choose the vertical scale for all that is drawn; draw the tolerance, if any."""
    if column == "sampled_violation" and tolerance > 0.0:
        axes.axhline(tolerance, color=VERMILLION, linewidth=1.1, linestyle="-.")
        drawn = [*drawn, tolerance]
    values = np.asarray(drawn, dtype=float)
    values = values[np.isfinite(values)]
    if column == "sampled_share":
        axes.yaxis.set_major_formatter(PercentFormatter(xmax=1.0))
        _from_zero(axes, max(1.05 * float(values.max(initial=0.0)), 1e-6))
    elif column == "sampled_violation":
        _scale_violation(axes, values, tolerance)
    elif spans_decades(values):
        axes.set_yscale("log")


def _scale_violation(axes: Axes, values: FloatArray, tolerance: float) -> None:
    """Make it logarithmic, but for a strip at the bottom, so that 0 has a place."""
    positive = values[values > 0.0]
    if not len(positive):
        _from_zero(axes, 2.0 * tolerance if tolerance > 0.0 else 1.0)
        return
    least = float(np.quantile(positive, 0.02))
    if tolerance > 0.0:
        least = min(max(least, tolerance / 100.0), tolerance)
    linear = 10.0 ** np.floor(np.log10(least))
    highest = float(positive.max())
    if highest <= 10.0 * linear:
        _from_zero(axes, 1.1 * highest)
        return
    axes.set_yscale("symlog", linthresh=linear, linscale=0.5)
    axes.set_ylim(-0.25 * linear, 1.5 * highest)  # room for half a dot at 0


def _from_zero(axes: Axes, top: float) -> None:
    axes.set_ylim(-0.04 * top, top)


def finish_horizontal(all_axes: Sequence[Axes], label: str) -> None:
    """Label what the panels share, below the last of them."""
    last = all_axes[-1]
    _, right = last.get_xlim()
    last.set_xlim(-0.01 * right, right)  # a run begins at 0, if its rows do not
    last.set_xlabel(label, fontsize=9.5, color=INK)
    last.xaxis.set_major_locator(MaxNLocator(nbins=7))
    if not label.startswith("time"):
        last.xaxis.set_major_formatter(EngFormatter(sep=""))
        last.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
    for axes in all_axes[:-1]:
        axes.tick_params(labelbottom=False)


def fresh_values(result: Any) -> dict[str, float]:
    """Return, by column, what was found at the returned point."""
    feasibility = result.certificate.feasibility
    known = feasibility.kind != "unchecked"
    return {
        "sampled_objective": float(result.fun),
        "sampled_violation": float(result.maxcv),
        "sampled_share": float(feasibility.share_bound) if known else float("nan"),
    }
