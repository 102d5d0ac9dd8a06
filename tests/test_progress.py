from __future__ import annotations

import io
import re
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dszog
from dszog.progress import lines, terminal
from dszog._arrays import FloatArray, IntArray
from dszog.progress import line, share_done, show_progress
from dszog.run import Limits, Progress


def seen_at(**changes: Any) -> Progress:
    values: dict[str, Any] = {
        "iteration": 1234,
        "n_queries": 56_789,
        "elapsed": 3.0,
        "x": np.zeros(2),
        "sampled_objective": 0.123456,
        "sampled_violation": 0.00123456,
        "sampled_share": 0.5,
        "n_touched": 7,
    }
    return Progress(**(values | changes))


def short_run(**changes: Any) -> Any:
    def values(points: FloatArray, indices: IntArray) -> FloatArray:
        return points[:, :1] - 1.0 + 0.0 * indices

    arguments: dict[str, Any] = {"max_iterations": 12, "seed": 0} | changes
    return dszog.minimize(
        lambda x: float(x @ x), [3.0, 1.0], dszog.Constraints(values, 9), **arguments
    )


N_LOOKS = 1  # at the constraints, before the first of the iterations; shown, too


class Terminal(io.StringIO):
    """Standard error of somebody who is watching."""

    def isatty(self) -> bool:
        return True


# ------------------------------------------------------------------- how far a run is


@pytest.mark.parametrize(
    ("limits", "share"),
    [
        (Limits(), 0.0),
        (Limits(iterations=12_340), 0.1),
        (Limits(queries=113_578), 0.5),
        (Limits(time=4.0), 0.75),
        (Limits(iterations=12_340, queries=113_578, time=4.0), 0.75),
        (Limits(iterations=12_340, queries=113_578), 0.5),
        (Limits(iterations=1234), 1.0),
        (Limits(iterations=10), 1.0),
    ],
    ids=[
        "no limit",
        "iterations",
        "queries",
        "time",
        "all three: the nearest",
        "two: the nearest",
        "done",
        "beyond",
    ],
)
def test_share_done_is_that_of_the_nearest_limit(limits: Limits, share: float) -> None:
    assert share_done(seen_at(), limits) == pytest.approx(share)


def test_a_line_says_where_the_run_is_and_that_its_values_are_samples() -> None:
    assert line(seen_at()) == (
        "iteration 1,234  queries 56,789  objective ~0.1235  violation seen 0.00123"
    )


# ----------------------------------------------------------------- lines, in a log


def test_without_a_terminal_there_is_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    clock = SimpleNamespace(monotonic=lambda: now)
    monkeypatch.setattr("dszog.progress.lines.time", clock)
    with show_progress(True, Limits(iterations=100)) as (show,):
        for iteration in range(1, 31):
            now += 1.0
            show(seen_at(iteration=iteration))
    said = capsys.readouterr()
    assert not said.out
    lines = said.err.splitlines()
    assert [re.findall(r"iteration (\d+)", text) for text in lines] == [
        [str(iteration)] for iteration in range(5, 31, 5)
    ]
    assert lines[0].split()[:2] == ["dszog", "5%"]
    assert lines[-1].split()[:2] == ["dszog", "30%"]


def test_a_run_without_a_terminal_writes_lines_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    result = short_run(progress=True)
    said = capsys.readouterr()
    assert not said.out
    lines = said.err.splitlines()
    assert len(lines) == N_LOOKS + result.nit == N_LOOKS + 12
    assert lines[0].startswith("dszog   0%  iteration 0  queries ")
    assert re.fullmatch(
        r"dszog 100%  iteration 12  queries [\d,]+  objective ~\S+  violation seen \S+",
        lines[-1],
    )
    assert "\x1b" not in said.err


def test_a_short_run_without_a_terminal_is_silent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    short_run(progress=True)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_is_shown_if_it_is_not_wanted(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    stderr = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    short_run(progress=False)
    short_run()
    assert stderr.getvalue() == ""
    assert capsys.readouterr().out == ""
    with show_progress(False, Limits(iterations=100)) as callbacks:
        assert callbacks == ()


def test_showing_progress_changes_no_bit_of_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    quiet, shown = short_run(progress=False), short_run(progress=True)
    assert quiet.x.tobytes() == shown.x.tobytes()
    assert (quiet.nit, quiet.ncev, quiet.message) == (
        shown.nit,
        shown.ncev,
        shown.message,
    )


def test_the_users_callback_is_called_beside_the_shown_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    iterations: list[int] = []
    short_run(
        progress=True, callback=lambda progress: iterations.append(progress.iteration)
    )
    assert iterations == list(range(13))  # 0 is the look at the constraints
    assert len(capsys.readouterr().err.splitlines()) == N_LOOKS + 12


# ------------------------------------------------------------------ a bar, to a person


def test_on_a_terminal_there_is_a_bar_that_ends_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(progress_module, "BAR_EVERY", 0.0)
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    result = short_run(progress=True, max_iterations=None, max_queries=1_000)
    drawn = stderr.getvalue()
    assert f"iteration {result.nit} " in drawn
    assert "100%" in drawn  # though the check of the result left some queries over
    assert "dszog " not in drawn  # no lines beside the bar
    assert capsys.readouterr().out == ""


def test_a_terminal_without_rich_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    monkeypatch.setattr(progress_module, "LINE_EVERY", 0.0)
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    short_run(progress=True)
    assert len(stderr.getvalue().splitlines()) == N_LOOKS + 12
    assert "\x1b" not in stderr.getvalue()
