"""How the page looks: light or dark as the reader has it, on paper and on a phone."""

from __future__ import annotations

from dszog_paper.report.figures import COLOURS, GRID, INK, OTHER

DARK = {
    "dszog": "#ffffff",
    "ours": "#ff8a3d",
    "zoscgd": "#58b2f2",
    "zopsgd": "#2fc79a",
    "acczomda": "#f2c14e",
    "accszofw": "#ea9bc8",
    "other": "#9ccbe6",
}
"""Colours of the lines on a dark page."""


def _lines(colours: dict[str, str]) -> str:
    return " ".join(f"--line-{name}: {value};" for name, value in colours.items())


CSS = f"""
:root {{
  color-scheme: light dark;
  --page: #ffffff; --text: #1b1b1f; --soft: #5c5c66; --rule: #d9d9e0;
  --box: #f5f5f8; --link: #0b57a4; --note: #fff6df; --note-rule: #c98a00;
  --ink: {INK}; --grid: {GRID};
  {_lines(COLOURS | {"other": OTHER})}
}}
@media (prefers-color-scheme: dark) {{
  :root {{
    --page: #17171b; --text: #ececf1; --soft: #a8a8b4; --rule: #3a3a44;
    --box: #212127; --link: #8ec2ff; --note: #2e2817; --note-rule: #d9a532;
    --ink: #c9c9d2; --grid: #35353e;
    {_lines(DARK)}
  }}
}}
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; }}
body {{
  margin: 0; background: var(--page); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans",
    sans-serif;
}}
header, main, footer {{ max-width: 74rem; margin: 0 auto; padding: 0 1.25rem; }}
header {{ padding-top: 2rem; }}
footer {{ color: var(--soft); padding-bottom: 3rem; }}
h1 {{ font-size: 1.9rem; line-height: 1.2; margin: 0 0 .6rem; }}
h2 {{
  font-size: 1.35rem; line-height: 1.3; margin: 3rem 0 .6rem; padding-top: .8rem;
  border-top: 1px solid var(--rule);
}}
h3 {{ font-size: 1.1rem; margin: 2rem 0 .4rem; }}
p, .plain {{ max-width: 48rem; }}
p {{ margin: .6rem 0; }}
a {{ color: var(--link); }}
pre {{
  background: var(--box); border: 1px solid var(--rule); border-radius: .4rem;
  padding: .7rem .9rem; overflow-x: auto; font-size: .875rem;
}}
.kind {{
  background: var(--note); border-left: .3rem solid var(--note-rule);
  border-radius: .3rem; padding: .5rem 1rem; max-width: 48rem;
}}
nav ul {{ columns: 2 20rem; padding-left: 1.2rem; margin: .6rem 0; }}
nav li {{ break-inside: avoid; margin: .15rem 0; }}
.box {{
  overflow-x: auto; border: 1px solid var(--rule); border-radius: .4rem;
  margin: .9rem 0; max-width: 100%; width: fit-content;
}}
.box:focus-visible {{ outline: 2px solid var(--link); }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
caption {{
  text-align: left; font-weight: 600; padding: .6rem .8rem; background: var(--box);
}}
caption span {{
  display: inline-block; position: sticky; left: .8rem;
  max-width: calc(100vw - 4rem);
}}
th, td {{
  padding: .45rem .8rem; text-align: left; vertical-align: top;
  border-top: 1px solid var(--rule);
}}
thead th {{ white-space: nowrap; vertical-align: bottom; }}
thead th.number {{ white-space: normal; min-width: 5.5rem; }}
thead th[scope="colgroup"] {{ border-left: 1px solid var(--rule); }}
tbody th {{
  font-weight: 500; position: sticky; left: 0; background: var(--page);
  border-right: 1px solid var(--rule); white-space: nowrap;
}}
td {{ white-space: nowrap; }}
td small {{ display: block; color: var(--soft); font-size: .8rem; line-height: 1.4; }}
.runs {{ color: var(--soft); font-size: .8rem; margin-left: .3rem; }}
.made {{ font-size: .85rem; color: var(--soft); overflow-wrap: anywhere; }}
.plain {{ padding-left: 1.2rem; margin: .6rem 0; }}
.reference td, .reference th {{ background: var(--box); }}
.missing {{ color: var(--soft); font-style: italic; }}
.all table {{ font-size: .85rem; }}
.all td, .all th {{ padding: .3rem .6rem; }}
.all thead th {{ white-space: normal; min-width: 4.5rem; }}
td.words {{ white-space: normal; min-width: 24rem; }}
td.number, th.number {{ text-align: right; }}
details {{ margin: .6rem 0; }}
summary {{ cursor: pointer; color: var(--link); width: fit-content; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; }}
dt {{ color: var(--soft); }}
dd {{ margin: 0; overflow-wrap: anywhere; }}
figure {{ margin: 1.2rem 0 2.2rem; }}
figcaption {{ font-weight: 600; }}
.panels {{
  display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 1rem;
}}
.panels svg {{ display: block; width: 100%; height: auto; overflow: visible; }}
.panels svg * {{ stroke-linejoin: round; stroke-linecap: butt; }}
.panels p {{ margin: 0; }}
.legend {{
  display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; list-style: none;
  padding: 0; margin: .4rem 0 .8rem; font-size: .9rem;
}}
.legend svg {{ width: 2.4rem; height: .8rem; vertical-align: middle; }}
.legend strong {{ font-weight: 700; }}
@media (max-width: 42rem) {{
  body {{ font-size: 15px; }}
  header, main, footer {{ padding-left: .9rem; padding-right: .9rem; }}
  h1 {{ font-size: 1.5rem; }}
  .panels {{ grid-template-columns: minmax(0, 1fr); }}
  dl {{ grid-template-columns: 1fr; gap: 0; }}
  dd {{ margin-bottom: .4rem; }}
  th, td {{ padding: .4rem .55rem; }}
  tbody th {{ white-space: normal; min-width: 6.5rem; max-width: 8.5rem; }}
}}
@media print {{
  .box {{ overflow: visible; }}
  nav {{ display: none; }}
  figure, tr {{ break-inside: avoid; }}
}}
"""
"""The page's only style sheet."""
