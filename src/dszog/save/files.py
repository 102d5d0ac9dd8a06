"""Files that are whole or not there: written beside their place, synced, renamed."""

from __future__ import annotations

import os
import stat
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from dszog.contract.validation import printable, shown
from dszog.errors import (
    CheckpointError,
    CheckpointWarning,
    CheckpointWriteError,
    InputTypeError,
)

PRIVATE = 0o600
TEMPORARY = ".part"  # how the name of an unfinished file ends
N_LOOKED_AT = 2**17  # bytes of a file, before all of it is read


def make_folder(folder: Path) -> None:
    """Make a folder for checkpoints; refuse one that anybody may write to."""
    # Folders on the way to it are made such that only this user may write to them,
    # whatever the umask: who may write to one could swap the next.
    try:
        for above in reversed(folder.parents):
            if not above.exists():
                above.mkdir(mode=0o755, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
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
    if mode & stat.S_IWGRP:
        warnings.warn(
            f"The folder {printable(str(folder))!r} may be written to by its group, "
            "whose members could replace checkpoints. If it is not for them: chmod "
            "g-w.",
            CheckpointWarning,
            stacklevel=2,
        )


def check_path(owner: str, path: Any, example: str) -> Path:
    """Return the path of a file; refuse what is none."""
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise InputTypeError(
            f"{owner}: `path` must be the path of a file, got {shown(path)}. For "
            f"example {example!r}."
        )
    return Path(text)


def write_whole(path: Path, pieces: Sequence[bytes]) -> None:
    """Write a checkpoint; CheckpointWriteError where that fails."""
    try:
        replace_file(path, pieces)
    except OSError as error:
        raise CheckpointWriteError(
            f"The checkpoint {path.name!r} could not be written "
            f"({error.strerror or type(error).__name__}). The one before is whole. "
            "Make room or fix the disk, then go on with resume=True."
        ) from error


def replace_file(
    path: Path, pieces: Sequence[bytes], *, mode: int = PRIVATE, mark: str = ""
) -> None:
    """Write a file that is either whole under its name or not there at all."""
    # Into a temporary file in the same folder first, which is synced and then renamed;
    # the folder is synced last. After a failed sync nothing is tried again: what the
    # disk then holds is unknown. Writers that may meet give a `mark` of their own.
    beside = path.with_name(path.name + mark + TEMPORARY)
    try:
        with suppress(FileNotFoundError):
            os.unlink(beside)  # of a run that was killed
        handle = create(beside, mode)
        try:
            for piece in pieces:
                write_all(handle, piece)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(beside, path)
        sync_folder(path.parent)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise


def create(path: Path, mode: int = PRIVATE) -> int:
    """Make a new file; never follow a link, never replace."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, mode)


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


def open_existing(path: Path, *, write: bool = False, own: bool = True) -> int:
    """Open a plain file; refuse devices, and if `own` links and other users' files."""
    flags = (os.O_RDWR if write else os.O_RDONLY) | os.O_CLOEXEC
    if own:
        flags |= os.O_NOFOLLOW
    try:
        handle = os.open(path, flags | os.O_NONBLOCK)
    except OSError as error:
        raise CheckpointError(f"it cannot be opened ({error.strerror})") from error
    found = os.fstat(handle)
    wrong = ""
    if not stat.S_ISREG(found.st_mode):
        wrong = "it is no plain file"
    elif own and found.st_uid not in (os.geteuid(), 0):
        wrong = "it belongs to another user"
    if wrong:
        os.close(handle)
        raise CheckpointError(wrong)
    return handle


def read_whole(
    path: Path, check: Callable[[bytes, int], None], *, own: bool = True
) -> bytes:
    """Return the content of a plain file, if a look at its beginning allows it."""
    # `check` is given the first bytes and the size, and raises if that cannot be: a
    # file may be larger than the memory, or than the disk.
    handle = open_existing(path, own=own)
    try:
        size = os.fstat(handle).st_size
        check(os.pread(handle, N_LOOKED_AT, 0), size)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(size)
    except OSError as error:
        raise CheckpointError(f"it cannot be read ({error.strerror})") from error
    finally:
        os.close(handle)
