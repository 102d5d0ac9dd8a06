"""Files that are whole or not there: written beside their place, synced, renamed.

And one writer at a time: a lock that dies with its owner.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows)
    fcntl = None  # type: ignore[assignment]

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
    if folder.is_file():
        raise CheckpointError(f"{str(folder)!r} is a file. Give a folder.")
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
        is_folder = stat.S_ISDIR(found.st_mode)
        wrong = "it is a folder" if is_folder else "it is no plain file"
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


NAME = "lock"
LOCKS = Path("/proc/locks")  # that are held: Linux
_held: set[FolderLock] = set()  # by this process


class FolderLock:
    """Held by one run from its making until :meth:`release`, or until the run dies.

    The system lets go of the lock of a process that is no more, so that nobody ever
    waits for a dead owner. The file says who the owner is. A child that the process
    forks does not hold the lock: it may live longer than the run.
    """

    def __init__(self, folder: Path) -> None:
        if fcntl is None:  # pragma: no cover
            raise CheckpointError(
                "Checkpoints need file locks (fcntl), which this system does not have. "
                "Run without checkpoint=."
            )
        self._folder = folder
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            self._place = os.stat(folder)
            self._handle: int | None = os.open(folder / NAME, flags, PRIVATE)
        except OSError as error:
            raise CheckpointError(
                f"The folder {str(folder)!r} cannot be locked ({error.strerror}). "
                "Give a folder that you may write to."
            ) from error
        _held.add(self)
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = _owner(self._handle)
            self.release()
            raise CheckpointError(
                f"Another run writes its checkpoints to {str(folder)!r}: {owner}. "
                "Wait for it, end it, or give another folder."
            ) from error
        self._sign(self._handle)

    def _sign(self, handle: int) -> None:
        """Say who holds the lock; for people, so nothing depends on it."""
        found = os.fstat(handle)
        if found.st_nlink > 1 or not stat.S_ISREG(found.st_mode):
            self.release()
            raise CheckpointError(
                f"The file {NAME!r} in {str(self._folder)!r} has other names (hard "
                "links) or is no plain file, and signing it would change what is not "
                "ours. No run holds it: delete it, and call again."
            )
        now = time.strftime("%Y-%m-%d %H:%M:%S %z")
        who = {"pid": os.getpid(), "host": os.uname().nodename, "started": now}
        try:
            os.ftruncate(handle, 0)
            write_all(handle, json.dumps(who).encode())
        except OSError as error:
            self.release()
            raise CheckpointError(
                f"The lock of the checkpoints could not be written ({error.strerror}). "
                "Make room on the disk, or give another folder."
            ) from error

    def check(self) -> None:
        """Refuse to write in a forked child, or to another folder than the locked one.

        It may have been moved, or swapped for another one or for a link to it.
        """
        self.check_owner()
        try:
            is_same = os.path.samestat(os.stat(self._folder), self._place)
        except OSError:
            is_same = False
        if not is_same:
            raise CheckpointWriteError(
                f"The folder {str(self._folder)!r} is not the one any more that this "
                "run began to write to: it was moved, or swapped for another one. "
                "Nothing was written there. Put it back, then go on with resume=True."
            )

    def check_owner(self) -> None:
        """Refuse to write in a child that was forked: its parent still does."""
        if self._handle is None:
            raise CheckpointWriteError(
                f"The folder {str(self._folder)!r} belongs to the process that began "
                "this run, and this one was forked from it. End children that your "
                "functions fork with os._exit()."
            )

    def release(self) -> None:
        _held.discard(self)
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)


def _release_in_child() -> None:
    """Close a child's copies of the locks; the parent's stay as they are."""
    for lock in list(_held):
        lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_release_in_child)


class Owner(NamedTuple):
    """Who signed a lock last."""

    pid: int
    host: str
    started: str

    def __str__(self) -> str:
        host, started = printable(self.host), printable(self.started)
        return f"process {self.pid} on {host}, started {started}"


def _owner(handle: int) -> Owner | str:
    try:
        who = json.loads(os.pread(handle, 4096, 0))
        return Owner(int(who["pid"]), str(who["host"]), str(who["started"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "a process that has not signed yet"


def owner_of(folder: Path) -> tuple[Owner | None, bool | None]:
    """Return who signed the lock of a folder, and whether he holds it.

    None where that is not known: on another machine, or if the system lists no locks.
    Nothing is locked: a run that begins at this moment would be refused.
    """
    handle = open_existing(folder / NAME)
    try:
        owner, inode = _owner(handle), os.fstat(handle).st_ino
    finally:
        os.close(handle)
    if isinstance(owner, str):
        return None, None
    if owner.host != os.uname().nodename:
        return owner, None
    try:
        listed = LOCKS.read_text()
    except OSError:
        return owner, None
    held = rf"^\d+: FLOCK +ADVISORY +WRITE +{owner.pid} \w+:\w+:{inode} "
    return owner, re.search(held, listed, re.MULTILINE) is not None
