"""The report as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from dszog_paper.report import texts
from dszog_paper.report.cells import (
    DETAILS,
    GROUP_RATES,
    REFERENCES,
    cell_lines,
    details,
    firsts,
    group_rows,
    group_tables,
    ordered,
    reference,
    row_name,
    table_name,
)
from dszog_paper.report.figures import AXES, file_name
from dszog_paper.report.readings import (
    entries,
    figure_reading,
    grids,
    group_reading,
    protocol_numbers,
    protocol_reading,
    stand_in_reading,
    table_reading,
)
from dszog_paper.report.words import NOT_RUN, Data, accuracy

_SPECIAL = re.compile(r"([\\`*_\[\]|#~])")


def markdown(results: Data) -> str:
    """Return the report; figures are the files that `write_report` puts beside it."""
    parts = [*_opening(results)]
    for kind, part in ordered(results):
        parts += _description(part) if kind == "description" else _table(part)
    parts += _groups(results["groups"])
    for figure in results["figures"]:
        parts += _figure(figure)
    return "\n\n".join(parts) + "\n"


def escape(text: object) -> str:
    """Return text that Markdown shows as it is, on one line."""
    plain = " ".join(str(text).split())
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", plain)


# --------------------------------------------------------------------------- opening


def _opening(results: Data) -> Iterator[str]:
    meta = results["meta"]
    yield f"# {texts.TITLE}"
    yield escape(texts.SOURCE)
    yield "## What was run"
    for sentence in (*protocol_reading(meta), *stand_in_reading(results)):
        yield escape(sentence)
    if meta["notes"]:
        yield _bullets(meta["notes"])
    facts = [("date", meta["date"]), *meta["versions"].items()]
    facts += [("machine", meta["machine"]), ("runs", len(results["records"]))]
    facts += [(f"chosen from, {whose}", values) for whose, values in grids(meta)]
    yield _rows(["", ""], facts)
    yield _rows(["", "this run", "full protocol"], protocol_numbers(meta))
    yield escape(texts.LIMITS)
    if meta["command"]:
        yield "The command:"
        yield "    " + " ".join(str(meta["command"]).split())
    yield "## How to read the tables"
    yield _bullets(texts.HOW_TO_READ)


def _bullets(sentences: Iterable[object]) -> str:
    return "\n".join(f"* {escape(sentence)}" for sentence in sentences)


def _rows(columns: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    lines = [_line(columns), _line(["---"] * len(columns)), *map(_line, rows)]
    return "\n".join(lines)


def _line(entries_: Iterable[object]) -> str:
    return f"| {' | '.join(map(escape, entries_))} |"


# ---------------------------------------------------------------------------- tables


def _description(part: Data) -> Iterator[str]:
    yield f"## {escape(table_name(part['number']))}. {escape(part['title'])}"
    yield _rows(part["columns"], part["rows"])


def _table(table: Data) -> Iterator[str]:
    yield f"## {escape(table_name(table['number']))}. {escape(table['title'])}"
    yield _bullets(table_reading(table))
    yield _overview(table)
    found = entries(table)
    if found:
        yield f"All numbers of {escape(table_name(table['number']))}:"
        yield _rows(
            ["data", "column", *(heading for heading, _ in DETAILS)],
            [[entry.data, entry.column, *details(entry)] for entry in found],
        )


def _overview(table: Data) -> str:
    rows = table["rows"]
    lines = [["", *(escape(row_name(row)) for row in rows)]]
    lines.append(["---"] * len(lines[0]))
    for name, field in REFERENCES:
        lines.append([name, *(escape(reference(row, field)) for row in rows)])
    best = firsts(table)
    for column in table["columns"]:
        line = [escape(column)]
        for row in rows:
            cell = row["cells"].get(column)
            line.append(_cell(cell, bold=(row["data"], column) in best))
        lines.append(line)
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(cell: dict[str, object] | None, *, bold: bool) -> str:
    if cell is None:
        return NOT_RUN
    ours = escape(accuracy(cell["mean"], cell["spread"]))
    ours = f"**{ours}**" if bold else ours
    lines = [f"{ours} (n = {cell['n']})", *map(escape, cell_lines(cell))]
    return "<br>".join(lines)


# ------------------------------------------------------------------------- the others


def _groups(groups: Sequence[Data]) -> Iterator[str]:
    if not groups:
        return
    yield "## Error rates by group"
    yield escape(texts.GROUPS)
    for data, known in group_tables(groups).items():
        yield f"### {escape(data)}"
        sentences = [s for entry in known for s in group_reading(entry)]
        if sentences:
            yield _bullets(sentences)
        columns = [f"{e['method']}: {rate}" for e in known for rate, _ in GROUP_RATES]
        rows = [[name, *values] for name, values in group_rows(known)]
        yield _rows(["group", "rows", *columns], rows)


def _figure(figure: Data) -> Iterator[str]:
    name = f"Figure {escape(figure['number'])}"
    yield f"## {name}. {escape(figure['title'])}"
    yield escape(" ".join([texts.FIGURES, *figure_reading(figure)]))
    for axis in AXES:
        alt = f"{name}: test accuracy against {axis.label}"
        yield f"![{alt}](figures/{file_name(figure, axis)})"
