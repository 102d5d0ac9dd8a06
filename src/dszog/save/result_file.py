"""Results on disk: one file, checked, never executed, whole or not there."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from dszog.contract.validation import printable
from dszog.errors import CheckpointError, DszogError, InputError, InputTypeError
from dszog.methods import METHODS
from dszog.methods.slopes import SlopesDSZOG
from dszog.run.result import Result
from dszog.save.container import read
from dszog.save.encoding import NO_SIZE, encode, pack_value, settings_of, value_in
from dszog.save.files import check_path, write_whole
from dszog.status import Status

KINDS = {kind.__name__: kind for kind in (*METHODS.values(), SlopesDSZOG)}


def save_result(path: str | PathLike[str], result: Result) -> None:
    """Write a result to a file; see ``Result.save``."""
    content = dict(result)
    if "success" in result:
        content["success"] = bool(result.success)
    if "method" in result:
        try:
            content["method"] = settings_of(result.method)
        except InputError:  # of the user's own
            content["method"] = {"type": type(result.method).__name__}
    for name, value in content.items():
        try:
            encode(value, [])
        except CheckpointError:
            raise InputTypeError(
                f"Result.save: the entry {name!r} cannot be saved, got a "
                f"{type(value).__name__}. Take it out, or save it beside: del "
                f"result[{name!r}]."
            ) from None
    where = check_path("Result.save", path, "monday.result")
    write_whole(where, pack_value({"kind": "result"}, content))


def load_result(path: str | PathLike[str]) -> Result:
    """Read a result that ``result.save(path)`` wrote.

    Returns
    -------
    Result
        With the same entries: it prints, draws and tells the same. The method is
        there with its settings; one of your own is the name of its type.

    Raises
    ------
    CheckpointError
        If the file is damaged, or holds something else.

    Examples
    --------
    >>> import tempfile
    >>> import dszog
    >>> result = dszog.minimize(lambda x: float(x @ x), [1.0], bounds=[(0.5, 2.0)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result.save(f"{folder}/monday.result")
    ...     again = dszog.load_result(f"{folder}/monday.result")
    >>> again.x, str(again) == str(result)
    (array([0.5]), True)
    """
    where = check_path("load_result", path, "monday.result")
    try:
        facts, arrays = read(where)
        content = value_in(arrays, NO_SIZE)
        if facts.get("kind") != "result" or not isinstance(content, dict):
            raise CheckpointError("it holds no result")
        return Result({name: _made(name, entry) for name, entry in content.items()})
    except (CheckpointError, ValueError, TypeError) as error:
        raise CheckpointError(
            f"The result {printable(str(where))!r} cannot be used: {error}."
        ) from error


def _made(name: str, entry: Any) -> Any:
    """Return an entry as `minimize` gave it."""
    if name == "status":
        return Status(entry)
    if name == "x":
        return np.array(entry)  # the caller's to write to
    kind = KINDS.get(entry.get("type")) if name == "method" else None
    if kind is None:
        return entry
    try:
        return kind(**{one: value for one, value in entry.items() if one != "type"})
    except (DszogError, TypeError):  # of another version
        return entry
