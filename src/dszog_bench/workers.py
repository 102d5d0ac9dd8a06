"""How much faster workers make a run, and what they send.

A black box that sleeps stands for one that computes elsewhere: it scales past the
processors of this machine. Each run with workers comes right after one without, with
which it is compared. Times are of iterations, without the start of the workers.
"""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import dszog
from dszog.workers import Dask, Processes, Ray, Threads
from dszog_bench.records import Effort, Row

DIM, N_POINTS = 40, 20
KINDS: dict[str, tuple[str, Callable[[int], Any]]] = {
    # The package that it needs, and how it is made.
    "threads": ("numpy", Threads),
    "processes": ("numpy", Processes),
    "dask": ("distributed", lambda n: Dask(n_workers=n)),
    "ray": ("ray", lambda n: Ray(n_workers=n)),
}


@dataclass(frozen=True)
class Sleeper:
    """A simulator that takes so many seconds."""

    seconds: float

    def __call__(self, x: Any, i: int) -> tuple[float, Any]:
        """Return the objective and as many constraints as there are variables."""
        time.sleep(self.seconds)
        return float(np.sum((x - 2.0) ** 2)), x - 1.0


def workers(effort: Effort) -> Iterator[Row]:
    """Time runs with 2 to 20 workers over runs without, 20 calls an iteration."""
    n = max(effort.of(20), 4)
    repeats = 2 * effort.n_seeds - 1
    for name, (package, _) in KINDS.items():
        if importlib.util.find_spec(package) is not None:
            yield _row(name, 2, 0.01, n, repeats)
    for seconds in (0.0001, 0.001, 0.01, 0.1)[: max(effort.of(4), 2)]:
        for n_workers in (2, 5, 10, 20)[: max(effort.of(4), 2)]:
            yield _row("processes", n_workers, seconds, max(effort.of(6), 3), 1)


def _row(name: str, n_workers: int, seconds: float, n: int, repeats: int) -> Row:
    ratios: list[float] = []
    details: dict[str, Any] = {}
    for _ in range(repeats):
        alone, _, bits = _run("serial", seconds, n)
        helped, details, same = _run(KINDS[name][1](n_workers), seconds, n)
        ratios.append(alone / helped)
        details |= {"iteration_seconds": helped, "same_bits": str(bits == same)}
    return Row.of(
        f"{n_workers} {name}, {1000 * seconds:g} ms a call: speed-up",
        ratios,
        unit="x",
        details=details,
    )


def _run(workers: Any, seconds: float, n: int) -> tuple[float, dict[str, Any], bytes]:
    """Return the median seconds of an iteration, the traffic of one, and the answer."""
    stamps: list[float] = []
    simulator = dszog.Simulator(Sleeper(seconds), 1, DIM)
    began = time.perf_counter()
    try:
        result = dszog.minimize(
            dszog.Problem(simulator, None, DIM, x0=np.zeros(DIM)),
            method="dszog",
            seed=0,
            max_iterations=n,
            options={"n_directions": N_POINTS - 1},
            evaluator=workers,
            callback=lambda _: stamps.append(time.perf_counter()),
        )
    finally:
        if not isinstance(workers, str):
            workers.close()
    details: dict[str, Any] = {"start_seconds": stamps[0] - began}
    traffic = result.costs.traffic
    if traffic is not None and traffic.n_pieces:
        share = N_POINTS / traffic.n_pieces
        details["bytes_sent"] = round(traffic.bytes_sent * share)
        details["bytes_received"] = round(traffic.bytes_received * share)
    return float(np.median(np.diff(stamps))), details, result.x.tobytes()
