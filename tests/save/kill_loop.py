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
from collections.abc import Callable
from functools import partial
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


def note_calls(path: Path, n: int = 1) -> None:
    """Write a byte for each call, before it is made."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(handle, b"." * n)
    os.close(handle)


def forked(work: Callable[[], str], kill_after: float | None) -> tuple[str | None, int]:
    """Return what a child has to say of its work, and how it ended.

    It says nothing, None, if it was killed before or if it failed.
    """
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        code = 1
        with contextlib.suppress(BaseException):
            os.close(read)
            os.write(write, b"|" + work().encode())
            code = 0
        os._exit(code)
    os.close(write)
    if kill_after is not None:
        time.sleep(kill_after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    return said[1:] if said else None, os.waitpid(pid, 0)[1]


def attempt(
    cell: Cell, evaluator: str, folder: Path, calls: Path, mark: str, is_quick: bool
) -> str:
    """Begin or resume a run; return what has to be the same each time."""

    def before(number: int) -> None:
        note_calls(calls)
        time.sleep(0.0005)  # so that many a kill comes in the middle of it

    os.environ[MARK] = mark
    if is_quick:
        subprocess.Popen = Forked  # type: ignore[misc, assignment]
    who = Processes(2) if evaluator == "processes" else evaluator
    one = cell.fresh(before)
    result = one.run(folder, max_iterations=N_ITERATIONS, evaluator=who)
    return json.dumps([result.digest, result.x.tobytes().hex()])


def main(n_kills: int, seed: int, evaluator: str) -> dict[str, int]:
    warnings.simplefilter("ignore", dszog.CheckpointWarning)  # torn tails
    rng = np.random.Generator(np.random.Philox(key=seed))
    found = {"kills": 0, "runs": 0, "mismatches": 0, "lost calls": 0, "most lost": 0}
    found["orphans"] = 0
    expected: dict[str, tuple[list[str], int]] = {}
    while found["kills"] < n_kills:
        cell = CELLS[found["runs"] % len(CELLS)]
        if cell.name not in expected:
            one = cell.fresh()
            plain = one.run(max_iterations=N_ITERATIONS)
            bits = [plain.digest, plain.x.tobytes().hex()]
            expected[cell.name] = bits, one.n_calls
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
                again = cell, evaluator, folder, calls, marks[-1], is_quick
                said, status = forked(partial(attempt, *again), delay)
                if os.WIFEXITED(status) and os.WEXITSTATUS(status):
                    after = f"after {count(calls)} calls"
                    raise SystemExit(f"{cell}: the child failed {after}")
                if said is not None:
                    break
            n_died = len(marks) - 1
            if evaluator == "processes":
                found["orphans"] += orphans(marks)
            bits, n_calls = expected[cell.name]
            found["runs"] += 1
            found["kills"] += n_died
            found["mismatches"] += json.loads(said) != bits
            lost = count(calls) - n_calls
            found["lost calls"] += lost
            # Each death costs the batch in flight: here at most four calls.
            found["most lost"] = max(found["most lost"], lost - 4 * n_died)
        print(found, file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])))
