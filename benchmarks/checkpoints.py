"""What checkpoints cost: `python benchmarks/checkpoints.py`.

The share of the wall time that goes into saving, on a black box of 1 ms, measured in
one process: time spent inside the store and the journal over the time of the run.
Comparing two runs by the clock would drown a percent in the noise of a shared machine;
their ratio is printed beside it. Before that, the time of one save by size, and of a
sync.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import dszog
from dszog.checkpoint import Recorder, Store
from dszog.checkpoint.journal import Journal

SECONDS = 8.0


def timed(
    owner: Any, name: str, spent: list[float], cpu: list[float]
) -> Callable[[], None]:
    """Count the time in a method; return what undoes that."""
    real = getattr(owner, name)

    def wrapped(*arguments: Any, **more: Any) -> Any:
        before, cpu_before = time.perf_counter(), time.thread_time()
        try:
            return real(*arguments, **more)
        finally:
            spent[0] += time.perf_counter() - before
            if name != "sync":  # which is inside the others
                cpu[0] += time.thread_time() - cpu_before

    setattr(owner, name, wrapped)
    return lambda: setattr(owner, name, real)


def black_box(x: Any) -> float:
    until = time.perf_counter() + 1e-3
    while time.perf_counter() < until:
        pass
    return float(np.sum((x - 2.0) ** 2))


def run(folder: str | None, iterations: int) -> tuple[float, str]:
    angles = np.linspace(0, 2 * np.pi, 100_000)
    constraints = dszog.Constraints(
        lambda points, j: points @ [np.cos(angles[j]), np.sin(angles[j])] - 1.0,
        m=100_000,
    )
    before = time.perf_counter()
    result = dszog.minimize(
        black_box,
        np.zeros(2),
        constraints,
        max_iterations=iterations,
        seed=0,
        checkpoint=folder,
    )
    return time.perf_counter() - before, result.digest


def overhead() -> None:
    iterations = int(SECONDS / 8e-3)
    plain, digest = run(None, iterations)
    parts: dict[tuple[Any, str], list[float]] = {
        (Store, "save"): [0.0],
        (Recorder, "asked"): [0.0],
        (Recorder, "answered"): [0.0],
        (Recorder, "played"): [0.0],
        (Journal, "sync"): [0.0],
    }
    cpu = [0.0]
    undo = [timed(*part, spent, cpu) for part, spent in parts.items()]
    with tempfile.TemporaryDirectory(dir=".") as folder:
        saved, same = run(f"{folder}/run", iterations)
    for one in undo:
        one()
    print(f"{iterations} iterations, {plain:.2f} s without, {saved:.2f} s with")
    # On a busy machine the clock counts the work of others; this does not.
    print(f"processor time inside: {cpu[0] / saved:.2%} of the run")
    share = {name: spent[0] / saved for (_, name), spent in parts.items()}
    inside = sum(share.values()) - share["sync"]  # which is inside the others
    print(f"inside the checkpoints: {inside:.2%} of the run", end=", of which ")
    print(", ".join(f"{name} {part:.2%}" for name, part in share.items()))
    print(f"ratio of the two runs: {saved / plain:.4f}; same digest: {same == digest}")


def saves() -> None:
    for n_bytes in (10**4, 10**6, 10**8):
        content = {"array": np.ones(n_bytes // 8)}
        with tempfile.TemporaryDirectory(dir=".") as folder:
            store = Store(Path(folder, "run"), resume=False, library="0")
            store.save({}, content)
            times = []
            for _ in range(5):
                before = time.perf_counter()
                store.save({}, content)
                times.append(time.perf_counter() - before)
            store.close()
        print(f"save of {n_bytes:>11,} bytes: median {1e3 * np.median(times):.1f} ms")


def sync() -> None:
    with tempfile.NamedTemporaryFile(dir=".") as file:
        times = []
        for _ in range(20):
            file.write(bytes(4096))
            file.flush()
            before = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - before)
    print(f"fsync of 4 kB: median {1e3 * np.median(times):.2f} ms")


if __name__ == "__main__":
    sync()
    saves()
    overhead()
