"""Kill runs again and again until they end: `python kill_loop.py N_KILLS SEED`.

A warm parent forks a child for each try, which begins or resumes a run, and kills it
after a random time. A run that ended is compared with one that was never killed.
Prints one line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

import dszog.checkpoint.store
from tests.checkpoint.cells import CELLS, Cell

N_ITERATIONS = 40
SAVE_EVERY = (0.0, 0.005, 10.0)  # seconds: after each iteration, now and then, never


def count(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def child(cell: Cell, folder: Path, calls: Path, write: int) -> None:
    handle = os.open(calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def evaluate(number: int) -> None:
        os.write(handle, b".")
        time.sleep(0.0005)  # so that many a kill comes in the middle of it

    cell.before_call = evaluate
    result = cell.run(folder, max_iterations=N_ITERATIONS)
    said = {"digest": result.digest, "nit": result.nit, "x": result.x.tobytes().hex()}
    os.write(write, json.dumps(said).encode())


def fork_and_kill(cell: Cell, folder: Path, calls: Path, delay: float) -> str:
    """Return what the child had to say; nothing if it was killed before."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        with contextlib.suppress(BaseException):
            os.close(read)
            child(cell, folder, calls, write)
            code = 0
        os._exit(code)
    os.close(write)
    time.sleep(delay)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise SystemExit(f"{cell}: the child failed after {count(calls)} calls")
    return said


def main(n_kills: int, seed: int) -> dict[str, int]:
    warnings.simplefilter("ignore", dszog.CheckpointWarning)  # torn tails
    rng = np.random.Generator(np.random.Philox(key=seed))
    found = {"kills": 0, "runs": 0, "mismatches": 0, "lost calls": 0, "most lost": 0}
    expected: dict[str, tuple[str, str, int]] = {}
    while found["kills"] < n_kills:
        cell = CELLS[found["runs"] % len(CELLS)]
        if cell.name not in expected:
            cell.n_calls = 0
            plain = cell.run(max_iterations=N_ITERATIONS)
            bits = plain.x.tobytes().hex()
            expected[cell.name] = (plain.digest, bits, cell.n_calls)
        store = dszog.checkpoint.store
        store.SAVE_EVERY = SAVE_EVERY[found["runs"] % len(SAVE_EVERY)]
        store.SAVE_SHARE = 1.0
        with tempfile.TemporaryDirectory() as name:
            folder, calls = Path(name, "run"), Path(name, "calls")
            n_before, n_tries = found["kills"], 0
            while True:
                delay = float(rng.uniform(0.0, 0.03 + 0.01 * min(n_tries, 20)))
                said = fork_and_kill(cell, folder, calls, delay)
                if said:
                    break
                found["kills"] += 1
                n_tries += 1
            answer = json.loads(said)
            digest, bits, n_calls = expected[cell.name]
            found["runs"] += 1
            found["mismatches"] += answer["digest"] != digest or answer["x"] != bits
            lost = count(calls) - n_calls
            found["lost calls"] += lost
            # Each death costs the batch in flight: here at most four calls.
            n_died = found["kills"] - n_before
            found["most lost"] = max(found["most lost"], lost - 4 * n_died)
    return found


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
