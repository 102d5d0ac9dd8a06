"""Processes: killed, stopped, silent, or ended by the function; none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog import Constraints, EvaluationError, InputError, Problem, Simulator
from dszog.contract.arrays import FloatArray
from dszog.workers import Processes, _supervisor, processes
from dszog.workers import _fork_server as wire
from dszog.workers._supervisor import MAX_ATTEMPTS
from tests.runs import python
from tests.workers.helpers import (
    PROBLEMS,
    Deadly,
    Misbehaves,
    UnpickledBy,
    WantsToLeave,
    children,
    crash,
    digest,
    fail_here,
    fail_to_load,
    leave,
    leave_politely,
    limit,
    living,
    load_for_too_long,
    load_slowly,
    make_slowly,
    need,
    objective,
    odd,
    scenario,
    scenario_of_model,
    sleep_long,
    solve,
    stay_away,
    stop_itself,
)

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
INF = float("inf")


def with_limit(function: Any, m: int = 30) -> Problem:
    return Problem(objective, Constraints.from_function(function, m), 3)


def simulated(run: Any, **more: Any) -> Problem:
    return Problem(Simulator(run, 20, 3, **more), None, 3)


# -------------------------------------------------------------------- what can be sent
def test_lambdas_and_closures_can_be_sent() -> None:
    pytest.importorskip("cloudpickle")
    shift = 0.25
    problem = with_limit(lambda x, j: limit(x, j) - shift)
    assert digest(solve(problem, Processes(2))) == digest(solve(problem))


def test_without_cloudpickle_functions_of_no_module_are_refused_with_a_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cloudpickle", None)
    with pytest.raises(InputError, match=r"cannot be sent.*pip install \"dszog\[proc"):
        solve(with_limit(lambda x, j: 1 / 0), "processes")
    plain = PROBLEMS["plain"]()
    assert digest(solve(plain, "processes")) == digest(solve(plain))
    monkeypatch.setattr(sys.modules["__main__"], "limit", limit, raising=False)
    monkeypatch.setattr(limit, "__module__", "__main__")
    with pytest.raises(InputError, match=r"script or notebook.*pip install"):
        solve(with_limit(limit), "processes")


def test_what_cannot_be_sent_at_all_is_refused_before_any_call() -> None:
    lock = threading.Lock()

    def locked(x: FloatArray, j: int) -> float:
        with lock:
            return limit(x, j)

    with pytest.raises(InputError, match=r"cannot be sent to other processes.*lock"):
        solve(with_limit(locked), "processes")


def test_an_exception_that_cannot_be_pickled_is_told_with_its_traceback() -> None:
    with pytest.raises(EvaluationError, match="raised OddError: odd one") as caught:
        solve(with_limit(odd), "processes")
    assert "In a worker" in str(caught.value.__cause__)
    assert "in odd" in str(caught.value.__cause__)


# --------------------------------------------------------------- workers that are lost
LOST = rf"Constraint 7 lost its worker {MAX_ATTEMPTS} times \(process \d+ ended"
ENDS = {  # a function, and how the run ends
    "left": (leave, LOST),
    "stopped": (stop_itself, LOST),
    "left politely": (leave_politely, "Constraint 7 raised SystemExit"),
    "not unpickled": (UnpickledBy(fail_here), r"cannot be unpacked[\s\S]*not here"),
    "left at once": (UnpickledBy(os._exit, 3), "in a row ended before they had unpack"),
    "asleep": (sleep_long, r"Constraint 7 took longer than timeout=0\.7 seconds"),
}
MORE = {  # in a test of many minutes
    "crashed": (crash, LOST),
    "never back": (stay_away, r"Constraint 7 took longer than timeout=0\.7 seconds"),
}


@pytest.mark.parametrize(
    ("function", "match"),
    [
        *ENDS.values(),
        *(pytest.param(*one, marks=pytest.mark.slow) for one in MORE.values()),
    ],
    ids=[*ENDS, *MORE],
)
def test_what_always_ends_its_worker_ends_the_run_with_an_error_that_says_so(
    function: Any, match: str
) -> None:
    timeout = 0.7 if "timeout" in match else None
    with pytest.raises(dszog.DszogError, match=match):
        solve(with_limit(function), Processes(2), timeout=timeout, max_iterations=40)


def test_failures_of_workers_follow_the_policy() -> None:
    problem, two = with_limit(leave), Processes(2)
    result = solve(problem, two, on_failure="resample", max_iterations=1)
    assert result.failures.kinds.keys() == {"worker lost"}
    assert not result.success
    assert result.costs.n_retried >= MAX_ATTEMPTS - 1


@linux
@pytest.mark.parametrize(
    ("which", "number"),  # the fork server comes first
    [(-1, signal.SIGSTOP), pytest.param(0, signal.SIGKILL, marks=pytest.mark.slow)],
    ids=["a worker", "the fork server"],
)
def test_a_stopped_worker_is_replaced(which: int, number: int, tmp_path: Path) -> None:
    calm = Deadly(str(tmp_path / "calm"), mean_life=INF, pause=0.002)
    stopped: list[int] = []

    def stop_one(progress: Any) -> None:
        if progress.iteration == 3:
            stopped.append(sorted(children() - before)[which])
            os.kill(stopped[-1], number)

    before = children()
    found = solve(calm.problem(), Processes(2), callback=stop_one)
    assert len(stopped) == 1
    assert digest(found) == digest(solve(calm.problem()))


@linux
@pytest.mark.parametrize(
    "how", ["fork_and_die", "fork_in_c_and_die", "start_a_program_and_die"]
)
def test_a_dead_worker_with_children_is_replaced(how: str, tmp_path: Path) -> None:
    problem = with_limit(Misbehaves(str(tmp_path), how, n=2))
    found = solve(problem, Processes(2))
    offspring = [int(note.read_text()) for note in tmp_path.iterdir()]
    lived_on = [pid in living() for pid in offspring]
    for pid in offspring:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert lived_on == [True, True]  # nobody waited for them
    assert found.costs.traffic.n_lost == 2
    assert digest(found) == digest(solve(PROBLEMS["plain"]()))


@pytest.mark.parametrize(
    "how",
    [
        "write_everywhere",
        "write_a_little_everywhere",
        "write_a_long_message_everywhere",
    ],
)
def test_a_worker_that_writes_to_all_is_replaced(how: str, tmp_path: Path) -> None:
    problem = with_limit(Misbehaves(str(tmp_path), how, n=2))
    found = solve(problem, Processes(2), timeout=20.0)  # else the old way would hang
    assert found.costs.traffic.n_lost == 2
    assert digest(found) == digest(solve(PROBLEMS["plain"]()))


def test_a_worker_that_never_stops_writing_is_named(tmp_path: Path) -> None:
    problem = with_limit(Misbehaves(str(tmp_path), "write_everywhere", n=10**6), m=2)
    with pytest.raises(
        EvaluationError, match=r"lost its worker .*wrote to the file descriptor that"
    ):
        solve(problem, Processes(2), timeout=20.0)


def test_a_child_that_returns_from_the_function_answers_nothing(tmp_path: Path) -> None:
    problem = with_limit(Misbehaves(str(tmp_path), "fork_and_return", n=8))
    found = solve(problem, Processes(2), timeout=20.0)
    traffic = found.costs.traffic
    assert traffic.n_duplicate == traffic.n_late == traffic.n_lost == 0
    assert digest(found) == digest(solve(PROBLEMS["plain"]()))


def test_a_message_is_taken_whole_and_only_as_it_was_sent() -> None:
    sent = wire.frame(wire.ANSWER, 7, b"body")
    for n_bytes in range(len(sent)):
        assert wire.taken(bytearray(sent[:n_bytes])) is None
    received = bytearray(sent + sent[:3])
    assert wire.taken(received) == (wire.ANSWER, 7, b"body")
    assert received == sent[:3]
    for place in range(8 * len(sent)):
        changed = bytearray(sent)
        changed[place // 8] ^= 1 << place % 8
        with pytest.raises(wire.GarbledError):
            wire.taken(changed)


# ---------------------------------------------------------------------------- timeouts
def test_a_timeout_is_a_failure_under_the_policy_and_is_not_tried_again() -> None:
    problem = Problem(
        objective, Constraints.from_function(sleep_long, 30).in_pieces(1), 3
    )
    result = solve(
        problem, Processes(2), timeout=0.5, on_failure="resample", max_iterations=2
    )
    assert result.failures.kinds.keys() <= {"timeout"}
    assert result.costs.n_retried == 0
    assert result.costs.traffic.n_timeouts > 0


def test_a_timeout_does_not_count_what_the_initializer_takes() -> None:
    call: dict[str, Any] = {"timeout": 0.5, "max_iterations": 2}
    with pytest.raises(EvaluationError, match=r"took longer than timeout=0\.5 seconds"):
        solve(simulated(scenario_of_model), Processes(2), **call)
    problem = simulated(scenario_of_model, initializer=load_slowly)
    ready = solve(problem, Processes(2), **call)
    assert digest(ready) == digest(solve(simulated(scenario), max_iterations=2))
    assert ready.costs.traffic.n_timeouts == 0


def test_a_timeout_does_not_count_how_long_a_problem_takes_to_unpack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_supervisor, "START", 0.1)
    problem = with_limit(UnpickledBy(make_slowly))
    found = solve(problem, Processes(2), timeout=0.3, max_iterations=2)
    assert found.costs.traffic.n_timeouts == 0


def test_an_initializer_that_fails_is_an_error_with_its_traceback() -> None:
    with pytest.raises(
        EvaluationError,
        match=r"initializer failed in a worker[\s\S]*no licence left[\s\S]*Fix it",
    ):
        solve(simulated(scenario, initializer=fail_to_load), Processes(2))


def test_a_worker_never_ready_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "START_PATIENCE", 0.5)
    with pytest.raises(EvaluationError, match=r"not ready after 0\.5 seconds.*import"):
        solve(simulated(scenario, initializer=load_for_too_long), Processes(2))


# ----------------------------------------------------------------------------- budgets
@pytest.mark.parametrize(
    "max_queries", [150, pytest.param(400, marks=pytest.mark.slow)]
)
def test_what_is_repeated_is_in_the_budget(tmp_path: Path, max_queries: int) -> None:
    deadly = Deadly(str(tmp_path / "log"), mean_life=10.0)
    result = solve(
        deadly.problem(),
        Processes(2),
        max_queries=max_queries,
        max_iterations=None,
        on_failure="resample",
    )
    charged = result.nfev + result.ncev + result.costs.n_retried
    assert deadly.calls().total() <= charged <= max_queries
    assert result.costs.n_retried > 0


# ------------------------------------------------------------------------- no orphans
@linux
def test_nothing_is_left_behind() -> None:
    before = children()
    solve(PROBLEMS["plain"](), Processes(3))
    with pytest.raises(EvaluationError):
        solve(with_limit(odd), Processes(3))
    assert children() == before


DRIVER = """
import os, signal, sys, time
from tests.workers.helpers import children, objective
from dszog import Constraints, Problem
from dszog.workers import Processes

def slow(x, j):
    time.sleep(1e6)

evaluator = Processes(2).open(Problem(objective, Constraints.from_function(slow, 9), 3))
from threading import Thread
from dszog import Query
import numpy as np
query = Query.at(np.zeros(3), iteration=0, constraints=np.arange(9))
Thread(target=evaluator, args=([query],), daemon=True).start()
while len(children()) < 3:
    time.sleep(0.05)
print(*children(), flush=True)
if sys.argv[1] == "forks" and not os.fork():
    os.close(1)
    signal.alarm(60)
time.sleep(1e6)
"""


@linux
@pytest.mark.slow
@pytest.mark.parametrize("also", ["", "forks"])
def test_workers_end_when_the_run_is_killed(also: str) -> None:
    start = python("-c", DRIVER, also)
    with subprocess.Popen(**start, stdout=subprocess.PIPE) as driver:
        assert driver.stdout is not None
        workers = {int(pid) for pid in driver.stdout.readline().split()}
        driver.kill()
    assert len(workers) == 3
    deadline = time.monotonic() + 5.0
    while workers & living().keys() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not workers & living().keys()


# -------------------------------------------------------------------------- interrupts
@pytest.mark.filterwarnings("ignore")  # of the clusters themselves
@pytest.mark.parametrize(
    "name",
    [
        "serial",
        "threads",
        "processes",
        pytest.param("dask", marks=pytest.mark.slow),
        pytest.param("ray", marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_of_a_function_ends_the_run(name: str, tmp_path: Path) -> None:
    need(name)

    def leaving(file: str) -> Problem:
        function = WantsToLeave(str(tmp_path / file))
        return Problem(objective, Constraints.from_function(function, 8), 3)

    result = solve(leaving("once"), name, max_iterations=50)
    assert result.status == dszog.Status.INTERRUPTED
    assert result.failures.n_failed == 0
    traffic = result.costs.traffic
    assert traffic is None or traffic.n_lost == traffic.n_retried == 0
    with pytest.raises(KeyboardInterrupt):
        solve(leaving("again"), name, max_iterations=50, on_interrupt="raise")


def test_after_an_interrupt_the_workers_answer_again() -> None:
    problem = PROBLEMS["plain"]()
    evaluator = Processes(2).open(problem)
    query = dszog.Query.at(np.zeros(3), iteration=0, constraints=np.arange(30))
    (wanted,) = evaluator([query])
    timer = threading.Timer(0.4, signal.raise_signal, [signal.SIGINT])
    slow = Processes(2).open(with_limit(sleep_long))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        slow([query])
    quick = dszog.Query.at(np.zeros(3), iteration=0, constraints=np.arange(7))
    (reply,) = slow([quick])
    np.testing.assert_array_equal(reply.constraints, wanted.constraints[:, :7])
    slow.close()
    evaluator.close()


def squares_at(points: FloatArray, indices: Any) -> FloatArray:
    squares: FloatArray = (points[:, :1] - indices / 3e5) ** 2
    return squares


def test_large_questions_and_answers_do_not_wait_for_each_other() -> None:
    losses = dszog.Losses(squares_at, 300_000)
    results = [
        dszog.minimize(
            losses.in_pieces(60_000),
            np.zeros(2),
            dszog.Constraints.linear(np.eye(2), 1.0),
            options={"loss_batch": 300_000, "n_directions": 1},
            max_iterations=1,
            seed=0,
            evaluator=evaluator,
        )
        for evaluator in ("serial", "processes")
    ]
    np.testing.assert_array_equal(results[0].x, results[1].x)
