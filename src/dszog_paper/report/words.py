"""Numbers, settings and events in words, as the report has them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeGuard

Data: TypeAlias = Mapping[str, Any]  # a part of what `results.assemble` returns

NOTHING = "–"  # where there is nothing to tell
SETTING_NAMES = {"step_size": "step", "dual_step_size": "dual step"}


def is_number(value: object) -> TypeGuard[float]:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value)


def number(value: object) -> str:
    """Return a number with the digits that matter.

    Examples
    --------
    >>> number(1234.0), number(0.0012345), number(0.25), number(12.345)
    ('1,234', '1.2e-3', '0.25', '12.3')
    """
    if not is_number(value):
        return NOTHING
    size = abs(value)
    if size == 0.0:
        return "0"
    if size >= 1e7 or size < 1e-2:
        digits, _, exponent = f"{value:.1e}".partition("e")
        return f"{digits.removesuffix('.0')}e{int(exponent)}"
    if float(value).is_integer() or size >= 1e2:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def count(value: object) -> str:
    """Return a (mean of) counts, rounded: ``1,234``."""
    return f"{value:,.0f}" if is_number(value) else NOTHING


def setting_number(value: object) -> str:
    """Return a setting as one would type it.

    Examples
    --------
    >>> setting_number(0.001), setting_number(10.0), setting_number(1e-6)
    ('0.001', '10', '1e-6')
    """
    if not is_number(value):
        return NOTHING
    return f"{value:g}".replace("e-0", "e-").replace("e+0", "e")


def percent(share: object, digits: int = 1) -> str:
    """Return a share in percent. One that is not zero is never shown as zero.

    Examples
    --------
    >>> percent(0.123), percent(0.0), percent(1e-5), percent(1.0)
    ('12.3 %', '0 %', '<0.1 %', '100 %')
    """
    if not is_number(share):
        return NOTHING
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    least = 10.0**-digits
    if 0 < 100 * share < least / 2:
        return f"<{least:.{digits}f} %"
    return f"{100 * share:.{digits}f} %"


def accuracy(mean: object, spread: object = None) -> str:
    """Return an accuracy, in percent already, with its spread if there is one."""
    if not is_number(mean):
        return NOTHING
    plus_minus = "\N{PLUS-MINUS SIGN}"
    more = f" {plus_minus} {spread:.2f}" if is_number(spread) else ""
    return f"{mean:.2f}{more}"


def seconds(value: object) -> str:
    """Return a duration: ``3.2 s``, ``12 ms``."""
    if not is_number(value):
        return NOTHING
    if 0.0 < value < 0.1:
        return f"{1000 * value:.2g} ms"
    return f"{value:,.0f} s" if value >= 100 else f"{value:.3g} s"


def settings(values: Mapping[str, float]) -> str:
    """Return settings as ``penalty 1, step 0.01``."""
    parts = (
        f"{SETTING_NAMES.get(name, name.replace('_', ' '))} {setting_number(value)}"
        for name, value in sorted(values.items())
    )
    return ", ".join(parts) or NOTHING


def events(values: Mapping[str, int]) -> str:
    """Return what happened in the runs as ``name (times)``."""
    parts = (
        f"{name.replace('_', ' ')} ({count(n)})" for name, n in values.items() if n
    )
    return ", ".join(parts) or NOTHING


def ends(names: Iterable[str]) -> str:
    """Return what ended the runs: ``time`` for ``MAX_TIME``."""
    parts = (name.removeprefix("MAX_").lower().replace("_", " ") for name in names)
    return ", ".join(parts) or NOTHING


def listed(parts: Sequence[str]) -> str:
    """Return ``a``, ``a and b`` or ``a, b and c``."""
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} and {parts[-1]}"
