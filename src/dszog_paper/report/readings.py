"""Sentences that are computed from the numbers of a run, never written beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from dszog_paper.protocol import FULL, OURS
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
    def method(self) -> str:
        return str(self.cell["method"])

    @property
    def mean(self) -> float:
        return float(self.cell["mean"])

    def value(self, field: str) -> float:
        """Return a number of the cell; NaN, less and greater than none, if unknown."""
        value = self.cell[field]
        return float(value) if is_number(value) else math.nan


Rows = dict[str, list[Entry]]  # the cells that were run, by data set


def entries(table: Data) -> list[Entry]:
    return [
        Entry(data=row["data"], column=column, cell=row["cells"][column])
        for row in table["rows"]
        for column in table["columns"]
        if row["cells"].get(column) is not None
    ]


def firsts(found: Sequence[Entry]) -> list[Entry]:
    """Return the entries with the highest accuracy on their data; more if level."""
    top: dict[str, float] = {}
    for entry in found:
        top[entry.data] = max(entry.mean, top.get(entry.data, entry.mean))
    return [entry for entry in found if entry.mean == top[entry.data]]


def table_reading(table: Data) -> list[str]:
    """Return what the numbers of a table say, sentence by sentence."""
    found = entries(table)
    if not found:
        return ["Nothing of this table was run."]
    rows: Rows = {}
    for entry in found:
        rows.setdefault(entry.data, []).append(entry)
    if len({entry.method for entry in found}) > 1:  # the columns are methods
        sentences = [_best(found), *_lead(rows), *_our_settings(rows)]
    else:
        sentences = list(_range(rows))
    sentences += [*_against_paper(found), _majority(found), *_violations(found)]
    n_empty = len(table["rows"]) * len(table["columns"]) - len(found)
    if n_empty:
        were = "was" if n_empty == 1 else "were"
        sentences.append(f"{some(n_empty, 'cell')} {were} not run.")
    return sentences


# ------------------------------------------------------------------- which is first


def _best(found: Sequence[Entry]) -> str:
    won: dict[str, list[str]] = {}
    for entry in firsts(found):
        won.setdefault(entry.column, []).append(entry.data)
    parts = [
        f"{called(column)} on {listed(names)}"
        for column, names in sorted(won.items(), key=lambda item: -len(item[1]))
    ]
    return f"Highest accuracy: {'; '.join(parts)}."


def _lead(rows: Rows) -> Iterator[str]:
    """Compare DSZOG as published with the best method that is not DSZOG."""
    parts = []
    for row in rows.values():
        own = [entry for entry in row if entry.method == "dszog"]
        others = [entry for entry in row if entry.method not in ("dszog", OURS)]
        if own and others:
            best = max(others, key=lambda entry: entry.mean)
            lead = own[0].mean - best.mean
            how = f"{points(lead)} {'ahead of' if lead > 0 else 'behind'}"
            parts.append(f"{'level with' if abs(lead) < 0.05 else how} {best.place}")
    if parts:
        yield f"Beside the best other method, DSZOG as published is {listed(parts)}."


def _our_settings(rows: Rows) -> Iterator[str]:
    gains, lower = [], []
    for row in rows.values():
        of = {entry.method: entry for entry in row}
        if "dszog" in of and OURS in of:
            shares = [of[name].value("unit_share_violated") for name in (OURS, "dszog")]
            gains.append(of[OURS].mean - of["dszog"].mean)
            lower.append(shares[0] < shares[1])
    if gains:
        low, high = f"{min(gains):+.1f}", f"{max(gains):+.1f}"
        yield (
            f"With our settings DSZOG violates a smaller share of the constraints at "
            f"|w| = 1 on {sum(lower)} of {some(len(lower), 'data set')}; its accuracy "
            f"differs by {low if low == high else f'{low} to {high}'} points."
        )


def _range(rows: Rows) -> Iterator[str]:
    """Tell how much the setting matters, here and in the paper."""
    ours, theirs = {}, []
    for data, row in rows.items():
        means = [entry.mean for entry in row]
        known = [e.cell["printed"][0] for e in row if e.cell["printed"]]
        if len(means) > 1:
            ours[data] = max(means) - min(means)
        if len(known) > 1:
            theirs.append(max(known) - min(known))
    if ours:
        data = max(ours, key=lambda name: ours[name])
        paper = f" (in the paper at most {points(max(theirs))})" if theirs else ""
        yield (
            f"Between the best and the worst of the settings lie at most "
            f"{points(ours[data])}, on {data}{paper}."
        )


# ------------------------------------------------------------- beside other numbers


def _share(n: int, of: int) -> str:
    """Return ``1 of 6 accuracies lies``, ``2 of 6 accuracies lie``."""
    verb = "lies" if n == 1 else "lie"
    return f"{n} of {some(of, 'accuracy', 'accuracies')} {verb}"


def _against_paper(found: Sequence[Entry]) -> Iterator[str]:
    gaps = {
        entry.place: entry.mean - entry.cell["printed"][0]
        for entry in found
        if entry.cell["printed"]
    }
    if gaps:
        near = sum(abs(gap) <= CLOSE for gap in gaps.values())
        far = max(gaps, key=lambda place: abs(gaps[place]))
        yield (
            f"{_share(near, len(gaps))} within {points(CLOSE)} of the printed number; "
            f"the largest difference is {gaps[far]:+.1f} points, {far}."
        )


def _majority(found: Sequence[Entry]) -> str:
    gaps = [entry.mean - 100 * entry.value("majority_share") for entry in found]
    near = sum(abs(gap) <= NEAR for gap in gaps)
    below = sum(gap < -NEAR for gap in gaps)
    return (
        f"{_share(near, len(gaps))} within {points(NEAR)} of the majority share, "
        f"{below} {'lies' if below == 1 else 'lie'} further below it."
    )


def _violations(found: Sequence[Entry]) -> Iterator[str]:
    worst = {entry.place: entry.value("unit_worst_violation") for entry in found}
    large = [entry for entry in found if worst[entry.place] > LARGE]
    if large:
        top = max(large, key=lambda entry: worst[entry.place])
        yield (
            f"The worst violation at |w| = 1 exceeds {LARGE:g} in {len(large)} of "
            f"{some(len(found), 'cell')}; it is largest, {number(worst[top.place])} "
            f"with {percent(top.cell['unit_share_violated'])} of the constraints "
            f"violated, for {top.place}."
        )
    else:
        yield f"No worst violation at |w| = 1 exceeds {LARGE:g}."
    n_rounding = sum(
        0.0 < worst[entry.place] <= ROUNDING and entry.value("unit_share_violated") > 0
        for entry in found
    )
    if n_rounding:
        yield (
            f"In {some(n_rounding, 'cell')} all violations are at most "
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


# ------------------------------------------------------------- figures and groups


def last_accuracies(panel: Data) -> dict[str, float]:
    """Return where the curves of a panel end, in percent."""
    return {
        str(curve["label"]): 100.0 * curve["test_accuracy"][-1]
        for curve in panel["curves"]
        if curve["test_accuracy"] and is_number(curve["test_accuracy"][-1])
    }


def figure_reading(figure: Data) -> list[str]:
    """Return where the curves of a figure end."""
    return [_panel_reading(panel) for panel in figure["panels"]]


def _panel_reading(panel: Data) -> str:
    last = last_accuracies(panel)
    if not last:
        return f"On {panel['data']} nothing was run."
    best = max(last, key=lambda label: last[label])
    worst = min(last, key=lambda label: last[label])
    text = f"On {panel['data']} {called(best)} ends highest, at {last[best]:.1f} %"
    if worst != best:
        text += f", and {called(worst)} lowest, at {last[worst]:.1f} %"
    return text + "."


def group_reading(known: Sequence[Data]) -> list[str]:
    """Return the largest differences of error rates between a group and the rest."""
    # A sentence for each of the methods, unless there is nothing to compare.
    return [sentence for entry in known for sentence in _gaps(entry)]


def _gaps(entry: Data) -> Iterator[str]:
    sides: dict[str, list[Data]] = {}
    for name, rates in entry["groups"].items():
        sides.setdefault(str(name).rpartition(" = ")[0], []).append(rates)
    parts = []
    for kind in ("positive", "negative"):
        gaps = {}
        for group, rates in sides.items():
            known = [r for side in rates if is_number(r := side[f"false_{kind}_rate"])]
            if len(known) > 1:
                gaps[group] = max(known) - min(known)
        if gaps:
            group = max(gaps, key=lambda name: gaps[name])
            n_rows = min(rates["n"] for rates in sides[group])
            parts.append(
                f"false {kind} rates differ most, by {points(100 * gaps[group])}, for "
                f"{group} ({some(n_rows, 'row')} on the smaller side)"
            )
    if parts:
        yield f"{called(str(entry['method']))} on {entry['data']}: {listed(parts)}."


# --------------------------------------------------------------------- the protocol


def protocol_reading(meta: Data) -> str:
    """Return what kind of run it was, with the numbers in which it is smaller."""
    kind = f"This is a {meta['protocol']['name']} run"
    smaller = [
        f"{words} {ours} instead of {full}"
        for words, ours, full in protocol_numbers(meta)
        if ours != full
    ]
    if smaller:
        return f"{kind}, with less than the full protocol: {'; '.join(smaller)}."
    return f"{kind}: the whole protocol, with nothing left out."


def protocol_numbers(meta: Data) -> list[tuple[str, str, str]]:
    """Return what a protocol counts, here and in the full protocol."""
    here, full = (_counted(each) for each in (meta["protocol"], asdict(FULL)))
    end = "queries" if meta["protocol"]["limit"] == "queries" else "time"
    left_out = {"queries", "time"} - {end}
    names = {end: f"{end} for each run of another method"}
    return [
        (names.get(words, words), here[words], full[words])
        for words in here
        if words not in left_out
    ]


def _counted(protocol: Data) -> dict[str, str]:
    return {
        "repetitions": count(protocol["n_repetitions"]),
        "repetitions with a kernel": count(protocol["kernel_repetitions"]),
        "repetitions to choose settings on": count(protocol["n_selection"]),
        "grid points for DSZOG": count(sum(map(len, protocol["stages"]))),
        "choices for DSZOG with our settings": count(len(protocol["ours"])),
        "step sizes for other methods": count(len(protocol["steps"])),
        "iterations of DSZOG": count(protocol["iterations"]),
        "iterations of DSZOG with a kernel": count(protocol["kernel_iterations"]),
        "queries": count(protocol["queries"]),
        "time": seconds(protocol["seconds"]),
    }


def grids(meta: Data) -> list[tuple[str, str]]:
    """Return the values that settings were chosen from, by whose they are."""
    protocol = meta["protocol"]
    found = []
    for turn, stage in enumerate(protocol["stages"], start=1):
        values: dict[str, dict[str, None]] = {}
        for name, value in (pair for setting in stage for pair in setting):
            values.setdefault(str(name), {})[setting_number(value)] = None
        texts = (f"{name} {', '.join(known)}" for name, known in values.items())
        found.append((f"DSZOG, stage {turn}", "; ".join(texts)))
    ours = (
        " with ".join(f"{name} {setting_number(value)}" for name, value in setting)
        for setting in protocol["ours"]
    )
    steps = ", ".join(map(setting_number, protocol["steps"]))
    return [
        *found,
        ("DSZOG, our settings", "; ".join(ours)),
        ("other methods", f"step_size {steps}"),
    ]


def stand_in_reading(results: Data) -> list[str]:
    """Return a sentence about stand-ins, if there are any."""
    rows = [row for table in results["tables"] for row in table["rows"]]
    names = list(dict.fromkeys(row["data"] for row in rows if row["stand_in"]))
    if not names:
        return []
    return [
        f"Generated stand-ins take the place of {listed(names)}, whose files were not "
        "at hand: their accuracies cannot be compared with the paper's."
    ]
