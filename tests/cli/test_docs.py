"""What the documentation tells a reader to type, the command line understands."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress

import pytest

from tests.pages import PAGES, README, name_of, named_commands, typed_lines

pytest.importorskip("cyclopts")

TYPED = [
    pytest.param(line, id=f"{name_of(page)}: {line}")
    for page in [*PAGES, README]
    for line in typed_lines(page)
    if re.match(r"dszog [a-z-]", line)  # not a bar that is shown at work
]
NAMED = [
    pytest.param(command, id=f"{name_of(page)}: {command}")
    for page in [*PAGES, README]
    for command in sorted(set(named_commands(page)))
]


def test_commands_are_found() -> None:
    assert len(TYPED) >= 9
    assert len(NAMED) >= 10


@pytest.mark.parametrize("line", TYPED)
def test_a_command_in_a_block_can_be_typed(line: str) -> None:
    from dszog.cli.app import app

    words = shlex.split(line, comments=True)[1:]
    app.parse_args(words, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("command", NAMED)
def test_a_command_in_a_sentence_exists_with_its_options(command: str) -> None:
    from cyclopts import MissingArgumentError

    from dszog.cli.app import app

    words = shlex.split(command)[1:]
    assert words[0].startswith("-") or words[0] in app
    with suppress(MissingArgumentError):  # a sentence may leave out what is plain
        app.parse_args(words, exit_on_error=False, print_error=False)
