"""A folder of records, one file for each unit that was run."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from dszog_paper.protocol import Unit


class Store:
    """Keeps records as they are made; what is there is not run again.

    A file appears whole or not at all, so that a run may be killed at any moment. The
    folder is made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def path(self, unit: Unit) -> Path:
        """Return where the record of a unit is kept."""
        return self.folder / f"{unit.key}.json"

    def get(self, unit: Unit) -> dict[str, Any] | None:
        """Return the record; None if there is none, or none that can be used."""
        try:
            record: Any = json.loads(self.path(unit).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        is_its_own = isinstance(record, dict) and record.get("unit") == unit.as_json()
        return record if is_its_own else None

    def put(self, unit: Unit, record: dict[str, Any]) -> None:
        """Keep a record."""
        write_whole(self.path(unit), json.dumps(record).encode())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name, and rename it once it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    beside.unlink(missing_ok=True)  # of a run that was killed
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
