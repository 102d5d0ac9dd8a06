"""How much faster workers make a run, and what that takes.

    python benchmarks/scale_out.py [--output benchmarks/results] [--repeats 5]

A black box that sleeps stands for one that computes elsewhere: it scales past the
processors of this machine. Machines are not equally quick all the time: each run with
workers comes right after one without, with which it is compared, and all is repeated;
the table has the median, and the range of the speed-ups. Times are of iterations,
without the start of the workers, which is told by itself. The last part is a model, for
what cannot be run here: its constants are those measured above it.
"""

from __future__ import annotations

import argparse
import heapq
import importlib.metadata
import importlib.util
import json
import os
import platform
import time
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

import dszog
from dszog import Constraints, Problem, Query, Simulator
from dszog.evaluators import Dask, Processes, Ray, Threads
from dszog.evaluators._chunks import cut
from dszog.evaluators._wire import pack_parts, pack_replies
from dszog.evaluators.base import answer

DIM = 40
N_POINTS = 20
KINDS = {
    "serial": lambda n: "serial",
    "threads": lambda n: Threads(n),
    "processes": lambda n: Processes(n),
    "dask": lambda n: Dask(n_workers=n),
    "ray": lambda n: Ray(n_workers=n),
}


@dataclass(frozen=True)
class Sleeper:
    """A simulator that takes so many seconds."""

    seconds: float

    def __call__(self, x: Any, i: int) -> tuple[float, Any]:
        time.sleep(self.seconds)
        return float(np.sum((x - 2.0) ** 2)), x - 1.0


@dataclass(frozen=True)
class Row:
    evaluator: str
    n_workers: int
    seconds_per_call: float
    start_seconds: float
    iteration_ms: float  # median
    speed_up: float
    bytes_sent: int  # an iteration
    bytes_received: int
    x: str  # the bits of the result, the same for all


def measure(
    name: str, n: int, seconds: float, n_iterations: int, serial: float | None
) -> Row:
    stamps: list[float] = []
    problem = Problem(Simulator(Sleeper(seconds), 1, DIM), None, DIM, x0=np.zeros(DIM))
    workers = KINDS[name](n)
    before = time.perf_counter()
    try:
        result = dszog.minimize(
            problem,
            seed=0,
            max_iterations=n_iterations,
            options={"n_directions": N_POINTS - 1},
            evaluator=workers,
            callback=lambda _: stamps.append(time.perf_counter()),
        )
    finally:
        if not isinstance(workers, str):
            workers.close()
    median = float(np.median(np.diff(stamps)))
    traffic = result.costs.traffic
    n_pieces = max(traffic.n_pieces, 1) if traffic else 1
    share = N_POINTS / n_pieces
    return Row(
        evaluator=name,
        n_workers=n,
        seconds_per_call=seconds,
        start_seconds=round(stamps[0] - before, 2),
        iteration_ms=round(1e3 * median, 2),
        speed_up=round((serial or median) / median, 2),
        bytes_sent=round(traffic.bytes_sent * share) if traffic else 0,
        bytes_received=round(traffic.bytes_received * share) if traffic else 0,
        x=result.x.tobytes().hex()[:16],
    )


@dataclass(frozen=True)
class Pairs:
    """What two workers of a kind did, each time against none just before."""

    evaluator: str
    start_seconds: float  # all are medians
    serial_ms: float
    iteration_ms: float
    speed_up: float
    least: float  # of the speed-ups
    most: float
    bytes_sent: int  # an iteration
    bytes_received: int
    same_bits: bool


def side_by_side(names: list[str], n_repeats: int) -> list[Pairs]:
    """Return two workers of each kind against none: 20 calls of 10 ms."""
    found: dict[str, list[tuple[Row, Row]]] = {name: [] for name in names}
    for _ in range(n_repeats):
        for name in names:
            alone = measure("serial", 1, 0.01, 20, None)
            helped = measure(name, 2, 0.01, 20, alone.iteration_ms / 1e3)
            found[name].append((alone, helped))
    bits = {row.x for name in names for pair in found[name] for row in pair}
    return [_pairs(name, found[name], bits) for name in names]


def _pairs(name: str, rows: list[tuple[Row, Row]], bits: set[str]) -> Pairs:
    helped = [row for _, row in rows]
    speed_ups = [row.speed_up for row in helped]
    return Pairs(
        evaluator=name,
        start_seconds=float(np.median([row.start_seconds for row in helped])),
        serial_ms=round(float(np.median([row.iteration_ms for row, _ in rows])), 1),
        iteration_ms=round(float(np.median([row.iteration_ms for row in helped])), 1),
        speed_up=round(float(np.median(speed_ups)), 2),
        least=min(speed_ups),
        most=max(speed_ups),
        bytes_sent=helped[0].bytes_sent,
        bytes_received=helped[0].bytes_received,
        same_bits=len(bits) == 1,
    )


def helpful_workers() -> list[Row]:
    """Return how processes do as calls get quicker and workers more."""
    rows = []
    for seconds in (0.0001, 0.001, 0.01, 0.1):
        serial = measure("serial", 1, seconds, 6, None)
        rows.append(serial)
        for n in (2, 5, 10, 20):
            rows.append(measure("processes", n, seconds, 6, serial.iteration_ms / 1e3))
    return rows


# ---------------------------------------------------------------------------- the model


@dataclass(frozen=True)
class Message:
    """What one piece of a query costs on the wire and at the driver."""

    bytes_out: float
    bytes_back: float
    driver_seconds: float


def message(dim: int, n_directions: int, batch: int) -> tuple[Message, int, float]:
    """Measure the pieces of one iteration with a trillion constraints."""

    def value(x: Any, j: int) -> float:
        return float(x[j % dim] - 1.0)

    constraints = Constraints.from_function(value, 10**12).in_pieces(1)
    problem = Problem(lambda x: float(x @ x), constraints, dim)
    rng = np.random.Generator(np.random.Philox(key=0))
    x = rng.standard_normal(dim)
    queries = [
        Query(
            iteration=0,
            x=x,
            steps=1e-3 * rng.standard_normal((n_directions, dim)),
            losses=np.array([0]),
            constraints=rng.integers(10**12, size=batch),
        ),
        Query.at(x, iteration=0, constraints=rng.integers(10**12, size=batch)),
    ]
    before = time.perf_counter()
    pieces = cut(problem, queries)
    packed = [pack_parts(piece.parts) for piece in pieces]
    seconds = time.perf_counter() - before
    replies = [pack_replies(answer(problem, piece.parts)) for piece in pieces[:50]]
    return (
        Message(
            float(np.mean([len(one) for one in packed])),
            float(np.mean([len(one) for one in replies])),
            seconds / len(pieces),
        ),
        len(pieces),
        seconds,
    )


@dataclass(frozen=True)
class Plan:
    n_workers: int
    seconds_per_call: float
    calls_per_iteration: int
    iteration_seconds: float
    speed_up: float
    megabytes_per_second: float  # at the driver, both ways


def simulate(
    n_workers: int,
    seconds: float,
    n_pieces: int,
    each: Message,
    *,
    latency: float = 0.002,
    bandwidth: float = 1.25e8,
    spread: float = 0.2,
) -> Plan:
    """Return one iteration of a driver that serves workers over a network.

    The driver sends and receives one message at a time; a worker has one call at a
    time, whose time varies by `spread`. The network is of one gigabit.
    """
    rng = np.random.Generator(np.random.Philox(key=1))
    times = seconds * np.exp(spread * rng.standard_normal(n_pieces) - spread**2 / 2)
    handling = each.driver_seconds + each.bytes_out / bandwidth
    taking = each.driver_seconds + each.bytes_back / bandwidth
    driver, next_piece = 0.0, 0
    events: list[float] = []
    for _ in range(min(n_workers, n_pieces)):
        driver += handling
        heapq.heappush(events, driver + 2 * latency + times[next_piece])
        next_piece += 1
    while events:
        driver = max(driver, heapq.heappop(events)) + taking
        if next_piece < n_pieces:
            driver += handling
            heapq.heappush(events, driver + 2 * latency + times[next_piece])
            next_piece += 1
    total = each.bytes_out + each.bytes_back
    return Plan(
        n_workers=n_workers,
        seconds_per_call=seconds,
        calls_per_iteration=n_pieces,
        iteration_seconds=round(driver, 4),
        speed_up=round(float(times.sum()) / driver, 1),
        megabytes_per_second=round(n_pieces * total / driver / 1e6, 3),
    )


# --------------------------------------------------------------------------- the report


def table(rows: list[Any], columns: list[str]) -> str:
    lines = ["| " + " | ".join(columns) + " |", "|" + " --- |" * len(columns)]
    for row in rows:
        cells = asdict(row)
        lines.append("| " + " | ".join(str(cells[name]) for name in columns) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", default="benchmarks/results", type=Path)
    parser.add_argument("--quick", action="store_true", help="no table of workers")
    parser.add_argument("--repeats", default=5, type=int, help="of the two workers")
    arguments = parser.parse_args()
    has = importlib.util.find_spec
    names = ["threads", "processes"]
    names += ["dask"] if has("distributed") else []
    names += ["ray"] if has("ray") else []

    load = os.getloadavg()
    rows = side_by_side(names, arguments.repeats)
    helpful = [] if arguments.quick else helpful_workers()
    plans = []
    shapes = {}
    for batch, n_directions in ((128, 10), (1000, 100)):
        each, n_pieces, seconds = message(100, n_directions, batch)
        shapes[f"{n_directions} directions, batches of {batch}"] = {
            **asdict(each),
            "pieces": n_pieces,
            "kilobytes_per_iteration": round(
                n_pieces * (each.bytes_out + each.bytes_back) / 1e3, 1
            ),
            "driver_seconds_per_iteration": round(seconds, 4),
        }
        plans += [
            simulate(n, cost, n_pieces, each)
            for cost in (0.1, 1.0, 10.0)
            for n in (10, 100, 1000)
        ]
    versions = {
        name: importlib.metadata.version(name)
        for name in ("numpy", "scipy", "dask", "distributed", "ray", "cloudpickle")
        if has(name)
    }
    report = {
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load_before": load,
        "versions": versions,
        "two_workers": [asdict(row) for row in rows],
        "helpful_workers": [asdict(row) for row in helpful],
        "messages": shapes,
        "model": [asdict(plan) for plan in plans],
    }
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "scale_out.json").write_text(json.dumps(report, indent=1))
    columns = ["evaluator", "n_workers", "start_seconds", "iteration_ms", "speed_up"]
    text = [
        "# Workers: speed-ups and bytes",
        f"{os.cpu_count()} processors, load {load[0]:.1f} when begun. 20 calls an "
        "iteration, 40 variables. Made by `python benchmarks/scale_out.py`.",
        "## Two workers, calls of 10 ms",
        table(rows, [field.name for field in fields(Pairs)]),
        "## Processes, calls that sleep",
        table(helpful, ["seconds_per_call", *columns]),
        "## Model: a trillion constraints, 100 variables, many workers",
        table(plans, list(asdict(plans[0]))),
    ]
    (arguments.output / "scale_out.md").write_text("\n\n".join(text) + "\n")
    print("\n\n".join(text))


if __name__ == "__main__":
    main()
