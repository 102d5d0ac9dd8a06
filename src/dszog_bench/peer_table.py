"""The tables of peers: a row for each solver, case and seed, made once and kept."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from dszog_bench.customers import reference_path
from dszog_bench.peer_worker import CUSTOMERS, Request
from dszog_bench.peers import PEERS
from dszog_bench.records import markdown, versions, write_json

COSTS = {"0": 0.0, "10 us": 1e-5, "1 ms": 1e-3}  # seconds of one constraint's value
LATEST = 3.0  # times the seconds, and a minute: a process is killed then
PEER_TABLES: dict[str, tuple[str, ...]] = {
    "peers": ("relaxed",),
    "peers-customers": tuple(
        name for name, what in CUSTOMERS.items() if reference_path(*what).exists()
    ),
}
"""Tables by the name that the command takes, and the cases in each."""


@dataclass(frozen=True, kw_only=True)
class Allowance:
    """What each solver may use."""

    seconds: float = 60.0
    queries: int = 10**10
    gigabytes: float = 8.0
    seeds: tuple[int, ...] = (0, 1, 2)


QUICK = Allowance(seconds=20.0, seeds=(0,))
FULL = Allowance()


def requests(cases: Sequence[str], allowance: Allowance) -> list[Request]:
    """Return every row of a table; solvers that are not random get one seed."""
    return [
        Request(
            case=case,
            peer=name,
            seed=seed,
            seconds=allowance.seconds,
            queries=allowance.queries,
            gigabytes=allowance.gigabytes,
        )
        for case in cases
        for name, peer in PEERS.items()
        for seed in (allowance.seeds if peer.is_random else allowance.seeds[:1])
    ]


def row_path(output: Path, request: Request) -> Path:
    """Return where a row is kept."""
    name = f"{request.case}-{request.peer}-{request.seed}-{request.seconds:g}s"
    return output / "peers" / f"{re.sub('[^A-Za-z0-9.]+', '-', name)}.json"


def kept_row(output: Path, request: Request) -> dict[str, Any] | None:
    """Return a row that was made before; a package that was missing is tried again."""
    try:
        row: Any = json.loads(row_path(output, request).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(row, dict) or row.get("outcome") == "missing":
        return None
    return row if asdict(request).items() <= row.items() else None


def made_row(request: Request) -> dict[str, Any]:
    """Run one solver in a process of its own, and return its row."""
    command = [sys.executable, "-m", "dszog_bench.peer_worker"]
    row: dict[str, Any] = asdict(request) | {"outcome": "not reached"}
    try:
        done = subprocess.run(
            [*command, json.dumps(asdict(request))],
            capture_output=True,
            text=True,
            timeout=LATEST * request.seconds + 60.0,
        )
    except subprocess.TimeoutExpired:
        return row | {"why": "killed: it could not be stopped"}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"code {done.returncode}"]
        return row | {"why": f"failed: {last[0]}"}
    answered: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answered


def peer_table(
    console: Console,
    name: str,
    output: Path,
    *,
    full: bool,
    allowance: Allowance | None = None,
) -> Path:
    """Make what is missing of a table, and write all of it."""
    if allowance is None:
        allowance = FULL if full else QUICK
    cases = PEER_TABLES[name] if full else PEER_TABLES[name][:1]
    rows = []
    for request in requests(cases, allowance):
        row = kept_row(output, request)
        if row is None:
            row = made_row(request) | {"versions": versions()}
            write_json(row_path(output, request), row)
        rows.append(row)
        console.print(f"  {_line(row)}", markup=False, highlight=False)
    path = output / f"{name}.md"
    path.write_text(_text(rows, allowance), encoding="utf-8")
    write_json(output / f"{name}.json", {"versions": versions(), "rows": rows})
    console.print(f"Wrote {path}", markup=False)
    return path


def _line(row: dict[str, Any]) -> str:
    text = f"{row['case']}, {row['peer']}, seed {row['seed']}: {row['outcome']}"
    if row["outcome"] == "reached":
        return (
            f"{text} after {row['own_seconds']:.2f} s, {row['loss_queries']:.2e} "
            f"losses, {row['constraint_queries']:.2e} constraints"
        )
    return f"{text}: {row['why']}"


def _text(rows: Sequence[dict[str, Any]], allowance: Allowance) -> str:
    parts = [
        f"Every solver has {allowance.seconds:g} s of its own time. A query is one "
        "value at one point for one index. Times are measured with values that cost "
        "next to nothing, plus the constraint queries times the cost above the column. "
        "Medians over the seeds that reached the target.\n"
    ]
    for case in dict.fromkeys(row["case"] for row in rows):
        mine = [row for row in rows if row["case"] == case]
        known = next((row for row in mine if "n_constraints" in row), None)
        size = ""
        if known is not None:
            size = f": {known['dim']} variables, {known['n_constraints']:,} constraints"
        parts.append(f"### {case}{size}\n")
        heads = ["solver", "reached", "loss queries", "constraint queries"]
        heads += [f"{cost} a constraint" for cost in COSTS]
        cells = [
            _cells(peer, [row for row in mine if row["peer"] == peer])
            for peer in dict.fromkeys(row["peer"] for row in mine)
        ]
        parts.append(markdown(heads, cells))
    return "\n".join(parts)


def _cells(peer: str, rows: Sequence[dict[str, Any]]) -> list[str]:
    reached = [row for row in rows if row["outcome"] == "reached"]
    if not reached:
        row = rows[0]
        if row["outcome"] == "missing":
            return [peer, f"not installed: {row['why']}", "", "", *[""] * len(COSTS)]
        return [
            peer,
            f"not reached ({row['why']}){_nearest(rows)}",
            f"{row.get('loss_queries', 0):.1e}",
            f"{row.get('constraint_queries', 0):.1e}",
            *[""] * len(COSTS),
        ]

    def middle(name: str) -> str:
        return f"{statistics.median(row[name] for row in reached):.1e}"

    times = [
        statistics.median(
            row["own_seconds"] + cost * row["constraint_queries"] for row in reached
        )
        for cost in COSTS.values()
    ]
    return [
        peer,
        f"{len(reached)} of {len(rows)}",
        middle("loss_queries"),
        middle("constraint_queries"),
        *[f"{time:.3g} s" for time in times],
    ]


def _nearest(rows: Sequence[dict[str, Any]]) -> str:
    """Say how near an unsuccessful solver came."""
    gaps = [row["best_gap"] for row in rows if row.get("best_gap") is not None]
    if gaps:
        share = 100.0 * min(gaps) / abs(rows[0]["optimum"])
        return f"; {share:.1f} % above the optimum at best"
    least = [row.get("least_violation") for row in rows]
    known = [value for value in least if value is not None]
    return f"; violation {min(known):.2g} at least" if known else ""
