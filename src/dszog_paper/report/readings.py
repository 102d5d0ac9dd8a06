"""Sentences that are computed from the numbers of a run, never written beforehand."""

from __future__ import annotations

from dataclasses import asdict

from dszog_paper.protocol import FULL, OURS
from dszog_paper.report.cells import NEAR, entries
from dszog_paper.report.words import (
    Data,
    count,
    is_number,
    listed,
    number,
    seconds,
    setting_number,
)

COMPARED = (2, 3, 10)  # tables with all methods
KEPT = 0.01  # the largest violation of constraints that are kept
ALIKE = 2.0  # points from a printed accuracy
NEEDED = ("mean", "unit_worst_violation", "unit_share_violated")


def verdict(results: Data) -> list[str]:
    """Return which claims hold, in five lines with their numbers."""
    found: dict[str, dict[str, Data]] = {}  # by data set, then by column
    for table in results["tables"]:
        if table["number"] in COMPARED:
            kernel = " with a kernel" * (table["number"] == 10)
            for data, column, cell in entries(table):
                found.setdefault(f"{data}{kernel}", {})[column] = cell
    groups = {name: list(cells.values()) for name, cells in found.items()}
    published = _of(groups, "dszog")
    others = [
        cell
        for cells in groups.values()
        for cell in cells
        if cell["method"] not in ("dszog", OURS)
    ]
    leads = {
        name: cell["mean"] - max(rivals)
        for name, cell in published.items()
        if (rivals := [one["mean"] for one in groups[name] if one in others])
    }
    if not leads:
        return []
    learns = [_gain(cell) > NEAR for cell in published.values()]
    violations = {n: cell["unit_worst_violation"] for n, cell in published.items()}
    worst = max(violations, key=violations.__getitem__)
    least, most = (find(leads, key=leads.__getitem__) for find in (min, max))
    first = [lead > 0.0 for lead in leads.values()]
    lines = [
        f'"DSZOG is the most accurate": {_held(first)}; against the best '
        f"other method from {leads[least]:+.1f} points ({least}) to "
        f"{leads[most]:+.1f} ({most}).",
        f"It learns, that is, beats the majority share by more than {NEAR:g} point: "
        f"{_held(learns)}; of the other methods' accuracies "
        f"{sum(_gain(cell) > NEAR for cell in others)} of {len(others)} do.",
        f"It keeps the constraints, to {KEPT:g} at |w| = 1: "
        f"{_held([one <= KEPT for one in violations.values()])}; at worst "
        f"{number(violations[worst])} ({worst}).",
    ]
    every = [cell for cells in groups.values() for cell in cells if cell["printed"]]
    if off := [cell["mean"] - cell["printed"][0] for cell in every]:
        n_met = sum(abs(one) <= ALIKE for one in off)
        lines.append(
            f"The printed accuracies: {n_met} of {len(off)} are met within {ALIKE:g} "
            f"points; differences from {min(off):+.1f} to {max(off):+.1f}."
        )
    if ours := {n: c for n, c in _of(groups, OURS).items() if n in published}:
        fewer = [
            cell["unit_share_violated"] < published[name]["unit_share_violated"]
            for name, cell in ours.items()
        ]
        moved = [cell["mean"] - published[name]["mean"] for name, cell in ours.items()]
        lines.append(
            "Our settings violate a smaller share than the published ones: "
            f"{_held(fewer)}; accuracies differ by {min(moved):+.1f} to "
            f"{max(moved):+.1f} points."
        )
    return lines


def figure_reading(figure: Data) -> str:
    """Return what the curves of a figure are made of."""
    curves = [curve for panel in figure["panels"] for curve in panel["curves"]]
    if any("low" in curve for curve in curves):
        return (
            "Means over the repetitions, in bands from the least to the greatest; "
            "dotted, the majority share."
        )
    return "First repetition."


def _of(groups: dict[str, list[Data]], method: str) -> dict[str, Data]:
    """Return the cells of a method by data set, where all of it is known."""
    return {
        name: cell
        for name, cells in groups.items()
        for cell in cells
        if cell["method"] == method and all(map(is_number, map(cell.get, NEEDED)))
    }


def _gain(cell: Data) -> float:
    """Return the points by which an accuracy beats the majority share."""
    majority = cell["majority_share"]
    return float(cell["mean"] - 100.0 * majority) if is_number(majority) else 0.0


def _held(each: list[bool]) -> str:
    """Return in how many comparisons a claim holds."""
    n = len(each)
    if not any(each):
        return f"does not hold in any of {n} comparisons"
    return f"holds in {'all' if all(each) else sum(each)} of {n} comparisons"


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
