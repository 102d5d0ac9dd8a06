"""A process that imports the library once and forks workers when told to.

A worker is there in milliseconds and replaces one that was lost; the problem is sent
once and inherited. The nursery ends workers that are stopped, and all of them when the
run that asked for them is gone. It runs no code of the user's and has one thread, so
forking it is safe; the workers unpack the problem themselves.

Messages to it: one byte, and eight that hold a process id. ``F`` with a socket: fork a
worker that talks through it; answered with its process id. ``K``: kill that worker.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
import signal
import socket
import struct
import sys
import traceback

import numpy as np

from dszog.evaluators._parcel import preload, unpack_parcel
from dszog.evaluators._work import work

TICK = 0.2  # seconds between two looks for workers that are stopped
COMMAND = struct.Struct("<cq")
NUMBER = struct.Struct("<q")
FRAME = struct.Struct("<cqQ")  # kind, attempt, length
READY, FAILED, ANSWER, WORK = b"R", b"E", b"A", b"W"
NOT_INITIALIZED = b"I"


def send_frame(channel: socket.socket, kind: bytes, attempt: int, body: bytes) -> None:
    """Send one message."""
    channel.sendall(frame(kind, attempt, body))


def frame(kind: bytes, attempt: int, body: bytes) -> bytes:
    """Return one message as bytes."""
    return FRAME.pack(kind, attempt, len(body)) + body


def receive(channel: socket.socket, n: int) -> bytes | None:
    """Return exactly `n` bytes, or None if the other side is gone."""
    chunks = bytearray()
    while len(chunks) < n:
        chunk = channel.recv(min(n - len(chunks), 2**20))
        if not chunk:
            return None
        chunks += chunk
    return bytes(chunks)


def main(descriptor: int) -> None:
    """Fork workers until the other side of the socket is gone."""
    control = socket.socket(fileno=descriptor)
    preload()
    length = receive(control, NUMBER.size)
    parcel = None if length is None else receive(control, NUMBER.unpack(length)[0])
    if parcel is None:
        return
    workers: set[int] = set()
    try:
        while True:
            _look_after(workers)
            if not select.select([control], [], [], TICK)[0]:
                continue
            command, sockets, _, _ = socket.recv_fds(control, COMMAND.size, 1)
            if not command:
                return
            while len(command) < COMMAND.size:
                command += control.recv(COMMAND.size - len(command))
            name, pid = COMMAND.unpack(command)
            if name == b"K" and pid in workers:
                os.kill(pid, signal.SIGKILL)
            elif name == b"F":
                pid = _fork(control, sockets[0], parcel)
                workers.add(pid)
                os.close(sockets[0])
                control.sendall(NUMBER.pack(pid))
    except (ConnectionError, KeyboardInterrupt):
        return
    finally:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _look_after(workers: set[int]) -> None:
    """Take note of workers that ended; end those that are stopped."""
    while workers:
        pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        if not pid:
            return
        if os.WIFSTOPPED(status):
            os.kill(pid, signal.SIGKILL)
        else:
            workers.discard(pid)


def _fork(control: socket.socket, descriptor: int, parcel: bytes) -> int:
    nursery = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _end_with(nursery)
        control.close()
        # Workers share their ancestor's state; one sequence for all would be no noise.
        np.random.seed(int.from_bytes(os.urandom(4), "little"))  # noqa: NPY002
        _serve(socket.socket(fileno=descriptor), parcel)
        status = 0
    except (ConnectionError, KeyboardInterrupt):
        pass  # the run is gone
    except BaseException:  # noqa: BLE001  (said here, or nowhere)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _end_with(nursery: int) -> None:
    """Have the system end this worker when the nursery is killed (Linux)."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() != nursery:
            os._exit(1)


def _serve(channel: socket.socket, parcel: bytes) -> None:
    """Get ready, then evaluate one piece after the other."""
    failed = FAILED
    try:
        problem, initializer = unpack_parcel(parcel)
        if initializer is not None:
            failed = NOT_INITIALIZED
            initializer()
    except BaseException:  # noqa: BLE001  (the run is told)
        send_frame(channel, failed, 0, traceback.format_exc().encode())
        return
    send_frame(channel, READY, 0, b"")
    while (head := receive(channel, FRAME.size)) is not None:
        _, attempt, length = FRAME.unpack(head)
        message = receive(channel, length)
        if message is None:
            return
        send_frame(channel, ANSWER, attempt, work(problem, message))
