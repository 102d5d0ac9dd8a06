"""System calls that change the disk: watched, or made to fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest

CALLS = ("open", "write", "pwrite", "fsync", "rename", "unlink", "ftruncate", "close")
Watcher = Callable[..., object]  # gets the name, which call it is, and its arguments


def look_on(name: str, number: int, *arguments: Any) -> None:
    """Do nothing about a call."""


@contextmanager
def watched(
    names: Iterable[str] = CALLS, before: Watcher = look_on, after: Watcher = look_on
) -> Iterator[list[str]]:
    """Have somebody told before and after each of these calls; yield those made."""
    made: list[str] = []

    def watching(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **named: Any) -> Any:
            made.append(name)
            number = len(made)
            before(name, number, *arguments)
            try:
                return call(*arguments, **named)
            finally:
                after(name, number, *arguments)

        return wrapped

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(os, name, watching(name, getattr(os, name)))
        yield made


def full_disk(
    call: str, first: int = 1, last: int = 10**9
) -> AbstractContextManager[object]:
    """Have a system call fail, from its first such call to its last."""

    def fail(name: str, number: int, *arguments: Any) -> None:
        if first <= number <= last:
            raise OSError(28, "No space left on device")

    return watched((call,), before=fail)
