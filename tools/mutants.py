"""Take guards away one at a time and see whether the tests notice.

    python tools/mutants.py [--output FILE] [--only TEXT]

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
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "pyproject.toml")
TIMEOUT = 300.0  # seconds for the tests of one mutant
OUTCOMES = {0: "survived", 1: "killed"}  # exit codes of pytest; others are errors

sys.path.insert(0, str(ROOT))

from tests.mutants.listed import MUTANTS, Mutant  # noqa: E402


def run_tests(copy: Path, nodes: list[str]) -> tuple[int, str]:
    """Run tests of a copy; return pytest's exit code and the end of what it said."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    words += ["-m", "not slow", *(f"tests/{node}" for node in nodes)]
    env = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(copy / "src"), str(copy)]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "DSZOG_KERNELS": "numpy",  # the plain form is what is mutated
        "HYPOTHESIS_PROFILE": "mutants",
    }
    try:
        done = subprocess.run(
            words, cwd=copy, env=env, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return 1, ""  # what does not end is as good as failed
    return done.returncode, (done.stdout + done.stderr)[-2000:]


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
    asked = parser.parse_args()
    chosen = [mutant for mutant in MUTANTS if asked.only in mutant.name]
    with tempfile.TemporaryDirectory() as name:
        copy = Path(name)
        for part in COPIED:
            if (ROOT / part).is_dir():
                ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
                shutil.copytree(ROOT / part, copy / part, ignore=ignored)
            else:
                shutil.copy2(ROOT / part, copy / part)
        code, said = run_tests(copy, sorted({mutant.node for mutant in chosen}))
        if code:
            print(f"The tests fail without any mutant:\n{said}")
            return 1
        found = []
        for number, mutant in enumerate(chosen, 1):
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
