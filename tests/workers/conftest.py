"""Workers that last for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.workers.helpers import workers


@pytest.fixture(scope="module")
def team() -> Iterator[Any]:
    """Return ``team(name, n)``: workers that last for the tests of this file."""
    opened: dict[tuple[str, int], Any] = {}

    def get(name: str, n: int) -> Any:
        if (name, n) not in opened:
            for key in [key for key in opened if key[0] == name != "serial"]:
                opened.pop(key).close()  # Ray: one cluster at a time
            opened[name, n] = workers(name, n)
        return opened[name, n]

    yield get
    for one in opened.values():
        if not isinstance(one, str):
            one.close()
