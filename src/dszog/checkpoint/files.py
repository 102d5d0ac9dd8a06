"""Files that are whole or not there: written beside their place, synced, renamed."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dszog.errors import CheckpointError, CheckpointWriteError

PRIVATE = 0o600
TEMPORARY = ".part"  # how the name of an unfinished file ends


def make_folder(folder: Path) -> None:
    """Make a folder for checkpoints; refuse one that anybody may write to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode
    except OSError as error:
        raise CheckpointError(
            f"The folder {str(folder)!r} cannot be used for checkpoints "
            f"({error.strerror}). Give another one."
        ) from error
    if mode & stat.S_IWOTH:
        raise CheckpointError(
            f"The folder {str(folder)!r} may be written to by anybody, who could then "
            "replace checkpoints. Give a folder of your own, or: chmod o-w."
        )


def write_whole(path: Path, pieces: Sequence[bytes]) -> None:
    """Write a file that is either whole under its name or not there at all.

    Into a temporary file in the same folder first, which is synced and then renamed;
    the folder is synced last. After a failed sync nothing is tried again: what the disk
    then holds is unknown.
    """
    beside = path.with_name(path.name + TEMPORARY)
    try:
        with suppress(FileNotFoundError):
            os.unlink(beside)  # of a run that was killed
        handle = create(beside)
        try:
            for piece in pieces:
                write_all(handle, piece)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(beside, path)
        sync_folder(path.parent)
    except OSError as error:
        with suppress(OSError):
            os.unlink(beside)
        raise CheckpointWriteError(
            f"The checkpoint {path.name!r} could not be written ({_reason(error)}). "
            "The one before is whole. Make room or mend the disk, then go on with "
            "resume=True."
        ) from error


def create(path: Path) -> int:
    """Make a new file for this user alone; never follow a link, never replace."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, PRIVATE)


def write_all(handle: int, piece: bytes) -> None:
    """Write all of it, also where the system takes it in parts."""
    view = memoryview(piece)
    while len(view):
        view = view[os.write(handle, view) :]


def sync_folder(folder: Path) -> None:
    """Have the names in a folder survive a loss of power."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def open_existing(path: Path, *, write: bool = False) -> int:
    """Open a plain file of this user; refuse links, devices and other users' files."""
    flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(path, flags | os.O_NONBLOCK)
    except OSError as error:
        raise CheckpointError(f"it cannot be opened ({error.strerror})") from error
    found = os.fstat(handle)
    wrong = ""
    if not stat.S_ISREG(found.st_mode):
        wrong = "it is no plain file"
    elif found.st_uid not in (os.geteuid(), 0):
        wrong = "it belongs to another user"
    if wrong:
        os.close(handle)
        raise CheckpointError(wrong)
    return handle


def read_whole(path: Path) -> bytes:
    """Return the content of a plain file of this user."""
    handle = open_existing(path)
    try:
        size = os.fstat(handle).st_size
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(size)
    except OSError as error:
        raise CheckpointError(f"it cannot be read ({error.strerror})") from error
    finally:
        os.close(handle)


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
