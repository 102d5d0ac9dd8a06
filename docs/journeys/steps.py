"""The clock of a journey: names each step, times it, and shows what it was told."""

from __future__ import annotations

import textwrap
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


class Journey:
    """Somebody's first minutes, step by step.

    Parameters
    ----------
    who : str
        Whose they are.
    """

    def __init__(self, who: str) -> None:
        self.who = who
        self.times: list[float] = []
        self._mistakes = 0
        print(f"{who}\n{'=' * len(who)}")

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """Time what is done in the block; a warning is as bad as an error."""
        before = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
        self.times.append(time.perf_counter() - before)
        print(f"{len(self.times):2}. {what} [{self.times[-1]:.2f} s]")

    @contextmanager
    def mistake(
        self, what: str, kind: type[BaseException], *helpful: str
    ) -> Iterator[None]:
        """Make a mistake: the message has to hold what helps."""
        before = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                yield
        except kind as error:
            said = str(error)
        else:
            raise AssertionError(f"{what}: it was let through")
        self.times.append(time.perf_counter() - before)
        self._mistakes += 1
        print(f"{len(self.times):2}. Mistake: {what} [{self.times[-1]:.2f} s]")
        print(textwrap.indent(textwrap.fill(said, 80), "      > "))
        for words in helpful:
            assert words in said, f"{what}: {words!r} is not in the message"

    def arrive(self) -> None:
        """Say how long it took."""
        print(
            f"Arrived: {len(self.times)} steps, {self._mistakes} of them mistakes, "
            f"{sum(self.times):.1f} s"
        )
