"""Formulas as MathML, which browsers draw themselves: no script, no font, no network.

docutils translates the LaTeX; what it does not know is a warning, which ends the build.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

LOGGER = logging.getLogger(__name__)
SYNONYMS = {r"\dots": r"\ldots"}  # commands that docutils knows by another name
BAR = re.compile(r"<mo([^>]*)>([|\N{DOUBLE VERTICAL LINE}])</mo>")


def _mathml(node: nodes.Element, *, as_block: bool) -> str:
    tex = re.sub(r"\\[a-z]+", lambda m: SYNONYMS.get(m[0], m[0]), node.astext())
    try:
        mathml = tex2mathml(tex, as_block=as_block)
    except MathError as error:
        LOGGER.warning("a formula cannot be drawn, %s: %s", error, tex, location=node)
        return f"<code>{escape(tex)}</code>"
    # Bars stand close to what they enclose, and grow only where that was asked for.
    grow = "true" if re.search(r"\\left(?![a-z])", tex) else "false"
    return BAR.sub(rf'<mo\1 lspace="0" rspace="0" stretchy="{grow}">\2</mo>', mathml)


def _visit_inline(translator: Any, node: nodes.math) -> None:
    translator.body.append(_mathml(node, as_block=False))
    raise nodes.SkipNode


def _visit_block(translator: Any, node: nodes.math_block) -> None:
    translator.body.append(translator.starttag(node, "div", CLASS="math"))
    translator.body.append(f"<div>{_mathml(node, as_block=True)}</div>")
    if node["number"]:
        translator.body.append(f'<span class="eqno">({node["number"]})</span>')
    translator.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(_visit_inline, None),
        block_renderers=(_visit_block, None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
