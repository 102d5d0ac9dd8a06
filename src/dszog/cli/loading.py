"""A problem out of a user's file, which is named and found nowhere else."""

from __future__ import annotations

import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from dszog.contract.validation import did_you_mean, printable, shown
from dszog.errors import DszogError, InputError
from dszog.problem import Problem


def load_problem(target: str) -> Problem:
    """Return the problem that ``FILE.py:name`` names, or the function there returns."""
    # The file is run as a module of its own. It may import files beside it, which
    # Python looks for last, so that none can hide what is installed; in the current
    # folder it is not looked for.
    path, name = _split(target)
    found = _loaded(path, name)
    if not isinstance(found, Problem):
        raise InputError(
            f"dszog solve: {name!r} in {_label(path)} must be a dszog.Problem or a "
            f"function without arguments that returns one, got {shown(found)}. Write: "
            f"{name} = dszog.Problem(losses, constraints, dim)."
        )
    return found


def load_object(target: str, command: str) -> Any:
    """Return whatever ``FILE.py:name`` names, or the function there returns."""
    try:
        return _loaded(*_split(target))
    except DszogError as error:  # in the words of this command
        said = str(error).replace("dszog solve", f"dszog {command}")
        raise type(error)(said) from error


def _loaded(path: Path, name: str) -> Any:
    """Return what a file names; it is run as a module that can hide no other."""
    # Python knows it by name as long as it is being run, which dataclasses need; not
    # longer, so that its functions are sent to workers whole, not by a name that means
    # nothing there.
    known_as = f"dszog_solve_{path.stem}"
    spec = importlib.util.spec_from_file_location(known_as, path.absolute())
    if spec is None or spec.loader is None:
        raise InputError(
            f"dszog solve: {_label(path)} cannot be read as Python. Check the file."
        )
    module = importlib.util.module_from_spec(spec)
    if (beside := str(path.absolute().parent)) not in sys.path:
        sys.path.append(beside)  # for good: functions may import when they are called
    sys.modules[known_as] = module
    try:
        _run(path, spec.loader.exec_module, module)
        found = _named(module, path, name)
        if callable(found) and not isinstance(found, (type, Problem)):
            if not _takes_nothing(found):
                raise InputError(
                    f"dszog solve: {name!r} in {_label(path)} must take no arguments, "
                    f"got {name}{inspect.signature(found)}. Give them defaults."
                )
            found = _run(path, found)
    finally:
        sys.modules.pop(known_as, None)
    return found


def _split(target: str) -> tuple[Path, str]:
    file, colon, name = target.rpartition(":")
    if not colon or not file or not name.isidentifier():
        raise InputError(
            f"dszog solve: say which problem of which file, got {shown(target)}. For "
            "example: dszog solve model.py:problem."
        )
    path = Path(file)
    if path.suffix != ".py":
        raise InputError(
            f"dszog solve: the file must be Python (.py), got {_label(path)}. Put the "
            "problem into one."
        )
    if not path.is_file():
        raise InputError(
            f"dszog solve: there is no file {_label(path)}. Check the path; it is "
            f"looked up from {shown(os.getcwd(), 200)}."
        )
    return path, name


class UserFileError(DszogError):
    """The file of the user raised something when it was run."""


def _run(path: Path, function: Callable[..., Any], *given: Any) -> Any:
    """Call something of the file; whatever it raises is told with its place."""
    try:
        return function(*given)
    except ModuleNotFoundError as error:
        raise UserFileError(
            f"dszog solve: {_label(path)} imports {error.name!r}, which is neither "
            "installed nor beside it. Install it, or name its folder: "
            "PYTHONPATH=FOLDER dszog solve ... (the current folder is not searched)."
        ) from error
    except (Exception, SystemExit) as error:
        raise _broken(path, error) from error


def _broken(path: Path, error: BaseException) -> UserFileError:
    places = [
        place
        for place in traceback.extract_tb(error.__traceback__)
        if place.filename == str(path.absolute())
    ]
    where = f", line {places[-1].lineno}" if places else ""
    if isinstance(error, SyntaxError) and error.lineno is not None:
        where = f", line {error.lineno}"
    told = printable(str(error)).removesuffix(".")
    return UserFileError(
        f"dszog solve: {_label(path)}{where}: {type(error).__name__}: {told}. Fix the "
        f"file; python {_label(path)} shows more."
    )


def _named(module: ModuleType, path: Path, name: str) -> Any:
    if hasattr(module, name):
        return getattr(module, name)
    problems = [key for key, item in vars(module).items() if _may_be(item, module)]
    hint = did_you_mean(name, problems)
    if not hint and problems:
        hint = f" Problems in it: {', '.join(problems)}."
    if not hint:
        hint = f" Define it: {name} = dszog.Problem(losses, constraints, dim)."
    raise InputError(f"dszog solve: {_label(path)} has no {name!r}.{hint}")


def _may_be(item: Any, module: ModuleType) -> bool:
    """Whether it is a problem, or a function of this file that may return one."""
    is_own = inspect.isfunction(item) and item.__module__ == module.__name__
    return isinstance(item, Problem) or (is_own and _takes_nothing(item))


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function).bind()
    except TypeError:
        return False
    return True


def _label(path: Path) -> str:
    return printable(str(path))
