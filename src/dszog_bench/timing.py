"""Ratios of times, with their spread, measured in one run.

Two things are timed in turns, A B A B ..., so that a machine that slows down slows
both. What is reported is the median of the ratios of neighbours and their quartiles.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

import dszog
from dszog_bench.frozen import Record

Block: TypeAlias = Callable[[], float]
"""Does some work and returns the seconds that count."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A median with its quartiles."""

    median: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        low, median, high = np.quantile(values, [0.25, 0.5, 0.75])
        return cls(
            median=float(median), low=float(low), high=float(high), n=len(values)
        )


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two blocks timed in turns."""

    ratio: Spread
    first: Spread  # seconds
    second: Spread  # seconds


def interleaved(first: Block, second: Block, n_blocks: int) -> Comparison:
    """Time two blocks in turns; each is run once before, uncounted."""
    first(), second()
    times = [(first(), second()) for _ in range(n_blocks)]
    return Comparison(
        ratio=Spread.of([a / b for a, b in times]),
        first=Spread.of([a for a, _ in times]),
        second=Spread.of([b for _, b in times]),
    )


def iteration_seconds(
    make: Callable[[Record], dszog.Problem],
    method: dszog.DSZOG,
    n_iterations: int,
    *,
    warm_up: int = 20,
    seed: int = 0,
    progress: bool = False,
    checkpoint: bool = False,
) -> float:
    """Return the seconds an iteration of a run takes, the mean after some first ones.

    The run tells the time itself, by when it asks for losses; the look at the
    constraints before and the check of the result after are not in it.
    """
    record = Record(keeps_calls=False, times_calls=False)
    with tempfile.TemporaryDirectory() as folder:
        dszog.minimize(
            make(record),
            method=method,
            max_iterations=warm_up + n_iterations + 1,
            seed=seed,
            progress=progress,
            checkpoint=folder if checkpoint else None,
        )
    return record.seconds_each(warm_up, warm_up + n_iterations)
