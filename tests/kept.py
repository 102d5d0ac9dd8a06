"""Long series of runs that can be interrupted: what was found is kept in a folder.

Set `DSZOG_KEEP` to a folder, and runs whose outcome is found there are not repeated. It
is for one state of the source: give another folder, or empty it, after a change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path


def kept(name: str, run: Callable[[], dict[str, int]]) -> dict[str, int]:
    """Return what happened in a run that was made before, or make it now."""
    folder = os.environ.get("DSZOG_KEEP")
    if not folder:
        return run()
    path = Path(folder, f"{name}.json")
    if path.exists():
        found: dict[str, int] = json.loads(path.read_text())
        return found
    found = run()
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(found))
    os.replace(beside, path)
    return found
