"""Budgets under everything at once: `budget_loop.py FIRST LAST`.

Each number is a random configuration: a method on a problem of some kind, a budget, a
policy for failures, functions that fail, a driver that is killed again and again and
resumed; and for some, workers that are killed as well, so that work is done twice. The
functions write a byte to a file for each call, which nobody else knows of. Prints one
line of JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import dszog
import dszog.save.store
from dszog import METHODS, EvaluationError, InputError
from dszog.workers import Processes
from tests.run.test_budgets import KINDS, Configuration, Counted, OfAMethod
from tests.save.kill_loop import Forked

SHARE_WITH_WORKERS = 0.15
MAX_KILLS = 4  # of the driver; then it is left alone
WORKER_LIFE = 300  # calls, on average, where workers are killed as well
SECONDS = 0.1  # of computing after which a driver is killed, on average


class Written(Counted):
    """Functions that write a byte for each call, and may end a worker."""

    path = ""
    driver = 0
    life = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "n_calls" and self.path:
            self._write(value - self.n_calls)
        super().__setattr__(name, value)

    def _write(self, n_more: int) -> None:
        if n_more <= 0:  # set to zero before the run
            return
        handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(handle, b"." * n_more)
        os.close(handle)
        if not self.life or os.getpid() == self.driver:
            return
        if int.from_bytes(os.urandom(4), "little") < 2**32 / self.life:
            os.kill(os.getpid(), signal.SIGKILL)


def configuration(number: int, method: str = "") -> Configuration:
    """Return one of a kind of problem, or of a method: in turn, or of this name."""
    if number % 2:
        names = tuple(METHODS)
        return OfAMethod(method or names[number // 2 % len(names)], 20_000 + number)
    return Configuration(KINDS[number // 2 % len(KINDS)], 20_000 + number)


def attempt(number: int, folder: Path, calls: Path, *, with_workers: bool) -> str:
    """Begin or resume the run; return what is wrong with its counts, or nothing."""
    one = configuration(number)
    box = one.box
    box.__class__ = Written
    assert isinstance(box, Written)
    box.driver, box.life = os.getpid(), WORKER_LIFE if with_workers else 0
    box.path = str(calls)
    if with_workers:
        subprocess.Popen = Forked  # type: ignore[misc, assignment]
        one.more["evaluator"] = Processes(2)
    one.more |= {"checkpoint": folder, "resume": True}
    try:
        result = one.minimize(one.max_queries)
    except InputError as error:
        return "" if "queries" in str(error) else f"{error}"
    except EvaluationError as error:
        return "" if box.rate or "worker" in str(error) else f"{error}"
    costs = result.costs
    charged = result.nfev + result.ncev + costs.n_retried + costs.n_lost
    if charged > one.max_queries:
        return f"{charged} charged of {one.max_queries}"
    made = calls.stat().st_size if calls.exists() else 0
    return f"{made} made, {charged} charged" if made > charged else ""


def forked(
    number: int, folder: Path, calls: Path, die_after: float, *, with_workers: bool
) -> str | None:
    """Return the complaint of a child; None if it was killed."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        with contextlib.suppress(BaseException):
            os.close(read)
            if die_after and not with_workers:
                # Its default action ends the process at once. Time of computing: a
                # busy machine changes nothing.
                signal.setitimer(signal.ITIMER_PROF, die_after)
            said = attempt(number, folder, calls, with_workers=with_workers)
            os.write(write, b"|" + said.encode()[:2000])
        os._exit(0)
    os.close(write)
    if die_after and with_workers:  # which compute while it waits
        time.sleep(die_after)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(pid, 0)
    if said:
        return said[1:]
    return None if os.WIFSIGNALED(status) else "the child failed"


def main(first: int, last: int) -> dict[str, Any]:
    warnings.simplefilter("ignore")  # of torn tails, and of settings that are odd
    dszog.save.store.SAVE_SHARE = 1e9
    found: dict[str, Any] = {"configurations": 0, "kills": 0, "most over": 0}
    found |= {"with workers": 0, "exceeded": 0, "miscounted": 0, "complaints": []}
    for number in range(first, last):
        rng = np.random.Generator(np.random.Philox(key=number))
        with_workers = bool(rng.random() < SHARE_WITH_WORKERS)
        dszog.save.store.SAVE_EVERY = float(rng.choice([0.0, 0.01, 10.0]))
        budget = configuration(number).max_queries
        with tempfile.TemporaryDirectory() as name:
            folder, calls = Path(name, "run"), Path(name, "calls")
            said: str | None = None
            for n_kills in range(MAX_KILLS + 1):
                delay = rng.exponential(SECONDS) if n_kills < MAX_KILLS else 0.0
                said = forked(number, folder, calls, delay, with_workers=with_workers)
                if said is not None:
                    break
                found["kills"] += 1
            over = max((calls.stat().st_size if calls.exists() else 0) - budget, 0)
        found["configurations"] += 1
        found["with workers"] += with_workers
        found["exceeded"] += over > 0
        found["miscounted"] += bool(said)
        found["most over"] = max(found["most over"], over)
        if said or over:
            found["complaints"].append(f"{number}: {over} over; {said}")
            print(found["complaints"][-1], file=sys.stderr, flush=True)
    return found


def show(first: int, last: int) -> None:
    """Print the same."""
    print(json.dumps(main(first, last)))


if __name__ == "__main__":
    show(int(sys.argv[1]), int(sys.argv[2]))
