"""The command line as a whole: help, wrong words, completion."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Callable

import pytest

pytest.importorskip("cyclopts")
pytest.importorskip("rich")

from dszog import cli
from dszog.cli.app import app

COMMANDS = [name for name in app if not name.startswith("-")]
Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def dszog(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return what runs `dszog ...` here: exit code, output, errors."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["dszog", *words])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return run


def test_the_commands_are_those_of_the_documentation() -> None:
    assert set(COMMANDS) == {
        *("demo", "solve", "fit", "predict", "completion", "paper", "bench"),
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_has_examples(dszog: Said, command: str) -> None:
    code, said, _ = dszog(command, "--help")

    text = " ".join(said.split())
    assert code == 0
    assert "For example:" in text
    assert f"dszog {command}" in text.split("For example:")[1]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_flags_as_they_are_typed_and_no_default_of_theirs(
    dszog: Said, command: str
) -> None:
    _, said, _ = dszog(command, "--help")

    assert "--no-" not in said
    assert not re.search(r"default: (True|False)", said, re.IGNORECASE)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["slove", "model.py:problem"], "solve"),
        (["fti"], "fit"),
        (["predcit", "a", "b"], "predict"),
        (["--versoin"], "--version"),
        (["--hepl"], "--help"),
        (["demo", "--sede", "3"], "--seed"),
        (["solve", "a.py:b", "--max-querys", "9"], "--max-queries"),
        (["fit", "a.csv", "--task", "fair", "--sensitiv", "x"], "--sensitive"),
        (["predict", "a", "b", "--outptu", "x"], "--output"),
        (["bench", "--ful"], "--full"),
        (["paper", "--donwload"], "--download"),
        (["completion", "bahs"], "bash"),
        (["fit", "a.csv", "--task", "fare"], "fair"),
        (["fit", "a.csv", "--task", "pair"], "'pairwise'?"),
        (["fit", "a.csv", "--task", "fair", "--kernel", "rbg"], "'rbf'?"),
    ],
    ids=str,
)
def test_a_wrong_word_is_answered_with_the_nearest_right_one(
    dszog: Said, words: list[str], meant: str
) -> None:
    code, said, complaint = dszog(*words)

    assert (code, said) == (2, "")
    assert re.search(rf"(Did you mean|Choose from).*{re.escape(meant)}", complaint)
    assert complaint.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["solve"], "dszog solve: PROBLEM is missing."),
        (
            ["fit", "rows"],
            "dszog fit: --task is missing. Give one of 'pairwise', 'fair'.",
        ),
        (["fit", "rows", "--task"], "dszog fit: --task needs a value, got none."),
        (["predict", "model"], "dszog predict: DATA is missing."),
    ],
)
def test_what_is_missing_is_named(dszog: Said, words: list[str], told: str) -> None:
    code, said, complaint = dszog(*words)

    assert (code, said) == (2, "")
    assert complaint == f"{told} See: dszog {words[0]} --help.\n"


@pytest.mark.parametrize(
    "words",
    [
        ("solve", "a.py:b", "--max-queries"),
        ("fit", "a.csv", "--task", "fair", "--max-iterations"),
        ("fit", "a.csv", "--task", "fair", "--bins"),
        ("demo", "--max-queries"),
        ("paper", "--jobs"),
    ],
    ids=" ".join,
)
def test_counts_may_be_written_with_an_exponent(
    dszog: Said, words: tuple[str, ...]
) -> None:
    def read(text: str) -> object:
        parsed = app.parse_args([*words, text], exit_on_error=False, print_error=False)
        return parsed[1]

    assert read("1e3") == read("1000")
    for wrong in ("1.5", "nan", "inf", "many"):
        code, said, complaint = dszog(*words, wrong)
        assert (code, said) == (2, "")
        assert f'unable to convert "{wrong}" into a whole number.' in complaint


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command_and_the_shell_can_read_it(
    dszog: Said, shell: str
) -> None:
    code, script, _ = dszog("completion", shell)

    assert code == 0
    for command in COMMANDS:
        assert command in script
    for option in ("max-queries", "sensitive", "holdout"):
        assert option in script
    program = shutil.which(shell)
    if program is not None:
        subprocess.run([program, "-n"], input=script, text=True, check=True)


def test_bash_completes_a_command() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    script = app.generate_completion(prog_name="dszog", shell="bash")
    found = re.findall(r"complete .*-F (\S+) dszog", script)
    assert found
    ask = f"""
COMP_WORDS=(dszog pre); COMP_CWORD=1; COMP_LINE="dszog pre"; COMP_POINT=9
{found[0]} dszog pre dszog
echo "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(
        [bash, "--norc"], input=script + ask, text=True, capture_output=True, check=True
    )
    assert done.stdout.split() == ["predict"]
