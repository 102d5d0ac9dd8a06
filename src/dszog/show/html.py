"""A result for those who did not run it: what was found, in plain words, as HTML."""

from __future__ import annotations

import math
from base64 import b64encode
from html import escape
from io import BytesIO
from typing import Any

from dszog.contract.validation import printable
from dszog.errors import DszogError, MissingExtraError
from dszog.evidence.certificate import Feasibility, rounded_up
from dszog.show.progress.summary import duration
from dszog.status import Status

N_BINDING = 3  # constraints that are named
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;"
    "padding:0 1rem;color:#222}img{max-width:100%}table{border-collapse:collapse}"
    "th,td{text-align:left;vertical-align:top;padding:.15rem .8rem .15rem 0}"
    "td{white-space:pre-wrap;overflow-wrap:anywhere}.soft{color:#666;font-size:85%}"
)


def in_words(result: Any) -> list[str]:
    """Return what is known of a result, for readers who know no optimisation."""
    certificate = result.certificate
    error = certificate.objective_error
    give = f", give or take {2 * error:.2g}" if error > 0 else ""
    ended = result.status == Status.CONVERGED and result.success
    seconds = result.costs.time
    took = f"{seconds:.2g} s" if seconds < 10 else duration(seconds)
    return [
        "The objective is not known at this point."
        if math.isnan(result.fun)
        else f"The objective is {result.fun:.6g}{give}.",
        *_on_constraints(certificate.feasibility, result.get("constraint_tol", 0.0)),
        "The run converged: the conditions of a best point hold here."
        if ended
        else "It was not shown that there is no better point.",
        *_on_what_binds(result),
        f"It took {result.nfev + result.ncev:,} evaluations in {took}.",
    ]


def _on_what_binds(result: Any) -> list[str]:
    """Return the constraints that a better value would break, the strongest first."""
    names = [
        row.name
        if row.constraint in result.get("names", {})
        else f"constraint {row.name}"
        for row in result.binding()
    ]
    if not names:
        return []
    rest = f" and {len(names) - N_BINDING:,} others" if len(names) > N_BINDING else ""
    return [f"A better value would break {'; '.join(names[:N_BINDING])}{rest}."]


def _on_constraints(found: Feasibility, tolerance: float) -> list[str]:
    if not found.n_constraints:
        return ["There is nothing to keep to but the bounds."]
    if found.kind == "unchecked":
        return ["The constraints were not checked here."]
    all_of = f"{found.n_constraints:,} constraints"
    n_checked = found.n_checked + found.n_suspects
    looked = f"All {all_of}" if found.is_exact else f"{n_checked:,} of {all_of}"
    name = f", {found.worst_names[0]}," if any(found.worst_names[:1]) else ""
    if found.n_unknown:
        said = f"{found.n_unknown:,} of them gave no value"
    elif not found.maxcv:
        said = "each of them holds"
    elif found.maxcv <= tolerance:
        said = f"each of them holds to within the tolerance of {tolerance:g}"
        said += f"; the worst{name} is over by {found.maxcv:.2g}"
    else:
        said = f"the worst{name} is over by {found.maxcv:.3g}, more than the "
        said += f"tolerance of {tolerance:g}"
    sentences = [f"{looked} were checked at this point: {said}."]
    if not found.is_exact and not found.n_unknown:
        what = "constraints" if found.calls is None else "calls"
        sentences.append(
            f"Of all {what}, those not looked at among them, at most "
            f"{rounded_up(100 * found.share_bound)} % are violated at all, with 95 % "
            "confidence."
        )
    return sentences


def as_html(result: Any, rows: list[tuple[str, str]]) -> str:
    """Return the verdict, what it means, and all figures to be unfolded."""
    mark = "✓" if result.success else "✗"
    said = "".join(f"<li>{_text(one)}</li>" for one in in_words(result))
    lines = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{_text(name)}</th>'
        f'<td style="text-align:left;white-space:pre-wrap">{_text(text)}</td></tr>'
        for name, text in rows
    )
    return (
        f"<b>{mark} {_text(result.verdict)}</b><ul>{said}</ul>"
        f"<details><summary>Figures</summary><table>{lines}</table></details>"
    )


def as_page(result: Any, body: str) -> str:
    """Return a whole page that needs nothing else, with the picture if there is one."""
    picture = ""
    try:
        made = BytesIO()
        result.plot().savefig(made, dpi=110)
        coded = b64encode(made.getvalue()).decode()
        picture = f'<img alt="How the run went" src="data:image/png;base64,{coded}">'
    except MissingExtraError:
        picture = '<p class="soft">With matplotlib there would be a picture here.</p>'
    except DszogError:  # nothing to draw
        pass
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta '
        'name="viewport" content="width=device-width"><title>'
        f"{_text(result.verdict)}</title><style>{STYLE}</style></head><body>"
        f"<h1>Result</h1>{body.replace('<details>', '<details open>')}{picture}"
        "</body></html>"
    )


def _text(text: str) -> str:
    return escape(printable(text, keep="\n"))
