"""The command line as a whole: help, wrong words, completion."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cyclopts")

from dszog import __version__
from dszog.cli import main
from dszog.cli.app import app
from tests.cli.conftest import Dszog, left_early, refused, start

COMMANDS = [name for name in app if not name.startswith("-")]


def test_the_commands_are_those_of_the_documentation() -> None:
    assert set(COMMANDS) == {
        *("demo", "solve", "watch", "fit", "predict", "completion", "paper", "bench"),
        "update",
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_explains_every_option(
    dszog: Dszog, command: str
) -> None:
    code, said, _ = dszog(command, "--help")
    text = " ".join(said.split())
    assert code == 0
    assert "For example:" in text
    assert f"dszog {command}" in text.split("For example:")[1]
    assert "--no-" not in said
    assert not re.search(r"default: (True|False|\(\))", said, re.IGNORECASE)
    for option in re.findall(r"(?m)^│ \*? *--(.*?)│$", said):
        assert re.search(r"\s{2,}[\w.\"]", option), option


def test_help_lists_the_commands_and_exit_codes(dszog: Dszog) -> None:
    said = " ".join(dszog("--help")[1].split())
    assert "Usage: dszog COMMAND" in said
    assert "Minimise what can only be evaluated" in said
    assert all(f"│ {command} " in said for command in COMMANDS)
    assert "Exit codes: 0 success; 3 the run" in " ".join(
        dszog("solve", "-h")[1].split()
    )


def test_version_is_that_of_the_library(dszog: Dszog) -> None:
    assert dszog("--version") == (0, f"{__version__}\n", "")


@pytest.mark.parametrize(
    "words", ["--help", "solve --help", "completion bash", "bench list"]
)
def test_a_reader_who_leaves_early_is_no_reason_for_a_traceback(words: str) -> None:
    assert left_early(start(*words.split())) == (1, "")


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["slove", "model.py:problem"], "solve"),
        (["--versoin"], "--version"),
        (["demo", "--sede", "3"], "--seed"),
        (["fit", "a.csv", "--task", "fair", "--sensitiv", "x"], "--sensitive"),
        (["bench", "--ful"], "--full"),
        (["completion", "bahs"], "bash"),
        (["fit", "a.csv", "--task", "fare"], "fair"),
        (["fit", "a.csv", "--task", "fair", "--kernel", "rbg"], "'rbf'?"),
        (["demo", "--max-query", "3"], "--max-queries"),
    ],
    ids=str,
)
def test_a_wrong_word_is_answered_with_the_nearest_right_one(
    dszog: Dszog, words: list[str], meant: str
) -> None:
    code, said, complaint = dszog(*words)
    assert (code, said) == (2, "")
    assert re.search(rf"(Did you mean|Choose from).*{re.escape(meant)}", complaint)
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("solve", "PROBLEM is missing."),
        ("fit rows", "--task is missing. Give one of 'pairwise', 'fair'."),
        ("fit rows --task", "--task needs a value, got none."),
        ("predict model", "DATA is missing."),
        ("demo --max-queries", "--max-queries needs a value, got none."),
        ("demo --seed x", "--seed must be a whole number, got 'x'."),
        ("fit rows --task fair --alpha x", "--alpha must be a number, got 'x'."),
        ("solve m.py:f --max-iter 10", "--max-iter. Did you mean '--max-iterations'"),
        ("solve model.py:f --set penalty 3", "'3' belongs to no option."),
        ("demo --max-queries 1.5", "--max-queries must be a whole number, got '1.5'"),
        ("demo extra", "extra"),
    ],
)
def test_what_is_missing_or_wrong_is_named_and_nothing_is_done(
    dszog: Dszog,
    words: str,
    complaint: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    told = refused(dszog, *words.split())
    assert complaint in told
    assert told.endswith(f" See: dszog {words.split()[0]} --help.\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_all_and_the_shell_reads_it(dszog: Dszog, shell: str) -> None:
    code, script, _ = dszog("completion", shell)
    assert code == 0
    for command in COMMANDS:
        assert command in script
    for option in ("max-queries", "sensitive", "holdout"):
        assert option in script
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "inside", "told"),
    [
        ("demo", "dszog.cli.demo.demo_problem", "Interrupted."),
        ("predict model rows", "dszog.cli.predict.predictions", "Interrupted."),
        ("paper 9", "dszog_paper.command.run_paper", "What was finished is kept"),
        ("bench a9a", "dszog_bench.command.run_bench", "Finished runs of peers are k"),
    ],
)
def test_ctrl_c_is_one_line_with_its_code(
    dszog: Dszog,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: str,
    inside: str,
    told: str,
) -> None:
    def pressed(*arguments: object, **more: object) -> None:
        raise KeyboardInterrupt

    pytest.importorskip("jinja2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(inside, pressed)
    code, said, complaint = dszog(*words.split())
    assert (code, said) == (130, "")
    assert complaint.startswith("Interrupted.")
    assert told in complaint
    assert complaint.count("\n") == 1


@pytest.mark.parametrize("missing", ["cyclopts", "rich"])
def test_without_the_extra_the_pip_command_is_named(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.startswith("dszog.cli.")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.split(".")[0] == missing]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SystemExit) as caught:
        main()
    said = str(caught.value.code)
    assert f"needs {missing}" in said
    assert 'pip install "dszog[cli,viz]"' in said
    assert "The library works without it" in said


def test_another_missing_module_is_not_mistaken_for_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "dszog.cli.app", raising=False)
    monkeypatch.setitem(sys.modules, "dszog.cli.demo", None)
    with pytest.raises(ModuleNotFoundError, match=r"dszog\.cli\.demo"):
        main()
