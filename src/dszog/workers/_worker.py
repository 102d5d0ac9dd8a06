"""What happens in a worker of another process: it gets the problem and answers pieces.

The only place where anything is pickled: the user's own functions, on their way to
workers that the user asked for. What comes back is plain numbers and text: a message is
a tree of JSON, with the shape of each array in its place, and then the numbers of the
arrays. Who receives it builds arrays, parts, replies and failures of it and can be made
to do nothing else.
"""

from __future__ import annotations

import json
import math
import pickle
import signal
import struct
import time
import traceback
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dszog.contract import Failure, Query, Reply
from dszog.contract.arrays import freeze
from dszog.errors import EvaluationError, InputError
from dszog.problem import Problem
from dszog.workers.base import answer

_LENGTH = struct.Struct("<I")
_KINDS = {"f": np.dtype(np.float64), "i": np.dtype(np.int64)}
FAILURE = tuple(item.name for item in fields(Failure))
MAX_TEXT = 20_000  # characters of a message or a traceback that travel


def pack_parts(parts: Sequence[Query]) -> bytes:
    return _pack(
        [
            [p.known_points, p.iteration, p.purpose, p.want, p.losses, p.constraints]
            for p in parts
        ]
    )


def unpack_parts(message: bytes) -> list[Query]:
    return [
        Query.at_points(
            points,
            iteration=iteration,
            purpose=purpose,
            want=want,
            losses=losses,
            constraints=constraints,
        )
        for points, iteration, purpose, want, losses, constraints in _unpack(message)
    ]


def pack_answer(replies: Sequence[Reply], seconds: float) -> bytes:
    return _pack([seconds, *replies])


def unpack_answer(message: bytes) -> tuple[list[Reply], float]:
    seconds, *replies = _unpack(message)
    return [
        Reply._make((*tables, tuple(_failure(*fields) for fields in failures)))
        for *tables, failures in replies
    ], seconds


def _failure(*fields: Any) -> Failure:
    found = Failure(**dict(zip(FAILURE, fields, strict=True)))
    if found.error is None:
        return found
    return replace(found, error=EvaluationError(f"In a worker:\n{found.error}"))


def _pack(tree: Any) -> bytes:
    arrays: list[bytes] = []

    def plain(value: Any) -> Any:
        """Return an array as its shape, a failure as its fields, an error as text."""
        if isinstance(value, np.ndarray):
            arrays.append(value.tobytes())
            return {value.dtype.kind: value.shape}
        if isinstance(value, Failure):
            made = [getattr(value, name) for name in FAILURE]
            return [one[:MAX_TEXT] if isinstance(one, str) else one for one in made]
        try:
            lines = traceback.format_exception(value)
        except Exception:  # noqa: BLE001  (an exception of the user's may do anything)
            lines = [type(value).__name__]
        return "".join(lines)[-MAX_TEXT:]

    text = json.dumps(tree, default=plain, separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *arrays])


def _unpack(message: bytes) -> Any:
    place = _LENGTH.size + _LENGTH.unpack_from(message)[0]
    text = message[_LENGTH.size : place]

    def array_of(found: dict[str, Any]) -> Any:
        nonlocal place
        ((kind, shape),) = found.items()
        start, place = place, place + 8 * math.prod(shape)
        # A copy: bytes need not lie where numbers like to lie.
        numbers = np.frombuffer(message[start:place], dtype=_KINDS[kind])
        return freeze(numbers.reshape(shape).copy())

    return json.loads(text, object_hook=array_of)


INTERRUPTED = b"interrupted"  # in the place of an answer

_CURE = (
    'pip install "dszog[processes]", which can send any function; or define the '
    "function at the top of a module that can be imported; or use evaluator='threads'."
)


def pickle_problem(problem: Problem) -> bytes:
    """Return the problem as bytes."""
    pickler = import_pickler()
    try:
        pickled: bytes = pickler.dumps(problem, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        cure = _CURE if pickler is pickle else "use evaluator='threads'."
        raise InputError(
            f"minimize: the problem cannot be sent to other processes, got "
            f"{type(error).__name__}: {error}. Leave what cannot be sent (open files, "
            f"locks, connections) to the function to open by itself; {cure}"
        ) from error
    if pickler is pickle and b"__main__" in pickled:
        raise InputError(
            "minimize: workers cannot import functions of a script or notebook, got "
            f"one of __main__. Do one of these: {_CURE}"
        )
    return pickled


def import_pickler() -> Any:
    """Return cloudpickle if it is there, else pickle."""
    try:
        import cloudpickle
    except ImportError:
        return pickle
    return cloudpickle


def unpickle_problem(pickled: bytes) -> Problem:
    problem: Problem = pickle.loads(pickled)
    return problem


def work(problem: Problem, message: bytes) -> bytes:
    """Return the answer to a piece."""
    # A ``KeyboardInterrupt`` of the user's function ends the run as it does without
    # workers; what runs workers would take it for its own, or for the end of the
    # worker.
    before = time.perf_counter()
    try:
        replies = answer(problem, unpack_parts(message))
        return pack_answer(replies, time.perf_counter() - before)
    except KeyboardInterrupt:
        return INTERRUPTED


class Actor:
    """What a cluster keeps in a worker: it answers piece after piece of one run."""

    def __init__(self, pickled: bytes, timeout: float | None) -> None:
        self._pickled = pickled
        self._timeout = timeout
        self._problem: Problem | None = None

    def begin(self) -> None:
        """Do nothing: that it returns says that the actor is there."""

    def work(self, message: bytes) -> bytes:
        """Return the answer to a piece; have the system end what takes too long."""
        # The signal's default action needs neither the main thread nor Python's lock,
        # so it also ends code that never comes back to Python.
        if self._problem is None:
            self._problem = unpickle_problem(self._pickled)
            self._problem.prepare()
        if self._timeout is not None:
            signal.setitimer(signal.ITIMER_REAL, self._timeout)
        try:
            return work(self._problem, message)
        finally:
            if self._timeout is not None:
                signal.setitimer(signal.ITIMER_REAL, 0.0)
