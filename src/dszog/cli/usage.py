"""What is told to somebody who typed something that is not understood."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, get_args, get_origin

from cyclopts import CoercionError, CycloptsError, MissingArgumentError

from dszog.contract.validation import did_you_mean, printable, shown


def told(error: CycloptsError, typed: Sequence[str], commands: Iterable[str]) -> str:
    """Return one line: what is wrong, what was got, and where help is.

    Parameters
    ----------
    error : CycloptsError
    typed : sequence of str
        All words after ``dszog``.
    commands : iterable of str
        The commands and options that there are.
    """
    known = list(commands)
    command = [word for word in typed[:1] if word in known and word[:1] != "-"]
    text = _in_our_words(error) or " ".join(str(error).split())
    if not command and "Did you mean" not in text:
        text += did_you_mean(" ".join(typed[:1]), known)
    name = " ".join(["dszog", *command])
    return printable(f"{name}: {text} See: {name} --help.")


def _in_our_words(error: CycloptsError) -> str:
    """Return a message of our own where that of the parser is poor, else nothing."""
    if error.argument is None:
        return ""
    name = error.argument.name
    if isinstance(error, MissingArgumentError):
        if error.keyword is not None:
            return f"{error.keyword} needs a value, got none."
        choices = _choices(error.argument.hint)
        listed = f" Give one of {', '.join(map(repr, choices))}." if choices else ""
        return f"{name} is missing.{listed}"
    if isinstance(error, CoercionError) and error.token is not None:
        choices = _choices(error.target_type)
        if choices:
            got = error.token.value
            listed = ", ".join(map(repr, choices))
            hint = did_you_mean(got, choices)
            return f"{name} must be one of {listed}, got {shown(got)}.{hint}"
    return ""


def _choices(hint: object) -> tuple[str, ...]:
    return get_args(hint) if get_origin(hint) is Literal else ()
