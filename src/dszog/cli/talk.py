"""How a command speaks, is interrupted, tells its errors, and ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from rich.console import Console

from dszog.contract.interrupts import Interrupts
from dszog.contract.validation import printable, shown
from dszog.errors import (
    CheckpointError,
    DszogError,
    InputError,
    InputTypeError,
    MissingExtraError,
)
from dszog_start import sigterm_as_interrupt

Made = TypeVar("Made")

DONE, FAILED, USAGE, NO_SUCCESS, INTERRUPTED, TERMINATED = 0, 1, 2, 3, 130, 143
OF_PYTHON = (
    *("dszog", "load", "minimize", "Problem"),
    *("FairClassifier", "PairwiseClassifier"),
)
WRONG_USAGE = (InputError, InputTypeError, MissingExtraError)
ABOUT_ARGUMENTS = (InputError, InputTypeError, CheckpointError)  # others quote the user
_OF_SKLEARN = re.compile(
    r"^The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\.$", re.DOTALL
)


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print text in which nothing steers the terminal, whatever it quotes."""
    console.print(
        printable(text, keep="\n"),
        style=style,
        markup=False,
        highlight=False,
        soft_wrap=not console.is_terminal,  # words are kept whole where people read
    )


def tell_left_out(console: Console, n: int) -> None:
    """Say how many rows were not read, as something is missing there."""
    if n:
        say(console, f"{n:,} rows are left out: a value is missing.", style="yellow")


def tell_new_words(console: Console, new: dict[str, int]) -> None:
    """Say how many rows have a word that the model has not met."""
    for name, n in new.items():
        say(
            console,
            f"{n:,} rows have a word in column {shown(name)} that is new to the model; "
            "none of its features is set there.",
            style="yellow",
        )


# -------------------------------------------------------------------------- signals


def finished(
    work: Callable[[], Made],
    finish: Callable[[Made], int],
    nothing: Callable[[], object],
) -> int:
    """Do work that a signal ends early, then finish it; return the exit code."""
    # While it is finished (written and told) a signal waits. `nothing` says that
    # nothing was made when a signal came.
    made = None
    with sigterm_as_interrupt() as received, Interrupts() as interrupts:
        try:
            made = work()
            interrupts.hold()
            code = finish(made)
            interrupts.let_in()
        except KeyboardInterrupt:
            if made is None:
                nothing()
            code = INTERRUPTED
    return TERMINATED if received and code == INTERRUPTED else code


# --------------------------------------------------------------------------- errors


def complain(command: str, error: DszogError, flags: Mapping[str, str]) -> int:
    """Say what is wrong in one line on standard error, and return the exit code."""
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
    >>> flags = flags_of(["max_queries", "resume"])
    >>> as_typed("Raise max_queries, or leave `resume` out.", flags)
    'Raise --max-queries, or leave --resume out.'
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
    return re.sub(r"`(--[\w-]+)`", r"\1", text).replace("--set --set ", "--set ")


def flags_of(names: Iterable[str]) -> dict[str, str]:
    """Return what is typed for arguments that are called alike."""
    return {name: f"--{name.replace('_', '-')}" for name in names}
