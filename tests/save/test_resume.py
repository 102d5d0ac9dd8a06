"""A run that was killed and resumed goes the way of one that was not, bit for bit."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import platform
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import rosen

import dszog
import dszog.save.store as store_module
from dszog import (
    CheckpointError,
    CheckpointWarning,
    CheckpointWriteError,
    Constraints,
    InputError,
    kernels,
)
from dszog.contract import Cost, cost
from dszog.contract.arrays import frozen_floats
from dszog.run.history import Counts
from dszog.run.meter import Meter
from dszog.save.checkpoints import NOTED
from dszog.save.container import pack, unpack
from dszog.save.files import write_whole
from dszog.save.fingerprint import rounding
from tests.fuzz.mutate import holders
from tests.runs import Record, by_dszog, said_by
from tests.save.cells import CELLS, Cell, Killed, change_headers, charged, die_at
from tests.save.system_calls import CALLS, full_disk, watched

DSZOG_CELL = CELLS[0]
pytestmark = pytest.mark.usefixtures("no_syncs")


@pytest.fixture(params=["always", "never"])
def cadence(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Save after each iteration, or only where rounds begin and end."""
    name: str = request.param
    save_every(0.0 if name == "always" else 1e9, monkeypatch)
    return name


@pytest.fixture
def saves_often(monkeypatch: pytest.MonkeyPatch) -> None:
    save_every(0.0, monkeypatch)


def save_every(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "SAVE_EVERY", seconds)
    monkeypatch.setattr(store_module, "SAVE_SHARE", 1e9)


def run(
    folder: Path | None = None,
    before: Callable[[int], None] = lambda n: None,
    **more: Any,
) -> Any:
    """Begin or resume a run of DSZOG in a new process, so to speak."""
    return DSZOG_CELL.fresh(before).run(folder, **more)


def mortal(function: Callable[..., Any], dies_at: int) -> Callable[..., Any]:
    """Return a function in one of whose calls the process dies."""
    numbers, before = itertools.count(1), die_at(dies_at)

    def called(*arguments: Any) -> Any:
        before(next(numbers))
        return function(*arguments)

    return called


def until_it_lives(attempt: Callable[[], Any]) -> Any:
    """Return what comes of attempts that may die."""
    while True:
        with contextlib.suppress(Killed):
            return attempt()


def same_result(first: Any, second: Any, *, is_old: bool = False) -> None:
    """Assert that two results are alike; the first may be that of a run that ended."""
    assert first.digest == second.digest
    assert first.x.tobytes() == second.x.tobytes()
    assert (first.fun, first.maxcv) == (second.fun, second.maxcv)
    assert (first.nit, first.nfev, first.ncev) == (second.nit, second.nfev, second.ncev)
    message, n_said = re.subn(
        r" This is the result of .*? empty folder\.", "", first.message
    )
    assert (message, n_said) == (second.message, is_old)
    assert first.status == second.status
    assert first.weights[0].tobytes() == second.weights[0].tobytes()
    assert first.weights[1].tobytes() == second.weights[1].tobytes()
    for name in first.history:
        if name != "elapsed":
            np.testing.assert_array_equal(first.history[name], second.history[name])
    assert first.costs.n_oracle_calls == second.costs.n_oracle_calls
    assert first.costs.n_projections == second.costs.n_projections


# Each method is killed with one cadence in the quick tests, and with both in all.
EVERY_OTHER = [
    pytest.param(
        cell,
        cadence,
        id=f"{cell}-{cadence}",
        marks=[pytest.mark.slow] if (number + turn) % 2 else [],
    )
    for number, cell in enumerate(CELLS)
    for turn, cadence in enumerate(("always", "never"))
]


@pytest.mark.parametrize(("cell", "cadence"), EVERY_OTHER, indirect=["cadence"])
def test_a_run_that_dies_in_every_call_ends_as_one_that_lives(
    cell: Cell, cadence: str, tmp_path: Path
) -> None:
    straight = cell.fresh()
    expected = straight.run()
    folder, n_deaths, n_calls = tmp_path / "run", 0, 0
    result = None
    while result is None:
        # Each process answers a batch or two (of at most two calls) anew, then dies.
        one = cell.fresh(die_at(3 + n_deaths % 2))
        try:
            result = one.run(folder)
        except Killed:
            n_deaths += 1
            n_calls += one.n_calls - 1
            assert n_deaths < 50
            continue
        n_calls += one.n_calls
    same_result(result, expected)
    assert n_deaths >= 3
    assert n_calls >= straight.n_calls  # a batch of several calls is begun again


def test_a_finished_run_is_told_without_a_call(cadence: str, tmp_path: Path) -> None:
    first = run(tmp_path / "run")
    for _ in range(2):
        result = run(tmp_path / "run", die_at(1))
        same_result(result, first, is_old=True)
        assert repr(str(tmp_path / "run")) in result.message


def test_a_function_may_change_the_working_directory(
    saves_often: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    for _ in range(2):
        monkeypatch.chdir(tmp_path)
        away = lambda number: os.chdir(tmp_path / "other")  # noqa: E731
        assert run(Path("run"), away, max_iterations=5).nit == 5
    assert not (tmp_path / "other" / "run").exists()


def test_a_checkpoint_of_another_layout_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "run", max_iterations=2)
    change_headers(tmp_path / "run", lambda facts: facts.pop("layout"))
    with pytest.raises(CheckpointError, match=r"finish it with that version, or begin"):
        run(tmp_path / "run")


def test_a_tag_is_the_same_beside_a_problem_and_in_it(tmp_path: Path) -> None:
    def of(of_problem: str, beside: str) -> Any:
        limits = Constraints(lambda p, j: p[:, :1] - 2.0 - j, 5)
        problem = dszog.Problem(lambda x: float(x @ x), limits, 2, tag=of_problem)
        more: dict[str, Any] = {"max_iterations": 4, "seed": 1, "tag": beside}
        folder = tmp_path / "run"
        return dszog.minimize(problem, checkpoint=folder, resume=True, **more)

    first = of("May", "")
    for of_problem, beside in [("May", "May"), ("", "May")]:
        same_result(of(of_problem, beside), first, is_old=True)
    with pytest.raises(InputError, match="has the tag 'May', got 'June' beside it"):
        of("May", "June")


def test_a_run_with_restarts_and_failures_resumes(cadence: str, tmp_path: Path) -> None:
    def attempt(folder: Path | None, dies_at: int = 10**9) -> Any:
        def values(points: Any, i: Any) -> Any:
            table = 1e3 * ((points[:, None, :] - 2.0) ** 2).sum(axis=2) + 0.0 * i
            table[np.abs(np.sin(9e4 * points[:, 0])) < 0.02] = np.nan
            return table

        return by_dszog(
            dszog.Losses(mortal(values, dies_at), 4), np.full(2, 0.3),
            Constraints(lambda p, j: p.sum(axis=1, keepdims=True) - 1.0 - j, 5),
            max_iterations=60, seed=4, on_failure="resample", checkpoint=folder,
            resume=folder is not None,
        )  # fmt: skip

    expected = attempt(None)
    assert expected.failures.n_failed > 0
    result = until_it_lives(lambda: attempt(tmp_path / "run", dies_at=14))
    same_result(result, expected)
    assert result.failures.n_failed == expected.failures.n_failed
    assert result.failures.n_points == expected.failures.n_points
    assert result.failures.kinds == expected.failures.kinds
    assert [f.message for f in result.failures.first] == [
        f.message for f in expected.failures.first
    ]


@pytest.mark.parametrize(("size", "said"), [(1e7, ""), (1e10, r"again [4-9] times")])
def test_iterates_that_ran_away_do_so_again(
    cadence: str, tmp_path: Path, size: float, said: str
) -> None:
    def attempt(folder: Path | None, dies_at: int = 10**9) -> Any:
        return by_dszog(
            mortal(lambda x: float(size * np.sum((x - 2.0) ** 4)), dies_at),
            np.zeros(2),
            Constraints(lambda points, j: points[:, :1] - 1.0 - j, 3),
            max_iterations=30, seed=0, checkpoint=folder, resume=folder is not None,
        )  # fmt: skip

    expected = attempt(None)
    assert "The iterates ran away" in expected.message
    assert re.search(said, expected.message)
    same_result(until_it_lives(lambda: attempt(tmp_path / "run", 30)), expected)


# ----------------------------------------------------------------------------- budgets
def test_time_of_earlier_processes_counts(tmp_path: Path) -> None:
    killed(tmp_path / "run", at=6, max_time=1000.0)
    with pytest.MonkeyPatch.context() as patch:
        # The first process seems to have run for long before it died.
        def long_ago(self: Meter, counts: Counts) -> None:
            go_on_from(self, replace(counts, seconds=2000.0))

        go_on_from = Meter.go_on_from
        patch.setattr(Meter, "go_on_from", long_ago)
        result = run(tmp_path / "run", max_time=1000.0)
    assert result.status == dszog.Status.MAX_TIME


def test_a_run_goes_on_to_a_raised_budget(cadence: str, tmp_path: Path) -> None:
    first = run(tmp_path / "run", max_iterations=8)
    second = run(tmp_path / "run", max_iterations=20)
    assert (first.nit, second.nit) == (8, 20)
    assert second.costs.n_lost > 0  # the look at the first result
    assert second.digest != first.digest
    again = run(tmp_path / "run", die_at(1), max_iterations=20)
    same_result(again, second, is_old=True)
    # It is reached the same way, however often it dies.
    run(tmp_path / "hunted", max_iterations=8)
    hunted = until_it_lives(
        lambda: run(tmp_path / "hunted", die_at(3), max_iterations=20)
    )
    assert hunted.digest == second.digest


def test_a_budget_may_be_lowered_but_not_below_what_was_used(tmp_path: Path) -> None:
    killed(tmp_path / "lower", at=11)
    assert run(tmp_path / "lower", max_iterations=3).nit < 12
    first = run(tmp_path / "run", max_queries=3000)
    used = first.nfev + first.ncev
    with pytest.raises(dszog.InputError, match=r"has used [\d,]+ queries, got max_"):
        run(tmp_path / "run", die_at(1), max_queries=used // 2)
    last = run(tmp_path / "run", die_at(1), max_queries=3000)
    np.testing.assert_array_equal(last.x, first.x)


def test_a_run_with_another_budget_names_its_method_once(tmp_path: Path) -> None:
    ball: Any = {"type": "ineq", "fun": lambda x: 9.0 - x @ x}
    more: dict[str, Any] = {"checkpoint": tmp_path / "run", "seed": 0}
    start = [-1.2, 1.0, -1.0, 1.5, 0.3]
    dszog.minimize(rosen, start, ball, max_iterations=30, **more)
    result = dszog.minimize(rosen, start, ball, max_iterations=34, resume=True, **more)
    assert result.nit == 34
    assert result.message.count("The method is sampled_sqp") == 1


# -------------------------------------------------------------- interrupts and errors
def interrupt_at(iteration: int) -> Callable[[dszog.Progress], None]:
    def callback(progress: dszog.Progress) -> None:
        if progress.iteration == iteration:
            raise KeyboardInterrupt

    return callback


@pytest.mark.parametrize("iteration", [1, 5, 12])
def test_after_ctrl_c_it_can_go_on(
    cadence: str, tmp_path: Path, iteration: int
) -> None:
    expected = run()
    stopped = run(tmp_path / "run", callback=interrupt_at(iteration))
    result = run(tmp_path / "run")
    assert stopped.status == dszog.Status.INTERRUPTED
    assert not stopped.success
    assert stopped.nit == iteration
    assert (result.digest, result.nit) == (expected.digest, expected.nit)
    assert result.costs.n_lost >= 0


@pytest.mark.parametrize("max_iterations", [12, 20])
def test_ctrl_c_while_replaying_ends_it(tmp_path: Path, max_iterations: int) -> None:
    def press(progress: dszog.Progress) -> None:
        raise KeyboardInterrupt

    killed(tmp_path / "run")
    stopped = run(tmp_path / "run", max_iterations=max_iterations, callback=press)
    assert stopped.status == dszog.Status.INTERRUPTED
    assert stopped.nit < 12
    assert run(tmp_path / "run").digest == run().digest


def pressed_at(
    number: int, names: tuple[str, ...], run: Callable[[], Any], again: int = 0
) -> tuple[Any, int]:
    """Send SIGINT after some system call of a run; return it, or None, and their count.

    None is what is returned of a run that raises KeyboardInterrupt.
    """

    def press(name: str, place: int, *arguments: Any) -> None:
        if place in (number, again):
            signal.raise_signal(signal.SIGINT)

    with watched(names, after=press) as made:
        try:
            result = run()
        except KeyboardInterrupt:
            result = None
    return result, len(made)


@pytest.mark.filterwarnings("ignore::dszog.CheckpointWarning")  # of half a record
@pytest.mark.parametrize(
    ("names", "every"),
    [
        (("fsync",), 1e9),
        (("close",), 1e9),
        pytest.param(CALLS, 1e9, marks=pytest.mark.slow),
        pytest.param(CALLS, 0.0, marks=pytest.mark.slow),
    ],
    ids=["each sync", "each close", "each call", "each call of many saves"],
)
def test_ctrl_c_at_each_call_returns_a_result_and_the_run_can_go_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, ...],
    every: float,
    record_property: Record,
) -> None:
    save_every(every, monkeypatch)
    run()  # what is loaded once would be among the calls
    straight, n_calls = pressed_at(0, names, partial(run, tmp_path / "straight"))
    lost = []
    for number in range(1, n_calls + 1):
        folder = tmp_path / str(number)
        stopped, _ = pressed_at(number, names, partial(run, folder))
        if stopped is None:
            lost.append(number)
        else:
            assert stopped.status == dszog.Status.INTERRUPTED
            assert not stopped.success
            assert stopped.message.startswith("The run was interrupted")
        assert run(folder).digest == straight.digest
    record_property("interrupts at system calls", n_calls)
    record_property("results lost at system calls", len(lost))
    assert n_calls >= 16
    # Before anything is evaluated, and nothing is lost there: the lock is opened,
    # emptied and signed, and a wish to stop that was for a run before is deleted.
    assert lost == ([1, 2, 3, 4] if "open" in names else [])


def test_a_second_ctrl_c_in_a_save_leaves_at_once_and_the_run_can_go_on(
    saves_often: None, tmp_path: Path
) -> None:
    straight = run().digest
    for number in range(1, 16):
        folder = tmp_path / str(number)
        result, n_calls = pressed_at(
            number, ("fsync",), partial(run, folder), again=number + 1
        )
        assert n_calls <= number + 2  # the journal is synced, and that is all
        assert result is None
        assert run(folder).digest == straight


def test_ctrl_c_while_a_run_is_closed_locks_nobody_out(tmp_path: Path) -> None:
    for number in (1, 2):
        store = store_module.Store(tmp_path, resume=True)
        store.save({}, {})
        result, n_calls = pressed_at(number, ("close",), store.close)
        assert (result, n_calls) == (None, 2)  # of the journal and of the lock
        store_module.Store(tmp_path, resume=True).close()


def test_a_signal_that_waits_is_told_to_the_program(tmp_path: Path) -> None:
    told: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: told.append(number))
    try:
        result, n_calls = pressed_at(5, ("fsync",), lambda: run(tmp_path / "run"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert told == [signal.SIGINT]
    assert result.status == dszog.Status.MAX_ITERATIONS  # it did not interrupt
    assert n_calls == 18  # two of them for the word of its end


def test_an_interrupt_is_raised_on_request(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", callback=interrupt_at(5), on_interrupt="raise")
    assert run(tmp_path / "run").digest == run().digest


def test_the_library_installs_no_signal_handlers(tmp_path: Path) -> None:
    def handlers(*_: Any) -> list[Any]:
        return [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

    before, seen = handlers(), list[Any]()
    run(tmp_path / "run", callback=lambda progress: seen.append(handlers()))
    assert seen
    assert all(each == before for each in seen)


@pytest.mark.parametrize("error", [StopIteration, RuntimeError])
def test_a_run_that_a_callback_ended_goes_on(
    cadence: str, tmp_path: Path, error: type[Exception]
) -> None:
    def end(progress: dszog.Progress) -> None:
        if progress.iteration == 5:
            raise error("my own")

    first, second, straight = (DSZOG_CELL.fresh() for _ in range(3))
    if error is StopIteration:
        stopped = first.run(tmp_path / "run", callback=end)
        assert (stopped.status, stopped.nit) == (dszog.Status.STOPPED_BY_CALLBACK, 5)
        assert "A callback or the dashboard ended the run." in stopped.message
        assert stopped.certificate.is_known
        assert not stopped.success
        n_checked = first.n_calls - n_calls_until(5)
    else:
        with pytest.raises(RuntimeError, match="my own"):
            first.run(tmp_path / "run", callback=end)
        n_checked = 0
    assert second.run(tmp_path / "run").digest == straight.run().digest
    # No reply is lost: what is called again is the check of the result that was told.
    assert first.n_calls + second.n_calls == straight.n_calls + n_checked


def n_calls_until(iteration: int) -> int:
    """Return how many calls a run has made when this iteration is over."""
    cell, counts = DSZOG_CELL.fresh(), dict[int, int]()
    cell.run(callback=lambda seen: counts.update({seen.iteration: cell.n_calls}))
    return counts[iteration]


def test_a_function_that_failed_is_asked_again(cadence: str, tmp_path: Path) -> None:
    def failing(number: int) -> None:
        if number == 8:
            raise ZeroDivisionError("not yet")

    said = r" raised ZeroDivisionError: not yet at iteration \d+, x = "
    with pytest.raises(dszog.EvaluationError, match=said) as caught:
        run(tmp_path / "run", failing)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    so_far = caught.value.result
    assert so_far.nit > 0
    assert not so_far.success
    assert np.isnan(so_far.fun)
    result = run(tmp_path / "run")
    assert result.digest == run().digest
    assert result.costs.n_lost > 0


@pytest.mark.parametrize("took", [0.001, 0.05, 1.5])
def test_saving_takes_two_percent_of_the_time_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took: float
) -> None:
    now, n_saves = 0.0, 1
    clock = SimpleNamespace(perf_counter=lambda: now)

    def written(*given: Any) -> None:
        nonlocal now
        now += took
        write_whole(*given)

    monkeypatch.setattr(store_module, "time", clock)
    monkeypatch.setattr(store_module, "write_whole", written)
    store = store_module.Store(tmp_path, resume=True)
    store.save({}, {})
    while now < 2000.0:
        now += 0.1  # a hundred calls of a millisecond
        if store.is_due:
            store.save({}, {})
            n_saves += 1
    store.close()
    assert n_saves > 5
    assert n_saves * took <= 0.02 * now


@pytest.mark.parametrize("call", ["write", "pwrite", "rename"])
def test_a_full_disk_is_loud_and_gives_the_result_so_far(
    saves_often: None, tmp_path: Path, call: str
) -> None:
    said = pytest.raises(CheckpointWriteError, match="No space left")
    with full_disk(call, first=7), said as caught:
        run(tmp_path / "run")
    assert caught.value.result.x.shape == (3,)
    assert not caught.value.result.success
    assert run(tmp_path / "run").digest == run().digest


@pytest.mark.parametrize("call", ["write", "pwrite", "rename", "fsync"])
@pytest.mark.parametrize("lasts", [False, True])
def test_a_full_disk_may_be_a_warning_that_is_counted(
    saves_often: None, tmp_path: Path, call: str, lasts: bool
) -> None:
    straight = run()
    said = pytest.warns(CheckpointWarning, match="No space left")
    with full_disk(call, 7, 10**9 if lasts else 11), said:
        found = run(tmp_path / "run", on_save_failure="warn")
    assert found.digest == straight.digest
    assert found.costs.n_failed_saves > 0
    assert straight.costs.n_failed_saves == 0
    again = DSZOG_CELL.fresh()
    assert again.run(tmp_path / "run").digest == straight.digest
    # Room was made: the end of the run is there. Else an earlier part of it is.
    assert (again.n_calls == 0) == (not lasts)


# ------------------------------------------------------------------------ another run
GIVEN: dict[str, Any] = {
    "seed": 1,
    "method": "dszog",
    "options": {"radius": 1e-4},
    "constraint_tol": 1e-2,
    "on_failure": "resample",
}


def other(**changes: Any) -> Callable[[Path], Any]:
    """Return a run that differs in one thing from the one in the folder."""

    def differing(folder: Path) -> Any:
        dim = changes.get("dim", 2)
        problem = dszog.Problem(
            dszog.Losses(
                lambda p, i: (p**2).sum(1)[:, None] + 0.0 * i, changes.get("n", 4)
            ),
            Constraints(lambda p, j: p[:, :1] - 1.0 - j, changes.get("m", 5)),
            dim,
            bounds=changes.get("bounds", [(-3.0, 3.0)] * 2) * (dim // 2),
            x0=np.resize(changes.get("x0", [0.0, 0.0]), dim),
            x_scale=changes.get("x_scale", 1.0),
            tag=changes.get("tag", "a"),
        )
        settings = {name: changes.get(name, GIVEN[name]) for name in GIVEN}
        return dszog.minimize(
            problem, max_iterations=4, checkpoint=folder, resume=True, **settings
        )

    return differing


OTHERS: dict[str, dict[str, Any]] = {
    r"dim \(2 there, 4 here\)": {"dim": 4},
    r"number of losses \(4 there, 6 here\)": {"n": 6},
    r"number of constraints \(5 there, 7 here\)": {"m": 7},
    r"lower bounds \(\[-3, -3\] there, \[-2, -2\] here\)": {
        "bounds": [(-2.0, 3.0)] * 2
    },
    r"upper bounds \(\[3, 3\] there, \[3, 2\] here\)": {
        "bounds": [(-3.0, 3.0), (-3.0, 2.0)]
    },
    r"x0 \(\[0, 0\] there, \[0, 4.94066e-324\] here\)": {"x0": [0.0, 5e-324]},
    r"x_scale \(\[1, 1\] there, \[2, 2\] here\)": {"x_scale": 2.0},
    r"x_scale \(\[1, 1\] there and here, but they differ in what is not shown\)": {
        "x_scale": 1.0 + 1e-9
    },
    r"tag \('a' there, 'b' here\)": {"tag": "b"},
    r"seed \(1 there, 2 here\)": {"seed": 2},
    r"method radius \(0.0001 there, 0.001 here\)": {"options": {"radius": 1e-3}},
    "method penalty": {"options": {"radius": 1e-4, "penalty": 7.0}},
    "method type": {"method": "sampled_sqp", "options": {}},
    "constraint_tol": {"constraint_tol": 1e-3},
    "on_failure": {"on_failure": "penalise"},
}


@pytest.mark.parametrize(("said", "changes"), OTHERS.items(), ids=OTHERS)
def test_another_run_is_refused_by_what_it_differs_in(
    tmp_path: Path, said: str, changes: dict[str, Any]
) -> None:
    other()(tmp_path / "run")
    before = sorted(path.stat().st_size for path in (tmp_path / "run").iterdir())
    with pytest.raises(CheckpointError, match=f"differs in: .*{said}"):
        other(**changes)(tmp_path / "run")
    after = sorted(path.stat().st_size for path in (tmp_path / "run").iterdir())
    assert after == before


def test_the_seed_of_the_folder_is_used_if_none_is_given(tmp_path: Path) -> None:
    first = other(seed=None)(tmp_path / "run")
    assert other(seed=None)(tmp_path / "run").seed == first.seed


def test_the_first_weights_are_part_of_the_run(tmp_path: Path) -> None:
    run(tmp_path / "run", weights=(np.array([2]), np.array([1.0])))
    with pytest.raises(CheckpointError, match="differs in: weights"):
        run(tmp_path / "run")


@pytest.mark.parametrize("name", ["dszog", "NumPy", "SciPy", "Python", "machine"])
def test_other_versions_and_machines_are_told_of(tmp_path: Path, name: str) -> None:
    first = run(tmp_path / "run")
    change_headers(
        tmp_path / "run",
        lambda facts: facts["about"]["surroundings"].update({name: "0.0"}),
    )
    with pytest.warns(CheckpointWarning, match=rf"began elsewhere: {name} \(0.0 there"):
        assert run(tmp_path / "run").digest == first.digest


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: facts.update(generation=99),
        lambda facts: facts.update(run="zz"),
        lambda facts: facts.update(run=3),
        lambda facts: facts.update(run="00"),
        lambda facts: facts.update(about=[]),
        lambda facts: facts.update(more=1),
        lambda facts: facts.pop("run"),
        lambda facts: facts["about"].update(seed=1),
        lambda facts: facts["about"].update(seed="-1"),
        lambda facts: facts["about"].pop("seed"),
        lambda facts: facts["about"].update(fingerprint=3),
        lambda facts: facts["about"]["fingerprint"].update(dim=3),
        lambda facts: facts["about"].pop("surroundings"),
        *(
            lambda facts, n_calls=n_calls: facts["about"].update({NOTED: n_calls})
            for n_calls in ("2", -1, True, 2**63)
        ),
    ],
)
def test_a_header_that_was_tampered_with_gives_our_error(
    tmp_path: Path, change: Callable[[dict[str, Any]], None]
) -> None:
    run(tmp_path / "run")
    change_headers(tmp_path / "run", change)
    with pytest.raises(CheckpointError):
        run(tmp_path / "run")


WRONGS: list[Any] = [None, -1, "x", {"list": []}, {"dict": []}, {"array": 0}]


def test_tampered_content_gives_a_result_or_our_error(tmp_path: Path) -> None:
    template = tmp_path / "template"
    killed(template)
    *older, path = sorted(template.glob("checkpoint-*"))
    for one in older:
        one.unlink()
    facts, arrays = unpack(path.read_bytes())
    tree = json.loads(arrays[0].tobytes())
    n_refused = 0
    for number in range(0, len(list(holders(tree))), 4):
        changed = json.loads(arrays[0].tobytes())
        holder, key = list(holders(changed))[number]
        holder[key] = WRONGS[number // 4 % len(WRONGS)]
        text = np.frombuffer(json.dumps(changed).encode(), dtype=np.uint8)
        folder = tmp_path / "run"
        shutil.copytree(template, folder)
        write_whole(folder / path.name, pack(facts, [text, *arrays[1:]]))
        try:
            run(folder, max_iterations=3)
        except CheckpointError:
            n_refused += 1
        shutil.rmtree(folder)
    assert n_refused > 120


# -------------------------------------------------------------------- other versions
@contextlib.contextmanager
def elsewhere() -> Iterator[None]:
    """Be where numbers are rounded otherwise, which a checkpoint takes note of."""
    tell = dszog.DSZOG.tell

    def rounded(method: Any, *arguments: Any) -> Any:
        state, info = tell(method, *arguments)
        x = frozen_floats(np.nextafter(state.x, np.inf))
        return replace(state, x=x), info

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dszog.DSZOG, "tell", rounded)
        patch.setattr("dszog.save.fingerprint.rounding", lambda: "#0123456789abcdef")
        yield


def killed(folder: Path, at: int = 9, **more: Any) -> None:
    """Begin or resume a run that dies in a call."""
    with pytest.raises(Killed):
        run(folder, die_at(at), **more)


LOST = re.compile(r"([\d,]+) queries are charged as lost, and the run goes on")


def test_a_run_goes_on_where_numbers_are_rounded_otherwise(tmp_path: Path) -> None:
    killed(tmp_path / "run")
    with elsewhere():
        with pytest.warns(CheckpointWarning) as told:
            result = run(tmp_path / "run")
        straight = run()
    said = "began elsewhere: rounding (others there than here)"
    assert said in str(told[0].message)
    (lost,) = LOST.findall(str(told[1].message))
    assert 0 < int(lost.replace(",", "")) <= result.costs.n_lost  # and those in flight
    assert (result.nit, result.status) == (12, dszog.Status.MAX_ITERATIONS)
    # Up to rounding it is the run that began there.
    np.testing.assert_allclose(result.x, straight.x, rtol=1e-6)


def test_the_budget_holds_over_all_places(tmp_path: Path) -> None:
    budget, workers = 20_000, Clumsy()
    more: dict[str, Any] = {"max_queries": budget, "max_iterations": None}
    more["evaluator"] = workers

    def in_five_places() -> Any:
        for number in range(4):
            with elsewhere() if number % 2 else contextlib.nullcontext():
                killed(tmp_path / "run", at=20, **more)
        return run(tmp_path / "run", **more)

    with pytest.warns(CheckpointWarning) as told:
        result = in_five_places()
    assert sum(bool(LOST.search(str(one.message))) for one in told) >= 3
    assert workers.n_queries <= charged(result) <= budget


def test_other_numbers_in_the_same_place_are_an_error(tmp_path: Path) -> None:
    killed(tmp_path / "run")
    with elsewhere(), pytest.MonkeyPatch.context() as patch:
        patch.setattr("dszog.save.fingerprint.rounding", rounding)
        with pytest.raises(CheckpointError, match="answers other questions"):
            run(tmp_path / "run")


def with_kernels(choice: str, run: Callable[[], Any]) -> Any:
    """Run with compiled kernels ("numba") or without ("numpy")."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(kernels.SWITCH, choice)
        kernels.chosen.cache_clear()
        try:
            return run()
        finally:
            kernels.chosen.cache_clear()


@pytest.mark.parametrize(("first", "then"), [("numba", "numpy"), ("numpy", "numba")])
@pytest.mark.parametrize("at", [3, 6, 9, 14])
def test_a_run_goes_on_with_other_kernels(
    tmp_path: Path, first: str, then: str, at: int
) -> None:
    pytest.importorskip("numba")
    with_kernels(first, lambda: killed(tmp_path / "run", at=at))
    with pytest.warns(CheckpointWarning) as told:
        result = with_kernels(then, lambda: run(tmp_path / "run"))
    assert "began elsewhere: kernels" in str(told[0].message)
    assert result.nit == 12


OTHER_ROUNDING = """
import dszog.save.fingerprint
print(dszog.save.fingerprint.rounding())
"""


@pytest.mark.slow
def test_other_kernels_of_blas_are_other_surroundings() -> None:
    def found(**more: str) -> str:
        return said_by("-c", OTHER_ROUNDING, OPENBLAS_NUM_THREADS="1", **more)

    names = ("Prescott", "Sandybridge", "Haswell")
    each = [found(OPENBLAS_CORETYPE=name) for name in names]
    assert each == [found(OPENBLAS_CORETYPE=name) for name in names]
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    if "openblas" in blas and platform.machine() == "x86_64":  # whose kernels these are
        assert len(set(each)) == len(names)


# ------------------------------------------------------------------------------ golden

GOLDEN = Path(__file__).with_name("golden")
GOLDEN_DIGEST = (GOLDEN / "digest.txt").read_text().strip()


@pytest.mark.filterwarnings("ignore::dszog.CheckpointWarning")  # of another machine
def test_a_checkpoint_of_an_earlier_version_is_continued(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / "run", tmp_path / "run")
    (tmp_path / "run").chmod(0o700)
    result = run(tmp_path / "run")
    assert result.nit == 12
    x = [float.fromhex(entry) for entry in (GOLDEN / "x.txt").read_text().split()]
    np.testing.assert_allclose(result.x, x, rtol=1e-9)
    if is_where_it_was_made():
        assert result.digest == GOLDEN_DIGEST


def is_where_it_was_made() -> bool:
    """Whether versions and machine are those of the golden file: then all bits are."""
    facts, _ = unpack(sorted((GOLDEN / "run").glob("checkpoint-*"))[-1].read_bytes())
    there = facts["about"]["surroundings"]
    here = dszog.save.fingerprint.surroundings()
    return all(there[name] == here[name] for name in ("NumPy", "Python", "kernels"))


# ------------------------------------------------------------------------------- kills
MANY = [pytest.mark.slow, pytest.mark.timeout(3000)]


@pytest.mark.parametrize(
    ("n_kills", "seed", "evaluator"),
    [
        (8, 0, "serial"),
        pytest.param(1000, 1, "serial", marks=MANY),
        pytest.param(300, 2, "processes", marks=MANY),
    ],
)
def test_killed_processes_leave_what_the_next_one_needs(
    n_kills: int, seed: int, evaluator: str, record_property: Record
) -> None:
    script = str(Path(__file__).with_name("kill_loop.py"))
    words = (script, str(n_kills), str(seed), evaluator)
    found = json.loads(said_by(*words, OMP_NUM_THREADS="1"))
    for figure in ("kills", "runs", "mismatches", "orphans"):
        record_property(figure, found[figure])
    if evaluator == "processes":
        record_property("kills with workers", found["kills"])
    record_property("evaluations lost beyond the batch", max(found["most lost"], 0))
    assert found["kills"] >= n_kills
    assert found["runs"] > 0
    assert found["mismatches"] == 0
    assert found["orphans"] == 0
    assert found["most lost"] <= 0


class Clumsy:
    """Workers of which one is lost in each batch: all is evaluated twice."""

    can_stop = False

    def __init__(self) -> None:
        self.n_queries = 0  # that were really made

    def open(self, problem: dszog.Problem, timeout: float | None = None) -> Any:
        """Return its own evaluator: it holds one problem at a time."""
        self._size = problem.size
        self._answer = dszog.EVALUATORS["serial"](problem)
        self.charge: Callable[[Cost], bool] = lambda again: True
        return self

    def __call__(self, queries: Any) -> Any:
        each = cost(queries, self._size)
        self.n_queries += each.total
        replies = self._answer(queries)
        if self.charge(each):
            self.n_queries += each.total
            replies = self._answer(queries)
        return replies

    def close(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("every", [0.0, 10.0])
def test_what_was_made_again_is_charged_to_the_budget_of_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, every: float
) -> None:
    save_every(every, monkeypatch)
    budget, n_deaths, workers = 20_000, 5, Clumsy()
    rng = np.random.Generator(np.random.Philox(key=3))
    more: dict[str, Any] = {"max_queries": budget, "max_iterations": None}
    more["evaluator"] = workers
    for at in rng.integers(1, 9, n_deaths):
        killed(tmp_path / "run", at=int(at), **more)
    result = run(tmp_path / "run", **more)
    assert workers.n_queries <= charged(result) <= budget
    assert result.costs.n_retried > 0.3 * budget
    # What is charged and was not made: the second go at a batch that was not reached.
    assert charged(result) - workers.n_queries <= n_deaths * 500
