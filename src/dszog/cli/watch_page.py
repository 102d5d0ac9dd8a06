"""What `dszog watch` shows, as HTML: all text in it is somebody's, and is escaped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any
from urllib.parse import urlencode

import numpy as np

from dszog.contract.arrays import FloatArray
from dszog.contract.validation import printable
from dszog.save.looking import View
from dszog.show.progress.summary import duration

AGAINST = {"queries": "n_queries", "iterations": "iteration", "seconds": "elapsed"}
CURVES = {  # columns of the history, and whether they are drawn by powers of ten
    "objective of the batch": ("sampled_objective", False),
    "worst violation in the batches": ("sampled_violation", True),
}
STATES = {
    "running": "running",
    "ended": "ended: success",
    "failed": "ended: no success",
    "dead": "dead",
    "unknown": "not known from here",
    "deleted": "deleted",
    "unreadable": "cannot be read",
}
HEAD = (
    *("run", "state", "objective", "violation", "failures"),
    *("iterations", "queries", "time", "method"),
)
COLOURS = (
    *("#0072b2", "#d55e00", "#009e73", "#cc79a7"),
    *("#b58900", "#56b4e9", "#8c564b", "#7a7a7a"),
)
WAITING = (
    "The folders that are watched hold no saved run. One begins with "
    "<code>checkpoint=FOLDER</code>, or <code>dszog solve --checkpoint FOLDER</code>; "
    "it shows up here by itself."
)
N_WORST = 60  # pieces of a curve by powers of ten: batches without a violation hide it
N_BUCKETS = 250  # along a curve, each with its least and its greatest value
DECADES = 6  # that are drawn at most
LARGEST = 1e100  # of what is drawn
WIDTH, HEIGHT, LEFT, RIGHT, TOP, FOOT = 440, 230, 56, 12, 8, 34


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A run on the page: the last that was seen of it."""

    key: str
    name: str
    look: View | None
    going: str
    trouble: str = ""  # why there is nothing newer


def thinned(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return a few hundred points of a curve, its ends and extremes among them."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) <= 2 * N_BUCKETS + 2:
        return np.column_stack([x, y])
    pieces = list(pairwise(np.linspace(0, len(x), N_BUCKETS + 1).astype(int)))
    kept = {0, len(x) - 1, *(int(a + y[a:b].argmin()) for a, b in pieces)}
    kept |= {int(a + y[a:b].argmax()) for a, b in pieces}
    return np.column_stack([x, y])[sorted(kept)]


def worst_of(points: FloatArray) -> FloatArray:
    """Return the largest value of each piece of a curve, at the end of the piece."""
    if len(points) <= N_WORST:
        return points
    pieces = np.array_split(points, N_WORST)
    return np.array([(piece[-1, 0], piece[:, 1].max()) for piece in pieces])


def body(runs: Sequence[Shown], asked: Mapping[str, str], token: str) -> str:
    """Return all that the page shows."""
    against = asked.get("against", "")
    against = against if against in AGAINST else "queries"
    hidden = frozenset(asked.get("hide", "").split())
    colours = [COLOURS[i % len(COLOURS)] for i in range(len(runs))]
    drawn = [
        (run.look, colour)
        for run, colour in zip(runs, colours, strict=True)
        if run.look is not None and run.key not in hidden
    ]
    links = [
        f"<b>{one}</b>" if one == against else _link(one, one, hidden)
        for one in AGAINST
    ]
    charts = [
        f'<section class="card"><h2>{title}</h2>{_chart(drawn, against, *curve)}'
        "</section>"
        for title, curve in CURVES.items()
    ]
    rows = [
        [
            f'<span class="key" style="background:{colour}"></span>'
            f"{_link(run.name, against, hidden ^ {run.key})}",
            f'<b class="{run.going}">{STATES[run.going]}</b>',
            *([] if run.look is None else _figures(run.look)),
        ]
        for run, colour in zip(runs, colours, strict=True)
    ]
    off = {i for i, run in enumerate(runs) if run.key in hidden}
    if not runs:
        return f'<section class="card"><h2>No run yet</h2><p>{WAITING}</p></section>'
    return (
        f'<section class="card"><h2>Runs: {len(runs)}</h2>{_table(rows, HEAD, off)}'
        '<p class="soft">Objective and violation of a run that goes on are of its last '
        "batch, which is a sample; of one that ended they are checked at its result. "
        "The name of a run hides its curve.</p></section>"
        f'<nav>Against {" ".join(links)}</nav><div class="two">{"".join(charts)}</div>'
        f"{''.join(_details(run, token, ' open' * (len(runs) == 1)) for run in runs)}"
    )


def _link(text: str, against: str, hidden: frozenset[str]) -> str:
    asked = urlencode({"against": against, "hide": " ".join(sorted(hidden))})
    return f'<a href="?{escape(asked)}">{_text(text)}</a>'


def _text(value: object) -> str:
    return escape(printable(str(value)))


def _table(
    rows: Iterable[Sequence[str]], head: Sequence[str], off: Iterable[int] = ()
) -> str:
    """Return a table of cells that are HTML already."""
    titles = "".join(f"<th>{one}</th>" for one in head)
    cells = ["".join(f"<td>{one}</td>" for one in row) for row in rows]
    lines = "".join(
        f"<tr{' class=off' * (i in off)}>{one}</tr>" for i, one in enumerate(cells)
    )
    return f'<div class="wide"><table><tr>{titles}</tr>{lines}</table></div>'


def _bar(share: float, said: str) -> str:
    width = 100.0 * min(max(share, 0.0), 1.0)
    return f'<span class="bar"><i style="width:{width:.0f}%"></i></span>{said}'


def _figures(look: View) -> list[str]:
    """Return the cells of a run: how far it is, and where."""
    counts, limits, end = look.counts, look.limits, look.end
    n_queries = counts.n_loss_queries + counts.n_constraint_queries

    def used(
        amount: float, limit: float | None, said: Callable[[Any], str] = "{:,}".format
    ) -> str:
        if not limit:
            return said(amount)
        return _bar(amount / limit, f"{said(amount)} of {said(limit)}")

    def last(name: str) -> float:
        known = look.column(name)[np.isfinite(look.column(name))]
        return float(known[-1]) if len(known) else math.nan

    objective = last("sampled_objective") if end is None else end.objective
    violation = last("sampled_violation") if end is None else end.violation
    return [
        f"{objective:.5g}",
        f"{max(violation, 0.0):.3g}",
        f"{last('n_failed'):,.0f}",
        used(counts.n_iterations, limits.iterations),
        used(n_queries, limits.queries),
        used(counts.seconds, limits.time, duration),
        _text(look.facts.get("method type", "").strip("'")),
    ]


# ------------------------------------------------------------------------ the curves


def _chart(
    drawn: Sequence[tuple[View, str]], against: str, column: str, log: bool
) -> str:
    """Return curves as SVG; by powers of ten, what is too small lies on the floor."""
    found = []
    for look, colour in drawn:
        points = thinned(look.column(AGAINST[against]), look.column(column))
        points = worst_of(points) if log else points
        if len(points):
            found.append((points, colour))
    if not found:
        return '<p class="soft">Nothing is known yet.</p>'
    x, y = np.vstack([points for points, _ in found]).T.clip(-LARGEST, LARGEST)
    low: float
    high: float
    if log:
        top = float(y.max())  # of curves that are 0 throughout, any
        high = math.ceil(math.log10(top)) if top > 1e-300 else 0
        least = float(y[y > 0.0].min(initial=10.0**high))
        low = max(math.floor(math.log10(least)), high - DECADES) - 1
        marks = [(float(one), f"1e{one}") for one in range(int(low) + 1, int(high) + 1)]
        marks = [(float(low), "0"), *(marks if top > 1e-300 else [])]
    else:
        room = 0.05 * float(np.ptp(y)) or 0.05 * abs(float(y[0])) or 1.0
        low, high = float(y.min()) - room, float(y.max()) + room
        marks = [(one, f"{one:,.6g}") for one in _round(low, high)]
    across = (WIDTH - LEFT - RIGHT) / max(float(x.max()), 1e-9)
    up = (HEIGHT - TOP - FOOT) / (high - low)
    made = []
    for mark, said in marks:
        height = HEIGHT - FOOT - (mark - low) * up
        made.append(
            f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{height:.1f}" '
            f'y2="{height:.1f}"/><text x="{LEFT - 5}" y="{height + 4:.1f}" '
            f'text-anchor="end">{said}</text>'
        )
    ticks = _round(0.0, max(float(x.max()), 1e-9))
    for at in ticks[:: 1 + len(ticks) // 5]:
        made.append(
            f'<text x="{LEFT + across * at:.1f}" y="{HEIGHT - FOOT + 14}" '
            f'text-anchor="middle">{at:,.10g}</text>'
        )
    made.append(
        f'<text x="{WIDTH - RIGHT}" y="{HEIGHT - 4}" text-anchor="end">{against}</text>'
    )
    for points, colour in found:
        heights = points[:, 1].clip(-LARGEST, LARGEST)
        if log:
            heights = np.log10(np.maximum(heights, 10.0**low))
        places = np.column_stack(
            [LEFT + across * points[:, 0], HEIGHT - FOOT - (heights - low) * up]
        )
        line = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        a, b = places[-1]
        made.append(
            f'<polyline points="{line}" fill="none" stroke="{colour}"/>'
            f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{colour}"/>'
        )
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}">{"".join(made)}</svg>'


def _round(low: float, high: float) -> list[float]:
    """Return three to seven round numbers between two."""
    step = 10.0 ** math.floor(math.log10(high - low))
    while high - low < 3.0 * step:
        step /= 2.0
    step *= 1.0 if high - low < 6.0 * step else 2.0
    return [k * step for k in range(math.ceil(low / step), int(high // step) + 1)]


# --------------------------------------------------------------------------- each run


def _details(run: Shown, token: str, state: str) -> str:
    said = run.trouble or (_going(run.look) if run.look is not None else "")
    inside = "" if run.look is None else "".join(_about(run.look))
    if run.going in ("running", "unknown"):
        inside += (
            '<form method="post" action="stop"><input type="hidden" name="token" '
            f'value="{token}"><input type="hidden" name="run" value="{run.key}"><p>'
            '<button>Stop this run</button> <span class="soft">after its iteration, '
            "as a callback would: its result is checked.</span></p></form>"
        )
    return (
        f'<details class="card" id="run-{run.key}"{state}><summary>'
        f'<b>{_text(run.name)}</b> <span class="soft">{_text(said)}</span></summary>'
        f"{inside}</details>"
    )


def _going(look: View) -> str:
    if look.end is not None:
        return look.end.said
    ago = f"it wrote {duration(max(time.time() - look.wrote, 0.0))} ago"
    if look.going == "dead":
        return f"{look.owner} is gone; {ago}. The same call with resume goes on."
    return f"{look.owner or 'a process that has not signed'}; {ago}"


def _about(look: View) -> Iterable[str]:
    names = ("dim", "number of losses", "number of constraints", "constraint_tol")
    told = [*names, *(["tag"] if look.facts.get("tag", "''") != "''" else []), "seed"]
    facts = (f"{one} {look.facts.get(one)}" for one in told)
    yield f'<p class="soft">{_text("; ".join(facts))}</p>'
    for title, texts in (
        ("What the result rests on", look.end.evidence if look.end else ()),
        ("Messages", look.notes),
        ("First failures", look.failures),
    ):
        items = "".join(f"<li>{_text(one)}</li>" for one in texts)
        yield f"<h3>{title}</h3><ul>{items}</ul>" if texts else ""
    most = max((weight for _, weight in look.weights), default=0.0) or 1.0
    heavy = [
        [_text(look.names.get(str(j), f"{j:,}")), _bar(w / most, f"{w:.4g}")]
        for j, w in look.weights
        if w > 0.0
    ]
    spent = max(look.counts.seconds, 1e-9)
    work = [
        [_text(name), f"{n:,}", _bar(s / spent, f"{100 * s / spent:.0f} %")]
        for name, n, s in look.workers
    ]
    n_lost, n_overdue = look.lost
    yield '<div class="two">'
    if heavy:
        yield "<div><h3>Constraints that weigh most</h3>"
        yield f"{_table(heavy, ('constraint', 'weight'))}</div>"
    if work:
        yield f"<div><h3>Workers: {len(work)}</h3>"
        yield _table(work, ("worker", "answers", "share of the time"))
        yield f'<p class="soft">{n_lost:,} attempts were lost with their worker, '
        yield f"{n_overdue:,} ended as overdue.</p></div>"
    yield "</div>"
