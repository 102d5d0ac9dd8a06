"""The picture of one run: curves on the left, weights and evidence on the right."""

from __future__ import annotations

import math
from collections.abc import Mapping
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from dszog.contract.arrays import FloatArray, IntArray
from dszog.evidence.certificate import rounded_up
from dszog.show.plot.panels import (
    BLUE,
    GREEN,
    GREY,
    INK,
    PANELS,
    SMALL,
    VERMILLION,
    Panel,
    dress,
    finish_horizontal,
    finish_vertical,
    fresh_values,
    say,
)
from dszog.show.plot.series import horizontal, raises, running_mean

N_BARS = 12  # heaviest weights that are drawn
FEW = 20  # rows, each of which is drawn as a larger dot
MOST_RAISES = 8  # of the penalty that are marked
LEAST_BARS = 4  # for which there is room, so that one bar is not a block
LABEL = 24  # characters of a name beside its bar
WRAPPED = 62  # characters in a line of the evidence
MOST_LINES = 22  # of it, in letters of full size


def draw_run(figure: Figure, result: Any, against: str) -> None:
    figure.set_layout_engine("constrained")
    halves: Any = figure.subfigures(1, 2, width_ratios=(1.75, 1.0))
    left, right = halves
    _draw_curves(left, result, against)
    weights = [entry[result.weights[1] > 0.0] for entry in result.weights]
    if not len(weights[0]):
        _write_evidence(right, result)
        return
    upper, lower = right.subfigures(2, 1, height_ratios=(1.0, 1.1))
    names, known = result.get("names", {}), result.certificate.first_order
    if known is not None and len(known.indices):
        _draw_bars(upper.subplots(), known.indices, known.multipliers, names=names)
    else:
        _draw_bars(upper.subplots(), *weights, names=names, total=1.0)
    _write_evidence(lower, result)


# ------------------------------------------------------------------------------ curves


def _draw_curves(figure: SubFigure, result: Any, against: str) -> None:
    n_failed = result.history.get("n_failed", np.zeros(0))
    has_failures = bool(np.nanmax(n_failed, initial=0.0) > 0)
    n_panels = len(PANELS) + has_failures
    all_axes = list(figure.subplots(n_panels, 1, sharex=True, squeeze=False)[:, 0])
    x, label = horizontal(result, against)
    marked = raises(result.history.get("penalty", np.zeros(len(x))))[:MOST_RAISES]
    for axes, panel in zip(all_axes, PANELS, strict=False):
        _draw_curve(axes, panel, x, result)
    if has_failures:
        n = result.failures.n_failed
        title = f"Points at which an evaluation failed, so far; {n:,} at the end"
        dress(all_axes[-1], title)
        all_axes[-1].step(x, n_failed, where="post", color=VERMILLION, linewidth=1.5)
        all_axes[-1].yaxis.set_major_locator(MaxNLocator(integer=True, nbins=4))
        all_axes[-1].set_ylim(bottom=0.0)
    for axes in all_axes:
        for row in marked:
            axes.axvline(x[row], color=GREY, linewidth=0.9, linestyle=":")
    finish_horizontal(all_axes, label)
    _legend(figure, result, marked)


def _draw_curve(axes: Axes, panel: Panel, x: FloatArray, result: Any) -> None:
    values = np.asarray(result.history[panel.column], dtype=float)
    fresh = fresh_values(result)[panel.column]
    dress(axes, f"{panel.title}{_found(panel, result, fresh)}")
    if not np.isfinite(values).any():
        say(axes, panel.absent)
        return
    size = 8.0 if len(x) < FEW else 4.0
    alpha = float(np.clip(60.0 / len(x), 0.15, 1.0))
    axes.plot(x, values, ".", color=BLUE, alpha=alpha, markersize=size)
    axes.plot(x, running_mean(values), color=BLUE, linewidth=1.6)
    if np.isfinite(fresh):
        axes.axhline(fresh, color=INK, linewidth=1.1, linestyle="--")
    tolerance = float(result.get("constraint_tol", np.nan))
    finish_vertical(axes, panel.column, [*values, fresh], tolerance)


def _found(panel: Panel, result: Any, fresh: float) -> str:
    """Return what was found at the returned point, for the title."""
    if not np.isfinite(fresh):
        return "; at the returned point not known"
    feasibility = result.certificate.feasibility
    if panel.column == "sampled_objective":
        return f"; {fresh:.5g} at the returned point"
    among = "" if feasibility.is_exact else " among those checked"
    if panel.column == "sampled_violation":
        return f"; {fresh:.3g} at the returned point{among}"
    if feasibility.is_exact:
        return f"; {100.0 * fresh:.2g} % of all at the returned point"
    bound = rounded_up(100.0 * fresh)
    return f"; at the returned point at most {bound} % of all (95 %)"


def _legend(figure: SubFigure, result: Any, marked: list[int]) -> None:
    looks: dict[str, dict[str, Any]] = {
        "one batch (sampled)": {"color": BLUE, "marker": ".", "linestyle": ""},
        "running mean of batches": {"color": BLUE},
        "returned point, fresh values": {"color": INK, "linestyle": "--"},
    }
    if result.get("constraint_tol", 0.0) > 0.0:
        looks["tolerance"] = {"color": VERMILLION, "linestyle": "-."}
    if marked:
        looks["penalty raised"] = {"color": GREY, "linestyle": ":"}
    handles = [Line2D([], [], label=name, **look) for name, look in looks.items()]
    style: dict[str, Any] = {"ncols": 3, "fontsize": SMALL, "frameon": False}
    figure.legend(handles=handles, loc="outside upper left", **style)


# ----------------------------------------------------------------- weights and evidence


def _draw_bars(
    axes: Axes,
    indices: IntArray,
    values: FloatArray,
    *,
    names: Mapping[int, str],
    total: float = math.nan,
) -> None:
    """Draw multipliers, or weights of which all together have a total."""
    heaviest, n = np.argsort(-values, kind="stable")[:N_BARS], len(indices)
    what, below = "multiplier", "gain per unit of each"
    if not math.isnan(total):
        what = "touched weight"
        below = f"all touched hold {values.sum():.3g} of {total:g}"
    title = f"The {n} {what}s" if n > 1 else f"The one {what}"
    if n > N_BARS:
        title = f"The {N_BARS} heaviest of {n:,} {what}s"
    dress(axes, f"{title}\n({below})")
    places = np.arange(len(heaviest))
    axes.barh(places, values[heaviest], color=GREEN, height=0.7)
    labels = [names.get(int(indices[j]), f"{indices[j]:,}") for j in heaviest]
    labels = [text if len(text) <= LABEL else f"{text[:LABEL]}…" for text in labels]
    axes.set_yticks(places, labels, fontsize=SMALL, parse_math=False)
    axes.set_ylim(max(len(heaviest), LEAST_BARS) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4))
    axes.set_xlabel(what.split()[-1], fontsize=9.5, color=INK)
    axes.set_ylabel("constraint", fontsize=9.5, color=INK)


def _write_evidence(figure: SubFigure, result: Any) -> None:
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_title("Evidence", loc="left", fontsize=10, color=INK)
    lines = [(line, "bold") for line in wrap(result.verdict, WRAPPED - 6)]
    evidence = result.evidence()
    if not (result.weights[1] > 0.0).any():
        evidence.append(("weights", "no constraint has a weight of its own"))
    for name, text in evidence:
        lines.append(("", "normal"))
        lines += [(line, "normal") for line in wrap(f"{name}: {text}", WRAPPED)]
    size = min(SMALL, SMALL * MOST_LINES / len(lines))
    y = 0.0
    for line, weight in lines:
        axes.annotate(
            line,
            (0.0, 1.0),
            xycoords="axes fraction",
            xytext=(0.0, y),
            textcoords="offset points",
            va="top",
            fontsize=size,
            weight=weight,
            color=INK,
            parse_math=False,
            annotation_clip=False,
        ).set_in_layout(False)
        y -= 1.4 * size if line else 0.5 * size
