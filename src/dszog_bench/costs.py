"""What an iteration of the library costs, in time and memory."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np

import dszog
from dszog.contract.arrays import FloatArray, IntArray
from dszog_bench.a9a import a9a_rows
from dszog_bench.frozen import PairwiseData, Record, frozen_evaluation
from dszog_bench.memory import memory_above_data
from dszog_bench.plain import Plain
from dszog_bench.records import Effort, Row
from dszog_bench.rotated import DIM, rotated_problem
from dszog_paper.data import Samples

Block: TypeAlias = Callable[[], float]  # does some work: the seconds that count

BATCH = 128
WARM_UP = 20  # iterations that are not timed
SLOW_CALL = 1e-3  # seconds
BARS = {"iteration": 1.5, "slow": 1.02, "constraints": 1.2, "checkpoint": 1.02}
LARGEST_MEMORY = 300.0  # MB
PLAIN_BARS = {62_500: 20.0, 10**7: 1000.0}  # by the number of constraints


def _compared(
    what: str, blocks: dict[str, Block], n_blocks: int, bar: Any = None, **more: Any
) -> Row:
    """Time two blocks in turns; the row of their ratio has the seconds of both."""
    # A B A B ..., so that a machine that slows down slows both; each is run once
    # before, uncounted.
    for block in blocks.values():
        block()
    times = [[block() for block in blocks.values()] for _ in range(n_blocks)]
    medians = np.median(times, axis=0).tolist()
    return Row.of(
        what,
        [first / second for first, second in times],
        unit="x",
        bar=bar,
        details={f"{k}_seconds": v for k, v in zip(blocks, medians, strict=True)},
        **more,
    )


def iteration_seconds(
    make: Callable[[Record], dszog.Problem],
    method: dszog.DSZOG,
    n_iterations: int,
    *,
    progress: bool = False,
    checkpoint: bool = False,
) -> float:
    """Return the seconds an iteration of a run takes, the mean after some first ones.

    The run tells the time itself, by when it asks for losses; the look at the
    constraints before and the check of the result after are not in it.
    """
    record = Record(times_calls=False)
    with tempfile.TemporaryDirectory() as folder:
        dszog.minimize(
            make(record),
            method=method,
            max_iterations=WARM_UP + n_iterations + 1,
            seed=0,
            progress=progress,
            checkpoint=folder if checkpoint else None,
        )
    return record.seconds_each(WARM_UP, WARM_UP + n_iterations)


def as_timed(batch: int = BATCH, **changes: Any) -> dszog.DSZOG:
    """Return the method that is timed: as published, q = 10, batches of 128."""
    # Its first weights come from a draw, as a look at all of 10^12 constraints would
    # never end; that look is no part of an iteration.
    sizes = {"loss_batch": batch, "constraint_batch": batch, "dual_batch": batch}
    return dszog.DSZOG.as_published(**(sizes | {"start": "sampled"} | changes))


# ------------------------------------------------------- an iteration over its queries


def a9a_timing(effort: Effort) -> Iterator[Row]:
    """Time an iteration on a9a over a frozen NumPy evaluation of its queries."""
    rows, _ = a9a_rows(effort.data)
    method, n = as_timed(), effort.iterations
    first, last = WARM_UP, WARM_UP + n
    data = PairwiseData(rows.dense, rows.y)

    def run(record: Record) -> Record:
        problem = _a9a_problem(rows, record)
        dszog.minimize(problem, method=method, max_iterations=last + 1, seed=0)
        return record

    # The same seed asks the same queries: what keeps them is not what is timed.
    calls = run(Record()).of_iterations(first, last)

    def iterations() -> float:
        return iteration_seconds(partial(_a9a_problem, rows), method, n)

    def frozen() -> float:
        before = time.perf_counter()
        frozen_evaluation(data, calls)
        return (time.perf_counter() - before) / n

    name = f"{rows.name}, d = {data.X.shape[1]}, q = 10, batches of {BATCH}"
    yield _compared(
        f"iteration / frozen NumPy evaluation of the same queries ({name})",
        {"iteration": iterations, "frozen": frozen},
        effort.n_blocks,
        BARS["iteration"],
    )
    yield Row.of(
        f"iteration / time inside the problem's own values ({rows.name}, the same)",
        [
            run(Record(keeps_calls=False)).overhead(first, last)
            for _ in range(effort.n_blocks)
        ],
        unit="x",
    )


def slow_black_box(effort: Effort) -> Iterator[Row]:
    """Time an iteration over its black box, which takes a millisecond."""
    # For a value, as a simulator would; and for a whole vectorised call, of which an
    # iteration makes three.
    rows, _ = a9a_rows(effort.data)
    n, warm_up = max(effort.iterations // 5, 20), 5

    def block(method: dszog.DSZOG, n: int, pause: float, per_value: float) -> float:
        record = Record(keeps_calls=False)
        problem = _a9a_problem(rows, record, pause=pause, per_value=per_value)
        dszog.minimize(
            problem,
            method=method,
            weights=(np.array([0]), np.array([0.5])),  # no look at them beforehand
            max_iterations=n + warm_up + 1,
            seed=0,
        )
        return record.overhead(warm_up, warm_up + n)

    few = as_timed(8, n_directions=2)
    for what, blocks in {
        "a value ({}, batches of 8)": [
            block(few, 20, 0.0, SLOW_CALL) for _ in range(min(effort.n_blocks, 5))
        ],
        "a vectorised call ({})": [
            block(as_timed(), n, SLOW_CALL, 0.0) for _ in range(effort.n_blocks)
        ],
    }.items():
        name = f"iteration / time in a black box of 1 ms {what.format(rows.name)}"
        yield Row.of(name, blocks, unit="x", bar=BARS["slow"])


def _a9a_problem(
    rows: Samples, record: Record, pause: float = 0.0, per_value: float = 0.0
) -> dszog.Problem:
    X, y = rows.dense, rows.y
    losses = dszog.Losses.linear(X, y, _loss)
    pairs = dszog.Constraints.pairwise(X[y > 0], X[y < 0])
    own, others = losses.values_at, pairs.values_at
    if pause or per_value:
        own = _lasting(own, pause, per_value)
        others = _lasting(others, pause, per_value)
    return dszog.Problem(
        dszog.Losses(record.losses(own), len(y)),
        dszog.Constraints(record.pairs(others), len(pairs)),
        X.shape[1],
    )


def _loss(scores: FloatArray, y: FloatArray) -> FloatArray:
    return 1.0 - np.exp(-np.square(y - scores))


def _lasting(values: Any, pause: float, per_value: float) -> Any:
    """Return a black box of which a call lasts so long, and so long for each value."""

    def slow(points: FloatArray, indices: IntArray) -> Any:
        n_values = len(points) * len(indices)
        until = time.perf_counter() + pause + per_value * n_values
        answer = values(points, indices)
        while time.perf_counter() < until:
            pass
        return answer

    return slow


# ------------------------------------------------------------- an iteration over m


def _rotated_block(m: int, n: int, pause: float = 0.0, **more: Any) -> Block:
    """Return a block of `n` iterations under `m` constraints."""

    def make(record: Record) -> dszog.Problem:
        def watched(losses: Any) -> Any:
            return record.losses(_lasting(losses, pause, 0.0) if pause else losses)

        return rotated_problem(m, watched)

    return lambda: iteration_seconds(make, as_timed(), n, **more)


def over_constraints(effort: Effort) -> Iterator[Row]:
    """Time an iteration at m = 10^6 to 10^12 over one at 10^4, on the same rows."""
    n, (least, *others) = effort.iterations, effort.counts
    for m in others:
        yield _compared(
            f"iteration at m = {m:.0e} / at m = {least:.0e}",
            {"iteration": _rotated_block(m, n), "first": _rotated_block(least, n)},
            effort.n_blocks,
            BARS["constraints"] if m == others[-1] else None,
        )


# --------------------------------------------------------------- against plain NumPy


def against_plain(effort: Effort) -> Iterator[Row]:
    """Time Algorithm 1 as printed, dense, over an iteration of the library."""
    for m in effort.plain_counts:
        yield _plain_row(m, effort)


def _plain_row(m: int, effort: Effort) -> Row:
    # On pairs of generated rows: their values cost little, so that what is compared is
    # the algorithm.
    losses, pairs = _losses_and_pairs(m)
    is_small = m <= 10**5
    batch = min(BATCH, len(losses))
    plain = Plain(
        losses=losses.values,
        constraints=pairs.values,
        n_losses=len(losses),
        m=m,
        loss_batch=batch,
    )
    rng = np.random.Generator(np.random.Philox(key=0))
    n_steps = 20 if is_small else 2

    def printed() -> float:
        # Equal weights stand for the look at all constraints, which is not timed.
        state = plain.uniform_start(np.zeros(DIM))
        state = plain.step(state, plain.draw(state, rng))
        before = time.perf_counter()
        for _ in range(n_steps):
            state = plain.step(state, plain.draw(state, rng))
        return (time.perf_counter() - before) / n_steps

    def make(record: Record) -> dszog.Problem:
        recorded = dszog.Losses(record.losses(losses.values_at), len(losses))
        return dszog.Problem(recorded, pairs, DIM)

    def ours() -> float:
        return iteration_seconds(make, as_timed(loss_batch=batch), effort.iterations)

    return _compared(
        f"plain dense Algorithm 1 / iteration, m = {m:,}",
        {"plain": printed, "iteration": ours},
        effort.n_blocks if is_small else min(effort.n_blocks, 5),
        PLAIN_BARS.get(m),
        direction="at least",
    )


def _losses_and_pairs(m: int) -> tuple[dszog.Losses, dszog.Constraints]:
    """Return `m` black-box pairs of about as many rows of each kind, and losses."""
    n_positive = next(n for n in range(math.isqrt(m), 0, -1) if m % n == 0)
    n_negative = m // n_positive
    rng = np.random.Generator(np.random.Philox(key=0))
    X = rng.standard_normal((n_positive + n_negative, DIM)) / np.sqrt(DIM)
    y = np.repeat([1.0, -1.0], [n_positive, n_negative])
    X += 0.2 * y[:, np.newaxis]
    pairs = dszog.Constraints.pairwise(X[y > 0], X[y < 0]).black_box()
    return dszog.Losses.linear(X, y, _loss), pairs


# ----------------------------------------------------------------- memory and comforts


def memory(effort: Effort) -> Iterator[Row]:
    """Measure the peak of memory above the data at m = 10^12."""
    m = effort.counts[-1]
    yield Row(
        what=f"peak memory above the data, m = {m:.0e}",
        figure=memory_above_data(m, effort.iterations),
        unit="MB",
        bar=LARGEST_MEMORY,
    )


def comforts(effort: Effort) -> Iterator[Row]:
    """Time an iteration with a progress bar, or saved, over one without."""
    n = effort.iterations
    yield _compared(
        "iteration with progress / without",
        {
            "shown": _rotated_block(10**6, n, progress=True),
            "iteration": _rotated_block(10**6, n),
        },
        effort.n_blocks,
    )
    n = max(n // 3, 20)
    for values, pause in (("cost nothing", 0.0), ("take 10 ms a step", 10 * SLOW_CALL)):
        yield _compared(
            f"iteration saved with checkpoint= / not, where values {values}",
            {
                "saved": _rotated_block(10**6, n, pause, checkpoint=True),
                "iteration": _rotated_block(10**6, n, pause),
            },
            max(effort.n_blocks // 2, 3),
            BARS["checkpoint"] if pause else None,
        )
