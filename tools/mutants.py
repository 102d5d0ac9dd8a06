"""Take guards away one at a time and see whether the tests notice.

    python tools/mutants.py [--output FILE] [--only TEXT] [--first N] [--skip-whole]

Works on a copy of the tree; the tree itself is never changed. First the tests are
run on the copy as it is, and have to pass; then each mutant of tests/mutants/listed.py
is put in, its test is run, and the file is put back. A mutant is killed if the test
fails. Exits with 1 if one survives, or if a test cannot be run at all.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Any

import numpy as np  # noqa: F401  (loaded once for all)
import pytest
import scipy.optimize
import scipy.stats  # noqa: F401

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "pyproject.toml")
OURS = ("dszog", "dszog_bench", "dszog_paper", "dszog_start", "tests")
TIMEOUT = 300.0  # seconds for the tests of one mutant
OUTCOMES = {0: "survived", 1: "killed"}  # exit codes of pytest; others are errors

sys.path.insert(0, str(ROOT))

from tests.mutants.listed import MUTANTS, Mutant  # noqa: E402


def run_tests(copy: Path, nodes: list[str]) -> tuple[int, str]:
    """Run tests of a copy; return pytest's exit code and the end of what it said.

    In a fork of this process, which has loaded what takes long and is not mutated.
    """
    words = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
    words += [f"tests/{node}" for node in nodes]
    with tempfile.TemporaryFile() as said:
        pid = os.fork()
        if not pid:
            code = 3
            try:
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                code = _in_copy(copy, words)
            except BaseException:  # noqa: BLE001  (a child must not go on as its parent)
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        code = _wait(pid)
        said.seek(0)
        return code, said.read().decode(errors="replace")[-2000:]


def _in_copy(copy: Path, words: list[str]) -> int:
    paths = [str(copy / "src"), str(copy)]
    os.chdir(copy)
    os.environ |= {
        "PYTHONPATH": os.pathsep.join(paths),
        "PYTHONDONTWRITEBYTECODE": "1",
        "DSZOG_KERNELS": "numpy",  # the plain form is what is mutated
        "HYPOTHESIS_PROFILE": "mutants",
    }
    sys.dont_write_bytecode = True
    # Nothing of the tree itself: neither what is loaded nor where it is looked for.
    for name in [name for name in sys.modules if name.split(".")[0] in OURS]:
        del sys.modules[name]
    sys.path[:] = paths + [path for path in sys.path if not _is_ours(path)]
    return int(pytest.main(words))


def _is_ours(path: str) -> bool:
    return Path(path).resolve() in (ROOT, ROOT / "src")


def _wait(pid: int) -> int:
    """Return the exit code of a child; one that does not end is as good as failed."""
    until = time.perf_counter() + TIMEOUT
    while time.perf_counter() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return 1


def try_mutant(copy: Path, mutant: Mutant) -> dict[str, Any]:
    """Put a mutant into the copy, run its tests, and put the file back."""
    path = copy / "src" / "dszog" / mutant.file
    whole = path.read_text(encoding="utf-8")
    if whole.count(mutant.old) != 1:
        return {"mutant": mutant.name, "outcome": "not found", "seconds": 0.0}
    before = time.perf_counter()
    path.write_text(whole.replace(mutant.old, mutant.new), encoding="utf-8")
    try:
        code, said = run_tests(copy, [mutant.node])
    finally:
        path.write_text(whole, encoding="utf-8")
    found: dict[str, Any] = {
        "mutant": mutant.name,
        "outcome": OUTCOMES.get(code, f"error {code}"),
        "seconds": round(time.perf_counter() - before, 1),
    }
    if found["outcome"] != "killed":
        found["test"] = mutant.node
        found["said"] = said[-600:]
    return found


def main() -> int:
    """Try all mutants and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--output", type=Path, help="file for the figures, as JSON")
    parser.add_argument("--only", default="", help="a part of the names to try")
    parser.add_argument("--first", type=int, default=1, help="number to begin with")
    parser.add_argument(
        "--skip-whole", action="store_true", help="do not run the tests as they are"
    )
    asked = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if asked.only in mutant.name]
    chosen = chosen[asked.first - 1 :]
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for part in COPIED:
            if (ROOT / part).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
                shutil.copytree(ROOT / part, copy / part, ignore=ignored)
            else:
                shutil.copy2(ROOT / part, copy / part)
        if not asked.skip_whole:
            nodes = sorted({mutant.node for mutant in chosen})
            code, said = run_tests(copy, nodes)
            if code:
                print(f"The tests fail without any mutant:\n{said}")
                return 1
        found = []
        for number, mutant in enumerate(chosen, asked.first):
            found.append(try_mutant(copy, mutant))
            last = found[-1]
            outcome, seconds = last["outcome"], last["seconds"]
            print(f"{number:3} {outcome:9} {seconds:5} s  {mutant.name}", flush=True)
    killed = sum(one["outcome"] == "killed" for one in found)
    figures = {
        "mutants": len(found),
        "killed": killed,
        "survivors": [one for one in found if one["outcome"] != "killed"],
    }
    if asked.output is not None:
        asked.output.write_text(json.dumps(figures, indent=2) + "\n")
    print(f"{killed} of {len(found)} killed")
    return 0 if killed == len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
