"""Ctrl-C at moments when it would leave something half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Ctrl-C, and SIGTERM where Python handles it: kept waiting at bad moments.

    After :meth:`hold` a signal waits for :meth:`let_in`, which calls the handler that
    the program has for it. A second one does not wait. While nothing is held, and so
    while functions of the user run, the handlers are those of the program.

    As a context, it puts them back at its end; what came is told if an error ends it.
    """

    def __init__(self) -> None:
        self._handlers: dict[int, Callable[[int, Any], Any]] = {}  # while they wait
        self._waiting: Callable[[], Any] | None = None  # the call of one of them
        self._is_stopped = False

    def hold(self) -> None:
        """Let a signal wait from now on, unless the run was interrupted already."""
        is_ours = threading.current_thread() is threading.main_thread()
        if self._handlers or self._is_stopped or not is_ours:
            return
        for number in SIGNALS:
            handler = signal.getsignal(number)
            if callable(handler):
                self._handlers[number] = handler
                signal.signal(number, self._wait)

    def let_in(self) -> None:
        """Put the handlers back, and call the one of a signal that has waited."""
        self._put_back()
        self._tell()

    def interrupted(self) -> bool:
        """Whether a signal has waited that interrupts; its handler is called."""
        try:
            self._tell()
        except KeyboardInterrupt:
            self.stop()
            return True
        return False

    def stop(self) -> None:
        """Let none wait from now on: the next one is the second."""
        self._is_stopped = True
        self._put_back()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let a signal wait for the end of the block."""
        was_held = bool(self._handlers)
        self.hold()
        try:
            yield
        finally:
            if not was_held:
                self._put_back()
        if not was_held:
            self._tell()

    def __enter__(self) -> Interrupts:
        return self

    def __exit__(self, kind: type[BaseException] | None, *more: object) -> None:
        self._put_back()
        if kind is not None:
            self._tell()

    def _wait(self, number: int, frame: Any) -> None:
        handler = self._handlers[number]
        if self._waiting is not None:
            handler(number, frame)
        else:
            self._waiting = partial(handler, number, frame)

    def _tell(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting()

    def _put_back(self) -> None:
        for number, handler in self._handlers.items():
            if signal.getsignal(number) == self._wait:  # not one that a handler set
                signal.signal(number, handler)
        self._handlers.clear()


@contextmanager
def held_interrupts() -> Iterator[None]:
    """Let Ctrl-C wait for the end of the block.

    For imports of large packages: of one that is cut short some modules stay loaded,
    and it cannot be imported again in the same process.
    """
    with Interrupts() as interrupts, interrupts.held():
        yield
