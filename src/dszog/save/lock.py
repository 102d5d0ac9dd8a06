"""One writer at a time: a lock that dies with its owner."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from pathlib import Path
from typing import NamedTuple

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows)
    fcntl = None  # type: ignore[assignment]

from dszog.contract.validation import printable
from dszog.errors import CheckpointError, CheckpointWriteError
from dszog.save.files import PRIVATE, open_existing, write_all

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
