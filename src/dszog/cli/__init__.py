"""The command line: `dszog demo` and what follows."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; needs the extra `cli`."""
    try:
        from dszog.cli.app import run
    except ModuleNotFoundError as missing:
        if (missing.name or "").split(".")[0] not in ("cyclopts", "rich"):
            raise
        sys.exit(
            f"The dszog command line needs {missing.name}: "
            'pip install "dszog[cli,viz]". The library works without it: '
            "import dszog."
        )
    sys.exit(run(sys.argv[1:]))
