"""What the logger "dszog" hears, and that nobody pays who does not listen."""

from __future__ import annotations

import logging

import numpy as np
import pytest

import dszog
from dszog.contract.arrays import FloatArray
from tests.runs import short_run


def heard(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.name == "dszog" and record.levelno == level
    ]


def test_info_tells_of_start_rounds_and_stop(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="dszog")
    result = short_run()
    said = heard(caplog, logging.INFO)
    assert said[0] == (
        "Start: DSZOG; variables 2, losses 1, constraints 9; seed 0; limits: "
        "iterations 40, queries None, seconds None."
    )
    assert [text for text in said if text.startswith("Round")] == [
        "Round 2 of 3 begins at iteration 8.",
        "Round 3 of 3 begins at iteration 16.",
    ]
    assert said[-1].startswith("Stop after ")
    assert result.verdict in said[-1]
    assert not heard(caplog, logging.DEBUG)


def test_debug_has_a_line_for_each_iteration(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="dszog")
    short_run(max_iterations=6)
    lines = heard(caplog, logging.DEBUG)
    assert [line.split("  ")[0] for line in lines] == [
        f"iteration {t}" for t in range(7)
    ]
    assert "worst violation seen" in lines[-1]


def test_failures_are_warned_of_more_rarely(caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    def often(x: FloatArray, j: int) -> float:
        nonlocal calls
        calls += 1
        if not calls % 400:
            raise ValueError("no \x1b[31mconvergence")
        return float(x[0] - 1.0)

    result = dszog.minimize(
        lambda x: float(np.sum((x - 2.0) ** 2)),
        [0.0, 1.0],
        dszog.Constraints.from_function(often, 5000),
        max_iterations=30,
        seed=0,
        on_failure="resample",
    )
    warnings = heard(caplog, logging.WARNING)

    numbers = [int(text.split()[1]) for text in warnings]
    n_failures = sum(result.failures.kinds.values())
    assert n_failures >= 8
    assert numbers == [2**k for k in range(n_failures.bit_length())]
    assert "(resample)" in warnings[0]
    assert "convergence" in warnings[0]
    assert not any("\x1b" in text for text in warnings)


def test_a_run_that_breaks_off_is_told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="dszog")

    def broken(progress: dszog.Progress) -> None:
        if progress.iteration == 4:
            raise dszog.EvaluationError("broken")

    with pytest.raises(dszog.EvaluationError):
        short_run(callback=broken)
    assert heard(caplog, logging.INFO)[-1] == "Broke off at iteration 4."


def test_logging_changes_no_bit(caplog: pytest.LogCaptureFixture) -> None:
    quiet = short_run()
    caplog.set_level(logging.DEBUG, logger="dszog")
    assert short_run().digest == quiet.digest


def test_nobody_who_does_not_listen_is_shown_anything() -> None:
    logger = logging.getLogger("dszog")
    assert [type(handler) for handler in logger.handlers] == [logging.NullHandler]
    assert logger.level == logging.NOTSET
