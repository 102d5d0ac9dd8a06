"""Sentences that are computed from the numbers of a run, never written beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from dszog_paper.protocol import FULL
from dszog_paper.report.words import (
    Data,
    called,
    count,
    is_number,
    listed,
    number,
    percent,
    points,
    seconds,
    setting_number,
    some,
)
from dszog_paper.units import OURS

NEAR = 1.0  # points from the majority share that count as "at the majority share"
CLOSE = 2.0  # points from the printed number that count as agreement
LARGE = 0.01  # a violation at |w| = 1 beyond this is worth a word
ROUNDING = 1e-9  # a violation at |w| = 1 up to this is rounding
VANISHED = 1e-6  # a norm of the weights below this is zero but for rounding


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A cell of a table, and where it stands."""

    data: str
    column: str
    cell: dict[str, Any]

    @property
    def place(self) -> str:
        """How a sentence names the cell."""
        return f"{called(self.column)} on {self.data}"

    @property
    def mean(self) -> float:
        """The accuracy, in percent."""
        return float(self.cell["mean"])

    def value(self, field: str) -> float:
        """Return a number of the cell; NaN, less and greater than none, if unknown."""
        value = self.cell[field]
        return float(value) if is_number(value) else math.nan


def entries(table: Data) -> list[Entry]:
    """Return the cells of a table that were run."""
    return [
        Entry(data=row["data"], column=column, cell=row["cells"][column])
        for row in table["rows"]
        for column in table["columns"]
        if row["cells"].get(column) is not None
    ]


def compares_methods(table: Data) -> bool:
    """Return whether the columns of a table are methods, not settings of one."""
    return len({entry.cell["method"] for entry in entries(table)}) > 1


def table_reading(table: Data) -> list[str]:
    """Return what the numbers of a table say, sentence by sentence."""
    found = entries(table)
    if not found:
        return ["Nothing of this table was run."]
    if compares_methods(table):
        sentences = [*_first(found), *_lead(found), *_our_settings(found)]
    else:
        sentences = list(_range(found))
    sentences += _against_paper(found)
    sentences += _majority(found)
    sentences += _violations(found)
    sentences += _holes(table, found)
    return sentences


# ------------------------------------------------------------------- which is first


def _by_data(found: Sequence[Entry]) -> dict[str, list[Entry]]:
    rows: dict[str, list[Entry]] = {}
    for entry in found:
        rows.setdefault(entry.data, []).append(entry)
    return rows


def _first(found: Sequence[Entry]) -> Iterator[str]:
    rows = _by_data(found)
    won: dict[str, list[str]] = {}
    for data, row in rows.items():
        top = max(entry.mean for entry in row)
        for entry in row:
            if entry.mean == top:
                won.setdefault(entry.column, []).append(data)
    parts = [
        f"{called(column)} on {listed(names)}"
        for column, names in sorted(won.items(), key=lambda item: -len(item[1]))
    ]
    yield f"Highest accuracy: {'; '.join(parts)}."


def _lead(found: Sequence[Entry]) -> Iterator[str]:
    """Compare DSZOG as published with the best method that is not DSZOG."""
    parts = []
    for data, row in _by_data(found).items():
        own = [entry for entry in row if entry.cell["method"] == "dszog"]
        others = [e for e in row if e.cell["method"] not in ("dszog", OURS)]
        if own and others:
            best = max(others, key=lambda entry: entry.mean)
            lead = own[0].mean - best.mean
            side = "ahead of" if lead > 0 else "behind"
            where = f"{called(best.column)} on {data}"
            is_level = abs(lead) < 0.05
            parts.append(
                f"level with {where}" if is_level else f"{points(lead)} {side} {where}"
            )
    if parts:
        yield f"Beside the best other method, DSZOG as published is {listed(parts)}."


def _our_settings(found: Sequence[Entry]) -> Iterator[str]:
    gains, lower = [], []
    for row in _by_data(found).values():
        of = {entry.cell["method"]: entry for entry in row}
        if "dszog" in of and OURS in of:
            ours, published = of[OURS], of["dszog"]
            gains.append(ours.mean - published.mean)
            lower.append(
                ours.value("unit_share_violated")
                < published.value("unit_share_violated")
            )
    if gains:
        yield (
            f"With our settings DSZOG violates a smaller share of the constraints at "
            f"|w| = 1 on {sum(lower)} of {some(len(lower), 'data set')}; its accuracy "
            f"differs by {_between(gains)}."
        )


def _between(values: Sequence[float]) -> str:
    low, high = f"{min(values):+.1f}", f"{max(values):+.1f}"
    return f"{low} points" if low == high else f"{low} to {high} points"


def _range(found: Sequence[Entry]) -> Iterator[str]:
    """Tell how much the setting matters, here and in the paper."""
    ours = {
        data: max(e.mean for e in row) - min(e.mean for e in row)
        for data, row in _by_data(found).items()
        if len(row) > 1
    }
    if not ours:
        return
    data = max(ours, key=lambda name: ours[name])
    sentence = (
        f"Between the best and the worst of the settings lie at most "
        f"{points(ours[data])}, on {data}"
    )
    theirs = [
        max(known) - min(known)
        for row in _by_data(found).values()
        if len(known := [e.cell["printed"][0] for e in row if e.cell["printed"]]) > 1
    ]
    if theirs:
        sentence += f" (in the paper at most {points(max(theirs))})"
    yield sentence + "."


# ------------------------------------------------------------- beside other numbers


def _against_paper(found: Sequence[Entry]) -> Iterator[str]:
    known = [entry for entry in found if entry.cell["printed"]]
    if not known:
        return

    def gap(entry: Entry) -> float:
        return float(entry.mean - entry.cell["printed"][0])

    near = sum(abs(gap(entry)) <= CLOSE for entry in known)
    far = max(known, key=lambda entry: abs(gap(entry)))
    yield (
        f"{near} of {some(len(known), 'accuracy', 'accuracies')} "
        f"{'lies' if near == 1 else 'lie'} within {points(CLOSE)} of the printed "
        f"number; the largest difference is {gap(far):+.1f} points, {far.place}."
    )


def _majority(found: Sequence[Entry]) -> Iterator[str]:
    gaps = [entry.mean - 100 * entry.value("majority_share") for entry in found]
    near = sum(abs(gap) <= NEAR for gap in gaps)
    below = sum(gap < -NEAR for gap in gaps)
    yield (
        f"{near} of {some(len(gaps), 'accuracy', 'accuracies')} "
        f"{'lies' if near == 1 else 'lie'} within {points(NEAR)} of the majority "
        f"share, {below} {'lies' if below == 1 else 'lie'} further below it."
    )


def _violations(found: Sequence[Entry]) -> Iterator[str]:
    large = [e for e in found if e.value("unit_worst_violation") > LARGE]
    if large:
        top = max(large, key=lambda entry: entry.value("unit_worst_violation"))
        share = percent(top.cell["unit_share_violated"])
        yield (
            f"The worst violation at |w| = 1 exceeds {LARGE:g} in {len(large)} of "
            f"{some(len(found), 'cell')}; it is largest, "
            f"{number(top.cell['unit_worst_violation'])} with {share} of the "
            f"constraints violated, for {top.place}."
        )
    else:
        yield f"No worst violation at |w| = 1 exceeds {LARGE:g}."
    rounding = [
        e
        for e in found
        if 0.0 < e.value("unit_worst_violation") <= ROUNDING
        and e.value("unit_share_violated") > 0.0
    ]
    if rounding:
        yield (
            f"In {some(len(rounding), 'cell')} all violations are at most "
            f"{setting_number(ROUNDING)}, which is rounding, whatever their share."
        )
    gone = [entry.place for entry in found if entry.value("norm") < VANISHED]
    if gone:
        places = listed(gone) if len(gone) <= 4 else some(len(gone), "cell")
        yield (
            f"The weights are zero but for rounding (|w| below "
            f"{setting_number(VANISHED)}) for {places}: the direction of such "
            "weights, and so the accuracy, means nothing."
        )


def _holes(table: Data, found: Sequence[Entry]) -> Iterator[str]:
    n_empty = len(table["rows"]) * len(table["columns"]) - len(found)
    if n_empty:
        were = "was" if n_empty == 1 else "were"
        yield f"{some(n_empty, 'cell')} {were} not run."


# ----------------------------------------------------------------- the other parts


def last_accuracies(panel: Data) -> dict[str, float]:
    """Return where the curves of a panel end, in percent."""
    return {
        str(curve["label"]): 100.0 * curve["test_accuracy"][-1]
        for curve in panel["curves"]
        if curve["test_accuracy"] and is_number(curve["test_accuracy"][-1])
    }


def figure_reading(figure: Data) -> list[str]:
    """Return where the curves of a figure end."""
    sentences = []
    for panel in figure["panels"]:
        last = last_accuracies(panel)
        if not last:
            sentences.append(f"On {panel['data']} nothing was run.")
            continue
        best = max(last, key=lambda label: last[label])
        worst = min(last, key=lambda label: last[label])
        first = f"{called(best)} ends highest, at {last[best]:.1f} %"
        sentence = f"On {panel['data']} {first}"
        if worst != best:
            sentence += f", and {called(worst)} lowest, at {last[worst]:.1f} %"
        sentences.append(sentence + ".")
    return sentences


def group_reading(entry: Data) -> list[str]:
    """Return the largest differences of error rates between a group and the rest."""
    sides: dict[str, list[Data]] = {}
    for name, rates in entry["groups"].items():
        sides.setdefault(str(name).rpartition(" = ")[0], []).append(rates)
    parts = []
    for field, words in (
        ("false_positive_rate", "false positive rates"),
        ("false_negative_rate", "false negative rates"),
    ):
        gaps = {
            group: max(known) - min(known)
            for group, rates in sides.items()
            if len(known := [r[field] for r in rates if is_number(r[field])]) > 1
        }
        if gaps:
            group = max(gaps, key=lambda name: gaps[name])
            n_rows = min(rates["n"] for rates in sides[group])
            parts.append(
                f"{words} differ most, by {points(100 * gaps[group])}, for {group} "
                f"({some(n_rows, 'row')} on the smaller side)"
            )
    if not parts:
        return []
    return [f"{called(str(entry['method']))} on {entry['data']}: {listed(parts)}."]


# --------------------------------------------------------------------- the protocol


def protocol_reading(meta: Data) -> list[str]:
    """Return what kind of run it was, with the numbers in which it is smaller."""
    protocol = meta["protocol"]
    kind = f"This is a {protocol['name']} run"
    smaller = [
        f"{words} {ours} instead of {full}"
        for words, ours, full in protocol_numbers(meta)
        if ours != full
    ]
    if smaller:
        return [f"{kind}, with less than the full protocol: {'; '.join(smaller)}."]
    return [f"{kind}: the whole protocol, with nothing left out."]


def protocol_numbers(meta: Data) -> list[tuple[str, str, str]]:
    """Return what a protocol counts, here and in the full protocol."""
    protocol = meta["protocol"]
    rows = [
        (words, count(protocol[field]), count(getattr(FULL, field)))
        for words, field in (
            ("repetitions", "n_repetitions"),
            ("repetitions with a kernel", "kernel_repetitions"),
            ("repetitions to choose settings on", "n_selection"),
        )
    ]
    rows += [
        (
            "grid points for DSZOG",
            count(sum(len(stage) for stage in protocol["stages"])),
            count(sum(len(stage) for stage in FULL.stages)),
        ),
        (
            "choices for DSZOG with our settings",
            count(len(protocol["ours"])),
            count(len(FULL.ours)),
        ),
        (
            "step sizes for other methods",
            count(len(protocol["steps"])),
            count(len(FULL.steps)),
        ),
        (
            "iterations of DSZOG",
            count(protocol["iterations"]),
            count(FULL.iterations),
        ),
        (
            "iterations of DSZOG with a kernel",
            count(protocol["kernel_iterations"]),
            count(FULL.kernel_iterations),
        ),
    ]
    if protocol["limit"] == "queries":
        words, ours, full = "queries", count(protocol["queries"]), count(FULL.queries)
    else:
        words, ours, full = "time", seconds(protocol["seconds"]), seconds(FULL.seconds)
    return [*rows, (f"{words} for each run of another method", ours, full)]


def grids(meta: Data) -> list[tuple[str, str]]:
    """Return the values that settings were chosen from, by whose they are."""
    protocol = meta["protocol"]
    found = [
        (f"DSZOG, stage {turn}", _values(stage))
        for turn, stage in enumerate(protocol["stages"], start=1)
    ]
    found.append(("DSZOG, our settings", _choices(protocol["ours"])))
    steps = ", ".join(setting_number(step) for step in protocol["steps"])
    return [*found, ("other methods", f"step_size {steps}")]


def _values(stage: Sequence[Any]) -> str:
    values: dict[str, dict[str, None]] = {}
    for setting in stage:
        for name, value in setting:
            values.setdefault(str(name), {})[setting_number(value)] = None
    return "; ".join(f"{name} {', '.join(known)}" for name, known in values.items())


def _choices(stage: Sequence[Any]) -> str:
    return "; ".join(
        " with ".join(f"{name} {setting_number(value)}" for name, value in setting)
        for setting in stage
    )


def stand_ins(results: Data) -> list[str]:
    """Return the names of the data that generated stand-ins took the place of."""
    names = {
        row["data"]: None
        for table in results["tables"]
        for row in table["rows"]
        if row["stand_in"]
    }
    return list(names)


def stand_in_reading(results: Data) -> list[str]:
    """Return a sentence about stand-ins, if there are any."""
    names = stand_ins(results)
    if not names:
        return []
    return [
        f"Generated stand-ins take the place of {listed(names)}, whose files were not "
        "at hand: their accuracies cannot be compared with the paper's."
    ]
