"""Kill runs again and again until they end: `kill_loop.py N_KILLS SEED EVALUATOR`.

A warm parent forks a child for each try, which begins or resumes a run, and kills it
after a random time. A run that ended is compared with one that was never killed, which
had no workers. Workers of killed runs have to end by themselves. Prints one line of
JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import dszog.save.store
from dszog.workers import Processes, _fork_server
from tests.save.cells import CELLS, Cell

N_ITERATIONS = 40
SAVE_EVERY = (0.0, 0.005, 10.0)  # seconds: after each iteration, now and then, never
MARK = "DSZOG_KILL_LOOP"  # in the environment of all processes of a try
PATIENCE = {"serial": 0.03, "processes": 0.15}  # seconds for a child at first, at most
MORE = 1.15  # times as many with each try: machines may be busy
SLOW_EVERY = 10  # runs: one has a new process to start workers, and not a fork
ORPHAN_PATIENCE = 10.0  # seconds for workers to notice that their run is gone


def count(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def orphans(marks: list[str]) -> int:
    """Return how many processes of these tries do not end."""
    wanted = [f"{MARK}={mark}".encode() for mark in marks]
    deadline = time.monotonic() + ORPHAN_PATIENCE
    while True:
        alive = sum(
            any(mark in environment for mark in wanted)
            for environment in map(environment_of, Path("/proc").glob("[0-9]*"))
        )
        if not alive or time.monotonic() > deadline:
            return alive
        time.sleep(0.1)


def environment_of(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:  # it ended, or is another user's
        return b""


class Forked:
    """Stands in for `subprocess.Popen`: the process that starts workers, forked.

    It does what it always does, but for the second that importing takes.
    """

    def __init__(self, words: list[str], *, pass_fds: list[int], **more: Any) -> None:
        self.pid = os.fork()
        if self.pid:
            return
        with contextlib.suppress(BaseException):
            os.setsid()
            first = 3  # after the standard ones
            for kept in [*sorted(pass_fds), os.sysconf("SC_OPEN_MAX")]:
                os.closerange(first, kept)
                first = kept + 1
            _fork_server.main(int(words[3]))
        os._exit(0)

    def wait(self, timeout: float | None = None) -> None:
        deadline = time.monotonic() + (timeout or ORPHAN_PATIENCE)
        while not os.waitpid(self.pid, os.WNOHANG)[0]:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(
                    "fork server", timeout or ORPHAN_PATIENCE
                )
            time.sleep(0.001)


class Evaluate:
    """What happens before each call: it is noted, and takes a while."""

    def __init__(self, calls: Path) -> None:
        self._calls = str(calls)

    def __call__(self, number: int) -> None:
        handle = os.open(self._calls, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(handle, b".")
        os.close(handle)
        time.sleep(0.0005)  # so that many a kill comes in the middle of it


def child(cell: Cell, evaluator: str, folder: Path, calls: Path, write: int) -> None:
    cell.before_call = Evaluate(calls)
    who = Processes(2) if evaluator == "processes" else evaluator
    result = cell.run(folder, max_iterations=N_ITERATIONS, evaluator=who)
    said = {"digest": result.digest, "nit": result.nit, "x": result.x.tobytes().hex()}
    os.write(write, json.dumps(said).encode())


def fork_and_kill(
    cell: Cell,
    evaluator: str,
    folder: Path,
    calls: Path,
    delay: float,
    mark: str,
    is_quick: bool,
) -> str:
    """Return what the child had to say; nothing if it was killed before."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        with contextlib.suppress(BaseException):
            os.close(read)
            os.environ[MARK] = mark
            if is_quick:
                subprocess.Popen = Forked  # type: ignore[misc, assignment]
            child(cell, evaluator, folder, calls, write)
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


def main(n_kills: int, seed: int, evaluator: str) -> dict[str, int]:
    warnings.simplefilter("ignore", dszog.CheckpointWarning)  # torn tails
    rng = np.random.Generator(np.random.Philox(key=seed))
    found = {"kills": 0, "runs": 0, "mismatches": 0, "lost calls": 0, "most lost": 0}
    found["orphans"] = 0
    expected: dict[str, tuple[str, str, int]] = {}
    while found["kills"] < n_kills:
        cell = CELLS[found["runs"] % len(CELLS)]
        if cell.name not in expected:
            cell.n_calls = 0
            cell.before_call = lambda number: None
            plain = cell.run(max_iterations=N_ITERATIONS)
            bits = plain.x.tobytes().hex()
            expected[cell.name] = (plain.digest, bits, cell.n_calls)
        store = dszog.save.store
        store.SAVE_EVERY = SAVE_EVERY[found["runs"] % len(SAVE_EVERY)]
        store.SAVE_SHARE = 1.0
        is_quick = evaluator == "serial" or found["runs"] % SLOW_EVERY != 0
        patience = PATIENCE[evaluator] * (1.0 if is_quick else 4.0)
        marks: list[str] = []
        with tempfile.TemporaryDirectory() as name:
            folder, calls = Path(name, "run"), Path(name, "calls")
            while True:
                delay = float(rng.uniform(0.0, patience * MORE ** len(marks)))
                marks.append(secrets.token_hex(8))
                said = fork_and_kill(
                    cell, evaluator, folder, calls, delay, marks[-1], is_quick
                )
                if said:
                    break
            n_died = len(marks) - 1
            if evaluator == "processes":
                found["orphans"] += orphans(marks)
            answer = json.loads(said)
            digest, bits, n_calls = expected[cell.name]
            found["runs"] += 1
            found["kills"] += n_died
            found["mismatches"] += answer["digest"] != digest or answer["x"] != bits
            lost = count(calls) - n_calls
            found["lost calls"] += lost
            # Each death costs the batch in flight: here at most four calls.
            found["most lost"] = max(found["most lost"], lost - 4 * n_died)
        print(found, file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
