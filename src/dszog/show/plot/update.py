"""The picture of an update of a network: before and after, example by example."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from dszog.show.plot.panels import BLUE, GREY, INK, SMALL, VERMILLION, dress

MOST = 20_000  # kept examples that are drawn, beside those that got worse


def draw_update(figure: Figure, report: Any) -> None:
    """Draw what was learnt on the left, and what became of kept examples beside it."""
    left, right = figure.subplots(1, 2, width_ratios=(1, 2))
    figure.set_layout_engine("constrained")
    has_classes = np.isfinite(report.after.new_accuracy)
    names = ("new_accuracy", "kept_accuracy") if has_classes else ("new_loss",)
    for place, (scores, colour) in enumerate(
        ((report.before, GREY), (report.after, BLUE))
    ):
        heights = [getattr(scores, name) for name in names]
        where = np.arange(len(names)) + 0.4 * place - 0.2
        bars = left.bar(where, heights, 0.36, color=colour)
        form = "{:.1%}" if has_classes else "{:.3g}"
        left.bar_label(bars, [form.format(one) for one in heights], fontsize=SMALL)
    left.set_xticks(range(len(names)), [f"{n.split('_')[0]} examples" for n in names])
    if has_classes:
        left.yaxis.set_major_formatter(PercentFormatter(1.0))
    what = "Right" if has_classes else "Mean loss"
    dress(left, f"{what}: before (grey), after (blue)")

    sign = -1.0 if has_classes else 1.0  # what must not rise is less the lead
    before, after = (sign * one for one in report.kept_values)
    is_worse = report.kept_is_worse
    fine = np.flatnonzero(~is_worse)
    fine = fine[:: -(-len(fine) // MOST) or 1]
    dots: dict[str, Any] = {"s": 4, "linewidths": 0, "rasterized": True}
    right.scatter(before[fine], after[fine], color=BLUE, alpha=0.3, **dots)
    right.scatter(
        before[is_worse], after[is_worse], color=VERMILLION, **dots | {"s": 16}
    )
    if has_classes:
        right.axhline(0.0, color=INK, linewidth=1)
    else:
        right.axline((0.0, 0.0), slope=1.0, color=INK, linewidth=1)
    name = "lead of its class" if has_classes else "loss"
    right.set_xlabel(f"{name}, before", fontsize=SMALL)
    right.set_ylabel(f"{name}, after", fontsize=SMALL)
    n_worse = int(is_worse.sum())
    dress(right, f"{report.n_kept:,} kept examples: {n_worse:,} got worse (orange)")
