"""Budgets under everything at once: `budget_loop.py FIRST LAST`.

Each number is a random configuration: a method on a problem of some kind, a budget, a
policy for failures, functions that fail, a driver that is killed again and again and
resumed; and for some, workers that are killed as well, so that work is done twice. The
functions write a byte to a file for each call, which nobody else knows of. Prints one
line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dszog
import dszog.save.store
from dszog import METHODS, EvaluationError, InputError
from dszog.workers import Processes
from tests.run.test_budgets import KINDS, Configuration, Counted, OfAMethod
from tests.save.cells import charged
from tests.save.kill_loop import Forked, count, forked, note_calls

SHARE_WITH_WORKERS = 0.15
MAX_KILLS = 4  # of the driver; then it is left alone
WORKER_LIFE = 300  # calls, on average, where workers are killed as well
SECONDS = 0.1  # of computing after which a driver is killed, on average


class Written(Counted):
    """Functions that write a byte for each call, and may end a worker."""

    path: Path | None = None
    driver = 0
    life = 0

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "n_calls" and self.path:
            self._note(self.path, value - self.n_calls)
        super().__setattr__(name, value)

    def _note(self, path: Path, n_more: int) -> None:
        if n_more <= 0:  # set to zero before the run
            return
        note_calls(path, n_more)
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


def attempt(
    number: int, folder: Path, calls: Path, delay: float | None, with_workers: bool
) -> str:
    """Begin or resume the run; return what is wrong with its counts, or nothing."""
    if delay and not with_workers:
        # Its default action ends the process at once. Time of computing: a busy
        # machine changes nothing.
        signal.setitimer(signal.ITIMER_PROF, delay)
    one = configuration(number)
    box = one.box
    box.__class__ = Written
    assert isinstance(box, Written)
    box.driver, box.life = os.getpid(), WORKER_LIFE if with_workers else 0
    box.path = calls
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
    n_charged, n_made = charged(result), count(calls)
    if n_charged > one.max_queries:
        return f"{n_charged} charged of {one.max_queries}"
    return f"{n_made} made, {n_charged} charged" if n_made > n_charged else ""


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
                delay = rng.exponential(SECONDS) if n_kills < MAX_KILLS else None
                again = number, folder, calls, delay, with_workers
                # Workers compute while the driver waits.
                kill_after = delay if with_workers else None
                said, status = forked(partial(attempt, *again), kill_after)
                if said is None and not os.WIFSIGNALED(status):
                    said = "the child failed"
                if said is not None:
                    break
                found["kills"] += 1
            over = max(count(calls) - budget, 0)
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
