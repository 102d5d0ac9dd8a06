from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dszog
from dszog.cli import main

MAX_QUERIES = 60_000  # the least that leaves room for some fifty iterations


@pytest.fixture
def command_line(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return what runs `dszog ...` in this process and returns its exit code."""
    pytest.importorskip("cyclopts")
    pytest.importorskip("rich")
    from dszog.cli.app import app

    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words: str) -> int:
        with pytest.raises(SystemExit) as caught:
            app(words)
        code = caught.value.code
        return 0 if code is None else int(code)

    return run


@pytest.fixture
def without_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)


@pytest.fixture
def without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def run_demo(run: Callable[..., int], folder: Path, *words: str) -> int:
    return run(
        "demo", "--output", str(folder), "--max-queries", str(MAX_QUERIES), *words
    )


# ----------------------------------------------------------------------- what it writes


def test_the_figures_are_those_of_the_same_run_made_again(
    command_line: Callable[..., int], without_matplotlib: None, tmp_path: Path
) -> None:
    from dszog.cli.demo import MARGIN, demo_problem

    code = run_demo(command_line, tmp_path, "--seed", "3")
    figures = json.loads((tmp_path / "demo.json").read_text())
    again = demo_problem(3)
    result = dszog.minimize(again.problem, max_queries=MAX_QUERIES, seed=3)

    scores, labels = again.X @ result.x, again.y
    gaps = scores[labels < 0] - scores[labels > 0][:, np.newaxis] + MARGIN
    losses = 1.0 - np.exp(-((labels - scores) ** 2))
    assert figures["objective"] == pytest.approx(losses.mean(), rel=1e-12)
    assert figures["objective_at_start"] == pytest.approx(1.0 - np.exp(-1.0))
    assert figures["worst_violation"] == pytest.approx(max(gaps.max(), 0.0), abs=1e-12)
    assert figures["share_violated"] == (gaps > 0.0).mean()
    assert figures["constraints"] == gaps.size == len(again.pairs)
    assert (figures["loss_queries"], figures["constraint_queries"]) == (
        result.nfev,
        result.ncev,
    )
    assert figures["loss_queries"] + figures["constraint_queries"] <= MAX_QUERIES
    assert figures["looks_at_all_constraints"] == result.ncev / gaps.size
    assert figures["iterations"] == result.nit > 20
    assert figures["message"] == result.message
    assert figures["success"] is bool(result.success)
    moved = figures["objective"] != figures["objective_at_start"]
    assert code == (0 if result.success and moved else 3)
    assert figures["dszog"] == dszog.__version__
    assert 0 < figures["seconds"] < 60


def check_default_demo(run: Callable[..., int], folder: Path) -> None:
    assert run("demo", "--output", str(folder)) == 0
    figures = json.loads((folder / "demo.json").read_text())
    assert figures["success"] is True
    assert figures["worst_violation"] <= 1e-2
    assert figures["objective"] < 0.95 * figures["objective_at_start"]
    assert figures["loss_queries"] + figures["constraint_queries"] <= 3_000_000


@pytest.mark.slow
@pytest.mark.usefixtures("without_scikit_learn", "without_matplotlib")
def test_as_it_comes_the_demo_keeps_the_constraints_and_lowers_the_objective(
    command_line: Callable[..., int], tmp_path: Path
) -> None:
    check_default_demo(command_line, tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("without_matplotlib")
def test_with_scikit_learn_the_demo_does_the_same(
    command_line: Callable[..., int], tmp_path: Path
) -> None:
    pytest.importorskip("sklearn")
    check_default_demo(command_line, tmp_path)


def test_a_picture_is_drawn(
    command_line: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib")
    run_demo(command_line, tmp_path)
    picture = tmp_path / "demo.png"
    assert picture.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    from matplotlib.image import imread

    pixels = imread(picture)
    assert min(pixels.shape[:2]) > 500
    assert 0.5 < pixels[..., :3].mean() < 1.0  # mostly white, and not nothing
    assert f"Picture: {picture}" in capsys.readouterr().out.replace("\n", "")


def test_without_matplotlib_the_demo_runs_and_says_why_there_is_no_picture(
    command_line: Callable[..., int],
    without_matplotlib: None,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert run_demo(command_line, tmp_path) in (0, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["demo.json"]
    assert "No picture: matplotlib is missing. pip install" in capsys.readouterr().out


def test_the_output_folder_is_made_and_named(
    command_line: Callable[..., int],
    without_matplotlib: None,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "not" / "there" / "yet"
    run_demo(command_line, folder)
    said = capsys.readouterr().out
    assert (folder / "demo.json").exists()
    assert "demo.json" in said
    for word in ("objective", "worst violation", "share violated", "queries"):
        assert word in said


# ------------------------------------------------------------------------ how it ends


@pytest.mark.parametrize(
    ("success", "code", "words"),
    [
        (True, 0, "A point that keeps every constraint"),
        (False, 3, "The best point found"),
    ],
)
def test_the_exit_code_and_the_verdict_say_whether_it_is_a_success(
    success: bool,
    code: int,
    words: str,
    command_line: Callable[..., int],
    without_matplotlib: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    minimize = dszog.minimize

    def declared(*args: Any, **kwargs: Any) -> Any:
        result = minimize(*args, **kwargs)
        result.success = success
        return result

    monkeypatch.setattr(dszog, "minimize", declared)
    assert run_demo(command_line, tmp_path) == code
    assert words in capsys.readouterr().out
    assert json.loads((tmp_path / "demo.json").read_text())["success"] is success


def test_too_small_a_budget_exits_with_2_and_says_how_many_are_needed(
    command_line: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert command_line("demo", "--output", str(tmp_path), "--max-queries", "10") == 2
    said = capsys.readouterr()
    assert re.search(
        r"^dszog demo: one iteration .* need \d+ queries, got --max-queries 10\. Raise",
        said.err,
    )
    assert "Traceback" not in said.out + said.err
    assert not (tmp_path / "demo.json").exists()


# ------------------------------------------------------------------------ what it says


def test_help_lists_the_commands(
    command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line("--help") == 0
    said = capsys.readouterr().out
    assert "Usage: dszog COMMAND" in said
    assert "demo" in said
    assert "Minimise what can only be evaluated" in said


def test_help_of_the_demo_explains_every_option(
    command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line("demo", "--help") == 0
    said = capsys.readouterr().out
    for words in (
        "--output",
        "-o",
        "Folder for the picture",
        "--seed",
        "Of the data and of the run",
        "--max-queries",
        "Values of losses and constraints",
        "dszog-demo",
        "3000000",
    ):
        assert words in said


def test_version_is_that_of_the_library(
    command_line: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line("--version") == 0
    assert capsys.readouterr().out.strip() == dszog.__version__


def test_main_takes_the_words_of_the_command_line() -> None:
    pytest.importorskip("cyclopts")
    pytest.importorskip("rich")
    command = [sys.executable, "-c", "from dszog.cli import main; main()"]
    done = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == dszog.__version__


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["demo", "--max-query", "3"], "Did you mean --max-queries"),
        (["dmo"], 'Did you mean "demo"'),
        (["demo", "--seed", "x"], 'unable to convert "x" into int'),
        (["demo", "--max-queries"], "--max-queries"),
        (["demo", "extra"], "extra"),
    ],
    ids=["option", "command", "value", "value missing", "argument"],
)
def test_wrong_usage_exits_non_zero_with_a_helpful_line_and_writes_nothing(
    words: list[str],
    advice: str,
    command_line: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command_line(*words) not in (0, 3)
    said = capsys.readouterr()
    assert advice in said.out + said.err
    assert "Traceback" not in said.out + said.err
    assert not list(tmp_path.iterdir())


# ----------------------------------------------------------------- without the extras


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_the_extra_the_pip_command_is_named(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "rich":
        pytest.importorskip("cyclopts")
        monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setitem(sys.modules, missing, None)
    for name in ("dszog.cli.app", "dszog.cli.demo"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(SystemExit) as caught:
        main()
    said = str(caught.value.code)
    assert f"needs {missing}" in said
    assert 'pip install "dszog[cli,viz]"' in said
    assert "The library works without it" in said


def test_another_missing_module_is_not_mistaken_for_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("cyclopts")
    pytest.importorskip("rich")
    monkeypatch.delitem(sys.modules, "dszog.cli.app", raising=False)
    monkeypatch.setitem(sys.modules, "dszog.cli.demo", None)
    with pytest.raises(ModuleNotFoundError, match=r"dszog\.cli\.demo"):
        main()


def test_without_scikit_learn_the_data_are_made_here(
    command_line: Callable[..., int],
    without_scikit_learn: None,
    without_matplotlib: None,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    assert run_demo(command_line, tmp_path) in (0, 3)
    said = " ".join(capsys.readouterr().out.split())
    assert "Data from the built-in generator, seed 0." in said
    figures = json.loads((tmp_path / "demo.json").read_text())
    assert 60_000 < figures["constraints"] <= 62_500
    assert figures["objective"] <= figures["objective_at_start"]


def test_with_scikit_learn_the_data_are_its_own(
    command_line: Callable[..., int],
) -> None:
    pytest.importorskip("sklearn")
    from dszog.cli.demo import demo_problem

    assert demo_problem(0).generator == "scikit-learn's make_classification"


# ---------------------------------------------------------------------------- the data


@pytest.fixture
def demo_module() -> Any:
    pytest.importorskip("rich")
    from dszog.cli import demo

    return demo


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_own_rows_have_two_classes_that_a_linear_rule_can_tell_apart(
    seed: int, demo_module: Any
) -> None:
    X, labels = demo_module.own_classification(seed)
    assert X.shape == (1000, 50)
    assert labels.shape == (1000,)
    assert set(labels.tolist()) == {0, 1}
    # Half are of each class but for the tenth that is drawn anew: sd below 16.
    assert abs(labels.sum() - 500) < 64
    weights, *_ = np.linalg.lstsq(X[:500], 2.0 * labels[:500] - 1.0, rcond=None)
    hits = ((X[500:] @ weights > 0) == (labels[500:] == 1)).mean()
    assert 0.7 < hits < 0.99  # some labels are wrong on purpose


def test_own_rows_have_redundant_features(demo_module: Any) -> None:
    X, _ = demo_module.own_classification(0)
    assert np.linalg.matrix_rank(X) == 50 - demo_module.N_REDUNDANT


def test_own_rows_are_those_of_the_seed(demo_module: Any) -> None:
    first, again = (demo_module.own_classification(4) for _ in range(2))
    assert first[0].tobytes() == again[0].tobytes()
    assert first[1].tobytes() == again[1].tobytes()
    other = demo_module.own_classification(5)
    assert not np.array_equal(first[0], other[0])


@pytest.mark.usefixtures("without_scikit_learn")
def test_the_demo_problem_is_what_its_description_says(demo_module: Any) -> None:
    demo = demo_module.demo_problem(0)
    size = demo.problem.size
    n_pos, n_neg = int((demo.y > 0).sum()), int((demo.y < 0).sum())
    assert n_pos + n_neg == 500
    assert (size.dim, size.n_losses, size.n_constraints) == (50, 500, n_pos * n_neg)
    assert not size.has_jacobian  # a black box
    np.testing.assert_allclose(demo.X.mean(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(demo.X.std(axis=0), 2.0 / np.sqrt(50))

    w = np.random.default_rng(0).standard_normal(50)
    losses = demo.problem.losses.values(w[np.newaxis], np.arange(500))
    assert demo.objective(w) == pytest.approx(float(np.mean(losses)), rel=1e-12)
    np.testing.assert_allclose(losses[0], 1.0 - np.exp(-((demo.y - demo.X @ w) ** 2)))
    pair = demo.problem.constraints.values(w[np.newaxis], np.array([n_neg + 3]))
    positive, negative = demo.X[demo.y > 0][1], demo.X[demo.y < 0][3]
    assert pair[0, 0] == pytest.approx((negative - positive) @ w - 0.3)
