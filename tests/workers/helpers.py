"""Problems whose functions can be sent anywhere, and what counts as the same run."""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog import Constraints, Losses, Problem, Simulator
from dszog.contract.arrays import FloatArray
from dszog.workers import Dask, Processes, Ray, Threads
from dszog.workers import _fork_server as wire

ANGLES = 2.0 * np.pi * np.arange(30) / 30
ROWS = np.cos(np.arange(60.0)).reshape(20, 3)
HAS = {
    name: importlib.util.find_spec(module) is not None
    for name, module in {"dask": "distributed", "ray": "ray"}.items()
}


def objective(x: FloatArray) -> float:
    return float((x[0] - 2.0) ** 2 + np.sin(x[1]) ** 2 + x[2] ** 2)


def limit(x: FloatArray, j: int) -> float:
    return float(x[0] * np.cos(ANGLES[j]) + x[1] * np.sin(ANGLES[j]) - 1.0)


def scenario(x: FloatArray, i: int) -> tuple[float, FloatArray]:
    return float(np.sum((x - ROWS[i]) ** 2)), x * np.cos(i) - 0.5


def losses_at(points: FloatArray, indices: Any) -> FloatArray:
    return np.asarray(np.tanh(points @ ROWS[indices].T) + points[:, :1] ** 2)


def limits_at(points: FloatArray, indices: Any) -> FloatArray:
    return np.asarray(points @ ROWS[indices].T - 0.7)


def block(x: FloatArray, b: int) -> FloatArray:
    return np.asarray(x * np.sin(b + 1.0) - 0.6)


def _mixed() -> Problem:
    parts = (
        Constraints(limits_at, 20),
        Constraints.blocks(block, 4, 3),
        Constraints.from_function(limit, 30),
        Constraints.linear(ROWS, 1.0),
    )
    return Problem(Losses(losses_at, 20), Constraints.concat(*parts), 3, x_scale=0.3)


PROBLEMS: dict[str, Callable[[], Problem]] = {
    "plain": lambda: Problem(objective, Constraints.from_function(limit, 30), 3),
    "vectorised": lambda: Problem(Losses(losses_at, 20), Constraints(limits_at, 20), 3),
    "in pieces": lambda: Problem(
        Losses(losses_at, 20).in_pieces(3), Constraints(limits_at, 20).in_pieces(7), 3
    ),
    "simulator": lambda: Problem(
        Simulator(scenario, 20, 3), None, 3, bounds=[(-1.0, 1.0)] * 3
    ),
    "mixed": _mixed,
}


def need(name: str) -> None:
    """Skip the test where this kind of workers is not installed."""
    if not HAS.get(name, True):
        pytest.skip(f"{name} is not installed")


def workers(name: str, n: int) -> Any:
    """Return so many workers of a kind, or the name where there is no number."""
    kinds: dict[str, Callable[[], Any]] = {
        "serial": lambda: "serial",
        "threads": lambda: Threads(n),
        "processes": lambda: Processes(n),
        "dask": lambda: Dask(n_workers=n),
        "ray": lambda: Ray(n_workers=n),
    }
    return kinds[name]()


SOLVED_BY: dict[str, dict[str, Any]] = {
    "dszog": {"n_directions": 3, "constraint_batch": 5},
    "sampled_sqp": {},
}


def digest(result: Any) -> str:
    """Return what must not depend on who evaluates, as one word."""
    parts = (
        result.x.tobytes(),
        np.float64(result.fun).tobytes(),
        np.float64(result.maxcv).tobytes(),
        result.history["sampled_objective"].tobytes(),
        result.history["sampled_violation"].tobytes(),
        result.weights[0].tobytes(),
        result.weights[1].tobytes(),
        repr((result.nit, result.nfev, result.ncev, result.status)).encode(),
    )
    return hashlib.sha256(b"".join(parts)).hexdigest()[:16]


def solve(
    problem: Problem, evaluator: Any = "serial", method: str = "dszog", **more: Any
) -> Any:
    """Run some iterations that are the same for everyone."""
    settings: dict[str, Any] = {"seed": 5, "max_iterations": 6, "method": method}
    settings["options"] = SOLVED_BY[method]
    return dszog.minimize(problem, evaluator=evaluator, **(settings | more))


# ------------------------------------------------------ functions that note their calls
@dataclass
class Deadly:
    """Functions that note each call in a file, and end the process now and then.

    The value is a function of the point and the index; whether the process ends is not.
    """

    path: str
    mean_life: float = 20.0  # calls; infinite for functions that do no harm
    pause: float = 0.0  # seconds
    m: int = 30

    def objective(self, x: FloatArray) -> float:
        self._note(x, -1)
        return objective(x)

    def limit(self, x: FloatArray, j: int) -> float:
        self._note(x, j)
        return limit(x, j)

    def _note(self, x: FloatArray, j: int) -> None:
        name = hashlib.sha256(x.tobytes()).hexdigest()[:16]
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(descriptor, f"{name} {j}\n".encode())
        os.close(descriptor)
        time.sleep(self.pause)
        if int.from_bytes(os.urandom(4), "little") < 2**32 / self.mean_life:
            os.kill(os.getpid(), signal.SIGKILL)

    def problem(self) -> Problem:
        constraints = Constraints.from_function(self.limit, self.m)
        return Problem(self.objective, constraints, 3)

    def calls(self) -> Counter[str]:
        """Return how often each point and index was evaluated."""
        path = Path(self.path)
        return Counter(path.read_text().splitlines() if path.exists() else [])


def living() -> dict[int, int]:
    """Return the processes that live, and their parents (Linux)."""
    parents = {}
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if fields[0] != "Z":
            parents[int(status.parent.name)] = int(fields[1])
    return parents


def children() -> set[int]:
    """Return the processes below this one (Linux)."""
    parents = living()
    found: set[int] = set()
    ahead = {os.getpid()}
    while ahead:
        ahead = {pid for pid, parent in parents.items() if parent in ahead} - found
        found |= ahead
    return found


# ------------------------------------------------------------ functions that go wrong
class OddError(Exception):
    """An exception that can neither be pickled nor shown."""

    def __init__(self, a: int, b: int) -> None:
        self.lock = threading.Lock()

    def __str__(self) -> str:
        return "odd one"


def odd(x: FloatArray, j: int) -> float:
    raise OddError(1, 2)


class UnpickledBy:
    """A limit that a worker makes by a function of its own."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._made = function, arguments

    def __call__(self, x: FloatArray, j: int) -> float:
        return 0.0

    def __reduce__(self) -> Any:
        return self._made


def fail_here() -> Any:
    raise RuntimeError("not here")


def make_slowly() -> Any:
    time.sleep(1.0)
    return limit


loaded: dict[str, bool] = {}  # of this process


def load_slowly() -> None:
    time.sleep(1.0)
    loaded["model"] = True


def scenario_of_model(x: FloatArray, i: int) -> tuple[float, FloatArray]:
    """Load what it needs at the first call, unless that was done before."""
    if not loaded:
        load_slowly()
    return scenario(x, i)


def fail_to_load() -> None:
    raise OSError("no licence left")


def load_for_too_long() -> None:
    time.sleep(8.0)


@dataclass
class WantsToLeave:
    """A limit that raises KeyboardInterrupt once, wherever it is called."""

    path: str  # of a file that says that it did

    def __call__(self, x: FloatArray, j: int) -> float:
        if j == 7:
            with contextlib.suppress(FileExistsError), open(self.path, "x"):
                raise KeyboardInterrupt
        return limit(x, j)


@dataclass(frozen=True)
class AtSeven:
    """A limit that does something else at one index."""

    action: Callable[[], object]

    def __call__(self, x: FloatArray, j: int) -> float:
        if j == 7:
            self.action()
        return limit(x, j)


def never_come_back() -> None:
    np.ones(2**26).cumsum().sum()  # in C, with Python's lock held
    "a" * 10 + str(10**400_000 % 7)
    sum(range(10**12))


leave = AtSeven(partial(os._exit, 0))
leave_politely = AtSeven(partial(sys.exit, 0))
crash = AtSeven(partial(signal.raise_signal, signal.SIGSEGV))
stop_itself = AtSeven(partial(signal.raise_signal, signal.SIGSTOP))
sleep_long = AtSeven(partial(time.sleep, 1e6))
stay_away = AtSeven(never_come_back)


@dataclass
class Misbehaves:
    """A limit that does one thing too many, the first `n` times that it is called."""

    folder: str  # of files that say what was done
    how: str
    n: int = 1

    def __call__(self, x: FloatArray, j: int) -> float:
        for number in range(self.n):
            with contextlib.suppress(FileExistsError):
                with open(Path(self.folder, str(number)), "x") as note:
                    note.write(str(getattr(self, self.how)()))
                    note.flush()
                if self.how.endswith("die"):
                    os._exit(1)
                break
        return limit(x, j)

    def fork_and_die(self, fork: Callable[[], int] = os.fork) -> int:
        if child := fork():
            return child
        time.sleep(LONG)
        os._exit(0)

    def fork_in_c_and_die(self) -> int:
        return self.fork_and_die(ctypes.CDLL(None).fork)

    def start_a_program_and_die(self) -> int:
        return subprocess.Popen(["sleep", str(LONG)], close_fds=False).pid

    def fork_and_return(self) -> int:
        return os.fork()

    def write_everywhere(self) -> int:
        return _write_everywhere(os.urandom(1000))

    def write_a_little_everywhere(self) -> int:
        return _write_everywhere(b"abc")

    def write_a_long_message_everywhere(self) -> int:
        """Write how a message begins that will never be whole."""
        head = wire.HEAD.pack(wire.ANSWER, 1, 0, 2**40)
        return _write_everywhere(wire.MARK + wire.CRC.pack(zlib.crc32(head)) + head)


LONG = 30.0  # seconds that a child lives, if nobody ends it


def _write_everywhere(garbage: bytes) -> int:
    for descriptor in range(3, 256):
        with contextlib.suppress(OSError):
            os.write(descriptor, garbage)
    return 0
