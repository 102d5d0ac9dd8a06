"""Figures 1 to 3: test accuracy against time, loss queries and constraint queries.

Drawn with matplotlib, without its global state. Each panel is an SVG of its own, whose
colours follow the page's.
"""

from __future__ import annotations

import io
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup, escape

from dszog.contract.arrays import BoolArray, FloatArray
from dszog_paper.report.words import Data, is_number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_SIZE = (4.6, 2.9)  # inches
N_MARKERS = 7  # on a line, the last point always among them
DASHES = (0, (4, 2))


@dataclass(frozen=True, kw_only=True)
class Axis:
    """What the horizontal axis shows: a field of a curve."""

    field: str
    label: str
    least: float  # nothing further left is told apart; zeros stand at the left edge

    @property
    def name(self) -> str:
        return "time" if self.field == "seconds" else self.field.replace("_", "-")


AXES = (
    Axis(field="seconds", label="training time (s)", least=1e-3),
    Axis(field="loss_queries", label="loss queries", least=1.0),
    Axis(field="constraint_queries", label="constraint queries", least=1.0),
)

INK, GRID = "#3b3b3d", "#dcdcde"
COLOURS = {  # after Okabe and Ito: told apart with any kind of colour vision
    "dszog": "#101012",
    "ours": "#d55e00",
    "zoscgd": "#0072b2",
    "zopsgd": "#009e73",
    "acczomda": "#d99a00",
    "accszofw": "#b8609a",
    "other": "#56a0c9",
}
MARKERS = dict(zip(COLOURS, "oDs^vPX", strict=True))


@dataclass(frozen=True, kw_only=True)
class Line:
    """How a curve is drawn: full forms dashed, all else solid."""

    label: str
    method: str
    dashed: bool

    @property
    def colour(self) -> str:
        return COLOURS[self.method]

    @property
    def width(self) -> float:
        return {"dszog": 2.8, "ours": 2.0}.get(self.method, 1.3)


def line_of(curve: Data) -> Line:
    method = str(curve["method"])
    return Line(
        label=str(curve["label"]),
        method=method if method in COLOURS else "other",
        dashed=curve["form"] == "full",
    )


def lines_of(figure: Data) -> list[Line]:
    """Return the lines of a figure's legend, each once, in their order."""
    curves = [curve for panel in figure["panels"] for curve in panel["curves"]]
    return list(dict.fromkeys(map(line_of, curves)))


# --------------------------------------------------------------------- what is drawn


def panel_svgs(figure: Data, axis: Axis) -> list[Markup]:
    """Return an SVG element for each panel, to be put into the page."""
    from matplotlib.figure import Figure

    limits = _limits(figure, axis)
    number = re.sub(r"[^A-Za-z0-9]+", "-", str(figure["number"]))
    svgs = []
    for turn, panel in enumerate(figure["panels"]):
        drawing = Figure(figsize=PANEL_SIZE, facecolor="none")
        drawing.subplots_adjust(left=0.13, right=0.97, bottom=0.18, top=0.9)
        _draw(drawing.add_subplot(), panel, axis, limits)
        prefix = f"figure-{number}-{axis.name}-{turn}-"
        svgs.append(_svg(drawing, prefix, _in_words(panel, axis)))
    return svgs


def _in_words(panel: Data, axis: Axis) -> str:
    """Return a panel for those who cannot see it."""
    ends = [
        f"{curve['label']} ends at {100.0 * curve['test_accuracy'][-1]:.1f} %"
        for curve in panel["curves"]
        if curve["test_accuracy"] and is_number(curve["test_accuracy"][-1])
    ]
    what = f"{panel['data']}: test accuracy against {axis.label}."
    return f"{what} {'; '.join(ends) or 'not run'}."


def _draw(axes: Axes, panel: Data, axis: Axis, limits: tuple[float, float]) -> None:
    axes.set_facecolor("none")
    axes.set_title(
        str(panel["data"]), parse_math=False, fontsize=11, weight="bold", color=INK
    )
    axes.set_xscale("log")
    axes.set_xlim(limits)
    _label(axes, axis)
    drawn = [_plot(axes, curve, axis, limits[0]) for curve in panel["curves"]]
    if not any(drawn):
        axes.set_yticks([])
        axes.text(0.5, 0.5, "not run", transform=axes.transAxes, ha="center", color=INK)
        return
    if is_number(majority := panel.get("majority")):
        axes.axhline(100.0 * majority, color=INK, linewidth=1.0, linestyle=":")
    low, high = axes.get_ylim()
    if high - low < 2.0:  # points: noise should not look like a story
        middle = (low + high) / 2
        axes.set_ylim(middle - 1.0, middle + 1.0)


def _label(axes: Axes, axis: Axis) -> None:
    from matplotlib.ticker import FuncFormatter, NullLocator

    axes.set_xlabel(axis.label, color=INK, fontsize=9.5)
    axes.set_ylabel("test accuracy (%)", color=INK, fontsize=9.5)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(which="both", colors=INK, labelsize=9)
    axes.grid(True, which="major", color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(INK)


def _plot(axes: Axes, curve: Data, axis: Axis, least: float) -> bool:
    x, y, is_known = _points(curve, axis.field)
    if not is_known.any():
        return False
    line, places = line_of(curve), np.maximum(x[is_known], least)
    if "low" in curve:
        low, high = (_column(curve, name)[is_known] for name in ("low", "high"))
        band: dict[str, Any] = {"color": line.colour, "alpha": 0.15, "linewidth": 0}
        axes.fill_between(places, 100.0 * low, 100.0 * high, step="post", **band)
    marked = np.linspace(0, len(places) - 1, min(len(places), N_MARKERS)).round()
    axes.plot(
        places,
        100.0 * y[is_known],
        drawstyle="steps-post",  # what was seen holds until the next look
        markersize=5.0 if line.method in ("dszog", "ours") else 4.0,
        markevery=marked.astype(int).tolist(),
        zorder={"dszog": 4.0, "ours": 3.5}.get(line.method, 3.0),
        clip_on=False,
        color=line.colour,
        linewidth=line.width,
        linestyle=DASHES if line.dashed else "-",
        marker=MARKERS[line.method],
        markerfacecolor="none" if line.dashed else line.colour,
    )
    return True


def _points(curve: Data, field: str) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return where a curve was looked at, what was seen, and where both are known."""
    x, y = _column(curve, field), _column(curve, "test_accuracy")
    return x, y, np.isfinite(x) & np.isfinite(y)


def _column(curve: Data, name: str) -> FloatArray:
    return np.array(curve[name], dtype=float)  # None becomes NaN


def _limits(figure: Data, axis: Axis) -> tuple[float, float]:
    """Return the ends of the axis, the same for all panels of a figure."""
    seen: list[float] = []
    for curve in (curve for panel in figure["panels"] for curve in panel["curves"]):
        x, _, is_known = _points(curve, axis.field)
        seen += x[is_known & (x > 0)].tolist()
    seen = seen or [axis.least]
    low = max(min(seen), axis.least)
    low, high = low / 1.3, max(max(seen), low) * 1.3
    if math.floor(math.log10(high)) - math.ceil(math.log10(low)) < 1:
        low = 10.0 ** math.floor(math.log10(low))  # room for two labels
        high = 10.0 ** math.ceil(math.log10(high))
    return low, high


def tick(value: float) -> str:
    """Return a power of ten as few signs."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g} {letter}"
    return f"{value:g}"


# --------------------------------------------------------------------------- the SVG

_NOT_FOR_A_PAGE = re.compile(
    r"^.*?(?=<svg\b)"  # what stands before the element
    r"|<style\b.*?</style>|<metadata>.*?</metadata>"
    r'|\s+xmlns(?::\w+)?="[^"]*"',
    re.DOTALL,
)
_REFERENCES = re.compile(r'(\bid="|url\(#|href="#)')


def _svg(drawing: Figure, prefix: str, label: str) -> Markup:
    """Return the drawing as an element whose names are its own within the page."""
    import matplotlib as mpl

    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with (
        io.StringIO() as file,
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": prefix}),
    ):
        drawing.savefig(file, format="svg", metadata=nothing, facecolor="none")
        text = _NOT_FOR_A_PAGE.sub("", file.getvalue())
    text = text.replace("xlink:href", "href")
    text = _REFERENCES.sub(lambda found: found.group(1) + prefix, text)
    variables = {INK: "--ink", GRID: "--grid"}
    variables |= {colour: f"--line-{name}" for name, colour in COLOURS.items()}
    for colour, variable in variables.items():
        text = text.replace(colour, f"var({variable}, {colour})")
    head = f'<svg role="img" aria-label="{escape(label)}"'
    return Markup(text.strip().replace("<svg", head, 1))
