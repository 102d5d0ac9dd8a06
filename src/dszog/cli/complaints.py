"""Errors as commands tell them: one line on standard error, in the words to type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from rich.console import Console

from dszog.cli.talk import FAILED, USAGE, say
from dszog.errors import (
    CheckpointError,
    DszogError,
    InputError,
    InputTypeError,
    MissingExtraError,
)

OF_PYTHON = ("dszog", "load", "minimize", "FairClassifier", "PairwiseClassifier")
WRONG_USAGE = (InputError, InputTypeError, MissingExtraError)
ABOUT_ARGUMENTS = (InputError, InputTypeError, CheckpointError)  # others quote the user
_OF_SKLEARN = re.compile(
    r"^The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\.$", re.DOTALL
)


def complain(command: str, error: DszogError, flags: Mapping[str, str]) -> int:
    """Say what is wrong, and return the exit code.

    Parameters
    ----------
    command : str
        Such as ``"fit"``.
    error : DszogError
    flags : mapping
        What is typed for arguments of Python: ``{"max_queries": "--max-queries"}``.
    """
    text = " ".join(str(error).split())
    if isinstance(error, ABOUT_ARGUMENTS):
        text = as_typed(text, flags)
    if not re.match(rf"dszog {command}\b", text):
        owner, colon, rest = text.partition(": ")
        text = f"dszog {command}: {rest if colon and owner in OF_PYTHON else text}"
    say(Console(stderr=True), text, style="red")
    return USAGE if isinstance(error, WRONG_USAGE) else FAILED


def as_typed(text: str, flags: Mapping[str, str]) -> str:
    """Return a message with the names of options where Python has arguments.

    Names in quotes are somebody's words, and stay; so do those that are words of the
    language, such as "penalty", unless they are marked as names.

    Examples
    --------
    >>> flags = flags_of(["max_queries", "tune"])
    >>> as_typed("Raise max_queries, or leave `tune` out.", flags)
    'Raise --max-queries, or leave --tune out.'
    >>> as_typed("got max_queries=10 and 'max_queries'", flags)
    "got --max-queries 10 and 'max_queries'"
    """
    text = _OF_SKLEARN.sub(r"`\1` must be \2, got \3. Correct it.", text)
    for name, flag in flags.items():
        link = "=" if " " in flag else " "  # --set penalty=10, but --seed 3
        text = text.replace(f"`{name}`", flag)
        text = re.sub(rf"(?<![\w'\"/.-]){name}=True\b", flag, text)
        text = re.sub(rf"(?<![\w'\"/.-]){name}=(?=[\w'.-])", f"{flag}{link}", text)
        if "_" in name:
            bare = rf"(?<![\w'\"`/.-]){name}(?![\w'\"`/(=-]|\.\w)"
            text = re.sub(bare, flag, text)
    return re.sub(r"`(--[\w-]+)`", r"\1", text)


def flags_of(names: Iterable[str]) -> dict[str, str]:
    """Return what is typed for arguments that are called alike."""
    return {name: f"--{name.replace('_', '-')}" for name in names}
