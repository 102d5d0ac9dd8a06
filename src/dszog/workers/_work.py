"""What a worker in another process does with a piece of work."""

from __future__ import annotations

import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager

from dszog.errors import DszogError
from dszog.problem import Problem
from dszog.workers._parcel import unpack_problem
from dszog.workers._supervisor import Done
from dszog.workers._wire import pack_replies, unpack_parts, unpack_replies
from dszog.workers.base import answer

_problems: dict[str, Problem] = {}  # of this process; one run has one problem
SECONDS = struct.Struct("<d")
INTERRUPTED = SECONDS.pack(-1.0)  # in the place of an answer
KEPT = 4  # problems that a worker of several runs remembers


def work(problem: Problem, message: bytes) -> bytes:
    """Return the seconds that a piece took, and its answer.

    A ``KeyboardInterrupt`` of the user's function ends the run as it does without
    workers; what runs workers would take it for its own, or for the end of the worker.
    """
    before = time.perf_counter()
    try:
        answered = pack_replies(answer(problem, unpack_parts(message)))
    except KeyboardInterrupt:
        return INTERRUPTED
    return SECONDS.pack(time.perf_counter() - before) + answered


def work_on(name: str, parcel: bytes, message: bytes) -> bytes:
    """Return the answer to a piece about a problem, which is unpacked only once."""
    problem = _problems.get(name)
    if problem is None:
        problem = unpack_problem(parcel)
        while len(_problems) >= KEPT:
            _problems.pop(next(iter(_problems)), None)
        _problems[name] = problem
    return work(problem, message)


def work_if_known(name: str, message: bytes) -> bytes | None:
    """Return the answer to a piece; None if this process lacks the problem."""
    problem = _problems.get(name)
    return None if problem is None else work(problem, message)


@contextmanager
def ended_after(seconds: float | None) -> Iterator[None]:
    """Have the system end this process if the block takes longer.

    The signal's default action needs neither the main thread nor Python's lock, so it
    also ends code that never comes back to Python.
    """
    if seconds is None:
        yield
        return
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def received(attempt: int, returned: bytes) -> Done:
    """Return what a worker sent, in the process that asked for it."""
    if returned == INTERRUPTED:
        raise KeyboardInterrupt
    (seconds,) = SECONDS.unpack_from(returned)
    return Done(attempt, unpack_replies(returned[SECONDS.size :]), seconds)


def refuse_if_unusable(error: BaseException) -> None:
    """Raise where the workers of a cluster cannot unpack the problem at all."""
    if isinstance(error, (ImportError, AttributeError)):
        raise DszogError(
            f"The problem cannot be unpacked in a worker: {type(error).__name__}: "
            f"{error}. Make dszog and the modules of your functions importable there."
        ) from error
