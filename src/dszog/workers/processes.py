"""Workers that are processes of this machine, each replaced when it is lost."""

from __future__ import annotations

import contextlib
import json
import math
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from dszog.contract import Query
from dszog.contract.validation import check_count
from dszog.errors import DszogError, EvaluationError, InputError
from dszog.problem import Problem
from dszog.workers import _fork_server as wire
from dszog.workers._supervisor import (
    MAX_BAD_STARTS,
    Begun,
    Event,
    Pool,
    Supervised,
    WorkerLost,
    received,
)
from dszog.workers._worker import pack_parts, pickle_problem
from dszog.workers.base import Workers

THREAD_SETTINGS = (  # numbers of threads that numerical libraries start
    *(f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR")),
    "VECLIB_MAXIMUM_THREADS",
)
SERVER_PATIENCE = 60.0  # seconds for the library to be imported and a worker forked
START_PATIENCE = 600.0  # seconds for a worker to be ready
START = (
    "import sys, json; sys.path[:] = json.loads(sys.argv[2]); "
    "from dszog.workers._fork_server import main; main(int(sys.argv[1]))"
)


class Processes(Workers):
    """Workers that are processes of this machine.

    The problem is sent once; any function can be sent where cloudpickle is installed. A
    worker that is killed, stopped or ends itself is replaced, and what it was at is
    done again. A ``timeout`` ends the worker.

    Parameters
    ----------
    n_workers : int, optional
        How many; without it, one for each processor that may be used.
    threads : int
        Threads that numerical libraries may use in a worker. The bits of large matrix
        products depend on it, in a worker as anywhere.

    Examples
    --------
    >>> import numpy as np
    >>> import dszog
    >>> result = dszog.minimize(
    ...     np.linalg.norm,
    ...     [3.0, 2.0],
    ...     dszog.Constraints.linear(-np.eye(2), -1.0),
    ...     seed=0,
    ...     max_iterations=5,
    ...     evaluator=dszog.evaluators.Processes(2),
    ... )
    >>> result.nit
    5
    """

    can_stop = True

    def __init__(self, n_workers: int | None = None, *, threads: int = 1) -> None:
        self.n_workers = count_workers("Processes", n_workers)
        self.threads = check_count("Processes", "threads", threads)

    def __repr__(self) -> str:
        return f"Processes({self.n_workers})"

    def open(self, problem: Problem, timeout: float | None = None) -> Supervised:
        """Return an evaluator of this problem."""
        if not hasattr(os, "fork"):
            raise InputError(
                f"evaluator='processes' needs a system that can fork, got "
                f"{sys.platform}. Use 'threads', 'dask' or 'ray'."
            )
        pickled = pickle_problem(problem)
        pool = _ProcessPool(pickled, self.n_workers, self.threads, timeout is None)
        return Supervised(problem, pool, timeout, start=math.inf)


def count_workers(owner: str, n_workers: int | None = None) -> int:
    """Return how many workers to have: one for each processor that may be used."""
    if n_workers is not None:
        return check_count(owner, "n_workers", n_workers)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@dataclass(eq=False)
class _Process:
    """A worker, in the process that has it forked."""

    channel: socket.socket
    pid: int
    is_ready: bool = False
    since: float = field(default_factory=time.monotonic)
    attempts: deque[int] = field(default_factory=deque)  # it is at the first
    received: bytearray = field(default_factory=bytearray)
    outgoing: bytearray = field(default_factory=bytearray)  # not taken yet


class _ProcessPool(Pool):
    """Workers with a socket each, and the server that forks them."""

    bundle = 0.02

    def __init__(
        self, pickled: bytes, n_workers: int, threads: int, ahead: bool
    ) -> None:
        super().__init__()
        self._pickled = pickled
        self._n_workers = n_workers
        self._ahead = ahead  # whether a piece may wait at a worker
        self._threads = threads
        self._server: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._workers: list[_Process] = []
        self._selector = selectors.DefaultSelector()
        self.count(bytes_problem=len(pickled))

    # --------------------------------------------------------------- the fork server

    def _start_server(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        settings = dict.fromkeys(THREAD_SETTINGS, str(self._threads))
        self._server = subprocess.Popen(
            [sys.executable, "-c", START, str(theirs.fileno()), json.dumps(sys.path)],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **settings},
            start_new_session=True,  # Ctrl-C and Ctrl-Z are for the run, not for it
        )
        theirs.close()
        ours.settimeout(SERVER_PATIENCE)
        ours.sendall(wire.NUMBER.pack(len(self._pickled)) + self._pickled)
        return ours

    def _close_server(self) -> None:
        if self._control is not None:
            self._selector.unregister(self._control)
            self._control.close()
            self._control = None
        if self._server is not None:
            try:
                self._server.wait(timeout=2.0)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._server.pid, signal.SIGKILL)
                self._server.wait()
            self._server = None

    def _forked(self, channel: socket.socket) -> int:
        """Return the process id of a new worker that talks through a socket."""
        for _ in range(MAX_BAD_STARTS):
            try:
                if self._control is None:
                    self._control = self._start_server()
                    self._selector.register(self._control, selectors.EVENT_READ)
                order = wire.COMMAND.pack(b"F", 0)
                socket.send_fds(self._control, [order], [channel.fileno()])
            except (ConnectionError, TimeoutError):
                self._lose_server()
                continue
            try:
                while (pid := self._told()) is not None:
                    if pid > 0:
                        return pid
                    self._lose_ended(-pid)
            except BaseException:  # Ctrl-C: its answer must not be taken for the next
                self._close_server()
                raise
        raise EvaluationError(
            f"The process that starts workers ended {MAX_BAD_STARTS} times in a row. "
            "Look at what it printed, or use evaluator='threads'."
        )

    def _told(self) -> int | None:
        """Return what the fork server says next; None if it is gone."""
        answer = None
        if self._control is not None:
            with contextlib.suppress(ConnectionError, TimeoutError):
                answer = wire.receive(self._control, wire.NUMBER.size)
        if answer is None:
            self._lose_server()
            return None
        number: int = wire.NUMBER.unpack(answer)[0]
        return number

    def _lose_server(self) -> None:
        """Give up a fork server that was killed, and its workers, which end with it."""
        self._close_server()
        for worker in list(self._workers):
            self._lose_ended(worker.pid)

    # ------------------------------------------------------------------- the workers

    @property
    def n_slots(self) -> int:
        return self._n_workers

    def _start_worker(self) -> _Process:
        ours, theirs = socket.socketpair()
        try:
            worker = _Process(ours, self._forked(theirs))
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self._workers.append(worker)
        self._selector.register(ours, selectors.EVENT_READ, worker)
        return worker

    def _drop(self, worker: _Process) -> None:
        """Let go of a worker: it is killed if it is not gone yet."""
        self._workers.remove(worker)
        self._selector.unregister(worker.channel)
        worker.channel.close()
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.sendall(wire.COMMAND.pack(b"K", worker.pid))

    def room(self, n_waiting: int) -> int:
        """Return how many messages to send: one to each worker, and one ahead."""
        # None ahead for the last pieces, which had better go to who is done first.
        ahead = 2 if self._ahead and n_waiting > self._n_workers else 1
        busy = sum(min(len(worker.attempts), ahead) for worker in self._workers)
        return ahead * self._n_workers - busy

    def submit(self, attempt: int, parts: Sequence[Query]) -> None:
        message = wire.frame(wire.WORK, attempt, pack_parts(parts))
        worker = min(self._workers, key=lambda one: len(one.attempts), default=None)
        if worker is None or (worker.attempts and len(self._workers) < self._n_workers):
            worker = self._start_worker()
        worker.attempts.append(attempt)
        self.count(bytes_sent=len(message))
        if worker.is_ready:
            self._events.append(Begun(attempt))
        worker.outgoing += message
        self._flush(worker)

    def _flush(self, worker: _Process) -> None:
        """Send what the worker takes now; the rest waits until it takes more."""
        # Never blocks: a worker that is sending an answer does not read.
        try:
            while worker.outgoing:
                n_sent = worker.channel.send(worker.outgoing, socket.MSG_DONTWAIT)
                del worker.outgoing[:n_sent]
        except BlockingIOError:
            pass
        except ConnectionError:
            worker.outgoing.clear()  # it is gone, as the next wait will see
        wanted = selectors.EVENT_READ
        if worker.outgoing:
            wanted |= selectors.EVENT_WRITE
        self._selector.modify(worker.channel, wanted, worker)

    def wait(self, seconds: float) -> Sequence[Event]:
        ready = self._selector.select(0.0 if self._events else seconds)
        for key, happens in ready:
            if key.fileobj is self._control:
                self._lose_ended(-(self._told() or 0))
            elif key.data in self._workers:
                if happens & selectors.EVENT_WRITE:
                    self._flush(key.data)
                if happens & selectors.EVENT_READ:
                    self._listen(key.data)
        self._check_starts()
        return self._take_events()

    def _listen(self, worker: _Process) -> bool:
        """Take in what a worker says; return whether it said anything."""
        try:
            data = worker.channel.recv(2**20, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self._lose(worker, "ended")
            return False
        self.count(bytes_received=len(data))
        worker.received += data
        try:
            while (message := wire.taken(worker.received)) is not None:
                self._heed(worker, *message)
        except wire.GarbledError:
            self._lose(worker, "wrote to the file descriptor that its answers go to")
        return True

    def _heed(self, worker: _Process, kind: bytes, attempt: int, body: bytes) -> None:
        if kind == wire.READY:
            worker.is_ready = True
            self._n_bad_starts = 0
            self._events += map(Begun, worker.attempts)
        elif kind == wire.FAILED:
            raise DszogError(
                "The problem cannot be unpacked in a worker:\n"
                f"{body.decode(errors='replace')}"
                "Make the modules it needs importable there, or use "
                "evaluator='threads'."
            )
        elif kind == wire.NOT_INITIALIZED:
            raise EvaluationError(
                f"The initializer failed in a worker:\n{body.decode(errors='replace')}"
                "Fix it, or leave it out: each worker calls it once, before its first "
                "question."
            )
        elif kind == wire.ANSWER and attempt in worker.attempts:
            worker.attempts.remove(attempt)
            self.done_by(f"process {worker.pid}", received(attempt, body))
        else:  # from a process that the worker forked and that went on as if it were it
            raise wire.GarbledError

    def _lose_ended(self, pid: int) -> None:
        """Let go of a worker that has ended, after hearing what it said before."""
        for worker in [one for one in self._workers if one.pid == pid]:
            while worker in self._workers and self._listen(worker):
                pass
            if worker in self._workers:
                self._lose(worker, "ended")

    def _check_starts(self) -> None:
        """Raise if a worker is not ready for so long that it will never be."""
        now = time.monotonic()
        for worker in self._workers:
            if not worker.is_ready and now - worker.since > START_PATIENCE:
                raise EvaluationError(
                    f"A worker was not ready after {START_PATIENCE:g} seconds. It "
                    "imports your modules, unpacks the problem and calls the "
                    "initializer: see which of these does not come back."
                )

    def _lose(self, worker: _Process, happened: str) -> None:
        self._drop(worker)
        if not worker.is_ready:
            self._note_bad_start(
                "in a row ended before they had unpacked the problem. Look at what "
                "importing your modules does there, or use evaluator='threads'."
            )
        why = f"process {worker.pid} {happened}"
        for place, attempt in enumerate(worker.attempts):
            started = worker.is_ready and place == 0
            self._events.append(WorkerLost(attempt, why, started))

    def stop(self, attempt: int) -> None:
        for worker in [one for one in self._workers if attempt in one.attempts]:
            self._drop(worker)

    def forget(self) -> None:
        self._events.clear()
        for worker in [one for one in self._workers if one.attempts]:
            self._drop(worker)

    def close(self) -> None:
        """End all workers, and the fork server, which makes sure of it."""
        for worker in list(self._workers):
            self._drop(worker)
        self._close_server()
        self._selector.close()
