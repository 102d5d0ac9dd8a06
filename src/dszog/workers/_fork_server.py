"""A process that imports the library once and forks workers when told to.

A worker is there in milliseconds and replaces one that was lost; the problem is sent
once and inherited. The fork server ends workers that are stopped, and all of them when
the run that asked for them is gone. It runs no code of the user's and has one thread,
so forking it is safe; the workers unpickle the problem themselves.

Messages to it: one byte, and eight that hold a process id. ``F`` with a socket: fork a
worker that talks through it; answered with its process id. ``K``: kill that worker.
When a worker has ended, it says so with the process id made negative: the worker's own
socket does not tell while a child that the worker forked holds it open.
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
import zlib
from collections.abc import Iterator

import numpy as np

from dszog.workers._worker import import_pickler, unpickle_problem, work

TICK = 0.2  # seconds between two looks for workers that are stopped
COMMAND = struct.Struct("<cq")
NUMBER = struct.Struct("<q")
MARK = b"\xd5ZOG"  # how a message begins; then the CRC of its head, the head, the body
CRC = struct.Struct("<I")
HEAD = struct.Struct("<cqIQ")  # kind, attempt, CRC and length of the body
BEFORE_BODY = len(MARK) + CRC.size + HEAD.size
MAX_BODY = 2**36  # bytes
READY, FAILED, ANSWER, WORK = b"R", b"E", b"A", b"W"
NOT_INITIALIZED = b"I"


class GarbledError(Exception):
    """What came through a socket is no message: somebody else wrote to it."""


def frame(kind: bytes, attempt: int, body: bytes) -> bytes:
    head = HEAD.pack(kind, attempt, zlib.crc32(body), len(body))
    return b"".join([MARK, CRC.pack(zlib.crc32(head)), head, body])


def read_head(received: bytes | bytearray) -> tuple[bytes, int, int, int]:
    """Return kind, attempt, CRC and length of the message that begins here."""
    head = received[len(MARK) + CRC.size : BEFORE_BODY]
    start = MARK + CRC.pack(zlib.crc32(head))
    kind, attempt, crc, length = HEAD.unpack(head)
    if not received.startswith(start) or length > MAX_BODY:
        raise GarbledError("Another process uses the socket of this worker.")
    return kind, attempt, crc, length


def taken(received: bytearray) -> tuple[bytes, int, bytes] | None:
    """Take one whole message off what was received: its kind, attempt and body."""
    # Returns None while there is none, and raises GarbledError as soon as it is plain
    # that there will be none.
    if not MARK.startswith(received[: len(MARK)]):
        raise GarbledError
    if len(received) < BEFORE_BODY:
        return None
    kind, attempt, crc, length = read_head(received)
    end = BEFORE_BODY + length
    if len(received) < end:
        return None
    body = bytes(received[BEFORE_BODY:end])
    if zlib.crc32(body) != crc:
        raise GarbledError
    del received[:end]
    return kind, attempt, body


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
    import_pickler()  # once, for all workers
    length = receive(control, NUMBER.size)
    pickled = None if length is None else receive(control, NUMBER.unpack(length)[0])
    if pickled is None:
        return
    workers: set[int] = set()
    run = os.getppid()
    try:
        while os.getppid() == run:  # a child of the run may hold its socket open
            for pid in _ended(workers):
                control.sendall(NUMBER.pack(-pid))
            if not select.select([control], [], [], TICK)[0]:
                continue
            command, sockets, _, _ = socket.recv_fds(control, COMMAND.size, 1)
            if not command:
                return
            rest = receive(control, COMMAND.size - len(command))
            if rest is None:
                return
            name, pid = COMMAND.unpack(command + rest)
            if name == b"K" and pid in workers:
                os.kill(pid, signal.SIGKILL)
            elif name == b"F":
                pid = _fork(control, sockets[0], pickled)
                workers.add(pid)
                os.close(sockets[0])
                control.sendall(NUMBER.pack(pid))
    except (ConnectionError, KeyboardInterrupt):
        return
    finally:
        for pid in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def _ended(workers: set[int]) -> Iterator[int]:
    """Yield workers that have ended, which are struck off; end those that stopped."""
    while workers:
        pid, status = os.waitpid(-1, os.WNOHANG | os.WUNTRACED)
        if not pid:
            return
        if os.WIFSTOPPED(status):
            os.kill(pid, signal.SIGKILL)
        else:
            workers.discard(pid)
            yield pid


def _fork(control: socket.socket, descriptor: int, pickled: bytes) -> int:
    server = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        _end_with(server)
        control.close()
        # Workers share their ancestor's state; one sequence for all would be no noise.
        np.random.seed(int.from_bytes(os.urandom(4), "little"))  # noqa: NPY002
        _serve(socket.socket(fileno=descriptor), pickled)
        status = 0
    except (ConnectionError, KeyboardInterrupt):
        pass  # the run is gone
    except BaseException:  # noqa: BLE001  (said here, or nowhere)
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _end_with(server: int) -> None:
    """Have the system end this worker when the server is killed (Linux)."""
    if sys.platform == "linux":
        set_death_signal = 1
        ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)
        if os.getppid() != server:
            os._exit(1)


def _serve(channel: socket.socket, pickled: bytes) -> None:
    """Get ready, then evaluate one piece after the other."""
    # Processes that the user's functions start do not get the socket: they may live
    # longer than the worker, and have nothing to say to the run.
    channel.set_inheritable(False)
    os.register_at_fork(after_in_child=channel.close)
    failed = FAILED
    try:
        problem = unpickle_problem(pickled)
        failed = NOT_INITIALIZED
        problem.prepare()
    except BaseException:  # noqa: BLE001  (the run is told)
        channel.sendall(frame(failed, 0, traceback.format_exc().encode()))
        return
    channel.sendall(frame(READY, 0, b""))
    while (head := receive(channel, BEFORE_BODY)) is not None:
        _, attempt, _, length = read_head(head)
        message = receive(channel, length)
        if message is None:
            return
        answered = work(problem, message)
        if channel.fileno() < 0:
            raise GarbledError(
                "A process that your function forked returned from it. End such "
                "processes with os._exit(); only the worker itself may answer."
            )
        channel.sendall(frame(ANSWER, attempt, answered))
