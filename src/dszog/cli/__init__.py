"""The command line: `dszog demo` and what follows."""

from __future__ import annotations

import sys
from typing import Any


def main() -> None:
    """Run the command line; needs the extra `cli`."""
    try:
        from dszog.cli.app import app
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.split(".")[0] not in {
            "cyclopts",
            "rich",
        }:
            raise
        sys.exit(
            f"The dszog command line needs {missing.name}: "
            'pip install "dszog[cli,viz]". The library works without it: '
            "import dszog."
        )
    sys.exit(_run(app))


def _run(app: Any) -> int:
    """Run what was typed; wrong usage is one line on standard error and exit code 2."""
    from cyclopts import CycloptsError

    from dszog._validation import did_you_mean, printable

    try:
        app(sys.argv[1:], exit_on_error=False, print_error=False)
    except CycloptsError as error:
        text = printable(" ".join(str(error).split()))
        commands = {name for name in app if not name.startswith("-")}
        typed = [word for word in sys.argv[1:2] if word in commands]
        if not typed and "Did you mean" not in text:
            text += did_you_mean(" ".join(sys.argv[1:2]), app)
        cure = " ".join(["dszog", *typed, "--help"])
        print(f"dszog: {text} See: {cure}.", file=sys.stderr)
        return 2
    return 0
