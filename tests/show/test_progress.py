from __future__ import annotations

import io
import math
import re
import sys
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dszog import Losses, minimize
from dszog.run.history import Progress
from dszog.run.meter import Limits
from dszog.show.progress import Lines, line, show_progress
from dszog.show.progress.summary import time_left
from tests import runs


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


short_run = partial(runs.short_run, max_iterations=12)


N_LOOKS = 1  # at the constraints, before the first of the iterations; shown, too


class Terminal(io.StringIO):
    """Standard error of somebody who is watching."""

    def isatty(self) -> bool:
        return True


def test_a_line_leaves_out_what_is_not_known_and_adds_failures_and_time() -> None:
    unknown = seen_at(sampled_violation=math.nan, sampled_share=math.nan, n_failed=17)
    assert line(unknown, left=125.0) == (
        "iteration 1,234  queries 56,789  objective ~0.1235  failures 17  "
        "left 2 min 05 s"
    )


def test_a_run_without_a_terminal_writes_lines_to_standard_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Lines, "every", 0.0)
    result = short_run(progress=True)
    said = capsys.readouterr()
    assert not said.out
    written = said.err.splitlines()
    assert len(written) == N_LOOKS + result.nit == N_LOOKS + 12
    assert written[0].startswith("dszog   0%  iteration 0  queries ")
    assert re.fullmatch(
        r"dszog 100%  iteration 12  queries [\d,]+  objective ~\S+  "
        r"worst violation seen \S+  share violated ~\S+%  left 0 s",
        written[-1],
    )
    assert "\x1b" not in said.err


@pytest.mark.parametrize(("stops_at", "share"), [(99, "100%"), (6, " 50%")])
def test_a_short_run_without_a_terminal_writes_one_line_at_its_end(
    stops_at: int, share: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(progress: Progress) -> None:
        if progress.iteration == stops_at:
            raise StopIteration

    result = short_run(progress=True, callback=stop)
    said = capsys.readouterr()
    assert said.out == ""
    assert re.fullmatch(
        rf"dszog {share}  iteration {result.nit}  queries [\d,]+  objective ~\S+  "
        r"worst violation seen \S+  share violated ~\S+%\n",
        said.err,
    )


def test_a_run_that_has_converged_is_at_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    small = {"type": "ineq", "fun": lambda x: 1.0 - x[0]}
    result = minimize(
        lambda x: float((x[0] - 2.0) ** 2), [0.0], [small], progress=True, seed=0
    )
    assert result.status.name == "CONVERGED"
    assert capsys.readouterr().err.startswith("dszog 100%  iteration ")


@pytest.mark.parametrize("terminal", [False, True])
def test_nothing_is_shown_if_it_is_not_wanted(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Lines, "every", 0.0)
    stderr = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    short_run(progress=False)
    short_run()
    assert stderr.getvalue() == ""
    assert capsys.readouterr().out == ""


def test_showing_progress_changes_no_bit_and_leaves_the_callback_of_the_user(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Lines, "every", 0.0)
    iterations: list[int] = []
    shown = short_run(progress=True, callback=lambda p: iterations.append(p.iteration))
    quiet = short_run(progress=False)
    assert quiet.digest == shown.digest
    assert (quiet.ncev, quiet.message) == (shown.ncev, shown.message)
    assert iterations == list(range(13))  # 0 is the look at the constraints
    assert len(capsys.readouterr().err.splitlines()) == N_LOOKS + 12


def watched(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    pytest.importorskip("rich")
    from dszog.show.progress.terminal import TerminalDisplay

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(TerminalDisplay, "every", 0.0)
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    return stderr


def without_escapes(drawn: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", drawn)


def test_on_a_terminal_there_is_a_bar_that_ends_full(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = watched(monkeypatch)
    result = short_run(progress=True, max_iterations=None, max_queries=1_000)
    drawn = without_escapes(terminal.getvalue())
    last = drawn[drawn.rindex("dszog ") :]
    assert "100%" in last  # though the check of the result left some queries over
    assert re.search(rf"iteration {result.nit}\s+queries [\d,]+ of 1,000", last)
    assert re.search(r"objective ~\S+\s+worst violation seen \S+", last)
    assert "left" not in last
    assert "failures" not in last
    assert capsys.readouterr().out == ""


def test_the_time_left_is_taken_from_the_pace_so_far() -> None:
    assert time_left(seen_at(), Limits(iterations=4 * 1234)) == pytest.approx(9.0)
    assert time_left(seen_at(), Limits(time=10.0)) == pytest.approx(7.0)
    for limits in (Limits(), Limits(iterations=100 * 1234)):  # too early to tell
        assert math.isnan(time_left(seen_at(), limits))


@pytest.mark.parametrize("has_rich", [True, False])
def test_a_terminal_that_cannot_draw_gets_lines(
    has_rich: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb" if has_rich else "xterm")
    if not has_rich:
        for name in ["rich", *(n for n in sys.modules if n.startswith("rich."))]:
            monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, "dszog.show.progress.terminal", raising=False)
    monkeypatch.setattr(Lines, "every", 0.0)
    stderr = Terminal()
    monkeypatch.setattr(sys, "stderr", stderr)
    short_run(progress=True)
    assert len(stderr.getvalue().splitlines()) == N_LOOKS + 12
    assert "\x1b" not in stderr.getvalue()


@pytest.mark.parametrize("has_widgets", [True, False])
def test_in_a_notebook_rich_draws_where_there_are_widgets(
    has_widgets: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    shell = SimpleNamespace(kernel=object())
    ipython = SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    there = SimpleNamespace() if has_widgets else None
    monkeypatch.setitem(sys.modules, "ipywidgets", there)
    with show_progress(Limits(iterations=2)) as shown:
        assert isinstance(shown, Lines) is not has_widgets


def test_an_objective_of_the_same_few_losses_is_said_to_be_one() -> None:
    few = line(seen_at(sampled_objective=7.25, n_held=120, n_losses=400))
    assert "objective ~7.25 (of 120 of 400 losses)" in few
    assert "losses" not in line(seen_at(n_held=400, n_losses=400))
    seen: list[Any] = []
    losses = Losses(lambda points, i: (points - i % 7) ** 2, 400)
    minimize(losses, [0.0], bounds=[(-9, 9)], seed=0, callback=seen.append)
    assert (seen[0].n_held, seen[0].n_losses) == (32, 400)
