"""Writing a file so that it is there as a whole, or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from pathlib import Path

from dszog.errors import InputError


def safe_folder(folder: Path) -> Path:
    """Make a folder that only its owner may change, or refuse one that others may."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode
    except OSError as error:
        raise _not_writable(folder, error) from None
    if os.name == "posix" and mode & stat.S_IWOTH:
        raise InputError(
            f"{folder}: anybody may write into this folder, so nothing is kept there. "
            f"Run: chmod o-w {folder}"
        )
    return folder


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file under another name, and rename it once it is whole."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(name, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
    except OSError as error:
        raise _not_writable(path.parent, error) from None


def _not_writable(folder: Path, error: OSError) -> InputError:
    return InputError(
        f"{folder}: cannot write there ({error.strerror or error}). Set XDG_CACHE_HOME "
        "to a folder that you may write into, or name one with the data: --data."
    )
