"""Sentences that are computed from the numbers of a run, never written beforehand."""

from __future__ import annotations

from dataclasses import asdict

from dszog_paper.protocol import FULL
from dszog_paper.report.words import Data, count, listed, seconds, setting_number


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
