"""Solvers on cases, each run in a process of its own that may be stopped at any time.

``python -m dszog_bench.peer_runs REQUEST`` makes one run: the request is JSON, and the
answer one line of it. The measures make all runs of a table, and keep each of them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import statistics
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dszog.cli.files import as_json, known, write_whole
from dszog.contract.validation import check_choice
from dszog_bench.budget import Budget, OverError
from dszog_bench.cases import Case
from dszog_bench.customers import CUSTOMERS, customers_case
from dszog_bench.peers import PEERS, quietly
from dszog_bench.records import Effort, Row, versions
from dszog_bench.relaxed import RelaxedPairs

GRACE = 1.5  # times the seconds, after which a solver is ended wherever it is
LATEST = 3.0  # times the seconds, and a minute: its process is killed then
COSTS = {"0": 0.0, "10_us": 1e-5, "1_ms": 1e-3}  # seconds of one constraint's value
CASES: dict[str, Callable[[], Case]] = {
    "relaxed": RelaxedPairs,
    **{name: partial(customers_case, name) for name in CUSTOMERS},
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is run, and what it may use."""

    case: str
    peer: str
    seed: int
    seconds: float = 60.0
    queries: int = 10**10
    gigabytes: float = 8.0


# ------------------------------------------------------------------- inside the process


def answer(
    request: Request, late: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:
    """Run the solver and return what came of it."""
    # A solver that does not look up for long, between two values, cannot be stopped:
    # then `late` is called, from another thread, with what is known so far.
    check_choice("peers", "case", request.case, CASES)
    check_choice("peers", "peer", request.peer, PEERS)
    peer = PEERS[request.peer]
    run: dict[str, Any] = asdict(request)
    if importlib.util.find_spec(peer.package) is None:
        return run | {"outcome": "missing", "why": peer.install}
    case = CASES[request.case]()
    limit_memory(request.gigabytes)
    budget = Budget(case, request.seconds, request.queries)
    why = "the solver ended by itself"
    watchdog = None
    if late is not None:

        def bark(why: str = "time, inside the solver") -> None:
            late(run | _found(budget, why))

        budget.leave = partial(bark, "time")
        watchdog = threading.Timer(GRACE * request.seconds, bark)
        watchdog.daemon = True
        watchdog.start()
    try:
        with quietly(), suppress(OverError):
            peer.solve(budget, request.seed)
    except MemoryError as error:
        why = f"cannot hold the problem: {str(error) or 'out of memory'}"
    if watchdog is not None:
        watchdog.cancel()
    if budget.ended is not None:
        why = "time" if budget.own_seconds > request.seconds else "queries"
    return run | _found(budget, why)


def _found(budget: Budget, why: str) -> dict[str, Any]:
    """Return what a budget tells of a run; `why` is for one that was in vain."""
    return {
        "outcome": "reached" if budget.is_reached else "not reached",
        "why": "" if budget.is_reached else why,
        "own_seconds": budget.own_seconds,
        "loss_queries": budget.n_losses,
        "constraint_queries": budget.n_constraints,
        "least_violation": known(budget.least_violation),
        "best_gap": known(budget.best_gap),
        "optimum": budget.case.known.value,
    }


def limit_memory(gigabytes: float) -> None:
    """Let this process ask for so much memory at most, where the system can do that."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        limit = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _write_and_leave(run: dict[str, Any]) -> None:
    sys.__stdout__.write(json.dumps(run))  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]
    os._exit(0)


# ------------------------------------------------------------------------- the measures


def peers(effort: Effort) -> Iterator[Row]:
    """Count the queries of other libraries on 62,499 relaxed pairs."""
    yield from rows_of(["relaxed"], effort)


def peers_customers(effort: Effort) -> Iterator[Row]:
    """Count them where a model is updated and none of up to 10^6 customers may lose."""
    names = list(CUSTOMERS)
    yield from rows_of(names if effort.n_seeds > 1 else names[:1], effort)


def rows_of(cases: Sequence[str], effort: Effort) -> Iterator[Row]:
    """Return a row per case and solver, of which random ones get all seeds."""
    # Runs that were kept are not made again, but for those whose package was missing.
    seconds = effort.peer_seconds
    for case in cases:
        for name, peer in PEERS.items():
            runs = []
            for seed in range(effort.n_seeds if peer.is_random else 1):
                request = Request(case=case, peer=name, seed=seed, seconds=seconds)
                path = run_path(effort.output, request)
                run = kept_run(path, request)
                if run is None:
                    run = made_run(request)
                    write_whole(path, as_json(run | {"versions": versions()}).encode())
                runs.append(run)
            yield row_of(runs)


def run_path(output: Path, request: Request) -> Path:
    name = f"{request.case}-{request.peer}-{request.seed}-{request.seconds:g}s"
    return output / "peers" / f"{re.sub('[^A-Za-z0-9.]+', '-', name)}.json"


def kept_run(path: Path, request: Request) -> dict[str, Any] | None:
    try:
        run: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(run, dict) or run.get("outcome") == "missing":
        return None
    return run if asdict(request).items() <= run.items() else None


def made_run(request: Request) -> dict[str, Any]:
    """Run one solver in a process of its own."""
    command = [sys.executable, "-m", "dszog_bench.peer_runs"]
    run: dict[str, Any] = asdict(request) | {"outcome": "not reached"}
    try:
        done = subprocess.run(
            [*command, json.dumps(asdict(request))],
            capture_output=True,
            text=True,
            timeout=LATEST * request.seconds + 60.0,
        )
    except subprocess.TimeoutExpired:
        return run | {"why": "killed: it could not be stopped"}
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or [f"code {done.returncode}"]
        return run | {"why": f"failed: {last[0]}"}
    answered: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answered


def row_of(runs: Sequence[dict[str, Any]]) -> Row:
    """Return the row of a solver: medians over the seeds that reached the target."""
    # Times are measured with values that cost next to nothing, plus the constraint
    # queries times what one of them is taken to cost.
    first = runs[0]
    reached = [run for run in runs if run["outcome"] == "reached"]
    what = f"{first['case']}: {first['peer']}"
    details: dict[str, Any] = {"outcome": f"reached by {len(reached)} of {len(runs)}"}
    if not reached:
        details["outcome"] = f"{first['outcome']} ({first['why']}){_nearest(runs)}"
        for name in ("loss_queries", "constraint_queries"):
            details[name] = first.get(name, 0)
        return Row(what=what, figure=None, details=details | {"runs": list(runs)})
    details["loss_queries"] = statistics.median(run["loss_queries"] for run in reached)
    for name, cost in COSTS.items():
        details[f"seconds_at_{name}"] = statistics.median(
            run["own_seconds"] + cost * run["constraint_queries"] for run in reached
        )
    return Row.of(
        what,
        [run["constraint_queries"] for run in reached],
        unit="constraint queries",
        details=details | {"runs": list(runs)},
    )


def _nearest(runs: Sequence[dict[str, Any]]) -> str:
    """Say how near an unsuccessful solver came."""
    gaps = [run["best_gap"] for run in runs if run.get("best_gap") is not None]
    if gaps:
        share = 100.0 * min(gaps) / abs(runs[0]["optimum"])
        return f"; {share:.1f} % above the optimum at best"
    least = [run["least_violation"] for run in runs if run.get("least_violation")]
    return f"; violation {min(least):.2g} at least" if least else ""


if __name__ == "__main__":
    _write_and_leave(answer(Request(**json.loads(sys.argv[1])), _write_and_leave))
