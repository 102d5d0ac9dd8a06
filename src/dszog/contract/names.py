"""Names of variables and functions: what people read where there would be an index."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from dszog.contract.validation import check_callable, printable, shown
from dszog.errors import InputTypeError

Names: TypeAlias = Sequence[str] | Callable[[int], str]

MOST_SHOWN = 8  # variables of a point


def check_names(owner: str, names: Any, n: int) -> tuple[str, ...]:
    """Return `n` names; refuse anything else."""
    is_list = isinstance(names, Iterable) and not isinstance(names, str)
    given = tuple(names) if is_list else ()
    if len(given) != n or not all(isinstance(name, str) for name in given):
        raise InputTypeError(
            f"{owner}: `names` must be a list of {n:,} strings, got {shown(names)}. "
            "Give one for each."
        )
    return tuple(map(str, given))


def check_naming(owner: str, names: Any, n: int) -> Names:
    """Return `n` names, or a function that makes the name of an index."""
    if not callable(names):
        return check_names(owner, names, n)
    check_callable(owner, "names", names, "names(index) -> str", 1)
    return names  # type: ignore[no-any-return]


def name_in(names: Names, index: int) -> str:
    """Return a name that fits into a line; empty if there is none."""
    try:
        name = names(index) if callable(names) else names[index] if names else ""
    except Exception:  # noqa: BLE001  (the user's code: no result is lost for a name)
        return ""
    return printable(str(name))


def shown_point(x: Any, names: Sequence[str]) -> str:
    """Return a point with its variables by name, the middle of many left out.

    Examples
    --------
    >>> shown_point([1.0, 0.25], ["heat", "load"])
    'heat = 1, load = 0.25'
    """
    numbers = np.asarray(x).tolist()
    parts = [f"{name} = {at:.6g}" for name, at in zip(names, numbers, strict=True)]
    if len(parts) > MOST_SHOWN:
        parts[3:-3] = [f"... ({len(numbers):,} in all) ..."]
    return printable(", ".join(parts))
