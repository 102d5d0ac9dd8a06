"""One solver on one case in a process of its own, which may be stopped at any time.

The request is JSON on the command line, the answer one line of JSON.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from dszog._validation import check_choice
from dszog_bench.budget import Budget, OverError
from dszog_bench.cases import Case
from dszog_bench.customers import ModelName, customers_case
from dszog_bench.peers import PEERS, quietly
from dszog_bench.relaxed import relaxed_case

GRACE = 1.5  # times the seconds, after which a solver is ended wherever it is
CUSTOMERS: dict[str, tuple[ModelName, int]] = {
    "customers-linear-1e4": ("linear", 10**4),
    "customers-linear-1e5": ("linear", 10**5),
    "customers-linear-1e6": ("linear", 10**6),
    "customers-neural-1e4": ("neural", 10**4),
    "customers-neural-1e5": ("neural", 10**5),
    "customers-neural-1e6": ("neural", 10**6),
}
CASES: dict[str, Callable[[], Case]] = {
    "relaxed": relaxed_case,
    "relaxed-1": lambda: relaxed_case(1),
    "relaxed-2": lambda: relaxed_case(2),
    **{name: partial(customers_case, *what) for name, what in CUSTOMERS.items()},
}


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is run, and what it may use."""

    case: str
    peer: str
    seed: int
    seconds: float
    queries: int
    gigabytes: float


def answer(
    request: Request, late: Callable[[dict[str, Any]], None] | None = None
) -> dict[str, Any]:
    """Run the solver and return its row.

    A solver that does not look up for long, between two values, cannot be stopped: then
    `late` is called, from another thread, with what is known so far.
    """
    check_choice("peers", "case", request.case, CASES)
    check_choice("peers", "peer", request.peer, PEERS)
    peer = PEERS[request.peer]
    row: dict[str, Any] = asdict(request)
    if importlib.util.find_spec(peer.package) is None:
        return row | {"outcome": "missing", "why": peer.install}
    case = CASES[request.case]()
    limit_memory(request.gigabytes)
    budget = Budget(case, request.seconds, request.queries)
    why = "the solver ended by itself"
    watchdog = None
    if late is not None:

        def bark(why: str) -> None:
            late(row | _found(budget, why))

        budget.leave = partial(bark, "time")
        watchdog = threading.Timer(
            GRACE * request.seconds, bark, ["time, inside the solver"]
        )
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
    return row | _found(budget, why)


def _found(budget: Budget, why: str) -> dict[str, Any]:
    """Return what a budget tells of a run; `why` is for one that was in vain."""
    case = budget.case
    return {
        "outcome": "reached" if budget.is_reached else "not reached",
        "why": "" if budget.is_reached else why,
        "own_seconds": budget.own_seconds,
        "loss_queries": budget.n_losses,
        "constraint_queries": budget.n_constraints,
        "least_violation": _finite(budget.least_violation),
        "best_gap": _finite(budget.best_gap),
        "optimum": case.optimum,
        "n_constraints": case.n_constraints,
        "dim": case.problem.dim,
    }


def limit_memory(gigabytes: float) -> None:
    """Let this process ask for so much memory at most, where the system can do that."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        limit = int(gigabytes * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _finite(value: float) -> float | None:
    return value if abs(value) < float("inf") else None


def _write_and_leave(row: dict[str, Any]) -> None:
    sys.__stdout__.write(json.dumps(row))  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]
    os._exit(0)


if __name__ == "__main__":
    _write_and_leave(answer(Request(**json.loads(sys.argv[1])), _write_and_leave))
