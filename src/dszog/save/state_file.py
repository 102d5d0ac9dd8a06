"""States of methods on disk, for those who ask and tell by hand.

`minimize(checkpoint=...)` saves whole runs by itself. Here is what is left to those who
hold the loop: one file for a state, checked, never executed, whole or not there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from os import PathLike
from typing import Any

import numpy as np

from dszog.contract import ProblemSize
from dszog.contract.validation import printable, shown
from dszog.errors import (
    CheckpointError,
    CheckpointWriteError,
    InputError,
    InputTypeError,
)
from dszog.methods import Method, State
from dszog.save.container import read
from dszog.save.encoding import (
    check_weights_of,
    pack_value,
    value_in,
)
from dszog.save.files import check_path, write_whole
from dszog.save.fingerprint import defaults, differences, facts_of


def save_state(path: str | PathLike[str], method: Method, state: Any) -> None:
    """Write the state of a method to a file, from which it goes on bit for bit.

    The file is whole under its name or not there: the one that it replaces stays until
    then. What the queries are follows from the state, so they need not be saved; keep
    answers that are not told yet wherever you like.

    Parameters
    ----------
    path : path
        Of the file; an earlier one of that name is replaced.
    method : Method
        The method, whose settings are noted in the file.
    state : State
        What ``method.init`` or ``method.tell`` returned.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import dszog
    >>> method = dszog.DSZOG(step_size=0.1)
    >>> size = dszog.ProblemSize(
    ...     dim=2,
    ...     n_losses=1,
    ...     n_constraints=3,
    ...     lower=np.zeros(2),
    ...     upper=np.ones(2),
    ... )
    >>> state = method.init(np.zeros(2), size, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_state(f"{folder}/monday.state", method, state)
    ...     again = load_state(f"{folder}/monday.state", method, size)
    >>> again.iteration, again.x
    (0, array([0., 0.]))
    """
    if not isinstance(state, State):
        raise InputTypeError(
            f"save_state: `state` must be the state of a method, got {shown(state)}. "
            "Pass what method.init or method.tell returned (tell returns it first)."
        )
    facts = {"kind": "state", "about": _about("save_state", method, state.size)}
    where = check_path("save_state", path, "monday.state")
    try:
        write_whole(where, pack_value(facts, state))
    except CheckpointWriteError as error:
        raise CheckpointWriteError(
            f"The state {printable(str(where))!r} could not be written; an earlier one "
            "of that name is as it was. Give a folder that is there, is yours and has "
            "room."
        ) from error


def load_state(path: str | PathLike[str], method: Method, size: ProblemSize) -> Any:
    """Read a state that :func:`save_state` wrote.

    Parameters
    ----------
    path : path
    method : Method
        Set as it was when the state was saved; another one is refused.
    size : ProblemSize
        Of the problem, likewise.

    Returns
    -------
    State
        The state, to the bit: ``method.ask`` asks what it would have asked.

    Raises
    ------
    CheckpointError
        If the file is damaged, or of another method or problem.
    """
    where = check_path("load_state", path, "monday.state")
    if not isinstance(size, ProblemSize):
        raise InputTypeError(
            f"load_state: `size` must be the size of the problem, got {shown(size)}. "
            "Pass problem.size, or dszog.ProblemSize(dim=..., ...)."
        )
    try:
        facts, arrays = read(where)
        about = facts.get("about")
        if facts.get("kind") != "state" or not isinstance(about, dict):
            raise CheckpointError("it holds a run, not a state")
        here = _about("load_state", method, size)
        there = {str(name): str(text) for name, text in about.items()}
        other = differences(defaults(method) | there, here)
        if other:
            raise CheckpointError(
                f"it is of another method or problem, which differs in: "
                f"{'; '.join(other)}. Set them as they were, or begin anew with "
                "method.init"
            )
        state = value_in(arrays, size)
        if not isinstance(state, State):
            raise CheckpointError("it has no content")
        _check_numbers(state)
    except CheckpointError as error:
        raise CheckpointError(
            f"The state {printable(str(where))!r} cannot be used: {error}."
        ) from error
    return state


def _about(owner: str, method: Any, size: ProblemSize) -> dict[str, str]:
    """Return what has to be the same for a state to go on, as short texts."""
    try:
        facts = facts_of(size, method)
    except InputError:
        raise InputTypeError(
            f"{owner}: `method` must be a method of the library, got {shown(method)}. "
            "Pass the instance that asks, such as dszog.DSZOG()."
        ) from None
    facts["lower bounds"] = _digest(size.lower)
    facts["upper bounds"] = _digest(size.upper)
    return {name: repr(value) for name, value in facts.items()}


def _digest(bounds: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(bounds).tobytes()).hexdigest()[:16]


# ------------------------------------------------- numbers that a method leaves behind


def _check_numbers(state: State) -> None:
    """Refuse a state whose numbers no method can have left behind."""
    for name, number in _floats_in("state", state):
        if not np.isfinite(number).all():
            raise CheckpointError(f"`{name}` in it is not finite")
    check_weights_of(state)


def _floats_in(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the numbers of what was decoded, with the names of their fields."""
    if isinstance(value, ProblemSize):  # of the caller; bounds may be infinite
        return
    if is_dataclass(value):
        for item in fields(value):
            yield from _floats_in(item.name, getattr(value, item.name))
    elif isinstance(value, float) or (
        isinstance(value, np.ndarray) and value.dtype.kind == "f"
    ):
        yield name, value
