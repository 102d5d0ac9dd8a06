"""The problem as bytes, for workers in other processes.

The only place where anything is pickled: the user's own functions, on their way to
workers that the user asked for. What comes back is plain numbers and text.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, TypeAlias

from dszog.errors import InputError
from dszog.problem import Problem

Initializer: TypeAlias = Callable[[], Any]

_CURE = (
    'pip install "dszog[processes]", which can send any function; or define the '
    "function at the top of a module that can be imported; or use evaluator='threads'."
)


def pack_problem(problem: Problem, initializer: Initializer | None = None) -> bytes:
    """Return the problem as bytes, with what a worker is to do before it begins.

    Both at once, so that functions of one notebook see the same variables there.

    Raises
    ------
    InputError
        If it holds something that cannot be sent, such as an open file; or a lambda or
        a function of a script or notebook while cloudpickle is not installed.
    """
    sender = _sender()
    try:
        parcel: bytes = sender.dumps(
            (problem, initializer), protocol=pickle.HIGHEST_PROTOCOL
        )
    except Exception as error:
        cure = _CURE if sender is pickle else "use evaluator='threads'."
        raise InputError(
            f"minimize: the problem cannot be sent to other processes, got "
            f"{type(error).__name__}: {error}. Leave what cannot be sent (open files, "
            f"locks, connections) to the function to open by itself; {cure}"
        ) from error
    if sender is pickle and b"__main__" in parcel:
        raise InputError(
            "minimize: workers cannot import functions of a script or notebook, got "
            f"one of __main__. Do one of these: {_CURE}"
        )
    return parcel


def _sender() -> Any:
    try:
        import cloudpickle
    except ImportError:
        return pickle
    return cloudpickle


def unpack_parcel(parcel: bytes) -> tuple[Problem, Initializer | None]:
    """Return the problem and what to do before it is used, in a worker."""
    problem: Problem
    initializer: Initializer | None
    problem, initializer = pickle.loads(parcel)
    return problem, initializer


def unpack_problem(parcel: bytes) -> Problem:
    """Return the problem, in a worker that has nothing to do before."""
    return unpack_parcel(parcel)[0]


def preload() -> None:
    """Import what unpacking needs, once for all workers that are forked."""
    _sender()
