"""The report as one page that needs nothing but itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape as _escape

from dszog_paper.report import texts
from dszog_paper.report.cells import (
    DETAILS,
    GROUP_RATES,
    REFERENCES,
    WORDY,
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
from dszog_paper.report.figures import AXES, Axis, Line, lines_of, panel_svgs
from dszog_paper.report.readings import (
    entries,
    figure_reading,
    grids,
    group_reading,
    last_accuracies,
    protocol_numbers,
    protocol_reading,
    stand_in_reading,
    table_reading,
)
from dszog_paper.report.style import CSS
from dszog_paper.report.words import NOT_RUN, Data, accuracy, count

Section = tuple[str, str, str]  # name in addresses, heading, content


def page(results: Data) -> str:
    """Return the page."""
    sections = list(_sections(results))
    contents = "\n".join(
        f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in sections
    )
    body = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-heading">\n'
        f'<h2 id="{name}-heading">{heading}</h2>\n{content}\n</section>'
        for name, heading, content in sections
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(texts.TITLE)}</title>
<style>{CSS}</style>
</head>
<body>
<header>
<h1>{escape(texts.TITLE)}</h1>
<p>{escape(texts.SOURCE)}</p>
{_kind(results)}
<nav aria-label="Contents">
<ul>
{contents}
</ul>
</nav>
</header>
<main>
{body}
</main>
<footer><p>Made with dszog {escape(results["meta"]["versions"].get("dszog", ""))},
{escape(results["meta"]["date"])}.</p></footer>
</body>
</html>
"""


def escape(text: object) -> str:
    """Return text that a page shows as it is, also within an attribute."""
    return _escape(str(text), quote=True)


def _sections(results: Data) -> Iterator[Section]:
    yield "run", "What was run", _run(results)
    yield "reading", "How to read the tables", _bullets(texts.HOW_TO_READ)
    for kind, part in ordered(results):
        name = table_name(part["number"])
        content = _description(part) if kind == "description" else _table(part)
        yield _name(name), f"{escape(name)}. {escape(part['title'])}", content
    if results["groups"]:
        yield "groups", "Error rates by group", _groups(results["groups"])
    for figure in results["figures"]:
        name = f"Figure {figure['number']}"
        heading = f"{escape(name)}. {escape(figure['title'])}"
        yield _name(name), heading, _figure(figure)


def _name(text: str) -> str:
    """Return a name for an address within the page."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _paragraph(sentences: Iterable[str]) -> str:
    text = escape(" ".join(sentences))
    return f"<p>{text}</p>" if text else ""


def _bullets(sentences: Iterable[object]) -> str:
    items = "\n".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    if not items:
        return ""
    return f'<ul class="plain">\n{items}\n</ul>'


# ----------------------------------------------------------------------- what was run


def _kind(results: Data) -> str:
    sentences = [*protocol_reading(results["meta"]), *stand_in_reading(results)]
    inside = "\n".join(f"<p>{escape(sentence)}</p>" for sentence in sentences)
    return f'<div class="kind" role="note">\n{inside}\n{_made(results["meta"])}\n</div>'


def _made(meta: Data) -> str:
    versions = [f"{name} {version}" for name, version in meta["versions"].items()]
    made = " · ".join([str(meta["date"]), *versions])
    command = str(meta["command"])
    shown = f"<br>\n<code>{escape(command)}</code>" if command else ""
    return f'<p class="made">{escape(made)}{shown}</p>'


def _run(results: Data) -> str:
    meta = results["meta"]
    numbers = [
        _row(words, (f'<td class="number">{escape(n)}</td>' for n in both))
        for words, *both in protocol_numbers(meta)
    ]
    head = _head(["", "this run", "full protocol"], frozenset({1, 2}))
    parts = [_boxed("How much was run", head, numbers), _paragraph([texts.LIMITS])]
    facts = [(f"chosen from, {whose}", values) for whose, values in grids(meta)]
    facts += [("machine", meta["machine"]), ("runs", count(len(results["records"])))]
    pairs = "\n".join(
        f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in facts
    )
    parts.append(f"<dl>\n{pairs}\n</dl>")
    if meta["notes"]:
        parts += ["<h3>Notes</h3>", _bullets(meta["notes"])]
    return "\n".join(parts)


# ---------------------------------------------------------------------------- tables


def _boxed(caption: str, head: str, body: Iterable[str]) -> str:
    """Return a table that scrolls within its box; all but the caption is HTML."""
    rows = "\n".join(body)
    return (
        f'<div class="box" role="region" tabindex="0" aria-label="{escape(caption)}">\n'
        f"<table>\n<caption><span>{escape(caption)}</span></caption>\n"
        f"<thead>\n{head}\n</thead>\n<tbody>\n{rows}\n</tbody>\n</table>\n</div>"
    )


def _head(columns: Sequence[object], numeric: frozenset[int] = frozenset()) -> str:
    cells = "".join(
        f'<th scope="col"{_numeric(turn in numeric)}>{escape(column)}</th>'
        for turn, column in enumerate(columns)
    )
    return f"<tr>{cells}</tr>"


def _numeric(yes: bool) -> str:
    return ' class="number"' if yes else ""


def _row(name: object, cells: Iterable[str], kind: str = "") -> str:
    marked = f' class="{kind}"' if kind else ""
    return f'<tr{marked}><th scope="row">{escape(name)}</th>{"".join(cells)}</tr>'


def _description(part: Data) -> str:
    caption = f"{table_name(part['number'])}. {part['title']}"
    body = [
        _row(first, (f"<td>{escape(text)}</td>" for text in rest))
        for first, *rest in part["rows"]
    ]
    return _boxed(caption, _head(part["columns"]), body)


def _table(table: Data) -> str:
    return "\n".join([_bullets(table_reading(table)), _overview(table), _all(table)])


def _overview(table: Data) -> str:
    rows, best = table["rows"], firsts(table)
    body = [
        _row(
            name,
            (f"<td>{escape(reference(row, field))}</td>" for row in rows),
            "reference",
        )
        for name, field in REFERENCES
    ]
    for column in table["columns"]:
        cells = (
            _cell(row["cells"].get(column), first=(row["data"], column) in best)
            for row in rows
        )
        body.append(_row(column, cells))
    caption = f"{table_name(table['number'])}. Test accuracy in %"
    if any(entry.cell["printed"] for entry in entries(table)):
        caption += ", ours and the paper’s"
    return _boxed(caption, _head(["", *map(row_name, rows)]), body)


def _cell(cell: dict[str, object] | None, *, first: bool) -> str:
    if cell is None:
        return f'<td class="missing">{NOT_RUN}</td>'
    ours = escape(accuracy(cell["mean"], cell["spread"]))
    ours = f"<strong>{ours}</strong>" if first else ours
    below = "".join(f"<small>{escape(line)}</small>" for line in cell_lines(cell))
    runs = f'<span class="runs">n = {escape(cell["n"])}</span>'
    return f"<td>{ours} {runs}{below}</td>"


def _all(table: Data) -> str:
    found = entries(table)
    if not found:
        return ""
    name = table_name(table["number"])
    headings = [heading for heading, _ in DETAILS]
    body = []
    for entry in found:
        cells = [f"<td>{escape(entry.column)}</td>"]
        for heading, text in zip(headings, details(entry), strict=True):
            kind = "words" if heading in WORDY else "number"
            cells.append(f'<td class="{kind}">{escape(text)}</td>')
        body.append(_row(entry.data, cells))
    numeric = frozenset(
        turn for turn, name in enumerate(headings, start=2) if name not in WORDY
    )
    inside = _boxed(
        f"All numbers of {name}", _head(["data", "column", *headings], numeric), body
    )
    summary = f"<summary>All numbers of {escape(name)}</summary>"
    return f'<details class="all">\n{summary}\n{inside}\n</details>'


# ---------------------------------------------------------------------------- groups


def _groups(groups: Sequence[Data]) -> str:
    parts = [_paragraph([texts.GROUPS])]
    for data, known in group_tables(groups).items():
        parts.append(_bullets(s for entry in known for s in group_reading(entry)))
        parts.append(
            _boxed(f"Error rates on {data}", _group_head(known), _lines(known))
        )
    return "\n".join(parts)


def _group_head(known: Sequence[Data]) -> str:
    methods = "".join(
        f'<th scope="colgroup" colspan="{len(GROUP_RATES)}">{escape(e["method"])}</th>'
        for e in known
    )
    rates = "".join(
        f'<th scope="col" class="number">{escape(rate)}</th>'
        for _ in known
        for rate, _ in GROUP_RATES
    )
    return (
        f'<tr><th scope="col" rowspan="2">group</th>'
        f'<th scope="col" rowspan="2" class="number">rows</th>{methods}</tr>\n'
        f"<tr>{rates}</tr>"
    )


def _lines(known: Sequence[Data]) -> Iterator[str]:
    for name, values in group_rows(known):
        yield _row(name, (f'<td class="number">{escape(v)}</td>' for v in values))


# --------------------------------------------------------------------------- figures


def _figure(figure: Data) -> str:
    parts = [_paragraph([texts.FIGURES]), _bullets(figure_reading(figure))]
    parts += [_against(figure, axis) for axis in AXES]
    return "\n".join(parts)


def _against(figure: Data, axis: Axis) -> str:
    name = f"Figure {figure['number']}"
    caption = f"{name}. {figure['title']}: test accuracy against {axis.label}"
    place = _name(f"{name} {axis.name} caption")
    legend = "\n".join(f"<li>{_swatch(line)}</li>" for line in lines_of(figure))
    panels = "\n".join(
        svg.replace("<svg", f'<svg role="img" aria-label="{_alt(panel, axis)}"', 1)
        for panel, svg in zip(figure["panels"], panel_svgs(figure, axis), strict=True)
    )
    return (
        f'<figure aria-labelledby="{place}">\n'
        f'<figcaption id="{place}">{escape(caption)}</figcaption>\n'
        f'<ul class="legend" aria-label="Lines">\n{legend}\n</ul>\n'
        f'<div class="panels">\n{panels}\n</div>\n</figure>'
    )


def _alt(panel: Data, axis: Axis) -> str:
    ends = [
        f"{label} ends at {value:.1f} %"
        for label, value in last_accuracies(panel).items()
    ]
    text = f"{panel['data']}: test accuracy against {axis.label}. "
    return escape(text + ("; ".join(ends) or NOT_RUN) + ".")


def _swatch(line: Line) -> str:
    dashes = ' stroke-dasharray="5 3"' if line.dashed else ""
    label = escape(line.label)
    label = f"<strong>{label}</strong>" if line.method == "dszog" else label
    return (
        f'<svg viewBox="0 0 36 12" aria-hidden="true"><line x1="1" y1="6" x2="35" '
        f'y2="6" stroke="{line.colour}" style="stroke: var({line.variable})" '
        f'stroke-width="{1.3 * line.width:.1f}"{dashes}/></svg> {label}'
    )
