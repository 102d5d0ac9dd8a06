"""The command line: `dszog demo` and what follows."""

from __future__ import annotations

import os
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

    from dszog.cli.usage import told

    typed = sys.argv[1:]
    try:
        code = app(
            typed, exit_on_error=False, print_error=False, result_action="return_value"
        )
        sys.stdout.flush()
    except CycloptsError as error:
        print(told(error, typed, app), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader left early: `dszog ... | head -1`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return int(code or 0)
