"""`dszog solve`: runs what it is told to, says what came of it, loses nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

pytest.importorskip("cyclopts")

import dszog
import dszog.cli.solve as solve_module
from dszog import METHODS
from dszog.cli.loading import load_problem
from tests.cli.conftest import SOURCE, Dszog, start

Solve: TypeAlias = Callable[..., tuple[int, str]]

MODEL = """
from __future__ import annotations

import os
import time
from dataclasses import dataclass

import numpy as np
import dszog


@dataclass
class Settings:  # looks its own module up by name
    pause: float = float(os.environ.get("PAUSE", "0"))


angles = np.linspace(0, 2 * np.pi, 500)


def values(points, j):
    time.sleep(Settings().pause)
    if os.path.exists("calls"):
        with open("calls", "a") as file:
            file.write(".")
    return points @ [np.cos(angles[j]), np.sin(angles[j])] - 1.0


problem = dszog.Problem(
    lambda x: float(np.sum((x - 2.0) ** 2)), dszog.Constraints(values, m=500), dim=2
)


def make():
    return problem


def broken():
    raise RuntimeError("no \\x1b[31mdata")


def wants(argument):
    return problem


number = 3
failing = dszog.Problem(
    lambda x: float("nan") if x[0] > 0.05 else float(np.sum((x - 2.0) ** 2)),
    dszog.Constraints(values, m=500),
    dim=2,
)
"""


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture
def solve(model: Path, dszog: Dszog) -> Solve:
    """Return what runs `dszog solve ...` here: the exit code and what was said.

    What is wrong has to be said on standard error, and nothing else beside it.
    """

    def run(*words: str) -> tuple[int, str]:
        code, out, err = dszog("solve", *words)
        if code in (1, 2):
            *progress, wrong = err.splitlines(keepends=True)
            assert wrong.startswith("dszog solve: ")
            assert code == 1 or (out, progress) == ("", [])
            return code, wrong + out
        return code, out

    return run


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=120)
    return process.returncode, out, err


RUN = ("--seed", "3", "--max-iterations", "60", "--set", "penalty=300")


# -------------------------------------------------------------------- what it runs
def test_the_run_is_that_of_minimize(solve: Solve) -> None:
    code, said = solve(
        "model.py:problem", *RUN, "--set", "n_directions=3", "-o", "result.json"
    )
    found = json.loads(Path("result.json").read_text())
    options = {"penalty": 300.0, "n_directions": 3}
    problem = load_problem("model.py:problem")
    result = dszog.minimize(problem, max_iterations=60, seed=3, options=options)
    assert found["digest"] == result.digest
    assert found["x"] == result.x.tolist()
    for name in ("fun", "maxcv", "nit", "nfev", "ncev", "success"):
        assert found[name] == result[name]
    assert (found["nit"], found["status"]) == (60, "MAX_ITERATIONS")
    assert options.items() <= found["method"].items()
    assert code == (0 if result.success else 3)
    assert result.digest in said
    assert not list(Path().glob(".*part"))


def test_scale_workers_tag_and_picture_are_passed_on(solve: Solve) -> None:
    pytest.importorskip("matplotlib")
    words = ("model.py:problem", *RUN[:4], "-o", "a.json", "--x-scale")
    solve(*words, "2,4", "--plot", "run.png")
    workers = ("--evaluator", "threads", "--workers", "2", "--tag", "May")
    solve(*words, "2,4", *workers, "--checkpoint", "run")
    one = json.loads(Path("a.json").read_text())
    problem = load_problem("model.py:problem").rescaled([2.0, 4.0])
    result = dszog.minimize(problem, seed=3, max_iterations=60)
    assert one["digest"] == result.digest
    assert Path("run.png").read_bytes()[:4] == b"\x89PNG"
    code, said = solve(*words, "2,4", "--checkpoint", "run", "--resume", "--tag", "x")
    assert code == 2
    assert "tag" in said


def test_help_names_every_method(dszog: Dszog) -> None:
    said = dszog("solve", "--help")[1]
    missing = [name for name in METHODS if not re.search(rf"\b{name}\b", said)]
    assert not missing, f"not in the docstring of `solve`, cli/solve.py: {missing}"


def test_a_traceback_is_shown_if_it_is_asked_for(model: Path, dszog: Dszog) -> None:
    bad = "bad = dszog.Problem(lambda x: 1 / 0, None, 2, bounds=[(0, 1)] * 2)\n"
    model.write_text(MODEL + bad)
    code, _, told = dszog("solve", "model.py:bad", "--traceback")
    assert code == 1
    assert "in <lambda>" in told
    assert "in <lambda>" not in dszog("solve", "model.py:bad")[2]


def test_a_function_without_arguments_may_return_the_problem(solve: Solve) -> None:
    one = solve("model.py:problem", *RUN)[1]
    other = solve("model.py:make", *RUN)[1]
    assert one == other


def test_a_method_of_scipys_has_the_stand_in_that_it_has_in_python(
    solve: Solve,
) -> None:
    code, said = solve("model.py:problem", *RUN[:4], "--method", "SLSQP", "-o", "a")
    assert code in (0, 3), said
    assert json.loads(Path("a").read_text())["method"]["type"] == "SampledSQP"


@pytest.mark.parametrize(
    ("tolerance", "code", "first"),
    [
        ("10", 0, "Success: every constraint is kept"),
        ("0", 3, "No success: the result does not keep the constraints"),
    ],
)
def test_the_verdict_comes_first_and_the_exit_code_says_the_same(
    solve: Solve, tolerance: str, code: int, first: str
) -> None:
    words = ("--seed", "1", "--max-iterations", "300", "--set", "penalty=1")
    got, said = solve("model.py:problem", *words, "--constraint-tol", tolerance)
    assert got == code
    assert said.startswith(first)
    assert said.index("objective ") > said.index("All iterations were made.")


def test_unknown_numbers_are_null_in_the_output(solve: Solve) -> None:
    code, said = solve(
        "model.py:failing", *RUN, "--on-failure", "resample", "-o", "result.json"
    )
    text = Path("result.json").read_text()
    assert code == 3
    assert "NaN" not in text
    assert "Infinity" not in text
    assert json.loads(text)["failures"]["failed"] > 0
    assert "failures " in said


# ------------------------------------------------------------------------ wrong usage

WRONG = [
    (["model.py"], r"say which problem of which file, got 'model.py'. For example"),
    (["model.py:"], "say which problem of which file"),
    (["model.py:a b"], "say which problem of which file"),
    (["model.txt:problem"], r"must be Python \(.py\), got model.txt. Put"),
    (["other.py:problem"], "there is no file other.py. Check the path"),
    (["model.py:problm"], "has no 'problm'. Did you mean 'problem'?"),
    (["model.py:zzz"], "has no 'zzz'. Problems in it: problem, make, bro"),
    (["model.py:number"], "'number' in model.py must be a dszog.Problem or a function"),
    (["model.py:wants"], r"must take no arguments, got wants\(argument\). Give them"),
]
WRONG_OPTIONS = [
    ("--set penalti=3", "Did you mean 'penalty'?"),
    ("--set foo=3", "no option 'foo'. Options: 'tol', 'constraint_batch', "),
    ("--set penalty", "takes name=value, got 'penalty'. For"),
    (
        "--set step_size=a",
        "solve: --set step_size takes a number, got 'a'. For example --set step_size=0",
    ),
    ("--set penalty=1_0", "takes a number, got '1_0'"),
    ("--set n_directions=1.5", "takes a whole number, got"),
    ("--set step=1", "mean 'step_size' or 'step_eps' or 'ste"),
    ("--set antithetic=1", "takes true or false, got '1'"),
    ("--set start=cold", "'auto', 'exact', 'sampled', got 'c"),
    ("--set penalty=1 --set penalty=2", "given twice"),
    ("--set penalty=-1", "--set penalty must be positive"),
    ("--method zopsgd --set domain=1", "cannot be writ"),
    ("--method dsog", "--method must be .* mean 'dszog'?"),
    (
        "--method powell",
        r"one of 'auto', 'dszog', .*', got 'powell'\. It is one of SciPy: "
        r"call scipy\.optimize\.minimize, .*; or leave --method out",
    ),
    ("--set beta=3", "It is the paper's letter for 'penalty'"),
    ("--evaluator serail", "Did you mean 'serial'?"),
    ("--workers 2", "--workers goes with --evaluator threads"),
    ("--timeout 2", "--timeout needs workers that can be end"),
    ("--tag May", "--tag guards a run that is saved, got no"),
    ("--x-scale 1,a", "takes numbers separated by commas, got"),
    ("--x-scale 1,2,3,4,5,6", "--x-scale must be a positive n"),
    ("--plot run.xyz", "--plot must end in .png, .svg, .pdf, .eps or .jpg, got"),
    ("--method slqp", "got 'slqp'.* mean 'slsqp'?"),
    ("--plot no/run.png", "is not there. Make it, or name an"),
    ("--resume", "--resume needs the folder of the run, got no"),
    (
        "--max-queries 5",
        r"need \d+ queries, got --max-queries 5. Raise --max-queries, or lower "
        "--set n_directions and the batch sizes, such as --set loss_batch",
    ),
    ("--max-time -1", "solve: --max-time must be positive"),
    ("--seed -1", "solve: --seed must be at least 0, got -1"),
    ("--on-failure x", "solve: --on-failure must be one of"),
    ("--output .", "must be a file, got the folder '.'. Name"),
    ("--output no/r.json", "is not there. Make it, or name an"),
]
WRONG += [
    (["model.py:problem", *options.split()], said) for options, said in WRONG_OPTIONS
]


@pytest.mark.parametrize(("words", "said"), WRONG, ids=[" ".join(w) for w, _ in WRONG])
def test_wrong_usage_is_one_line_with_the_cure_and_calls_nothing(
    solve: Solve, words: list[str], said: str
) -> None:
    Path("calls").write_text("")
    code, text = solve(*words)
    assert code == 2
    assert re.search(said.replace("?", r"\?"), text)
    assert "--set --set" not in text
    assert text.count("\n") == 1
    assert Path("calls").read_text() == ""


# ------------------------------------------------------------------------- the file
@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("import dszog\n\nproblem = 1 / 0\n", "line 3: ZeroDivisionError: division by"),
        ("problem = (\n", "line 1: SyntaxError: '(' was never closed"),
        ("import sys\nsys.exit(0)\n", "line 2: SystemExit: 0"),
        ("def problem():\n    raise SystemExit(0)\n", "line 2: SystemExit: 0"),
        ("raise ValueError('No data.')\n", "line 1: ValueError: No data. Fix"),
    ],
)
def test_an_error_of_the_file_has_its_line(solve: Solve, file: str, told: str) -> None:
    Path("bad.py").write_text(file)
    code, said = solve("bad.py:problem")
    assert code == 1
    assert f"bad.py, {told}" in said
    assert "Fix the file; python bad.py shows more." in said


def test_terminal_escapes_of_a_file_are_not_passed_on(solve: Solve) -> None:
    file, told = "no\x1b[31m\x07.py:problem", "RuntimeError: no \\x1b[31mdata"
    for word, code, shown in (
        ("model.py:broken", 1, told),
        (file, 2, "no\\x1b[31m\\x07"),
    ):
        got, said = solve(word)
        assert (got, shown in said, "\x1b" in said) == (code, True, False)


def test_a_run_that_the_dashboard_ends_says_how_to_go_on(
    solve: Solve, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dszog.save.store.LOOK_EVERY", 0.0)
    stops = "os.close(os.open('run/stop', os.O_CREAT))"
    model.write_text(MODEL.replace("time.sleep(Settings().pause)", stops))
    code, said = solve("model.py:problem", *RUN, "--checkpoint", "run")
    assert code in (0, 3)
    assert "the same command with --resume goes on" in said


def test_the_current_folder_is_not_searched_for_modules(model: Path) -> None:
    Path("here.py").write_text("raise SystemExit(99)\n")
    Path("sub").mkdir()
    Path("sub/sched.py").write_text("raise SystemExit(98)\n")  # hides nothing
    Path("sub/beside.py").write_text("from sched import scheduler as problem\n")
    Path("sub/needs.py").write_text("from beside import problem\nimport here\n")
    code, _, err = finish(start("solve", "sub/needs.py:problem"))
    assert code == 1
    assert "needs.py imports 'here', which is neither installed nor beside it" in err
    assert "PYTHONPATH=FOLDER dszog solve" in err


def test_a_file_cannot_hide_an_installed_module(solve: Solve) -> None:
    Path("json.py").write_text(MODEL)
    before = dict(sys.modules)
    solve("json.py:problem", *RUN)
    assert sys.modules["json"] is before["json"]
    assert "dszog_solve_json" not in sys.modules


# ---------------------------------------------------------------- saved and resumed
STRAIGHT = ("solve", "model.py:problem", *RUN)
SAVED = (*STRAIGHT, "--checkpoint", "run", "--resume", "-o", "result.json")


def interrupt(number: int, code: int, folder: Path) -> None:
    """Begin a run, send it a signal, and look at what it leaves behind."""
    (folder / "calls").write_text("")
    process = start(*SAVED, PAUSE="0.02")
    while (folder / "calls").stat().st_size < 20:
        time.sleep(0.02)
        assert process.poll() is None
    process.send_signal(number)
    got, out, err = finish(process)
    stopped = json.loads((folder / "result.json").read_text())
    assert got == code, err
    assert out.startswith("Interrupted. This is the best point so far.")
    assert "the same command with --resume goes on" in out
    assert stopped["status"] == "INTERRUPTED"
    assert stopped["success"] is False
    assert 0 < stopped["nit"] < 60


def test_sigterm_saves_and_reports_and_resume_gives_the_digest_of_a_straight_run(
    model: Path, tmp_path: Path
) -> None:
    interrupt(signal.SIGTERM, 143, tmp_path)
    n_before = (tmp_path / "calls").stat().st_size
    code, _, err = finish(start(*SAVED))
    resumed = json.loads((tmp_path / "result.json").read_text())
    assert code in (0, 3), err
    assert resumed["nit"] == 60
    n_resumed = (tmp_path / "calls").stat().st_size - n_before
    (tmp_path / "calls").write_text("")
    finish(start(*STRAIGHT, "-o", "straight.json"))
    straight = json.loads((tmp_path / "straight.json").read_text())
    assert resumed["digest"] == straight["digest"]
    assert resumed["x"] == straight["x"]
    assert n_resumed < (tmp_path / "calls").stat().st_size  # not begun again


def test_ctrl_c_does_the_same_with_its_own_code(model: Path, tmp_path: Path) -> None:
    interrupt(signal.SIGINT, 130, tmp_path)


@pytest.mark.parametrize(
    ("number", "code", "more"),
    [(signal.SIGTERM, 143, ()), (signal.SIGINT, 130, ("--checkpoint", "run"))],
)
def test_a_signal_while_the_file_is_run_has_its_code_and_nothing_is_saved(
    model: Path, number: int, code: int, more: tuple[str, ...]
) -> None:
    Path("slow.py").write_text(
        f"import os, time\nos.kill(os.getpid(), {number:d})\ntime.sleep(60)\n"
    )
    got, out, _ = finish(start("solve", "slow.py:problem", *more))
    assert (got, out.strip()) == (code, "Interrupted before there was a result.")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
@pytest.mark.parametrize("step", ["_report", "as_json", "write_text"])
def test_a_signal_while_a_result_is_told_and_written_loses_nothing_of_it(
    solve: Solve, monkeypatch: pytest.MonkeyPatch, number: int, code: int, step: str
) -> None:
    real = getattr(solve_module, step)

    def pressed(*arguments: Any) -> Any:
        signal.raise_signal(number)
        return real(*arguments)

    monkeypatch.setattr(solve_module, step, pressed)
    got, out = solve("model.py:problem", *RUN, "-o", "result.json")
    assert got == code
    assert "Written to result.json." in out
    assert "before there was a result" not in out
    assert json.loads(Path("result.json").read_text())["nit"] == 60


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGINT", 130)])
@pytest.mark.parametrize("loaded", ["numpy", "cyclopts", "dszog.cli.solve"])
def test_a_signal_while_the_command_is_loaded_is_one_line_with_its_code(
    model: Path, name: str, code: int, loaded: str
) -> None:
    Path("pressing.py").write_text(
        "import signal, sys\n"
        "class Presser:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {loaded!r}:\n"
        f"            signal.raise_signal(signal.{name})\n"
        "sys.meta_path.insert(0, Presser())\n"
    )
    paths = os.pathsep.join([str(SOURCE), "."])
    words = ("solve", "model.py:problem")
    process = start(*words, before="import pressing; ", PYTHONPATH=paths)
    assert finish(process) == (code, "", "Interrupted before anything was done.\n")


def test_the_command_line_takes_its_signal_handlers_away_again(solve: Solve) -> None:
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    solve("model.py:problem", *RUN)
    assert {n: signal.getsignal(n) for n in signal.valid_signals()} == before


def test_a_run_that_breaks_off_exits_with_1_and_can_go_on(solve: Solve) -> None:
    words = ("model.py:failing", *RUN, "--checkpoint", "run", "--resume")
    code, said = solve(*words)
    assert code == 1
    assert "The run is saved: fix the function" in said
    assert "the point was not checked" in said
    fixed = MODEL.replace('float("nan") if x[0] > 0.05 else ', "")
    Path("model.py").write_text(fixed)
    os.utime("model.py", (2e9, 2e9))  # not the compiled one
    code, said = solve(*words)
    assert code in (0, 3)
    assert "60 iterations" in said


def test_a_folder_of_another_run_is_wrong_usage(solve: Solve) -> None:
    solve("model.py:problem", *RUN, "--checkpoint", "run")
    code, said = solve("model.py:problem", *RUN, "--checkpoint", "run")
    assert code == 2
    assert "holds checkpoints of an earlier run. Go on with it: --resume" in said
    other = ("--seed", "4", "--max-iterations", "60", "--set", "penalty=300")
    code, said = solve("model.py:problem", *other, "--checkpoint", "run", "--resume")
    assert code == 2
    assert "differs in: seed (3 there, 4 here)" in said
