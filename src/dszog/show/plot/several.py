"""The picture of several runs: one colour for each, and a table of how they ended."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dszog.contract.arrays import FloatArray
from dszog.show.plot.panels import (
    DASHES,
    GREY,
    INK,
    PANELS,
    RUNS,
    SMALL,
    Panel,
    dress,
    finish_horizontal,
    finish_vertical,
    fresh_values,
    legend,
    say,
)
from dszog.show.plot.series import horizontal, running_mean

ROOM = 130  # letters that fit beside each other above the panels
HEADS = (
    *("run", "success", "objective", "worst violation", "constraints checked"),
    *("queries", "seconds"),
)


def draw_runs(
    figure: Figure, results: list[Any], labels: list[str], against: str
) -> None:
    figure.set_layout_engine("constrained")
    table_height = 0.2 + 0.13 * len(results)
    *all_axes, table = figure.subplots(
        len(PANELS) + 1, 1, height_ratios=(1.0, 1.0, 1.0, table_height)
    )
    for axes in all_axes[1:]:
        axes.sharex(all_axes[0])
    places, label = horizontal(results, against)
    for axes, panel in zip(all_axes, PANELS, strict=True):
        _draw_panel(axes, panel, results, places)
    finish_horizontal(all_axes, label)
    _draw_table(table, results, labels)
    handles = [
        all_axes[0].plot([], [], label=name, linewidth=2, **_look(number))[0]
        for number, name in enumerate(labels)
    ]
    marks = [
        Line2D([], [], color=GREY, label="running mean of batches (sampled)"),
        _mark("o", "returned point, fresh values: a success"),
        _mark("X", "returned point, fresh values: no success"),
    ]
    room = ROOM // (max(map(len, labels)) + 6)
    n_columns = max(1, min(len(labels), 4, room))
    legend(figure, handles, "upper", ncols=n_columns, fontsize=SMALL + 0.5)
    legend(figure, marks, "lower")


def _mark(shape: str, label: str) -> Line2D:
    look: dict[str, Any] = {
        "linestyle": "",
        "markersize": 7,
        "markeredgecolor": "white",
    }
    return Line2D([], [], color=GREY, marker=shape, label=label, **look)


def _look(number: int) -> dict[str, Any]:
    turns, colour = divmod(number, len(RUNS))
    return {"color": RUNS[colour], "linestyle": DASHES[turns]}


def _draw_panel(
    axes: Axes, panel: Panel, results: list[Any], places: list[FloatArray]
) -> None:
    dress(axes, f"{panel.title}{_what_marks_are(panel, results)}")
    drawn: list[float] = []
    for number, (result, x) in enumerate(zip(results, places, strict=True)):
        values = running_mean(np.asarray(result.history[panel.column], float))
        fresh = fresh_values(result)[panel.column]
        if np.isfinite(values).any():
            marker = "." if len(x) == 1 else ""
            axes.plot(x, values, linewidth=1.5, marker=marker, **_look(number))
            drawn += values.tolist()
        if np.isfinite(fresh):
            drawn.append(fresh)
            axes.plot(
                x[-1],
                fresh,
                marker="o" if result.success else "X",
                markersize=8,
                markeredgecolor="white",
                color=_look(number)["color"],
                clip_on=False,
                zorder=5,
            )
    if not np.isfinite(drawn).any():
        say(axes, panel.absent)
        return
    tolerances = {float(result.get("constraint_tol", np.nan)) for result in results}
    tolerance = tolerances.pop() if len(tolerances) == 1 else 0.0
    finish_vertical(axes, panel.column, drawn, tolerance, GREY)
    if panel.column == "sampled_violation" and tolerance > 0.0:
        axes.annotate(
            "tolerance",
            (1.0, tolerance),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            color=GREY,
            annotation_clip=False,
        )


def _what_marks_are(panel: Panel, results: list[Any]) -> str:
    if all(result.certificate.feasibility.is_exact for result in results):
        return ""
    if panel.column == "sampled_violation":
        return " (mark: among those checked)"
    if panel.column == "sampled_share":
        return " (mark: of all, at most, with 95 % confidence)"
    return ""


def _draw_table(axes: Axes, results: list[Any], labels: list[str]) -> None:
    axes.set_axis_off()
    cells = [_row(result, name) for result, name in zip(results, labels, strict=True)]
    widths = [max(len(row[k]) for row in (HEADS, *cells)) for k in range(len(HEADS))]
    table = axes.table(
        cellText=cells,
        colLabels=list(HEADS),
        colWidths=[width / sum(widths) for width in widths],
        cellLoc="left",
        colLoc="left",
        loc="upper left",
        edges="horizontal",
    )
    table.auto_set_font_size(False)
    table.set_fontsize(SMALL)
    table.scale(1.0, 1.15)
    for (row, _), cell in table.get_celld().items():
        cell.set_edgecolor("#c9c9d2")
        cell.get_text().set_color(INK)
        cell.get_text().set_parse_math(False)
        if not row:
            cell.get_text().set_fontweight("bold")


def _row(result: Any, label: str) -> list[str]:
    feasibility = result.certificate.feasibility
    checked = "all" if feasibility.is_exact else f"{feasibility.n_checked:,} drawn"
    return [
        label,
        "yes" if result.success else "no",
        f"{result.fun:.5g}",
        f"{result.maxcv:.3g}",
        "none" if feasibility.kind == "unchecked" else checked,
        f"{result.nfev + result.ncev:,}",
        f"{result.costs.time:.3g}",
    ]
