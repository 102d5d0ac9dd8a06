"""The command `dszog`, with all that it can do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from inspect import signature
from typing import Literal, get_args, get_origin

from cyclopts import (
    App,
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from rich.console import Console

import dszog
from dszog.cli.bench import bench
from dszog.cli.demo import demo
from dszog.cli.fit import FLAGS, fit
from dszog.cli.paper import paper
from dszog.cli.predict import predict
from dszog.cli.solve import solve
from dszog.cli.talk import FAILED, INTERRUPTED, USAGE, complain, flags_of, say
from dszog.cli.update import update
from dszog.cli.watch import watch
from dszog.contract.hints import RENAMED
from dszog.contract.validation import did_you_mean, printable, shown
from dszog.errors import DszogError

app = App(
    name="dszog",
    help=(
        "Minimise what can only be evaluated, under more constraints than one can "
        "look at."
    ),
    version=dszog.__version__,
    suppress_keyboard_interrupt=False,  # which would end without a word
)


@app.command
def completion(shell: Literal["bash", "zsh", "fish"], /) -> None:
    """Print a completion script for a shell.

    For example:

    dszog completion bash >> ~/.bashrc

    dszog completion zsh > ~/.zfunc/_dszog

    dszog completion fish > ~/.config/fish/completions/dszog.fish

    Parameters
    ----------
    shell
        bash, zsh or fish.
    """
    print(app.generate_completion(prog_name="dszog", shell=shell))


COMMANDS: dict[str, Callable[..., int]] = {
    one.__name__: one
    for one in (demo, solve, watch, fit, predict, update, paper, bench)
}
KEPT = {  # what is said after Ctrl-C
    "bench": "Finished runs of peers are kept: call again with the same --output to go "
    "on.",
    "paper": "What was finished is kept: call again with the same --output to go on.",
    "update": "Go on with --resume.",
}
for command in COMMANDS.values():
    app.command(command)


def run(typed: list[str]) -> int:
    """Run what was typed; what is wrong is one line on standard error."""
    command = typed[0] if typed else ""
    try:
        code = app(
            typed, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except CycloptsError as error:
        print(_told(error, typed), file=sys.stderr)
        return USAGE
    except DszogError as error:
        return complain(command, error, _flags(command))
    except KeyboardInterrupt:
        said = f"Interrupted. {KEPT.get(command, '')}"
        say(Console(stderr=True), said.strip())
        return INTERRUPTED
    except BrokenPipeError:  # the reader left early: `dszog ... | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return int(code or 0)


def _flags(command: str) -> dict[str, str]:
    """Return what is typed for the arguments that messages of the library name."""
    if command == "fit":
        return FLAGS
    taken = signature(COMMANDS[command]).parameters.values()
    return flags_of(one.name for one in taken if one.kind is one.KEYWORD_ONLY)


def _told(error: CycloptsError, typed: list[str]) -> str:
    """Return one line: what is wrong, what was got, and where help is."""
    known = list(app)
    command = [word for word in typed[:1] if word in known and word[:1] != "-"]
    text = _in_our_words(error) or " ".join(str(error).split())
    if not command and "Did you mean" not in text:
        text += did_you_mean(" ".join(typed[:1]), known)
    name = " ".join(["dszog", *command])
    return printable(f"{name}: {text} See: {name} --help.")


def _in_our_words(error: CycloptsError) -> str:
    """Return a message of our own where that of the parser is poor, else nothing."""
    if isinstance(error, UnusedCliTokensError):
        return f"{shown(' '.join(error.unused_tokens or ()))} belongs to no option."
    if isinstance(error, UnknownOptionError):
        option = error.token.keyword or error.token.value
        name = option.lstrip("-").replace("-", "_")
        meant = f"--{RENAMED.get(name, name)}".replace("_", "-")
        known = [name for one in error.argument_collection for name in one.names]
        return f"there is no option {option}.{did_you_mean(meant, known)}"
    if error.argument is None:
        return ""
    name, choices = error.argument.name, _choices(error.argument.hint)
    listed = ", ".join(map(repr, choices))
    if isinstance(error, MissingArgumentError):
        if error.keyword is not None:
            return f"{error.keyword} needs a value, got none."
        return f"{name} is missing." + (f" Give one of {listed}." if choices else "")
    if isinstance(error, CoercionError) and error.token is not None:
        got = error.token.value
        if choices:
            hint = did_you_mean(got, choices)
            return f"{name} must be one of {listed}, got {shown(got)}.{hint}"
        for kind, called in ((int, "a whole number"), (float, "a number")):
            if kind in _parts(error.target_type):
                return f"{name} must be {called}, got {shown(got)}."
    return ""


def _parts(hint: object) -> tuple[object, ...]:
    """Return a type, and what it is made of."""
    return hint, *get_args(hint)


def _choices(hint: object) -> tuple[str, ...]:
    """Return the words of a `Literal`, or of one that may be left out."""
    return next((get_args(p) for p in _parts(hint) if get_origin(p) is Literal), ())
