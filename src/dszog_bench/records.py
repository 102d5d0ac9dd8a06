"""What was measured: rows with a bar each, kept as JSON and shown as Markdown."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import dszog
from dszog_bench.timing import Spread

PACKAGES = (
    "numpy",
    "scipy",
    "numba",
    "scikit-learn",
    "cma",
    "cobyqa",
    "nevergrad",
    "optuna",
    "PyNomadBBO",
)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure.

    Parameters
    ----------
    what : str
        What was measured, in words.
    figure : float
    unit : str
        ``"x"`` for a ratio, ``"s"``, ``"MB"``, ``"%"`` or nothing.
    low, high : float, optional
        The quartiles, where it was measured several times.
    bar : float, optional
        What it is held to.
    direction : {"at most", "at least"}
        How it is held to the bar.
    details : dict
        What else is worth keeping.
    """

    what: str
    figure: float
    unit: str = ""
    low: float | None = None
    high: float | None = None
    bar: float | None = None
    direction: Literal["at most", "at least"] = "at most"
    details: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, what: str, spread: Spread, **more: Any) -> Row:
        """Return the row of a median with quartiles."""
        return cls(
            what=what, figure=spread.median, low=spread.low, high=spread.high, **more
        )

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is met; None where there is none.

        Examples
        --------
        >>> Row(what="a ratio", figure=3.0, bar=2.0).is_met
        False
        >>> Row(what="a share", figure=3.0, bar=2.0, direction="at least").is_met
        True
        """
        if self.bar is None:
            return None
        if self.direction == "at most":
            return self.figure <= self.bar
        return self.figure >= self.bar

    def cells(self) -> list[str]:
        """Return what, figure, spread, bar and whether it is met, as text."""
        met = {None: "", True: "yes", False: "no"}[self.is_met]
        spread = ""
        if self.low is not None and self.high is not None:
            spread = f"{_number(self.low)} to {_number(self.high)}"
        bar = ""
        if self.bar is not None:
            bar = f"{self.direction} {_number(self.bar)}{_unit(self.unit)}"
        figure = f"{_number(self.figure)}{_unit(self.unit)}"
        return [self.what, figure, spread, bar, met]


HEADS = ("what", "figure", "quartiles", "bar", "met")


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table.

    Examples
    --------
    >>> print(markdown(["a", "b"], [["1", "2"]]), end="")
    | a | b |
    |---|---|
    | 1 | 2 |
    """
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join(lines) + "\n"


def versions() -> dict[str, str]:
    """Return what was measured, on what, with what."""
    found = {
        "dszog": dszog.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
    }
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write_json(path: Path, content: Any) -> None:
    """Write a file that appears whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(content, file, indent=1)
            file.write("\n")
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def as_json(row: Row) -> dict[str, Any]:
    """Return a row as it is stored."""
    return asdict(row) | {"is_met": row.is_met}


def _number(value: float) -> str:
    if value == 0 or 0.01 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.2e}"


def _unit(unit: str) -> str:
    return f" {unit}" if unit else ""
