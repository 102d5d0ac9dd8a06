"""One writer at a time: a lock that dies with its owner."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover  (Windows)
    fcntl = None  # type: ignore[assignment]

from dszog._validation import printable
from dszog.checkpoint.files import PRIVATE, write_all
from dszog.errors import CheckpointError

NAME = "lock"


class FolderLock:
    """Held by one run from its making until :meth:`release`, or until the run dies.

    The system lets go of the lock of a process that is no more, so that nobody ever
    waits for a dead owner. The file says who the owner is.
    """

    def __init__(self, folder: Path) -> None:
        if fcntl is None:  # pragma: no cover
            raise CheckpointError(
                "Checkpoints need file locks (fcntl), which this system does not have. "
                "Run without checkpoint=."
            )
        path = folder / NAME
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            self._handle = os.open(path, flags, PRIVATE)
        except OSError as error:
            raise CheckpointError(
                f"The folder {str(folder)!r} cannot be locked ({error.strerror}). "
                "Give a folder that you may write to."
            ) from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = _owner(self._handle)
            os.close(self._handle)
            raise CheckpointError(
                f"Another run writes its checkpoints to {str(folder)!r}: {owner}. "
                "Wait for it, end it, or give another folder."
            ) from error
        self._sign()

    def _sign(self) -> None:
        """Say who holds the lock; for people, so nothing depends on it."""
        now = time.strftime("%Y-%m-%d %H:%M:%S %z")
        who = {"pid": os.getpid(), "host": os.uname().nodename, "started": now}
        try:
            os.ftruncate(self._handle, 0)
            write_all(self._handle, json.dumps(who).encode())
        except OSError as error:
            self.release()
            raise CheckpointError(
                f"The lock of the checkpoints could not be written ({error.strerror}). "
                "Make room on the disk, or give another folder."
            ) from error

    def release(self) -> None:
        """Let others write."""
        os.close(self._handle)


def _owner(handle: int) -> str:
    try:
        who = json.loads(os.pread(handle, 4096, 0))
        pid, host, started = int(who["pid"]), str(who["host"]), str(who["started"])
    except (OSError, ValueError, KeyError, TypeError):
        return "a process that has not signed yet"
    return f"process {pid} on {printable(host)}, started {printable(started)}"
